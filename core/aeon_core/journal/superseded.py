"""Which lines of a journal a resume took back: those of an ending that was none (contract: run_resumed)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic_core import from_json

from aeon_core.regular_file import open_regular

_MARK = b'"type":"run_resumed"'
_CHUNK = 4 * 1024 * 1024
_MAX_LINE = 1024 * 1024


def superseded_lines(path: Path) -> list[range]:
    """Return the seqs of the lines that count no more; none where the run was not resumed.

    Reads the file once, without parsing it. What cannot be read takes nothing back.
    """
    try:
        fd = open_regular(path)
    except OSError:
        return []
    try:
        return superseded_in(fd)
    finally:
        os.close(fd)


def superseded_in(fd: int) -> list[range]:
    """Return what `superseded_lines` does, of an open file."""
    found = []
    try:
        for offset in marks(fd, _MARK):
            line = _line_at(fd, offset)
            try:
                record = from_json(line, allow_inf_nan=False)
                found.append(range(int(record["continues_at"]), int(record["seq"])))
            except (ValueError, TypeError, LookupError):
                continue
    except OSError:
        return []
    return [each for each in found if each]


def marks(fd: int, mark: bytes) -> Iterator[int]:
    """Yield where a mark with quotes occurs, in bytes: the type of a line. In a text it would be written with escapes.

    Raises OSError.
    """
    start, kept = 0, b""
    while chunk := os.pread(fd, _CHUNK, start):
        text = kept + chunk
        place = text.find(mark)
        while place >= 0:
            yield start - len(kept) + place
            place = text.find(mark, place + 1)
        start += len(chunk)
        kept = text[-(len(mark) - 1) :]


def _line_at(fd: int, offset: int) -> bytes:
    """Return the whole line around an offset that lies in its envelope; b"" where its end is not there yet."""
    start = max(0, offset - 4096)
    before = os.pread(fd, offset - start, start)
    begin = start + before.rfind(b"\n") + 1
    line = os.pread(fd, _MAX_LINE, begin)
    end = line.find(b"\n")
    return line[:end] if end >= 0 else b""
