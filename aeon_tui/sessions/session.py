"""The sessions of this process: runs and workflows on threads of their own, and their states."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from aeon_tui.sessions.runner import AnyRunner


class SessionChange(NamedTuple):
    """A change of a session since the last poll."""

    session: AnyRunner
    kind: Literal["waits", "ended"]


class SessionList:
    """All sessions of this process, in the order in which they were added. They run at the same time."""

    def __init__(self, sessions: Iterable[AnyRunner] = ()) -> None:
        self.all: list[AnyRunner] = list(sessions)
        self._asked: dict[AnyRunner, object] = {}
        """The question of each waiting session, the longest wait first."""
        self._ended: set[AnyRunner] = set()

    @property
    def running(self) -> list[AnyRunner]:
        """Sessions whose thread has not ended."""
        return [each for each in self.all if each.running]

    @property
    def active(self) -> list[AnyRunner]:
        """Sessions whose outcome is open."""
        return [each for each in self.all if each.active]

    @property
    def waiting(self) -> list[AnyRunner]:
        """Sessions that waited for a person at the last poll and still do, the longest wait first."""
        return [each for each in self._asked if each.active and each.waiting is not None]

    def of(self, journal: Path | None) -> AnyRunner | None:
        """Return the session that writes a journal, or wrote it last."""
        return next((each for each in reversed(self.all) if journal is not None and each.journal == journal), None)

    def has_reported(self, session: AnyRunner) -> bool:
        """Return whether a poll has reported the session's end."""
        return session in self._ended

    def look(self) -> list[SessionChange]:
        """Return the changes since the last poll: new questions and ends."""
        changes = []
        for each in self.all:
            asked = each.waiting if each.active else None
            if asked is None:
                self._asked.pop(each, None)
            elif self._asked.get(each) is not asked:
                self._asked.pop(each, None)  # its next question comes after those already waiting
                self._asked[each] = asked
                changes.append(SessionChange(each, "waits"))
            if each.ended and each not in self._ended:
                self._ended.add(each)
                changes.append(SessionChange(each, "ended"))
        return changes

    def abort(self) -> None:
        """Request the end of all running sessions; returns immediately."""
        for each in self.running:
            each.abort()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for all to end, at most this long in total if a limit is given; return whether they have."""
        deadline = time.monotonic() + seconds if seconds is not None else None
        return all(each.wait(None if deadline is None else max(0.0, deadline - time.monotonic())) for each in self.all)
