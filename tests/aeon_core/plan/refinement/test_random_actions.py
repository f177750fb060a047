"""Whatever a model sends: refinement never raises, what was executed stays, the limits hold, the plan is sound."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core.errors import ValidationError
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan
from aeon_core.plan.refinement.actions import RefinementAction, RefinementLedger
from aeon_core.plan.requests import read_refinement
from aeon_core.schemas import schema
from tests.aeon_core.plan.refinement.kit import applied, by_id, plan_of, step
from tests.sampling import examples

SCHEMA = jsonschema_rs.validator_for(schema("Plan"))
PLAN = plan_of(
    step("a", "complete", arguments={"x": [None, 1.0, "ü"]}),
    step("b", "failed", step("b1", "complete"), step("b2", "failed"), agent=None),
    step("c", "invalid"),
    step("c2", "complete", replaces="c", depends_on=["a"]),
    step("d", "pending", step("d1"), depends_on=["c2"]),
    step("e", depends_on=["d"]),
)
IDS = ["a", "b", "b1", "b2", "c", "c2", "d", "d1", "e", "n", "plan", "answer", ""]
scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.text(max_size=3) | st.sampled_from(IDS)
keys = st.sampled_from(
    [
        "id",
        "step_id",
        "parent",
        "description",
        "tool",
        "agent",
        "arguments",
        "arguments_json",
        "depends_on",
        "subplan",
        "substeps",
        "steps",
        "step",
        "after",
        "before",
        "replaces",
        "replacement",
        "status",
        "goal",
        "text",
        "depth_level",
        "exec",
    ]
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
ids = st.sampled_from(IDS)
steps = st.fixed_dictionaries(
    {"description": st.sampled_from(["d", "another"])},
    optional={
        "step_id": ids,
        "id": ids,
        "parent": ids,
        "tool": st.sampled_from(["echo", None]),
        "agent": st.just("llm"),
        "arguments": st.dictionaries(st.text(max_size=2), scalars, max_size=2),
        "depends_on": st.lists(ids, max_size=2),
        "replaces": ids,
        "subplan": anything,
    },
)
changes = (
    steps
    | st.fixed_dictionaries({"steps": st.lists(steps, max_size=3)}, optional={"after": ids, "before": ids})
    | st.dictionaries(keys, anything, max_size=3)
    | anything
)
kinds = st.sampled_from(
    ["plan_update", "step_add", "step_remove", "step_modify", "subplan_create", "step_mark_invalid"]
)
actions = st.fixed_dictionaries({"type": kinds, "target": ids, "changes": changes, "reason": st.just("r")})


def executed(plan: Plan) -> dict[str, dict[str, Any]]:
    return {step_id: fields for step_id, fields in by_id(plan).items() if fields["status"] != "pending"}


def pending_in_executed(plan: Plan) -> list[str]:
    """Return the steps that would never run: pending ones within a step that has run."""
    return [
        part.step_id
        for each in plan.walk()
        if each.executed and each.subplan is not None
        for part in each.subplan.substeps
        if part.status == "pending"
    ]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(actions, max_size=14))
def test_executed_steps_stay_limits_hold_and_the_plan_is_sound(given_actions: list[Any]) -> None:
    before = dump_plan(PLAN)
    try:
        reply = read_refinement({"actions": given_actions})
    except ValidationError:
        return
    outcome = applied(PLAN, *reply.actions)

    after = by_id(outcome.plan)
    for step_id, fields in executed(PLAN).items():
        assert {**after[step_id], "status": fields["status"]} == fields
        assert after[step_id]["status"] in (fields["status"], "invalid")
    around = {part.step_id: each.step_id for each in PLAN.walk() if each.subplan for part in each.subplan.substeps}
    for step_id, fields in after.items():
        newly_invalid = fields["status"] == "invalid" and by_id(PLAN)[step_id]["status"] != "invalid"
        covered = {step_id, around.get(step_id)}
        assert not newly_invalid or any(each.get("replaces") in covered for each in after.values())
    assert pending_in_executed(outcome.plan) == []
    assert max(outcome.ledger.fragments.values(), default=0) <= 3
    assert outcome.ledger.total == sum(outcome.ledger.fragments.values()) <= 10
    dumped = dump_plan(outcome.plan)
    SCHEMA.validate(dumped)
    assert dump_plan(Plan.model_validate(json.loads(json.dumps(dumped)))) == dumped
    assert dump_plan(PLAN) == before
    assert set(after) >= set(executed(PLAN))


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(actions, max_size=10))
def test_only_pending_steps_change_and_only_those_that_an_action_reaches(given_actions: list[Any]) -> None:
    try:
        reply = read_refinement({"actions": given_actions})
    except ValidationError:
        return
    outcome = applied(PLAN, *reply.actions)

    told = json.dumps([[each.before, each.after, each.replaced] for each in outcome.accepted])
    was, now = by_id(PLAN), by_id(outcome.plan)
    for step_id in was:
        if step_id not in now or was[step_id] != now[step_id]:
            followed = {*was[step_id].get("depends_on", ())} & {*outcome.replaced}
            assert f'"{step_id}"' in told or followed
    assert len(now) == sum(1 for _ in outcome.plan.walk())


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(anything, max_size=6) | anything)
def test_garbage_changes_nothing_however_often_it_comes(garbage: Any) -> None:
    plan, ledger = PLAN, RefinementLedger()
    for _ in range(2):
        try:
            reply = read_refinement({"actions": garbage})
        except ValidationError:
            return
        outcome = applied(plan, *reply.actions, ledger=ledger)
        assert outcome.accepted == []
        assert dump_plan(outcome.plan) == dump_plan(PLAN)
        plan, ledger = outcome.plan, outcome.ledger
    assert ledger == RefinementLedger()


@settings(max_examples=examples(200), deadline=None)
@given(anything | st.text() | st.fixed_dictionaries({"actions": anything}))
def test_any_reply_is_parsed_or_refused(reply: Any) -> None:
    try:
        actions = read_refinement(reply).actions
    except ValidationError:
        return
    assert all(isinstance(action, RefinementAction) for action in actions)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(actions, max_size=8))
def test_passes_never_get_more_than_the_limits(given_actions: list[Any]) -> None:
    plan, ledger = PLAN, RefinementLedger()
    try:
        reply = read_refinement({"actions": given_actions})
    except ValidationError:
        return
    for _ in range(4):
        outcome = applied(plan, *reply.actions, ledger=ledger)
        plan, ledger = outcome.plan, outcome.ledger
    assert ledger.total <= 10
    assert max(ledger.fragments.values(), default=0) <= 3


@pytest.mark.parametrize("deep", [200, 5000])
def test_a_bottomless_fragment_is_refused(deep: int) -> None:
    inner: dict[str, Any] = {"description": "d"}
    for _ in range(deep):
        inner = {"description": "d", "subplan": {"substeps": [inner]}}
    with pytest.raises(ValidationError, match="not a valid refinement"):
        read_refinement({"actions": [{"type": "step_modify", "target": "e", "changes": {"step": inner}}]})
