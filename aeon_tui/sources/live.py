"""The records of a run in this process, as the kernel writes them."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_tui.sources.base import Listener, RateMeter, RecordSource, V, nobody

if TYPE_CHECKING:
    from aeon_tui.sources.snapshots import RunSnapshotStore

Follow = Callable[[Path], RecordSource[V]]
"""Returns a source that follows a journal whose first view is already shown."""

CAPACITY = 20_000
"""The most lines kept for the screen."""
WAITING = 3_000
"""The most lines that may wait for a frame before the screen reads the journal instead."""


class LiveSource(RecordSource[V]):
    """Lines as the kernel writes them. `put` only appends: a slow screen never slows the run.

    If they arrive too fast to be folded one by one, or too many wait, the journal is followed
    instead, as if another process wrote it. `first` are records that precede those lines.
    """

    notice = ""
    """A notice about this run, set by whoever runs it."""

    def __init__(
        self,
        journal: Path | None,
        capacity: int = CAPACITY,
        first: RecordSource[V] | None = None,
        follow: Follow[V] | None = None,
    ) -> None:
        super().__init__(journal)
        self._lines: deque[bytes] = deque(maxlen=capacity)
        self._last_seq = -1
        self._first = first
        self._follow: Callable[[Path], RecordSource[Any]] = follow if follow is not None else _follow
        self._followed: RecordSource[V] | None = None
        """The follower of the journal, once it is needed."""
        self._pace = RateMeter()
        self._notify: Listener = nobody
        self._overflowed = False
        self._finished = False

    @property
    def reading(self) -> str:
        return self._followed.reading if self._followed is not None else ""

    @property
    def snapshots(self) -> RunSnapshotStore | None:
        return self._followed.snapshots if self._followed is not None else None

    @property
    def live(self) -> bool:
        """Whether the run is running, or its last records have not been taken yet."""
        return not self.ended

    @property
    def ended(self) -> bool:
        if self._followed is not None:
            return self._finished and (self._followed.ended or self._followed.waiting)
        return self._finished and not self._lines and self._first is None

    @property
    def follows(self) -> bool:
        """Whether the journal is followed, even after the kernel's last line."""
        return self._followed is not None or not self._finished

    def finish(self) -> None:
        """Record that the kernel will write no more lines."""
        self._finished = True
        self._notify()

    def put(self, line: bytes) -> None:
        """Append a line, on the kernel's thread."""
        if self._followed is None:
            self._overflowed = self._overflowed or len(self._lines) == self._lines.maxlen
            self._lines.append(line)
            self._notify()

    def listen(self, listener: Listener) -> bool:
        """Call the listener for each line, on the kernel's thread or the follower's."""
        self._notify = listener
        return self._followed is None or self._followed.listen(listener)

    def take(self, seconds: float) -> list[dict[str, Any]]:
        if self._followed is not None:
            self.error, self.damage = self._followed.error, self._followed.damage
            return self._followed.take(seconds)
        if self._first is not None:
            records = self._first.take(seconds)
            self._last_seq = records[-1]["seq"] if records else self._last_seq
            if self._first.ended:
                self._first = None
            return records
        records = self._taken(seconds)
        too_many = self._overflowed or self._pace.too_fast(len(records)) or len(self._lines) > WAITING
        if not too_many or self.journal is None:
            return records
        self._followed = self._follow(self.journal)
        self._followed.listen(self._notify)
        self._lines.clear()
        return []  # the next view contains what was taken

    def _taken(self, seconds: float) -> list[dict[str, Any]]:
        deadline = time.perf_counter() + seconds
        records: list[dict[str, Any]] = []
        while self._lines and time.perf_counter() < deadline:
            record = json.loads(self._lines.popleft())
            if record["seq"] > self._last_seq:
                records.append(record)
                self._last_seq = record["seq"]
        return records

    def take_view(self) -> V | None:
        return self._followed.take_view() if self._followed is not None else None

    def record(self, seq: int) -> dict[str, Any] | None:
        return self._followed.record(seq) if self._followed is not None else None

    def close(self) -> None:
        for source in (self._first, self._followed):
            if source is not None:
                source.close()


def _follow(journal: Path) -> RecordSource:
    from aeon_core.journal.listing import Awaited
    from aeon_tui.sources.journal import FollowedSource

    return FollowedSource(Awaited(journal, journal.parent), fast=True)
