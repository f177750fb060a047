"""The offset of each line of a journal, without the file itself: eight bytes a line, built in small steps (Decision 5).

The index parses no line, so a file of any content has lines: each ends with its newline. CR, NUL and bytes
that are no UTF-8 are bytes like any other. What follows the last newline is no line yet.

With it, `Pages` reads any record at once, however long the file is, with its long texts put in.
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from aeon_core.journal.reader import MAX_LINE, open_journal, parse_line, resolved, unreadable
from aeon_core.regular_file import open_regular

CHUNK = 128 * 1024
"""Bytes read at once: little enough that no piece of work keeps another thread waiting for more than a few ms."""
HEAD = 400
"""Bytes of a line that hold its envelope."""
_MARK = 64

_SEQ = re.compile(rb'\{\s*"v"\s*:\s*\d+\s*,\s*"seq"\s*:\s*(\d{1,18})\s*,')


def seq_of(line: bytes) -> int | None:
    """Return the `seq` that a line's envelope says, from its beginning alone; None where it says none."""
    match = _SEQ.match(line[:HEAD])
    return int(match[1]) if match is not None else None


class OffsetIndex:
    """The offsets of a journal's lines, as far as the file has been looked through. Lines are numbered from 0.

    `extend` looks through a little more and is for a thread in the background; everything else answers at once from
    what is known, and may be called from another thread meanwhile. `tail` knows the last lines without an index.
    `generation` grows when the file was cut short or replaced: line numbers from before are void then.
    Raises UsageError where there is no file, JournalError where it cannot be read.
    """

    def __init__(self, path: Path, *, chunk: int = CHUNK) -> None:
        self.path = path
        self.generation: int = 0
        self.complete: bool = False
        """Whether all that the file held was indexed when it was last looked at."""
        self._chunk = chunk
        self._ends = array("Q")
        self._read = 0
        self._mark = b""
        self._closed = False
        self._working = threading.Lock()
        with open_journal(path) as file:
            self._fd = os.dup(file.fileno())

    def __enter__(self) -> OffsetIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file, after the piece of work that another thread may be doing."""
        self._closed = True
        with self._working:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def __len__(self) -> int:
        """Return how many lines are indexed."""
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
        """Bytes that the index takes."""
        return sys.getsizeof(self._ends)

    def extend(self, max_seconds: float = 0.004) -> bool:
        """Index on for about so long, one chunk at least; return whether there is more to index.

        Called again later, it follows a file that has grown, and notices one that was cut short or replaced.
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
                # A torn rest may have been set aside, and other lines written in its place.
                self._read = end

    def _was_replaced(self) -> bool:
        try:
            there = self.path.stat()
        except OSError:  # such as a deleted folder; the file that is open can still be read
            return False
        return not os.path.samestat(there, os.fstat(self._fd)) and self.path.is_file()

    def _restart(self) -> None:
        self._ends, self._read, self._mark = array("Q"), 0, b""
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
        """Return where a line begins and ends, its `\\n` included. Raises IndexError where it is not indexed."""
        ends = self._ends
        if not 0 <= number < len(ends):
            raise IndexError(f"line {number} is not indexed; expected 0 to {len(ends) - 1}")
        return (ends[number - 1] if number else 0), ends[number]

    def line(self, number: int, limit: int | None = None) -> bytes:
        """Return a line with its `\\n`, or its first `limit` bytes.

        Raises IndexError where it is not indexed, JournalError where the file is no longer what was indexed.
        """
        start, end = self.span(number)
        wanted = end - start if limit is None else min(limit, end - start)
        data = self.read(start, wanted)
        if len(data) < wanted:
            raise unreadable(self.path, f"line {number + 1} is no longer there; open it again")
        return data

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes at a place of the file, fewer where it ends. Raises JournalError where it cannot be read."""
        fd, parts = self._descriptor(), []
        try:
            while size > 0 and (data := os.pread(fd, size, offset)):
                parts.append(data)
                offset, size = offset + len(data), size - len(data)
        except OSError as error:
            raise unreadable(self.path, error) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def number_at(self, offset: int) -> int | None:
        """Return the number of the line that a byte belongs to, None where it is not indexed."""
        ends = self._ends
        number = bisect_right(ends, offset)
        return number if offset >= 0 and number < len(ends) else None

    def tail(self, count: int, before: int | None = None) -> list[tuple[int, int]]:
        """Return where the last `count` whole lines begin and end, in their order, read backwards from the end.

        `before`, the beginning of a line, asks for those that precede it. Needs no index.
        """
        end = self.size if before is None else before
        newlines: list[int] = []
        """Ends of lines, the last first; the first of them ends the last line."""
        while end > 0 and len(newlines) <= count:
            start = max(0, end - self._chunk)
            data = self.read(start, end - start)
            at = data.rfind(b"\n")
            while at >= 0 and len(newlines) <= count:
                newlines.append(start + at + 1)
                at = data.rfind(b"\n", 0, at)
            end = start
        if len(newlines) <= count:
            newlines.append(0)
        ends = newlines[::-1]
        return list(pairwise(ends))

    def find_seq(self, seq: int) -> int | None:
        """Return the number of the line that holds a `seq`, None where none of the indexed ones does.

        In a sound journal it is the same number. Where lines are damaged or missing it is searched for, since `seq`
        only grows from line to line.
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

    def _descriptor(self) -> int:
        if self._fd < 0:
            raise unreadable(self.path, "it is closed")
        return self._fd


_COMPACT = b'"type":"text","sha256":"'
_SPACED = b'"type": "text", "sha256": "'
"""As other programs may write it."""
_DIGITS = 8
"""Of a text's sha256, so many are kept; whoever asks compares the rest."""


class TextPlaces:
    """The numbers of the lines that hold long texts, by the beginning of their sha256.

    `extend` follows an OffsetIndex, on the thread that extends it; `lines_of` may be called from another.
    """

    def __init__(self, index: OffsetIndex) -> None:
        self.index = index
        self._restart()

    def _restart(self) -> None:
        self._generation = self.index.generation
        self._read = 0
        self._sign = _COMPACT
        self._numbers = array("I")
        self._prefixes = bytearray()

    @property
    def complete(self) -> bool:
        """Whether every text of the indexed lines is known, and every line is indexed."""
        return self.index.complete and self._read == self.index.indexed and self._generation == self.index.generation

    @property
    def memory(self) -> int:
        """Bytes that the places take."""
        return sys.getsizeof(self._numbers) + sys.getsizeof(self._prefixes)

    def extend(self, max_seconds: float = 0.004) -> bool:
        """Look on for about so long, one chunk at least; return whether there is more to look through."""
        deadline = time.perf_counter() + max_seconds
        if self._generation != self.index.generation:
            self._restart()
        if self._read == 0 and len(self.index):
            self._sign = _SPACED if b'"type": "' in self.index.line(0, HEAD) else _COMPACT
        end = self.index.indexed
        while self._read < end:
            self._step(end)
            if time.perf_counter() >= deadline:
                break
        return self._read < end

    def _step(self, end: int) -> None:
        wanted = len(self._sign) + _DIGITS
        data = self.index.read(self._read, min(CHUNK, end - self._read))
        at = data.find(self._sign)
        while 0 <= at <= len(data) - wanted:
            self._add(self._read + at, data[at + len(self._sign) : at + wanted])
            at = data.find(self._sign, at + 1)
        # A sign across the border of two chunks is read again with the second.
        ended = self._read + len(data) >= end
        self._read = end if ended or not data else self._read + len(data) - wanted + 1

    def _add(self, offset: int, digits: bytes) -> None:
        prefix, number = _prefix(digits.decode("ascii", "replace")), self.index.number_at(offset)
        if prefix is not None and number is not None:
            self._numbers.append(number)
            self._prefixes += prefix

    def lines_of(self, sha256: str, before: int) -> Iterator[int]:
        """Yield the numbers of lines before `before` that may hold the text, the nearest first."""
        prefix = _prefix(sha256)
        if prefix is None or self._generation != self.index.generation:
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


NEARBY = 2 * 1024 * 1024
"""Bytes before a line that are searched for its texts as long as their places are not known."""
BEGINNING = 256 * 1024
"""Bytes at a journal's beginning that are searched too: what every request repeats first occurs there."""
_REFERENCE = re.compile(rb'\{\s*"\$text"\s*:\s*"([0-9a-f]{64})"\s*\}')
_BLOCK = 256 * 1024
_LONGEST_SIGN = 80


@dataclass(frozen=True)
class JournalLine:
    """One line of a journal. `record` is None where it cannot be read, and `problem` then says why."""

    offset: int
    """Where the line begins, in bytes."""
    size: int
    """Bytes, with its `\\n`."""
    number: int | None
    """Counted from 0, which is the seq in a sound journal; None where the line is not indexed yet."""
    record: dict[str, Any] | None
    problem: str | None = None
    pending: frozenset[str] = field(default_factory=frozenset)
    """The sha256 of texts that were not found; where the places of texts are complete, they are missing."""


class Pages:
    """Records of a journal by number, by seq, or from its end.

    A record is what `read_records` yields, but for a cycle's plan: one that holds only what changed stays so. Raises
    JournalError where the file cannot be read.
    """

    def __init__(self, index: OffsetIndex, texts: TextPlaces | None = None) -> None:
        self.index = index
        self._texts = texts

    def at(self, number: int) -> JournalLine:
        """Return a line by its number. Raises IndexError where it is not indexed."""
        return self.read(self.index.span(number))

    def by_seq(self, seq: int) -> JournalLine | None:
        """Return the line of a seq, None where none of the indexed lines holds it."""
        number = self.index.find_seq(seq)
        return None if number is None else self.at(number)

    def at_offset(self, offset: int) -> JournalLine:
        """Return the line that begins at an offset. Needs no index."""
        return self.read(self._around(offset))

    def last(self, count: int, before: int | None = None) -> list[JournalLine]:
        """Return the last lines, in their order; `before`, where a line begins, asks for those before it.

        Needs no index: this is the first screen.
        """
        return [self.read(span) for span in self.index.tail(count, before)]

    def read(self, span: tuple[int, int]) -> JournalLine:
        """Return the line between two offsets."""
        start, end = span
        number = self.index.number_at(start)
        if end - start > MAX_LINE:
            return JournalLine(start, end - start, number, None, f"longer than {MAX_LINE} bytes")
        line = self.index.read(start, end - start)
        damage: list[str] = []
        record = parse_line(line, 0, damage)
        if record is None:
            return JournalLine(start, end - start, number, None, damage[0].removeprefix("line 0: "))
        pending: set[str] = set()
        if record["type"] != "text" and b'"$text"' in line and record["seq"] > 0:
            wanted = {sha256.decode() for sha256 in _REFERENCE.findall(line)}
            record = resolved(record, self.texts(wanted, start), pending)
        return JournalLine(start, end - start, number, record, None, frozenset(pending))

    def texts(self, wanted: set[str], before: int) -> dict[str, str]:
        """Return those texts that are found, by their sha256, each in its last version before the line at an offset."""
        found: dict[str, str] = {}
        number = self.index.number_at(before)
        if self._texts is not None and number is not None:
            for sha256 in wanted:
                lines = (self.index.span(line) for line in self._texts.lines_of(sha256, number))
                self._take(sha256, lines, found)
        if wanted - found.keys():
            self._search(wanted - found.keys(), max(0, before - NEARBY), before, found)
        if wanted - found.keys() and before > NEARBY:
            self._search(wanted - found.keys(), 0, min(BEGINNING, before - NEARBY), found)
        return found

    def _search(self, wanted: set[str], start: int, end: int, found: dict[str, str]) -> None:
        """Look for texts between two places, the nearest to the end first."""
        missing = set(wanted)
        while missing and end > start:
            block = max(start, end - _BLOCK)
            # A sign across the border of two blocks is read again with the first.
            data = self.index.read(block, end - block + _LONGEST_SIGN)
            for sha256 in list(missing):
                if self._take(sha256, (self._around(block + at) for at in _signs(data, sha256, end - block)), found):
                    missing.discard(sha256)
            end = block

    def _around(self, offset: int) -> tuple[int, int]:
        """Return where the line begins whose envelope ends just before an offset, and where it ends."""
        before = self.index.read(max(0, offset - HEAD), min(HEAD, offset))
        start = offset - len(before) + before.rfind(b"\n") + 1
        end = offset
        while data := self.index.read(end, _BLOCK):
            if (at := data.find(b"\n")) >= 0:
                return start, end + at + 1
            end += len(data)
        return start, end

    def _take(self, sha256: str, lines: Iterable[tuple[int, int]], found: dict[str, str]) -> bool:
        """Keep the text of the first of these lines that holds it."""
        for start, end in lines:
            record = parse_line(self.index.read(start, min(end - start, MAX_LINE)), 0, [])
            if record is not None and record["type"] == "text" and record.get("sha256") == sha256:
                found[sha256] = str(record.get("text", ""))
                return True
        return False


def _signs(data: bytes, sha256: str, before: int) -> Iterator[int]:
    """Yield where something that names a text begins before a place of some bytes, the last first."""
    for sign in (f'"sha256":"{sha256}"'.encode(), f'"sha256": "{sha256}"'.encode()):
        at = before
        while (at := data.rfind(sign, 0, at + len(sign) - 1)) >= 0:
            yield at
