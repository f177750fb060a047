"""What a person is asked and answers (contract: `approver(ApprovalRequest) -> ApprovalDecision`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aeon_core.entities import Entity
from aeon_core.journal.records import ApprovalPoint, Decision


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


Approver = Callable[[ApprovalRequest], ApprovalDecision]
