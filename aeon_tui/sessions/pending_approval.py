"""The question that a run of another process waits for, and the decision sent to it."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from aeon_core.approval_inbox import POLL_SECONDS, Fate, Sent, send, takes_decisions
from aeon_core.approvals import ApprovalDecision, ApprovalRequest, PendingApproval, pending_approval
from aeon_core.journal.summary import is_being_written

PATIENCE_SECONDS = 10.0
"""How long to wait for the run's process to journal a decision; it checks ten times a second."""

OPENING_SECONDS = 1.0
"""How long to wait until a run that has just asked takes decisions."""


@dataclass(frozen=True)
class Submitted:
    """The outcome of a decision: `problem` is why the run did not accept it, empty if it did."""

    problem: str = ""
    decided: str | None = None
    """The decision that the run continues with, if known."""


def approval_request(question: PendingApproval) -> ApprovalRequest:
    """Return the question as the run's own process asks it."""
    return ApprovalRequest(**question.model_dump(exclude={"seq"}))


def pending_question(path: Path) -> PendingApproval | None:
    """Return the question of a live run that another terminal can decide; None if there is none.

    Raises UsageError, JournalError, OSError if the journal cannot be read.
    """
    # In this order: a question left by a dead process is not waiting.
    if not takes_decisions(path) or not is_being_written(path):
        return None
    return pending_approval(path)


def pending_request(path: Path) -> ApprovalRequest | None:
    """Return the question as a request of the run's own process."""
    question = pending_question(path)
    return approval_request(question) if question is not None else None


def submit(path: Path, question: PendingApproval, decision: ApprovalDecision) -> Submitted:
    """Send a decision to the process of a run, and wait until it is accepted. Raises AeonError, OSError."""
    deadline = time.monotonic() + OPENING_SECONDS
    while not takes_decisions(path) and is_being_written(path) and time.monotonic() < deadline:
        last = pending_approval(path, texts=False)
        if last is None or last.seq != question.seq:
            return Submitted(_too_late(path.stem))
        time.sleep(POLL_SECONDS / 2)
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
            "may; it may have been stopped"
        )
    if sent.decided is None:
        return _too_late(run)
    return f"already decided elsewhere: {sent.decided}; your decision was not used"


def _too_late(run: str) -> str:
    return f"too late: the run {run!r} is no longer waiting for that decision"
