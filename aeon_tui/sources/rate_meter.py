"""Whether records come faster than a screen can fold them one by one."""

from __future__ import annotations

import time

FAST = 4_000
"""Records a second, from which on only the last states are shown: parsing and folding all would keep keys waiting."""
WINDOW_SECONDS = 0.5
QUIET_SECONDS = 2.0


class RateMeter:
    """Tells whether records come faster than they can be folded one by one, and how soon to look for more."""

    def __init__(self) -> None:
        self._since = 0.0
        self._count = 0
        self._last = 0.0

    def too_fast(self, count: int) -> bool:
        """Count records that have just come; return whether there were too many lately."""
        now = time.monotonic()
        if now - self._since > WINDOW_SECONDS:
            self._since, self._count = now, 0
        self._count += count
        self._last = now if count else self._last
        return self._count > FAST * WINDOW_SECONDS

    def pause(self, seconds: float) -> float:
        """Return how long to wait before the next look: this long, or three times as long if nothing comes."""
        return 3 * seconds if time.monotonic() - self._last > QUIET_SECONDS else seconds
