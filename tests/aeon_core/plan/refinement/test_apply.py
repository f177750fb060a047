"""Refinement actions on steps that are still to run (adaptive FR-009, FR-010, FR-013 to FR-015, FR-079)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core import Plan, PlanStep
from aeon_core.plan.parsing import dump_plan
from aeon_core.plan.refinement.actions import RefinementLedger
from tests.aeon_core.plan.refinement.kit import act, applied, by_id, issue, plan_of, same, step, unchanged

PLAN = plan_of(step("a"), step("b", depends_on=["a"]), step("c", tool="echo", arguments={"message": None}, agent=None))


def refusal(*args: Any, **options: Any) -> str:
    outcome = applied(*args, **options)
    assert outcome.accepted == []
    return outcome.refused[0].explanation


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "count the words of notes.txt"},
        {"step": {"step_id": "b", "description": "count the words of notes.txt"}},
        {"steps": [{"id": "b", "description": "count the words of notes.txt", "tool": None, "arguments_json": None}]},
        {"text": "count the words of notes.txt"},
    ],
    ids=["fields", "step", "wire", "text"],
)
def test_a_rewrite_touches_only_its_target(changes: dict[str, Any]) -> None:
    before = dump_plan(PLAN)

    outcome = applied(PLAN, act("step_modify", "b", **changes))

    assert by_id(outcome.plan)["b"] == {**by_id(PLAN)["b"], "description": "count the words of notes.txt"}
    assert unchanged(PLAN, outcome.plan, "b")
    assert list(by_id(outcome.plan)) == ["a", "b", "c"]
    assert dump_plan(PLAN) == before
    (refinement,) = outcome.accepted
    assert refinement.before[0]["description"] == "do b"
    assert refinement.as_dict()["after"][0]["description"] == "count the words of notes.txt"


def test_a_tool_replaces_the_agent_and_arguments_follow_their_tool() -> None:
    outcome = applied(
        PLAN,
        act("step_modify", "b", tool="echo", arguments={"message": "hi"}),
        act("step_modify", "c", agent="llm"),
        act("step_modify", "a", tool="calculator", arguments_json='{"a": 1}'),
    )
    steps = by_id(outcome.plan)
    assert steps["b"]["tool"] == "echo"
    assert steps["b"]["arguments"] == {"message": "hi"}
    assert "agent" not in steps["b"]
    assert "tool" not in steps["c"]
    assert "arguments" not in steps["c"]
    assert steps["a"]["arguments"] == {"a": 1}


def test_a_step_is_expanded_into_a_subplan_with_its_own_ids() -> None:
    substeps = [{"step_id": "a", "description": "read"}, {"description": "write", "depends_on": ["a"]}]
    outcome = applied(PLAN, act("subplan_create", "b", subplan_goal="both", substeps=substeps))

    (b,) = [each for each in outcome.plan.steps if each.step_id == "b"]
    assert b.subplan is not None
    assert (b.subplan.subplan_goal, b.subplan.created_by, b.subplan.depth_level) == ("both", "recursive_planner", 1)
    assert [(each.step_id, each.depends_on) for each in b.subplan.substeps] == [("a-2", None), ("b.1", ["a-2"])]
    assert unchanged(PLAN, outcome.plan, "b")


def test_flat_substeps_become_a_nested_subplan_with_correct_depths() -> None:
    plan = plan_of(step("a", "pending", step("a1")))
    flat = [
        {"id": "x", "parent": "a1", "description": "d", "agent": "llm", "tool": None},
        {"id": "y", "parent": "x", "description": "d", "agent": "llm", "tool": None},
    ]
    outcome = applied(plan, act("subplan_create", "a1", steps=flat))

    found = {each.step_id: each.subplan.depth_level for each in outcome.plan.walk() if each.subplan is not None}
    assert found == {"a": 1, "a1": 2, "x": 3}


def test_arguments_that_a_small_model_writes_with_single_quotes_are_read_in_a_refinement() -> None:
    new = {"id": "y", "description": "say hi", "tool": "echo", "arguments_json": "{'message': 'hi'}"}
    outcome = applied(
        PLAN,
        act("step_add", "c", step=new),
        act("step_modify", "a", tool="calculator", arguments_json="{'a': 1}"),
    )
    steps = by_id(outcome.plan)
    assert (steps["y"]["arguments"], steps["a"]["arguments"]) == ({"message": "hi"}, {"a": 1})


def test_a_wire_step_may_hold_a_subplan_and_its_arguments_as_text() -> None:
    inner = {"id": "y", "description": "say hi", "tool": "echo", "arguments_json": '{"message": "hi"}'}
    raw = {"id": "x", "parent": None, "description": "greet", "subplan": {"substeps": [inner]}}
    outcome = applied(PLAN, act("step_add", "c", step=raw))

    steps = by_id(outcome.plan)
    assert list(steps) == ["a", "b", "c", "x", "y"]
    assert steps["y"]["arguments"] == {"message": "hi"}


@pytest.mark.parametrize(
    ("target", "changes", "order"),
    [
        ("a", {"description": "d"}, ["a", "new", "b", "c"]),
        ("plan", {"step": {"step_id": "n", "description": "d"}, "after": "b"}, ["a", "b", "n", "c"]),
        ("n", {"step_id": "n", "description": "d"}, ["a", "b", "c", "n"]),
        ("plan", {"step": {"step_id": "n", "description": "d"}, "before": "a"}, ["n", "a", "b", "c"]),
        ("plan", {"steps": [{"id": "n", "parent": "b", "description": "d"}]}, ["a", "b", "n", "c"]),
    ],
    ids=["target", "after", "own-id", "before", "parent"],
)
def test_a_step_is_added_where_the_action_says(target: str, changes: dict[str, Any], order: list[str]) -> None:
    outcome = applied(PLAN, act("step_add", target, **changes))

    assert list(by_id(outcome.plan)) == order
    assert unchanged(PLAN, outcome.plan)


def test_a_step_that_nothing_depends_on_is_removed() -> None:
    outcome = applied(PLAN, act("step_remove", "c"))

    assert list(by_id(outcome.plan)) == ["a", "b"]
    assert unchanged(PLAN, outcome.plan, "c") is True


def test_a_plan_update_changes_the_pending_steps_it_names_and_keeps_the_others() -> None:
    plan = plan_of(step("a", "complete"), step("b"), step("c"))
    given = [
        {"step_id": "a", "description": "another a"},
        {"step_id": "b", "description": "another b"},
        {"step_id": "n", "description": "new"},
    ]
    outcome = applied(plan, act("plan_update", "plan", steps=given))

    steps = by_id(outcome.plan)
    assert list(steps) == ["a", "b", "n", "c"]
    assert (steps["a"]["description"], steps["b"]["description"]) == ("do a", "another b")
    assert [each.action.type for each in outcome.accepted] == ["step_modify", "step_add"]


def test_a_refinement_cannot_change_the_goal() -> None:
    update = act("plan_update", "plan", goal="reach it by noon")

    assert "a refinement keeps the goal" in refusal(PLAN, update)
    assert "a refinement keeps the goal" in refusal(plan_of(step("a", "complete"), step("b")), update)
    both = act("plan_update", "plan", goal="reach it by noon", steps=[{"step_id": "b", "description": "a clearer b"}])
    assert applied(PLAN, both).plan.goal == PLAN.goal


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (act("step_modify", "zz", description="d"), 'no step of the plan has the id "zz"'),
        (act("step_modify", "b"), "expected a new description"),
        (act("step_modify", "b", step_id="x", description="d"), "ids stay"),
        (act("step_modify", "b", description="d", code="rm"), 'unknown key "code"'),
        (act("step_modify", "b", description="  "), "expected a non-empty string"),
        (act("step_modify", "b", description="d", status="complete"), "expected 'pending'"),
        (act("step_modify", "b", arguments_json="{"), "expected a JSON object written as a string"),
        (act("step_modify", "a", depends_on=["b"]), "step 'a' would depend on 'b', which does not end before it"),
        (act("step_modify", "b", depends_on=["b"]), "step 'b' would depend on 'b'"),
        (act("step_remove", "a"), "step 'b' would depend on 'a'"),
        (act("step_mark_invalid", "a"), "has not run"),
        (act("subplan_create", "a"), "expected at least one step"),
        (act("subplan_create", "a", substeps="x"), 'expected an array of steps, got "x"'),
        (act("subplan_create", "a", substeps=[{"description": "d", "loop": 3}]), 'unknown key "loop"'),
        (act("step_add", "a"), "expected the step to add"),
        (act("step_add", "a", description="d", depends_on=["zz"]), "would depend on 'zz'"),
        (act("plan_update", "plan"), "expected 'steps'"),
    ],
    ids=lambda value: f"{value.type}" if hasattr(value, "type") else "",
)
def test_an_impossible_action_is_refused_and_the_plan_kept(action: Any, reason: str) -> None:
    outcome = applied(PLAN, action)

    assert same(outcome.plan, PLAN)
    assert reason in outcome.refused[0].explanation


def test_the_last_step_is_never_removed() -> None:
    assert "at least one step" in refusal(plan_of(step("a")), act("step_remove", "a"))


def test_a_refused_action_leaves_the_others_in_force() -> None:
    outcome = applied(PLAN, act("step_remove", "a"), act("step_modify", "c", description="say hi"))

    assert [each.accepted for each in outcome.refinements] == [False, True]
    assert by_id(outcome.plan)["c"]["description"] == "say hi"


def vague_when(word: str, severity: str = "medium") -> Any:
    def validate(step: PlanStep, plan: Plan) -> list[Any]:
        assert plan.find(step.step_id) == step
        return [issue(step.step_id, severity)] if word in step.description else []

    return validate


def test_a_refined_fragment_is_validated_before_it_is_accepted() -> None:
    action = act("step_modify", "b", description="do stuff")

    assert refusal(PLAN, action, validate=vague_when("stuff")) == "validation objects to step 'b': b is wanting"
    assert (
        refusal(
            PLAN,
            act("step_add", "a", step={"step_id": "n", "description": "stuff", "agent": "llm"}),
            validate=vague_when("stuff"),
        )
        == "validation objects to step 'n': n is wanting"
    )


def test_every_new_substep_is_validated() -> None:
    parts = [{"description": "read"}, {"description": "stuff", "tool": "echo"}]

    assert "b.2 is wanting" in refusal(PLAN, act("subplan_create", "b", substeps=parts), validate=vague_when("stuff"))


def test_only_a_refinement_that_improves_is_accepted() -> None:
    def validate(step: PlanStep, plan: Plan) -> list[Any]:
        return [issue(step.step_id, "high", "consistency")] * step.description.count("!")

    plan = plan_of(step("a", description="x!!"))
    assert applied(plan, act("step_modify", "a", description="y!!"), validate=validate).accepted == []
    assert len(applied(plan, act("step_modify", "a", description="y!"), validate=validate).accepted) == 1


def test_a_refused_refinement_still_counts_as_an_attempt() -> None:
    outcome = applied(PLAN, act("step_modify", "b", description="stuff"), validate=vague_when("stuff"))

    assert outcome.ledger == RefinementLedger(total=1, fragments={"b": 1})


def test_the_planner_wins_over_a_proposed_repair_which_becomes_an_advisory() -> None:
    wanting = issue("b", kind="relevance", proposed_repair="Set the tool to 'calculator'.")
    outcome = applied(PLAN, act("step_modify", "b", tool="echo"), issues=[wanting])

    assert by_id(outcome.plan)["b"]["tool"] == "echo"
    (advisory,) = outcome.advisories
    assert advisory.as_dict() == {
        "step_id": "b",
        "issue": {
            "issue_id": "i-b",
            "type": "relevance",
            "severity": "medium",
            "description": "b is wanting",
            "location": {"artifact": "plan", "step_id": "b"},
            "proposed_repair": "Set the tool to 'calculator'.",
        },
        "resolution": "the recursive planner's refinement was kept",
    }


def test_an_applied_repair_is_not_an_advisory() -> None:
    wanting = issue("b", kind="relevance", proposed_repair="Set the tool to 'calculator'.")

    assert applied(PLAN, act("step_modify", "b", tool="calculator"), issues=[wanting]).advisories == []


def test_issues_left_after_an_accepted_refinement_are_advisories() -> None:
    def validate(step: PlanStep, plan: Plan) -> list[Any]:
        return [issue(step.step_id, "medium", "relevance")]

    outcome = applied(PLAN, act("step_modify", "b", description="count words"), validate=validate)
    assert [advisory.step_id for advisory in outcome.advisories] == ["b"]


def test_an_action_carries_the_known_issues_of_its_target() -> None:
    outcome = applied(PLAN, act("step_modify", "b", description="d"), issues=[issue("b"), issue("c")])

    (refinement,) = outcome.accepted
    assert [entry["issue_id"] for entry in refinement.action.semantic_validation_input] == ["i-b"]
    assert refinement.action.inconsistency_detected is False


def test_a_refused_refinement_leaves_no_advisory() -> None:
    def validate(step: PlanStep, plan: Plan) -> list[Any]:
        found = [issue(step.step_id, "medium", "relevance")]
        return [*found, issue(step.step_id, "high")] if step.step_id == "b.2" else found

    parts = [{"description": "read"}, {"description": "write"}]
    outcome = applied(PLAN, act("subplan_create", "b", substeps=parts), validate=validate)
    assert (len(outcome.refused), outcome.advisories) == (1, [])
