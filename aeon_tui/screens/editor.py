"""The app's own editor, used if no other is configured or can be opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Static, TextArea
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls
from aeon_core.units import count
from aeon_tui.platform.editor import TextProblem
from aeon_tui.screens.dialogs import ConfirmDialog
from aeon_widgets.footer import KeyFooter
from aeon_widgets.pane import HangingText
from aeon_widgets.tally import HeadLine

Value = TypeVar("Value")
_SHOWN = 8
"""The most problems shown at once."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_KEY = re.compile(r"^\s*(?:- +)*([\w.-]+|\"[^\"]*\"|'[^']*')(?=:(?:\s|$))")


class YamlArea(TextArea):
    """YAML text with highlighted keys and comments."""

    HELP_TITLE = "Editor"

    def __init__(self, text: str) -> None:
        super().__init__(text, show_line_numbers=True, tab_behavior="indent", soft_wrap=True)
        self.indent_width = 2

    @override
    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        colours = self.app.theme_variables
        for pattern, name in ((_KEY, "aeon-accent"), (_COMMENT, "aeon-muted")):
            if found := pattern.search(line.plain):
                line.stylize(colours.get(name, ""), *found.span())
        return line


class YamlEditor(Vertical):
    """An editable YAML text, with its problems below, line by line."""

    DEFAULT_CSS = """
    YamlEditor {
        height: 1fr;
        #problems { height: auto; max-height: 9; padding: 0 1; color: $severity-high; display: none; }
        YamlArea {
            height: 1fr; border: none; padding: 0; background: $background; color: $aeon-text;
            &:focus { border: none; }
            & .text-area--gutter { color: $aeon-muted; background: $background; }
            & .text-area--cursor-line { background: $panel; }
            & .text-area--cursor-gutter { color: $aeon-text; background: $background; }
        }
    }
    """

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.before = text
        """The original text."""

    def compose(self) -> ComposeResult:
        yield YamlArea(self.before)
        yield HangingText("", id="problems", markup=False)

    @property
    def area(self) -> YamlArea:
        """The widget that holds the text."""
        return self.query_one(YamlArea)

    @property
    def changed(self) -> bool:
        """Whether the text was edited."""
        return self.area.text != self.before

    def load(self, text: str) -> None:
        """Replace the text."""
        self.before = text
        self.area.load_text(text)
        self.show_problems([])

    def show_problems(self, problems: Sequence[TextProblem]) -> None:
        """Show the problems, put the cursor at the end of the first line with one, and accept typing."""
        self.area.read_only = False
        lines = [f"✖ {each}" for each in problems[:_SHOWN]]
        if (more := len(problems) - _SHOWN) > 0:
            lines.append(f"and {count(more, 'more problem')}")
        shown = self.query_one("#problems", Static)
        shown.display = bool(lines)
        shown.update(escape_controls("\n".join(lines), keep="\n"))
        first = next((each.line for each in problems if each.line is not None), None)
        if first is not None:
            row = min(first, self.area.document.line_count) - 1
            self.area.move_cursor((row, len(self.area.document.get_line(row))), center=True)
        if problems:
            self.area.focus()


def ask_to_discard(screen: Screen[Any], discard: Callable[[], object]) -> None:
    """Ask whether to discard what was typed, and call `discard` if so."""

    def answered(yes: bool | None) -> None:
        if yes:
            discard()

    lines = ["What you have typed is not saved."]
    screen.app.push_screen(ConfirmDialog("Discard your changes?", lines, "Discard", no="Keep editing"), answered)


class Edited(Generic[Value]):
    """The saved value; the screen returns None if nothing was saved."""

    def __init__(self, value: Value) -> None:
        self.value = value


class EditorScreen(Screen["Edited[Value] | None"], Generic[Value]):
    """Edits a text. ctrl+s calls `save` on a thread, which returns the value of the text.

    `save` raises AeonError for an unusable text; `problems` then returns the reasons by line, and nothing
    is lost. Escape closes the editor, after asking if the text was edited.
    """

    HELP_TITLE = "Editor"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", priority=True, id="editor.save"),
        Binding("escape", "leave", "Cancel", priority=True, id="editor.cancel"),
    ]
    DEFAULT_CSS = """
    EditorScreen {
        background: $background;
    }
    """

    def __init__(
        self,
        title: str,
        text: str,
        save: Callable[[str], Value],
        problems: Callable[[AeonError, str], Sequence[TextProblem]],
    ) -> None:
        super().__init__()
        self._title, self._text = title, text
        self._save, self._problems = save, problems

    def compose(self) -> ComposeResult:
        yield HeadLine(escape_controls(self._title))
        yield YamlEditor(self._text)
        yield KeyFooter()

    def on_mount(self) -> None:
        for area in self.query(YamlArea):
            area.focus()

    @property
    def area(self) -> YamlArea:
        """The widget that holds the text."""
        return self.query_one(YamlEditor).area

    def action_save(self) -> None:
        """Save the text, or show its problems."""
        if not self.area.read_only:
            self.area.read_only = True
            self._check(self.area.text)

    @work(thread=True, exclusive=True, group="save", exit_on_error=False)
    def _check(self, text: str) -> None:
        try:
            value = self._save(text)
        except AeonError as error:
            self.app.call_from_thread(self._show, list(self._problems(error, text)))
        except OSError as error:
            self.app.call_from_thread(self._show, [TextProblem(f"it cannot be saved: {error.strerror}")])
        else:
            self.app.call_from_thread(self._leave, value)

    def _leave(self, value: Value) -> None:
        if self.is_attached:
            self.dismiss(Edited(value))

    def _show(self, problems: Sequence[TextProblem]) -> None:
        if self.is_attached:
            self.query_one(YamlEditor).show_problems(problems)

    def action_leave(self) -> None:
        """Close without saving, after asking if the text was edited."""
        if self.query_one(YamlEditor).changed:
            ask_to_discard(self, lambda: self.dismiss(None))
        else:
            self.dismiss(None)
