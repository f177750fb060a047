"""What a workflow waits for: a gate with its artifact, a command, or another question, and what can be answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input
from typing_extensions import override

from aeon_widgets.answer_keys import AnswerKeys
from aeon_widgets.decision_panel import DecisionPanel
from aeon_widgets.key_guard import KeyGuard
from aeon_widgets.text_view import Block
from aeon_widgets.virtual_list import Piece, RowsView

QuestionForm = Literal["gate", "command", "blocklisted", "choice"]
RUN = "run"
"""What is to be typed for a blocklisted command."""
KEYS: dict[QuestionForm, str] = {
    "gate": "a approve · w reject, say why · ctrl+x abort",
    "command": "a run it · d refuse · ctrl+x abort",
    "blocklisted": "w type 'run' to run it · d refuse · ctrl+x abort",
    "choice": "↑↓ choose · enter confirms · ctrl+x abort",
}
_FORMS: dict[str, tuple[QuestionForm, ...]] = {
    "approve": ("gate",),
    "words": ("gate",),
    "run_it": ("command",),
    "type_run": ("blocklisted",),
    "refuse": ("command", "blocklisted"),
}
"""The questions that an action answers."""
_PLACEHOLDERS: dict[QuestionForm, str] = {
    "gate": "what should change? enter sends it, esc goes back",
    "blocklisted": "type run and press enter; esc goes back",
}


@dataclass(frozen=True)
class WorkflowQuestion:
    """What is asked, in full. `number` tells it from the next one, which may ask the same."""

    number: int
    form: QuestionForm
    title: str
    blocks: tuple[Block, ...]
    choices: tuple[str, ...] = ()
    safe: str = ""


class ChoiceRows(RowsView):
    """The choices of a question; the safe one is lit at first."""

    HELP_TITLE = "Choices"

    def __init__(self, choices: tuple[str, ...], safe: str) -> None:
        super().__init__()
        self._choices, self._safe = choices, safe
        self.set_reactive(RowsView.cursor, choices.index(safe) if safe in choices else 0)

    def on_mount(self) -> None:
        self.set_line_count(len(self._choices))

    @property
    def choice(self) -> str:
        """The choice that is lit."""
        return self._choices[self.cursor]

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        choice = self._choices[index]
        safe = " (safe)" if choice == self._safe else ""
        return [(f" {'◉' if index == self.cursor else '○'} {choice}", "bold"), (safe, "muted")]


class WorkflowPanel(DecisionPanel):
    """Asks one question and sends `Answered`, once."""

    @dataclass
    class Answered(Message):
        """A person has answered the question of that number: approve, reject, run, refuse, or one of its choices."""

        number: int
        choice: str
        words: str | None = None

    @dataclass
    class AbortWanted(Message):
        """A person wants the workflow to end, whatever is asked."""

        number: int

    FIELD_ACTIONS: ClassVar[frozenset[str]] = frozenset({"words", "type_run"})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "approve", "Approve", id="workflow.approve"),
        Binding("a", "run_it", "Run it", id="workflow.run_it"),
        Binding("w", "words", "Reject, say why", id="workflow.words"),
        Binding("w", "type_run", "Type run", id="workflow.type_run"),
        Binding("d", "refuse", "Refuse", id="workflow.refuse"),
        Binding("ctrl+x", "abort", "Abort the workflow", show=False, id="workflow.abort"),
        Binding("escape", "no_words", "Back to the question", id="workflow.back_to_question"),
    ]
    DEFAULT_CSS = """
    WorkflowPanel {
        max-height: 75%;
        ChoiceRows { dock: bottom; height: 3; margin: 0 0 1 0; background: $background; }
    }
    """

    def __init__(self, question: WorkflowQuestion, guard: KeyGuard | None = None) -> None:
        form = question.form
        super().__init__(question.blocks, KEYS[form], _PLACEHOLDERS.get(form, ""), guard)
        self.question = question
        self.pane_title = question.title

    def compose(self) -> ComposeResult:
        yield from super().compose()
        if self.question.form == "choice":
            rows = ChoiceRows(self.question.choices, self.question.safe)
            rows.styles.height = len(self.question.choices)
            yield rows

    @property
    def home(self) -> Widget:
        """What has the focus at first: the choices where there are any."""
        return next(iter(self.query(ChoiceRows)), super().home)

    def _answer(self, choice: str, words: str | None = None) -> None:
        self.send(self.Answered(self.question.number, choice, words))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now: a key that the question does not take is the screen's."""
        form = self.question.form
        if action in _FORMS:
            return form in _FORMS[action]
        return super().check_action(action, parameters)

    def action_approve(self) -> None:
        """Approve what the gate is about."""
        self._answer("approve")

    def action_run_it(self) -> None:
        """Let the command run."""
        self._answer(RUN)

    def action_refuse(self) -> None:
        """Refuse the command."""
        self._answer("refuse")

    def action_abort(self) -> None:
        """End the workflow."""
        if self.question.form == "gate":
            self._answer("abort")
        else:
            self.send(self.AbortWanted(self.question.number))

    def action_type_run(self) -> None:
        """Ask for the word that runs a blocklisted command."""
        self.open_field()

    def action_take_choice(self) -> None:
        """Take the choice that is lit."""
        self._answer(self.query_one(ChoiceRows).choice)

    @on(AnswerKeys.Clicked)
    def _choice_clicked(self, event: AnswerKeys.Clicked) -> None:
        if self.question.form == "choice" and not event.key.startswith("ctrl+"):
            self.action_take_choice()

    @on(RowsView.Chosen)
    def _chosen(self, event: RowsView.Chosen) -> None:
        event.stop()
        self.action_take_choice()

    @on(RowsView.Moved)
    def _moved(self, event: RowsView.Moved) -> None:
        event.stop()

    @on(Input.Submitted)
    def _with_words(self, event: Input.Submitted) -> None:
        event.stop()
        words = event.value.strip()
        if self.question.form == "blocklisted":
            if words == RUN:
                self._answer(RUN)
            else:
                self.notify("Type only the word run, or press d to refuse.", severity="warning", markup=False)
        elif words:
            self._answer("reject", words)
        else:
            self.notify("A rejection needs a reason: the agent works with it.", severity="warning", markup=False)
