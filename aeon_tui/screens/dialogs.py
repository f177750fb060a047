"""Dialogs: the box that all have, and the question before what cannot be undone or may surprise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from aeon_core.escape import escape_controls
from aeon_widgets.keys import KeyGuard, key_of
from aeon_widgets.text import count, fit, one_line

Answer = TypeVar("Answer")


class Box(Vertical):
    """The frame of a dialog, with a title and the keys on its border."""

    def __init__(self, title: str, keys: str) -> None:
        super().__init__()
        self.border_title, self.border_subtitle = Content(escape_controls(title)), keys


class Dialog(ModalScreen[Answer]):
    """A Box over the screen. `#problem` says what is wrong. None is the answer where it is left with escape."""

    FIRST: ClassVar[str]
    """What has the focus at first."""
    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        & > Vertical {
            width: 72; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; overflow-y: auto;
            border: round $aeon-accent; background: $background;
            border-title-color: $aeon-accent; border-subtitle-color: $aeon-muted;
        }
        Input { background: $panel; color: $aeon-text; }
        Button.-style-default.-textual-compact {
            min-width: 8; width: auto; height: 1; border: none; padding: 0;
            background: $background; color: $aeon-text; text-style: none;
            &:focus { background: $background; color: $aeon-text; text-style: bold reverse; }
        }
        #hint { color: $aeon-muted; height: auto; }
        #problem { color: $severity-high; height: auto; display: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.guard = KeyGuard()
        """Takes no decision that was typed before the dialog could be read."""

    def on_mount(self) -> None:
        if (first := getattr(self, "FIRST", None)) is not None:
            self.query(first).focus()
        self.guard.arm()

    def show_problem(self, problem: str) -> None:
        """Show what is wrong; nothing for an empty text."""
        if self.is_attached:
            shown = self.query_one("#problem", Static)
            shown.update(f"✖ {escape_controls(problem)}")
            shown.display = bool(problem)

    def action_cancel(self) -> None:
        """Change nothing."""
        self.dismiss(None)


class ConfirmDialog(Dialog[bool]):
    """Asks whether to do something; False if it is left with escape. Enter presses the button that is lit."""

    HELP_TITLE = "Question"
    FIRST = "#no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "refuse", "No", id="confirm.no"),
        Binding("y", "accept", "Yes", id="confirm.yes"),
        Binding("left,up,h,k", "app.focus_previous", "Other button", show=False, id="confirm.previous"),
        Binding("right,down,l,j", "app.focus_next", "Other button", show=False, id="confirm.next"),
    ]
    DEFAULT_CSS = """
    ConfirmDialog {
        & > Vertical { width: 64; border: round $severity-high; border-title-color: $severity-high; }
        .line { color: $aeon-text; height: auto; }
        Horizontal { height: 1; align-horizontal: right; margin: 1 0 0 0; }
        Button { margin: 0 0 0 2; }
    }
    """

    def __init__(self, title: str, lines: Sequence[str], yes: str, no: str = "No") -> None:
        super().__init__()
        self._title, self._lines, self._yes, self._no = title, lines, yes, no

    def compose(self) -> ComposeResult:
        yes, no = key_of(self, "confirm.yes", ConfirmDialog), key_of(self, "confirm.no", ConfirmDialog)
        with Box(self._title, f"{yes} yes · {no} no · tab other button"):
            for line in self._lines:
                yield Static(escape_controls(line), classes="line", markup=False)
            with Horizontal():
                yield Button(Content(f"[ {self._no} ]"), id="no", compact=True)
                yield Button(Content(f"[ {self._yes} ]"), id="yes", compact=True)

    @on(Button.Pressed, "#yes")
    def action_accept(self) -> None:
        """Do it."""
        if self.guard.is_open:
            self.dismiss(True)

    @on(Button.Pressed, "#no")
    def action_refuse(self) -> None:
        """Leave everything as it is."""
        self.dismiss(False)


_TASKS, _TASK_CELLS = 5, 56


class QuitDialog(ConfirmDialog):
    """Asks whether to abort what runs and quit. Pressing the same key again means yes.

    So these have the ids of the app's keys: where those are changed, these are.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "accept", "Quit", show=False, id="app.quit"),
        Binding("ctrl+q", "quit_now", "Quit", show=False, id="app.quit_anywhere"),
        Binding("ctrl+c", "quit_now", "Quit", show=False, id="app.copy"),
    ]

    def __init__(self, running: Sequence[tuple[str, str]], resumes: str) -> None:
        """`running` has the kind, `run` or `workflow`, and the task of each; `resumes` is the key that resumes one."""
        kinds = Counter(kind for kind, _ in running)
        them, are = ("it", "is") if len(running) == 1 else ("them", "are")
        title = f"{' and '.join(count(number, kind) for kind, number in kinds.items())} {are} running"
        tasks = [f"· {fit(one_line(task), _TASK_CELLS)}" for _, task in running[:_TASKS]]
        more = [f"· {len(running) - _TASKS} more"] if len(running) > _TASKS else []
        lines = [f"Abort {them} and quit?", *tasks, *more, f"All work so far is kept; {resumes} resumes {them} later."]
        super().__init__(title, lines, "Abort and quit", no="Stay")

    def action_quit_now(self) -> None:
        """Quit; nobody types these keys by the way."""
        self.dismiss(True)
