"""The broker between a run that asks and the person who decides, on this screen or at another terminal."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aeon_core.errors import AeonError

if TYPE_CHECKING:
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
            from aeon_tui.sessions.pending_approval import pending_question

            seen, self._seen = self._seen, journal.stat().st_size
            return self._question if self._question is not None and seen == self._seen else pending_question(journal)
        except (AeonError, OSError):
            return None

    def _show(self, question: PendingApproval | None) -> None:
        if question == self._question:
            return
        self._question = self._request = None
        if question is not None:
            from aeon_tui.sessions.pending_approval import approval_request

            self._question, self._request = question, approval_request(question)

    def _submit(self, question: PendingApproval, decision: ApprovalDecision) -> None:
        """Submit the decision and keep the reason if it fails; a question that still waits is asked again."""
        from aeon_tui.sessions.pending_approval import submit

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
