"""Two runs compared: how each went, its scores, plan, answer, issues and options."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from aeon_tui.messages import OpenJournal
from aeon_tui.screens.pane_screen import PaneScreen
from aeon_tui.sources.comparison import REFRESH_SECONDS, ComparedRuns, ComparisonReader
from aeon_widgets.compare_rows import ComparedRun
from aeon_widgets.compare_view import CompareHeader, CompareView
from aeon_widgets.footer import KeyFooter


class CompareScreen(Screen[None]):
    """Two runs beside each other. Tab chooses one of them, Enter opens it; n and N lead through the differences."""

    HELP_TITLE = "Compare"

    DEFAULT_CSS = """
    CompareScreen { background: $background; }
    CompareScreen CompareView { height: 1fr; padding: 0 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "other_side", "Other run", id="compare.side", priority=True),
        Binding("V", "swap", "Swap the runs", id="compare.swap"),
        Binding("escape", "back", "Back", id="compare.back"),
    ]

    def __init__(self, left: Path, right: Path, side: int = 0) -> None:
        super().__init__()
        self._first_side = side
        self._paths = [left, right]
        self._comparing = ComparisonReader(left, right)

    def compose(self) -> ComposeResult:
        yield CompareHeader()
        yield CompareView()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(CompareView):
            return  # the app is ending before the screen was made
        view = self.query_one(CompareView)
        view.where_empty = ("reading …",)
        self.query_one(CompareHeader).side = self._first_side
        self.set_focus(view)
        self.query_one(CompareHeader).update_runs([ComparedRun(path.stem) for path in self._paths])
        self.set_interval(REFRESH_SECONDS, self._read_if_active)

    def on_screen_resume(self) -> None:
        self._read()

    def _read_if_active(self) -> None:
        if self.is_current:
            self._read()

    def _read(self) -> None:
        """Read what has changed of both journals, on a thread."""
        self.run_worker(self._compare, thread=True, group="compare", exit_on_error=False)

    def _compare(self) -> None:
        compared = self._comparing.again()
        if compared is not None:
            # The app may have ended meanwhile.
            with contextlib.suppress(RuntimeError):
                self.app.call_from_thread(self._take, compared)

    def _take(self, compared: ComparedRuns) -> None:
        if self.is_attached:
            self.query_one(CompareHeader).update_runs(compared[:2], compared.comparison.relation)
            self.query_one(CompareView).show(compared.comparison)

    @property
    def _side(self) -> int:
        # Asked for by the keys at the foot, also while the screen is taken down.
        return next((header.side for header in self.query(CompareHeader)), 0)

    @property
    def chosen_run(self) -> Path:
        """The journal of the chosen run, which the app's keys go for."""
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
        """Open the chosen run, or go back to it where the comparison was asked for there."""
        chosen = self.chosen_run
        below = self.app.screen_stack[-2:-1]
        if any(isinstance(each, PaneScreen) and getattr(each, "chosen_run", None) == chosen for each in below):
            self.dismiss()
        else:
            self.app.post_message(OpenJournal(chosen))

    def action_other_side(self) -> None:
        """Choose the other run."""
        self.query_one(CompareHeader).side = 1 - self._side

    def action_swap(self) -> None:
        """Exchange the runs; the same one stays chosen."""
        self._paths.reverse()
        self.query_one(CompareHeader).side = 1 - self._side
        self._comparing.swap()
        self._read()

    def action_back(self) -> None:
        """Go back to where the comparison was asked for."""
        self.dismiss()
