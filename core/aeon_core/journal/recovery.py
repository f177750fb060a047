"""Continuing the journal of another process: locked, checked as a whole, its torn last line set aside (Decision 3)."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from aeon_core.errors import UsageError, reason_of
from aeon_core.journal.lock import holder, is_locked, lock
from aeon_core.journal.reader import BEGINNINGS, VERSION, read_records
from aeon_core.journal.records import RECORD, RECORDS, JournalRecovered
from aeon_core.journal.writer import JournalWriter, LineListener, OpenFile, TextTable, sync_folder
from aeon_core.regular_file import closing_fd
from aeon_core.suggest import first_problem, shown


def sound_records(path: Path, texts: TextTable | None = None) -> Iterator[dict[str, Any]]:
    """Yield the records of a journal in order, long texts in full; a torn last line is not a record.

    Its texts are added to `texts`. Raises UsageError, with the line number, at the first line that is broken, missing,
    belongs to another run, or was written by a newer version; and if the file is not a journal.
    """
    damage: list[str] = []
    checked = _Lines(texts if texts is not None else TextTable())
    for record in read_records(path, damage=damage, check=checked.fault):
        if damage:
            break
        yield record
    if damage:
        raise UsageError(f"the journal {str(path)!r} is damaged: {damage[0]}; see what is left with `aeon-tui show`")


class _Lines:
    """What is known about the previous lines."""

    def __init__(self, texts: TextTable) -> None:
        self._texts = texts
        self._run: Any = None

    def fault(self, record: dict[str, Any]) -> str | None:
        """Return what is wrong with a record, None if nothing is."""
        if record.get("v") != VERSION:
            version = shown(record.get("v"))
            return f"its version is {version}, but this Aeon supports {VERSION}; use the Aeon that wrote it"
        if record["seq"] == 0:
            self._run = record.get("run")
            return _beginning_fault(record)
        if record.get("run") != self._run or not isinstance(record.get("ts"), str):
            return f"it is not a line of the run {shown(self._run)}"
        return self._text_fault(record) if record["type"] == "text" else _fault_of(record)

    def _text_fault(self, record: dict[str, Any]) -> str | None:
        sha256, text = record.get("sha256"), record.get("text")
        if not isinstance(text, str) or hashlib.sha256(text.encode()).hexdigest() != sha256:
            return "its text does not match its sha256"
        self._texts.add(sha256)
        return None


def _beginning_fault(record: dict[str, Any]) -> str | None:
    if record["type"] not in BEGINNINGS:
        return f"it is {shown(record['type'])}; expected {BEGINNINGS[0]!r}"
    if not isinstance(record.get("run"), str) or not isinstance(record.get("ts"), str):
        return "it names no run, or no time"
    return _fault_of(record)


def _fault_of(record: dict[str, Any]) -> str | None:
    """Return what is wrong with the fields of a record; those of an unknown type are ignored."""
    if record["type"] not in RECORDS:
        return None
    try:
        RECORD.validate_python(record, extra="ignore")
    except ValidationError as error:
        return first_problem(error)
    if record["type"] == "run_resumed" and not 1 <= record["continues_at"] <= record["seq"]:
        return f"it continues from seq {record['continues_at']}, which is not before it"
    if record["type"] == "run_finished" and not 1 <= (record.get("resumes_at") or 1) <= record["seq"]:
        return f"it resumes from seq {record['resumes_at']}, which is not before it"
    if record["type"] == "approval" and record["state"] == "decided" and record.get("decision") is None:
        return "it has no decision"
    ended = record["type"] == "llm" and record["state"] == "finished"
    return "it has neither a response nor an error" if ended and not {"response", "error"} & record.keys() else None


_CHUNK = 1024 * 1024


def reopen(
    path: Path,
    listener: LineListener | None = None,
    on_record: Callable[[dict[str, Any]], None] | None = None,
    writer: Callable[..., JournalWriter] = JournalWriter,
) -> JournalWriter:
    """Return the writer of an existing journal; it continues after the last whole line, and holds the lock.

    A torn last line is moved to `<run_id>.torn-<n>` beside the journal and reported by a `journal_recovered` record.
    `on_record` gets each existing record, long texts in full. Raises UsageError if the file is not a journal, another
    process writes it, it is damaged in the middle, or a newer Aeon wrote it.
    """
    fd = _open(path)
    try:
        if not lock(fd):
            raise _being_written(path, fd)
        _check_still_there(fd, path)
        run_id, file = _read(fd, path, on_record)
        torn = _set_aside(fd, path, file.size) if os.fstat(fd).st_size > file.size else None
    except BaseException as error:
        os.close(fd)
        if isinstance(error, OSError):
            raise _cannot_continue(path, f"it cannot be written: {error.strerror}") from None
        raise
    opened = writer(path, run_id, listener, file=file)
    if torn is not None:
        opened.append(JournalRecovered(offset=file.size, set_aside=torn))
    return opened


def make_sure_nobody_writes(path: Path) -> None:
    """Raise UsageError if another process, which it names, writes the journal, or if `reopen` could not open it.

    Changes nothing.
    """
    with closing_fd(_open(path)) as fd:
        try:
            if is_locked(fd):
                raise _being_written(path, fd)
        except OSError as error:
            raise _cannot_continue(path, f"it cannot be locked: {error.strerror}") from None


def _being_written(path: Path, fd: int) -> UsageError:
    return UsageError(f"the journal {str(path)!r} is being written by {holder(fd)}; wait until that ends, or stop it")


def _cannot_continue(path: Path, why: str) -> UsageError:
    return UsageError(f"cannot continue the journal {str(path)!r}: {why}")


def _open(path: Path) -> int:
    """Return a descriptor of a regular file: not a link, pipe or device."""
    try:
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode):
            what = "a link; use the file it points to" if stat.S_ISLNK(mode) else "not a regular file"
            raise _cannot_continue(path, f"it is {what}")
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise UsageError(f"the journal {str(path)!r} does not exist; see `aeon-tui runs`") from None
    except (OSError, ValueError) as error:
        raise _cannot_continue(path, f"it cannot be written: {reason_of(error)}") from None
    return fd


def _check_still_there(fd: int, path: Path) -> None:
    """Make sure that the locked file still has its name; it may have been replaced."""
    opened, named = os.fstat(fd), os.lstat(path)
    if not os.path.samestat(opened, named) or not stat.S_ISREG(opened.st_mode):
        raise _cannot_continue(path, "another file has just replaced it; try again")
    if opened.st_mode & 0o077:
        os.fchmod(fd, 0o600)


def _read(fd: int, path: Path, on_record: Callable[[dict[str, Any]], None] | None) -> tuple[str, OpenFile]:
    """Return the run's id, and the end of its last whole line in bytes. Raises UsageError."""
    run_id, file = "", OpenFile(fd, size=_whole_lines(fd))
    for record in sound_records(path, file.texts):
        run_id, file.seq, file.stamp = record["run"], record["seq"] + 1, record["ts"]
        if on_record is not None:
            on_record(record)
    return run_id, file


def _whole_lines(fd: int) -> int:
    """Return the end of the last line that has its newline, in bytes."""
    end = os.fstat(fd).st_size
    while end > 0:
        start = max(0, end - _CHUNK)
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _set_aside(fd: int, path: Path, offset: int) -> str:
    """Move what follows `offset` to a file of its own, synced before it is cut off; return that file's name."""
    names = (path.with_name(f"{path.stem}.torn-{number}") for number in count(1))
    kept = next(name for name in names if not os.path.lexists(name))
    with closing_fd(os.open(kept, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)) as out:
        try:
            _copy(fd, offset, out)
            os.fsync(out)
        except BaseException:
            kept.unlink()
            raise
    sync_folder(path.parent)
    os.ftruncate(fd, offset)
    return kept.name


def _copy(fd: int, offset: int, out: int) -> None:
    while chunk := os.pread(fd, _CHUNK, offset):
        offset += len(chunk)
        while chunk:
            chunk = chunk[os.write(out, chunk) :]
