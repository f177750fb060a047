"""The line that a filter is typed in."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input


class FilterLine(Input):
    """One line, without a frame. Down goes on to what is filtered; Enter submits, as in any input."""

    HELP_TITLE = "Filter"

    DEFAULT_CSS = """
    FilterLine, FilterLine.-textual-compact {
        background: $panel; color: $aeon-text; padding: 0 1;
        &>.input--placeholder { color: $aeon-muted; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Search full text", key_display="⏎"),
        Binding("down", "app.focus_next", "To the list", show=False),
    ]

    def __init__(self, placeholder: str) -> None:
        super().__init__(placeholder=placeholder, compact=True, select_on_focus=False)
