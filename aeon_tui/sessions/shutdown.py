"""The end of the app: its runs end first, also after a signal, and if the app is stuck."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Protocol

from aeon_core.process import handled
from aeon_tui.sessions.session import SessionList

ABORT_SECONDS = 2.0
"""How long quitting waits for runs to be journaled as aborted before it releases the terminal."""
HANGUP_SECONDS = 10.0
"""How long runs may take to end after their terminal has been closed."""
ENDING_SECONDS = 0.3
"""A run that takes longer than this to end is in a tool: model calls are abandoned immediately."""
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
            sessions.wait()
