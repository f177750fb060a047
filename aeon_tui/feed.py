"""Where a screen's records come from: a run in this process, or a journal. Both are drained, never waited for."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from aeon_core.errors import AeonError, JournalError

Records = Iterator[dict[str, Any]]
Reader = Callable[[Path, list[str]], Records]
"""Yields the records of a journal, and appends to the list what cannot be read."""
POLL_SECONDS = 0.5
CAPACITY = 20_000
"""Lines that may wait for the screen before it reads the journal instead."""


class Feed(Protocol):
    """Records of one run, in order."""

    error: AeonError | None
    """Why no more can be read."""
    damage: list[str]
    """What could not be read, with line numbers."""

    @property
    def live(self) -> bool:
        """Whether a process is writing the run."""

    @property
    def ended(self) -> bool:
        """Whether all there is has been taken, and no more comes."""

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return the next records there are, after at most about that time."""

    def close(self) -> None:
        """Read no more."""


def read_journal(path: Path, damage: list[str]) -> Records:
    """Yield a journal's records, long texts in full."""
    from aeon_core.journal.reader import read_records

    return read_records(path, plans=False, damage=damage)


def _is_being_written(path: Path) -> bool:
    from aeon_core.journal.summary import is_being_written

    return is_being_written(path)


class JournalFeed:
    """The records of a journal file after one `seq`, read on a thread of its own as fast as they are taken.

    With `follow`, it reads on as long as another process writes.
    """

    def __init__(
        self, path: Path, after: int = -1, read: Reader = read_journal, *, follow: bool = False, ahead: int = 2_000
    ) -> None:
        self.error: AeonError | None = None
        self.damage: list[str] = []
        self.live = False
        self._path, self._after, self._read, self._follow = path, after, read, follow
        self._ready: queue.Queue[dict[str, Any]] = queue.Queue(ahead)
        self._closed = threading.Event()
        self._finished = threading.Event()
        threading.Thread(target=self._work, name="aeon-journal-feed", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether all there was has been taken."""
        return self._finished.is_set() and self._ready.empty()

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return the next records there are, after at most about that time."""
        deadline = time.perf_counter() + seconds
        records: list[dict[str, Any]] = []
        while time.perf_counter() < deadline:
            try:
                records.append(self._ready.get_nowait())
            except queue.Empty:
                break
        return records

    def close(self) -> None:
        """Read no more."""
        self._closed.set()

    def _work(self) -> None:
        try:
            while not self._closed.is_set():
                # Asked before reading: what a writer leaves behind in its last moment is not missed.
                self.live = self._follow and _is_being_written(self._path)
                began = time.perf_counter()
                self._read_on()
                if not self.live:
                    break
                self._closed.wait(max(POLL_SECONDS, 4 * (time.perf_counter() - began)))
        except AeonError as error:
            self.error = error
        except OSError as error:
            self.error = JournalError(f"the journal {str(self._path)!r} cannot be read: {error.strerror}")
        finally:
            self.live = False
            self._finished.set()

    def _read_on(self) -> None:
        damage: list[str] = []
        for record in self._read(self._path, damage):
            if self._closed.is_set():
                return
            if record["seq"] > self._after:
                self._hand_over(record)
                self._after = record["seq"]
        self.damage = damage

    def _hand_over(self, record: dict[str, Any]) -> None:
        while not self._closed.is_set():
            try:
                self._ready.put(record, timeout=0.2)
                return
            except queue.Full:
                continue


class LiveFeed:
    """Lines as the kernel writes them. `put` only appends: a slow screen never slows the run.

    When more lines wait than there is room for, the oldest are dropped here and read from the journal instead, on from
    the last record that was taken.
    """

    def __init__(self, journal: Path, capacity: int = CAPACITY, read: Reader = read_journal) -> None:
        self.error: AeonError | None = None
        self.damage: list[str] = []
        self._journal, self._read = journal, read
        self._lines: deque[bytes] = deque(maxlen=capacity)
        self._held: dict[str, Any] | None = None
        self._last_seq = -1
        self._catching_up: JournalFeed | None = None
        self._finished = False

    @property
    def live(self) -> bool:
        """Whether the run goes on, or has ended and is not shown to its end yet."""
        return not self.ended

    @property
    def ended(self) -> bool:
        """Whether all there is has been taken, and no more comes."""
        return self._finished and not self._lines and self._catching_up is None

    def finish(self) -> None:
        """Say that the kernel puts no more."""
        self._finished = True

    def put(self, line: bytes) -> None:
        """Take a line from the kernel's thread."""
        self._lines.append(line)

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return the next records there are, after at most about that time."""
        deadline = time.perf_counter() + seconds
        records: list[dict[str, Any]] = []
        if self._catching_up is not None:
            records = self._catching_up.take(seconds)
            if records:
                self._last_seq = records[-1]["seq"]
            if not self._catching_up.ended:
                return records
            self._catching_up = None
            # What the journal does not hold either is nowhere: go on with what is there.
            self._append(records, self._held)
            self._held = None
        while self._lines and time.perf_counter() < deadline:
            record = json.loads(self._lines.popleft())
            if record["seq"] > self._last_seq + 1:
                self._held = record
                self._catching_up = JournalFeed(self._journal, self._last_seq, self._read)
                break
            self._append(records, record)
        return records

    def _append(self, records: list[dict[str, Any]], record: dict[str, Any] | None) -> None:
        if record is not None and record["seq"] > self._last_seq:
            records.append(record)
            self._last_seq = record["seq"]

    def close(self) -> None:
        """Read no more from the journal."""
        if self._catching_up is not None:
            self._catching_up.close()
