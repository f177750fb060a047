"""Large plans in the wording of many domains, put together from the labelled ones."""

from __future__ import annotations

from typing import Any

from aeon_core.plan.models import Plan
from tests.aeon_core.validation.labelled.plans import labelled_plans


def large_plan(steps: int, *, first: int = 0) -> Plan:
    """Return a plan of so many steps, no two of which say the same; `first` is the labelled plan it begins with.

    Raises AssertionError where the labelled plans have too few steps.
    """
    plans = [labelled["plan"] for labelled in labelled_plans()][first:]
    made: list[dict[str, Any]] = []
    said: set[str] = set()
    for plan in plans:
        ids: dict[str, str] = {}
        for step in plan["steps"]:
            if step["description"] not in said and len(made) < steps:
                said.add(step["description"])
                ids[step["step_id"]] = f"s{len(made) + 1}"
                needed = [ids[known] for known in step.get("depends_on") or () if known in ids]
                made.append({**step, "step_id": ids[step["step_id"]], "depends_on": needed or None})
    assert len(made) == steps, f"the labelled plans have {len(made)} different steps"
    return Plan.model_validate({"goal": plans[0]["goal"], "steps": made})
