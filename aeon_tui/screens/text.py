"""One text on a screen of its own: where there is no pager, and in a browser."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from aeon_core.escape import escape_controls
from aeon_widgets.footer import KeyFooter
from aeon_widgets.pane import Item
from aeon_widgets.tally import HeadLine
from aeon_widgets.text_view import TextView

_FORMS = {".md": "markdown", ".json": "json"}


class FullText(TextView):
    """A whole text; Markdown and JSON are rendered."""

    HELP_TITLE = "Text"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "raw", "Raw", tooltip="Show raw or formatted text", id="text.raw"),
    ]


class TextScreen(Screen[None]):
    """Shows an item. Escape goes back."""

    HELP_TITLE = "Text"
    DEFAULT_CSS = """
    TextScreen {
        background: $background;
        HeadLine { text-style: bold; }
        FullText { height: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back", id="text.back")]

    def __init__(self, item: Item) -> None:
        super().__init__()
        self.item = item

    def compose(self) -> ComposeResult:
        name = escape_controls(self.item.name.removeprefix("the "))
        yield HeadLine(f"{name[:1].upper()}{name[1:]}")
        yield FullText()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(FullText):
            return  # the app is ending before the screen was made
        text = self.query_one(FullText)
        text.focus()
        text.start([(_FORMS.get(self.item.suffix, ""), self.item.text)], follow=False)

    def action_back(self) -> None:
        """Go back."""
        self.dismiss()
