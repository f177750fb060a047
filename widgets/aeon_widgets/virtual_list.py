"""Virtual lists: only the lines on screen are rendered (`ScrollView.render_line`)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive, var
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style as VisualStyle
from typing_extensions import override

from aeon_widgets.icons import VARIABLES
from aeon_widgets.pane import Item, message
from aeon_widgets.text import Piece, fit

_WHOLE = 1_000
"""The width in cells to which a line is copied."""
_MARKUP = {
    **VARIABLES,
    "quote": "reverse",
    "cursor": "on $aeon-cursor-blurred",
    "cursor-focused": "bold on $aeon-cursor",
}
"""Textual's markup for each style name. Component classes instead would be restyled with every change of a class on
the screen."""


class _Line(NamedTuple):
    marked: bool
    pieces: list[Piece]


class LinesView(ScrollView, can_focus=True):
    """Lines, one below the other. A subclass sets their number and renders each.

    While `following`, the end stays in sight as lines are added; scrolling away stops that, End resumes it.
    """

    DEFAULT_CSS = """
    LinesView {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        background: $background;
        color: $aeon-text;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_down", "Down", show=False, id="lines.down"),
        Binding("up,k", "scroll_up", "Up", show=False, id="lines.up"),
        Binding("pagedown,ctrl+d", "page_down", "Page down", show=False, id="lines.page_down"),
        Binding("pageup,ctrl+u", "page_up", "Page up", show=False, id="lines.page_up"),
        Binding("home,g", "scroll_home", "Top", show=False, id="lines.top"),
        Binding("end,G", "follow", "End, and follow", show=False, id="lines.end"),
    ]

    following: var[bool] = var(False)
    where_empty: Sequence[str] = ()
    """The text shown if there are no lines."""
    _count = 0

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self._drawn: dict[int, _Line] = {}
        """The last drawn content of each row of the pane."""
        self._base: Style | None = None
        """The pane's own style while it is drawn, computed once since that takes longer than drawing a line."""
        self._selection: Selection | None = None
        """What is selected with the mouse: lines, and places in their text."""
        self._selected = ""

    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        """Return the pieces of one line; those beyond `width` cells are cut off."""
        raise NotImplementedError

    @property
    def marked_line(self) -> int | None:
        """The line that is drawn as selected."""
        return None

    def is_marked(self, index: int) -> bool:
        """Return whether a line is drawn as selected."""
        return index == self.marked_line

    def line_at(self, event: events.MouseEvent) -> int:
        """Return the line under the mouse, -1 if there is none."""
        offset = event.get_content_offset(self)
        line = self.scroll_offset.y + offset.y if offset is not None else -1
        return line if line < self._count else -1

    @property
    def item(self) -> Item | None:
        """The lines in sight."""
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        return Item("the visible lines", "\n".join(self._text_of(at) for at in range(top, min(bottom, self._count))))

    def _text_of(self, index: int) -> str:
        return "".join(text for text, _ in self.pieces(index, _WHOLE)).strip()

    @override
    def selection_updated(self, selection: Selection | None) -> None:
        """Show what is selected with the mouse. What is being selected is not moved by new lines."""
        self._selection = selection
        self.following = self.following and selection is None
        self._selected = self._words_in(selection) if selection is not None else ""
        self._draw_changed()

    def _words_in(self, selection: Selection) -> str:
        """Return what is selected without its whitespace, which wrapping changes."""
        return "".join(LinesView.get_selection(self, selection)[0].split())

    @override
    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return the selected text, as it is shown but not cut off, and a line break."""
        width, selected = self.scrollable_content_region.width, []
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else self._count
        for index in range(first, min(last + 1, self._count)):
            if (span := selection.get_span(index)) is not None:
                text = "".join(text for text, _ in self.pieces(index, width))
                selected.append(text[span[0] : span[1] if span[1] >= 0 else None])
        return "\n".join(selected), "\n"

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return self._count

    def set_line_count(self, count: int) -> None:
        """Set the number of lines, and redraw the visible ones that changed; a selection stays while its text does."""
        self._count = count
        if self._selection is not None and not self._words_in(self._selection).startswith(self._selected):
            self.screen.clear_selection()
        if self.virtual_size.height != count:
            self._set_height(count)
        if self.following:
            self._to_end()
        self._draw_changed()

    def _set_height(self, count: int) -> None:
        """Set the height, and lay out the screen only if that moves anything on it."""
        size, height = Size(1, count), self.styles.height
        barred = count > self.scrollable_content_region.height
        if height is None or height.is_auto or barred != self.show_vertical_scrollbar:
            self.virtual_size = size
        else:
            self.set_reactive(LinesView.virtual_size, size)
            self._scroll_update(size)

    def _draw_changed(self, indexes: Container[int] | None = None) -> None:
        """Redraw the visible lines among `indexes`, or all for None, whose content changed."""
        top, width = self.scroll_offset.y, self.scrollable_content_region.width
        for y in range(self.size.height):
            if (indexes is None or top + y in indexes) and self._drawn.get(y) != self._line(top + y, width):
                self.refresh_line(top + y)

    def _to_end(self) -> None:
        self.scroll_end(animate=False, immediate=True, x_axis=False, force=True)

    def action_follow(self) -> None:
        """Go to the end and stay there."""
        self.following = True
        self._to_end()

    def action_scroll_home(self) -> None:
        self.following = self.following and not self.max_scroll_y
        self.scroll_home(animate=False, immediate=True)

    def _scroll_by(self, lines: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False, immediate=True, force=True)
        self._follow_where_at_end()

    def action_scroll_down(self) -> None:
        self._scroll_by(1)

    def action_scroll_up(self) -> None:
        self._scroll_by(-1)

    def action_page_down(self) -> None:
        self._scroll_by(self.size.height)

    def action_page_up(self) -> None:
        self._scroll_by(-self.size.height)

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Put the thumb at the scroll position, which may have changed before the bar was shown."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def _moved_by_hand(self) -> None:
        # The scroll itself is handled after this, so its target is only known then.
        self.call_next(self._follow_where_at_end)

    def _follow_where_at_end(self) -> None:
        self.following = self.scroll_target_y >= self.max_scroll_y

    on_mouse_scroll_up = on_mouse_scroll_down = on_scroll_up = on_scroll_down = on_scroll_to = _moved_by_hand

    def on_resize(self) -> None:
        if self.following:
            self._to_end()
        if self._selection is not None and self._words_in(self._selection) != self._selected:
            self.screen.clear_selection()  # the lines have other text at this width

    def piece_style(self, name: str) -> Style:
        """Return the terminal style for a style name, or for several separated by spaces."""
        if not name:
            return Style.null()
        return VisualStyle.parse(" ".join(_MARKUP.get(part, part) for part in name.split())).rich_style

    def watch_has_focus(self, has_focus: bool) -> None:
        """Redraw the cursor, whose colour depends on the focus."""
        super().watch_has_focus(has_focus)
        self.refresh()

    @override
    def render_lines(self, crop: Region) -> list[Strip]:
        self._base = self.rich_style
        try:
            return super().render_lines(crop)
        finally:
            self._base = None

    def render_line(self, y: int) -> Strip:
        width, index = self.scrollable_content_region.width, self.scroll_offset.y + y
        line, base = self._line(index, width), self._base or self.rich_style
        if self._base is not None:
            self._drawn[y] = line
        if line.marked:
            cursor = "cursor-focused" if self.has_focus else "cursor"
            # Sixteen colours have no shade next to the background.
            few = self.app.console.color_system == "standard" and not self.app.is_headless
            base += self.piece_style(f"underline {cursor}" if few else cursor)
        strip = self._strip(line.pieces, width, base)
        # Textual also renders a line to find the text under the mouse.
        return strip if self._base is not None else strip.apply_offsets(0, index)

    def _line(self, index: int, width: int) -> _Line:
        if not 0 <= index < self._count:
            empty_line = self.where_empty[index : index + 1] if not self._count else []
            return _Line(False, [(f" {text}", "muted") for text in empty_line])
        pieces = list(self.pieces(index, width))
        if self._selection is not None and (span := self._selection.get_span(index)) is not None:
            pieces = list(_with_selected(pieces, *span))
        return _Line(self.is_marked(index), pieces)

    def _strip(self, pieces: Iterable[Piece], width: int, base: Style) -> Strip:
        segments: list[Segment] = []
        left = width
        for text, style in pieces:
            shown = fit(text, left)
            segments.append(Segment(shown, base + self.piece_style(style)))
            left -= cell_len(shown)
            if left <= 0:
                break
        return Strip(segments).adjust_cell_length(width, base)


def _with_selected(pieces: Iterable[Piece], start: int, end: int) -> Iterator[Piece]:
    """Yield pieces with those characters reversed, or a quote not reversed; an end of -1 is that of the line."""
    for text, style in pieces:
        before, after = max(0, start), len(text) if end < 0 else max(0, end)
        yield text[:before], style
        yield text[before:after], style.replace("quote", "") if "quote" in style else f"{style} quote"
        yield text[max(before, after) :], style
        start, end = start - len(text), end if end < 0 else max(0, end - len(text))


class RowsView(LinesView):
    """Lines of which one is selected. Sends `Moved`, and `Chosen` on Enter or a double click."""

    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "cursor(1)", "Down", show=False, id="lines.down"),
        Binding("up,k", "cursor(-1)", "Up", show=False, id="lines.up"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, id="lines.page_down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="lines.page_up"),
        Binding("home,g", "jump(0)", "First", show=False, id="lines.top"),
        Binding("end,G", "jump(-1)", "Last", show=False, id="lines.end"),
        Binding("enter", "choose", "Open", id="lines.choose"),
        Binding("right,l", "choose", "Open", show=False, id="lines.choose"),
    ]

    cursor: reactive[int] = reactive(0, repaint=False)

    @message
    class RowMessage(Message):
        """A person's action on a row."""

        rows: RowsView
        index: int

        @property
        def control(self) -> RowsView:
            return self.rows

    class Moved(RowMessage):
        """The person moved to another row."""

    class Chosen(RowMessage):
        """The person wants to open the row."""

    @property
    def item(self) -> Item | None:
        """The line under the cursor."""
        return Item("the line", self._text_of(self.cursor)) if self.cursor < self._count else None

    @property
    def marked_line(self) -> int | None:
        return self.cursor

    def watch_cursor(self) -> None:
        self._show_cursor()

    def on_resize(self) -> None:
        self._show_cursor()

    def _show_cursor(self) -> None:
        # Before the layout, every row seems to be out of sight.
        if self.is_attached and self.size:
            self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, immediate=True, x_axis=False, force=True)
            self._draw_changed()

    def move_to(self, index: int) -> None:
        """Select the nearest row to `index`, and send `Moved`."""
        if self._count:
            self.cursor = min(max(index, 0), self._count - 1)
            self.post_message(self.Moved(self, self.cursor))

    def action_cursor(self, by: int) -> None:
        """Move the cursor by a number of rows."""
        self.move_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by a number of screenfuls."""
        self.move_to(self.cursor + by * max(1, self.size.height - 1))

    def action_jump(self, index: int) -> None:
        """Move the cursor to the first or, with -1, the last row."""
        self.move_to(index % max(1, self._count))

    @override
    def set_line_count(self, count: int) -> None:
        was_empty = not self._count
        super().set_line_count(count)
        if self.has_focus and was_empty is bool(count):
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now; without rows there is nothing to open."""
        return bool(self._count) if action == "choose" else super().check_action(action, parameters)

    def action_choose(self) -> None:
        """Open the selected row."""
        if self._count:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        if (index := self.line_at(event)) < 0:
            return
        again = index == self.cursor and event.chain > 1
        self.move_to(index)
        if again:
            self.action_choose()


T = TypeVar("T")


class ChoiceRows(RowsView, Generic[T]):
    """Values with a few words about each; the one under the cursor is chosen."""

    HELP_TITLE = "Choices"

    def __init__(self, choices: Mapping[T, Iterable[Piece]], first: T | None = None) -> None:
        super().__init__()
        self._values, self._pieces = list(choices), [list(pieces) for pieces in choices.values()]
        self.set_reactive(RowsView.cursor, self._values.index(first) if first in self._values else 0)

    def on_mount(self) -> None:
        self.set_line_count(len(self._values))

    @property
    def value(self) -> T:
        """The value that is chosen."""
        return self._values[self.cursor]

    def choose(self, value: T) -> None:
        """Choose a value."""
        self.cursor = self._values.index(value)

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        (text, style), *rest = self._pieces[index]
        return [(f" {'◉' if index == self.cursor else '○'} {text}", style), *rest]
