"""What can be done with the selected run of a list: mark, compare, delete, copy its path."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from textual.binding import Binding, BindingType
from textual.screen import Screen
from typing_extensions import override

from aeon_tui.messages import CompareRuns, DeleteRun
from aeon_tui.screens.run.keys import PAST_RUN_KEYS
from aeon_widgets.pane import Item
from aeon_widgets.run_tree import WORKFLOW

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary

_OF_A_RUN = ("mark", "compare", "delete", "copy_path")
RUN_KEYS: list[BindingType] = [
    *PAST_RUN_KEYS,
    Binding("m", "mark", "Mark", show=False, tooltip="Mark it to compare with another", id="browser.mark"),
    Binding("C", "compare", "Compare", show=False, tooltip="With the marked run, or choose one", id="browser.compare"),
    Binding("delete", "delete", "Delete", show=False, tooltip="Asks first", id="browser.delete"),
    Binding("ctrl+y", "copy_path", "Copy path", show=False, tooltip="Of its journal", id="browser.copy_path"),
]
"""What each does is said of the selected run."""


class RunsScreen(Screen[None]):
    """A screen with a list of runs, of which one is selected and another may be marked."""

    marked: RunSummary | None = None
    """The run that another one will be compared with."""

    @property
    @abstractmethod
    def selected_run(self) -> RunSummary | None:
        """The run that the list's cursor is on, as it was last read."""

    @abstractmethod
    def forks_of(self, run: RunSummary) -> list[RunSummary]:
        """Return what was forked from a run, the newest first."""

    @abstractmethod
    def show_marks(self) -> None:
        """Show which run is marked."""

    @abstractmethod
    def read_again(self) -> None:
        """Read the directory again, on a thread."""

    @property
    def runs_to_compare(self) -> tuple[Path, Path] | None:
        """The marked run and the selected one; None where these are not two."""
        marked, selected = self.marked, self.selected_run
        if marked is None or selected is None or marked.run_id == selected.run_id:
            return None
        return Path(marked.path), Path(selected.path)

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in _OF_A_RUN or self.selected_run is not None

    def action_mark(self) -> None:
        """Mark the selected run as the one to compare another with; the marked one no more."""
        run = self.selected_run
        if run is not None:
            self.marked = None if self.marked is not None and self.marked.run_id == run.run_id else run
            self.show_marks()
            self.refresh_bindings()

    def action_compare(self) -> None:
        """Show the marked run and the selected one beside each other; where none is marked, ask for the other."""
        if any(run is not None and run.kind == WORKFLOW for run in (self.selected_run, self.marked)):
            self.app.clear_notifications()
            self.app.notify("A workflow has no passes to compare; only runs can be compared.", markup=False)
        elif (pair := self.runs_to_compare) is not None:
            self.app.post_message(CompareRuns(*pair))
        elif (run := self.selected_run) is not None:
            self.app.post_message(CompareRuns(Path(run.path)))

    def action_delete(self) -> None:
        """Ask, and delete the selected run."""
        if (run := self.selected_run) is not None:
            self.app.post_message(DeleteRun(run, len(self.forks_of(run)), self.read_again))

    @property
    def item(self) -> Item | None:
        """The id of the selected run."""
        return Item("the run id", run.run_id) if (run := self.selected_run) is not None else None

    def action_copy_path(self) -> None:
        """Copy the path of the run's journal, over SSH too."""
        if (run := self.selected_run) is not None:
            self.app.copy_to_clipboard(run.path)
            self.app.clear_notifications()
            self.app.notify(f"Copied: {run.path}", timeout=4, markup=False)
