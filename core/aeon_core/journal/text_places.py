"""Where a journal's long texts stand: eight bytes a text, found in small pieces, looked up at once."""

from __future__ import annotations

import sys
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator

from aeon_core.journal.index import CHUNK, HEAD, OffsetIndex

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
        self._begin_anew()

    def _begin_anew(self) -> None:
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
            self._begin_anew()
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
