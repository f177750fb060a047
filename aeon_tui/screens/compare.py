"""The comparison of two runs: their journals are read on a thread, repeatedly while a run is live."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from aeon_core.errors import AeonError
from aeon_core.journal.summary import is_being_written, run_id_of
from aeon_tui.messages import OpenJournal
from aeon_tui.platform.background_tasks import LatestWorker
from aeon_tui.screens.item_actions import SelectableScreen
from aeon_tui.screens.pane_screen import PaneScreen
from aeon_tui.sources.base import failure
from aeon_tui.sources.journal import LONG, tail_view, whole_view
from aeon_widgets.compare_rows import ComparedRun, RunComparison, compare
from aeon_widgets.compare_view import CompareHeader, CompareView
from aeon_widgets.footer import KeyFooter

REFRESH_SECONDS = 1.0
"""Seconds between checks whether a journal has grown."""
RESTING = 3
"""After reading a journal, wait this many times as long as that took."""
FROM_ITS_END = "a long journal: only its end; earlier passes, repairs and outputs are missing"


class ComparedRuns(NamedTuple):
    """Two runs as last read, and their comparison."""

    left: ComparedRun
    right: ComparedRun
    comparison: RunComparison


@dataclass
class _Journal:
    """One of the journals, and what was last read of it."""

    path: Path
    run: ComparedRun = field(default_factory=lambda: ComparedRun(""))
    _read_as: object = None
    _not_before: float = field(default=0.0)

    def catch_up(self) -> bool:
        """Read the journal if it has changed; return whether it was read."""
        version = _version(self.path)
        if version == self._read_as or time.monotonic() < self._not_before:
            return False
        began = time.monotonic()
        self.run, self._read_as = read(self.path), version
        ended = time.monotonic()
        self._not_before = ended + RESTING * (ended - began)
        return True


class ComparisonReader:
    """Compares two runs, again whenever a journal changes or the runs are swapped."""

    def __init__(self, left: Path, right: Path) -> None:
        self._journals = _Journal(left), _Journal(right)
        self._swapped = False
        self._shown: bool | None = None

    def swap(self) -> None:
        """Swap the runs."""
        self._swapped = not self._swapped

    def compare(self) -> ComparedRuns | None:
        """Return the runs as they are now; None if nothing has changed. Reads files: for one thread at a time."""
        changed = [journal.catch_up() for journal in self._journals]
        if self._shown is self._swapped and not any(changed):
            return None
        self._shown = self._swapped
        left, right = self._journals[::-1] if self._shown else self._journals
        return ComparedRuns(left.run, right.run, compare(left.run, right.run))


def read(path: Path) -> ComparedRun:
    """Return the run of a journal as far as it can be read; that of a long one from its end alone."""
    name = run_id_of(str(path))
    try:
        view, whole = tail_view(path) if path.stat().st_size >= LONG else (whole_view(path), True)
    except (AeonError, OSError) as error:
        size, _, is_written = _version(path)
        # A process has created the journal and not written to it yet.
        is_begun = is_written and not size
        return ComparedRun(name, problem="" if is_begun else failure(path, error).message)
    if view.status == "running" and not is_being_written(path):
        view.status = "interrupted"
    elif view.status == "running" and view.asked:
        view.status = "waiting for a decision"
    return ComparedRun(name, view, note="" if whole else FROM_ITS_END)


def _version(path: Path) -> tuple[int, int, bool]:
    """Return a value that changes when a journal has more to read."""
    try:
        now = path.stat()
        return now.st_size, now.st_mtime_ns, is_being_written(path)
    except OSError:
        return -1, -1, False


class CompareScreen(SelectableScreen[None]):
    """Two runs side by side. Tab chooses one, Enter opens it; n and N go through the differences.

    While one of them `is_starting`, its journal may not exist yet, and nothing is read.
    """

    HELP_TITLE = "Compare"

    DEFAULT_CSS = """
    CompareScreen { background: $background; }
    CompareScreen CompareView { height: 1fr; padding: 0 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab,shift+tab", "other_side", "Other run", id="compare.side", priority=True),
        Binding("V", "swap", "Swap the runs", id="compare.swap"),
        Binding("escape", "dismiss", "Back", id="compare.back"),
    ]

    def __init__(self, left: Path, right: Path, side: int = 0, is_starting: Callable[[], bool] = lambda: False) -> None:
        super().__init__()
        self._first_side, self._is_starting = side, is_starting
        self._paths = [left, right]
        self._comparing = ComparisonReader(left, right)
        self._reading = LatestWorker(self, "compare")

    def compose(self) -> ComposeResult:
        yield CompareHeader()
        yield CompareView()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(CompareView):
            return  # the app ends before the screen is composed
        view = self.query_one(CompareView)
        view.where_empty = ("reading …",)
        self.query_one(CompareHeader).side = self._first_side
        self.set_focus(view)
        self.query_one(CompareHeader).update_runs([ComparedRun(path.stem) for path in self._paths])
        self.set_interval(REFRESH_SECONDS, self._read)

    def on_screen_resume(self) -> None:
        self._read()

    def _read(self) -> None:
        """Read the changes of both journals, on a thread."""

        def compare_runs() -> Callable[[], None]:
            compared = self._comparing.compare()
            return lambda: show(compared)

        def show(compared: ComparedRuns | None) -> None:
            if compared is not None and self.is_attached:
                self.query_one(CompareHeader).update_runs(compared[:2], compared.comparison.relation)
                self.query_one(CompareView).show(compared.comparison)

        if self.is_current and not self._is_starting():
            self._reading.submit(compare_runs)

    @property
    def _side(self) -> int:
        # The footer asks for this, even while the screen is being removed.
        return next((header.side for header in self.query(CompareHeader)), 0)

    @property
    def chosen_run(self) -> Path:
        """The journal of the chosen run, which the app's keys apply to."""
        return self._paths[self._side]

    def on_compare_view_shown(self, event: CompareView.Shown) -> None:
        event.stop()
        heads = self.query_one(CompareHeader)
        heads.place, heads.beside = event.view.place, event.view.is_beside

    def on_compare_view_side_wanted(self, event: CompareView.SideWanted) -> None:
        event.stop()
        self.query_one(CompareHeader).side = event.side

    def on_compare_header_clicked(self, event: CompareHeader.Clicked) -> None:
        event.stop()
        self.query_one(CompareHeader).side = event.side
        if event.again:
            self.action_open_side()

    def on_rows_view_chosen(self) -> None:
        self.action_open_side()

    def action_open_side(self) -> None:
        """Open the chosen run, or go back to it if the comparison came from there."""
        chosen = self.chosen_run
        below = self.app.screen_stack[-2:-1]
        if any(isinstance(each, PaneScreen) and each.chosen_run == chosen for each in below):
            self.dismiss()
        else:
            self.app.post_message(OpenJournal(chosen))

    def action_other_side(self) -> None:
        self.query_one(CompareHeader).side = 1 - self._side

    def action_swap(self) -> None:
        """Swap the runs; the same one stays chosen."""
        self._paths.reverse()
        self.query_one(CompareHeader).side = 1 - self._side
        self._comparing.swap()
        self._read()
