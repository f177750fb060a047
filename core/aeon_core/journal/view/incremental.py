"""The view of a long journal, folded in small pieces on a thread, while a screen shows its end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aeon_core.journal.follow import FollowPosition
from aeon_core.journal.index import HEAD, OffsetIndex
from aeon_core.journal.reader import MAX_LINE, parse_line, resolved, superseded_lines
from aeon_core.journal.view import elided, reducer
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.snapshots import FrozenView

_ENVELOPE = re.compile(
    rb'\{"v":1,"seq":(\d{1,18}),"ts":"([^"\\]{1,40})","run":"([^"\\]{1,200})","type":"(text|cycle|pass)"'
    rb'(?:,"pass_number":(\d{1,9}),|,"sha256":"([0-9a-f]{64})")?'
)
"""Records of which the fold needs no more than this; together they are most of a journal's bytes."""
_TEXTS = 32 * 1024 * 1024
"""Characters of long texts that are kept for the records that come next."""

Note = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True)
class Folded:
    """What the lines before `line` come to; it stays so whatever is folded after."""

    line: int
    expected: int
    """The seq of that line."""
    view: FrozenView


class IncrementalFold:
    """Folds the indexed lines of a journal into `view`, in their order; `step` folds a few more.

    The view is what `fold(read_records(path, plans=False))` gives, but that large values stay in the journal
    (`elided`), and that damage within `text`, `cycle` and `pass` records is not looked for. The index must be complete,
    and gets the places of texts; `note` gets the number and record of each line that is one. Raises JournalError where
    the file cannot be read, or is no longer what was indexed.
    """

    def __init__(self, index: OffsetIndex, note: Note = lambda *_: None) -> None:
        self.view: RunView = RunView()
        self._index, self._places, self._note = index, index.texts, note
        self._given: FrozenView | None = None
        """What the view was when someone else got it."""
        self._next = 0
        self._expected = 0
        self._gone: list[range] | None = None
        self._texts: dict[str, str] = {}
        self._held = 0

    @property
    def read_to(self) -> int:
        """Bytes of the journal that are folded: the next line begins there."""
        return self._index.span(self._next - 1)[1] if self._next else 0

    @property
    def place(self) -> FollowPosition | None:
        """Where a Follower continues after what is folded; None before the first line."""
        if not self._next:
            return None
        last, end = self._index.span(self._next - 1)
        ended = self.view.result is not None
        return FollowPosition(self._next, last, end, self._expected, self._gone or [], self._texts_before, ended)

    def _texts_before(self, wanted: set[str]) -> dict[str, str]:
        """Return texts of the lines that are folded."""
        return self._index.long_texts(wanted, self._next)

    @property
    def folded(self) -> int:
        """How many lines are folded."""
        return self._next

    def state(self) -> Folded:
        """Return what is folded so far, to show or to go back to."""
        return Folded(self._next, self._expected, self._given or FrozenView(self.view))

    def go_to(self, state: Folded) -> None:
        """Continue from a state as if nothing after it had been folded."""
        self._next, self._expected, self.view, self._given = state.line, state.expected, state.view.view(), None

    def give(self) -> RunView:
        """Return the view to someone who folds on in it; what is folded here from now on goes into another."""
        self._given = FrozenView(self.view)
        return self.view

    def step(self, max_seconds: float = 0.004, until: int | None = None) -> bool:
        """Fold for about so long, one line at least; return whether there are more of the indexed ones.

        Where `until` is given, there are no more from that line on.
        """
        deadline = time.perf_counter() + max_seconds
        end = len(self._index) if until is None else min(until, len(self._index))
        if self._gone is None:
            self._gone = superseded_lines(self._index.path)
        if self._given is not None and self._next < end:
            self.go_to(self.state())
        while self._next < end:
            if self._fold_block(deadline, end):
                break
        return self._next < end

    def _fold_block(self, deadline: float, stop: int) -> bool:
        """Read some lines before `stop` at once and fold them; return whether the time is over."""
        start = self._index.span(self._next)[0]
        after, block = self._index.block(self._next, stop)
        while self._next < after:
            begin, end = self._index.span(self._next)
            self._next += 1
            self._fold_line(block, begin - start, end - start)
            if time.perf_counter() >= deadline:
                return True
        return False

    def _fold_line(self, block: bytes, begin: int, end: int) -> None:
        if end - begin > MAX_LINE:
            self.view.add_problem(f"line {self._next}: longer than {MAX_LINE} bytes")
            return
        record = _from_envelope(block, begin, end)
        line = b""
        if record is None:
            damage: list[str] = []
            line = block[begin:end]
            record = parse_line(line, self._next, damage)
            if record is None:
                self.view.add_problem(damage[0])
                return
        self._check_seq(record["seq"])
        self._note(self._next - 1, record)
        if record["type"] == "text":
            self._places.add(self._next - 1, str(record.get("sha256")))
        if self._gone and record["type"] != "text" and any(record["seq"] in span for span in self._gone):
            return
        elided.before_fold(record)
        if b'"$text"' in line and record["seq"] > 0 and record["type"] != "text":
            record = self._with_texts(record)
        reducer.apply(self.view, record)
        elided.after_fold(self.view, record)

    def _check_seq(self, seq: int) -> None:
        if seq != self._expected:
            expected = f"{self._expected} was expected"
            self.view.add_problem(f"line {self._next}: seq {seq} where {expected}; lines are missing")
        self._expected = seq + 1

    def _with_texts(self, record: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in record.items() if value is elided.LEFT_OUT}
        rest = {name: value for name, value in record.items() if name not in kept}
        missing: set[str] = set()
        whole: dict[str, Any] = resolved(rest, self._texts, missing)
        if missing:
            self._find(missing)
            missing = set()
            whole = resolved(rest, self._texts, missing)
        for sha256 in sorted(missing):
            self.view.add_problem(f"line {self._next}: the text {sha256!r} is missing")
        return {**whole, **kept}

    def _find(self, wanted: set[str]) -> None:
        """Look up texts, and keep them for the records that come next."""
        found = self._index.long_texts(wanted, self._next - 1)
        self._held += sum(map(len, found.values()))
        if self._held > _TEXTS:
            self._texts, self._held = {}, sum(map(len, found.values()))
        self._texts.update(found)


def _from_envelope(block: bytes, begin: int, end: int) -> dict[str, Any] | None:
    """Return as much of a record as the fold needs of it, where its beginning alone tells that."""
    match = _ENVELOPE.match(block, begin, min(end, begin + HEAD))
    if match is None or not block.endswith(b"\n", 0, end):
        return None
    try:
        ts, run, kind = (match[group].decode() for group in (2, 3, 4))
    except UnicodeDecodeError:
        return None
    record: dict[str, Any] = {"seq": int(match[1]), "ts": ts, "run": run, "type": kind}
    if kind == "pass":
        if match[5] is None:
            return None
        record["pass_number"] = int(match[5])
    elif kind == "text":
        if match[6] is None:
            return None
        record["sha256"] = match[6].decode()
    return record
