"""Reading files that agents or a project may have made into anything: never waiting, never all of a huge one."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def beginning_of(path: Path, size: int) -> bytes:
    """Return at most `size` bytes. Raises OSError where they cannot be read, also for a pipe or a device."""
    with open(path, "rb", opener=without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read(size)


def text_of(path: Path, size: int) -> str:
    """Return the beginning of a file as text; what is no UTF-8 is replaced. Raises OSError."""
    return beginning_of(path, size).decode("utf-8", "replace")


def without_waiting(path: str, flags: int) -> int:
    """Open a file so that neither a pipe nor a device holds up the reader."""
    return os.open(path, flags | os.O_NONBLOCK)
