"""A run's question as a form for the person at the client, and their answer as a decision.

No tool takes a decision as an argument: what a model says approves nothing. The form travels as an elicitation, which
the client shows to its user, and never through the model.
"""

from __future__ import annotations

from mcp.types import ClientCapabilities, ElicitRequestFormParams, ElicitResult

from aeon_core import ApprovalDecision, ApprovalRequest
from aeon_tui.sessions import served_runs
from aeon_widgets.run_question import ALWAYS, run_question

ANSWER, REASON = "answer", "reason"
MAX_MESSAGE = 20_000
"""The longest question in characters; a longer one is decided where all of it can be seen."""


def headline(request: ApprovalRequest) -> str:
    """Return the question in a few words."""
    return run_question(request.point, request.subject, request.pass_number).headline


def text(request: ApprovalRequest) -> str:
    """Return the whole question."""
    question = run_question(request.point, request.subject, request.pass_number)
    return f"{question.headline}\n\n{question.text}"


def how(command: str, request: ApprovalRequest) -> str:
    """Return how a person decides elsewhere, with the command for it."""
    decisions = ", ".join(dict.fromkeys(_answers(request).values()))
    return f"a person decides in the app, or with {command} ({decisions})"


def form(
    run_id: str, request: ApprovalRequest, capabilities: ClientCapabilities | None
) -> ElicitRequestFormParams | None:
    """Return the form; None if the client shows none to its user, and where the question is too long for one."""
    asks = capabilities.elicitation if capabilities is not None else None
    message = f"Run {run_id}: {text(request)}"
    if asks is None or (asks.form is None and asks.url is not None) or len(message) > MAX_MESSAGE:
        return None
    answer = {"type": "string", "title": "Decision", "enum": list(_answers(request))}
    reason = {"type": "string", "title": "Reason", "description": "What should change, or why not"}
    schema = {"type": "object", "properties": {ANSWER: answer, REASON: reason}, "required": [ANSWER]}
    return ElicitRequestFormParams(message=message, requested_schema=schema)


def decision(request: ApprovalRequest, reply: ElicitResult) -> ApprovalDecision:
    """Return the decision in a form. Dismissing the form ends the run, which asks again when it is resumed."""
    content = reply.content or {}
    answer = _answers(request).get(str(content.get(ANSWER))) if reply.action == "accept" else None
    return served_runs.decision(request, answer, str(content.get(REASON) or ""))


def _answers(request: ApprovalRequest) -> dict[str, str]:
    """Return the answers by what they do, as the app names them. A rule needs more than a form."""
    return {each.words: each.answer for each in served_runs.answers(request) if each.answer != ALWAYS}
