"""How often the screen of a run or workflow is repainted: at once if there is news, otherwise as rarely as possible."""

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
"""While no records arrive, the clock and pending questions are checked every second frame."""
HIDDEN_RATE = 3
"""The most frames per second while another screen covers it."""
SLOW_AFTER = 40
"""The frames without news after which the rate drops."""
ASKING_RATE, OWN_RATE, CLOCK_RATE, NONE = 10, 5, 1, 0
"""The frames per second from then on: for a source to poll, for a run of this process, for the clock alone, and
for a run that is over."""


class RefreshScheduler:
    """Calls `fold`, which returns whether records have arrived, and `show_rest` for what changes without records.

    `slow_rate` returns the frames per second without news, for a source that reports news itself.
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
        """Frames per second."""
        self.wakes = 0
        """How often the source has reported news."""
        self._timer: Timer | None = None
        self._quiet = 0
        """Frames since the last news."""
        self._shown_at = 0.0
        self._news = False
        """Whether the source has reported news since the last frame."""
        self._notifies = False

    def begin(self, source: RecordSource) -> None:
        """Start the frames. Call this on the screen's own loop."""
        self._timer = self._screen.set_interval(1 / self.rate, self._frame, name="fold")
        loop, context = asyncio.get_running_loop(), copy_context()

        def wake() -> None:
            if not self._news:
                self._news = True
                with contextlib.suppress(RuntimeError):  # the app has ended
                    loop.call_soon_threadsafe(self._wake, context=context)

        self._notifies = source.listen(wake)

    def resume(self) -> None:
        """Show immediately what arrived while another screen covered this one."""
        if self._timer is not None:
            self._quiet = 0
            self._keep_pace()
            self._screen.call_next(self._frame)

    def _wake(self) -> None:
        """Show news immediately, unless a frame was shown a moment ago: then leave it to the next one."""
        if not self._screen.is_running:
            return
        self.wakes += 1
        if self.rate < FRAMES_PER_SECOND:
            self._quiet = 0
            self._keep_pace()
        if self._screen.is_current and time.monotonic() - self._shown_at >= 1 / FRAMES_PER_SECOND:
            self._screen.call_next(self._frame)

    def _frame(self) -> None:
        if not (self._screen.is_running and self._screen.app.is_running):
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
        """Set the frame rate that is needed now."""
        rate = FRAMES_PER_SECOND
        if self._quiet >= SLOW_AFTER:
            rate = self._slow_rate() if self._notifies else ASKING_RATE
        if not self._screen.is_current:
            rate = min(rate, HIDDEN_RATE)
        if rate == self.rate or not self._screen.is_running:
            return
        self.rate = rate
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._screen.set_interval(1 / rate, self._frame, name="fold") if rate else None
