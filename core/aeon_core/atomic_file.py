"""Replacing a file in one step: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def replace_file(file: Path, data: bytes, like: os.stat_result | None = None, *, durable: bool = True) -> None:
    """Give a file this content, and the mode 0600 or owner and mode of `like`; if that fails, it stays as it was.

    With `durable` the content is on the disk before the file is replaced. Raises OSError.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name.lstrip('.')}-", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(data)
            if durable:
                written.flush()
                os.fsync(descriptor)
        if like is not None:
            with contextlib.suppress(PermissionError):
                os.chown(name, like.st_uid, like.st_gid)
            Path(name).chmod(like.st_mode & 0o7777)
        Path(name).replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
