"""Going on with a journal that another process began: locked, checked whole, its torn end set aside (Decision 3)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.journal.lock import holder, is_locked, lock
from aeon_core.journal.records import JournalRecovered
from aeon_core.journal.strict import sound_records
from aeon_core.journal.writer import JournalWriter, LineListener, OpenFile, sync_folder

_CHUNK = 1024 * 1024


def reopen(
    path: Path,
    listener: LineListener | None = None,
    on_record: Callable[[dict[str, Any]], None] | None = None,
    writer: Callable[..., JournalWriter] = JournalWriter,
) -> JournalWriter:
    """Return the writer of an existing journal; it continues after its last whole line, and holds the lock.

    A torn rest behind that line is kept beside the journal, in `<run_id>.torn-<n>`, cut off, and told by a
    `journal_recovered` record. `on_record` gets each record that there is, long texts in full. Raises UsageError where
    the file is no journal, another process writes it, it is damaged in the middle, or a newer Aeon wrote it.
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
            raise _cannot_go_on(path, f"it cannot be written: {error.strerror}") from None
        raise
    opened = writer(path, run_id, listener, file=file)
    if torn is not None:
        opened.append(JournalRecovered(offset=file.size, set_aside=torn))
    return opened


def make_sure_nobody_writes(path: Path) -> None:
    """Raise UsageError, which says who it is, where another process writes the journal. Changes nothing.

    Also where `reopen` could not open it.
    """
    fd = _open(path)
    try:
        if is_locked(fd):
            raise _being_written(path, fd)
    except OSError as error:
        raise _cannot_go_on(path, f"it cannot be locked: {error.strerror}") from None
    finally:
        os.close(fd)


def _being_written(path: Path, fd: int) -> UsageError:
    return UsageError(f"the journal {str(path)!r} is being written by {holder(fd)}; wait until that ends, or stop it")


def _cannot_go_on(path: Path, why: str) -> UsageError:
    return UsageError(f"cannot continue the journal {str(path)!r}: {why}")


def _open(path: Path) -> int:
    """Return a descriptor of a regular file: no link, pipe or device."""
    try:
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode):
            what = "a link; use the file it points to" if stat.S_ISLNK(mode) else "not a regular file"
            raise _cannot_go_on(path, f"it is {what}")
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise UsageError(f"the journal {str(path)!r} does not exist; see `aeon-tui runs`") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _cannot_go_on(path, f"it cannot be written: {reason}") from None
    return fd


def _check_still_there(fd: int, path: Path) -> None:
    """Make sure that what was locked is what has the name; it may have been replaced in between."""
    opened, named = os.fstat(fd), os.lstat(path)
    if (opened.st_dev, opened.st_ino) != (named.st_dev, named.st_ino) or not stat.S_ISREG(opened.st_mode):
        raise _cannot_go_on(path, "another file has just replaced it; try again")
    if opened.st_mode & 0o077:
        os.fchmod(fd, 0o600)


def _read(fd: int, path: Path, on_record: Callable[[dict[str, Any]], None] | None) -> tuple[str, OpenFile]:
    """Return the run's id, and how far the journal is sound: to its last whole line. Raises UsageError."""
    run_id, file = "", OpenFile(fd, size=_whole_lines(fd))
    for record in sound_records(path, file.texts):
        run_id, file.seq, file.stamp = record["run"], record["seq"] + 1, record["ts"]
        if on_record is not None:
            on_record(record)
    return run_id, file


def _whole_lines(fd: int) -> int:
    """Return where the last line that has its newline ends, in bytes."""
    end = os.fstat(fd).st_size
    while end > 0:
        start = max(0, end - _CHUNK)
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _set_aside(fd: int, path: Path, offset: int) -> str:
    """Move what follows `offset` into a file of its own, on the disk before it is cut off; return that file's name."""
    kept = _free_name(path)
    out = os.open(kept, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _copy(fd, offset, out)
        os.fsync(out)
    except BaseException:
        kept.unlink()
        raise
    finally:
        os.close(out)
    sync_folder(path.parent)
    os.ftruncate(fd, offset)
    return kept.name


def _free_name(path: Path) -> Path:
    number = 1
    while os.path.lexists(found := path.with_name(f"{path.stem}.torn-{number}")):
        number += 1
    return found


def _copy(fd: int, offset: int, out: int) -> None:
    while chunk := os.pread(fd, _CHUNK, offset):
        offset += len(chunk)
        while chunk:
            chunk = chunk[os.write(out, chunk) :]
