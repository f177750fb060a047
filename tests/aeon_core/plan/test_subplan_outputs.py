"""A replacement of a step with substeps keeps those that are complete (adaptive FR-009, FR-070)."""

from __future__ import annotations

from aeon_core.plan.models import Plan, steps_to_gather
from tests.aeon_core.plan.refinement.kit import act, applied, plan_of, step


def parts(plan: Plan, step_id: str) -> list[str]:
    found = plan.find(step_id)
    assert found is not None
    return [part.step_id for part in steps_to_gather(plan, found)]


HALF = plan_of(step("a", "failed", step("a1", "complete"), step("a2", "failed"), agent=None))


def test_a_step_has_its_own_valid_substeps() -> None:
    assert parts(HALF, "a") == ["a1", "a2"]
    assert parts(plan_of(step("a")), "a") == []


def test_a_replacement_keeps_the_complete_substeps_of_the_step_that_it_replaces() -> None:
    once = applied(HALF, act("step_mark_invalid", "a2")).plan

    assert parts(once, "a-r1") == ["a1", "a2-r1"]


def test_kept_substeps_survive_several_replacements() -> None:
    once = applied(HALF, act("step_mark_invalid", "a2")).plan
    for step_id in ("a2-r1", "a-r1"):
        found = once.find(step_id)
        assert found is not None
        found.status = "running"
        found.status = "failed"
    twice = applied(once, act("step_mark_invalid", "a2-r1")).plan

    assert parts(twice, "a-r2") == ["a1", "a2-r2"]


def test_a_replacement_with_its_own_parts_keeps_none() -> None:
    anew = applied(HALF, act("subplan_create", "a", substeps=[{"step_id": "n", "description": "d"}])).plan

    assert parts(anew, "a-r1") == ["n"]


def test_a_failed_part_that_was_not_replaced_still_counts() -> None:
    half = plan_of(
        step("a", "invalid", step("a1", "complete"), step("a2", "invalid"), step("a3", "failed"), agent=None),
        step("a-r1", "pending", step("a2-r1", replaces="a2"), agent=None, replaces="a"),
    )

    assert parts(half, "a-r1") == ["a1", "a3", "a2-r1"]


def test_steps_that_replace_each_other_in_a_cycle_are_collected_once() -> None:
    own = plan_of(step("a", "running", step("a1"), step("a2", replaces="a1"), agent=None, replaces="a"))
    assert parts(own, "a") == ["a1", "a2"]

    two = plan_of(
        step("a", "running", step("a1", replaces="b1"), agent=None, replaces="b"),
        step("b", "pending", step("b1", replaces="a1"), agent=None, replaces="a"),
    )
    assert (parts(two, "a"), parts(two, "b")) == (["b1", "a1"], ["a1", "b1"])
