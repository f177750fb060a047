"""Where the questions of a run of another process wait for the person at this screen, who decides through its inbox."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aeon_core.errors import AeonError

if TYPE_CHECKING:
    from aeon_core.approvals.inbox import Sent
    from aeon_core.approvals.pending import ApprovalDecision, ApprovalRequest, PendingApproval

LOOK_SECONDS = 0.2
"""Seconds between checks for changes of the journal while a question waits; otherwise twice as many."""
PATIENCE_SECONDS = 10.0
"""How long it is waited for the run's process to take a decision."""
_NOT_TAKEN = "Already decided elsewhere"


class HasJournal(Protocol):
    """What a run is followed by."""

    @property
    def journal(self) -> Path | None:
        """The run's journal; None where it is not there yet."""


class RemoteApprovalBroker:
    """Shows what the run that a source follows waits for, and submits the decision. A thread does the reading."""

    def __init__(self, source: HasJournal) -> None:
        self._source = source
        self._closed = False
        self._question: PendingApproval | None = None
        self._request: ApprovalRequest | None = None
        self._to_send: queue.SimpleQueue[tuple[PendingApproval, ApprovalDecision] | None] = queue.SimpleQueue()
        self._sent: Sent | None = None
        self._sent_at = 0.0
        self._looked_at: object = None
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="aeon-remote-broker", daemon=True).start()

    @property
    def waiting(self) -> ApprovalRequest | None:
        """The question that waits for an answer, here or elsewhere."""
        return self._request

    def decide(self, digest: str, decision: ApprovalDecision) -> bool:
        """Have the question with that digest answered; return whether it was the one that waits."""
        question = self._question
        if question is None or question.digest != digest:
            return False
        self._to_send.put((question, decision))
        return True

    def pop_notice(self) -> str:
        """Return, once, what became of a decision that the run did not take."""
        with contextlib.suppress(queue.Empty):
            return self._news.get_nowait()
        return ""

    def close(self) -> None:
        """Look no more; a decision that was made is written first."""
        self._closed = True
        self._to_send.put(None)

    def _work(self) -> None:
        try:
            while True:
                try:
                    waits = self._question is not None or self._sent is not None
                    made = self._to_send.get(timeout=LOOK_SECONDS if waits else 2 * LOOK_SECONDS)
                except queue.Empty:
                    self._look()
                else:
                    if made is None:
                        break
                    self._send(*made)
        finally:
            self._let_go()

    def _look(self) -> None:
        """See what the run waits with now."""
        from aeon_core.journal.summary import is_being_written

        journal = self._source.journal
        if journal is None:
            return
        try:
            self._follow_up()
            stat, live = journal.stat(), is_being_written(journal)
            looked_at = (stat.st_ino, stat.st_size, live)
            if looked_at != self._looked_at:
                self._look_into(journal, live=live)
                self._looked_at = looked_at
            self._show(journal)
        except (AeonError, OSError):
            self._question = self._request = None

    def _look_into(self, journal: Path, *, live: bool) -> None:
        question = None
        if live:
            from aeon_core.approvals.pending import pending_approval

            question = pending_approval(journal)
        if question != self._question:
            self._question, self._request = question, None

    def _show(self, journal: Path) -> None:
        """Ask the question as soon as the run takes decisions from elsewhere: it may be journaled a moment before."""
        if self._question is None or self._request is not None:
            return
        from aeon_core.approvals.inbox import takes_decisions
        from aeon_tui.sessions.pending_approval import approval_request

        if takes_decisions(journal):
            self._request = approval_request(self._question)

    def _send(self, question: PendingApproval, decision: ApprovalDecision) -> None:
        from aeon_core.approvals.inbox import send

        journal = self._source.journal
        if journal is None or self._sent is not None:
            return
        if self._question != question:
            self._say(f"{_NOT_TAKEN}.")
            return
        try:
            self._sent, self._sent_at = send(journal, question, decision), time.monotonic()
        except AeonError as error:
            self._say(error.message)
            self._request = None  # so that it is asked again

    def _follow_up(self) -> None:
        """See what has become of the decision that was sent."""
        if self._sent is None:
            return
        fate = self._sent.fate()
        if fate == "waits" and time.monotonic() - self._sent_at < PATIENCE_SECONDS:
            return
        decided = self._sent.decided
        self._let_go()
        if fate == "waits":
            self._say("The run's process has not taken the decision yet; is it stopped?")
            self._request = None  # so that it is asked again
        elif fate == "died":
            self._say("The run's process ended before it took the decision.")
        elif fate == "passed":
            self._say(f"{_NOT_TAKEN}: {decided}." if decided is not None else "The run is no longer waiting for that.")

    def _let_go(self) -> None:
        if self._sent is not None:
            self._sent.close()
            self._sent = None

    def _say(self, news: str) -> None:
        self._news.put(news)
