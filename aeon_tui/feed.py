"""Where a screen's records come from: a run in this process, or a journal. Both are drained, never waited for."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aeon_core.errors import AeonError

if TYPE_CHECKING:
    from aeon_core.journal.view import RunView

Records = Iterator[dict[str, Any]]
Reader = Callable[[Path, list[str]], Records]
"""Yields the records of a journal, and appends to the list what cannot be read."""
CAPACITY = 20_000
"""Lines that may wait for the screen before it reads the journal instead."""


class Feed(Protocol):
    """Records of one run, in order, or views of what was folded elsewhere."""

    error: AeonError | None
    """Why no more can be read."""
    damage: list[str]
    """What could not be read, with line numbers."""

    @property
    def journal(self) -> Path | None:
        """The file that holds the records; None where there is none."""

    @property
    def notice(self) -> str:
        """What has become of the process that writes the run, or of its file, in words; mostly nothing."""

    @property
    def waiting(self) -> bool:
        """Whether the run is not there yet."""

    @property
    def reading(self) -> str:
        """What is waited for or being read, in words; empty where nothing is, or the records say it themselves."""

    @property
    def live(self) -> bool:
        """Whether a process is writing the run."""

    @property
    def ended(self) -> bool:
        """Whether all there is has been taken, and no more comes."""

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return the next records there are, after at most about that time."""

    def take_view(self) -> RunView | None:
        """Return, once, a view that takes the place of the one folded so far; records taken later go on from it."""

    def record(self, seq: int) -> dict[str, Any] | None:
        """Return a record in full where the view leaves a part of it in the journal. Reads the file."""

    def close(self) -> None:
        """Read no more."""


class WholeViews:
    """What a feed says whose records, folded, leave nothing out."""

    notice = ""
    waiting = False
    reading = ""

    def take_view(self) -> RunView | None:
        """Return None: no view but that of the records."""
        return None

    def record(self, seq: int) -> dict[str, Any] | None:
        """Return None: the view holds all there is."""
        del seq
        return None


def failure(journal: Path | None, error: AeonError | OSError) -> AeonError:
    """Return why no more of a journal can be read."""
    from aeon_core.journal.reader import unreadable

    return unreadable(journal, error) if isinstance(error, OSError) else error


def read_journal(path: Path, damage: list[str]) -> Records:
    """Yield a journal's records, long texts in full."""
    from aeon_core.journal.reader import read_records

    return read_records(path, plans=False, damage=damage)


class JournalFeed(WholeViews):
    """The records of a journal file after one `seq`, read on a thread of its own as fast as they are taken."""

    def __init__(self, path: Path, after: int = -1, read: Reader = read_journal, *, ahead: int = 2_000) -> None:
        self.error: AeonError | None = None
        self.damage: list[str] = []
        self.live = False
        self.journal = path
        self._after, self._read = after, read
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
            self._read_all()
        except (AeonError, OSError) as error:
            self.error = failure(self.journal, error)
        finally:
            self._finished.set()

    def _read_all(self) -> None:
        damage: list[str] = []
        for record in self._read(self.journal, damage):
            if self._closed.is_set():
                return
            if record["seq"] > self._after:
                self._hand_over(record)
        self.damage = damage

    def _hand_over(self, record: dict[str, Any]) -> None:
        while not self._closed.is_set():
            try:
                self._ready.put(record, timeout=0.2)
                return
            except queue.Full:
                continue


class LiveFeed(WholeViews):
    """Lines as the kernel writes them. `put` only appends: a slow screen never slows the run.

    When more lines wait than there is room for, the oldest are dropped here and read from the journal instead, on from
    the last record that was taken. `first` are records that stand before those lines.
    """

    def __init__(
        self, journal: Path, capacity: int = CAPACITY, read: Reader = read_journal, first: JournalFeed | None = None
    ) -> None:
        self.error: AeonError | None = None
        self.damage: list[str] = []
        self.journal = journal
        self._read = read
        self._lines: deque[bytes] = deque(maxlen=capacity)
        self._held: dict[str, Any] | None = None
        self._last_seq = -1
        self._catching_up = first
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
                self._catching_up = JournalFeed(self.journal, self._last_seq, self._read)
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
