"""Runs, one a line; where their texts were searched, what was found under each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from typing_extensions import override

from aeon_widgets.match_list import excerpt
from aeon_widgets.run_columns import DAMAGED, MARKED, STATUS_CELLS, cell, columns, pad, status_cell, task_cells, titles
from aeon_widgets.run_tree import LIVE, WORKFLOW, RunLine, RunRow
from aeon_widgets.text import fit, one_line
from aeon_widgets.virtual_list import Piece, RowsView

QUIET_SECONDS = 10
"""How often ages are updated if no run is live."""
_KIND_CELLS = STATUS_CELLS - 5
"""What holds a match is below the status, the match below the task."""
_STYLES = {"sim": "medium", "passes": "", "scores": "", "cost": ""}
"""Of the columns that are not muted."""


class RunList(RowsView):
    """Runs in the order given: status, task, age and, where there is room, passes, scores, model, cost and run id."""

    HELP_TITLE = "List"

    DEFAULT_CSS = """
    RunList { scrollbar-gutter: stable; }
    """

    item = None
    """A run is copied as what its screen has of it: its id."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[RunLine] = []
        self._wanted = ""
        self._now = datetime.now(UTC)
        self._marked = ""
        self._damaged: Set[str] = frozenset()

    @property
    def selected(self) -> RunRow | None:
        """The selected run."""
        return self.selected_line.run if self.selected_line is not None else None

    @property
    def selected_line(self) -> RunLine | None:
        """The selected line: a run, or a place in one."""
        return self._lines[self.cursor] if self.cursor < len(self._lines) else None

    def update_lines(
        self, lines: Sequence[RunLine], wanted: str = "", *, where_empty: str = "", keep: bool = True
    ) -> None:
        """Show these lines, `wanted` marked in what was found; the selection stays on its run, or goes to the first."""
        said = (where_empty,)
        if lines == self._lines and wanted == self._wanted and (lines or said == self.where_empty):
            return
        self.where_empty = said
        chosen = self._lines[self.cursor] if self.cursor < len(self._lines) else None
        self._lines, self._wanted = lines, wanted
        self.set_line_count(len(lines))
        self.cursor = self._place_of(chosen) if keep and chosen is not None else 0

    def tick(self, now: datetime) -> None:
        """Update ages: each second while a run, which comes first, is live, and seldom otherwise."""
        first = self._lines[0].run if self._lines else None
        is_live = first is not None and first.status == LIVE
        if is_live or abs((now - self._now).total_seconds()) >= QUIET_SECONDS:
            self._now = now
            self.refresh()

    def update_marks(self, marked: str, damaged: Set[str]) -> None:
        """Mark the run of this id, and as damaged those of these ids, besides those that say it of themselves."""
        if (marked, damaged) != (self._marked, self._damaged):
            self._marked, self._damaged = marked, damaged
            self.refresh()

    def _place_of(self, chosen: RunLine) -> int:
        """Return a line's current index: its old one if it is still there, else that of its run."""
        if self.cursor < len(self._lines) and _same(self._lines[self.cursor], chosen):
            return self.cursor
        run_id = chosen.run.run_id
        found = [place for place, line in enumerate(self._lines) if line.run.run_id == run_id]
        kept = [place for place in found if _same(self._lines[place], chosen)]
        return next(iter(kept or found), min(self.cursor, max(0, len(self._lines) - 1)))

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        line = self._lines[index]
        if line.found is not None:
            kind = f"{'':4}{fit(one_line(line.found_in, 30), _KIND_CELLS):<{_KIND_CELLS}} "
            return [(kind, "muted"), *excerpt(line.found, self._wanted, width - len(kind))]
        run = line.run
        room = task_cells(width)
        lead = fit(_lead(line), room)
        task = pad(fit(one_line(run.task, 500), room - cell_len(lead)), room - cell_len(lead))
        right = [(cell(each, run, self._now), _STYLES.get(each.name, "muted")) for each in columns(width)]
        return [status_cell(run, self._mark(run)), (lead, "muted"), (task, ""), *right]

    def _mark(self, run: RunRow) -> str:
        if run.run_id == self._marked:
            return MARKED
        return DAMAGED if run.damaged or run.run_id in self._damaged else ""


def _lead(line: RunLine) -> str:
    """Return the prefix of the task: a fork's origin, and that it is a workflow."""
    kind = "workflow · " if line.run.kind == WORKFLOW else ""
    if line.run.parent is None:
        return kind
    # A fork at the top level is one whose parent is gone, or not shown.
    begins = f"pass {line.run.forked_at} · " if line.run.forked_at is not None else ""
    return f"{line.guide or '↳ '}{begins}{kind}"


def _same(one: RunLine, other: RunLine) -> bool:
    return one.run.run_id == other.run.run_id and (one.found is None) is (other.found is None)


SCROLLBAR = 1


class RunListHeader(Widget):
    """One line above a RunList of the same width."""

    DEFAULT_CSS = """
    RunListHeader { height: 1; color: $aeon-muted; background: $background; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._order = ""

    @dataclass
    class Ordered(Message):
        """The person wants another order."""

        order: str

    def update_order(self, order: str) -> None:
        """Say what the list is ordered by."""
        if order != self._order:
            self._order = order
            self.refresh()

    def render(self) -> Content:
        shown = [(text, "bold" if order and order == self._order else "") for order, text in self._titles()]
        return Content.assemble(*shown)

    def on_click(self, event: events.Click) -> None:
        right = 0
        for order, text in self._titles():
            right += len(text)
            if event.x < right:
                if order:
                    self.post_message(self.Ordered(order))
                return

    def _titles(self) -> list[tuple[str, str]]:
        return titles(self.size.width - SCROLLBAR, self._order)
