"""The question that a workflow of this process waits with, on its screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen
from textual.widget import Widget

from aeon_tui.screens.panel_controller import PanelController
from aeon_tui.sessions.workflow_broker import PendingQuestion, QuestionAnswer, WorkflowBroker
from aeon_widgets.key_guard import KeyGuard
from aeon_widgets.markdown_text import markdown_blocks
from aeon_widgets.text import one_line
from aeon_widgets.text_view import Block
from aeon_widgets.workflow_panel import QuestionForm, WorkflowPanel, WorkflowQuestion
from system2.constants import GATES

if TYPE_CHECKING:
    from aeon_tui.sessions.workflow_broker import PendingQuestion
    from system2.policies import Question


TITLES = {
    "injection": "A message may contain an injected order",
    "cost_ceiling": "The cost ceiling is reached",
    "context_overflow": "The context window is full",
    "api_error": "The model cannot be reached",
    "protected_file": "A protected file would be changed",
    "agent_halted": "An agent stopped before it finished",
}
CHOICES = {
    ("injection", "stop"): "stop the agent",
    ("injection", "continue"): "it is harmless: continue",
    ("cost_ceiling", "stop"): "end the workflow here; it can be resumed",
    ("cost_ceiling", "continue"): "continue, and ask again after the same amount",
    ("context_overflow", "abort"): "stop the agent",
    ("context_overflow", "summarize"): "continue with a summary of the conversation",
    ("api_error", "abort"): "end the workflow here; it can be resumed",
    ("api_error", "retry"): "try the call again",
    ("protected_file", "refuse"): "tell the agent that it may not",
    ("protected_file", "allow"): "change the file",
    ("agent_halted", "abort"): "end the workflow here; it can be resumed",
    ("agent_halted", "retry"): "let it start over",
    ("agent_halted", "skip"): "continue without the rest of its work",
}


def question_of(asked: PendingQuestion, agent: str) -> WorkflowQuestion:
    """Return what is to be shown; `agent` is the one whose work has led to a command."""
    if asked.kind == "gate":
        return _gate(asked)
    if asked.kind == "bash":
        return _command(asked, agent)
    assert asked.question is not None
    return _choice(asked.number, asked.question)


def _gate(asked: PendingQuestion) -> WorkflowQuestion:
    blocks: list[Block] = [("muted", f"── {asked.artifact} ──"), *markdown_blocks(asked.content)]
    if asked.text.strip():
        blocks = [("bold", asked.text), ("", ""), *blocks]
    blocks.append(("muted", f"── end of {asked.artifact} ──"))
    title = f"Gate {asked.gate} · {GATES[asked.gate].title}: approve {asked.artifact}?"
    return WorkflowQuestion(asked.number, "gate", title, tuple(blocks))


def _command(asked: PendingQuestion, agent: str) -> WorkflowQuestion:
    form: QuestionForm = "blocklisted" if asked.is_blocklisted else "command"
    blocks: list[Block] = []
    if asked.is_blocklisted:
        blocks.append(("high", "✖ this command is on the list of destructive commands"))
    blocks.append(("", asked.text))
    title = f"Bash: {agent or 'an agent'} wants to run a command"
    return WorkflowQuestion(asked.number, form, title, tuple(blocks))


def _choice(number: int, question: Question) -> WorkflowQuestion:
    blocks: list[Block] = [("", question.text), *(("muted", detail) for detail in question.details), ("", "")]
    for choice in question.choices:
        if meaning := CHOICES.get((question.kind, choice)):
            blocks.append(("muted", f"{choice}: {meaning}"))
    title = TITLES.get(question.kind, question.kind.replace("_", " "))
    about = f"{title} · {question.agent}" if question.agent else title
    return WorkflowQuestion(
        number, "choice", one_line(about, 200), tuple(blocks), tuple(question.choices), question.safe
    )


class WorkflowApprovalController(PanelController[WorkflowPanel]):
    """Mounts the panel of what waits at the broker, and takes it away when it is answered."""

    def __init__(self, screen: Screen[None], broker: WorkflowBroker | None, guard: KeyGuard | None = None) -> None:
        super().__init__(screen, guard)
        self._broker = broker
        self._asked: PendingQuestion | None = None

    def show(self, agent: str, *, before: Widget, home: Widget) -> bool:
        """Show the question there is now, or none, above the widget `before`; return whether it is a new one.

        `agent` is the one that works. Where no other place is known, `home` is focused.
        """
        asked = self._broker.waiting if self._broker is not None else None
        if asked is self._asked:
            return False
        self._asked = asked
        panel = WorkflowPanel(question_of(asked, agent), self._guard) if asked is not None else None
        self.put(panel, before=before, home=home)
        self._screen.set_class(asked is not None and asked.kind == "gate", "-asking-gate")
        return asked is not None

    def answer(self, number: int, choice: str, words: str | None) -> None:
        """Answer the question of that number, where it still waits."""
        if self._broker is not None:
            self._broker.answer(number, QuestionAnswer(choice, words))
