"""What a run of another process waits for, as whoever decides it is asked."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from aeon_core.approvals.inbox import POLL_SECONDS, Fate, Sent, send, takes_decisions
from aeon_core.approvals.pending import ApprovalDecision, ApprovalRequest, PendingApproval, pending_approval
from aeon_core.journal.summary import is_being_written

PATIENCE_SECONDS = 10.0
"""How long to wait until the run's process has journaled a decision; it looks ten times a second."""


@dataclass(frozen=True)
class Submitted:
    """The outcome of a decision: `problem` says why the run did not take it, empty if it did."""

    problem: str = ""
    decided: str | None = None
    """What the run continues with, as far as it is known."""


def approval_request(question: PendingApproval) -> ApprovalRequest:
    """Return the question as the run's own process asks it."""
    return ApprovalRequest(**question.model_dump(exclude={"seq"}))


def pending_question(path: Path) -> PendingApproval | None:
    """Return what a live run waits for and another terminal can decide; None if there is no such thing.

    Raises UsageError, JournalError, OSError if the journal cannot be read.
    """
    # In this order: what a process that died left there is nothing that waits.
    if not takes_decisions(path) or not is_being_written(path):
        return None
    return pending_approval(path)


def pending_request(path: Path) -> ApprovalRequest | None:
    """Return the same as the run's own process asks it."""
    question = pending_question(path)
    return approval_request(question) if question is not None else None


def submit(path: Path, question: PendingApproval, decision: ApprovalDecision) -> Submitted:
    """Have the process of a run take a decision, and wait until it has. Raises AeonError, OSError."""
    with contextlib.closing(send(path, question, decision)) as sent:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (fate := sent.fate()) == "waits" and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS / 2)
        return Submitted("" if fate == "taken" else _why_not(fate, sent, path.stem), sent.decided)


def _why_not(fate: Fate, sent: Sent, run: str) -> str:
    if fate == "died":
        return f"the process of the run {run!r} ended before it took the decision; resume the run, then decide again"
    if fate == "waits":
        return (
            f"the process of the run {run!r} has not taken the decision within {PATIENCE_SECONDS:g} s, but still "
            "may; is it stopped?"
        )
    if sent.decided is None:
        return f"too late: the run {run!r} is no longer waiting for that decision"
    return f"already decided elsewhere: {sent.decided}; your decision was not used"
