"""Refined plans stay data: what is no part of a step never gets into one (adaptive FR-014, FR-052, SC-011)."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from aeon_core.plan.parsing import dump_plan
from aeon_core.schemas import schema
from tests.aeon_core.plan.refinement.kit import act, applied, by_id, plan_of, same, step

PLAN = plan_of(step("a"), step("b"))
CODE = "import os; os.system('true') if __name__ else None"


def test_code_in_a_description_is_text_and_nothing_else() -> None:
    outcome = applied(PLAN, act("step_modify", "a", description=f"run `{CODE}`"))

    assert by_id(outcome.plan)["a"] == {**by_id(PLAN)["a"], "description": f"run `{CODE}`"}
    jsonschema_rs.validator_for(schema("Plan")).validate(dump_plan(outcome.plan))


@pytest.mark.parametrize("key", ["code", "if", "loop", "on_error", "__class__"])
@pytest.mark.parametrize(
    "kind", ["step_modify", "step_add", "subplan_create", "plan_update"], ids=["modify", "add", "subplan", "update"]
)
def test_a_step_with_a_key_that_no_step_has_is_refused_by_its_name(kind: str, key: str) -> None:
    target = "plan" if kind in ("step_add", "plan_update") else "a"
    step_id = "a" if kind in ("step_modify", "plan_update") else "n"
    outcome = applied(PLAN, act(kind, target, steps=[{"step_id": step_id, "description": "d", key: CODE}]))

    assert same(outcome.plan, PLAN)
    assert key in outcome.refused[0].explanation


def test_a_key_next_to_the_steps_is_left_out_and_named() -> None:
    outcome = applied(PLAN, act("subplan_create", "a", steps=[{"id": "n", "description": "d"}], code=CODE, **{"if": 1}))

    (done,) = outcome.accepted
    assert done.explanation == 'expanded a into 1 substep; ignored in changes: "code", "if"'
    assert CODE not in str(dump_plan(outcome.plan))


def test_a_fully_read_reply_reports_nothing_ignored() -> None:
    changes: dict[str, Any] = {"after": "a", "goal": None, "steps": [{"id": "n", "description": "d", "agent": "llm"}]}
    (done,) = applied(PLAN, act("step_add", "plan", **changes)).accepted

    assert done.explanation == "added n"


@pytest.mark.parametrize("arguments", [{"x": float("nan")}, [1], "rm -rf"], ids=["nan", "list", "text"])
def test_arguments_that_are_not_a_json_object_are_refused(arguments: Any) -> None:
    action = act("step_modify", "a").model_copy(update={"changes": {"tool": "echo", "arguments": arguments}})
    outcome = applied(PLAN, action)

    assert same(outcome.plan, PLAN)
    assert "arguments" in outcome.refused[0].explanation or "changes" in outcome.refused[0].explanation
