"""The view of a long journal, folded in small steps on a thread while a screen shows its end.

Large values stay in the journal and are read when somebody looks at them: a view of 400,000 records with every request
and reply would hold the whole file. A lean view holds what is counted, listed and drawn, and `LEFT_OUT` in place of
values that a record of the journal has.
"""

from __future__ import annotations

import json
import re
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from msgspec import NODEFAULT
from msgspec.structs import asdict, fields, replace

from aeon_core.journal.follow import FollowPosition
from aeon_core.journal.index import HEAD, OffsetIndex
from aeon_core.journal.reader import MAX_LINE, parse_line, resolved, superseded_lines, wrong_seq
from aeon_core.journal.values import dict_of, dicts_of, str_of
from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import CallView, LogLine, RepairView, RunView, StepView, ToolCallView

_ENVELOPE = re.compile(
    rb'\{"v":1,"seq":(\d{1,18}),"ts":"([^"\\]{1,40})","run":"([^"\\]{1,200})","type":"(text|cycle|pass)"'
    rb'(?:,"pass_number":(\d{1,9}),|,"sha256":"([0-9a-f]{64})")?'
)
"""Types of records whose envelope is enough for the fold; together they are most of a journal's bytes."""
_TEXTS = 32 * 1024 * 1024
"""Characters of long texts that are kept for later records."""

_Call = TypeVar("_Call", CallView, ToolCallView)
_GROWING = ("calls", "call_seqs", "loose_calls", "tool_calls")
"""Parts of a view that grow with the run. The reducer only adds to them."""
_UNFINISHED = {
    kind: {each.name: each.default for each in fields(kind) if each.default is not NODEFAULT}
    for kind in (CallView, ToolCallView)
}
"""The initial values of the fields of a call that are set when it ends."""


class FrozenView:
    """A copy of a view at one moment; `view` returns one to fold more records into.

    Calls are not copied: a view only gains calls, and each records when it ended. Their number at that moment is kept.
    """

    def __init__(self, view: RunView) -> None:
        self._rest = _with_own_parts(view)
        self._sizes = [len(getattr(view, name)) for name in _GROWING]
        self._step_sizes = [(len(step.calls), len(step.tool_calls), len(step.repairs)) for step in view.steps.values()]
        self._packed: list[tuple[int, bytes]] = []
        """The packed log: the number of lines, and the lines compressed, of which the last ones are the log."""
        self._log_size = len(view.log)
        self.weight: int = self._own_weight()
        """The approximate number of bytes that it does not share with other views."""

    def pack(self, before: FrozenView | None) -> None:
        """Compress the log, sharing what it has in common with the log of a packed view `before`."""
        log, known = self._rest.log, before._packed if before is not None else []
        new = self._rest.log_count - (before._rest.log_count if before is not None else 0)
        lines = [(line.seq, line.ts, line.type, line.level, line.text) for line in log[max(0, len(log) - new) :]]
        packed = [*known, (len(lines), zlib.compress(json.dumps(lines).encode(), 1))]
        while sum(count for count, _ in packed[1:]) >= len(log) and len(packed) > 1:
            del packed[0]
        self._packed, self._rest.log = packed, []
        self.weight = self._own_weight() + len(packed[-1][1])

    def _own_weight(self) -> int:
        parts = [
            part for name, part in asdict(self._rest).items() if isinstance(part, list | dict) and name not in _GROWING
        ]
        return sum(map(sys.getsizeof, (*parts, self._step_sizes, *self._rest.steps.values(), *self._step_sizes)))

    def view(self) -> RunView:
        """Return the view, with its own copy of everything that later records may change."""
        new = _with_own_parts(self._rest)
        calls, call_seqs, loose_calls, tool_calls = self._sizes
        past, past_tools = _Past[CallView](new.last_seq), _Past[ToolCallView](new.last_seq)
        # Each is copied atomically, since another thread may be folding records into the original view.
        new.calls = dict(islice(new.calls.items(), calls))
        for call_id, attempts in new.calls.items():
            if len(attempts) > 1 or not past.has_ended(attempts[0]):
                new.calls[call_id] = past.of(attempt for attempt in attempts if attempt.seq <= new.last_seq)
        new.call_seqs = new.call_seqs[:call_seqs]
        new.loose_calls = past.of(new.loose_calls[:loose_calls])
        new.tool_calls = dict(islice(new.tool_calls.items(), tool_calls))
        for call_id, call in new.tool_calls.items():
            if not past_tools.has_ended(call):
                new.tool_calls[call_id] = past_tools.as_it_was(call)
        for step, (calls, tool_calls, repairs) in zip(new.steps.values(), self._step_sizes, strict=True):
            step.calls, step.repairs = past.of(step.calls[:calls]), step.repairs[:repairs]
            step.tool_calls = past_tools.of(step.tool_calls[:tool_calls])
        if self._packed:
            lines = (LogLine(*line) for _, data in self._packed for line in json.loads(zlib.decompress(data)))
            new.log = list(lines)[-self._log_size :]
        return new


def _with_own_parts(view: RunView) -> RunView:
    """Return a view with its own lists, dicts, steps and phases, except for what only grows."""
    new = copy(view)
    for name, value in asdict(view).items():
        if isinstance(value, list | dict) and name not in _GROWING:
            setattr(new, name, value.copy())
    known = view.left_open
    new.left_open = replace(known, questions=[*known.questions], interventions=[*known.interventions])
    new.steps = {step_id: replace(step) for step_id, step in view.steps.items()}
    new.phases[-1:] = [replace(phase) for phase in new.phases[-1:]]
    return new


class _Past(Generic[_Call]):
    """Calls as of a record: those that had not ended are copied once each, wherever they occur."""

    def __init__(self, seq: int) -> None:
        self._seq = seq
        self._copies: dict[int, _Call] = {}

    def has_ended(self, call: _Call) -> bool:
        """Return whether a call had ended."""
        return call.finished_seq is not None and call.finished_seq <= self._seq

    def as_it_was(self, call: _Call) -> _Call:
        """Return a copy of a call as it was before its end."""
        if id(call) not in self._copies:
            self._copies[id(call)] = replace(call, **_UNFINISHED[type(call)])
        return self._copies[id(call)]

    def of(self, calls: Iterable[_Call]) -> list[_Call]:
        """Return the calls as of that record."""
        return [call if self.has_ended(call) else self.as_it_was(call) for call in calls]


Note = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True)
class Folded:
    """The state after the lines before `line`; later folding does not change it."""

    line: int
    expected: int
    """The seq of that line."""
    view: FrozenView


class IncrementalFold:
    """Folds the indexed lines of a journal into `view`, in order; `step` folds a few more.

    The view equals `fold(read_records(path))`, except that large values stay in the journal, and that damage inside
    `text`, `cycle` and `pass` records is not searched for. The index must be complete, and gets the positions of texts;
    `note` gets the number and record of each line that is a record. Raises JournalError if the file cannot be read, or
    is no longer what was indexed.
    """

    def __init__(self, index: OffsetIndex, note: Note = lambda *_: None) -> None:
        self.view: RunView = RunView()
        self._index, self._places, self._note = index, index.texts, note
        self._given: FrozenView | None = None
        """The state of the view when it was handed over."""
        self._next = 0
        self._expected = 0
        self._sound = 0  # the number of the last line that was a record, from 1
        self._gone: list[range] | None = None
        self._texts: dict[str, str] = {}
        self._held = 0

    @property
    def read_to(self) -> int:
        """The number of folded bytes, which is the offset of the next line."""
        return self._index.span(self._next - 1)[1] if self._next else 0

    @property
    def place(self) -> FollowPosition | None:
        """Where a Follower continues after the folded lines; None before the first line."""
        if not self._next:
            return None
        last, end = self._index.span(self._next - 1)
        ended = self.view.result is not None
        return FollowPosition(self._next, last, end, self._expected, self._gone or [], self._texts_before, ended)

    def _texts_before(self, wanted: set[str]) -> dict[str, str]:
        """Return texts of the folded lines."""
        return self._index.long_texts(wanted, self._next)

    @property
    def folded(self) -> int:
        """The number of folded lines."""
        return self._next

    def state(self) -> Folded:
        """Return the current state, to show it or to return to it."""
        return Folded(self._next, self._expected, self._given or FrozenView(self.view))

    def go_to(self, state: Folded) -> None:
        """Return to a state, as if nothing after it had been folded."""
        self._next, self._expected, self.view, self._given = state.line, state.expected, state.view.view(), None
        self._sound = state.line

    def give(self) -> RunView:
        """Hand over the view to a caller that continues it; further folding here uses another one."""
        self._given = FrozenView(self.view)
        return self.view

    def step(self, max_seconds: float = 0.004, until: int | None = None) -> bool:
        """Fold for about this long, at least one line; return whether indexed lines are left (before `until`)."""
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
        """Read some lines before `stop` at once and fold them; return whether the time is up."""
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
        _before_fold(record)
        if b'"$text"' in line and record["seq"] > 0 and record["type"] != "text":
            record = self._with_texts(record)
        reducer.apply(self.view, record)
        _after_fold(self.view, record)

    def _check_seq(self, seq: int) -> None:
        if problem := wrong_seq(seq, self._expected, self._next - self._sound - 1):
            self.view.add_problem(f"line {self._next}: {problem}")
        self._sound, self._expected = self._next, seq + 1

    def _with_texts(self, record: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in record.items() if value is LEFT_OUT}
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
        """Look up texts, and keep them for the next records."""
        found = self._index.long_texts(wanted, self._next - 1)
        self._held += sum(map(len, found.values()))
        if self._held > _TEXTS:
            self._texts, self._held = {}, sum(map(len, found.values()))
        self._texts.update(found)


def _from_envelope(block: bytes, begin: int, end: int) -> dict[str, Any] | None:
    """Return as much of a record as the fold needs, if the beginning of the line is enough."""
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


RecordOf = Callable[[int], Mapping[str, Any] | None]
"""Returns the full record of a seq, None if it cannot be read."""


class Elided(dict[str, Any]):
    """An object that was left in the journal. It is empty; no JSON can be taken for it."""


LEFT_OUT = Elided()
GONE: dict[str, Any] = {"text": "(this record of the journal cannot be read)"}
"""Replaces a value that was left in the journal and cannot be found there."""


def _before_fold(record: dict[str, Any]) -> None:
    """Remove from a record what no line of the log shows."""
    kind = record["type"]
    if kind == "llm":
        record["stop_reason"] = (dict_of(record.get("response")) or {}).get("stop_reason")
        for name in ("request", "response"):
            if isinstance(record.get(name), dict):
                record[name] = LEFT_OUT
    elif kind == "run_finished":
        for step in dicts_of((dict_of(record.get("result")) or {}).get("steps")):
            step.pop("output", None)


def _after_fold(view: RunView, record: Mapping[str, Any]) -> None:
    """Remove from a view what the record added and only an opened step shows."""
    kind = record["type"]
    if kind == "tool":
        _leave_out(view.tool_calls.get(str_of(record.get("call_id"))))
    elif kind == "step":
        _leave_out(view.steps.get(str_of(record.get("step_id"))))
    elif kind == "supervisor":
        _leave_out(view.repairs[-1])
    elif kind == "memory":
        view.memory[str_of(record.get("key"))] = LEFT_OUT


Part = StepView | CallView | ToolCallView | RepairView
_Part = TypeVar("_Part", StepView, CallView, ToolCallView, RepairView)
_HELD: dict[type[Part], dict[str, str]] = {
    StepView: {"output": "output_seq"},
    CallView: {"request": "seq", "response": "finished_seq"},
    ToolCallView: {"arguments": "seq", "result": "finished_seq"},
    RepairView: {"original_output": "seq", "repaired_output": "seq"},
}
"""The fields that can be restored from a record, each with the field that has that record's seq."""


def _leave_out(part: Part | None) -> None:
    for name in _HELD[type(part)] if part is not None else ():
        if getattr(part, name) is not None:
            setattr(part, name, LEFT_OUT)


def is_lean(parts: Iterable[Part]) -> bool:
    """Return whether any value of these parts, or of the parts of a step, was left in the journal."""
    return any(
        any(getattr(part, name) is LEFT_OUT for name in _HELD[type(part)])
        or (isinstance(part, StepView) and is_lean([*part.calls, *part.tool_calls, *part.repairs]))
        for part in parts
    )


def filled(part: _Part, record_of: RecordOf) -> _Part:
    """Return a copy of a part (for a step, with its own parts) in which nothing is left out."""
    found: dict[str, Any] = {
        name: _value(getattr(part, name), getattr(part, seq), name, record_of)
        for name, seq in _HELD[type(part)].items()
    }
    if isinstance(part, StepView):
        for name in ("calls", "tool_calls", "repairs"):
            found[name] = [filled(each, record_of) for each in getattr(part, name)]
    return replace(part, **found)


def _value(value: dict[str, Any] | None, seq: int | None, name: str, record_of: RecordOf) -> dict[str, Any] | None:
    if value is not LEFT_OUT:
        return value
    record = record_of(seq) if seq is not None else None
    return GONE if record is None else dict_of(record.get(name)) or {}
