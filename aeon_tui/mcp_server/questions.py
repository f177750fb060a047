"""A run's question as a form for the person at the client, and their answer as a decision.

No tool takes a decision as an argument: what a model says approves nothing. The form travels as an elicitation, which
the client shows to its user, and never through the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.types import ClientCapabilities, ElicitRequestFormParams

from aeon_core import ApprovalDecision, ApprovalRequest
from aeon_widgets.run_question import ALWAYS, run_question

ANSWER, REASON = "answer", "reason"
MAX_MESSAGE = 20_000
"""The longest question in characters; a longer one is decided where all of it can be seen."""
_NO_FIELD = ("edit", ALWAYS)
"""Answers that need more than a choice and a reason."""


def can_ask(capabilities: ClientCapabilities | None) -> bool:
    """Return whether the client shows forms to its user."""
    found = capabilities.elicitation if capabilities is not None else None
    return found is not None and (found.form is not None or found.url is None)


def headline(request: ApprovalRequest) -> str:
    """Return the question in a few words."""
    return run_question(request.point, request.subject, request.pass_number).headline


def text(request: ApprovalRequest) -> str:
    """Return the whole question."""
    question = run_question(request.point, request.subject, request.pass_number)
    return f"{question.headline}\n\n{question.text}"


def how(run_id: str, request: ApprovalRequest) -> str:
    """Return how a person decides elsewhere."""
    answers = ", ".join(dict.fromkeys(_answers(request).values()))
    return f"a person decides in the app, or with `aeon-tui decide {run_id} DECISION` ({answers})"


def form(run_id: str, request: ApprovalRequest) -> ElicitRequestFormParams | None:
    """Return the form; None where the question is too long for one."""
    message = f"Run {run_id}: {text(request)}"
    if len(message) > MAX_MESSAGE:
        return None
    answer = {"type": "string", "title": "Decision", "enum": list(_answers(request))}
    reason = {"type": "string", "title": "Reason", "description": "What should change, or why not"}
    schema = {"type": "object", "properties": {ANSWER: answer, REASON: reason}, "required": [ANSWER]}
    return ElicitRequestFormParams(message=message, requested_schema=schema)


def decision(request: ApprovalRequest, action: str, content: Mapping[str, Any] | None) -> ApprovalDecision:
    """Return the decision in a form. Dismissing the form ends the run, which asks again when it is resumed."""
    chosen = _answers(request).get(str((content or {}).get(ANSWER))) if action == "accept" else None
    if chosen is None:
        return ApprovalDecision(decision="abort", feedback="the form was dismissed")
    reason = str((content or {}).get(REASON) or "").strip() or None
    return ApprovalDecision.model_validate({"decision": chosen, "feedback": reason if chosen == "reject" else None})


def _answers(request: ApprovalRequest) -> dict[str, str]:
    """Return the answers by what they do, as the app names them."""
    found = run_question(request.point, request.subject, request.pass_number).choices
    return {choice.words: choice.answer for choice in found if choice.answer not in _NO_FIELD}
