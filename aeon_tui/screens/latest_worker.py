"""Work on a thread of which only the last is wanted: keys that are held down never pile it up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from textual.screen import Screen

LatestWork = Callable[[], Callable[[], None]]
"""Runs on a thread, raises nothing, and returns what is then to be done with the screen."""


class LatestWorker:
    """Does one piece of work at a time. What is asked for meanwhile waits, and only the last of it is done."""

    def __init__(self, screen: Screen[None], group: str) -> None:
        self._screen, self._group = screen, group
        self._next: LatestWork | None = None
        self.busy = False

    def submit(self, work: LatestWork) -> None:
        """Do this next, and nothing else that waits."""
        self._next = work
        if not self.busy:
            self._begin()

    def drop(self) -> None:
        """Do nothing that waits."""
        self._next = None

    def _begin(self) -> None:
        work, self._next = self._next, None
        self.busy = work is not None
        if work is not None:
            self._screen.run_worker(lambda: self._work(work), thread=True, group=self._group, exit_on_error=False)

    def _work(self, work: LatestWork) -> None:
        then = work()
        with suppress(RuntimeError):  # the app has ended meanwhile
            self._screen.app.call_from_thread(self._done, then)

    def _done(self, then: Callable[[], None]) -> None:
        then()
        self._begin()
