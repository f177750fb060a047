"""The question that a workflow of this process waits with, on its screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.screen import Screen
from textual.widget import Widget

from aeon_tui.screens.panel_controller import PanelController, Place
from aeon_tui.screens.workflow.gate_changes import change_blocks, detail_blocks, summary_blocks
from aeon_tui.sessions.workflow_broker import PendingQuestion, QuestionAnswer, WorkflowBroker
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.approval_question import REASON, RUN, ApprovalQuestion, Choice
from aeon_widgets.call_text import SHELL
from aeon_widgets.key_guard import KeyGuard
from aeon_widgets.text import one_line
from aeon_widgets.text_view import Block
from system2.constants import GATES

if TYPE_CHECKING:
    from aeon_tui.sessions.workflow_broker import PendingQuestion
    from system2.policies import Question


TITLES = {
    "injection": "A message may contain an injected instruction",
    "cost_ceiling": "The cost ceiling is reached",
    "context_overflow": "The context window is full",
    "api_error": "The model cannot be reached",
    "protected_file": "A protected file would be changed",
    "file_change": "A file would be changed",
    "agent_halted": "An agent stopped before it finished",
    "existing_spec": "An earlier workflow left documents",
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
    ("existing_spec", "stop"): "end the workflow here; nothing is changed",
    ("existing_spec", "continue"): "build on them: you approve or correct each at its gate",
    ("existing_spec", "replace"): "let the agents rewrite them",
    ("file_change", "refuse"): "tell the agent that it may not",
    ("file_change", "allow"): "change the file",
    ("agent_halted", "abort"): "end the workflow here; it can be resumed",
    ("agent_halted", "retry"): "let it start over",
    ("agent_halted", "skip"): "continue without the rest of its work",
}


_END = Choice("X", "End the workflow here", "abort")
_REFUSE = Choice("w", "Refuse it, and say why", "refuse", REASON)


def question_of(asked: PendingQuestion, agent: str) -> ApprovalQuestion:
    """Return what is to be shown; `agent` is the one whose work has led to a command."""
    if asked.kind == "gate":
        return _gate(asked)
    if asked.kind == "bash":
        return _command(asked, agent)
    assert asked.question is not None
    return _option(asked.question)


def _gate(asked: PendingQuestion) -> ApprovalQuestion:
    blocks: list[Block] = [("muted", f"── {asked.artifact} ──"), ("markdown", asked.content)]
    blocks = [*change_blocks(asked.changes, asked.artifact), *blocks]
    if asked.text.strip():
        blocks = [*summary_blocks(asked.text), ("", ""), *blocks]
    blocks.append(("muted", f"── end of {asked.artifact} ──"))
    headline = f"Gate {asked.gate} · {GATES[asked.gate].title}: approve {asked.artifact}?"
    send_back = Choice("w", "Send it back, and say what to change", "reject", REASON)
    answers = (Choice("a", "Approve it and continue", "approve"), send_back, _END)
    return ApprovalQuestion("gate", headline, tuple(blocks), answers, hint="what should change? enter sends it")


def _command(asked: PendingQuestion, agent: str) -> ApprovalQuestion:
    blocks: list[Block] = [("muted", f"asked by {agent or 'an agent'}")]
    headline, run = "Run this command?", Choice("a", "Run it", RUN)
    if asked.is_blocklisted:
        headline, run = "Run this destructive command?", Choice("a", "Type 'run' to run it", RUN, RUN)
        blocks.append(("high", "✖ this command is on the list of destructive commands"))
    hint = "why not? the agent reads it; enter sends it"
    return ApprovalQuestion("command", headline, (*blocks, (SHELL, asked.text)), (run, _REFUSE, _END), hint=hint)


def _option(question: Question) -> ApprovalQuestion:
    details = [block for detail in question.details for block in detail_blocks(detail)]
    blocks: list[Block] = [("", question.text), *details, ("", "")]
    for choice in question.choices:
        if meaning := CHOICES.get((question.kind, choice)):
            blocks.append(("muted", f"{choice}: {meaning}"))
    title = TITLES.get(question.kind, question.kind.replace("_", " "))
    headline = one_line(f"{title} · {question.agent}" if question.agent else title, 200)
    options = tuple(question.choices)
    return ApprovalQuestion("choice", headline, tuple(blocks), (_END,), options=options, safe=question.safe)


class WorkflowApprovalController(PanelController):
    """Mounts the panel of what waits at the broker, and takes it away when it is answered."""

    def __init__(
        self,
        screen: Screen[None],
        broker: WorkflowBroker | None,
        place: Callable[[], Place],
        guard: KeyGuard | None = None,
    ) -> None:
        super().__init__(screen, place, guard)
        self._broker = broker
        self._asked: PendingQuestion | None = None

    def show(self, agent: str, *, home: Widget) -> bool:
        """Show the question there is now, or none; return whether it is a new one.

        `agent` is the one that works. Where no other place is known, `home` is focused.
        """
        asked = self._broker.waiting if self._broker is not None else None
        if asked is self._asked:
            return False
        self._asked = asked
        self.put(question_of(asked, agent) if asked is not None else None, home=home)
        self._screen.set_class(asked is not None and asked.kind == "gate", "-asking-gate")
        return asked is not None

    def answer(self, panel: ApprovalPanel, choice: str, words: str | None = None) -> None:
        """Answer a panel's question, where it still waits."""
        if self._broker is not None and self._asked is not None and panel is self._panel:
            self._broker.answer(self._asked.number, QuestionAnswer(choice, words))
