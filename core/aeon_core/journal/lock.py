"""The exclusive lock that gives a journal one writer, and who holds it (Decision 3)."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 0.5
"""Seconds to wait for the lock, since a reader that checks whether a run is alive holds it for an instant."""
_PAUSE_S = 0.01
_LOCKS = Path("/proc/locks")
_COMMAND_CHARACTERS = 80


def lock(fd: int) -> bool:
    """Acquire the exclusive lock on an open file; return False if another holds it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE_S)
        else:
            return True


def release(fd: int) -> None:
    """Close a file and give up its lock, which would last as long as a process that was forked meanwhile."""
    try:
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def is_locked(fd: int) -> bool:
    """Return whether another open file holds the exclusive lock. Raises OSError if locks are not supported."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def may_be_locked(fd: int) -> bool:
    """Return whether another open file may hold the exclusive lock: it does, or locks are not supported."""
    try:
        return is_locked(fd)
    except OSError:
        return True


def holder(fd: int) -> str:
    """Return who holds the exclusive lock on an open file, in words: process and command if known."""
    pid = _holding_process(os.fstat(fd).st_ino)
    command = _command(pid) if pid is not None else None
    # A process that has ended may have left the lock to one it started.
    return "another process" if command is None else f"process {pid} ({command})"


def _holding_process(inode: int) -> int | None:
    """Return the process that /proc/locks names for a file; None if there is no such file or entry."""
    try:
        table = _LOCKS.read_text()
    except OSError:
        return None
    for fields in map(str.split, table.splitlines()):
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[3] == "WRITE" and fields[5].endswith(f":{inode}"):
            # A process in another container has no number here.
            return int(fields[4]) if fields[4].isdigit() and fields[4] != "0" else None
    return None


def _command(pid: int) -> str | None:
    """Return the command line of a process, clipped and without keys; None if there is no such process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    from aeon_core.redaction import redact_text  # not loaded for commands that only show a journal

    text = redact_text(" ".join(" ".join(words).split()))
    return text if len(text) <= _COMMAND_CHARACTERS else f"{text[:_COMMAND_CHARACTERS]}…"
