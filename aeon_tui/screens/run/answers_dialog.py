"""The dialog in which open questions of a run are answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from aeon_core.escape import escape_controls
from aeon_tui.screens.dialogs import Dialog
from aeon_widgets.key_names import key_of


class AnswersDialog(Dialog[dict[str, str]]):
    """Has a field for each question. Enter moves to the next one, from the last back to the decision.

    Returns the content of the fields, by question, however it is closed: it decides nothing and can be reopened.
    """

    HELP_TITLE = "Open questions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", id="answers.back"),
        Binding("up", "app.focus_previous", "Previous question", show=False, id="answers.previous"),
        Binding("down", "app.focus_next", "Next question", show=False, id="answers.next"),
    ]
    DEFAULT_CSS = """
    AnswersDialog {
        & > Vertical { width: 76; }
        Static { color: $aeon-text; height: auto; }
        Input { margin: 0 0 1 0; }
    }
    """

    def __init__(self, questions: Sequence[str], answers: Mapping[str, str]) -> None:
        super().__init__()
        self._questions, self._answers = list(questions), dict(answers)

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Your answers go with your decision"
            follows = "next" if len(self._questions) > 1 else "keeps it"
            box.border_subtitle = f"enter {follows} · {key_of(self, 'answers.back')} back to the decision"
            for question in self._questions:
                yield Static(escape_controls(f"? {question}"), markup=False)
                yield Input(self._answers.get(question, ""), compact=True)

    def on_mount(self) -> None:
        for field in self.query(Input):
            if not field.value:
                field.focus()
                return
        for field in self.query(Input):
            field.focus()
            return

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        event.stop()
        fields = list(self.query(Input))
        place = fields.index(event.input)
        if place + 1 < len(fields):
            fields[place + 1].focus()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Go back to the decision with what was typed."""
        typed = (field.value.strip() for field in self.query(Input))
        self.dismiss({question: words for question, words in zip(self._questions, typed, strict=True) if words})
