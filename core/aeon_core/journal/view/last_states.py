"""A run's state from the last lines of its journal, before the rest has been read or folded (Decision 5)."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jiter import from_json
from pydantic_core import to_json

from aeon_core.errors import UsageError
from aeon_core.journal.index import HEAD, seq_of
from aeon_core.journal.reader import MAX_LINE, head, open_journal, parse_line, resolved, unreadable
from aeon_core.journal.values import dict_of
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold

RECENT = 200
"""The number of lines at the end that are always folded: more than a screen has."""
WITHIN = 4 * 1024 * 1024
"""Bytes at the end that are searched first."""
BEGINNING = 256 * 1024
"""Bytes at a journal's beginning whose long texts are kept: what every request repeats first occurs there."""
TEXTS = 8 * 1024 * 1024
"""Bytes of long texts that are kept for the lines after them."""
_CHUNK = 1024 * 1024
_TRAIL = 64
_TYPE = b'"type":"'
_STEP = b'"step_id":"'
_SHA = b'"sha256":"'
_PLAN = b'"plan_state":'
_NO_WHOLE_PLAN = (b'"plan_state":{"since"', b'"plan_state":{}')
_REFERENCE = re.compile(rb'"\$text":\s*"([0-9a-f]{64})"')
_LAST_COUNTS = frozenset(
    (b"run_started", b"plan", b"ttl", b"pass", b"profile", b"validation", b"approval", b"label", b"run_finished")
)
"""Types whose last record holds the current state."""
_TRAILS = frozenset((b"phase", b"convergence"))
"""Types of which the last few records are needed, for the passes and the trend of the scores."""
_WANTED = _LAST_COUNTS | _TRAILS | {b"step", b"text", b"cycle", b"run_resumed"}


class LastStates:
    """Reads a journal by the beginnings of its lines: under 1 µs each; parsing and folding one takes 30.

    `read_on` reads the last `within` bytes, or those before `until`, where a line begins, and then whatever is
    appended. `view` folds the last record of each kind and of each step, and the last `recent` lines without a gap. The
    seqs in `gone` are superseded. For one thread at a time. Raises UsageError if the file is not a journal,
    JournalError if it cannot be read.
    """

    def __init__(
        self,
        path: Path,
        *,
        recent: int = RECENT,
        within: int = WITHIN,
        until: int | None = None,
        gone: Sequence[range] = (),
    ) -> None:
        self._path, self._within, self._until = path, within, until
        self._file = open_journal(path)
        self._gone = list(gone)
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=recent)
        """The last lines, and where each begins."""
        self._parsed: dict[int, tuple[bytes, dict[str, Any] | None, str]] = {}
        """The result of reading a line, by the line's `id`: the record, or why there is none."""
        self._begin()

    def _begin(self) -> None:
        self._lines = 0
        self._states: dict[bytes, bytes] = {}
        self._trail: deque[bytes] = deque(maxlen=_TRAIL)
        self._recent.clear()
        self._texts: dict[bytes, bytes] = {}
        self._texts_size = 0
        fd = self._file.fileno()
        self._start = self._offset = _first_line(fd, self._until or os.fstat(fd).st_size, self._within)
        for line in os.pread(fd, min(BEGINNING, self._start), 0).split(b"\n")[:-1]:
            if (at := line.find(b'"type":"text"', 0, HEAD)) >= 0:
                self._keep_text(line, at)

    def __enter__(self) -> LastStates:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    @property
    def whole(self) -> bool:
        """Whether the view leaves nothing out."""
        return self._start == 0 and self._lines <= (self._recent.maxlen or 0)

    def read_on(self) -> int:
        """Read the lines appended since the last call; return their number."""
        before = self._lines
        try:
            if os.fstat(self._file.fileno()).st_size < self._offset:
                self._gone, before = [], 0
                self._begin()
            for lines in self._chunks():
                self._add(lines)
        except OSError as error:
            raise unreadable(self._path, error) from None
        return self._lines - before

    def _chunks(self) -> Iterator[list[bytes]]:
        """Yield the lines of each chunk; `_offset` is then where they end."""
        wanted, fd = _CHUNK, self._file.fileno()
        while wanted <= MAX_LINE:
            size = wanted if self._until is None else min(wanted, self._until - self._offset)
            chunk = os.pread(fd, size, self._offset)
            end = chunk.rfind(b"\n")
            if end >= 0:
                self._offset += end + 1
                yield chunk[:end].split(b"\n")
            elif len(chunk) < wanted:
                return
            wanted = _CHUNK if end >= 0 else wanted * 4

    def _add(self, lines: list[bytes]) -> None:
        self._lines += len(lines)
        for written in lines:
            line = written
            at = line.find(_TYPE, 0, HEAD) + len(_TYPE)
            if at < len(_TYPE):
                line = _compact(line)
                at = line.find(_TYPE, 0, HEAD) + len(_TYPE)
            kind = line[at : line.find(b'"', at)]
            if kind not in _WANTED or (self._gone and kind != b"text" and self._is_gone(line)):
                continue
            if kind == b"step":
                begin = line.find(_STEP, at) + len(_STEP)
                self._states[line[begin : line.find(b'"', begin)]] = written
            elif kind == b"text":
                self._keep_text(line, at)
            elif kind in _LAST_COUNTS:
                self._states[b'"' + kind] = written
            elif kind in _TRAILS:
                self._trail.append(written)
            elif kind == b"cycle":
                begin = line.find(_PLAN, at, at + HEAD)
                if begin >= 0 and not line.startswith(_NO_WHOLE_PLAN, begin):
                    self._states[b'"cycle'] = written
            elif self._supersedes(line):
                return
        self._add_recent(lines)

    def _add_recent(self, lines: list[bytes]) -> None:
        recent: list[tuple[int, bytes]] = []
        offset = self._offset
        for line in reversed(lines):
            if len(recent) == self._recent.maxlen:
                break
            offset -= len(line) + 1
            if not (self._gone and self._is_gone(line)):
                recent.append((offset, line))
        self._recent.extend(reversed(recent))

    def _is_gone(self, line: bytes) -> bool:
        seq = seq_of(line)
        return seq is not None and any(seq in span for span in self._gone)

    def _supersedes(self, line: bytes) -> bool:
        """Start over without the lines that a resume superseded; return whether it did."""
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

    def last(self) -> tuple[bytes, dict[str, Any] | None, str]:
        """Return the last line, and its record or why it is not one. Raises JournalError if there is no line."""
        if not self._recent:
            raise unreadable(self._path, "the line is no longer there; open it again")
        line = self._recent[-1][1]
        return line, *self._read(line)

    def view(self) -> RunView:
        """Return the view of the run's state; from its `whole_from` on, it leaves nothing out."""
        view = fold(self.records())
        recent = [(offset, *self._read(line)) for offset, line in self._recent]
        if not self.whole:
            view.whole_from = next((record["seq"] for _, record, _ in recent if record is not None), view.last_seq)
        for offset, record, problem in recent:
            if record is None:
                view.add_problem(f"byte {offset}: {problem}")
        return view

    def records(self) -> list[dict[str, Any]]:
        """Return the records that the view is folded from, in order.

        All are from the journal, with one exception: if no `plan` record was read, one is made of the last plan that a
        cycle or the result contains in full. Raises UsageError if the journal does not begin with a run or a workflow.
        """
        lines = (*self._states.values(), *self._trail, *(line for _, line in self._recent))
        self._parsed = {id(line): (line, *self._read(line)) for line in lines}
        found = [record for _, record, _ in self._parsed.values() if record is not None]
        if b'"plan' not in self._states and self._start:
            found += filter(None, [_plan_of([each for each in found if each["type"] in ("cycle", "run_finished")])])
        found.sort(key=lambda record: record["seq"])
        if self._start or not found:
            if (first := head(self._path)) is None:
                raise UsageError(
                    f"{str(self._path)!r} does not start like a journal; expected a run's <run_id>.jsonl file"
                )
            found.insert(0, first)
        return found

    def _read(self, line: bytes) -> tuple[dict[str, Any] | None, str]:
        """Return a line's record, long texts in full if they are known; or None and the reason."""
        if (known := self._parsed.get(id(line))) is not None:
            return known[1:]
        damage: list[str] = []
        record = parse_line(line, 0, damage)
        if record is None:
            return None, damage[0].removeprefix("line 0: ")
        if b'"$text"' in line and record["type"] != "text" and record["seq"]:
            kept = {sha256.decode(): self._texts.get(sha256) for sha256 in _REFERENCE.findall(line)}
            texts = {name: str((parse_line(text, 0, []) or {}).get("text")) for name, text in kept.items() if text}
            record = resolved(record, texts, set())
        return record, ""


def _first_line(fd: int, end: int, within: int) -> int:
    """Return where the first line begins in the last `within` bytes before `end`, or in more if none does there."""
    while within <= MAX_LINE and end > within:
        data = os.pread(fd, within, end - within)
        first = data.find(b"\n")
        if 0 <= first < data.rfind(b"\n"):
            return end - within + first + 1
        within *= 4
    return 0 if end <= within else end


def _compact(line: bytes) -> bytes:
    """Return a line in the form that Aeon writes; unchanged if it is not JSON."""
    try:
        return to_json(from_json(line, allow_inf_nan=False))
    except ValueError:
        return line


def _plan_of(holders: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return a `plan` record with the last plan that these cycles and results contain in full."""
    for record in sorted(holders, key=lambda each: -each["seq"]):
        result = dict_of(record.get("result")) or {}
        plan = dict_of(result.get("plan") if record["type"] == "run_finished" else record.get("plan_state"))
        if plan is not None and plan.get("steps") and "since" not in plan:
            envelope = {key: record.get(key) for key in ("v", "seq", "ts", "run")}
            return {**envelope, "type": "plan", "cause": "given", "plan": plan}
    return None
