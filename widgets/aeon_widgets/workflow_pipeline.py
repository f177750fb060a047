"""The agents of a workflow and the gates between them, each with an icon and a word for its state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textual.geometry import Region
from typing_extensions import override

from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import Piece, fit, one_line
from aeon_widgets.virtual_list import RowsView

WORD_CELLS, TIME_CELLS = 9, 7
_NAME_CELLS = 21
_DETAIL_FROM = 64
"""The width from which an agent's last message, or why it was skipped, is shown."""


@dataclass(frozen=True)
class PipelineRow:
    """One agent, or one gate."""

    key: str
    icon: str
    style: str
    word: str
    """One word for the state."""
    name: str
    is_gate: bool = False
    time: str = ""
    detail: str = ""


class WorkflowPipeline(RowsView, Pane):
    """Follows the workflow's current row until the person moves; `follow` resumes that."""

    HELP_TITLE = "Pipeline"
    DEFAULT_CSS = pane_css("WorkflowPipeline")

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[PipelineRow] = ()
        self.stays = True
        """Whether the cursor stays on the workflow's current row."""
        self.pane_title = "Pipeline"

    @property
    def selected(self) -> str:
        """The key of the selected row; empty if there is none."""
        return self._rows[self.cursor].key if self.cursor < len(self._rows) else ""

    def update_rows(self, rows: Sequence[PipelineRow], current: str) -> None:
        """Show the rows; `current` is the key of the workflow's current one."""
        self._rows = rows
        self.set_line_count(len(rows))
        if self.stays:
            self.select(current)

    def select(self, key: str) -> None:
        """Put the cursor on the row with that key, if there is one."""
        place = next((index for index, row in enumerate(self._rows) if row.key == key), None)
        if place is not None:
            self.cursor = place

    def follow(self, current: str) -> None:
        """Follow the workflow from now on."""
        self.stays = True
        self.select(current)

    @override
    def move_to(self, index: int) -> None:
        self.stays = False
        super().move_to(index)

    @override
    def _show_cursor(self) -> None:
        # Keep the rows before and after the cursor in sight.
        if self.is_attached:
            around = Region(0, max(0, self.cursor - 1), 1, min(3, max(1, self.size.height)))
            self.scroll_to_region(around, animate=False, immediate=True, x_axis=False, force=True)
            self._draw_changed()

    @override
    def _follow_where_at_end(self) -> None:
        """Do nothing: a row is followed, not the end."""

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        row = self._rows[index]
        time = f"{row.time:>{TIME_CELLS}}" if row.time else " " * TIME_CELLS
        timed = width >= 4 + _NAME_CELLS + 1 + WORD_CELLS + TIME_CELLS + 1
        yield f" {row.icon} ", row.style
        name = fit(one_line(row.name, 80), _NAME_CELLS)
        yield f"{name:<{_NAME_CELLS}} ", "accent" if row.is_gate else ""
        yield f"{fit(row.word, WORD_CELLS):<{WORD_CELLS}}", row.style
        if timed:
            yield f"{time} ", "muted"
        if width >= _DETAIL_FROM:
            yield f" {one_line(row.detail, 300)}", "muted"
