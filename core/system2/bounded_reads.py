"""Reading a file that agents may have written: as text, and no more of it than is needed."""

from __future__ import annotations

from pathlib import Path

from aeon_core.regular_file import read_start


def read_text_start(path: Path, size: int) -> str:
    """Return the first `size` bytes of a regular file as text; what is no UTF-8 is replaced. Raises OSError."""
    return read_start(path, size).decode("utf-8", "replace")
