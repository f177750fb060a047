"""The runs and workflows of this process, each on a thread of its own; which run, wait or have ended."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from aeon_core.errors import AeonError
from aeon_core.journal.view.formatting import words

logger = logging.getLogger("aeon")


class Result(Protocol):
    """How a run or a workflow ended."""

    @property
    def status(self) -> str:
        """How it ended, as its journal says it."""

    @property
    def exit_code(self) -> int:
        """What a command ends with."""


ResultT = TypeVar("ResultT", bound=Result, covariant=True)


class Session(ABC, Generic[ResultT]):
    """The app starts it, ends it, and says at its end how it went: `result`, or the `error` why there is none."""

    what = "run"

    def __init__(self) -> None:
        self.result: ResultT | None = None
        self.error: AeonError | None = None
        self.aborting = False
        self._done = threading.Event()
        self._listener: Callable[[], object] = lambda: None
        self._thread: threading.Thread | None = None

    @property
    @abstractmethod
    def task(self) -> str:
        """What it was started for."""

    @property
    @abstractmethod
    def waiting(self) -> object | None:
        """The question that it waits with, the same object for as long as it waits; None if it asks nothing."""

    @property
    @abstractmethod
    def journal(self) -> Path | None:
        """The file that its records are in; None if there is none yet."""

    @property
    def run_id(self) -> str:
        """Its id; empty while it has none."""
        return self.journal.stem if self.journal is not None else ""

    @property
    def running(self) -> bool:
        """Whether it has started and not ended."""
        return self._thread is not None and not self._done.is_set()

    @property
    def active(self) -> bool:
        """Whether it is running and its outcome is open: what comes after that only closes files."""
        return self.running and self.result is None and self.error is None

    @property
    def ended(self) -> bool:
        """Whether it has started and ended."""
        return self._thread is not None and self._done.is_set()

    @property
    def status(self) -> str:
        """How it ended, in a few words; empty before."""
        if self.error is not None:
            return f"failed: {self.error.message}"
        return words(self.result.status) if self.result is not None else ""

    @property
    def exit_code(self) -> int:
        """What a command ends with: the result's code, the error's, or 1 if it has not ended."""
        if self.result is not None:
            return self.result.exit_code
        return self.error.exit_code if self.error is not None else 1

    def listen(self, listener: Callable[[], object]) -> None:
        """Have it called on any thread when the session begins or ceases to wait, and when it has ended."""
        self._listener = listener

    def start(self) -> None:
        """Begin; once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"aeon-{self.what}", daemon=True)
            self._thread.start()

    @abstractmethod
    def abort(self) -> None:
        """Ask it to end; returns at once."""

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, at most so long, or as long as it takes; return whether it has ended."""
        return self._thread is None or self._done.wait(seconds)

    @abstractmethod
    def outcome(self) -> str:
        """Return one line about how it ended."""

    @abstractmethod
    def run(self) -> None:
        """Do the work, on the session's thread. May raise whatever goes wrong."""

    @abstractmethod
    def close(self) -> None:
        """Close what it had open, on the session's thread, however it ended."""

    def _work(self) -> None:
        try:
            self.run()
        except AeonError as error:
            self.error = error
        except Exception as error:
            logger.exception("the %s failed before it started", self.what)
            self.error = AeonError(f"internal error: {type(error).__name__}: {error}")
        finally:
            self.close()
            self._done.set()
            self._listener()


AnySession = Session[Result]


class SessionChange(NamedTuple):
    """What has become of a session since the last look."""

    session: AnySession
    kind: Literal["waits", "ended"]


class SessionList:
    """All sessions of this process, in the order in which they were added. Sessions run at the same time."""

    def __init__(self, sessions: Iterable[AnySession] = ()) -> None:
        self.all: list[AnySession] = list(sessions)
        self._asked: dict[AnySession, object] = {}
        """The question of each session that waits, the one that has waited longest first."""
        self._ended: set[AnySession] = set()

    @property
    def running(self) -> list[AnySession]:
        """Those whose thread has not ended."""
        return [each for each in self.all if each.running]

    @property
    def active(self) -> list[AnySession]:
        """Those whose outcome is open."""
        return [each for each in self.all if each.active]

    @property
    def waiting(self) -> list[AnySession]:
        """Those that waited for a person at the last look and still do, the longest wait first."""
        return [each for each in self._asked if each.active and each.waiting is not None]

    def of(self, journal: Path | None) -> AnySession | None:
        """Return the session that writes a journal, or wrote it last."""
        return next((each for each in reversed(self.all) if journal is not None and each.journal == journal), None)

    def has_reported(self, session: AnySession) -> bool:
        """Return whether a look has reported the session's end."""
        return session in self._ended

    def look(self) -> list[SessionChange]:
        """Return what has happened since the last look: a question that is new, an end."""
        changes = []
        for each in self.all:
            asked = each.waiting if each.active else None
            if asked is None:
                self._asked.pop(each, None)
            elif self._asked.get(each) is not asked:
                self._asked.pop(each, None)  # its next question comes after those that others ask already
                self._asked[each] = asked
                changes.append(SessionChange(each, "waits"))
            if each.ended and each not in self._ended:
                self._ended.add(each)
                changes.append(SessionChange(each, "ended"))
        return changes

    def abort(self) -> None:
        """Ask all that run to end; returns at once."""
        for each in self.running:
            each.abort()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for all to end, so long together, or as long as it takes; return whether they have."""
        deadline = time.monotonic() + seconds if seconds is not None else None
        return all(each.wait(None if deadline is None else max(0.0, deadline - time.monotonic())) for each in self.all)
