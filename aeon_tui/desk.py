"""Where a run's questions wait for the person at the screen."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aeon_core.effects.approval import ApprovalDecision, ApprovalRequest


class Desk:
    """An approver: called on the kernel's thread, which waits; answered on the screen's."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: ApprovalRequest | None = None
        self._decision: ApprovalDecision | None = None
        self._closed = False

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return what the person decides, however long that takes; `abort` once the desk is closed."""
        from aeon_core.effects.approval import ApprovalDecision

        with self._changed:
            self._waiting, self._decision = request, None
            self._changed.wait_for(lambda: self._decision is not None or self._closed)
            self._waiting = None
            return self._decision or ApprovalDecision(decision="abort")

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

    def close(self) -> None:
        """Answer what waits, and whatever else is asked, with `abort`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
