"""What a person is asked and answers (contract: `approver(ApprovalRequest) -> ApprovalDecision`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from aeon_core.approvals.pending import NOBODY
from aeon_core.effects.outcomes import describe
from aeon_core.entities import Entity
from aeon_core.errors import RunEnding
from aeon_core.journal.records import ApprovalPoint, Decision
from aeon_core.json_safe import NotJsonSafeError, json_safe


class ApprovalRequest(Entity):
    """What is to be decided. `digest` binds the decision to `subject`, which is what was shown."""

    point: ApprovalPoint
    pass_number: int
    step_id: str | None = None
    subject: dict[str, Any]
    digest: str


class ApprovalDecision(Entity):
    """What was decided, with words or an edited subject where there are any."""

    decision: Decision
    feedback: str | None = None
    edited: dict[str, Any] | None = None


REVIEWED = frozenset({"plan", "pass"})
"""Points at which a rejection is refined for."""

Approver = Callable[[ApprovalRequest], ApprovalDecision]


def ask(approver: Approver | None, request: ApprovalRequest) -> ApprovalDecision:
    """Return what was decided; where nobody can be asked, or the approver fails, a refusal that says so."""
    if approver is None:
        return _reject(NOBODY)
    try:
        decision = approver(request)
    except RunEnding:
        raise
    except Exception as error:
        return _failed(request, f"the approver failed: {describe(error)}")
    if not isinstance(decision, ApprovalDecision):
        return _failed(request, f"the approver returned {type(decision).__name__}, expected an ApprovalDecision")
    try:
        return ApprovalDecision.model_validate(json_safe(decision.model_dump()))
    except (NotJsonSafeError, ValidationError):
        return _failed(request, "the approver returned something that is not JSON")


def _failed(request: ApprovalRequest, why: str) -> ApprovalDecision:
    """Return an abort where a rejection would be refined for and asked about again, else a rejection."""
    return ApprovalDecision(decision="abort", feedback=why) if request.point in REVIEWED else _reject(why)


def _reject(why: str) -> ApprovalDecision:
    return ApprovalDecision(decision="reject", feedback=why)


def unattended(on_unknown: str) -> ApprovalDecision | None:
    """Return what `on_unknown` decides of a call whose outcome is unknown; None where a person is asked."""
    if on_unknown == "ask":
        return None
    if on_unknown == "retry":
        return ApprovalDecision(decision="approve", feedback="on_unknown: retry")
    return _reject("on_unknown: fail")
