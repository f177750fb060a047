"""What the supervisor repaired, or tried to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.cells import cell_len
from typing_extensions import override

from aeon_core.journal.view.formatting import repair_words
from aeon_core.journal.view.model import RepairView, RunView
from aeon_widgets.pane import Pane, PaneMessage, message, pane_css
from aeon_widgets.text import Piece, one_line
from aeon_widgets.virtual_list import RowsView


class RepairsPane(RowsView, Pane):
    """One line per repair attempt. Enter goes to the step that was repaired."""

    HELP_TITLE = "Repairs"
    RECORDS: ClassVar[frozenset[str]] = frozenset({"supervisor"})

    @message
    class Opened(PaneMessage):
        """The person wants to see a repair."""

        repair: RepairView

    DEFAULT_CSS = pane_css("RepairsPane")

    def __init__(self) -> None:
        super().__init__()
        self._repairs: list[RepairView] = []
        self.pane_title = "Repairs"
        self.where_empty = ["No repairs."]

    def update_view(self, view: RunView) -> None:
        """Show the repairs so far."""
        grown = len(view.repairs) > self.line_count
        at_end = self.cursor >= self.line_count - 1
        self._repairs = view.repairs
        self.set_line_count(len(view.repairs))
        if grown and at_end and not self.has_focus:
            self.cursor = len(view.repairs) - 1
        self.pane_title = f"Repairs {len(view.repairs)}"

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        repair = self._repairs[index]
        icon, style = ("✔", "complete") if repair.error is None else ("✖", "failed")
        outcome, how = repair_words(repair)
        place = f"{one_line(repair.step_id, 30)} " if repair.step_id else ""
        room = width - cell_len(f" {icon} {place}{outcome} ")
        # Fewer details are better than a word that is cut off.
        ways = (f"· {how}", f"· {how.partition(',')[0]}", "")
        details = next(way for way in ways if cell_len(way) <= room or not way)
        return [(f" {icon} ", style), (place, "bold"), (f"{outcome} ", style), (details, "muted")]

    @override
    def action_choose(self) -> None:
        """Ask to see what was repaired."""
        if self._repairs:
            self.post_message(self.Opened(self, self._repairs[self.cursor]))


def summary(view: RunView) -> list[Piece]:
    """Return on one line how many repairs there were, and how many of them failed."""
    failed = sum(repair.error is not None for repair in view.repairs)
    counts: list[Piece] = [(f"✔{len(view.repairs) - failed} ", "complete")] if len(view.repairs) > failed else []
    return [*counts, *([(f"✖{failed}", "failed")] if failed else [])] or [("none", "muted")]
