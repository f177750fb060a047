"""Refinement ends: three attempts a fragment, ten in all, five levels of subplans (adaptive FR-065, FR-066, FR-082)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon_core.plan.refinement.actions import RefinementLedger
from tests.aeon_core.plan.refinement.kit import act, applied, by_id, plan_of, same, step, unchanged

PLAN = plan_of(*(step(f"s{number}") for number in range(12)))


def rewrites(step_id: str, count: int) -> list[Any]:
    return [act("step_modify", step_id, description=f"version {number}") for number in range(1, count + 1)]


def test_a_fragment_is_refined_three_times_and_then_left_to_a_person() -> None:
    outcome = applied(PLAN, *rewrites("s1", 4))

    assert [each.accepted for each in outcome.refinements] == [True, True, True, False]
    assert by_id(outcome.plan)["s1"]["description"] == "version 3"
    assert outcome.ledger.fragments == {"s1": 3}
    assert [entry.model_dump() for entry in outcome.ledger.manual_intervention] == [
        {
            "step_id": "s1",
            "cause": "refinement_limit",
            "reason": "refined 3 times and still insufficient",
            "attempts": 3,
        }
    ]


def test_the_plan_is_refined_ten_times_in_all() -> None:
    outcome = applied(PLAN, *(rewrites(f"s{number}", 1)[0] for number in range(12)))

    assert [each.accepted for each in outcome.refinements] == [True] * 10 + [False] * 2
    assert "refined 10 times, the most in all" in outcome.refused[0].explanation
    assert outcome.ledger.total == 10
    assert outcome.ledger.manual_intervention == []


def test_the_counts_continue_over_passes_through_plain_json() -> None:
    first = applied(PLAN, *rewrites("s1", 2))
    ledger = RefinementLedger.model_validate(json.loads(json.dumps(first.ledger.model_dump(mode="json"))))
    second = applied(first.plan, *rewrites("s1", 2), ledger=ledger)

    assert [each.accepted for each in second.refinements] == [True, False]
    assert second.ledger.total == 3


def test_an_action_without_a_fragment_is_not_an_attempt() -> None:
    assert applied(PLAN, act("step_modify", "zz", description="d")).ledger == RefinementLedger()


def nested(levels: int) -> dict[str, Any]:
    made = step(f"d{levels}")
    for level in range(levels - 1, -1, -1):
        made = step(f"d{level}", "pending", made, depth=level + 1)
    return made


def test_the_nesting_limit_can_be_reached_but_not_exceeded() -> None:
    plan = plan_of(nested(4), step("e"))
    deepest = applied(plan, act("subplan_create", "d4", substeps=[{"step_id": "d5", "description": "d"}]))
    beyond = applied(deepest.plan, act("subplan_create", "d5", substeps=[{"description": "d"}]), ledger=deepest.ledger)

    assert len(deepest.accepted) == 1
    assert unchanged(plan, deepest.plan)
    assert same(beyond.plan, deepest.plan)
    (entry,) = beyond.ledger.manual_intervention
    assert (entry.step_id, entry.cause) == ("d5", "nesting_limit")
    assert "deeper than 5 levels" in entry.reason


@pytest.mark.parametrize("flat", [False, True], ids=["nested", "flat"])
def test_a_subplan_that_is_too_deep_is_left_to_a_person(flat: bool) -> None:
    if flat:
        rows = [{"id": f"n{i}", "parent": f"n{i - 1}" if i else None, "description": "d"} for i in range(12)]
        action = act("subplan_create", "s1", steps=rows)
    else:
        inner: dict[str, Any] = {"description": "d"}
        for _ in range(12):
            inner = {"description": "d", "subplan": {"substeps": [inner]}}
        action = act("subplan_create", "s1", substeps=[inner])
    outcome = applied(PLAN, action)

    assert same(outcome.plan, PLAN)
    assert [entry.cause for entry in outcome.ledger.manual_intervention] == ["nesting_limit"]


def test_a_fragment_left_to_a_person_is_not_refined_again() -> None:
    ledger = RefinementLedger().marked("s1", "nesting_limit", "too deep")
    outcome = applied(PLAN, *rewrites("s1", 1), *rewrites("s2", 1), ledger=ledger)

    assert [each.accepted for each in outcome.refinements] == [False, True]
    assert outcome.refused[0].explanation == "'s1' is left to a person"
