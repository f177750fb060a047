"""What a workflow waits for: a gate with its artifact, a command, or another question, and what can be answered."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input, Static
from typing_extensions import override

from aeon_widgets.answer_keys import AnswerKeys
from aeon_widgets.approval_panel import GRACE_SECONDS, ApprovalText
from aeon_widgets.lines import Piece, RowsView
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text_view import Block

QuestionForm = Literal["gate", "command", "blocklisted", "choice"]
RUN = "run"
"""What is to be typed for a blocklisted command."""
KEYS: dict[QuestionForm, str] = {
    "gate": "a approve · w reject, say why · ctrl+x abort",
    "command": "a run it · d refuse · ctrl+x abort",
    "blocklisted": "w type 'run' to run it · d refuse · ctrl+x abort",
    "choice": "↑↓ choose · enter takes the choice · ctrl+x abort",
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
    "gate": "what is to be done otherwise? enter sends it, esc goes back",
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


class WorkflowPanel(Pane):
    """Asks one question and sends `Answered`, once. Keys typed in the first half second are ignored."""

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

    HELP_TITLE = "Decision"
    ALLOW_MAXIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "approve", "Approve", id="workflow.approve"),
        Binding("a", "run_it", "Run it", id="workflow.run_it"),
        Binding("w", "words", "Reject, say why", id="workflow.words"),
        Binding("w", "type_run", "Type run", id="workflow.type_run"),
        Binding("d", "refuse", "Refuse", id="workflow.refuse"),
        Binding("ctrl+x", "abort", "Abort the workflow", show=False, id="workflow.abort"),
        Binding("escape", "no_words", "Back to the question", id="workflow.back_to_question"),
    ]
    DEFAULT_CSS = (
        pane_css("WorkflowPanel")
        + """
    WorkflowPanel {
        height: auto; max-height: 75%; border: round $severity-medium; border-title-color: $severity-medium;
        &:focus-within { border: heavy $severity-medium; border-title-color: $severity-medium; }
        ApprovalText { height: auto; max-height: 100%; background: $background; }
        ChoiceRows { dock: bottom; height: 3; margin: 0 0 1 0; background: $background; }
        Input { dock: bottom; background: $panel; color: $aeon-text; margin: 0 1; display: none; }
        Static { dock: bottom; height: auto; max-height: 2; padding: 0 1; color: $aeon-muted; background: $background; }
        .keys { display: none; }
        &:focus-within .keys { display: block; }
        &:focus-within .away { display: none; }
    }
    WorkflowPanel.-words {
        Input { display: block; }
        .keys, &:focus-within .keys, .away { display: none; }
    }
    """
    )

    def __init__(self, question: WorkflowQuestion) -> None:
        super().__init__()
        self.question = question
        self._asked = time.monotonic()
        self._answered = False
        self.pane_title = question.title

    def compose(self) -> ComposeResult:
        asked = self.question
        yield ApprovalText()
        if asked.form in _PLACEHOLDERS:
            yield Input(placeholder=_PLACEHOLDERS[asked.form], compact=True)
        yield AnswerKeys(KEYS[asked.form], classes="keys")
        yield Static(f"{self.pane_key or 'tab'} leads back here, to decide", classes="away", markup=False)
        if asked.form == "choice":
            rows = ChoiceRows(asked.choices, asked.safe)
            rows.styles.height = len(asked.choices)
            yield rows

    def on_mount(self) -> None:
        text = self.query_one(ApprovalText)
        text.start(self.question.blocks, follow=False)
        next(iter(self.query(ChoiceRows)), text).focus()
        self.ask_again()
        self.app.bell()

    def ask_again(self) -> None:
        """Count the first half second from now: only now can a person see the question."""
        self._asked = time.monotonic()

    @property
    def _takes_keys(self) -> bool:
        return not self._answered and time.monotonic() - self._asked >= GRACE_SECONDS

    def _answer(self, choice: str, words: str | None = None) -> None:
        if self._takes_keys:
            # Once: the next question may be there when the next key comes.
            self._answered = True
            self.post_message(self.Answered(self.question.number, choice, words))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now: a key that the question does not take is the screen's."""
        form = self.question.form
        if action == "no_words":
            return self.has_class("-words")
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
        elif self._takes_keys:
            self._answered = True
            self.post_message(self.AbortWanted(self.question.number))

    def action_type_run(self) -> None:
        """Ask for the word that runs a blocklisted command."""
        self.action_words()

    def action_words(self) -> None:
        """Ask for the words of a rejection."""
        if self._takes_keys:
            self.add_class("-words")
            self.query_one(Input).focus()

    def action_no_words(self) -> None:
        """Go back from the words to the question."""
        self.remove_class("-words")
        self.query_one(ApprovalText).focus()

    def action_take_choice(self) -> None:
        """Take the choice that is lit."""
        self._answer(self.query_one(ChoiceRows).choice)

    @on(AnswerKeys.Clicked)
    async def _clicked(self, event: AnswerKeys.Clicked) -> None:
        event.stop()
        bound = [binding for binding in self.BINDINGS if isinstance(binding, Binding) and binding.key == event.key]
        actions = [binding.action for binding in bound if self.check_action(binding.action, ())]
        await self.run_action(next(iter(actions), "take_choice"))

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
                self.notify("Type run, that word alone; or d refuses.", severity="warning", markup=False)
        elif words:
            self._answer("reject", words)
        else:
            self.notify("A rejection needs words: the agent goes on with them.", severity="warning", markup=False)


if __name__ == "__main__":
    from aeon_widgets.demo import main

    main("workflow_panel")
