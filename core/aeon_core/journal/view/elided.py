"""Views of long runs: large values stay in the journal, and are read when somebody looks at them.

A view of 400,000 records that held every request and reply would hold the whole file. A lean one holds what is
counted, listed and drawn, and `LEFT_OUT` where a record of the journal has the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from aeon_core.journal.values import dict_of, dicts_of, str_of
from aeon_core.journal.view.model import CallView, RepairView, StepView, ToolCallView

if TYPE_CHECKING:
    from aeon_core.journal.view.model import RunView

RecordOf = Callable[[int], Mapping[str, Any] | None]
"""Gives the record of a seq in full, None if it cannot be read."""


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
"""The fields that a record of the journal holds in full, each with the field that has the record's seq."""


def _leave_out(part: Part | None) -> None:
    for name in _HELD[type(part)] if part is not None else ():
        if getattr(part, name) is not None:
            setattr(part, name, LEFT_OUT)


def is_lean(parts: Iterable[Part]) -> bool:
    """Return whether something of these parts, or of the parts of a step, was left in the journal."""
    return any(
        any(getattr(part, name) is LEFT_OUT for name in _HELD[type(part)])
        or (isinstance(part, StepView) and is_lean([*part.calls, *part.tool_calls, *part.repairs]))
        for part in parts
    )


def filled(part: _Part, record_of: RecordOf) -> _Part:
    """Return a copy of a part, a step with its own parts, with all that was left out."""
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
