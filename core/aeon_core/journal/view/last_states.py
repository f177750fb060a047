"""A run's state while its journal grows faster than it can be folded: the last record of each kind only."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aeon_core.journal.index import HEAD, seq_of
from aeon_core.journal.reader import open_journal, parse_line, resolved, unreadable
from aeon_core.journal.tail import tail_state
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold

RECENT = 100
"""Lines from the end that are folded whatever they are: more than a screen has."""
WHOLE = 16 * 1024 * 1024
"""Bytes up to which a file is looked through from its beginning; of a longer one, what `tail_state` finds."""
TEXTS = 8 * 1024 * 1024
"""Bytes of long texts that are kept for the lines after them."""
_CHUNK = 1024 * 1024
_TRAIL = 64
_TYPE = b'"type":"'
_STEP = b'"step_id":"'
_SHA = b'"sha256":"'
_REFERENCE = re.compile(rb'"\$text":\s*"([0-9a-f]{64})"')
_LAST_COUNTS = frozenset(
    (b"run_started", b"plan", b"ttl", b"pass", b"profile", b"validation", b"approval", b"label", b"run_finished")
)
"""Types whose last record holds the current state."""
_TRAILS = frozenset((b"phase", b"convergence"))
"""Types of which the last few are wanted: the course of the passes, the trend of the scores."""
_WANTED = _LAST_COUNTS | _TRAILS | {b"step", b"text", b"run_resumed"}


class LastStates:
    """Follows a journal by the beginnings of its lines: under 1 µs each, where parsing and folding one takes 30.

    `read_on` takes in what has come; `view` folds the last record of each kind and of each step, and the last lines
    without a gap, as the view of a journal's end does. Its `whole_from` says from which seq on nothing is left out.
    Not for several threads at once. Raises UsageError where there is no journal, JournalError where it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open_journal(path)
        self._gone: list[range] = []
        """The seqs of lines that a later resume took back."""
        self._begin()

    def _begin(self) -> None:
        self._offset = 0
        self._lines = 0
        self._first: list[dict[str, Any]] = []
        """The content of the part of a long journal that is not scanned."""
        self._states: dict[bytes, bytes] = {}
        self._parsed: dict[bytes, tuple[bytes, dict[str, Any]]] = {}
        self._trail: deque[bytes] = deque(maxlen=_TRAIL)
        self._recent: deque[bytes] = deque(maxlen=RECENT)
        self._texts: dict[bytes, bytes] = {}
        self._texts_size = 0
        if os.fstat(self._file.fileno()).st_size > WHOLE:
            end = tail_state(self._path)
            self._first, self._offset = end.records, end.size
            self._lines = end.whole_from

    def close(self) -> None:
        """Read no more."""
        self._file.close()

    def read_on(self) -> int:
        """Take in the lines that have come since; return how many."""
        before = self._lines
        try:
            if os.fstat(self._file.fileno()).st_size < self._offset:
                self._gone, before = [], 0
                self._begin()
            for lines in self._chunks():
                self._take_all(lines)
        except OSError as error:
            raise unreadable(self._path, error) from None
        return self._lines - before

    def _chunks(self) -> Iterator[list[bytes]]:
        wanted, fd = _CHUNK, self._file.fileno()
        while chunk := os.pread(fd, wanted, self._offset):
            end = chunk.rfind(b"\n")
            if end >= 0:
                self._offset += end + 1
                yield chunk[:end].split(b"\n")
            elif len(chunk) < wanted:
                return
            wanted = _CHUNK if end >= 0 else wanted * 4

    def _take_all(self, lines: list[bytes]) -> None:
        self._lines += len(lines)
        if self._gone:
            lines = [line for line in lines if not any((seq_of(line) or 0) in span for span in self._gone)]
        for line in lines:
            at = line.find(_TYPE, 0, HEAD) + len(_TYPE)
            kind = line[at : line.find(b'"', at)]
            if kind not in _WANTED:
                continue
            if kind == b"step":
                begin = line.find(_STEP, at) + len(_STEP)
                self._states[line[begin : line.find(b'"', begin)]] = line
            elif kind == b"text":
                self._keep_text(line, at)
            elif kind in _LAST_COUNTS:
                self._states[b'"' + kind] = line
            elif kind in _TRAILS:
                self._trail.append(line)
            elif self._takes_back(line):
                return
        self._recent.extend(lines[-RECENT:])

    def _takes_back(self, line: bytes) -> bool:
        """Start over if a resume took lines back, without those; return whether it did."""
        record = parse_line(line, 0, []) or {}
        first, seq = record.get("continues_at"), record.get("seq", 0)
        if not isinstance(first, int) or first >= seq or range(first, seq) in self._gone:
            return False
        self._gone.append(range(first, seq))
        self._begin()
        return True

    def _keep_text(self, line: bytes, at: int) -> None:
        begin = line.find(_SHA, at) + len(_SHA)
        sha256 = line[begin : begin + 64]
        self._texts_size += len(line) - len(self._texts.pop(sha256, b""))
        self._texts[sha256] = line
        while self._texts_size > TEXTS and len(self._texts) > 1:
            self._texts_size -= len(self._texts.pop(next(iter(self._texts))))

    def view(self) -> RunView:
        """Return the view of the run's state from what was read."""
        recent = [record for line in self._recent if (record := self._record(line)) is not None]
        trail = [record for line in self._trail if (record := self._record(line)) is not None]
        found = {record["seq"]: record for record in (*self._first, *self._last_records(), *trail, *recent)}
        view = fold(found[seq] for seq in sorted(found))
        view.whole_from = recent[0]["seq"] if recent else max(found, default=0)
        return view

    def _last_records(self) -> Iterator[dict[str, Any]]:
        for key, line in self._states.items():
            known = self._parsed.get(key)
            if known is None or known[0] is not line:
                record = self._record(line)
                if record is None:
                    continue
                known = self._parsed[key] = (line, record)
            yield known[1]

    def _record(self, line: bytes) -> dict[str, Any] | None:
        """Return a line's record, long texts in full as far as they are kept."""
        record = parse_line(line, 0, [])
        if record is None or b'"$text"' not in line or record["type"] == "text" or record["seq"] == 0:
            return record
        kept = {sha256.decode(): self._texts.get(sha256) for sha256 in _REFERENCE.findall(line)}
        texts = {name: str((parse_line(text, 0, []) or {}).get("text")) for name, text in kept.items() if text}
        whole: dict[str, Any] = resolved(record, texts, set())
        return whole
