"""What a screen shows of a journal that is longer, or grows faster, than its records can be folded one by one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from aeon_core.journal.view.last_states import LastStates
from aeon_tui.sources.base import FAST, WINDOW_SECONDS
from aeon_tui.sources.journal import JournalSource

if TYPE_CHECKING:
    from aeon_core.journal.follow import FollowPosition
    from aeon_core.journal.view.model import RunView
    from aeon_tui.sources.snapshots import SnapshotStore

RECENT = 100
"""Lines from the end that each view has without a gap."""
WITHIN = 16 * 1024 * 1024
"""Bytes of the end that are looked through at first."""
CALM = 3_000
"""Records a second, below which the whole is read."""
VIEW_SECONDS = 0.08
"""How often, at most, the last states are refreshed."""
LATE_SECONDS = 0.12
"""How often at least, whatever it costs."""
VIEW_SHARE = 0.15
"""The share of a core that making such views may take until then."""


class CatchUpReader:
    """Shows the last states of a journal that grows, until the whole has been read behind the screen.

    The whole is read while the journal grows slowly or not at all. `show` gets each view, from the thread of `read`.
    """

    def __init__(self, path: Path, show: Callable[[RunView], None], closed: Event, *, fast: bool) -> None:
        self._path = path
        self._past: JournalSource | None = None
        """What reads the whole, once it has begun."""
        self._fast = fast
        """Whether the journal grows too fast for the whole to be read."""
        self._show, self._closed = show, closed
        self._seen: deque[tuple[float, int]] = deque()
        """When how many lines had been seen."""
        self._lines = 0

    @property
    def reading(self) -> str:
        """How far the whole has been read, in words; empty once it is shown."""
        if self._fast:
            return "too fast to show in full"
        return self._past.reading if self._past is not None else ""

    @property
    def snapshots(self) -> SnapshotStore | None:
        """Views of the run's past, once the whole is being read."""
        return self._past.snapshots if self._past is not None else None

    def record(self, seq: int) -> dict[str, Any] | None:
        """Return a record of what was read, in full; None where it cannot be read, or not yet."""
        return self._past.record(seq) if self._past is not None else None

    def close(self) -> None:
        """Read no more."""
        if self._past is not None:
            self._past.close()

    def read(self, tell: Callable[[], None]) -> FollowPosition | None:
        """Return where the whole ends once it was shown, None where it cannot be read; `tell` is called in between.

        Raises AeonError, OSError.
        """
        with LastStates(self._path, recent=RECENT, within=WITHIN) as states:
            while not self._closed.is_set() and not self._whole_is_shown():
                self._look(states)
                tell()
        return self._past.place if self._past is not None else None

    def _look(self, states: LastStates) -> None:
        """Show the last states where there are new ones, and let the whole be read or not; then wait a little."""
        began, used = time.monotonic(), time.thread_time()
        new = states.read_on()
        self._lines += new
        self._note_pace(time.monotonic())
        if new or len(self._seen) == 1:
            self._show(states.view())
        if not self._fast:
            self._past = self._past or JournalSource(self._path)
        if self._past is not None:
            self._past.pause(self._fast)
        apart = min(max(VIEW_SECONDS, (time.thread_time() - used) / VIEW_SHARE), LATE_SECONDS)
        self._closed.wait(max(apart / 4, apart - (time.monotonic() - began)))

    def _note_pace(self, now: float) -> None:
        self._seen.append((now, self._lines))
        while len(self._seen) > 2 and now - self._seen[1][0] >= WINDOW_SECONDS:
            self._seen.popleft()
        (then, before), (_, lines) = self._seen[0], self._seen[-1]
        if now - then >= WINDOW_SECONDS:
            self._fast = (lines - before) / (now - then) > (CALM if self._fast else FAST)

    def _whole_is_shown(self) -> bool:
        if self._past is None:
            return False
        while (view := self._past.take_view()) is not None:
            if not view.whole_from:
                self._show(view)
        return self._past.ended
