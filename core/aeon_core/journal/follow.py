"""Follows a journal that another process writes, reading only what is new since the last whole line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from aeon_core.errors import UsageError, reason_of
from aeon_core.journal.lock import may_be_locked
from aeon_core.journal.reader import (
    ENDS,
    STATE_TYPES,
    FindTexts,
    JournalLines,
    RecordReader,
    is_known_beginning,
    no_journal,
    open_journal,
    superseded_in,
    unreadable,
    why_no_line,
)

_SIGN = 200
"""Bytes at the start of a line that identify it: its envelope, including its timestamp."""

Followed = tuple[int, dict[str, Any]]
"""A generation and a record. In a new generation the records start over, and those of the last one no longer count."""
FollowStatus = Literal["awaited", "reading", "running", "ended", "interrupted", "gone"]
"""A run's status: no record yet; more may be left to read; a process writes it; it has ended; its process ended without
finishing it; its file was deleted or moved.
"""


class FollowPosition(NamedTuple):
    """How far a journal has already been read: up to the end of the line before `seq`."""

    lines: int
    last: int
    """Where the last of these lines begins, in bytes."""
    end: int
    seq: int
    gone: list[range]
    """The seqs superseded by then, as `superseded_in` returns them."""
    find_texts: FindTexts
    ended: bool = False
    """Whether the run had ended with these lines."""


class Follower:
    """The records of a journal as they come, whichever process writes it, and whether one does.

    Those of one generation are what `read_records` yields for the file, with plans left as written. A new generation
    begins when a resume supersedes lines that had been yielded, and when the file is replaced or rewritten. The file
    need not exist yet; one that is deleted is read to its end. `close` releases it. Not for several threads at once.
    """

    def __init__(self, path: Path, place: FollowPosition | None = None) -> None:
        self.path = path
        self._place = place
        self.size: int = 0
        """Bytes of the file at the last look."""
        self._there = self._live = self._finished = self._something_came = False
        self._generation = -1
        self._file: IO[bytes] | None = None
        self._reading: _Reading | None = None
        self._looked_at: tuple[int, int] | None = None

    @property
    def status(self) -> FollowStatus:
        """The run's status at the last `read`; the journal's lock tells whether a process writes it.

        If locks cannot be queried, a run is live until its journal says that it has ended. On a mount with
        machine-local locks, another machine's run looks as if its process had ended.
        """
        if self._reading is None or self._reading.offset == 0:
            return "awaited"
        if not self._there:
            return "gone"
        if self._live:
            return "running"
        # A writer may have come and gone since the check.
        if self._something_came:
            return "reading"
        return "ended" if self._finished else "interrupted"

    @property
    def offset(self) -> int:
        """Where the next line begins, in bytes."""
        return self._reading.offset if self._reading is not None else 0

    @property
    def damage(self) -> list[str]:
        """What cannot be read, with line numbers; of this generation."""
        return self._reading.damage if self._reading is not None else []

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def read(self) -> Iterator[Followed]:
        """Yield the records that are new since the last call.

        Raises UsageError if the file is not a journal or cannot be opened, JournalError if it cannot be read.
        """
        self._something_came = False
        try:
            if not self._look():
                return
            assert self._file is not None
            # Checked before reading, so that a writer's last lines are not missed.
            self._live = may_be_locked(self._file.fileno())
            if self._has_changed(self._file.fileno()):
                yield from self._read_on()
        except OSError as error:
            raise unreadable(self.path, error) from None

    def _look(self) -> bool:
        """Open the file that now has this name; return whether there is one to read."""
        try:
            named = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            self._there = False
            return self._file is not None
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read the journal {str(self.path)!r}: {reason_of(error)}") from None
        if self._file is None or not os.path.samestat(named, os.fstat(self._file.fileno())):
            opened = open_journal(self.path)
            self.close()
            self._file = opened
            self._begin()
        self._there = True
        return True

    def _begin(self) -> None:
        assert self._file is not None
        self._generation += 1
        self._reading = _Reading(self.path, self._file.fileno(), self._place)
        self._finished = self._place is not None and self._place.ended
        self._place = None
        self._looked_at = None

    def _has_changed(self, fd: int) -> bool:
        """Return whether there may be something new; if lines that were read have changed, everything is."""
        status = os.fstat(fd)
        self.size = status.st_size
        if self._reading is not None and not self._reading.still_holds():
            self._begin()
        looked_at = (status.st_size, status.st_mtime_ns)
        changed, self._looked_at = looked_at != self._looked_at, looked_at
        return changed

    def _read_on(self) -> Iterator[Followed]:
        assert self._reading is not None
        while True:
            for record in self._reading.records(self.size):
                if record["type"] in STATE_TYPES:
                    self._finished = record["type"] in ENDS
                self._something_came = True
                yield self._generation, record
            if not self._reading.overtaken:
                break
            self._begin()
        self._reading.check(self.size)


class _Reading:
    """How far one generation has been read."""

    def __init__(self, path: Path, fd: int, place: FollowPosition | None) -> None:
        self.damage: list[str] = []
        self.overtaken = False
        """Whether a line has come that supersedes others."""
        self._path, self._fd = path, fd
        self._known = place is not None
        self._last = (0, b"")
        if place is None:
            self._gone = superseded_in(fd)
            self._lines = JournalLines(fd, self.damage)
            self._records = RecordReader(self.damage, self._gone)
        else:
            self._gone = place.gone
            self._last = (place.last, os.pread(fd, min(_SIGN, place.end - place.last - 1), place.last))
            self._lines = JournalLines(fd, self.damage, offset=place.end, number=place.lines)
            self._records = RecordReader(
                self.damage, place.gone, number=place.lines, expected=place.seq, find_texts=place.find_texts
            )

    @property
    def offset(self) -> int:
        """Where the next line begins, in bytes."""
        return self._lines.offset

    def still_holds(self) -> bool:
        """Return whether the last line that was read is still in place."""
        start, sign = self._last
        return os.pread(self._fd, len(sign), start) == sign

    def records(self, until: int) -> Iterator[dict[str, Any]]:
        """Yield the records of whole lines that begin before an offset; stop at one that supersedes others."""
        for line in self._lines.read(until):
            self._last = (self._lines.offset - len(line) - 1, line[:_SIGN])
            self._known = self._known or is_known_beginning(self._path, self._lines.number, line)
            record = self._records.read(self._lines.number, line)
            if record is None:
                continue
            if record["type"] == "run_resumed" and self._supersedes(record):
                self.overtaken = True
                return
            yield record

    def _supersedes(self, record: dict[str, Any]) -> bool:
        """Return whether a resume that was unknown when this generation began supersedes lines."""
        first = record.get("continues_at")
        if not isinstance(first, int) or first >= record["seq"] or range(first, record["seq"]) in self._gone:
            return False
        return superseded_in(self._fd) != self._gone

    def check(self, size: int) -> None:
        """Raise UsageError if a file that nobody writes holds no journal line; an empty one may become a journal."""
        if not self._known and size > 0 and not may_be_locked(self._fd):
            raise no_journal(self._path, why_no_line(self._fd) if self._lines.number == 0 else None)
