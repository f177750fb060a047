"""Several views of one run: each as it was at a record of its own, with all that they have in common held once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Generic, TypeVar

from aeon_core.journal.values import id_of, str_of
from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import CallView, RunView, StepView, ToolCallView

_Call = TypeVar("_Call", CallView, ToolCallView)


def branch(view: RunView) -> RunView:
    """Return a view like this one with lists and dicts of its own; what these hold is the same.

    Whoever folds on in one of the two calls `own` before each record: then the other stays as it is.
    """
    new = copy(view)
    for name, value in vars(view).items():
        if isinstance(value, list | dict):
            setattr(new, name, value.copy())
    known = view.left_open
    new.left_open = replace(known, questions=[*known.questions], interventions=[*known.interventions])
    return new


def own(view: RunView, record: Mapping[str, Any], owned: set[tuple[str, str]] | None = None) -> None:
    """Replace what a record is about to change in a view with copies, so that no other view changes with it.

    `owned` names what was copied since the view was last branched off: that is not copied again, and what is copied now
    is added. Without it, everything is.
    """
    owned = owned if owned is not None else set()
    if record.get("type") == "plan":
        for step_id in view.steps:
            _own_step(view, step_id, owned)
    elif (one := id_of(record.get("step_id"))) is not None:
        _own_step(view, one, owned)
    if view.phases and _is_new("phase", "", owned):
        view.phases[-1] = replace(view.phases[-1])
    call_id = str_of(record.get("call_id"))
    if call_id in view.calls and _is_new("call", call_id, owned):
        _own_calls(view, call_id, owned)
    if call_id in view.tool_calls and _is_new("tool call", call_id, owned):
        _own_tool_call(view, call_id, owned)


def detached(view: RunView) -> RunView:
    """Return a view that may be folded on without `own`, whatever it has in common with others until then."""
    new = branch(view)
    calls = _Copies(call for attempts in view.calls.values() for call in attempts)
    tool_calls = _Copies(view.tool_calls.values())
    new.calls = {call_id: calls.of(attempts) for call_id, attempts in view.calls.items()}
    new.tool_calls = dict(zip(view.tool_calls, tool_calls.of(view.tool_calls.values()), strict=True))
    new.loose_calls = calls.of(view.loose_calls)
    new.steps = {
        step_id: replace(
            step, calls=calls.of(step.calls), tool_calls=tool_calls.of(step.tool_calls), repairs=[*step.repairs]
        )
        for step_id, step in view.steps.items()
    }
    new.phases[-1:] = [replace(phase) for phase in new.phases[-1:]]
    return new


class _Copies(Generic[_Call]):
    """Copies of those calls that a record may still change: each call has one, wherever it occurs."""

    def __init__(self, calls: Iterable[_Call]) -> None:
        self._copies: dict[int, _Call] = {id(call): replace(call) for call in calls if not call.finished}

    def of(self, calls: Iterable[_Call]) -> list[_Call]:
        """Return the calls, or their copies."""
        return [self._copies.get(id(call), call) for call in calls]


def _is_new(kind: str, name: str, owned: set[tuple[str, str]]) -> bool:
    if (kind, name) in owned:
        return False
    owned.add((kind, name))
    return True


def _own_step(view: RunView, step_id: str, owned: set[tuple[str, str]]) -> StepView | None:
    step = view.steps.get(step_id)
    if step is not None and _is_new("step", step_id, owned):
        step = view.steps[step_id] = replace(
            step, calls=[*step.calls], tool_calls=[*step.tool_calls], repairs=[*step.repairs]
        )
    return step


def _own_calls(view: RunView, call_id: str, owned: set[tuple[str, str]]) -> None:
    """Copy the attempts of a model call everywhere they occur."""
    known = view.calls[call_id]
    view.calls[call_id] = copies = [replace(call) for call in known]
    for old, new in zip(known, copies, strict=True):
        if old.step_id is None:
            _exchange(view.loose_calls, old, new)
        elif (step := _own_step(view, old.step_id, owned)) is not None:
            _exchange(step.calls, old, new)


def _own_tool_call(view: RunView, call_id: str, owned: set[tuple[str, str]]) -> None:
    old = view.tool_calls[call_id]
    new = view.tool_calls[call_id] = replace(old)
    if (step := _own_step(view, old.step_id, owned)) is not None:
        _exchange(step.tool_calls, old, new)


def _exchange(calls: list[_Call], old: _Call, new: _Call) -> None:
    """Put a copy in the place of a call; most often it is one of the last."""
    for index in range(len(calls) - 1, -1, -1):
        if calls[index] is old:
            calls[index] = new
            return


def weight(view: RunView) -> int:
    """Return the bytes that a branch takes for itself alone, about."""
    kept = [value for value in vars(view).values() if isinstance(value, list | dict)]
    kept += [calls for step in view.steps.values() for calls in (step.calls, step.tool_calls)]
    return sum(map(sys.getsizeof, kept))


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
