"""Views of long runs: large values stay in the journal, and are read when somebody looks at them.

A view of 400,000 records that held every request and reply would hold the whole file. A lean one holds what is
counted, listed and drawn, and `LEFT_OUT` where a record of the journal has the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aeon_core.journal.values import dict_of, dicts_of, str_of
from aeon_core.journal.view.model import CallView, RepairView, StepView, ToolCallView

if TYPE_CHECKING:
    from aeon_core.journal.view.model import RunView

RecordOf = Callable[[int], Mapping[str, Any] | None]
"""Gives the record of a seq in full, None where it cannot be read."""


class Elided(dict[str, Any]):
    """An object that was left in the journal. It is empty; no JSON can be taken for it."""


LEFT_OUT = Elided()
GONE: dict[str, Any] = {"text": "(this record of the journal cannot be read)"}
"""Stands for a value that was left in the journal and is not found there."""


def before_fold(record: dict[str, Any]) -> None:
    """Leave out of a record what no line of the log shows."""
    kind = record["type"]
    if kind == "llm":
        for name in ("request", "response"):
            if isinstance(record.get(name), dict):
                record[name] = LEFT_OUT
    elif kind == "run_finished":
        for step in dicts_of((dict_of(record.get("result")) or {}).get("steps")):
            step.pop("output", None)


def after_fold(view: RunView, record: Mapping[str, Any]) -> None:
    """Leave out of a view what the record brought and only an opened step shows."""
    kind = record["type"]
    if kind == "tool":
        _tool_call(view.tool_calls.get(str_of(record.get("call_id"))))
    elif kind == "step":
        step = view.steps.get(str_of(record.get("step_id")))
        if step is not None and step.output is not None:
            step.output = LEFT_OUT
    elif kind == "supervisor":
        repair = view.repairs[-1]
        repair.original_output = LEFT_OUT
        repair.repaired_output = LEFT_OUT if repair.repaired_output is not None else None
    elif kind == "memory":
        view.memory[str_of(record.get("key"))] = LEFT_OUT


def _tool_call(call: ToolCallView | None) -> None:
    if call is not None:
        call.arguments = LEFT_OUT
        call.result = LEFT_OUT if call.result is not None else None


def is_lean(step: StepView | None, calls: Sequence[CallView], repairs: Sequence[RepairView]) -> bool:
    """Return whether a part of a step, or of calls and repairs that belong to none, was left in the journal."""
    parts: list[object] = []
    if step is not None:
        calls, repairs = [*calls, *step.calls], [*repairs, *step.repairs]
        parts = [step.output, *(part for call in step.tool_calls for part in (call.arguments, call.result))]
    parts += [part for call in calls for part in (call.request, call.response)]
    parts += [part for repair in repairs for part in (repair.original_output, repair.repaired_output)]
    return any(part is LEFT_OUT for part in parts)


def filled_step(step: StepView, record_of: RecordOf) -> StepView:
    """Return a copy of a step with all that was left out."""
    return replace(
        step,
        output=_value(step.output, step.output_seq, "output", record_of),
        calls=filled_calls(step.calls, record_of),
        tool_calls=[_filled_tool_call(call, record_of) for call in step.tool_calls],
        repairs=filled_repairs(step.repairs, record_of),
    )


def filled_calls(calls: Sequence[CallView], record_of: RecordOf) -> list[CallView]:
    """Return copies of model calls with all that was left out."""
    return [
        replace(
            call,
            request=_value(call.request, call.seq, "request", record_of) or {},
            response=_value(call.response, call.finished_seq, "response", record_of),
        )
        for call in calls
    ]


def filled_repairs(repairs: Sequence[RepairView], record_of: RecordOf) -> list[RepairView]:
    """Return copies of repairs with all that was left out."""
    return [
        replace(
            repair,
            original_output=_value(repair.original_output, repair.seq, "original_output", record_of) or {},
            repaired_output=_value(repair.repaired_output, repair.seq, "repaired_output", record_of),
        )
        for repair in repairs
    ]


def _filled_tool_call(call: ToolCallView, record_of: RecordOf) -> ToolCallView:
    return replace(
        call,
        arguments=_value(call.arguments, call.seq, "arguments", record_of) or {},
        result=_value(call.result, call.finished_seq, "result", record_of),
    )


def _value(value: dict[str, Any] | None, seq: int | None, name: str, record_of: RecordOf) -> dict[str, Any] | None:
    if value is not LEFT_OUT:
        return value
    record = record_of(seq) if seq is not None else None
    return GONE if record is None else dict_of(record.get(name)) or {}
