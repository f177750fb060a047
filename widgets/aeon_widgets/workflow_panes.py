"""The panes of a workflow: its pipeline of agents and gates, an agent's conversation, and a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from typing_extensions import override

from aeon_widgets.pane import Item, Pane, message, pane_css
from aeon_widgets.text import Block, Piece, block, fit, one_line, wrap
from aeon_widgets.text_view import TextView
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
        yield f" {row.icon} ", row.style
        name = fit(one_line(row.name, 80), _NAME_CELLS)
        yield f"{name:<{_NAME_CELLS}} ", "accent" if row.is_gate else ""
        yield f"{fit(row.word, WORD_CELLS):<{WORD_CELLS}}", row.style
        if width >= 4 + _NAME_CELLS + 1 + WORD_CELLS + TIME_CELLS + 1:
            yield f"{row.time:>{TIME_CELLS}} ", "muted"
        if width >= _DETAIL_FROM:
            yield f" {one_line(row.detail, 300)}", "muted"


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
    ALLOW_SELECT = True
    DEFAULT_CSS = pane_css("WorkflowConversation")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "Open, close", id="lines.choose"),
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

    def text_select_all(self) -> None:
        """Do nothing: a double click opens or closes an item."""

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
        # While the pane is hidden, no other lines follow.
        self.set_line_count(0)
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


class WorkflowArtifact(TextView, Pane):
    """Shows the current content of one file as Markdown; left and right go to the others.

    Nothing in it becomes a link or our own markup.
    """

    HELP_TITLE = "Artifact"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "other(-1)", "Previous artifact", show=False, id="workflow.artifact_before"),
        Binding("right,l", "other(1)", "Next artifact", show=False, id="workflow.artifact_next"),
    ]

    @message
    class OtherWanted(Message):
        by: int

    DEFAULT_CSS = pane_css("WorkflowArtifact")

    def __init__(self) -> None:
        super().__init__()
        self._file = ""
        self.pane_title = "Artifact"

    @property
    def item(self) -> Item | None:
        return Item(self._file or "the text", self.source, ".md")

    def action_other(self, by: int) -> None:
        self.post_message(self.OtherWanted(by))

    def show_file(self, name: str, content: str, more: str = "") -> None:
        """Show a file's content, keeping the place if it is the same file; `more` says which others there are."""
        blocks = [("markdown", content)]
        if name == self._file:
            self.show(blocks)
        else:
            self._file = name
            self.start(blocks, follow=False)
        self.pane_title = name
        self.border_subtitle = more

    def show_nothing(self, why: str) -> None:
        """Say why there is nothing to show."""
        self._file = ""
        self.pane_title, self.border_subtitle = "Artifact", ""
        self.start([("muted", why)], follow=False)
