"""A pane on one line: its number, its name, and what is in it. A click leads to the pane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from aeon_widgets.icons import VARIABLES
from aeon_widgets.text import fit
from aeon_widgets.virtual_list import Piece

NAME_WIDTH = 14


class RailLine(Widget):
    """Stands for a pane while there is no room for it, or while the person looks at others."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    RailLine {
        height: 1; padding: 0 1; background: $background; color: $aeon-text;
        &:hover { background: $panel; }
    }
    """

    summary: var[tuple[Piece, ...]] = var[tuple[Piece, ...]](())
    """What is in the pane, in pieces of text with their styles."""

    @dataclass
    class Chosen(Message):
        """The person clicked the line of the pane with this number."""

        number: int

    def __init__(self, number: int, title: str, *, line_id: str | None = None, numbered: bool = True) -> None:
        super().__init__(id=line_id)
        self._number, self._title, self._numbered = number, title, numbered

    @property
    def number(self) -> int:
        """The pane that the line leads to."""
        return self._number

    def watch_summary(self) -> None:
        self.refresh()

    def render(self) -> Content:
        key = str(self._number) if self._numbered else " "
        return Content.assemble(
            (f"{f'{key} {self._title}':<{NAME_WIDTH}}", "$aeon-muted"),
            *rendered(self.summary, self.size.width - NAME_WIDTH),
        )

    def on_click(self) -> None:
        self.post_message(self.Chosen(self._number))


def rendered(pieces: Sequence[Piece], width: int) -> list[tuple[str, str]]:
    """Return pieces as parts of a Content, cut to a width."""
    shown, left = [], width
    for text, style in pieces:
        part = fit(text, left)
        left -= len(part)
        shown.append((part, VARIABLES.get(style, style)))
    return shown
