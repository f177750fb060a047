"""Work on threads, with notifications of failures; a LatestWorker does only the newest of the waiting requests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from textual.app import App
from textual.notifications import SeverityLevel
from textual.screen import Screen

from aeon_core.errors import AeonError

SHOWN_SECONDS = 10
PROBLEM_SECONDS = 20
NOTICE_SECONDS = 20


class BackgroundTasks:
    """Runs work on threads of an app, and notifies the user of failures."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app

    def run(self, work: Callable[[], None]) -> None:
        """Run it on a thread; an AeonError or an OSError is shown as a warning. Call this on the app's thread."""
        self._app.run_worker(lambda: self._run(work), thread=True, exit_on_error=False, group="actions")

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (AeonError, OSError) as error:
            self.notify(reason(error), warn=True)

    def in_app(self, act: Callable[[], object]) -> None:
        """Call a function on the app's thread, from another thread."""
        # The app may have ended meanwhile.
        with contextlib.suppress(RuntimeError):
            self._app.call_from_thread(act)

    def notify(self, text: str, *, warn: bool = False) -> None:
        """Notify the user, from a thread."""
        self.in_app(lambda: self.notify_here(text, warn=warn))

    def notify_here(self, text: str, *, warn: bool = False) -> None:
        """Notify the user. Call this on the app's thread."""
        show_notice(self._app, text, warn=warn)


def show_notice(app: App[Any], text: str, *, warn: bool = False) -> None:
    """Show one notification in place of all others: several would hide the screen that they are about."""
    app.clear_notifications()
    severity: SeverityLevel = "warning" if warn else "information"
    app.notify(text, severity=severity, timeout=PROBLEM_SECONDS if warn else SHOWN_SECONDS, markup=False)


def reason(error: AeonError | OSError) -> str:
    """Return in one line why something failed."""
    if isinstance(error, AeonError):
        return error.message
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


LatestWork = Callable[[], Callable[[], None]]
"""Runs on a thread, and returns the update of the screen; if it raises, there is none."""


class LatestWorker:
    """Does one piece of work at a time. Of the requests that arrive meanwhile, only the last is done."""

    def __init__(self, screen: Screen[Any], group: str) -> None:
        self._screen, self._group = screen, group
        self._next: LatestWork | None = None
        self.busy = False

    def submit(self, work: LatestWork) -> None:
        """Do this next, and drop waiting requests."""
        self._next = work
        if not self.busy:
            self._begin()

    def drop(self) -> None:
        """Drop waiting requests."""
        self._next = None

    def _begin(self) -> None:
        work, self._next = self._next, None
        self.busy = work is not None
        if work is not None:
            self._screen.run_worker(lambda: self._work(work), thread=True, group=self._group, exit_on_error=False)

    def _work(self, work: LatestWork) -> None:
        then: Callable[[], None] | None = None
        try:
            then = work()
        finally:
            with suppress(RuntimeError):  # the app has ended meanwhile
                self._screen.app.call_from_thread(self._done, then)

    def _done(self, then: Callable[[], None] | None) -> None:
        try:
            if then is not None:
                then()
        finally:
            self._begin()
