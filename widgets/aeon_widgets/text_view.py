"""Long text, wrapped to the pane and scrolled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from textual.geometry import Size
from typing_extensions import override

from aeon_widgets.lines import LinesView, Piece
from aeon_widgets.text import block, wrap

Block = tuple[str, str]
"""Style name and text, which may be of any length and hold anything."""


class TextView(LinesView):
    """Blocks of text under each other. New text leaves the place that the person reads."""

    DEFAULT_CSS = """
    TextView { padding: 0 1; scrollbar-gutter: stable; scrollbar-size-horizontal: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[Block] = []
        self._lines: list[Block] = []
        self._width = 0
        self._measured: tuple[int, list[Block], list[Block]] = (0, self._blocks, [])
        self._place = (0, 0)
        """Characters before the line that a resize put on top, and that line: until the person scrolls, it holds."""

    @property
    def text(self) -> str:
        """What is shown, without styles; for copying and for tests."""
        return "\n".join(text for _, text in self._lines)

    def show(self, blocks: Sequence[Block]) -> None:
        """Replace the text; the scroll position stays, or the end where the pane is following."""
        shown = list(blocks)
        if shown != self._blocks:
            self._blocks = shown
            self._wrap()

    def start(self, blocks: Sequence[Block], follow: bool) -> None:
        """Show another text from its beginning, or from its end where it is still being written."""
        self.following = False
        self.scroll_home(animate=False, immediate=True)
        self.following = follow
        self._blocks = list(blocks)
        self._wrap()

    def _wrap(self) -> None:
        width = self.scrollable_content_region.width
        if width > 0:
            self._lines = self._wrapped(width)
        self._width = width
        self.set_line_count(len(self._lines))

    def _wrapped(self, width: int) -> list[Block]:
        """Return the lines at that width. What is on screen stays as it is: measuring may come before drawing."""
        known, blocks, lines = self._measured
        if known != width or blocks is not self._blocks:
            lines = [(style, line) for style, text in self._blocks for line in wrap(block(text), width)]
            self._measured = (width, self._blocks, lines)
        return lines

    @override
    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines that the text takes at that width."""
        del container, viewport
        # The place of the scroll bar is kept free, and is not part of the width that is left for text.
        left = width - self.scrollbar_size_vertical
        return len(self._wrapped(left)) if left > 0 else 0

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width == self._width:
            return
        if self.following or not width:
            self._wrap()
            return
        read = self._read_so_far()
        self._wrap()
        self._go_to(read)

    def _read_so_far(self) -> int:
        """Return the characters before the uppermost line, white space aside: it is not the same at each width."""
        read, top = self._place
        if self.scroll_offset.y != top:
            read = sum(_length(text) for _, text in self._lines[: self.scroll_offset.y])
        return read

    def _go_to(self, read: int) -> None:
        """Put the line on top that holds what comes after so many characters."""
        ends = accumulate(_length(text) for _, text in self._lines)
        top = next((index for index, end in enumerate(ends) if end > read), 0)
        self.scroll_to(y=top, animate=False, immediate=True, force=True)
        self._place = (read, min(top, self.max_scroll_y))

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        style, text = self._lines[index]
        return [(text, style)]


def _length(text: str) -> int:
    return sum(map(len, text.split()))


if __name__ == "__main__":
    from aeon_widgets.demo import main

    main("text_view")
