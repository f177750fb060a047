from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.journal.view.model import StepView
from aeon_widgets import plan_difference
from aeon_widgets.plan_difference import MOST_PAIRS, StepPair, likeness, pair_steps

WORDS = ("add", "count", "describe", "the", "parts", "invoices", "errors", "rules")
steps = st.builds(
    StepView,
    step_id=st.sampled_from(("s1", "s2", "s3", "s2.1", "s4")),
    description=st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
    tool=st.sampled_from((None, "calculator", "echo")),
    status=st.sampled_from(("pending", "complete", "failed")),
    output=st.sampled_from((None, {"text": "a"}, {"text": "b"})),
)
plans = st.lists(steps, max_size=6, unique_by=lambda step: step.step_id)


def plan(*steps: StepView) -> dict[str, StepView]:
    return {step.step_id: step for step in steps}


def step(step_id: str, description: str = "", **fields: Any) -> StepView:
    return StepView(step_id=step_id, description=description, **fields)


def told(pairs: list[StepPair]) -> list[tuple[str | None, str | None, tuple[str, ...]]]:
    return [
        (pair.left and pair.left.step_id, pair.right and pair.right.step_id, pair.changed)  # type: ignore[misc]
        for pair in pairs
    ]


def test_the_same_step_is_the_same_whatever_its_calls() -> None:
    one, other = step("s1", "add 5 and 10"), step("s1", "add 5 and 10", repaired=True)
    assert told(pair_steps(plan(one), plan(other))) == [("s1", "s1", ())]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tool", "echo"),
        ("agent", "llm"),
        ("arguments", {"a": 5}),
        ("status", "failed"),
        ("output", {"text": "15"}),
        ("errors", ["it broke"]),
        ("description", "add 5 and 11"),
    ],
)
def test_each_field_that_differs_is_reported(field: str, value: Any) -> None:
    one = step("s1", "add 5 and 10")
    other = step(**{"step_id": "s1", "description": "add 5 and 10", field: value})  # type: ignore[arg-type]
    assert told(pair_steps(plan(one), plan(other))) == [("s1", "s1", (field,))]


def test_how_a_step_ran_differs_only_if_both_sides_know() -> None:
    told_it, unknown = plan(step("s1", "x", mode="llm")), plan(step("s1", "x"))
    assert told(pair_steps(told_it, unknown)) == [("s1", "s1", ())]
    assert told(pair_steps(told_it, plan(step("s1", "x", mode="fallback")))) == [("s1", "s1", ("mode",))]


def test_an_inserted_step_does_not_misalign_later_ones() -> None:
    left = plan(step("s1", "name the parts"), step("s2", "describe each part"))
    right = plan(step("s1", "count the invoices"), step("s2", "name the parts"), step("s3", "describe each part"))
    assert told(pair_steps(left, right)) == [(None, "s1", ()), ("s1", "s2", ()), ("s2", "s3", ())]


def test_unlike_steps_with_one_id_correspond_if_no_other_step_is_more_alike() -> None:
    left, right = plan(step("s1", "name the parts")), plan(step("s1", "count invoices"))
    assert told(pair_steps(left, right)) == [("s1", "s1", ("description",))]


def test_the_most_similar_steps_correspond() -> None:
    left = plan(step("a", "count the parts of it"), step("b", "count the parts"))
    assert told(pair_steps(left, plan(step("x", "count the parts")))) == [
        ("a", None, ()),
        ("b", "x", ()),
    ]


def test_values_differ_as_json_does() -> None:
    one, other = step("s1", "x", output={"a": [True, {}]}), step("s1", "x", output={"a": [1, {}]})
    assert told(pair_steps(plan(one), plan(other))) == [("s1", "s1", ("output",))]
    nested = [[]]
    for _ in range(5_000):
        nested = [nested]
    deep = step("s1", "x", output={"a": nested})
    assert told(pair_steps(plan(deep), plan(deep))) == [("s1", "s1", ())]


def test_a_shared_tool_makes_steps_more_alike() -> None:
    plain, with_tool = step("a", "add numbers"), step("b", "sum numbers", tool="calculator")
    assert likeness(plain, with_tool) < likeness(step("a", "add numbers", tool="calculator"), with_tool)


def test_steps_of_only_one_plan_are_shown_at_their_place_in_it() -> None:
    left = plan(step("s0", "zero"), step("s1", "name the parts"), step("s9", "nine"))
    right = plan(step("s1", "name the parts"), step("t", "ten"))
    found = told(pair_steps(left, right))
    assert found == [("s0", None, ()), ("s1", "s1", ()), ("s9", None, ()), (None, "t", ())]


def test_fields_that_a_partial_view_lacks_are_not_compared() -> None:
    left, right = plan(step("s1", "x", output={"text": "a"}, mode="llm")), plan(step("s1", "x", status="complete"))
    assert told(pair_steps(left, right, outputs=False)) == [("s1", "s1", ("status",))]


@given(plans)
def test_a_plan_does_not_differ_from_itself(found: list[StepView]) -> None:
    pairs = pair_steps(plan(*found), plan(*found))
    assert [(pair.left, pair.right) for pair in pairs] == [(each, each) for each in found]
    assert not any(pair.differs for pair in pairs)


@given(plans, plans)
def test_every_step_occurs_once(left: list[StepView], right: list[StepView]) -> None:
    pairs = pair_steps(plan(*left), plan(*right))
    assert sorted(pair.left.step_id for pair in pairs if pair.left) == sorted(each.step_id for each in left)
    assert [pair.right.step_id for pair in pairs if pair.right] == [each.step_id for each in right]


def test_too_many_unmatched_steps_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counted(one: StepView, other: StepView) -> float:
        compared.append(one.step_id)
        return likeness(one, other)

    monkeypatch.setattr(plan_difference, "likeness", counted)
    number = int(MOST_PAIRS**0.5) + 1
    left = plan(*(step(f"a{n}", f"describe part {n}") for n in range(number)), step("s", "one"))
    right = plan(*(step(f"b{n}", f"describe part {n}") for n in range(number)), step("s", "another"))
    pairs = pair_steps(left, right)
    assert compared == ["s"]
    assert [pair.right.step_id for pair in pairs if pair.left and pair.right] == ["s"]
