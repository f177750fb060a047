"""What panes have in common: border, title, the line that replaces a closed one, and the text to copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, cast, dataclass_transform

from msgspec import Struct
from rich.cells import cell_len
from textual.content import Content
from textual.dom import DOMNode
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget
from textual.widgets import Static
from typing_extensions import override

from aeon_core.escape import escape_controls
from aeon_widgets.icons import VARIABLES
from aeon_widgets.text import Piece, both_ends, fit, hang_of, one_line


def pane_css(name: str) -> str:
    """Return the CSS of a pane; each includes it, since Textual inherits CSS only from a class's first base."""
    return f"""
    {name} {{
        border: round $aeon-border;
        border-title-color: $aeon-muted;
        border-subtitle-color: $severity-medium;
        background: $background;
        color: $aeon-text;
        &:focus, &:focus-within {{
            border: round $aeon-accent;
            border-title-color: $aeon-accent;
            border-title-style: bold;
        }}
    }}
    """


class HangingText(Static):
    """A text whose wrapped lines start under the words after the sign or indent of their line."""

    @override
    def render(self) -> Content:
        return Content("\n").join(self._wrapped(self.content_size.width))

    @override
    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._wrapped(width))

    def _wrapped(self, width: int) -> list[Content]:
        lines: list[Content] = []
        for line in cast("Content", self.visual).split(allow_blank=True):
            hang = hang_of(line.plain, width)
            first, *rest = line[hang:].wrap(max(1, width - hang))
            lines += [line[:hang] + first, *(each.pad_left(hang) for each in rest)]
        return lines


class Problem(HangingText):
    """What is wrong with the field or form above; takes no space if nothing is."""

    DEFAULT_CSS = """
    Problem { color: $severity-high; display: none; height: auto; }
    Problem.-shown { display: block; }
    """

    def __init__(self, id: str = "problem") -> None:  # noqa: A002  # Textual's name
        super().__init__("", markup=False, id=id)

    def show_problem(self, problem: str | None) -> None:
        """Show a problem, or none."""
        self.set_class(bool(problem), "-shown")
        self.update(f"✖ {escape_controls(both_ends(problem))}" if problem else "")


_Message = TypeVar("_Message", bound=Message)


@dataclass_transform(eq_default=False)
def message(kind: type[_Message]) -> type[_Message]:
    """Make a message a dataclass. Without `eq` and `repr` it takes Python half as long at each start."""
    return dataclass(eq=False, repr=False)(kind)


class Pane(Widget):
    """A mixin for a titled widget. Titles may hold untrusted text; they are never parsed as markup."""

    pane_key: var[str] = var("")
    """The key that focuses the pane, shown before its title."""
    pane_title: var[str] = var("")

    @message
    class Covered(Message):
        """The focused pane no longer has room on the screen, so the focus must move elsewhere."""

        pane: Pane

    @property
    def home(self) -> Widget:
        """What has the focus first: the pane, or its first part that can have it."""
        return self if self.can_focus else next((child for child in self.children if child.can_focus), self)

    def on_hide(self) -> None:
        if self.has_focus and self.display:
            self.post_message(self.Covered(self))

    def watch_pane_title(self) -> None:
        self._draw_title()

    def watch_pane_key(self) -> None:
        self._draw_title()

    def _draw_title(self) -> None:
        """Redraw only the title's line; setting `border_title` would redraw the pane and everything in it."""
        title = one_line(self.pane_title, 200)
        self._border_title = Content(f"{self.pane_key} {title}" if self.pane_key else title)
        self.refresh(Region(0, 0, self.outer_size.width, 1).translate(-self.content_offset))


@message
class PaneMessage(Message):
    """A person's request to a pane."""

    pane: Pane

    @property
    def control(self) -> Pane:
        return self.pane


class Item(Struct, frozen=True):
    """A text, its name, such as `the answer`, and the suffix of a file for it."""

    name: str
    text: str
    suffix: str = ".txt"


def item_of(node: DOMNode | None) -> Item | None:
    """Return the first item with text among those of a node and its ancestors; None if there is none."""
    while node is not None:
        item = getattr(node, "item", None)
        if isinstance(item, Item) and item.text:
            return item
        node = node.parent
    return None


NAME_WIDTH = 14


class RailLine(Widget):
    """One line for a pane that has no room, or that the person has closed in favour of others."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    RailLine {
        height: 1; padding: 0 1; background: $background; color: $aeon-text;
        &:hover { background: $panel; }
    }
    """

    summary: var[tuple[Piece, ...]] = var[tuple[Piece, ...]](())
    """A summary of the pane, as pieces of text with their styles."""

    @message
    class Chosen(Message):
        """The person clicked the line of the pane with this number."""

        number: int

    def __init__(self, number: int, title: str, *, line_id: str | None = None, numbered: bool = True) -> None:
        super().__init__(id=line_id)
        self.number, self._title, self._numbered = number, title, numbered

    def watch_summary(self) -> None:
        self.refresh()

    def render(self) -> Content:
        key = str(self.number) if self._numbered else " "
        return Content.assemble(
            (f"{f'{key} {self._title}':<{NAME_WIDTH}}", "$aeon-muted"),
            *rendered(self.summary, self.size.width - NAME_WIDTH),
        )

    def on_click(self) -> None:
        self.post_message(self.Chosen(self.number))


def rendered(pieces: Sequence[Piece], width: int) -> list[tuple[str, str]]:
    """Return pieces as parts of a Content, cut to `width` cells."""
    shown, left = [], width
    for text, style in pieces:
        part = fit(text, left)
        left -= cell_len(part)
        shown.append((part, VARIABLES.get(style, style)))
    return shown
