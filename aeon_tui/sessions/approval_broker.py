"""The broker between a run that asks and the person who decides, on this screen or at another terminal.

Also the question that a run of another process waits for, and the decision sent to it.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aeon_core.errors import AeonError

if TYPE_CHECKING:
    from aeon_core.approval_inbox import Fate, Sent
    from aeon_core.approvals import ApprovalDecision, ApprovalRequest, PendingApproval
    from aeon_tui.sources.base import RecordSource


class ApprovalSource(Protocol):
    """What a screen needs from a broker. No method blocks."""

    @property
    def waiting(self) -> ApprovalRequest | None:
        """The question that waits for an answer."""

    def decide(self, digest: str, decision: ApprovalDecision) -> bool:
        """Answer the question with this digest; return whether it was the waiting one."""

    def pop_notice(self) -> str:
        """Return a notice about decisions once; usually empty."""

    def close(self) -> None:
        """Stop accepting decisions."""


class ApprovalBroker:
    """An approver: the kernel's thread calls it and waits; the screen's thread or another terminal answers.

    `journal` is the run's and may be set later; its inbox exists while a question waits.
    """

    def __init__(self, journal: Path | None = None) -> None:
        self.journal = journal
        self._changed = threading.Condition()
        self._waiting: ApprovalRequest | None = None
        self._decision: ApprovalDecision | None = None
        self._closed = False
        self.answers: dict[str, str] = {}
        """The answers so far to the open questions of the waiting question; an abort of the run keeps them."""
        self._news = ""
        self.listener: Callable[[], object] = lambda: None
        """Called on the kernel's thread when a question arrives or is decided; must not block."""

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Wait for a decision and return it; `abort` once the broker is closed."""
        from aeon_core.approval_inbox import POLL_SECONDS, Inbox

        with Inbox(self.journal, request) as inbox:
            with self._changed:
                self._waiting, self._decision, self.answers = request, None, {}
            self.listener()
            while (decision := self._decided(POLL_SECONDS)) is None:
                # Outside the lock, which the screen needs too: this reads a file.
                if (elsewhere := inbox.take()) is not None:
                    self._decide_elsewhere(elsewhere)
            return inbox.settle(decision)

    def _decided(self, seconds: float) -> ApprovalDecision | None:
        """Return the decision, or None after some seconds without one."""
        from aeon_core.approvals import ApprovalDecision

        with self._changed:
            if not self._changed.wait_for(lambda: self._decision is not None or self._closed, seconds):
                return None
            self._waiting = None
            decision = self._decision or ApprovalDecision(decision="abort", answers=self.answers or None)
        self.listener()
        return decision

    def _decide_elsewhere(self, decision: ApprovalDecision) -> None:
        with self._changed:
            if self._decision is None:
                self._decision = decision
                self._news = f"Decided in another terminal: {decision.decision}."

    @property
    def waiting(self) -> ApprovalRequest | None:
        """The question that waits for an answer."""
        return self._waiting

    def decide(self, digest: str, decision: ApprovalDecision) -> bool:
        """Answer the question with this digest; return whether it was the waiting one."""
        with self._changed:
            if self._waiting is None or self._waiting.digest != digest or self._decision is not None:
                return False
            self._decision = decision
            self._changed.notify_all()
            return True

    def pop_notice(self) -> str:
        """Return once what another terminal decided."""
        news, self._news = self._news, ""
        return news

    def close(self) -> None:
        """Answer the waiting question and all later ones with `abort`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


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
    from aeon_core.approvals import ApprovalRequest

    return ApprovalRequest(**question.model_dump(exclude={"seq"}))


def pending_question(path: Path) -> PendingApproval | None:
    """Return the question of a live run that another terminal can decide; None if there is none.

    Raises UsageError, JournalError, OSError if the journal cannot be read.
    """
    from aeon_core.approval_inbox import takes_decisions
    from aeon_core.approvals import pending_approval
    from aeon_core.journal.summary import is_being_written

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
    from aeon_core.approval_inbox import POLL_SECONDS, send, takes_decisions
    from aeon_core.approvals import pending_approval
    from aeon_core.journal.summary import is_being_written

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


LOOK_SECONDS = 0.2
"""Seconds between checks of the journal while a question waits; otherwise twice as long."""


class RemoteApprovalBroker:
    """Shows the question of a run of another process, and submits the decision. A thread reads and waits."""

    def __init__(self, source: RecordSource[Any]) -> None:
        self._source = source
        self._question: PendingApproval | None = None
        self._request: ApprovalRequest | None = None
        self._seen = 0
        """The journal's size at the last check."""
        self._to_send: queue.SimpleQueue[tuple[PendingApproval, ApprovalDecision] | None] = queue.SimpleQueue()
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="aeon-remote-broker", daemon=True).start()

    @property
    def waiting(self) -> ApprovalRequest | None:
        """The waiting question, asked here or elsewhere."""
        return self._request

    def decide(self, digest: str, decision: ApprovalDecision) -> bool:
        """Submit an answer to the question with this digest; return whether it was the waiting one."""
        question = self._question
        if question is None or question.digest != digest:
            return False
        self._to_send.put((question, decision))
        return True

    def pop_notice(self) -> str:
        """Return once why the run did not accept a decision."""
        with contextlib.suppress(queue.Empty):
            return self._news.get_nowait()
        return ""

    def close(self) -> None:
        """Stop; a decision already made is written first."""
        self._to_send.put(None)

    def _work(self) -> None:
        while True:
            try:
                made = self._to_send.get(timeout=LOOK_SECONDS * (1 if self._question is not None else 2))
            except queue.Empty:
                self._show(self._look())
            else:
                if made is None:
                    return
                self._submit(*made)

    def _look(self) -> PendingApproval | None:
        """Return the question that the run waits for now."""
        from aeon_core.journal.summary import is_being_written

        journal = self._source.journal
        try:
            if journal is None or not is_being_written(journal):
                return None
            seen, self._seen = self._seen, journal.stat().st_size
            return self._question if self._question is not None and seen == self._seen else pending_question(journal)
        except (AeonError, OSError):
            return None

    def _show(self, question: PendingApproval | None) -> None:
        if question == self._question:
            return
        self._question = self._request = None
        if question is not None:
            self._question, self._request = question, approval_request(question)

    def _submit(self, question: PendingApproval, decision: ApprovalDecision) -> None:
        """Submit the decision and keep the reason if it fails; a question that still waits is asked again."""
        journal = self._source.journal
        if journal is None:
            return
        try:
            problem = submit(journal, question, decision).problem
        except (AeonError, OSError) as error:
            problem = str(error)
        if problem:
            self._news.put(f"{problem[:1].upper()}{problem[1:]}.")
        self._show(None)


def remote_broker(source: RecordSource[Any]) -> RemoteApprovalBroker | None:
    """Return the broker for a run or workflow of another process; None if nobody can run it. The caller closes it."""
    from aeon_tui.sources.journal import FollowedSource

    return RemoteApprovalBroker(source) if isinstance(source, FollowedSource) else None
