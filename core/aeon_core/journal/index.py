"""The offset of each line of a journal, without the file itself: eight bytes a line, built in small steps (Decision 5).

The index parses no line, so a file of any content has lines: each ends with its newline. CR, NUL and invalid UTF-8 are
bytes like any other. What follows the last newline is not a line yet.

With it, any record is read at once with its long texts, however long the file is: the reader of the lines notes where
these are (`TextPlaces`).
"""

from __future__ import annotations

import io
import os
import re
import sys
import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from aeon_core.journal.reader import MAX_LINE, open_journal, parse_line, resolved, unreadable
from aeon_core.regular_file import open_regular

CHUNK = 128 * 1024
"""Bytes read at once: few enough that no other thread waits more than a few milliseconds."""
HEAD = 400
"""Bytes of a line that hold its envelope."""
_MARK = 64
_REFERENCE = re.compile(rb'\{\s*"\$text"\s*:\s*"([0-9a-f]{64})"\s*\}')

_SEQ = re.compile(rb'\{\s*"v"\s*:\s*\d+\s*,\s*"seq"\s*:\s*(\d{1,18})\s*,')


def seq_of(line: bytes) -> int | None:
    """Return the `seq` in a line's envelope, from its beginning alone; None if there is none."""
    match = _SEQ.match(line[:HEAD])
    return int(match[1]) if match is not None else None


class OffsetIndex:
    """The offsets of a journal's lines, as far as the file has been indexed. Lines are numbered from 0.

    `extend` indexes a little more and is meant for a background thread; everything else answers at once from what is
    indexed, and may be called from another thread meanwhile. `generation` grows when the file was truncated or
    replaced, which invalidates earlier line numbers. Raises UsageError if there is no file, JournalError if it cannot
    be read.
    """

    def __init__(self, path: Path, *, chunk: int = CHUNK) -> None:
        self.path = path
        self.generation: int = 0
        self.complete: bool = False
        """Whether the whole file was indexed at the last look."""
        self._chunk = chunk
        self._begin()
        self._closed = False
        self._working = threading.Lock()
        with open_journal(path) as file:
            self._fd = os.dup(file.fileno())

    def _begin(self) -> None:
        self._ends = array("Q")
        self._read = 0
        self._mark = b""
        self.texts: TextPlaces = TextPlaces()
        """Where the long texts are, as far as noted."""

    def __enter__(self) -> OffsetIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file once any work on another thread is done."""
        self._closed = True
        with self._working:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def __len__(self) -> int:
        """Return the number of indexed lines."""
        return len(self._ends)

    @property
    def indexed(self) -> int:
        """Bytes from the beginning of the file up to the end of the last indexed line."""
        ends = self._ends
        return ends[-1] if ends else 0

    @property
    def size(self) -> int:
        """Bytes of the file now."""
        return os.fstat(self._descriptor()).st_size

    @property
    def memory(self) -> int:
        """The size of the index in bytes."""
        return sys.getsizeof(self._ends) + self.texts.memory

    def extend(self, max_seconds: float = 0.004) -> bool:
        """Continue indexing for about this long, at least one chunk; return whether there is more to index.

        A later call follows a file that has grown, and notices if it was truncated or replaced.
        """
        deadline = time.perf_counter() + max_seconds
        with self._working:
            if self._closed:
                return False
            try:
                self._look()
                while not (done := self._step()) and time.perf_counter() < deadline:
                    pass
                self._mark = self.read(max(0, self.indexed - _MARK), min(self.indexed, _MARK))
            except OSError as error:
                raise unreadable(self.path, error) from None
        self.complete = done
        return not done

    def _look(self) -> None:
        """Start over if the file is not the one that was indexed; else continue after the last whole line."""
        if self._was_replaced():
            new = open_regular(self.path)
            os.dup2(new, self._fd, inheritable=False)
            os.close(new)
            self._restart()
        elif self._read:
            end, size = self.indexed, os.fstat(self._fd).st_size
            if os.pread(self._fd, len(self._mark), end - len(self._mark)) != self._mark:
                self._restart()
            elif self.complete or size < self._read:
                # A torn tail may have been moved away and replaced by other lines.
                self._read = end

    def _was_replaced(self) -> bool:
        try:
            there = self.path.stat()
        except OSError:  # such as a deleted folder; the file that is open can still be read
            return False
        return not os.path.samestat(there, os.fstat(self._fd)) and self.path.is_file()

    def _restart(self) -> None:
        self._begin()
        self.complete = False
        self.generation += 1

    def _step(self) -> bool:
        """Index one chunk; return whether it was the last."""
        data = os.pread(self._fd, self._chunk, self._read)
        if not data:
            return True
        ends = array("Q", accumulate(map(len, io.BytesIO(data)), initial=self._read))
        if not data.endswith(b"\n"):
            ends.pop()
        self._ends.extend(ends[1:])
        self._read += len(data)
        return False

    def span(self, number: int) -> tuple[int, int]:
        """Return where a line begins and ends, its `\\n` included. Raises IndexError if it is not indexed."""
        ends = self._ends
        if not 0 <= number < len(ends):
            raise IndexError(f"line {number} is not indexed; expected 0 to {len(ends) - 1}")
        return (ends[number - 1] if number else 0), ends[number]

    def line(self, number: int, limit: int | None = None) -> bytes:
        """Return a line with its `\\n`, or its first `limit` bytes.

        Raises IndexError if it is not indexed, JournalError if the file is no longer what was indexed.
        """
        start, end = self.span(number)
        wanted = end - start if limit is None else min(limit, end - start)
        data = self.read(start, wanted)
        if len(data) < wanted:
            raise unreadable(self.path, f"line {number + 1} is no longer there; open it again")
        return data

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes at an offset of the file, fewer at its end. Raises JournalError if it cannot be read."""
        fd, parts = self._descriptor(), []
        try:
            while size > 0 and (data := os.pread(fd, size, offset)):
                parts.append(data)
                offset, size = offset + len(data), size - len(data)
        except OSError as error:
            raise unreadable(self.path, error) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def number_at(self, offset: int) -> int | None:
        """Return the number of the line that a byte belongs to, None if it is not indexed."""
        ends = self._ends
        number = bisect_right(ends, offset)
        return number if offset >= 0 and number < len(ends) else None

    def block(self, first: int, stop: int) -> tuple[int, bytes]:
        """Return some lines from `first` on, before `stop`: the number of the line after them, and their bytes.

        Together they have about CHUNK bytes, but there is at least one; of a line longer than MAX_LINE, only the
        beginning is returned.
        """
        start = self.span(first)[0]
        after = self.number_at(start + CHUNK)
        after = max(first + 1, min(after if after is not None else stop, stop))
        return after, self.read(start, min(self.span(after - 1)[1] - start, MAX_LINE + 1))

    def find_seq(self, seq: int) -> int | None:
        """Return the number of the line that holds a `seq`, None if none of the indexed ones does.

        In a sound journal the two numbers are equal. If lines are damaged or missing, the line is found by binary
        search, since `seq` only grows.
        """
        low, high = 0, len(self._ends)
        if 0 <= seq < high and self._seq(seq) == seq:
            return seq
        while low < high:
            middle = (low + high) // 2
            at, found = middle, self._seq(middle)
            while found is None and (at := at + 1) < high:
                found = self._seq(at)
            if found == seq:
                return at
            if found is None or found > seq:
                high = middle
            else:
                low = at + 1
        return None

    def _seq(self, number: int) -> int | None:
        return seq_of(self.line(number, HEAD))

    def record(self, seq: int) -> dict[str, Any] | None:
        """Return the record of a seq with its long texts, as far as they were noted; None if it cannot be read.

        The record is the one that `read_records` yields. Raises JournalError if the file cannot be read.
        """
        if (number := self.find_seq(seq)) is None:
            return None
        record = self.parsed(number)
        if record is None or record["type"] == "text" or seq == 0:
            return record
        wanted = {sha256.decode() for sha256 in _REFERENCE.findall(self.line(number))}
        whole: dict[str, Any] = resolved(record, self.long_texts(wanted, number), set())
        return whole

    def parsed(self, number: int) -> dict[str, Any] | None:
        """Return the record of a line, long texts by reference; None if it is not a record or too long."""
        start, end = self.span(number)
        return parse_line(self.line(number), 0, []) if end - start <= MAX_LINE else None

    def long_texts(self, wanted: set[str], before: int) -> dict[str, str]:
        """Return the texts found, by sha256, each in its last version before a line."""
        found: dict[str, str] = {}
        for sha256 in wanted:
            for number in self.texts.lines_of(sha256, before):
                record = self.parsed(number)
                if record is not None and record["type"] == "text" and record.get("sha256") == sha256:
                    found[sha256] = str(record.get("text", ""))
                    break
        return found

    def _descriptor(self) -> int:
        if self._fd < 0:
            raise unreadable(self.path, "it is closed")
        return self._fd


_DIGITS = 8
"""Hex digits of a text's sha256 that are kept; callers compare the rest."""


class TextPlaces:
    """The line numbers of long texts, by the beginning of their sha256: eight bytes a text.

    Several threads may add texts, as long as none starts after a text that nobody has noted: what one has noted, the
    others skip. `lines_of` may be called from any thread.
    """

    def __init__(self) -> None:
        self._adding = threading.Lock()
        self._numbers = array("I")
        self._prefixes = bytearray()

    @property
    def memory(self) -> int:
        """Its size in bytes."""
        return sys.getsizeof(self._numbers) + sys.getsizeof(self._prefixes)

    def add(self, number: int, sha256: str) -> None:
        """Note the text of a line, unless a later line was already noted."""
        prefix = _prefix(sha256)
        if prefix is None:
            return
        with self._adding:
            if not self._numbers or number > self._numbers[-1]:
                self._numbers.append(number)
                self._prefixes += prefix

    def lines_of(self, sha256: str, before: int) -> Iterator[int]:
        """Yield the numbers of lines before `before` that may hold the text, the nearest first."""
        prefix = _prefix(sha256)
        if prefix is None:
            return
        width = len(prefix)
        end = min(bisect_left(self._numbers, before) * width, len(self._prefixes))
        while (at := self._prefixes.rfind(prefix, 0, end)) >= 0:
            if at % width == 0:
                yield self._numbers[at // width]
            end = at + width - 1


def _prefix(digits: str) -> bytes | None:
    try:
        found = bytes.fromhex(digits[:_DIGITS])
    except ValueError:
        return None
    return found if len(found) == _DIGITS // 2 else None
