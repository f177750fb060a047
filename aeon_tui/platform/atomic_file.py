"""Writing a file as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from aeon_core.errors import UsageError


def write_file(path: Path, text: str) -> None:
    """Write a text in UTF-8; a file that is there is replaced, once the new one is whole. Raises UsageError."""
    data = text.encode("utf-8", "backslashreplace")
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            # A device or a pipe is written to; a folder is an error.
            target.write_bytes(data)
        else:
            _replace(target, data)
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot write {str(path)!r}: {reason}; choose another file with -o") from None


def _replace(target: Path, data: bytes) -> None:
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    new = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}")
    # The system applies the umask: asking for it would change it for the files that runs write meanwhile.
    descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        new.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
