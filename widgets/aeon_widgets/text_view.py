"""Long text, wrapped to the pane and scrolled."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import ClassVar

from textual import events
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.selection import Selection
from typing_extensions import override

from aeon_core.judge.quote import find_quote
from aeon_widgets.pane import Item
from aeon_widgets.rendered_text import RENDERED, TextLine, block_lines
from aeon_widgets.text import Block, Piece
from aeon_widgets.virtual_list import LinesView


class TextView(LinesView):
    """Blocks of text, one below the other. New text does not move the place that the person reads."""

    DEFAULT_CSS = """
    TextView { padding: 0 1; scrollbar-gutter: stable; scrollbar-size-horizontal: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[Block] = []
        self._lines: list[TextLine] = []
        self._width = 0
        self._measured: tuple[int, bool, list[Block], list[TextLine], list[int]] = (0, False, self._blocks, [], [])
        self._raw = False
        """Whether Markdown and JSON are shown as written, because the person wants that or a quote needs it."""
        self._place = (0, 0)
        """The characters before the line that a resize put on top, and that line; valid until the person scrolls."""
        self._quote = ""
        self._quoted: dict[int, tuple[int, int]] = {}
        """For each line of the quote, the start and end of its part."""
        self._goes_to_quote = False

    @property
    def text(self) -> str:
        """What is shown, without styles; for copying and for tests."""
        return "\n".join(line.text for line in self._lines)

    @property
    def source(self) -> str:
        """The whole text before it was rendered and wrapped."""
        return "\n".join(text for _, text in self._blocks)

    @property
    def item(self) -> Item | None:
        """The whole text."""
        return Item("the text", self.source)

    @override
    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return the selected text, if possible with the line breaks of its source in place of those of the pane."""
        text, ending = super().get_selection(selection)
        if text in self.source:
            return text, ending
        found = re.search(r"\s*".join(map(re.escape, re.split(r"\s*\n\s*", text))), self.source)
        return found[0] if found else text, ending

    def action_raw(self) -> None:
        """Switch between raw and formatted text, keeping the place that the person reads."""
        read = self._read_so_far()
        self._raw = not self._raw
        self._wrap()
        self._go_to(read)

    def show(self, blocks: Sequence[Block]) -> None:
        """Replace the text, keeping the scroll position, or the end if following."""
        shown = list(blocks)
        if shown != self._blocks:
            self._blocks = shown
            self._wrap()

    def start(self, blocks: Sequence[Block], follow: bool) -> None:
        """Show another text from its beginning, or with `follow` from its end."""
        self.following = False
        self.scroll_home(animate=False, immediate=True)
        self.following = follow
        self._blocks = list(blocks)
        self._quote = ""
        self._raw = False
        self._wrap()

    def mark(self, quote: str) -> bool:
        """Highlight a quote and scroll to it; an empty one removes the highlight. Return whether it was found."""
        if quote != self._quote:
            self._quote, self._goes_to_quote = quote, bool(quote)
            self._find_quote()
            self._draw_changed()
        if self._goes_to_quote:
            # The pane may not be visible yet.
            self.call_after_refresh(self._go_to_quote)
        return bool(self._quoted)

    def _find_quote(self) -> None:
        """Find the lines of the quote."""
        self._quoted = {}
        if not self._quote:
            return
        found = find_quote(self.text, self._quote)
        rendered = (text for style, text in self._blocks if style in RENDERED)
        if not found and not self._raw and any(find_quote(text, self._quote) for text in rendered):
            self._raw = True  # the quote contains Markdown marks
            self._wrap()
            return
        starts = list(accumulate((len(line.text) + 1 for line in self._lines), initial=0))
        for start, end in found:
            for line in range(bisect_right(starts, start) - 1, bisect_right(starts, end - 1)):
                length = len(self._lines[line].text)
                self._quoted[line] = (max(0, start - starts[line]), min(length, end - starts[line]))

    def _go_to_quote(self) -> None:
        """Scroll to the quote once, with a few lines before it."""
        if self._goes_to_quote and self._quoted and self.size.height:
            self._goes_to_quote = self.following = False
            top = min(self._quoted) - self.size.height // 3
            self.scroll_to(y=max(0, top), animate=False, immediate=True, force=True)

    def _wrap(self) -> None:
        width = self.scrollable_content_region.width
        if width > 0:
            self._lines = self._wrapped(width)
        self._width = width
        self._find_quote()
        self.set_line_count(len(self._lines))

    def _wrapped(self, width: int) -> list[TextLine]:
        """Return the lines at that width without changing what is shown, as Textual may only be measuring."""
        known, raw, blocks, lines, starts = self._measured
        if known != width or raw != self._raw or blocks is not self._blocks:
            lines, starts = [], []
            for style, text in self._blocks:
                starts.append(len(lines))
                lines += block_lines(style, text, width, raw=self._raw)
            self._measured = (width, self._raw, self._blocks, lines, starts)
        return lines

    def line_of(self, place: int) -> int:
        """Return the first line of the block with that index; the number of lines for an index after the last."""
        starts = self._measured[4]
        return starts[place] if place < len(starts) else self.line_count

    @override
    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many lines the text takes at that width."""
        del container, viewport
        # The scroll bar's cells are reserved and cannot hold text.
        left = width - self.scrollbar_size_vertical
        return len(self._wrapped(left)) if left > 0 else 0

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width == self._width:
            self._go_to_quote()
            return
        if self.following or not width:
            self._wrap()
            return
        read = self._read_so_far()
        self._wrap()
        self._go_to(read)
        self._go_to_quote()

    def _read_so_far(self) -> int:
        """Return the number of characters above the top line, without whitespace, which depends on the width."""
        read, top = self._place
        if self.scroll_offset.y != top:
            read = sum(_length(line.text) for line in self._lines[: self.scroll_offset.y])
        return read

    def _go_to(self, read: int) -> None:
        """Scroll to the line with the text after `read` characters."""
        ends = accumulate(_length(line.text) for line in self._lines)
        top = next((index for index, end in enumerate(ends) if end > read), 0)
        self.scroll_to(y=top, animate=False, immediate=True, force=True)
        self._place = (read, min(top, self.max_scroll_y))

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        line = self._lines[index]
        if index not in self._quoted:
            return line.pieces()
        (style, text), (start, end) = line[:2], self._quoted[index]
        return [(text[:start], style), (text[start:end], f"{style} quote".strip()), (text[end:], style)]


class PartsView(TextView):
    """Text with selectable parts. Up and down stop at each part that is near, and scroll otherwise."""

    REACH: ClassVar[int] = 0
    """The number of screens within which a part is near; 0 means in sight."""
    CLICKS: ClassVar[int] = 1
    """The number of clicks that choose a part; any click selects it."""

    selected: reactive[int] = reactive(0, repaint=False)
    """The index of the selected part."""

    @property
    def parts(self) -> Sequence[range]:
        """The indexes of each part's blocks."""
        return ()

    def choose_part(self) -> None:
        """Do what the selected part is for."""

    def watch_selected(self) -> None:
        self._draw_changed()

    def lines_of(self, part: int) -> range:
        """Return the lines of a part; an empty range if there is no such part."""
        if not 0 <= part < len(self.parts):
            return range(0)
        blocks = self.parts[part]
        return range(self.line_of(blocks.start), self.line_of(blocks.stop))

    @override
    def is_marked(self, index: int) -> bool:
        return self.has_focus and index in self.lines_of(self.selected)

    def _select(self, by: int) -> bool:
        """Select the neighbouring part, or one in sight if the selected one is not; return whether one was near."""
        top, height = self.scroll_offset.y, self.size.height
        in_sight = [part for part in range(len(self.parts)) if self.lines_of(part).start - top in range(height)]
        wanted = self.selected + by
        if self.selected not in in_sight and in_sight:
            wanted = in_sight[0 if by > 0 else -1]
        lines = self.lines_of(wanted)
        if not lines or (wanted not in in_sight and abs(lines.start - top) > self.REACH * height):
            return False
        self.selected = wanted
        region = Region(0, lines.start, 1, min(len(lines), height))
        self.scroll_to_region(region, animate=False, immediate=True, x_axis=False, force=True)
        return True

    def action_scroll_down(self) -> None:
        if not self._select(1):
            super().action_scroll_down()

    def action_scroll_up(self) -> None:
        if not self._select(-1):
            super().action_scroll_up()

    def action_choose_part(self) -> None:
        if self.parts:
            self.choose_part()

    def text_select_all(self) -> None:
        """Do nothing: a double click is for the part."""

    def on_click(self, event: events.Click) -> None:
        if self.text_selection is not None:
            return  # the mouse was dragged
        line = self.line_at(event)
        for part in range(len(self.parts)):
            if line in self.lines_of(part):
                event.stop()
                again, self.selected = part == self.selected, part
                if event.chain >= self.CLICKS and (again or self.CLICKS == 1):
                    self.choose_part()
                return


def _length(text: str) -> int:
    return sum(map(len, text.split()))
