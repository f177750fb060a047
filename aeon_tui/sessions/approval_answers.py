"""A run's question where a client offers choices but no editor: what can be chosen, and the decision that it makes."""

from __future__ import annotations

from typing import cast

from aeon_core.approvals.pending import AllowedRule, ApprovalDecision, ApprovalRequest
from aeon_core.journal.records import Decision
from aeon_core.journal.values import dict_of, str_of
from aeon_widgets.approval_question import Choice
from aeon_widgets.run_question import ALWAYS, choices


def answers(request: ApprovalRequest) -> list[Choice]:
    """Return the choices that need a reason at most, the one that continues first."""
    return [each for each in choices(request.point, request.subject, request.pass_number) if each.answer != "edit"]


def decision(request: ApprovalRequest, answer: str | None, reason: str = "") -> ApprovalDecision:
    """Return the decision that an answer makes. One that was not offered ends the run, which asks again if resumed."""
    if answer not in {each.answer for each in answers(request)}:
        return ApprovalDecision(decision="abort", feedback=f"the client answered {answer!r}" if answer else None)
    if answer == ALWAYS:
        rule = str_of((dict_of(request.subject.get("proposal")) or {}).get("rule"))
        return ApprovalDecision(decision="approve", allow=AllowedRule(rule=rule, scope="run"))
    feedback = reason.strip() if answer == "reject" else ""
    return ApprovalDecision(decision=cast("Decision", answer), feedback=feedback or None)
