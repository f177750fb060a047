"""What a person decides about, with parts that are one line each until they are opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from typing_extensions import override

from aeon_widgets.approval_question import Section
from aeon_widgets.text_view import Block, TextView

FOLDED, OPENED, LEADS = "▸", "▾", "⏎"


class ApprovalText(TextView):
    """Scrolls. Up and down stop at each part in sight, enter opens it; a click does both."""

    HELP_TITLE = "Decision"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right,l", "toggle_section", "Open or fold", show=False, id="lines.choose"),
    ]

    @dataclass
    class Scrolled(Message):
        """There are so many lines below what is in sight."""

        below: int

    @dataclass
    class Chosen(Message):
        """A person has chosen a part that opens something else."""

        answer: str

    def __init__(self, body: Sequence[Block], sections: Sequence[Section], room: Callable[[], int]) -> None:
        super().__init__()
        self._room = room
        """How many lines there are room for."""
        self._body, self._sections = list(body), list(sections)
        self._opened = {number for number, each in enumerate(sections) if each.folded is False}
        self._roomy = {number for number, each in enumerate(sections) if each.folded is None}
        """The sections that are open where there is room, until a person opens or folds one."""
        self._fitted: tuple[int, int] | None = None
        """The lines and the width that they were fitted to."""
        self._heads: dict[int, int] = {}
        """The number of each section by the place of its heading among the blocks."""
        self._selected = 0
        self._problem: list[Block] = []
        self._shown_blocks: list[Block] | None = None
        self._lay_out()

    def set_problem(self, problem: str) -> None:
        """Show above all else why what was done came to nothing."""
        self._problem = [("high", f"✖ {problem}")]
        self._lay_out()
        self.start(self._blocks, follow=False)

    def set_sections(self, sections: Sequence[Section]) -> None:
        """Show the same parts with other text."""
        self._sections = list(sections)
        self._lay_out()
        self._wrap()

    def _lay_out(self) -> None:
        """Rebuild the text from the body and what is open."""
        blocks = [*self._problem, *self._body]
        self._heads = {}
        for number, section in enumerate(self._sections):
            self._heads[len(blocks)] = number
            is_open = number in self._opened
            sign = LEADS if section.opens else OPENED if is_open else FOLDED
            blocks.append(("accent bold", f"{sign} {section.heading}"))
            blocks += section.blocks if is_open else ()
        self._blocks = blocks

    @override
    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        fitted = (self._room(), width)
        if self._roomy and fitted != self._fitted:
            self._fitted = fitted
            self._opened |= self._roomy
            self._lay_out()
            if super().get_content_height(container, viewport, width) > fitted[0]:
                self._opened -= self._roomy
                self._lay_out()
        return super().get_content_height(container, viewport, width)

    def _head_lines(self) -> list[int]:
        """Return the line of each section's heading."""
        return [self.line_of(place) for place in self._heads]

    @property
    def marked_line(self) -> int | None:
        lines = self._head_lines()
        return lines[self._selected] if lines and self.has_focus else None

    def _in_sight(self, line: int) -> bool:
        return 0 <= line - self.scroll_offset.y < self.size.height

    def _select(self, by: int) -> bool:
        """Go to the next part that is in sight; return whether there is one."""
        lines, wanted = self._head_lines(), self._selected + by
        if not 0 <= wanted < len(lines) or not self._in_sight(lines[wanted]):
            return False
        self._selected = wanted
        self._draw_changed()
        return True

    def action_scroll_down(self) -> None:
        if not self._select(1):
            super().action_scroll_down()

    def action_scroll_up(self) -> None:
        if not self._select(-1):
            super().action_scroll_up()

    def action_toggle_section(self) -> None:
        """Open or fold the part that is marked."""
        if self._sections:
            self._choose(self._selected)

    def _choose(self, number: int) -> None:
        if opens := self._sections[number].opens:
            self._selected = number
            self.post_message(self.Chosen(opens))
        else:
            self._toggle(number)

    def _toggle(self, number: int) -> None:
        self._selected, self._roomy = number, set()
        self._opened ^= {number}
        self._lay_out()
        self._wrap()
        line = self._head_lines()[number]
        if number in self._opened and not self._in_sight(line + len(self._sections[number].blocks)):
            self.scroll_to(y=line, animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        line = self.scroll_offset.y + offset.y if offset is not None else -1
        lines = self._head_lines()
        if line in lines:
            event.stop()
            self._choose(lines.index(line))

    @override
    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._count_lines_below()

    @override
    def set_line_count(self, count: int) -> None:
        self._shown_blocks = self._blocks
        super().set_line_count(count)
        self._count_lines_below()

    @override
    def on_resize(self) -> None:
        super().on_resize()
        if self._shown_blocks is not self._blocks:
            self._wrap()
        self._count_lines_below()

    def _count_lines_below(self) -> None:
        below = self.line_count - self.scroll_offset.y - self.size.height
        self.post_message(self.Scrolled(max(0, below) if self.size.height else 0))
