"""Reads the journals of two runs to compare them, repeatedly while a run is live; all on a thread (Decision 5)."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from aeon_core.errors import AeonError
from aeon_core.journal.summary import is_being_written, run_id_of
from aeon_tui.sources.base import failure
from aeon_tui.sources.journal import tail_view, whole_view
from aeon_widgets.compare_rows import ComparedRun, Comparison, compare

LONG = 16 * 1024 * 1024
"""Bytes from which on a journal is compared by its end."""
REFRESH_SECONDS = 1.0
"""Seconds between checks whether a journal has grown."""
RESTING = 3
"""After a journal was read, it is left alone for so many times as long as that took."""
FROM_ITS_END = "a long journal: only its end; earlier passes, repairs and outputs are missing"


class ComparedRuns(NamedTuple):
    """Two runs as they were read, and their comparison."""

    left: ComparedRun
    right: ComparedRun
    comparison: Comparison


@dataclass
class _Journal:
    """One of the journals, and what was last read of it."""

    path: Path
    run: ComparedRun = field(default_factory=lambda: ComparedRun(""))
    _read_as: object = None
    _not_before: float = field(default=0.0)

    def catch_up(self) -> bool:
        """Read the journal where it is another than when it was last read; return whether it was read."""
        version = _version(self.path)
        if version == self._read_as or time.monotonic() < self._not_before:
            return False
        began = time.monotonic()
        self.run, self._read_as = read(self.path), version
        ended = time.monotonic()
        self._not_before = ended + RESTING * (ended - began)
        return True


class ComparisonReader:
    """Compares two runs, and again when a journal has changed or the runs were exchanged."""

    def __init__(self, left: Path, right: Path) -> None:
        self._journals = _Journal(left), _Journal(right)
        self._swapped = False
        self._shown: bool | None = None
        self._reading = threading.Lock()

    def swap(self) -> None:
        """Exchange the runs."""
        self._swapped = not self._swapped

    def again(self) -> ComparedRuns | None:
        """Return the runs as they are now; None if nothing has changed, or another thread is reading them.

        Reads files: called from a thread.
        """
        if not self._reading.acquire(blocking=False):
            return None
        try:
            return self._compared()
        finally:
            self._reading.release()

    def _compared(self) -> ComparedRuns | None:
        changed = [journal.catch_up() for journal in self._journals]
        if self._shown is self._swapped and not any(changed):
            return None
        self._shown = self._swapped
        left, right = self._journals[::-1] if self._shown else self._journals
        return ComparedRuns(left.run, right.run, compare(left.run, right.run))


def read(path: Path) -> ComparedRun:
    """Return the run of a journal as far as it can be read, of a long one from its end alone."""
    name = run_id_of(str(path))
    try:
        view, whole = tail_view(path) if path.stat().st_size >= LONG else (whole_view(path), True)
    except (AeonError, OSError) as error:
        if _is_begun(path):
            return ComparedRun(name)
        return ComparedRun(name, problem=failure(path, error).message)
    if view.status == "running" and not is_being_written(path):
        view.status = "interrupted"
    elif view.status == "running" and view.asked:
        view.status = "waiting for a decision"
    return ComparedRun(name, view, note="" if whole else FROM_ITS_END)


def _is_begun(path: Path) -> bool:
    """Return whether a process has made the journal and not yet written anything in it."""
    try:
        return is_being_written(path) and not path.stat().st_size
    except OSError:
        return False


def _version(path: Path) -> tuple[int, int, bool]:
    """Return what changes when there is more to read of a journal."""
    try:
        now = path.stat()
        return now.st_size, now.st_mtime_ns, is_being_written(path)
    except OSError:
        return -1, -1, False
