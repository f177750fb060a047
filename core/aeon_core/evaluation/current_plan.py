"""The plan as it stands after refinement: without the parts of a step that was done anew with parts of its own."""

from __future__ import annotations

from collections.abc import Mapping

from aeon_core.plan.models import Plan, PlanStep


def current_plan(plan: Plan) -> Plan:
    """Return the plan without the substeps of replaced steps that no stand-in takes up; itself where there are none.

    What became of them counts no more: the stand-in has parts of its own (adaptive FR-069).
    """
    stand_ins = {step.replaces: step for step in plan.walk() if step.replaces is not None}
    dropped = {step.step_id for step in plan.walk() if _is_done_anew(step, stand_ins)}
    if not dropped:
        return plan
    made = plan.model_copy(deep=True)
    for step in made.walk():
        if step.step_id in dropped:
            step.subplan = None
    return made


def _is_done_anew(step: PlanStep, stand_ins: Mapping[str, PlanStep]) -> bool:
    """Return whether one of the steps that stand in for a step one after another has parts of its own."""
    if step.subplan is None:
        return False
    seen: set[str] = set()
    while step.status == "invalid" and step.step_id in stand_ins and step.step_id not in seen:
        seen.add(step.step_id)
        former, step = _parts(step), stand_ins[step.step_id]
        if _parts(step) and former.isdisjoint(part.replaces for part in _parts_of(step)):
            return True
    return False


def _parts(step: PlanStep) -> set[str | None]:
    return {part.step_id for part in _parts_of(step)}


def _parts_of(step: PlanStep) -> list[PlanStep]:
    return step.subplan.substeps if step.subplan is not None else []
