"""Fields for one line of text: the plain one, and the one that a filter is typed in."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.suggester import Suggester
from textual.widgets import Input


class LineInput(Input):
    """An Input that takes all of a pasted text: lines are joined with spaces, where Textual keeps only the first."""

    def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        lines = (line.strip() for line in event.text.splitlines())
        self.replace(" ".join(filter(None, lines)), *sorted(self.selection))


class FilterLine(LineInput):
    """One line, without a frame. Down moves to the filtered list; Enter submits, as in any input.

    If a suggester has a completion, Tab or Right accepts it.
    """

    HELP_TITLE = "Filter"

    DEFAULT_CSS = """
    FilterLine, FilterLine.-textual-compact {
        background: $panel; color: $aeon-text; padding: 0 1;
        &>.input--placeholder, &>.input--suggestion { color: $aeon-muted; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Search full text", id="filter.submit"),
        Binding("down", "app.focus_next", "To the list", show=False, id="filter.leave"),
        Binding("tab", "complete", "Complete", show=False, id="filter.complete"),
    ]

    def __init__(self, placeholder: str, suggester: Suggester | None = None) -> None:
        super().__init__(placeholder=placeholder, compact=True, select_on_focus=False, suggester=suggester)

    def action_complete(self) -> None:
        """Accept the suggestion; without one, move to the filtered list."""
        if self._suggestion and self.cursor_at_end:
            self.action_cursor_right()
        else:
            self.screen.focus_next()
