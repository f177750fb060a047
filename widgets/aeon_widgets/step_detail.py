"""What is opened: a step, or model calls that belong to none, with as much of it as a person can look through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aeon_core.journal.view.elided import RecordOf, filled_calls, filled_repairs, filled_step, is_lean
from aeon_core.journal.view.model import CallView, RepairView, RunView, StepView
from aeon_widgets.call_rows import RowKey
from aeon_widgets.issue_text import repairs_of_calls

MOST = 20
"""Calls, tool calls and repairs that are shown of a step or a row, the last of each."""


@dataclass(frozen=True)
class StepDetail:
    """A step or calls without one. A lean view leaves parts of it in the journal."""

    step: StepView | None = None
    calls: Sequence[CallView] = ()
    repairs: Sequence[RepairView] = ()
    earlier: int = 0
    """Calls, tool calls and repairs before those that are shown."""

    @property
    def lean(self) -> bool:
        """Whether a part of it is in the journal alone."""
        return is_lean(self.step, self.calls, self.repairs)

    def filled(self, record_of: RecordOf) -> StepDetail:
        """Return it with what was left in the journal."""
        step = filled_step(self.step, record_of) if self.step is not None else None
        calls, repairs = filled_calls(self.calls, record_of), filled_repairs(self.repairs, record_of)
        return StepDetail(step, calls, repairs, self.earlier)


def step_detail(view: RunView, key: RowKey | None, calls: Sequence[CallView]) -> StepDetail:
    """Return what a row of the plan stands for; `calls` are its model calls where it is no step."""
    if key is not None and key.kind == "step":
        step = view.steps.get(key.name)
        return _step(step) if step is not None else StepDetail()
    shown = calls[-MOST:]
    return StepDetail(None, shown, repairs_of_calls(view, shown), len(calls) - len(shown))


def _step(step: StepView) -> StepDetail:
    lists = (step.calls, step.tool_calls, step.repairs)
    earlier = sum(max(0, len(each) - MOST) for each in lists)
    if earlier:
        step = replace(step, calls=step.calls[-MOST:], tool_calls=step.tool_calls[-MOST:], repairs=step.repairs[-MOST:])
    return StepDetail(step, earlier=earlier)
