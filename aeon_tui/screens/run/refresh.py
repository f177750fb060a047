"""When a run's screen looks for something new: as soon as its source says so, and else no more often than needed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from contextvars import copy_context

from textual.screen import Screen
from textual.timer import Timer

from aeon_tui.sources.base import RecordSource

FRAMES_PER_SECOND = 20
QUIET_FRAMES = 2
"""While nothing comes, the clock and what is asked are looked at each second frame."""
HIDDEN_RATE = 3
"""Frames a second at the most while another screen hides the run's."""
SLOW_AFTER = 40
"""Frames without anything new, after which there are fewer."""
ASKING_RATE, OWN_RATE, CLOCK_RATE, NONE = 10, 5, 1, 0
"""Frames a second from then on: where the source has to be asked, for a run of this process, for the clock alone, and
for a run that is over."""


class RefreshScheduler:
    """Calls `fold`, which says whether something has come, and `show_rest` for what changes without records.

    `slow_rate` gives how many frames a second there are once nothing comes, where the source says when something does.
    """

    def __init__(
        self,
        screen: Screen[None],
        fold: Callable[[], bool],
        show_rest: Callable[[], None],
        slow_rate: Callable[[], int],
    ) -> None:
        self._screen, self._fold, self._show_rest, self._slow_rate = screen, fold, show_rest, slow_rate
        self.rate = FRAMES_PER_SECOND
        """Frames a second."""
        self.wakes = 0
        """How often the source has had the screen look."""
        self._timer: Timer | None = None
        self._quiet = 0
        """Frames since something has come."""
        self._shown_at = 0.0
        self._news = False
        """Whether the source has something new since the last frame."""
        self._notifies = False
        self._closed = False

    def begin(self, source: RecordSource) -> None:
        """Have a frame from now on whenever one is due. On the screen's own loop."""
        self._timer = self._screen.set_interval(1 / self.rate, self._frame, name="fold")
        loop, context = asyncio.get_running_loop(), copy_context()

        def tell() -> None:
            if not self._news:
                self._news = True
                with contextlib.suppress(RuntimeError):  # the app has ended
                    loop.call_soon_threadsafe(self._wake, context=context)

        self._notifies = source.listen(tell)

    def resume(self) -> None:
        """Show at once what has come while another screen hid this one."""
        if self._timer is not None:
            self._quiet = 0
            self._keep_pace()
            self._screen.call_next(self._frame)

    def close(self) -> None:
        """Have no more frames."""
        self._closed = True

    def _wake(self) -> None:
        """Show at once what has come, unless something was shown a moment ago: then the next frame does."""
        if self._closed:
            return
        self.wakes += 1
        if self.rate < FRAMES_PER_SECOND:
            self._quiet = 0
            self._keep_pace()
        if self._screen.is_current and time.monotonic() - self._shown_at >= 1 / FRAMES_PER_SECOND:
            self._screen.call_next(self._frame)

    def _frame(self) -> None:
        if not self._screen.app.is_running:
            return  # its panes may be gone
        self._news = False
        if self._fold():
            self._quiet, self._shown_at = 0, time.monotonic()
        else:
            self._quiet += 1
        if self._quiet % QUIET_FRAMES == 0 or self.rate < FRAMES_PER_SECOND:
            self._show_rest()
        self._keep_pace()

    def _keep_pace(self) -> None:
        """Let as many frames come as are needed now."""
        rate = FRAMES_PER_SECOND
        if self._quiet >= SLOW_AFTER:
            rate = self._slow_rate() if self._notifies else ASKING_RATE
        if not self._screen.is_current:
            rate = min(rate, HIDDEN_RATE)
        if rate == self.rate or self._closed:
            return
        self.rate = rate
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._screen.set_interval(1 / rate, self._frame, name="fold") if rate else None
