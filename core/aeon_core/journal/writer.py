"""The one writer of a journal: whole lines, one `write` each, under an exclusive lock (Decision 3; core FR-037)."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.records import Record, TextRecord
from aeon_core.journal.texts import TextTable
from aeon_core.redaction import redact_json

LineListener = Callable[[bytes], None]


def new_run_id() -> str:
    """Return a fresh run id: sortable by time, unique by chance."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


class JournalWriter:
    """Appends records to `<runs-dir>/<run_id>.jsonl`, or only stamps them where `path` is None.

    A listener gets every record's line as bytes, in full (long texts are not replaced), after it was written. The
    writer holds the lock on the file until `close`. Raises UsageError when the file cannot be created, JournalError
    when a line cannot be written; after that nothing more is written.
    """

    def __init__(self, path: Path | None, run_id: str, listener: LineListener | None = None) -> None:
        self.path = path
        self.run_id = run_id
        self.seq = 0
        """Of the next line."""
        self.stamp = ""
        """Time of the last line, the kernel's clock."""
        self.redacts = False
        """Whether values that look like keys may come with a record: outcomes have none, what a caller gives may."""
        self._run = json.dumps(run_id)
        self._listener = listener
        self._texts = TextTable()
        self._second = -1
        self._day_time = ""
        self._broken: str | None = None
        self._fd = _create(path) if path is not None else None
        self.tick()

    def tick(self) -> str:
        """Read the clock and return it as the current stamp (ISO 8601, UTC, microseconds)."""
        micros = time.time_ns() // 1000
        second, fraction = divmod(micros, 1_000_000)
        if second != self._second:
            self._second = second
            self._day_time = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        self.stamp = f"{self._day_time}.{fraction:06d}Z"
        return self.stamp

    def append(self, record: Record) -> int:
        """Write one record (and before it the long texts that it is the first to hold); return its `seq`.

        The first record of a journal is written as it is: `run_started` is its first line.
        """
        body = redact_json(record.body()) if self.redacts else record.body()
        texts, short = self._texts.shorten(body) if self.seq else ([], body)
        for sha256, text in texts:
            self._line(TextRecord.tag, whole := TextRecord(sha256=sha256, text=text).body(), whole)
        return self._line(record.tag, short, body)

    def _line(self, tag: str, short: bytes, full: bytes) -> int:
        seq = self.seq
        envelope = (
            f'{{"v":1,"seq":{seq},"ts":"{self.tick()}","run":{self._run},"type":"{tag}"{"," if len(short) > 2 else ""}'
        ).encode()
        if self._fd is not None:
            self._write(envelope + short[1:] + b"\n")
        self.seq = seq + 1
        if self._listener is not None:
            self._listener(envelope + full[1:])
        return seq

    def _write(self, line: bytes) -> None:
        if self._broken is not None:
            raise JournalError(self._broken)
        assert self._fd is not None
        try:
            written = os.write(self._fd, line)
            if written != len(line):
                self._finish(line, written)
        except OSError as error:
            self._broken = f"the journal {str(self.path)!r} cannot be written: {error.strerror}; the run stops here"
            raise JournalError(self._broken) from None

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
        if self._fd is not None and self._broken is None:
            os.fdatasync(self._fd)

    def _finish(self, line: bytes, written: int) -> None:
        """Write the rest of a line that was cut short; take back the part where that fails too, with its reason."""
        assert self._fd is not None
        try:
            while written < len(line):
                more = os.write(self._fd, line[written:])
                if not more:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                written += more
        except OSError:
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
            raise

    def close(self) -> None:
        """Release file and lock. A file in which nothing could be written is removed."""
        if self._fd is not None:
            if self.seq == 0 and self.path is not None:
                self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = None
            self._broken = "the journal is closed"


def _create(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        if path.exists() and path.parent.is_dir():
            raise UsageError(f"the journal {str(path)!r} exists already; name another file") from None
        raise UsageError(f"the runs directory {str(path.parent)!r} is not a folder; name another one") from None
    except OSError as error:
        raise UsageError(
            f"the runs directory {str(path.parent)!r} cannot be written: {error.strerror}; name another one"
        ) from None
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd
