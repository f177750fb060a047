"""What of an executed plan still holds when a person has edited it: steps that are as they were need not run again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aeon_core.plan.models import Plan, PlanStep

_DEFINES = ("description", "tool", "agent", "arguments", "replaces")


def reuse_executed_steps(edited: Plan, before: Plan | None) -> Plan:
    """Return the edited plan, in which each step has its status of before where it is still what was executed.

    Every other step is pending: one that is new or was changed, one whose status is written down as `pending`, one that
    depends on such a step, and one of whose substeps that is true. Step ids say which steps are the same. Where
    nothing was executed `before` is None: all steps are pending.
    """
    known = {step.step_id: step for step in before.walk()} if before is not None else {}
    again: set[str] = set()
    for step in edited.walk():
        if not _is_as_it_was(step, known.get(step.step_id)):
            again.add(step.step_id)
    while new := {step.step_id for step in edited.walk() if step.step_id not in again and _hangs_on(step, again)}:
        again |= new
    plan = edited.model_dump(mode="json", exclude_none=True)
    for node in _nodes(plan["steps"]):
        was = known.get(node["step_id"])
        holds = was is not None and node["step_id"] not in again
        node["status"] = was.status if was is not None and holds else "pending"
        node["errors"] = was.errors if was is not None and holds else None
    return Plan.model_validate(plan)


def _is_as_it_was(step: PlanStep, was: PlanStep | None) -> bool:
    if was is None or not was.executed or any(getattr(step, name) != getattr(was, name) for name in _DEFINES):
        return False
    if _parts(step, was) != _parts(was, was):
        return False
    return not ("status" in step.model_fields_set and step.status == "pending")


def _parts(step: PlanStep, was: PlanStep) -> set[str]:
    """Return the ids of a step's substeps, but for those that had been given up."""
    given_up = {substep.step_id for substep in _substeps(was) if substep.status == "invalid"}
    return {substep.step_id for substep in _substeps(step)} - given_up


def _substeps(step: PlanStep) -> list[PlanStep]:
    return step.subplan.substeps if step.subplan is not None else []


def _hangs_on(step: PlanStep, again: set[str]) -> bool:
    return not again.isdisjoint([*(step.depends_on or ()), *(substep.step_id for substep in _substeps(step))])


def _nodes(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in steps:
        yield node
        yield from _nodes(node.get("subplan", {}).get("substeps", []))
