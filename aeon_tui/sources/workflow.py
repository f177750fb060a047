"""Where a workflow's screen gets its records from: the workflow of this process, or a transcript."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aeon_core.errors import AeonError
from aeon_core.journal.follow import Follower, Standing
from aeon_core.journal.reader import unreadable

Record = dict[str, Any]
CAPACITY = 20_000
"""Lines that are kept for the screen at most; where more wait, the transcript is read instead."""
AHEAD = 2_000
POLL_SECONDS = 0.05


class Taken(NamedTuple):
    """Records in order; with `anew` they begin with the first, and what was taken before counts no more."""

    records: list[Record]
    anew: bool = False


class WorkflowSource(Protocol):
    """Records of one workflow. Drained by the screen, never waited for."""

    error: AeonError | None
    """Why no more can be read."""

    @property
    def path(self) -> Path | None:
        """The transcript; None where there is none."""

    @property
    def damage(self) -> list[str]:
        """What could not be read, with line numbers."""

    @property
    def live(self) -> bool:
        """Whether a process writes the transcript."""

    @property
    def reading(self) -> bool:
        """Whether there is more to be taken of what was there at first."""

    def take(self, seconds: float) -> Taken:
        """Return the next records there are, after at most about that time."""

    def close(self) -> None:
        """Read no more."""


class TranscriptSource:
    """A transcript, read on a thread of its own from its beginning, and followed as another process writes on it."""

    def __init__(self, path: Path) -> None:
        self.error: AeonError | None = None
        self.damage: list[str] = []
        self.path: Path | None = path
        self._standing: Standing = "reading"
        self._ready: deque[tuple[int, Record]] = deque()
        self._generation = 0
        self._closed = threading.Event()
        threading.Thread(target=self._work, args=(path,), name="aeon-transcript-source", daemon=True).start()

    @property
    def live(self) -> bool:
        """Whether a process writes the transcript."""
        return self._standing == "running"

    @property
    def reading(self) -> bool:
        """Whether there is more to be taken."""
        return self.error is None and (bool(self._ready) or self._standing in ("reading", "awaited"))

    def take(self, seconds: float) -> Taken:
        """Return the next records there are, after at most about that time."""
        deadline, ready = time.perf_counter() + seconds, self._ready
        records: list[Record] = []
        anew = False
        while ready and time.perf_counter() < deadline:
            generation, record = ready.popleft()
            if generation != self._generation:
                self._generation, anew = generation, True
                records = []
            records.append(record)
        return Taken(records, anew)

    def close(self) -> None:
        """Follow no more."""
        self._closed.set()

    def _work(self, path: Path) -> None:
        follower = Follower(path)
        try:
            while not self._closed.is_set():
                for each in follower.read():
                    self._hand_over(each)
                self.damage = list(follower.damage)
                self._standing = follower.standing
                self._closed.wait(POLL_SECONDS)
        except (AeonError, OSError) as error:
            self.error = unreadable(path, error) if isinstance(error, OSError) else error
            self._standing = "gone"
        finally:
            follower.close()

    def _hand_over(self, followed: tuple[int, Record]) -> None:
        while len(self._ready) >= AHEAD and not self._closed.is_set():
            self._closed.wait(POLL_SECONDS)
        self._ready.append(followed)


class LiveWorkflowSource:
    """The lines of this process's workflow. `put` only appends: a slow screen never slows the work."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.error: AeonError | None = None
        self.path: Path | None = None
        self._lines: deque[bytes | Record] = deque(maxlen=capacity)
        self._last_seq = -1
        self._lost = self._finished = False
        self._followed: TranscriptSource | None = None

    @property
    def damage(self) -> list[str]:
        """What of the transcript could not be read, where it had to be."""
        return self._followed.damage if self._followed is not None else []

    @property
    def live(self) -> bool:
        """Whether the workflow goes on, or has ended and is not shown to its end yet."""
        return not self._finished or bool(self._lines) or (self._followed is not None and self._followed.reading)

    @property
    def reading(self) -> bool:
        """Whether a transcript that lines were lost of is being read."""
        return self._followed is not None and self._followed.reading

    def put(self, line: bytes | Record) -> None:
        """Take a line from the workflow's thread."""
        if self._followed is None:
            self._lost = self._lost or len(self._lines) == self._lines.maxlen
            self._lines.append(line)

    def finish(self) -> None:
        """Say that nothing more is put."""
        self._finished = True

    def take(self, seconds: float) -> Taken:
        """Return the next records there are, after at most about that time."""
        if self._lost and self._followed is None and self.path is not None:
            self._followed = TranscriptSource(self.path)
            self._lines.clear()
            return Taken([], anew=True)
        if self._followed is not None:
            return self._followed.take(seconds)
        deadline = time.perf_counter() + seconds
        records: list[Record] = []
        while self._lines and time.perf_counter() < deadline:
            line = self._lines.popleft()
            record: Record = json.loads(line) if isinstance(line, bytes) else line
            if record["seq"] > self._last_seq:
                self._last_seq = record["seq"]
                records.append(record)
        return Taken(records)

    def close(self) -> None:
        """Read no more from the transcript."""
        if self._followed is not None:
            self._followed.close()
