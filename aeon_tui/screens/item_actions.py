"""Actions on the focused item of any screen: copy it, or open it in a pager, an editor, or the app."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from textual.actions import SkipAction
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.selection import Selection
from textual.widget import Widget

from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls
from aeon_core.units import count
from aeon_tui.platform.background_tasks import reason, show_notice
from aeon_tui.platform.terminal import is_served
from aeon_widgets.footer import KeyFooter
from aeon_widgets.pane import Item, item_of
from aeon_widgets.tally import HeadLine
from aeon_widgets.text_view import TextView
from aeon_widgets.virtual_list import LinesView

_FORMS = {".md": "markdown", ".json": "json"}


class SelectableScreen(Screen[ScreenResultType]):
    """A screen on which text of one pane at a time is selected with the mouse."""

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Return the text nearest to the mouse, in the pane where a selection began or else in the one there.

        In a dialog, a selection may go on in the lines below.
        """
        pane, offset = super().get_widget_and_offset_at(x, y)
        # Textual's own, so they may be renamed: the text is then that under the mouse.
        bound = getattr(self, "_selecting", False) and not self.is_modal
        if bound and (state := getattr(self, "_select_state", None)) is not None:
            pane = state.start.content_widget
        if pane is not None and (bound or isinstance(pane, LinesView)) and (inner := pane.scrollable_content_region):
            x, y = min(max(x, inner.x), inner.right - 1), min(max(y, inner.y), inner.bottom - 1)
            return super().get_widget_and_offset_at(x, y)
        return pane, offset

    def validate_selections(self, selections: dict[Widget, Selection]) -> dict[Widget, Selection]:
        """Select text of one pane, that with the focus: three clicks would select everything, even rows.

        The lines of a dialog are selected together.
        """
        panes = {self.focused} if len(selections) > 1 and not self.is_modal else selections.keys()
        return {pane: selection for pane, selection in selections.items() if pane in panes and pane.allow_select}

    def on_screen_suspend(self) -> None:
        """Select nothing below another screen, where the key would not copy it and the mouse may be released."""
        self.clear_selection()

    def action_copy_text(self) -> None:
        """Copy what is selected, and unselect it, so that the key quits again."""
        if not (text := self.get_selected_text()):
            raise SkipAction
        super().action_copy_text()
        self.clear_selection()
        show_notice(self.app, f"Copied the selection ({count(len(text), 'character')})")


class SelectableModal(ModalScreen[ScreenResultType], SelectableScreen[ScreenResultType]):
    """A screen over another: Textual looks up no keys of the app there, so those that quit or suspend are its own."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit_now", "Quit", show=False, id="app.quit_anywhere"),
        Binding("ctrl+c", "copy_or_quit", "Copy, or quit", show=False, id="app.copy"),
        Binding("ctrl+z", "app.suspend_process", "Suspend", show=False, id="app.suspend"),
    ]

    async def action_copy_or_quit(self) -> None:
        """Copy what is selected; quit if nothing is."""
        try:
            self.action_copy_text()
        except SkipAction:
            await self.action_quit_now()

    async def action_quit_now(self) -> None:
        """Quit, after one question if anything is running."""
        await self.run_action("app.quit")


class FullText(TextView):
    """A whole text; Markdown and JSON are rendered."""

    HELP_TITLE = "Text"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "raw", "Raw", tooltip="Show raw or formatted text", id="text.raw")
    ]


class TextScreen(SelectableScreen[None]):
    """Shows an item. Escape goes back."""

    HELP_TITLE = "Text"
    DEFAULT_CSS = """
    TextScreen {
        background: $background;
        FullText { height: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Back", id="text.back")]

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
            return  # the app ends before the screen is composed
        text = self.query_one(FullText)
        text.focus()
        text.start([(_FORMS.get(self.item.suffix, ""), self.item.text)], follow=False)


LONG = 75_000
"""The length from which a terminal may refuse a copied text."""


class ItemActions:
    """Copies go through the terminal (OSC 52), so they work over SSH too."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app

    def item(self, screen: Screen[Any]) -> Item | None:
        """Return the item of the focused pane, or else that of the screen."""
        return item_of(screen.focused) or item_of(screen)

    def copy(self, screen: Screen[Any]) -> None:
        """Copy the focused item, and report what was copied."""
        if (item := self.item(screen)) is None:
            return
        text = _readable(item.text)
        self._app.copy_to_clipboard(text)
        limit = "; some terminals take less" if len(text) > LONG else ""
        show_notice(self._app, f"Copied {item.name} ({count(len(text), 'character')}{limit})")

    def copy_run_id(self, journal: Path) -> None:
        """Copy the id of a run."""
        self._app.copy_to_clipboard(journal.stem)
        show_notice(self._app, f"Copied the run id: {escape_controls(journal.stem)}")

    def open(self, screen: Screen[Any], *, editor: bool = False) -> None:
        """Show the focused item in `$PAGER`, on an own screen if that is not set, or in the editor on request."""
        from aeon_tui.platform.editor import named_editor, open_text, pager_command, terminal_given

        if (item := self.item(screen)) is None:
            return
        try:
            command = named_editor("copy the text instead") if editor else pager_command()
            if not command or is_served():
                self._app.push_screen(TextScreen(item))
                return
            with terminal_given(self._app):
                open_text(command, _readable(item.text), item.suffix, in_pager=not editor)
        except SuspendNotSupported:
            self._app.push_screen(TextScreen(item))
        except (AeonError, OSError) as error:
            show_notice(self._app, reason(error), warn=True)


def _readable(text: str) -> str:
    """Return a text without control characters that would take effect when it is pasted."""
    return escape_controls(text, keep="\n\t")
