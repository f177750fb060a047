"""Two runs side by side, or one under the other if there is no room: what is the same, and what differs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.reactive import reactive, var
from typing_extensions import override

from aeon_core.journal.view.formatting import words
from aeon_core.units import count
from aeon_widgets.compare_rows import ComparedRun, CompareRow, RunComparison
from aeon_widgets.icons import VARIABLES, run_style
from aeon_widgets.pane import message
from aeon_widgets.rendered_text import TextLine, wrapped
from aeon_widgets.tally import TallyHeader
from aeon_widgets.text import Piece, fit, one_line
from aeon_widgets.virtual_list import RowsView

SIDES = ("A", "B")

Part = tuple[str, str]


class CompareHeader(TallyHeader):
    """The name of each run above its side, the chosen one marked; a click chooses a run, a double click opens it."""

    DEFAULT_CSS = """
    CompareHeader { dock: top; height: auto; background: $panel; color: $aeon-text; padding: 0 1; }
    """

    side: reactive[int] = reactive(0)
    """The run that is chosen: 0 for A, 1 for B."""
    beside: reactive[bool] = reactive(True, layout=True)
    place: reactive[str] = reactive("")
    """The current difference and their number, in words."""

    @message
    class Clicked(Message):
        """The person clicked the head of a run; `again` for a double click."""

        side: int
        again: bool

    def __init__(self) -> None:
        super().__init__()
        self._runs: Sequence[ComparedRun] = ()
        self._relation = ""

    def update_runs(self, runs: Sequence[ComparedRun], relation: str = "") -> None:
        """Show these two runs, and how they descend from each other."""
        self._runs, self._relation = runs, relation
        self.refresh()

    def render(self) -> Content:
        width = self.size.width
        cells = (width - _RULE) // 2 if self.beside else width
        heads = [self._head(side, cells) for side in range(len(self._runs))]
        if self.beside and len(heads) == 2:
            gap = " " * (cells - heads[0].cell_length)
            return Content("\n").join([self.with_tally(self._title), Content.assemble(heads[0], gap, " │ ", heads[1])])
        return Content("\n").join([self.with_tally(self._title), *heads])

    def _title(self, width: int) -> Content:
        head = "aeon  Compare  "
        right = fit(self.place, width - len(head))
        relation = fit(self._relation, width - len(head) - cell_len(right) - 2)
        gap = " " * max(1, width - len(head) - cell_len(relation) - cell_len(right))
        return Content.assemble(
            ("aeon", "bold $aeon-accent"), ("  Compare  ", "bold"), (relation, "$aeon-muted"), gap, (right, "bold")
        )

    def _head(self, side: int, cells: int) -> Content:
        run = self._runs[side]
        chosen = side == self.side
        lead = f"{'▸' if chosen else ' '} {SIDES[side]} "
        icon, style = ("✖", "failed") if run.view is None and run.problem else ("…", "muted")
        status = "unreadable" if run.problem else "reading …"
        if run.view is not None:
            (icon, style), status = run_style(run.view.status), words(run.view.status)
        status_text = f" {icon} {one_line(status, 30)}"
        room = cells - len(lead)
        name = fit(one_line(run.run_id, 80), room)
        parts: list[Part] = [(lead, "bold $aeon-accent" if chosen else "$aeon-muted"), (name, "bold" if chosen else "")]
        if (left := room - cell_len(name)) >= cell_len(status_text):
            parts.append((status_text, VARIABLES[style]))
            left -= cell_len(status_text)
            task = one_line(run.view.task) if run.view is not None else ""
            if task and left > 8:
                parts.append((f"  {fit(task, left - 2)}", "$aeon-muted"))
        return Content.assemble(*parts)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or offset.y == 0:
            return
        side = int(offset.x > self.size.width // 2) if self.beside else offset.y - 1
        self.post_message(self.Clicked(side, event.chain > 1))


ROOMY = 100
"""From this width the runs are side by side."""
_RULE = 3
"""Cells between the sides."""
_SIGN = 2
"""Cells of the sign that says whose line it is, if the runs are one above the other."""
_BELOW = 8
"""Lines below a difference that are scrolled into view with it."""
_DIFFERENT = "accent bold"
"""The style of words that differ."""


class _Line(NamedTuple):
    """One line of a row, and what it shows of each side; None for a side that it does not show."""

    row: CompareRow
    left: TextLine | None
    right: TextLine | None
    first: bool
    """Whether it is the row's first one."""


class CompareView(RowsView):
    """The rows of a comparison. The sides are called A and B; a mark on every line says whether they differ."""

    HELP_TITLE = "Differences"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "difference(1)", "Next difference", id="compare.next"),
        Binding("N", "difference(-1)", "Previous difference", show=False, id="compare.previous"),
        Binding("d", "only_differences", "Only differences", id="compare.only"),
        Binding("v", "beside", "Side by side", id="compare.beside"),
        Binding("left,h", "side(0)", "Choose run A", show=False, id="compare.left"),
        Binding("right,l", "side(1)", "Choose run B", show=False, id="compare.right"),
    ]

    DEFAULT_CSS = "CompareView { scrollbar-gutter: stable; }"

    beside: var[bool | None] = var(None)
    """Whether the runs are side by side; None means if there is room."""
    only: var[bool] = var(False)
    """Whether equal rows are left out."""

    @message
    class SideWanted(Message):
        """The person wants to do something with one of the runs: 0 for A, 1 for B."""

        side: int

    @message
    class Shown(Message):
        """The content of the view, or the position in it, has changed."""

        view: CompareView

    def __init__(self) -> None:
        super().__init__()
        self._all: Sequence[CompareRow] = ()
        self._whole = False
        self._lines: list[_Line] = []
        self._begins: list[int] = []
        """The lines at which a difference begins."""
        self._laid_out: tuple[int, bool] = (0, False)

    @property
    def is_beside(self) -> bool:
        """Whether the runs are side by side now."""
        return self.scrollable_content_region.width >= ROOMY if self.beside is None else self.beside

    @property
    def place(self) -> str:
        """The current difference and their number, in words."""
        total = len(self._begins)
        if not total:
            return "no differences" if self._whole else ""
        at = bisect_left(self._begins, self.cursor + 1)
        on_one = at and self._row_at(self.cursor).differs
        return f"difference {at:,} of {total:,}" if on_one else count(total, "difference")

    @property
    def text(self) -> str:
        """What is shown, without styles; for copying and for tests."""
        width = self.scrollable_content_region.width
        return "\n".join("".join(text for text, _ in self.pieces(at, width)).rstrip() for at in range(self.line_count))

    def show(self, comparison: RunComparison) -> None:
        """Show a comparison; the cursor stays on its row if that is still there."""
        if comparison.rows != self._all:
            self._all, self._whole = comparison.rows, comparison.whole
            self._lay_out()

    def watch_beside(self) -> None:
        if self.is_attached:
            self._lay_out()

    watch_only = watch_beside

    @override
    def on_resize(self) -> None:
        if self._laid_out != (self.scrollable_content_region.width, self.is_beside):
            self._lay_out()
        super().on_resize()

    @override
    def watch_cursor(self) -> None:
        super().watch_cursor()
        self.post_message(self.Shown(self))

    def _row_at(self, line: int) -> CompareRow:
        return self._lines[line].row if line < len(self._lines) else CompareRow(" ")

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        here = self._row_at(self.cursor)
        self._laid_out = (width, self.is_beside)
        rows = [row for row in self._all if row.differs or row.mark == "#" or not self.only]
        self._lines = list(_lines(rows, width, beside=self.is_beside))
        self._begins = [at for at, line in enumerate(self._lines) if line.first and line.row.begins]
        self.set_line_count(len(self._lines))
        # The row's line nearest to the old one; if the row is gone, the line at the same position.
        found = [at for at, line in enumerate(self._lines) if line.first and line.row == here]
        near = min(found, key=lambda at: abs(at - self.cursor), default=self.cursor)
        self.cursor = min(near, max(0, len(self._lines) - 1))
        self.post_message(self.Shown(self))

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action == "choose" or super().check_action(action, parameters)

    @override
    def action_choose(self) -> None:
        """Open the chosen run, even before the comparison has been read."""
        self.post_message(self.Chosen(self, self.cursor))

    def action_difference(self, by: int) -> None:
        """Go to the next difference, or with -1 to the previous one."""
        at = bisect_left(self._begins, self.cursor + (by > 0)) - (by < 0)
        if 0 <= at < len(self._begins):
            self.move_to(self._begins[at])
            below = min(_BELOW, max(1, self.size.height - 2))
            region = Region(0, max(0, self.cursor - 1), 1, below)
            self.scroll_to_region(region, animate=False, immediate=True, x_axis=False, force=True)

    def action_only_differences(self) -> None:
        """Leave out equal rows, or show them again."""
        self.only = not self.only

    def action_beside(self) -> None:
        """Show the runs side by side, or one under the other."""
        self.beside = not self.is_beside

    def action_side(self, side: int) -> None:
        self.post_message(self.SideWanted(side))

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        row, left, right, first = self._lines[index]
        shown = list((left or right or TextLine("", "")).pieces())
        if not self._laid_out[1]:
            sign = SIDES[left is None] if row.left != row.right else row.mark if row.differs else " "
            return [(f"{sign} ", "bold" if row.differs else "muted"), *shown]
        if row.is_heading:
            return shown
        gap = " " * ((width - _RULE) // 2 - (cell_len(left.text) if left is not None else 0))
        sign, style = (f" {row.mark} ", "bold") if first and row.differs else (" │ ", "muted")
        return [
            *(left.pieces() if left is not None else ()),
            (gap, ""),
            (sign, style),
            *(right.pieces() if right is not None else ()),
        ]


def _lines(rows: Iterable[CompareRow], width: int, *, beside: bool) -> Iterator[_Line]:
    """Yield the lines that rows take, with their sides beside each other or one below the other."""
    for row in rows:
        style = row.style or ("muted" if row.mark == " " else "")
        narrow = (width - _RULE) // 2 if beside else width - _SIGN
        cells = max(4, width if beside and row.is_heading else narrow)
        left, right = (
            list(
                wrapped(
                    text,
                    [(*span, _DIFFERENT) for span in spans],
                    cells,
                    style,
                    row.hang if row.hang <= cells // 2 else 0,
                )
            )
            for text, spans in zip((row.left, row.right), row.spans, strict=True)
        )
        lines: Iterable[tuple[TextLine | None, TextLine | None]]
        if beside and not row.is_heading:
            lines = zip_longest(left, right)
        elif row.left == row.right:
            lines = ((line, None) for line in left)
        else:
            lines = [(line, None) for line in left if row.left] + [(None, line) for line in right if row.right]
        yield from (_Line(row, *sides, not at) for at, sides in enumerate(lines))
