"""The sessions of this process: runs and workflows on threads of their own, and their states.

They end before the app does, also after a signal, and if the app is stuck.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from aeon_core.process import handled

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


ABORT_SECONDS = 2.0
"""How long quitting waits for runs to be journaled as aborted before it releases the terminal."""
HANGUP_SECONDS = 10.0
"""How long runs may take to end after their terminal has been closed."""
ENDING_SECONDS = 0.3
"""A run that takes longer than this to end is in a tool: model calls are abandoned immediately."""
SIGNAL_SECONDS = 0.5
"""The longest wait for a tool before looking whether a signal has come."""
WAITING = "aeon-tui: waiting for the running tool …; press Ctrl-C to stop now\n"


class Quittable(Protocol):
    """An app that may have sessions running."""

    sessions: SessionList

    def quit_soon(self) -> None:
        """Quit; may be called from any thread."""


@contextlib.contextmanager
def ended_by_signals(app: Quittable) -> Iterator[None]:
    """Quit on SIGTERM and SIGHUP. End the process if the terminal is gone or the app is stuck.

    A closed terminal accepts no output: the app would wait for it forever.
    """
    closed = threading.Event()
    hung_up: list[threading.Thread] = []

    def watch(number: int, gone: bool) -> None:
        app.sessions.abort()
        app.sessions.wait(HANGUP_SECONDS if number == signal.SIGHUP else None)
        if gone or not closed.wait(ABORT_SECONDS):
            os._exit(128 + number)

    def end(number: int, _: FrameType | None) -> None:
        gone = number == signal.SIGHUP and not _has_terminal()
        watcher = threading.Thread(target=watch, args=(number, gone), name="aeon-end", daemon=True)
        if gone:
            hung_up.append(watcher)
        else:
            app.quit_soon()
        watcher.start()

    # Not the event loop's handlers: the loop may be the one that is stuck.
    with handled(end, signal.SIGTERM, signal.SIGHUP):
        try:
            yield
        finally:
            closed.set()
            for watcher in hung_up:
                watcher.join()


def _has_terminal() -> bool:
    """Return whether there is a terminal to restore: a closed one no longer responds."""
    try:
        termios.tcgetattr(0)
    except (termios.error, OSError):
        return False
    return True


def let_end(sessions: SessionList) -> None:
    """Abort all runs and wait for their end: only a person or a signal interrupts a running tool."""
    if not sessions.running:
        return
    sessions.abort()
    with contextlib.suppress(KeyboardInterrupt), handled(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP):
        if not sessions.wait(ENDING_SECONDS):
            sys.stderr.write(WAITING)
            sys.stderr.flush()
            # Not without end: Python notices a signal that comes just before such a wait only after it.
            while not sessions.wait(SIGNAL_SECONDS):
                pass
