"""Where a run's questions wait for a person: the one at the screen, or one at another terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aeon_core.approvals.pending import ApprovalDecision, ApprovalRequest


class ApprovalSource(Protocol):
    """What a screen needs of a broker. Nothing in it waits."""

    @property
    def waiting(self) -> ApprovalRequest | None:
        """The question that waits for an answer."""

    def decide(self, digest: str, decision: ApprovalDecision) -> bool:
        """Answer the question with that digest; return whether it was the one that waits."""

    def pop_notice(self) -> str:
        """Return, once, what a person is to be told of decisions, in a sentence; mostly nothing."""

    def close(self) -> None:
        """Decide no more here."""


class ApprovalBroker:
    """An approver: called on the kernel's thread, which waits; answered on the screen's, or from another terminal.

    `journal` is the run's, and may be set later: its inbox exists while a question waits.
    """

    def __init__(self, journal: Path | None = None) -> None:
        self.journal = journal
        self._changed = threading.Condition()
        self._waiting: ApprovalRequest | None = None
        self._decision: ApprovalDecision | None = None
        self._closed = False
        self.answers: dict[str, str] = {}
        """What the person has answered so far to the open questions of what waits; an abort of the run keeps it."""
        self._news = ""
        self.listener: Callable[[], object] = lambda: None
        """Called on the kernel's thread when a question has come or is decided; it returns at once."""

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return what the person decides, however long that takes; `abort` once the broker is closed."""
        from aeon_core.approvals.inbox import POLL_SECONDS, Inbox

        with Inbox(self.journal, request) as inbox:
            with self._changed:
                self._waiting, self._decision, self.answers = request, None, {}
            self.listener()
            while (decision := self._decided(POLL_SECONDS)) is None:
                # Not under the lock, which the screen takes: this reads a file.
                if (elsewhere := inbox.take()) is not None:
                    self._decide_elsewhere(elsewhere)
            return inbox.settle(decision)

    def _decided(self, seconds: float) -> ApprovalDecision | None:
        """Return the decision, None where there is none after some seconds."""
        from aeon_core.approvals.pending import ApprovalDecision

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
        """Answer the question with that digest; return whether it was the one that waits."""
        with self._changed:
            if self._waiting is None or self._waiting.digest != digest or self._decision is not None:
                return False
            self._decision = decision
            self._changed.notify_all()
            return True

    def pop_notice(self) -> str:
        """Return, once, what was decided in another terminal."""
        news, self._news = self._news, ""
        return news

    def close(self) -> None:
        """Answer what waits, and whatever else is asked, with `abort`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
