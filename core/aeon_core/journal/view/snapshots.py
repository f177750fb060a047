"""Several views of one run: each as it was at a record of its own, with all that they have in common held once."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import MISSING, fields, replace
from itertools import islice
from typing import Any, Generic, TypeVar

from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import CallView, LogLine, RunView, ToolCallView

_Call = TypeVar("_Call", CallView, ToolCallView)
_GROWING = ("calls", "call_seqs", "loose_calls", "tool_calls")
"""Parts of a view that are as long as the run. The reducer only ever adds to them."""
_UNFINISHED = {
    kind: {each.name: each.default for each in fields(kind) if each.default is not MISSING}
    for kind in (CallView, ToolCallView)
}
"""What a call has in the fields that are filled in when it ends."""


class FrozenView:
    """A view as it is now, whatever is folded into it later; `view` returns it, to fold more records into.

    Calls are not copied: a view only gains some, and each tells when it ended. How many there are now is kept.
    """

    def __init__(self, view: RunView) -> None:
        self._rest = _with_own_parts(view)
        self._sizes = [len(getattr(view, name)) for name in _GROWING]
        self._step_sizes = [(len(step.calls), len(step.tool_calls), len(step.repairs)) for step in view.steps.values()]
        self._packed: list[tuple[int, bytes]] = []
        """Instead of the log, once it is packed: how many lines, compressed; the last of them are the log."""
        self._log_size = len(view.log)
        self.weight: int = self._own_weight()
        """The bytes that it takes for itself alone, about."""

    def pack(self, before: FrozenView | None) -> None:
        """Keep the log compressed, and what it has in common with that of a packed view `before` only once."""
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
            part for name, part in vars(self._rest).items() if isinstance(part, list | dict) and name not in _GROWING
        ]
        return sum(map(sys.getsizeof, (*parts, self._step_sizes, *self._rest.steps.values(), *self._step_sizes)))

    def view(self) -> RunView:
        """Return the view, its lists and dicts and all that later records may change its own."""
        new = _with_own_parts(self._rest)
        calls, call_seqs, loose_calls, tool_calls = self._sizes
        past, past_tools = _Past[CallView](new.last_seq), _Past[ToolCallView](new.last_seq)
        # Each is copied in one step, for another thread may fold more into the view that it was.
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
    """Return a view with lists, dicts, steps and phases of its own, but for what only grows."""
    new = copy(view)
    for name, value in vars(view).items():
        if isinstance(value, list | dict) and name not in _GROWING:
            setattr(new, name, value.copy())
    known = view.left_open
    new.left_open = replace(known, questions=[*known.questions], interventions=[*known.interventions])
    new.steps = {step_id: replace(step) for step_id, step in view.steps.items()}
    new.phases[-1:] = [replace(phase) for phase in new.phases[-1:]]
    return new


class _Past(Generic[_Call]):
    """Calls as they were at a record: those that had not ended are copies, one each, wherever they occur."""

    def __init__(self, seq: int) -> None:
        self._seq = seq
        self._copies: dict[int, _Call] = {}

    def has_ended(self, call: _Call) -> bool:
        """Return whether a call had ended."""
        return call.finished_seq is not None and call.finished_seq <= self._seq

    def as_it_was(self, call: _Call) -> _Call:
        """Return a call that had not ended."""
        if id(call) not in self._copies:
            self._copies[id(call)] = replace(call, **_UNFINISHED[type(call)])
        return self._copies[id(call)]

    def of(self, calls: Iterable[_Call]) -> list[_Call]:
        """Return the calls as they were."""
        return [call if self.has_ended(call) else self.as_it_was(call) for call in calls]


class PassFold:
    """Folds the records of a run up to the end of one pass; `found` holds the numbers of all passes there are."""

    def __init__(self, number: int) -> None:
        self.found: set[int] = set()
        self._number = number
        self._view = RunView()
        self._first_seq: int | None = None
        self._started = ""
        self._cycles_before = 0
        self._touched: set[Any] = set()
        self._ended = False

    def apply(self, record: Mapping[str, Any]) -> None:
        """Fold one record in, as far as it is not of a later pass."""
        number = _pass_of(record)
        if number is not None:
            self.found.add(number)
            self._ended = self._ended or number > self._number
        if self._ended:
            return
        reducer.apply(self._view, record)
        if number == self._number:
            if self._first_seq is None:
                self._first_seq, self._started = self._view.last_seq, self._view.last_ts
                self._cycles_before = self._view.cycles
            if record.get("type") == "step":
                self._touched.add(record.get("step_id"))
            self._ended = record.get("type") == "pass"

    def view(self, whole: RunView) -> RunView:
        """Return the pass's view. Status is the whole run's; its result belongs to the last pass.

        Steps are those that ran in it and those still pending; `usage` and `cost_usd` are its own calls'.
        """
        view = self._view
        view.status = whole.status
        if self._number == max(self.found, default=0):
            view.result = whole.result
            view.follow_up_questions, view.manual_interventions = whole.follow_up_questions, whole.manual_interventions
        view.started = self._started or view.started
        view.cycles -= self._cycles_before
        view.log = [line for line in view.log if self._first_seq is not None and line.seq >= self._first_seq]
        view.log_count = len(view.log)
        view.repairs = [repair for repair in view.repairs if repair.pass_number == self._number]
        view.calls = {
            key: [call for call in calls if call.pass_number == self._number] for key, calls in view.calls.items()
        }
        calls = [call for attempts in view.calls.values() for call in attempts]
        view.usage = {
            name: sum((call.usage or {}).get(name, 0) for call in calls) for name in ("input_tokens", "output_tokens")
        }
        costs = [call.cost_usd for call in calls if call.cost_usd is not None]
        view.cost_usd = sum(costs) if costs else None
        view.steps = {
            step_id: step
            for step_id, step in view.steps.items()
            if step_id in self._touched or step.status == "pending"
        }
        for step in view.steps.values():
            step.repairs = [repair for repair in step.repairs if repair.pass_number == self._number]
        view.labels = [each for each in whole.labels if each.pass_number == self._number]
        self._keep_own_findings()
        return view

    def _keep_own_findings(self) -> None:
        """Leave the reports, assessments and refinements of the pass, and the profile that it went by."""
        view, number = self._view, self._number
        view.reports = [each for each in view.reports if each.pass_number == number]
        view.assessments = [each for each in view.assessments if each.pass_number == number]
        view.refinements = [each for each in view.refinements if each.pass_number == number]
        view.advisories = [each for each in view.advisories if each.pass_number == number]
        known = [each for each in view.profiles if each.pass_number <= number]
        view.profiles = [each for each in known if each.pass_number == number] or known[-1:]


def _pass_of(record: Mapping[str, Any]) -> int | None:
    """Return the pass in which a record was written, None where it does not say.

    A profile may be written before the pass that it is for has begun.
    """
    kind = record.get("type")
    number = record.get("pass_number") if kind == "pass" else record.get("pass") if kind != "profile" else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else None
