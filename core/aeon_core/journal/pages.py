"""Any record of a journal at once, however long the file is: the line is read, parsed, and its long texts put in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aeon_core.journal.index import HEAD, OffsetIndex, TextPlaces
from aeon_core.journal.reader import MAX_LINE, parse_line, resolved

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
