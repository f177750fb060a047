"""What no step serves is the plan's: a fragment of its own, with the limits of one (FR-012, FR-065, FR-066)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.entities import IssueLocation, ValidationIssue
from aeon_core.plan.refinement.actions import RefinementLedger, fragments_to_refine, left_to_a_person
from tests.aeon_core.plan.refinement.kit import act, applied, by_id, issue, plan_of, same, step

DONE = plan_of(step("a", "complete"), step("b", "complete"))
AHEAD = plan_of(*(step(name, description=f"count the words of {name}.txt") for name in "abcd"))
NEW = {"step_id": "n", "description": "count the words of n.txt", "agent": "llm"}


def at(artifact: str, severity: Any = "high") -> ValidationIssue:
    return issue(None, severity, "consistency").model_copy(
        update={"location": IssueLocation(artifact=artifact), "description": f"the {artifact} is wanting"}
    )


def fragments(plan: Any = DONE, **options: Any) -> dict[str, tuple[str, ...]]:
    options.setdefault("ledger", RefinementLedger())
    return {each.step_id: each.reasons for each in fragments_to_refine(plan, **options)}


@pytest.mark.parametrize("artifact", ["plan", "goal", "answer", "memory"])
def test_an_issue_without_a_step_concerns_the_plan(artifact: str) -> None:
    assert fragments(issues=[at(artifact)]) == {"plan": (f"the {artifact} is wanting",)}


def test_a_low_issue_creates_no_fragment() -> None:
    assert fragments(issues=[at("plan", "low")]) == {}


def test_the_answer_is_not_refined_while_a_step_can_be() -> None:
    blamed = [issue("a", "high"), at("answer"), at("plan")]
    spent = RefinementLedger(total=3, fragments={"a": 3})

    assert fragments(issues=blamed) == {"a": ("a is wanting",), "plan": ("the plan is wanting",)}
    assert fragments(issues=blamed, ledger=spent)["plan"] == ("the answer is wanting", "the plan is wanting")


def test_missing_criteria_concern_the_plan_if_no_step_is_deficient() -> None:
    unmet = ["requirement 2 is not met: a chart is there", "step 'a' failed: no such file"]
    failed = plan_of(step("a", "failed"))
    spent = RefinementLedger(total=3, fragments={"a": 3})

    assert fragments(unmet=unmet[:1]) == {"plan": (unmet[0],)}
    assert fragments(failed, unmet=unmet) == {"a": ("the step failed: no reason is known",)}
    assert "plan" not in fragments(failed, unmet=unmet, ledger=spent)


def test_the_plan_as_a_fragment_is_plain_json_with_its_issues() -> None:
    (found,) = fragments_to_refine(DONE, issues=[at("goal")], ledger=RefinementLedger(total=1, fragments={"plan": 1}))

    assert (found.status, found.attempts, found.exhausted) == (None, 1, False)
    assert found.as_dict()["issues"][0]["location"]["artifact"] == "goal"


def test_added_steps_count_for_the_plan_and_are_placed_correctly() -> None:
    more = {**NEW, "step_id": "m", "depends_on": ["n"]}
    outcome = applied(DONE, act("step_add", "plan", steps=[NEW, more]), issues=[at("goal")])

    assert list(by_id(outcome.plan)) == ["a", "b", "n", "m"]
    assert outcome.ledger.fragments == {"plan": 1}
    (done,) = outcome.accepted
    assert [each["location"]["artifact"] for each in done.action.semantic_validation_input] == ["goal"]


@pytest.mark.parametrize(("kind", "target"), [("plan_update", "plan"), ("step_add", "n"), ("step_add", "b")])
def test_an_addition_names_the_issues_of_the_plan_that_it_answers(kind: str, target: str) -> None:
    (done,) = applied(DONE, act(kind, target, steps=[NEW]), issues=[at("goal")]).accepted

    assert done.action.type == "step_add"
    assert [each["location"]["artifact"] for each in done.action.semantic_validation_input] == ["goal"]


@pytest.mark.parametrize("target", ["plan", "own"])
@pytest.mark.parametrize("after", ["same", "chain"])
def test_additions_at_one_place_are_one_attempt_in_the_order_they_are_written(target: str, after: str) -> None:
    names = ["n1", "n2", "n3", "n4"]
    places = ["a"] * 4 if after == "same" else ["a", *names[:-1]]
    actions = [
        act("step_add", "plan" if target == "plan" else name, after=place, steps=[{**NEW, "step_id": name}])
        for name, place in zip(names, places, strict=True)
    ]
    outcome = applied(DONE, *actions)

    assert list(by_id(outcome.plan)) == ["a", *names, "b"]
    assert outcome.ledger.fragments == {"plan": 1}


def test_additions_at_different_places_are_different_attempts() -> None:
    outcome = applied(
        DONE, *(act("step_add", "plan", after=name, steps=[{**NEW, "step_id": f"{name}x"}]) for name in "ab")
    )

    assert list(by_id(outcome.plan)) == ["a", "ax", "b", "bx"]
    assert outcome.ledger.fragments == {"plan": 2}


def test_a_step_next_to_a_pending_one_is_an_attempt_on_that() -> None:
    assert applied(AHEAD, act("step_add", "b", steps=[NEW])).ledger.fragments == {"b": 1}
    assert applied(AHEAD, act("step_add", "plan", steps=[{**NEW, "parent": "c"}])).ledger.fragments == {"c": 1}


def test_the_plan_is_refined_three_times_and_then_left_to_a_person_once() -> None:
    ledger = RefinementLedger()
    plan = DONE
    for number in range(5):
        outcome = applied(plan, act("step_add", "plan", steps=[{**NEW, "step_id": f"n{number}"}]), ledger=ledger)
        plan, ledger = outcome.plan, outcome.ledger
    assert list(by_id(plan)) == ["a", "b", "n0", "n1", "n2"]
    assert [(entry.step_id, entry.cause) for entry in ledger.manual_intervention] == [("plan", "refinement_limit")]
    assert fragments_to_refine(plan, issues=[at("plan")], ledger=ledger)[0].exhausted


def test_another_answer_is_requested_without_changing_steps() -> None:
    outcome = applied(DONE, act("plan_update", "answer"), issues=[at("answer")])

    assert same(outcome.plan, DONE)
    assert outcome.accepted[0].explanation == "the steps stay, the task is answered again"
    assert [each["location"]["artifact"] for each in outcome.accepted[0].action.semantic_validation_input] == ["answer"]
    assert outcome.ledger.fragments == {"plan": 1}


def test_another_answer_is_requested_even_if_a_step_is_called_answer() -> None:
    plan = plan_of(step("a", "complete"), step("answer", "complete"))

    assert same(applied(plan, act("plan_update", "answer")).plan, plan)


def test_before_execution_no_other_answer_can_be_requested() -> None:
    outcome = applied(AHEAD, act("plan_update", "answer"))

    assert "no answer to give again" in outcome.refused[0].explanation
    assert outcome.ledger == RefinementLedger()


def test_each_deficient_fragment_at_its_limit_is_marked_once() -> None:
    ledger = RefinementLedger(total=7, fragments={"a": 3, "b": 1, "plan": 3})
    issues = [issue("a", "high"), issue("b", "high"), at("plan")]
    for _ in range(2):
        ledger = left_to_a_person(ledger, fragments_to_refine(DONE, issues=issues, ledger=ledger))

    assert [(entry.step_id, entry.attempts, entry.reason) for entry in ledger.manual_intervention] == [
        ("a", 3, "refined 3 times and still insufficient: a is wanting"),
        ("plan", 3, "refined 3 times and still insufficient: the plan is wanting"),
    ]


def test_a_fragment_that_nests_too_deep_is_not_marked_again_at_its_limit() -> None:
    ledger = RefinementLedger(total=3, fragments={"a": 3}).marked("a", "nesting_limit", "too deep")
    after = left_to_a_person(ledger, fragments_to_refine(DONE, issues=[issue("a", "high")], ledger=ledger))

    assert after == ledger


def test_a_fixed_fragment_at_its_limit_is_not_left_to_a_person() -> None:
    ledger = RefinementLedger(total=3, fragments={"a": 3})

    assert left_to_a_person(ledger, fragments_to_refine(DONE, ledger=ledger)) == ledger
