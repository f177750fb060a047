"""Several views of one run: each as it was at a record of its own, with all that they have in common held once."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

from aeon_core.journal.values import id_of, str_of
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.parts import CallView, StepView, ToolCallView

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


def own(view: RunView, record: Mapping[str, Any]) -> None:
    """Replace what a record is about to change in a view with copies, so that no other view changes with it."""
    if record.get("type") == "plan":
        for step_id in view.steps:
            _own_step(view, step_id)
    elif (one := id_of(record.get("step_id"))) is not None:
        _own_step(view, one)
    if view.phases:
        view.phases[-1] = replace(view.phases[-1])
    call_id = str_of(record.get("call_id"))
    if call_id in view.calls:
        _own_calls(view, call_id)
    if call_id in view.tool_calls:
        _own_tool_call(view, call_id)


def _own_step(view: RunView, step_id: str) -> StepView | None:
    step = view.steps.get(step_id)
    if step is not None:
        step = view.steps[step_id] = replace(
            step, calls=[*step.calls], tool_calls=[*step.tool_calls], repairs=[*step.repairs]
        )
    return step


def _own_calls(view: RunView, call_id: str) -> None:
    """Copy the attempts of a model call everywhere they stand."""
    known = view.calls[call_id]
    view.calls[call_id] = copies = [replace(call) for call in known]
    for old, new in zip(known, copies, strict=True):
        if old.step_id is None:
            _exchange(view.loose_calls, old, new)
        elif (step := _own_step(view, old.step_id)) is not None:
            _exchange(step.calls, old, new)


def _own_tool_call(view: RunView, call_id: str) -> None:
    old = view.tool_calls[call_id]
    new = view.tool_calls[call_id] = replace(old)
    if (step := _own_step(view, old.step_id)) is not None:
        _exchange(step.tool_calls, old, new)


def _exchange(calls: list[_Call], old: _Call, new: _Call) -> None:
    """Put a copy in the place of a call; most often it is one of the last."""
    for index in range(len(calls) - 1, -1, -1):
        if calls[index] is old:
            calls[index] = new
            return


def weight(view: RunView) -> int:
    """Return the bytes that a branch takes for itself alone, about."""
    return sum(sys.getsizeof(value) for value in vars(view).values() if isinstance(value, list | dict))
