"""What a run of another process waits for, as whoever decides it is asked."""

from __future__ import annotations

from pathlib import Path

from aeon_core.approvals.inbox import takes_decisions
from aeon_core.approvals.pending import ApprovalRequest, PendingApproval, pending_approval
from aeon_core.journal.summary import is_being_written


def approval_request(question: PendingApproval) -> ApprovalRequest:
    """Return the question as the run's own process asks it."""
    return ApprovalRequest(**question.model_dump(exclude={"seq"}))


def pending_request(path: Path) -> ApprovalRequest | None:
    """Return what a live run waits for and another terminal can decide; None where there is no such thing.

    Raises UsageError, JournalError, OSError where the journal cannot be read.
    """
    # In this order: what a process that died left there is nothing that waits.
    if not takes_decisions(path) or not is_being_written(path):
        return None
    question = pending_approval(path)
    return approval_request(question) if question is not None else None
