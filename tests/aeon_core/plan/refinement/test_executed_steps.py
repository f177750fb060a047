"""What was executed stays; what is found wanting is marked invalid and replaced (adaptive FR-069, FR-070)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core import Plan, PlanStep
from aeon_core.entities import ValidationIssue
from aeon_core.plan.refinement.actions import RefinementLedger, fragments_to_refine
from tests.aeon_core.plan.refinement.kit import act, applied, by_id, issue, plan_of, same, step, unchanged

DONE = plan_of(step("a", "complete"), step("b", "failed", depends_on=["a"]), step("c", depends_on=["b"]))


def statuses(plan: Any) -> dict[str, str]:
    return {step_id: fields["status"] for step_id, fields in by_id(plan).items()}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"status": "invalid"},
        {"description": "try again"},
        {"replacement": {"step_id": "b2", "description": "try again"}},
    ],
    ids=["bare", "status", "fields", "replacement"],
)
def test_an_executed_step_is_marked_invalid_and_a_new_one_after_it_replaces_it(changes: dict[str, Any]) -> None:
    outcome = applied(DONE, act("step_mark_invalid", "b", **changes))

    new = "b2" if "replacement" in changes else "b-r1"
    assert statuses(outcome.plan) == {"a": "complete", "b": "invalid", new: "pending", "c": "pending"}
    steps = by_id(outcome.plan)
    assert steps["b"] == {**by_id(DONE)["b"], "status": "invalid"}
    assert steps[new]["replaces"] == "b"
    assert steps[new]["description"] == ("do b" if changes in ({}, {"status": "invalid"}) else "try again")
    assert steps[new]["depends_on"] == ["a"]
    assert steps["c"]["depends_on"] == [new]
    assert outcome.replaced == {"b": new}
    assert outcome.accepted[0].action.inconsistency_detected is True
    assert outcome.ledger.fragments == {"b": 1}


@pytest.mark.parametrize("kind", ["step_modify", "subplan_create"])
def test_a_rewrite_of_an_executed_step_becomes_a_replacement(kind: str) -> None:
    changes: dict[str, Any] = (
        {"description": "better"} if kind == "step_modify" else {"substeps": [{"description": "x"}]}
    )
    outcome = applied(DONE, act(kind, "a", **changes))

    steps = by_id(outcome.plan)
    assert steps["a"] == {**by_id(DONE)["a"], "status": "invalid"}
    assert steps["a-r1"]["description"] == ("better" if kind == "step_modify" else "do a")
    assert ("a.1" in steps) is (kind == "subplan_create")


def test_steps_that_depend_on_an_invalid_result_run_again() -> None:
    plan = plan_of(step("a", "complete"), step("x", "complete"), step("b", "complete", depends_on=["a"]))
    outcome = applied(plan, act("step_mark_invalid", "a"))

    assert statuses(outcome.plan) == {
        "a": "invalid",
        "a-r1": "pending",
        "x": "complete",
        "b": "invalid",
        "b-r1": "pending",
    }
    assert by_id(outcome.plan)["b-r1"]["depends_on"] == ["a-r1"]
    assert outcome.ledger.total == 1


def test_an_executed_step_is_never_removed() -> None:
    outcome = applied(DONE, act("step_remove", "a"))

    assert same(outcome.plan, DONE)
    assert "what was executed stays" in outcome.refused[0].explanation
    assert outcome.refused[0].action.inconsistency_detected is True


def test_an_invalid_step_is_not_replaced_twice() -> None:
    outcome = applied(DONE, act("step_mark_invalid", "a"), act("step_mark_invalid", "a"))

    assert [each.accepted for each in outcome.refinements] == [True, False]
    assert "already invalid" in outcome.refused[0].explanation


def test_a_separate_replacement_action_is_one_refinement() -> None:
    outcome = applied(
        DONE,
        act("step_mark_invalid", "b"),
        act("step_add", "b", step={"step_id": "b9", "description": "another way", "replaces": "b"}),
    )
    assert statuses(outcome.plan) == {"a": "complete", "b": "invalid", "b9": "pending", "c": "pending"}
    assert by_id(outcome.plan)["b9"]["description"] == "another way"
    assert len(outcome.refinements) == 1
    assert outcome.ledger.total == 1


def test_a_mark_that_holds_its_replacement_needs_no_other() -> None:
    outcome = applied(
        DONE,
        act("step_mark_invalid", "b", step={"step_id": "b8", "description": "one way"}),
        act("step_add", "b", step={"step_id": "b9", "description": "another way", "replaces": "b"}),
    )
    assert [each.accepted for each in outcome.refinements] == [True, False]
    assert outcome.replaced == {"b": "b8"}


def test_an_added_step_that_replaces_an_executed_one_marks_it_invalid() -> None:
    outcome = applied(DONE, act("step_add", "plan", step={"step_id": "a9", "description": "anew", "replaces": "a"}))

    assert outcome.replaced["a"] == "a9"
    assert statuses(outcome.plan)["a"] == "invalid"


def objections(step: PlanStep, plan: Plan) -> list[ValidationIssue]:
    return [issue(step.step_id, "medium")] if step.description in ("do a", "do b", "vague") else []


def test_rerunning_a_step_unchanged_is_allowed_and_redefining_it_is_not() -> None:
    again = applied(DONE, act("step_mark_invalid", "a"), validate=objections)
    vague = applied(DONE, act("step_modify", "a", description="vague"), validate=objections)
    better = applied(DONE, act("step_modify", "a", description="concrete"), validate=objections)

    assert set(again.replaced) == {"a", "b"}
    assert vague.refused[0].explanation == "validation objects to step 'a-r1': a-r1 is wanting"
    assert set(better.replaced) == {"a", "b"}


def test_a_replacement_counts_for_the_fragment_it_replaces() -> None:
    first = applied(DONE, act("step_mark_invalid", "b"))
    second = applied(first.plan, act("step_modify", "b-r1", description="once more"), ledger=first.ledger)

    assert second.ledger.fragments == {"b": 2}


def test_a_substep_is_replaced_inside_a_replacement_of_the_step_around_it() -> None:
    gather = step("p", "failed", step("p1", "complete"), step("p2", "failed"), agent=None)
    outcome = applied(plan_of(gather, step("q")), act("step_modify", "p2", description="another way"))

    assert statuses(outcome.plan) == {
        "p": "invalid",
        "p1": "complete",
        "p2": "invalid",
        "p-r1": "pending",
        "p2-r1": "pending",
        "q": "pending",
    }
    stand_in = outcome.plan.find("p-r1")
    assert stand_in is not None
    assert stand_in.subplan is not None
    assert [each.step_id for each in stand_in.subplan.substeps] == ["p2-r1"]


@pytest.mark.parametrize(("first", "again"), [("failed", {"p1"}), ("complete", {"p1", "p2"})], ids=["failed", "all"])
def test_a_step_of_only_substeps_reruns_its_substeps(first: str, again: set[str]) -> None:
    gather = step("p", "complete", step("p1", first), step("p2", "complete"), agent=None)
    outcome = applied(plan_of(gather), act("step_mark_invalid", "p"))

    assert set(outcome.replaced) == {"p", *again}


def test_a_step_added_after_an_executed_substep_goes_after_the_executed_step_around_it() -> None:
    plan = plan_of(step("p", "complete", step("p1", "complete")), step("q"))
    outcome = applied(plan, act("step_add", "p1", step={"step_id": "n", "description": "d"}))

    assert [each.step_id for each in outcome.plan.steps] == ["p", "n", "q"]
    assert unchanged(plan, outcome.plan)


def test_a_step_that_replaces_another_is_not_removed() -> None:
    replaced = applied(DONE, act("step_mark_invalid", "b")).plan

    assert "replaces the invalid step" in applied(replaced, act("step_remove", "b-r1")).refused[0].explanation


def test_a_proposed_repair_of_the_replaced_step_that_is_not_followed_is_an_advisory() -> None:
    wanting = issue("b", "high", "hallucination", proposed_repair="Set the tool to 'calculator'.")
    outcome = applied(DONE, act("step_modify", "b", tool="echo"), issues=[wanting])

    assert [(advisory.step_id, advisory.issue["issue_id"]) for advisory in outcome.advisories] == [("b-r1", "i-b")]


TWO_FAILED = plan_of(
    step("p", "failed", step("p1", "complete"), step("p2", "failed"), step("p3", "failed"), agent=None), step("q")
)


def test_all_failed_parts_of_a_step_run_again_with_it() -> None:
    outcome = applied(TWO_FAILED, act("step_modify", "p2", description="another way"))

    stand_in = outcome.plan.find("p-r1")
    assert stand_in is not None
    assert stand_in.subplan is not None
    assert [each.step_id for each in stand_in.subplan.substeps] == ["p2-r1", "p3-r1"]
    assert statuses(outcome.plan)["p3"] == "invalid"


def test_actions_of_one_reply_on_two_parts_reach_both_replacements() -> None:
    outcome = applied(
        TWO_FAILED,
        act("step_modify", "p2", steps=[{"id": "p2", "description": "another way"}]),
        act("step_mark_invalid", "p3", steps=[{"id": "p3", "description": "a third way"}]),
    )

    assert [each.accepted for each in outcome.refinements] == [True, True]
    steps = by_id(outcome.plan)
    assert [steps[each]["description"] for each in ("p2-r1", "p3-r1")] == ["another way", "a third way"]
    assert outcome.ledger.fragments == {"p2": 1, "p3": 1}


def test_a_kept_part_of_a_replaced_step_is_refined_via_the_replacement() -> None:
    once = applied(TWO_FAILED, act("step_mark_invalid", "p2")).plan
    outcome = applied(once, act("step_mark_invalid", "p1"))

    assert same(outcome.plan, once)
    assert "is a part of 'p', which was replaced" in outcome.refused[0].explanation.replace('"', "'")
    assert [
        each.step_id for each in fragments_to_refine(once, issues=[issue("p1", "high")], ledger=outcome.ledger)
    ] == ["p-r1"]


@pytest.mark.parametrize("status", ["complete", "failed"])
def test_steps_inside_a_replaced_step_need_no_refinement(status: str) -> None:
    plan = plan_of(
        step("p", "invalid", step("p1", status), agent=None),
        step("p-r1", "complete", step("n", "complete"), agent=None, replaces="p"),
    )

    assert fragments_to_refine(plan, ledger=RefinementLedger()) == []


def test_a_plan_update_replaces_a_failed_step_that_it_rewords() -> None:
    given = [{"step_id": "a", "description": "another a"}, {"step_id": "b", "description": "a way that works"}]
    outcome = applied(DONE, act("plan_update", "plan", goal="reach it", steps=given))

    assert statuses(outcome.plan) == {"a": "complete", "b": "invalid", "b-r1": "pending", "c": "pending"}
    assert by_id(outcome.plan)["b-r1"]["description"] == "a way that works"
    assert [(each.action.type, each.action.inconsistency_detected) for each in outcome.accepted] == [
        ("step_modify", True)
    ]


def test_a_plan_update_may_hold_the_whole_plan() -> None:
    whole = {"goal": "reach it", "steps": [{"step_id": "c", "description": "a clearer c"}]}
    outcome = applied(DONE, act("plan_update", "plan", plan=whole))

    assert by_id(outcome.plan)["c"]["description"] == "a clearer c"
    assert unchanged(DONE, outcome.plan, "c")


def test_a_plan_update_that_changes_nothing_is_refused_and_not_forgotten() -> None:
    outcome = applied(DONE, act("plan_update", "plan", steps=[{"step_id": "a", "description": "another a"}]))

    assert same(outcome.plan, DONE)
    assert [each.explanation for each in outcome.refused] == [
        "changes: nothing would change; a step that is complete stays, unless it is marked invalid"
    ]
    assert outcome.ledger.total == 0


def test_steps_that_cannot_be_read_are_refused_next_to_a_goal() -> None:
    outcome = applied(plan_of(step("a")), act("plan_update", "plan", goal="reach it by noon", steps="a, then b"))

    assert outcome.plan.goal == "reach it"
    assert [each.explanation for each in outcome.refused] == [
        'changes.steps: expected an array of steps, got "a, then b"'
    ]


def test_a_second_action_on_a_replaced_step_may_give_its_replacement_any_id() -> None:
    outcome = applied(
        DONE,
        act("step_mark_invalid", "b"),
        act("step_mark_invalid", "b", steps=[{"id": "b9", "description": "a way that works"}]),
    )

    assert statuses(outcome.plan) == {"a": "complete", "b": "invalid", "b-r1": "pending", "c": "pending"}
    assert by_id(outcome.plan)["b-r1"]["description"] == "a way that works"
    assert outcome.refused == []
