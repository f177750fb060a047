"""Replacing a file in one step: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def replace_file(
    file: Path, data: bytes, like: os.stat_result | None = None, *, mode: int = 0o600, durable: bool = True
) -> None:
    """Give a file this content; if that fails, it stays as it was.

    The file takes the owner and mode of `like`, or `mode` less the umask. With `durable` the content is on the disk
    before the file is replaced. Raises OSError.
    """
    new = file.with_name(f".{file.name.lstrip('.')[:40]}-{os.urandom(4).hex()}")
    # The system applies the umask: asking for it would change it for the files that runs write meanwhile.
    descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode if like is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(data)
            if durable:
                written.flush()
                os.fsync(descriptor)
            if like is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, like.st_uid, like.st_gid)
                os.fchmod(descriptor, like.st_mode & 0o7777)
        new.replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
