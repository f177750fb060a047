"""Writing a file as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.regular_file import replace_file


def write_file(path: Path, text: str) -> None:
    """Write a text in UTF-8; a file that is there is replaced, once the new one is whole. Raises UsageError."""
    data = text.encode("utf-8", "backslashreplace")
    try:
        target = path.resolve()
        if target.is_file() or not target.exists():
            replace_file(target, data, target.stat() if target.exists() else None, mode=0o666, durable=False)
        else:
            # A device or a pipe is written to; a folder is an error.
            target.write_bytes(data)
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot write {str(path)!r}: {reason}; choose another file with -o") from None
