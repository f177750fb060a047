"""The results of the parts of a redone step no longer count (adaptive FR-069, FR-070)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core import Plan, ToolRegistry
from aeon_core.evaluation import Evaluator, current_plan
from aeon_core.judge.judgement import ask_of
from tests.aeon_core.plan.refinement.kit import act, applied, plan_of, step
from tests.fakes import ScriptedModel

TASK = "add 5 and 10"
HALVES = plan_of(step("p", "failed", step("p1", "complete"), step("p2", "failed"), agent=None))
ANEW: dict[str, Any] = {"steps": [{"step_id": "n1", "description": "add 5 and 10", "agent": "llm"}]}


def ids(plan: Plan) -> list[str]:
    return [each.step_id for each in current_plan(plan).walk()]


def done(plan: Plan) -> Plan:
    """Return the plan with its pending steps complete."""
    for each in plan.walk():
        if each.status == "pending":
            each.status = "running"
            each.status = "complete"
    return plan


def test_parts_replaced_by_a_new_subplan_are_left_out() -> None:
    anew = applied(HALVES, act("subplan_create", "p", **ANEW)).plan

    assert ids(anew) == ["p", "p-r1", "n1"]
    assert [each.step_id for each in anew.walk()] == ["p", "p1", "p2", "p-r1", "n1"]


def test_parts_that_a_replacement_reuses_stay() -> None:
    kept = applied(HALVES, act("step_mark_invalid", "p2", description="another way")).plan

    assert ids(kept) == ["p", "p1", "p2", "p-r1", "p2-r1"]
    assert current_plan(kept) is kept


def test_a_replacement_that_is_expanded_again_drops_all_earlier_parts() -> None:
    twice = applied(
        HALVES, act("step_mark_invalid", "p2", description="another way"), act("subplan_create", "p", **ANEW)
    )

    assert ids(twice.plan) == ["p", "p-r1", "n1"]


@pytest.mark.parametrize(
    "actions",
    [
        [act("subplan_create", "p", **ANEW)],
        [act("step_mark_invalid", "p"), act("subplan_create", "p", **ANEW)],
    ],
    ids=["at-once", "after-a-mark"],
)
def test_a_repeated_step_converges_although_a_part_had_failed(actions: list[Any]) -> None:
    plan = done(applied(HALVES, *actions).plan)
    outputs = {"p1": {"result": 4}, "n1": {"result": 15}, "p-r1": {"n1": {"result": 15}}}
    artifacts: dict[str, Any] = {"outputs": outputs, "failures": {"p2": ["timed out"]}, "memory": {}}

    judge = ask_of(ScriptedModel(judge={"issues": []}))
    _, assessment = Evaluator(TASK, ToolRegistry(), None, None).of_pass(
        plan, answer="5 and 10 come to 15.", ask=judge, **artifacts
    )

    assert (assessment.converged, assessment.detected_issues) == (True, [])
    assert assessment.metadata["steps"]["failed"] == []
