"""An agent's conversation: its task, what it said, and the tools it used; each part can be opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from typing_extensions import override

from aeon_widgets.pane import Item, Pane, pane_css
from aeon_widgets.text import Block, Piece, block, one_line, wrap
from aeon_widgets.virtual_list import RowsView

CLOSED, OPEN = "▸", "▾"


_QUIET = frozenset({"accent", "complete", "text", ""})
"""Styles that apply to the icon only; other styles colour the text too, to mark what is unusual."""


@dataclass(frozen=True)
class ConversationItem:
    """One part: a heading, and its text."""

    icon: str
    style: str
    head: str
    body: tuple[Block, ...] = ()
    is_open: bool = False
    """Whether the body is shown at first."""


class _TalkLine(NamedTuple):
    item: int
    style: str
    text: str
    mark: str = ""
    """The fold sign and icon before a heading; empty for other lines."""


class WorkflowConversation(RowsView, Pane):
    """Items in a list. Enter opens or closes the one under the cursor; the end is followed until the cursor moves."""

    HELP_TITLE = "Conversation"
    DEFAULT_CSS = pane_css("WorkflowConversation")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "Open, close", key_display="⏎", id="lines.choose"),
        Binding("V", "open_all", "Open all", id="workflow.open_all"),
        Binding("end,G", "follow", "End, and follow", show=False, id="lines.end"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._items: Sequence[ConversationItem] = ()
        self._toggled: set[int] = set()
        """Items that the person has toggled from their default."""
        self._all_open = False
        self._lines: list[_TalkLine] = []
        self._wrapped: tuple[int, int] = (0, 0)
        """The width that the lines were made for, and the number of their items."""
        self._live: ConversationItem | None = None
        """What is happening now, shown after the items."""

    @property
    def text(self) -> str:
        """What is shown, without styles; for copying and for tests."""
        return "\n".join(f"{line.mark}{line.text}" for line in self._lines)

    @property
    def item(self) -> Item | None:
        """The part under the cursor, whole."""
        if self.cursor >= len(self._lines):
            return None
        index = self._lines[self.cursor].item
        if index > len(self._items) or (index == len(self._items) and self._live is None):
            return None  # the pane is hidden, and its lines are those of earlier items
        part = self._part(index)
        return Item("the message", "\n".join([part.head, *(text for _, text in part.body)]), ".md")

    def start(self, items: Sequence[ConversationItem], *, follow: bool) -> None:
        """Show another conversation, from its end or its beginning."""
        self._items, self._toggled, self._all_open, self._live = items, set(), False, None
        self._lines, self._wrapped = [], (0, 0)
        self._make()
        self.following = follow
        self.cursor = max(0, self._count - 1) if follow else 0
        self._show_cursor()

    def update_items(self, items: Sequence[ConversationItem]) -> None:
        """Update the conversation; a list that is the same object may only have grown."""
        if items is self._items:
            if len(items) != self._wrapped[1]:
                self._make(from_top=False)
        elif list(items) != list(self._items):
            self._items = items
            self._make()

    def update_live(self, live: ConversationItem | None) -> None:
        """Show what is happening now after the items; None for nothing."""
        if live != self._live:
            self._live = live
            self._make(from_top=False)

    def _part(self, index: int) -> ConversationItem:
        """Return an item, or what is happening now for the index after the last."""
        if index < len(self._items) or self._live is None:
            return self._items[index]
        return self._live

    def _is_open(self, index: int) -> bool:
        return (self._part(index).is_open or self._all_open) is not (index in self._toggled)

    def _make(self, *, from_top: bool = True) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        done = 0 if from_top or self._wrapped[0] != width else self._wrapped[1]
        self._lines = self._lines[: self._place_of(done)] if done else []
        for index in range(done, len(self._items) + (self._live is not None)):
            self._lines += self._lines_of(index, width)
        self._wrapped = (width, len(self._items))
        self.set_line_count(len(self._lines))
        if self.following and self._lines:
            self.cursor = len(self._lines) - 1
        elif self.cursor >= len(self._lines):
            self.cursor = max(0, len(self._lines) - 1)

    def _place_of(self, item: int) -> int:
        return next((place for place, line in enumerate(self._lines) if line.item >= item), len(self._lines))

    def _lines_of(self, index: int, width: int) -> Iterable[_TalkLine]:
        item = self._part(index)
        opened = self._is_open(index)
        turn = (OPEN if opened else CLOSED) if item.body else " "
        yield _TalkLine(index, item.style, one_line(item.head, 500), f"{turn} {item.icon} ")
        if opened:
            for style, text in item.body:
                for line in wrap(block(text), max(8, width - 5)):
                    yield _TalkLine(index, style, f"    {line}")

    @override
    def on_resize(self) -> None:
        if self._wrapped[0] != self.scrollable_content_region.width:
            item = self._lines[self.cursor].item if self.cursor < len(self._lines) else 0
            self._make()
            if not self.following:
                self.cursor = self._place_of(item)

    @override
    def move_to(self, index: int) -> None:
        super().move_to(index)
        self.following = self.cursor >= self._count - 1

    @override
    def _follow_where_at_end(self) -> None:
        """Do nothing: the cursor decides whether the end is followed."""

    def action_follow(self) -> None:
        self.move_to(self._count - 1)

    @override
    def action_choose(self) -> None:
        """Open or close the item under the cursor."""
        if self.cursor < len(self._lines):
            item = self._lines[self.cursor].item
            if item < len(self._items) and self._items[item].body:
                self._toggled ^= {item}
                self._make_around(item)

    def action_open_all(self) -> None:
        """Open all items, or return all to their default."""
        item = self._lines[self.cursor].item if self.cursor < len(self._lines) else 0
        self._all_open, self._toggled = not self._all_open, set()
        self._make_around(item)

    def _make_around(self, item: int) -> None:
        self.following = False
        self._make()
        self.cursor = self._place_of(item)
        self._show_cursor()

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        line = self._lines[index]
        if not line.mark:
            yield line.text, line.style
            return
        turn, icon = line.mark[:2], line.mark[2:]
        yield turn, "muted"
        yield icon, line.style
        yield line.text, "bold" if line.style in _QUIET else f"{line.style} bold"
