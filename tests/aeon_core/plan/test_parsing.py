"""Data becomes a Plan, or a complete list of what is wrong with it (core FR-006, FR-010, FR-026)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core import Plan
from aeon_core.errors import ValidationError
from aeon_core.llm.wire import closed_schema, is_strict
from aeon_core.plan.parsing import MAX_PROBLEMS, dump_plan, parse_plan
from aeon_core.plan.requests import plan_schema
from aeon_core.tools.schema import Schema

TAKEN = "is the id of steps[0] already; ids must be unique over the whole plan"


def plan(*steps: Any, **fields: Any) -> dict[str, Any]:
    return {"goal": "g", "steps": list(steps), **fields}


def step(step_id: Any = "s1", **fields: Any) -> dict[str, Any]:
    return {"step_id": step_id, "description": "d", **fields}


def flat(step_id: Any = "1", parent: Any = None, **fields: Any) -> dict[str, Any]:
    return {"id": step_id, "parent": parent, "description": f"do {step_id}", **fields}


def problems(data: Any, **options: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        parse_plan(data, **options)
    found: list[str] = caught.value.context["problems"]
    assert all("\n" not in line for line in [caught.value.message, *found])
    return found


def test_a_nested_plan_keeps_every_field() -> None:
    inner = step("s1.1", tool="echo", arguments={"message": None, "deep": [{"x": None}]})
    subplan = {"parent_step_id": "s1", "subplan_goal": "h", "substeps": [inner], "created_by": "me", "depth_level": 1}
    data = plan(
        step("s1", subplan=subplan, status="pending"), step("s2", agent="llm", depends_on=["s1"], replaces="s0")
    )
    dumped = dump_plan(parse_plan(data))
    inner["status"] = data["steps"][1]["status"] = "pending"
    assert dumped == data


def test_flat_steps_become_a_tree_and_their_nulls_are_dropped() -> None:
    nulls = {"tool": None, "agent": None, "arguments_json": None, "depends_on": None}
    made = parse_plan(
        plan(
            flat("a", **{**nulls, "agent": "llm"}),
            flat("b", **nulls),
            flat("b.2", "b.1", **{**nulls, "tool": "echo", "arguments_json": '{"message": "hé"}'}),
            flat("b.1", "b", **nulls),
            flat("c", **{**nulls, "arguments": {"x": None}, "tool": "t"}),
        )
    )
    assert [found.step_id for found in made.walk()] == ["a", "b", "b.1", "b.2", "c"]
    assert dump_plan(made)["steps"][1] == {
        "step_id": "b",
        "description": "do b",
        "status": "pending",
        "subplan": {
            "parent_step_id": "b",
            "subplan_goal": "do b",
            "depth_level": 1,
            "created_by": "plan",
            "substeps": [
                {
                    "step_id": "b.1",
                    "description": "do b.1",
                    "status": "pending",
                    "subplan": {
                        "parent_step_id": "b.1",
                        "subplan_goal": "do b.1",
                        "depth_level": 2,
                        "created_by": "plan",
                        "substeps": [
                            {
                                "step_id": "b.2",
                                "description": "do b.2",
                                "status": "pending",
                                "tool": "echo",
                                "arguments": {"message": "hé"},
                            }
                        ],
                    },
                }
            ],
        },
    }
    assert made.steps[2].arguments == {"x": None}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, ["plan: expected an object with 'goal' and 'steps', got null"]),
        ([1], ["plan: expected an object with 'goal' and 'steps', got an array of 1"]),
        ({}, ["goal: missing, expected a non-empty string", "steps: missing, expected an array of at least one step"]),
        (plan(), ["steps: expected an array of at least one step, got an empty array"]),
        (plan(step(), goal="  "), ['goal: expected a non-empty string, got "  "']),
        (plan(step(), gaol="x"), ["plan: unknown key \"gaol\", the nearest known one is 'goal'"]),
        (plan("do it"), ['steps[0]: expected an object, got "do it"']),
        (plan(step(), step("s2", tool=5)), ["steps[1].tool: expected a string, got 5"]),
        (plan(step(5)), ["steps[0].step_id: expected a string, got 5"]),
        (plan(step(description=None)), ["steps[0].description: expected a string, got null"]),
        (plan({"step_id": "a"}), ["steps[0].description: missing, expected a non-empty string"]),
        (plan(step(tol="x")), ["steps[0]: unknown key \"tol\", the nearest known one is 'tool'"]),
        (plan(step(agent="gpt")), ["steps[0].agent: expected 'llm', got \"gpt\""]),
        (plan(step(arguments=[1])), ["steps[0].arguments: expected an object, got an array of 1"]),
        (plan(step(depends_on="s1")), ['steps[0].depends_on: expected an array of strings, got "s1"']),
        (
            plan(step(depends_on=[" "])),
            ["steps[0].depends_on: expected an array of non-empty strings, got an array of 1"],
        ),
        (
            plan(step(status="done")),
            ['steps[0].status: expected one of pending, running, complete, failed, invalid, got "done"'],
        ),
        (
            plan(step(status=None)),
            ["steps[0].status: expected one of pending, running, complete, failed, invalid, got null"],
        ),
        (
            plan(step(), step("s2"), step()),
            [f'steps[2].step_id: "s1" {TAKEN}'],
        ),
        (plan(flat(parent="9")), ['steps[0].parent: expected the id of a step of this plan, or null, got "9"']),
        (
            plan(flat("1", "2"), flat("2", "1"), flat("3")),
            [f"steps[{n}].parent: is, over its parents, a part of itself" for n in (0, 1)],
        ),
        (plan(flat("1", "1")), ["steps[0].parent: is, over its parents, a part of itself"]),
        (plan({"id": "1", "description": None}), ["steps[0].description: missing, expected a non-empty string"]),
        (
            plan(flat(arguments_json="[1]")),
            ['steps[0].arguments_json: expected a JSON object written as a string, got "[1]"'],
        ),
        (
            plan(flat(arguments_json='{"a": 1, "a": 2}')),
            ['steps[0].arguments_json: expected a JSON object written as a string, got "{\\"a\\": 1, \\"a\\": 2}"'],
        ),
        (plan(flat(arguments={}, arguments_json="{}")), ["steps[0].arguments_json: says the same as 'arguments'"]),
        (plan(step(arguments={"x": {1, 2}})), ["steps[0].arguments.x: expected a JSON value, got a value of type set"]),
        (plan(step(arguments={"x": [float("nan")]})), ["steps[0].arguments.x[0]: expected a JSON value, got nan"]),
        (plan(step(arguments={1: "x"})), ["steps[0].arguments: expected keys that are strings, got 1"]),
        (
            plan(
                step(subplan={"parent_step_id": "s2", "subplan_goal": "g", "substeps": [step("x")], "depth_level": 2})
            ),
            [
                'steps[0].subplan.parent_step_id: expected "s1", the id of its step, got "s2"',
                "steps[0].subplan.depth_level: expected 1, got 2",
            ],
        ),
        (
            plan(
                step(subplan={"parent_step_id": "s1", "subplan_goal": "g", "substeps": [step()], "depth_level": True})
            ),
            [
                "steps[0].subplan.depth_level: expected 1, got true",
                f'steps[0].subplan.substeps[0].step_id: "s1" {TAKEN}',
            ],
        ),
    ],
)
def test_each_problem_is_named_with_its_path_and_what_is_expected(data: Any, expected: list[str]) -> None:
    assert problems(data) == expected


def test_a_fresh_plan_has_not_run_and_a_stored_one_may_have() -> None:
    data = plan(step(status="complete"), step("s2", errors=["no"]))
    assert problems(data) == [
        "steps[0].status: expected 'pending', the status of a step that has not run, got \"complete\"",
        "steps[1].errors: expected no errors of a step that has not run, got an array of 1",
    ]
    stored = parse_plan(data, fresh=False)
    assert stored.steps[0].status == "complete"
    assert stored.steps[1].errors == ["no"]


def test_at_most_twenty_problems_are_listed() -> None:
    assert len(problems(plan(*({f"k{n}": 1} for n in range(100))))) == MAX_PROBLEMS


@pytest.mark.parametrize("depth", [6, 30, 5000])
def test_deeper_nesting_keeps_five_levels_and_names_the_rest(depth: int) -> None:
    chain = [flat(str(n), str(n - 1) if n else None) for n in range(depth + 1)]
    cut = parse_plan(plan(*chain))
    assert [each.step_id for each in cut.walk()] == ["0", "1", "2", "3", "4", "5"]
    assert cut.cut == ("5",)
    assert parse_plan(plan(*chain[:6])).cut == ()
    nested = step("x")
    for n in range(depth):
        nested = step(f"n{n}", subplan={"parent_step_id": f"n{n}", "subplan_goal": "g", "substeps": [nested]})
    if depth > 100:
        assert problems(plan(nested))[0].endswith("nested deeper than 100 levels")
        return
    made = parse_plan(plan(nested))
    assert [each.step_id for each in made.walk()] == [f"n{depth - n}" for n in range(1, 7)]
    assert made.cut == (f"n{depth - 6}",)


def test_depth_levels_left_out_are_filled_in() -> None:
    inner = {"parent_step_id": "s1.1", "subplan_goal": "g", "substeps": [step("s1.1.1")]}
    outer = {"parent_step_id": "s1", "subplan_goal": "g", "substeps": [step("s1.1", subplan=inner)]}
    made = parse_plan(plan(step(subplan=outer)))
    assert made.steps[0].subplan is not None
    assert made.steps[0].subplan.substeps[0].subplan is not None
    assert made.steps[0].subplan.substeps[0].subplan.depth_level == 2


def test_only_control_characters_are_cleaned_from_text() -> None:
    hostile = "[bold]\x1b[31m\x00 [/]\ud800"
    made = parse_plan(plan(step(description=hostile, arguments={hostile: hostile}), goal=hostile))
    clean = hostile.replace("\ud800", "�")
    assert (made.goal, made.steps[0].description, made.steps[0].arguments) == (clean, clean, {clean: clean})
    assert "\\u001b[31m\\u0000" in problems(plan(step(agent=hostile)))[0]


def test_keys_that_collide_when_cleaned_are_not_merged() -> None:
    assert problems(plan(step(arguments=dict.fromkeys(["\ud800", "\ud801"])))) == [
        'steps[0].arguments: the key "�" occurs twice'
    ]


def test_the_wire_schema_is_closed_everywhere_and_within_the_providers_limits() -> None:
    whole = plan_schema(["echo", "calculator"])
    unions, objects = 0, [whole]
    while objects:
        schema = objects.pop()
        unions += isinstance(schema.get("type"), list) + ("anyOf" in schema)
        objects += [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            objects += schema["properties"].values()
    assert unions <= 16
    assert "$ref" not in json.dumps(whole)
    assert is_strict(whole)
    assert closed_schema(whole) is not None


def test_the_wire_schema_has_a_registered_tool_or_reasoning_for_every_step() -> None:
    schema = Schema(plan_schema(["echo", "calculator"]))

    def wire(**fields: Any) -> dict[str, Any]:
        return {"goal": "g", "steps": [{"id": "s1", "parent": None, "description": "d", "depends_on": [], **fields}]}

    assert not schema.errors(wire(tool="echo", arguments_json=None))
    assert not schema.errors(wire(agent="llm"))
    for fields in ({"tool": "nope", "arguments_json": None}, {"tool": None, "arguments_json": None}, {}):
        assert schema.errors(wire(**fields))
    assert Schema(plan_schema([])).errors(wire(tool="echo", arguments_json=None))


ids = st.text(min_size=1, max_size=3).filter(str.strip)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
keys = st.sampled_from(["step_id", "id", "parent", "description", "tool", "agent", "arguments", "subplan", "status"])
rough_steps = st.lists(st.dictionaries(keys | st.text(max_size=3), ids | values, max_size=6), max_size=4)


@given(values | st.fixed_dictionaries({"goal": values, "steps": rough_steps | values}))
def test_any_input_is_a_plan_or_a_list_of_problems(data: Any) -> None:
    try:
        made = parse_plan(data)
    except ValidationError as error:
        found = error.context["problems"]
    else:
        found = [None]
        assert isinstance(made, Plan)
        assert parse_plan(dump_plan(made)) == made
    assert 1 <= len(found) <= MAX_PROBLEMS


@given(st.lists(st.tuples(ids, st.integers(0, 9), ids), min_size=1, max_size=8, unique_by=lambda drawn: drawn[0]))
def test_a_flat_plan_equals_its_nested_form(drawn: list[tuple[str, int, str]]) -> None:
    steps = []
    for index, (step_id, above, description) in enumerate(drawn):
        parent = drawn[above][0] if above < index and index < 6 else None
        steps.append({"id": step_id, "parent": parent, "description": description})
    made = parse_plan(plan(*steps))
    assert parse_plan(dump_plan(made)) == made
    parents = {
        child.step_id: found.step_id for found in made.walk() if found.subplan for child in found.subplan.substeps
    }
    assert {found["id"]: found["parent"] for found in steps if found["parent"]} == parents
    assert {found.step_id: found.description for found in made.walk()} == {
        found["id"]: found["description"] for found in steps
    }
