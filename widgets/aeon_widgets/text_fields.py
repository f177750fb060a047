"""Fields that a person types in: one line, the line of a filter, and feedback of several lines."""

from __future__ import annotations

import re
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, TextArea

from aeon_widgets.pane import message

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


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


class FeedbackField(TextArea):
    """As high as its text, up to four lines. Enter submits, and a pasted text keeps its lines."""

    @message
    class Submitted(Message):
        """The person has pressed Enter."""

        text: str

    HELP_TITLE = "Feedback"
    DEFAULT_CSS = """
    FeedbackField, FeedbackField.-textual-compact {
        height: auto; max-height: 4; background: $panel; color: $aeon-text; padding: 0;
        & .text-area--cursor { background: $aeon-text; color: $background; }
        & .text-area--placeholder { color: $aeon-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Send", show=False, id="feedback.submit"),
        Binding("ctrl+j,shift+enter,alt+enter", "break_line", "New line", show=False, id="feedback.break"),
    ]

    def __init__(self) -> None:
        super().__init__(compact=True, highlight_cursor_line=False)

    def insert_text_at_cursor(self, text: str) -> None:
        """Replace the selection with text."""
        self._replace_via_keyboard(text, *self.selection)

    def action_submit(self) -> None:
        """Send the text."""
        self.post_message(self.Submitted(self.text))

    def action_break_line(self) -> None:
        """Begin a new line."""
        self.insert_text_at_cursor("\n")

    async def _on_key(self, event: events.Key) -> None:
        """Handle the field's own keys at once, since Textual looks them up only after the letters that follow."""
        active = self.screen.active_bindings.get(event.key)
        if active is None or active.node is not self or event.is_printable:
            return
        if await self.app.run_action(active.binding.action, self):
            event.stop()
            event.prevent_default()

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self.insert_text_at_cursor(_CONTROLS.sub("", "\n".join(event.text.splitlines())))
