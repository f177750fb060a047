"""What of a long plan a step is shown: what a prompt costs must not grow with the plan (Decision 3)."""

from __future__ import annotations

import re

from aeon_core.plan.models import Plan, PlanStep

WHOLE = 32
"""Up to so many steps a plan is shown whole."""
BEFORE = 24
AFTER = 8
_WORD = re.compile(r"[\w.-]*\w")


def plan_excerpt(plan: Plan, step_id: str | None) -> frozenset[str] | None:
    """Return the ids of the steps that the step at hand is shown, itself included; None for all of them.

    Those are the ones around it, what it depends on, names in its description or replaces, the steps that it is part
    of, and its own parts.
    """
    steps = list(plan.walk())
    place = next((number for number, step in enumerate(steps) if step.step_id == step_id), None)
    if place is None or len(steps) <= WHOLE:
        return None
    step = steps[place]
    shown = {each.step_id for each in steps[max(0, place - BEFORE) : place + AFTER + 1]}
    shown |= {*(step.depends_on or ()), *_WORD.findall(step.description), *_parts(step)}
    if step.replaces is not None:
        shown.add(step.replaces)
    shown |= {each.step_id for each in steps[:place] if step.step_id in _parts(each)}
    return frozenset(shown & {each.step_id for each in steps})


def _parts(step: PlanStep) -> set[str]:
    substeps = step.subplan.substeps if step.subplan is not None else []
    return {substep.step_id for substep in substeps}.union(*map(_parts, substeps))
