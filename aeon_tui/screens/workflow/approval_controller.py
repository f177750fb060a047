"""The question that a workflow asks, on its screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.widget import Widget

from aeon_core.approvals import ApprovalDecision, ApprovalRequest
from aeon_core.escape import escape_blanks
from aeon_core.journal.values import dict_of
from aeon_tui.reports.workflow_report import change_blocks, detail_blocks, summary_blocks
from aeon_tui.screens.pane_screen import PanelController
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.run_question import ALWAYS, REASON, RUN, SHELL, ApprovalQuestion, Choice, whole
from aeon_widgets.text import Block, fit, one_line
from system2.changes import FileChange
from system2.policies import Question, decision_on, question_of

TITLES = {
    "bash": "Run this command?",
    "injection": "A message may contain an injected instruction",
    "cost_ceiling": "The cost ceiling is reached",
    "context_overflow": "The context window is full",
    "api_error": "The model cannot be reached",
    "protected_file": "A protected file would be changed",
    "file_change": "A file would be changed",
    "agent_halted": "An agent stopped before it finished",
    "existing_spec": "An earlier workflow left documents",
    "unknown_call": "The outcome of a call is unknown",
}
CHOICES = {
    ("injection", "stop"): "stop the agent",
    ("injection", "continue"): "it is harmless",
    ("cost_ceiling", "stop"): "end the workflow here; it can be resumed",
    ("cost_ceiling", "continue"): "ask again after the same amount",
    ("context_overflow", "abort"): "stop the agent",
    ("context_overflow", "summarize"): "continue with a summary of the conversation",
    ("api_error", "abort"): "end the workflow here; it can be resumed",
    ("api_error", "retry"): "try the call again",
    ("protected_file", "refuse"): "tell the agent that it may not",
    ("protected_file", "allow"): "change the file",
    ("existing_spec", "stop"): "end the workflow here; nothing is changed",
    ("existing_spec", "continue"): "build on them: you approve or correct each at its gate",
    ("existing_spec", "replace"): "let the agents rewrite them",
    ("unknown_call", "leave"): "do not repeat it; tell the agent that its outcome is unknown",
    ("unknown_call", "repeat"): "it had no effect: run it again",
    ("file_change", "refuse"): "tell the agent that it may not",
    ("file_change", "allow"): "change the file",
    ("agent_halted", "abort"): "end the workflow here; it can be resumed",
    ("agent_halted", "retry"): "let it start over",
    ("agent_halted", "skip"): "continue without the rest of its work",
}


_END = Choice("X", "End the workflow here", "abort")
_REFUSE = Choice("w", "Refuse it, and say why", "reject", REASON)
_WHY_NOT = "why not? the agent reads it"


def panel_question(request: ApprovalRequest) -> ApprovalQuestion:
    if request.point == "gate":
        return _gate(request.subject)
    question = question_of(request.point, request.subject, request.step_id)
    return _command(request.subject, question) if question.kind == "bash" else _option(question)


def _gate(subject: Mapping[str, Any]) -> ApprovalQuestion:
    artifact = str(subject["artifact"])
    blocks: list[Block] = [("muted", f"── {artifact} ──"), ("markdown", str(subject.get("content") or ""))]
    changes = [FileChange(**change) for change in subject.get("changes") or ()]
    blocks = [*change_blocks(changes, artifact), *blocks]
    if (summary := str(subject["summary"])).strip():
        blocks = [*summary_blocks(summary), ("", ""), *blocks]
    blocks.append(("muted", f"── end of {artifact} ──"))
    headline = f"Gate {subject['gate']} · {subject['title']}: approve {artifact}?"
    send_back = Choice("w", "Send it back, and say what to change", "reject", REASON)
    answers = (Choice("a", "Approve it and continue", "approve"), send_back, _END)
    return ApprovalQuestion("gate", headline, tuple(blocks), answers, hint="what should change?")


def _command(subject: Mapping[str, Any], question: Question) -> ApprovalQuestion:
    blocks: list[Block] = [("muted", f"asked by {question.agent or 'an agent'}")]
    title, run = TITLES["bash"], Choice("a", "Run it", "approve")
    if subject.get("blocklisted"):
        title, run = "Run this destructive command?", Choice("a", "Type 'run' to run it", "approve", RUN)
        blocks.append(("high", "✖ this command is on the list of destructive commands"))
    rule = (dict_of(subject.get("proposal")) or {}).get("rule")
    always = (Choice("A", f"Always allow {fit(one_line(rule), 40)}", ALWAYS),) if isinstance(rule, str) else ()
    answers = (run, *always, _REFUSE, _END)
    return ApprovalQuestion(
        "command", title, (*blocks, *whole(SHELL, escape_blanks(question.text))), answers, hint=_WHY_NOT
    )


def _option(question: Question) -> ApprovalQuestion:
    details = [block for detail in question.details for block in detail_blocks(detail)]
    blocks: list[Block] = [("", question.text), *details, ("", "")]
    for choice in question.choices:
        if meaning := CHOICES.get((question.kind, choice)):
            blocks.append(("muted", f"{choice}: {meaning}"))
    title, options = headline(question.kind, question.agent), tuple(question.choices)
    answers = (_REFUSE, _END) if question.takes_reason else (_END,)
    return ApprovalQuestion("choice", title, tuple(blocks), answers, hint=_WHY_NOT, options=options, safe=question.safe)


def headline(kind: str, agent: str) -> str:
    """Return in one line what is asked, and which agent it is about, if any."""
    title = TITLES.get(kind, kind.replace("_", " "))
    return one_line(f"{title} · {agent}" if agent else title, 200)


class WorkflowApprovalController(PanelController):
    """Mounts the panel for the question that waits at the broker, and removes it once it is answered."""

    def show(self, *, home: Widget) -> bool:
        """Show the current question, if there is one; return whether it is new.

        `home` gets the focus if no other widget is known.
        """
        asked = self.waiting()
        if asked is self._asked:
            return False
        self._asked = asked
        self.show_question(panel_question(asked) if asked is not None else None, home=home)
        self._screen.set_class(asked is not None and asked.point == "gate", "-asking-gate")
        return asked is not None

    def abort(self) -> None:
        """Answer the question by ending the workflow, which another process runs."""
        if self._panel is not None:
            self._panel.answered = self.decide(self._panel, ApprovalDecision(decision="abort"))

    def answer(self, panel: ApprovalPanel, choice: str, words: str | None = None) -> None:
        """Answer a panel's question if it still waits."""
        if self._asked is not None:
            self.decide(panel, _decision(self._asked, choice, words))


def _decision(asked: ApprovalRequest, choice: str, words: str | None) -> ApprovalDecision:
    if choice == "approve":
        return ApprovalDecision(decision="approve")
    if choice in ("reject", "refuse") and (asked.point == "gate" or words is not None):
        return ApprovalDecision(decision="reject", feedback=words)
    return decision_on(question_of(asked.point, asked.subject, asked.step_id), choice)
