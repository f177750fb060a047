"""The only writer of a journal: whole lines, one `write` each, under an exclusive lock (Decision 3; core FR-037)."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from jiter import from_json
from pydantic_core import to_json

from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.lock import holder, lock, release
from aeon_core.journal.reader import is_marked
from aeon_core.journal.records import Record, TextRecord
from aeon_core.json_safe import clean_text
from aeon_core.paths import expanded, make_runs_folder
from aeon_core.redaction import redact_json
from aeon_core.regular_file import closing_fd

LineListener = Callable[[bytes], None]
CHECKED_EVERY = 32
"""Lines between checks whether the file is still the journal; each sync checks too."""


LONG = 400
"""Strings of at least this many characters are written once."""


class TextTable:
    """The long texts that a journal already contains, by sha256."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def add(self, sha256: str) -> None:
        """Note that the journal contains this text."""
        self._known.add(sha256)

    def shorten(self, body: bytes) -> tuple[list[tuple[str, str]], bytes]:
        """Return the texts to write before this body, as (sha256, text), and the body with references."""
        new: list[tuple[str, str]] = []
        if b'"$text"' in body:
            return new, to_json(self._walk(from_json(body), new))
        parts: list[bytes] = []
        at = 0
        for start, end in _long_strings(body):
            if body[end : end + 1] != b":" and len(text := from_json(body[start:end])) >= LONG:
                parts += [body[at:start], to_json(self._reference(text, new))]
                at = end
        return new, b"".join([*parts, body[at:]]) if parts else body

    def _reference(self, text: str, new: list[tuple[str, str]]) -> dict[str, str]:
        import hashlib

        sha256 = hashlib.sha256(text.encode()).hexdigest()
        if sha256 not in self._known:
            self._known.add(sha256)
            new.append((sha256, text))
        return {"$text": sha256}

    def _walk(self, value: Any, new: list[tuple[str, str]]) -> Any:
        if isinstance(value, str):
            return value if len(value) < LONG else self._reference(value, new)
        if isinstance(value, dict):
            walked = {key: self._walk(item, new) for key, item in value.items()}
            return {"$text": None, "literal": walked} if is_marked(value) else walked
        if isinstance(value, list):
            return [self._walk(item, new) for item in value]
        return value


def _long_strings(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield the positions of JSON strings, including keys, of at least LONG bytes, found by the gaps between quotes."""
    if len(body) < LONG:
        return
    plain = body.replace(rb"\\", b"__").replace(rb"\"", b"__") if b"\\" in body else body
    start = counted = quotes = 0
    while len(plain) - start >= LONG:
        # The last quote that is near enough: those between it and the start are nearer.
        quote = plain.rfind(b'"', start, start + LONG)
        if quote >= 0:
            start = quote + 1
        elif (quote := plain.find(b'"', start)) < 0:
            return
        else:
            quotes, counted = quotes + plain.count(b'"', counted, start), start
            if quotes % 2:
                yield start - 1, quote + 1
            start = quote + 1


@dataclass
class OpenFile:
    """A journal's file, open for appending and locked, and its size so far."""

    fd: int
    seq: int = 0
    size: int = 0
    stamp: str = ""
    texts: TextTable = field(default_factory=TextTable)


def new_run_id() -> str:
    """Return a new run id: sortable by time, unique by chance."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


class JournalWriter:
    """Appends records to `<runs-dir>/<run_id>.jsonl`, or only stamps them if `path` is None.

    After each record is written, the listener gets its line as bytes, with long texts in full. The writer holds the
    file's lock until `close`. `file` continues an existing one. Raises UsageError if the file cannot be created,
    JournalError if a line cannot be written; after that nothing more is written.
    """

    def __init__(
        self, path: Path | None, run_id: str, listener: LineListener | None = None, *, file: OpenFile | None = None
    ) -> None:
        self.path: Path | None = path
        self.run_id = run_id
        self.stamp: str = ""
        """Time of the last line, the kernel's clock."""
        self.redact: Callable[[bytes], bytes] = redact_json
        """Puts tokens in place of the secrets in the body of a record."""
        if file is None and path is not None:
            file = OpenFile(_create(path))
        self._run = json.dumps(run_id)
        self._listener = listener
        self._texts = file.texts if file is not None else TextTable()
        self._second = -1
        self._day_time = ""
        self._broken: str | None = None
        self._fd = file.fd if file is not None else None
        # One value, since an interrupt may come between two assignments.
        self._end = (file.seq, file.size) if file is not None else (0, 0)
        self._appending = False
        self._listed = False
        self.body: bytes = b""
        """The body of the record appended last, as one JSON value with long texts in full."""
        self.interrupted: bool = False
        """Whether a listener raised KeyboardInterrupt. It is not passed on, since the record is already written."""
        self.listening: bool = False
        """Whether the listener is at work, which may raise KeyboardInterrupt."""
        self.stamp = file.stamp if file is not None and file.stamp else self.tick()

    @property
    def seq(self) -> int:
        """The seq of the next line."""
        return self._end[0]

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
        """Write one record, after the long texts that it is the first to contain; return its `seq`.

        The first record of a journal keeps its long texts: `run_started` is its first line.
        """
        if self._broken is not None:
            raise JournalError(self._broken)
        if self._appending:
            self._undo()
        self._appending = True
        self.body = body = self.redact(record.body()) if record.raw else record.body()
        texts, short = self._texts.shorten(body) if self.seq else ([], body)
        for sha256, text in texts:
            self._line(TextRecord.tag, whole := TextRecord(sha256=sha256, text=text).body(), whole)
        seq = self._line(record.tag, short, body)
        self._appending = False
        return seq

    def _undo(self) -> None:
        """Undo what an interrupt left of the previous record: part of a line, texts that only seem to be written."""
        self._texts = TextTable()
        if self._fd is not None:
            try:
                os.ftruncate(self._fd, self._end[1])
            except OSError as error:
                raise self._stopped(f"cannot be written: {error.strerror}") from None

    def _line(self, tag: str, short: bytes, full: bytes) -> int:
        seq, size = self._end
        envelope = (
            f'{{"v":1,"seq":{seq},"ts":"{self.tick()}","run":{self._run},"type":"{tag}"{"," if len(short) > 2 else ""}'
        ).encode()
        if self._fd is not None:
            line = envelope + short[1:] + b"\n"
            self._write(line)
            size += len(line)
        self._end = (seq + 1, size)
        if self._listener is not None:
            self.listening = True
            try:
                self._listener(envelope + full[1:])
            except KeyboardInterrupt:
                self.interrupted = True
            finally:
                self.listening = False
        return seq

    def _write(self, line: bytes) -> None:
        assert self._fd is not None
        try:
            written = os.write(self._fd, line)
            if written != len(line):
                self._finish(line, written)
        except OSError as error:
            raise self._stopped(f"cannot be written: {error.strerror}") from None
        if self._end[0] % CHECKED_EVERY == CHECKED_EVERY - 1:
            self._check(self._end[1] + len(line))

    def sync(self) -> None:
        """Wait until all lines are on disk. Raises JournalError if that fails."""
        if self._fd is None or self._broken is not None:
            return
        self._check(self._end[1])
        try:
            if sys.platform == "darwin":
                os.fsync(self._fd)  # it has no fdatasync
            else:
                os.fdatasync(self._fd)
            if not self._listed and self.path is not None:
                sync_folder(self.path.parent)
                self._listed = True
        except OSError as error:
            raise self._stopped(f"cannot be synced to disk: {error.strerror}; its last lines may be lost") from None

    def location(self) -> Path | None:
        """Return where the file is now, since it may have been moved. None if it was deleted or cannot be found."""
        if self._fd is None or self.path is None:
            return self.path
        found = os.fstat(self._fd)
        for place in chain((self.path,), _path_of(self._fd)):
            try:
                named = place.stat()
            except OSError:
                continue
            if os.path.samestat(named, found):
                return place
        return None

    def _check(self, size: int) -> None:
        """Raise JournalError if what is written would be lost: the file is gone, or is not what was written."""
        assert self._fd is not None
        assert self.path is not None
        found = os.fstat(self._fd)
        if found.st_nlink == 0:
            raise self._stopped("was deleted")
        if found.st_size != size:
            raise self._stopped(f"was changed by something else: it has {found.st_size} bytes, but {size} were written")
        try:
            named = self.path.stat()
        except OSError:
            # Its folder was moved: the lines go with it.
            return
        if not os.path.samestat(named, found):
            raise self._stopped("was replaced by another file")

    def _stopped(self, why: str) -> JournalError:
        self._broken = f"the journal {str(self.path)!r} {why}"
        return JournalError(self._broken)

    def _finish(self, line: bytes, written: int) -> None:
        """Write the rest of a line that was cut short; if that fails too, remove the part and give the reason."""
        assert self._fd is not None
        try:
            while written < len(line):
                more = os.write(self._fd, line[written:])
                if not more:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                written += more
        except OSError:
            os.ftruncate(self._fd, self._end[1])
            raise

    def close(self) -> None:
        """Release file and lock. A file into which nothing could be written is removed."""
        if self._fd is not None:
            if self.seq == 0 and self.path is not None:
                with suppress(OSError):
                    self.path.unlink()
            try:
                release(self._fd)
            except OSError as error:
                # What must be on disk was synced: the run keeps its result.
                logger.warning("the journal %r may lack its last lines: %s", str(self.path), error.strerror)
            self._fd = None
            self._broken = "the journal is closed"


def _path_of(fd: int) -> Iterator[Path]:
    """Yield the current path of an open file, if the system can tell it."""
    with suppress(OSError, ValueError):
        if sys.platform == "darwin":
            yield Path(os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")))
        else:
            yield Path(f"/proc/self/fd/{fd}").readlink()


def _create(path: Path) -> int:
    try:
        make_runs_folder(path.parent)
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        if path.parent.is_dir():
            what = "is a folder; name a file in it" if path.is_dir() else "already exists; choose another file"
            raise UsageError(f"the journal {str(path)!r} {what}") from None
        raise UsageError(f"the runs directory {str(path.parent)!r} is not a folder; choose another") from None
    except OSError as error:
        raise UsageError(
            f"cannot write to the runs directory {str(path.parent)!r}: {error.strerror}; choose another"
        ) from None
    try:
        locked = lock(fd)
    except OSError as error:
        path.unlink()
        os.close(fd)
        raise UsageError(
            f"cannot lock journals in the runs directory {str(path.parent)!r}: {error.strerror}; choose another"
        ) from None
    if not locked:
        owner = holder(fd)
        os.close(fd)
        raise UsageError(
            f"the journal {str(path)!r} was locked by {owner} as soon as it was created; choose another file"
        )
    return fd


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to disk; otherwise a new file may be lost. Raises OSError if the disk fails.

    A folder that was moved, cannot be read, or whose file system does not support this, is skipped.
    """
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    with closing_fd(fd):
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise


def open_journal(
    journal: Path | str | Literal[False] | None, runs_dir: Callable[[], Path], listener: LineListener | None
) -> JournalWriter:
    """Return the writer of a new run: `journal` is its file, None puts it in `runs_dir()`, False writes none."""
    if journal is False:
        return JournalWriter(None, new_run_id(), listener)
    if journal is not None:
        path = expanded(journal, "the journal")
        if not path.name:
            raise UsageError(f"the journal is {str(journal)!r}; expected the path of a file")
        return JournalWriter(path, clean_text(path.stem), listener)
    run_id = new_run_id()
    return JournalWriter(runs_dir() / f"{run_id}.jsonl", run_id, listener)


logger: logging.Logger = logging.getLogger("aeon")


def as_dicts(on_record: Callable[[dict[str, Any]], None] | None) -> LineListener | None:
    """Return a listener that passes each line on as a dict."""
    return None if on_record is None else lambda line: on_record(json.loads(line))


def fan_out(listeners: Iterable[LineListener | None]) -> LineListener | None:
    """Return one listener for all of them, None if there are none; a failure is logged, each listener's first one.

    It raises KeyboardInterrupt if one of them did, after all of them got the line.
    """
    present = [listener for listener in listeners if listener is not None]
    if not present:
        return None
    failed: set[int] = set()

    def listen(line: bytes) -> None:
        interrupt: KeyboardInterrupt | None = None
        for place, listener in enumerate(present):
            try:
                listener(line)
            except KeyboardInterrupt as error:
                interrupt = error
            except Exception:
                if place not in failed:
                    logger.exception("a record listener failed; the run continues")
                failed.add(place)
        if interrupt is not None:
            raise interrupt

    return listen
