"""Long text, wrapped to the pane and scrolled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
        if self.scrollable_content_region.width != self._width:
            self._wrap()

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        style, text = self._lines[index]
        return [(text, style)]
