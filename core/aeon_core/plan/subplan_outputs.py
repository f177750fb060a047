"""The parts whose results make up the result of a step that is nothing but its substeps (adaptive FR-009)."""

from __future__ import annotations

from aeon_core.plan.models import Plan, PlanStep


def steps_to_gather(plan: Plan, step: PlanStep) -> list[PlanStep]:
    """Return the substeps that count for a step: its own that are valid, and what is kept of the step it replaces.

    Where a stand-in has only the substeps that had to run again, the valid ones of the replaced step still hold: what
    was executed is not run twice (FR-070). A stand-in with parts of its own keeps none.
    """
    substeps = step.subplan.substeps if step.subplan is not None else []
    own = [part for part in substeps if part.status != "invalid"]
    replaced = plan.find(step.replaces) if step.replaces is not None else None
    if replaced is None or replaced.subplan is None:
        return own
    former = {part.step_id for part in replaced.subplan.substeps}
    if not any(part.replaces in former for part in substeps):
        return own
    return [*steps_to_gather(plan, replaced), *own]
