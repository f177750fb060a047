"""The lineage of a run as a tree: its ancestors and forks, with pass and scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls
from aeon_core.units import count
from aeon_tui.messages import CompareRuns, OpenJournal
from aeon_tui.platform.background_tasks import LatestWorker, reason
from aeon_widgets.footer import KeyFooter
from aeon_widgets.run_list import RunList, RunListHeader, as_tree, family_of
from aeon_widgets.tally import HeadLine

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary

REFRESH_SECONDS = 1.0


class LineageScreen(Screen[None]):
    """Runs and their forks. Enter opens one; `v` compares it with the run that the tree was opened from."""

    HELP_TITLE = "Lineage"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "beside", "Side by side", id="lineage.beside"),
        Binding("escape", "dismiss", "Back", id="lineage.back"),
    ]
    DEFAULT_CSS = """
    LineageScreen {
        background: $background;
        RunList { height: 1fr; }
    }
    """

    def __init__(
        self,
        path: Path,
        list_runs: Callable[[], Sequence[RunSummary]],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__()
        self._path, self._list_runs, self._clock = path, list_runs, clock
        self._runs: Sequence[RunSummary] = ()
        self._reading = LatestWorker(self, "lineage")

    def compose(self) -> ComposeResult:
        yield HeadLine("Lineage")
        yield RunListHeader()
        yield RunList()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(RunList):
            return  # the app ends before the screen is composed
        rows = self.query_one(RunList)
        rows.where_empty = ("reading …",)
        rows.focus()
        self.set_interval(REFRESH_SECONDS, self._read)

    def on_screen_resume(self) -> None:
        self._read()

    def _read(self) -> None:
        """Read the runs directory, on a thread."""
        if self.is_current:
            self._reading.submit(self._read_runs)

    def _read_runs(self) -> Callable[[], None]:
        try:
            family, problem = family_of(self._list_runs(), self._path.stem), ""
        except (AeonError, OSError) as error:
            family, problem = [], reason(error)
        return lambda: self._show(family, problem)

    def _show(self, family: Sequence[RunSummary], problem: str) -> None:
        if not self.is_attached:
            return
        first, self._runs = not self._runs, family
        lines, rows = as_tree(family), self.query_one(RunList)
        rows.tick(self._clock())
        rows.update_marks({self._path.stem}, frozenset())
        rows.update_lines(lines, where_empty=f"✖ {problem}" if problem else "this run is not in the list")
        if first:
            rows.cursor = next((at for at, line in enumerate(lines) if line.run.run_id == self._path.stem), 0)
        fork_count = "no fork yet" if len(family) == 1 else count(len(family), "run")
        size = f" · {fork_count}" if family else ""
        self.query_one(HeadLine).title = f"Lineage of {escape_controls(self._path.stem)}{size}"
        self.refresh_bindings()

    @property
    def chosen_run(self) -> Path | None:
        """The journal of the selected run."""
        row = next((rows.selected for rows in self.query(RunList)), None)
        return next((Path(run.path) for run in self._runs if row is not None and run.run_id == row.run_id), None)

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "beside" or self.chosen_run not in (None, self._path)

    def on_rows_view_moved(self) -> None:
        self.refresh_bindings()

    def on_rows_view_chosen(self) -> None:
        if (chosen := self.chosen_run) == self._path:
            self.dismiss()
        elif chosen is not None:
            self.dismiss()
            self.app.post_message(OpenJournal(chosen))

    def action_beside(self) -> None:
        """Compare the selected run with the one that the tree was opened from; an ancestor is on the left."""
        if (chosen := self.chosen_run) is not None:
            older = [Path(line.path) for line in self._runs]
            left, right = sorted((chosen, self._path), key=older.index)
            self.app.post_message(CompareRuns(left, right))
