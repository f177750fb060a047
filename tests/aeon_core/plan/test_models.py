"""The rules of Plan, PlanStep and Subplan at every depth (data model)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from aeon_core import Plan, PlanStep

STATUSES = ["pending", "running", "complete", "failed", "invalid"]
LEGAL = {
    ("pending", "running"),
    ("running", "complete"),
    ("running", "failed"),
    ("complete", "invalid"),
    ("failed", "invalid"),
}


def step(**fields: Any) -> dict[str, Any]:
    return {"step_id": "s1", "description": "d", **fields}


def nested(depth: int) -> dict[str, Any]:
    """A step with subplans down to `depth`."""
    inner: dict[str, Any] = step(step_id=f"d{depth}")
    for level in range(depth, 0, -1):
        parent = f"d{level - 1}"
        subplan = {"parent_step_id": parent, "subplan_goal": "g", "substeps": [inner], "depth_level": level}
        inner = step(step_id=parent, subplan=subplan)
    return inner


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", [*STATUSES, "done"])
def test_only_legal_transitions_are_possible(before: Any, after: Any) -> None:
    moved = PlanStep(step_id="s1", description="d", status=before)
    if (before, after) in LEGAL:
        moved.status = after
        assert moved.status == after
    else:
        with pytest.raises(ValueError, match="s1"):
            moved.status = after
        assert moved.status == before


@pytest.mark.parametrize("end", ["complete", "failed"])
def test_the_validators_errors_are_cleared_when_the_step_ends(end: Any) -> None:
    ended = PlanStep(step_id="s1", description="d", errors=["Tool 'x' not found in registry"])
    ended.status = "running"
    assert ended.errors == ["Tool 'x' not found in registry"]
    ended.status = end
    assert ended.errors is None


@pytest.mark.parametrize(
    "plan",
    [
        {"goal": "", "steps": [step()]},
        {"goal": " \n", "steps": [step()]},
        {"goal": 5, "steps": [step()]},
        {"goal": "g", "steps": []},
        {"goal": "g"},
        {"goal": "g", "steps": [step()], "extra": 1},
        {"goal": "g", "steps": [step(extra=1)]},
        {"goal": "g", "steps": [step(step_id="")]},
        {"goal": "g", "steps": [step(step_id=1)]},
        {"goal": "g", "steps": [step(description="  ")]},
        {"goal": "g", "steps": [step(status="done")]},
        {"goal": "g", "steps": [step(agent="gpt")]},
        {"goal": "g", "steps": [step(tool=True)]},
        {"goal": "g", "steps": [step(), step()]},
        {"goal": "g", "steps": [step(arguments=[1])]},
        {"goal": "g", "steps": [nested(6)]},
        {"goal": "g", "steps": [nested(1), step(step_id="d1")]},
        {
            "goal": "g",
            "steps": [step(subplan={"parent_step_id": "other", "subplan_goal": "g", "substeps": [step(step_id="x")]})],
        },
        {
            "goal": "g",
            "steps": [step(subplan={"parent_step_id": "s1", "subplan_goal": "g", "substeps": [], "depth_level": 1})],
        },
        {
            "goal": "g",
            "steps": [
                step(
                    subplan={
                        "parent_step_id": "s1",
                        "subplan_goal": "g",
                        "substeps": [step(step_id="x")],
                        "depth_level": 2,
                    }
                )
            ],
        },
    ],
)
def test_an_unsound_plan_is_refused(plan: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Plan.model_validate(plan)


@pytest.mark.parametrize("depth", range(6))
def test_nesting_is_limited_to_five_levels(depth: int) -> None:
    plan = Plan.model_validate({"goal": "g", "steps": [nested(depth)]})
    assert [found.step_id for found in plan.walk()] == [f"d{level}" for level in range(depth + 1)]
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_gaps_in_ids_are_fine_and_order_is_the_arrays() -> None:
    plan = Plan.model_validate({"goal": "g", "steps": [step(step_id="s9"), step(step_id="s2")]})
    assert [found.step_id for found in plan.steps] == ["s9", "s2"]


@given(st.lists(st.sampled_from(STATUSES), max_size=6))
def test_no_sequence_of_transitions_goes_backwards(moves: list[Any]) -> None:
    moved = PlanStep(step_id="s1", description="d")
    order = {"pending": 0, "running": 1, "complete": 2, "failed": 2, "invalid": 3}
    for status in moves:
        before = moved.status
        try:
            moved.status = status
        except ValueError:
            assert moved.status == before
        else:
            assert order[status] > order[before]
