"""A repair corrects; it adds no tools, steps or meaning (core FR-032, FR-066, FR-070)."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core import Plan, PlanStep
from aeon_core.plan.parsing import parse_plan
from aeon_core.supervisor.evidence import Evidence
from aeon_core.supervisor.guard import call_refusal, step_refusal
from aeon_core.supervisor.lenient import MAX_REPAIRABLE, lenient
from aeon_core.supervisor.plan_guard import plan_refusal
from aeon_core.tools.decorator import tool
from aeon_core.tools.registry import default_registry

REGISTRY = default_registry()


@tool(effect="pure")
def search(query: str, limit: int = 5, tags: list[str] | None = None) -> str:
    """Searches."""
    return query


REGISTRY.register(search)
ADD = {"operation": "add", "a": 5, "b": 10}


def step(**fields: Any) -> PlanStep:
    return PlanStep(**{"step_id": "s1", "description": "add 5 and 10", "tool": "adder", **fields})


@pytest.mark.parametrize(
    ("original", "changes", "reason"),
    [
        (step(), {"tool": "calculator"}, None),
        (step(), {"tool": "calculator", "arguments": ADD}, None),
        (step(agent="llm"), {"tool": "calculator", "agent": None}, None),
        (step(arguments={"x": 5}), {"tool": "calculator", "arguments": ADD}, None),
        (step(arguments={"x": 5}), {"tool": "calculator"}, None),
        (step(arguments=ADD), {"tool": "calculator"}, None),
        (step(), {}, 'the repaired step names "adder" as its tool, not one of the tools it may use'),
        (
            step(),
            {"tool": None, "agent": "llm"},
            "the repaired step names null as its tool, not one of the tools it may use",
        ),
        (step(), {"tool": "search"}, 'the repaired step names "search" as its tool, not one of the tools it may use'),
        (step(), {"tool": "calculator", "step_id": "s2"}, "step_id of step 's1' was changed; a repair keeps it"),
        (step(), {"tool": "calculator", "description": "x"}, "description of step 's1' was changed; a repair keeps it"),
        (
            step(),
            {"tool": "calculator", "depends_on": ["s0"]},
            "depends_on of step 's1' was changed; a repair keeps it",
        ),
        (step(), {"tool": "calculator", "replaces": "s0"}, "replaces of step 's1' was changed; a repair keeps it"),
        (
            step(arguments=ADD),
            {"tool": "calculator", "arguments": {**ADD, "a": 6}},
            "the arguments of step 's1' fit the tool 'calculator' and were changed",
        ),
        (
            step(),
            {"tool": "calculator", "arguments": {"operation": "add", "a": 5}},
            "the arguments do not fit the tool 'calculator': b: missing, but required",
        ),
    ],
)
def test_a_missing_tool_step_may_get_a_registered_tool_and_little_else(
    original: PlanStep, changes: dict[str, Any], reason: str | None
) -> None:
    repaired = original.model_copy(update=changes)
    assert step_refusal(original, repaired, ["calculator", "echo"], REGISTRY) == reason


@pytest.mark.parametrize(
    ("original", "repaired", "reason"),
    [
        ({**ADD, "a": "five"}, ADD, None),
        ({"operation": "add", "a": 5}, ADD, None),
        ({"operation": "add", "x": 5, "b": 10}, ADD, None),
        ({**ADD, "a": "five", "note": "x"}, ADD, None),
        ({**ADD, "a": "five"}, {**ADD, "b": 11}, "the argument 'b' was valid as 10 and was changed"),
        (
            {**ADD, "a": "five"},
            {**ADD, "operation": "subtract"},
            "the argument 'operation' was valid as \"add\" and was changed",
        ),
        ({"limit": "3", "query": "a"}, {"limit": 3, "query": "a"}, None),
        (
            {"limit": "3", "query": "a"},
            {"query": "a"},
            "the argument 'limit' was dropped, though \"3\" can be kept",
        ),
        ({"limit": "some", "query": "a"}, {"query": "a"}, None),
        ({"limit": 3}, {"query": "a"}, "the argument 'limit' was valid as 3 and was dropped"),
        ({}, {"query": "a"}, None),
        ({}, {"query": "a", "limit": 9}, "the argument 'limit' was added, though nothing asks for it"),
        ({"query": 1, "max": 9}, {"query": "1", "limit": 9}, None),
        (
            {"query": 1, "max": 9},
            {"query": "1", "limit": 8},
            "the argument 'limit' was added, though nothing asks for it",
        ),
        ({"query": "a", "tags": ["x", 2]}, {"query": "a", "tags": ["x", "2"]}, None),
        (
            {"query": "a", "tags": ["x", 2]},
            {"query": "a", "tags": ["y", "2"]},
            "the argument 'tags.0' was valid as \"x\" and was changed",
        ),
        ({"query": "a", "limit": True}, {"query": "a", "limit": 1}, None),
    ],
)
def test_valid_arguments_stay_and_only_what_is_needed_appears(
    original: dict[str, Any], repaired: dict[str, Any], reason: str | None
) -> None:
    name = "search" if "query" in repaired else "calculator"
    assert REGISTRY.input_schema(name).errors(repaired) == []
    assert call_refusal(original, repaired, name, REGISTRY, Evidence("add 5 and 10, look for a")) == reason


def test_a_misnamed_argument_of_an_open_schema_may_be_renamed() -> None:
    class Sender:
        name = description = "send"
        input_schema: ClassVar[Any] = {"properties": {"to": {"type": "string"}}, "required": ["to"]}
        output_schema: ClassVar[Any] = {}

        def invoke(self, **_: Any) -> Any: ...

    registry = default_registry()
    registry.register(Sender())
    assert call_refusal({"too": "me"}, {"to": "me"}, "send", registry, Evidence()) is None


def test_a_null_says_nothing_that_prose_would_have_to_name() -> None:
    given = {"query": "cats", "tags": None}
    assert call_refusal(None, given, "search", REGISTRY, Evidence("look for cats")) is None


def test_arguments_out_of_prose_are_made_of_its_words() -> None:
    def refusal(source: str) -> str | None:
        return call_refusal(None, ADD, "calculator", REGISTRY, Evidence("Add them", reply=source))

    assert refusal("I would take 5 and 10.") is None
    made_up = "the argument 'b' has a value that neither the original nor the step names"
    assert refusal("I would take 5 and 11.") == made_up


PLAN: dict[str, Any] = {
    "goal": "sum it up",
    "steps": [
        {"step_id": "s1", "description": "add 5 and 10", "tool": "calculator", "arguments": ADD},
        {"step_id": "s2", "description": "think about it", "agent": "llm", "depends_on": ["s1"]},
    ],
}


def changed(*path: Any, to: Any = ...) -> dict[str, Any]:
    """PLAN with another value at a path, or with nothing there."""
    plan: dict[str, Any] = json.loads(json.dumps(PLAN))
    holder: Any = plan
    for part in path[:-1]:
        holder = holder[part]
    if to is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = to
    return plan


def refusal(original: Any, repaired: Any = PLAN) -> str | None:
    plan = repaired if isinstance(repaired, Plan) else parse_plan(repaired)
    return plan_refusal(original, json.dumps(original), plan, REGISTRY, certain=True, task="Please sum it up")


def text_refusal(text: str, repaired: Any = PLAN, task: str = "") -> str | None:
    return plan_refusal(lenient(text), text, parse_plan(repaired), REGISTRY, certain=False, task=task)


FLAT_PLAN = {
    "goal": "sum it up",
    "steps": [{"id" if key == "step_id" else key: value for key, value in s.items()} for s in PLAN["steps"]],
}


@pytest.mark.parametrize(
    "original",
    [
        PLAN,
        FLAT_PLAN,
        {"plan": PLAN},
        changed("goal"),
        changed("goal", to=[]),
        {**PLAN, "note": "x"},
        changed("steps", 0, "description"),
        changed("steps", 0, "step_id"),
        changed("steps", 1, "step_id", to="s1"),
        changed("steps", 1, "agent", to="robot"),
        changed("steps", 1, "agent"),
        changed("steps", 0, "tool", to="adder"),
        changed("steps", 0, "tool", to={"name": "calculator"}),
        changed("steps", 0, "arguments", to=json.dumps(ADD)),
        changed("steps", 1, "depends_on", to="s1"),
        changed("steps", 0, to={"step_id": "s1", "description": "add 5 and 10", "tol": "calculator", "arguments": ADD}),
        {"goal": "sum it up", "steps": [*PLAN["steps"], None, {}]},
        {"goal": "sum it up", "todo": PLAN["steps"]},
        PLAN["steps"],
    ],
)
def test_what_was_missing_or_invalid_may_be_put_right(original: Any) -> None:
    assert refusal(original) is None


@pytest.mark.parametrize(
    ("original", "reason"),
    [
        (changed("goal", to="sum it down"), 'the goal was changed to "sum it up"; a repair keeps "sum it down"'),
        (changed("steps", 0), "the plan has 2 steps, the original 1; a repair adds and drops none"),
        (
            {**PLAN, "steps": [*PLAN["steps"], "report it"]},
            "the plan has 2 steps, the original 3; a repair adds and drops none",
        ),
        (
            {**PLAN, "steps": PLAN["steps"][::-1]},
            'the id "s2" was changed to "s1"; a repair keeps ids and their order',
        ),
        (changed("steps", 0, "step_id", to=7), 'the id "7" was changed to "s1"; a repair keeps ids and their order'),
        (
            changed("steps", 0, "description", to="add 5 and 11"),
            "the description of step 's1' was changed; a repair keeps it",
        ),
        (changed("steps", 0, "tool", to="echo"), "the tool of step 's1' was changed; a repair keeps \"echo\""),
        (changed("steps", 0, "tool"), "step 's1' got the tool \"calculator\", which the original does not name"),
        (
            changed("steps", 0, "arguments", to={**ADD, "a": 6}),
            "the arguments of step 's1' were changed; a repair keeps what is there",
        ),
        (
            changed("steps", 0, to={"step_id": "s1", "description": "add numbers", "tool": "calculator"}),
            "the description of step 's1' was changed; a repair keeps it",
        ),
        (changed("steps", 1, "depends_on", to=["s0"]), "depends_on of step 's2' was changed; a repair keeps it"),
        (
            {"goal": "sum it up"},
            "the description of step 's1' is no clause of the original",
        ),
    ],
)
def test_what_was_there_stays(original: Any, reason: str) -> None:
    assert refusal(original) == reason


def test_a_removed_agent_or_tool_and_an_invented_tool_are_refused() -> None:
    assert refusal(PLAN, changed("steps", 1, "agent")) == "the agent of step 's2' was removed; a repair keeps it"
    assert refusal(PLAN, changed("steps", 0, "tool")) == (
        "the tool of step 's1' was changed; a repair keeps \"calculator\""
    )
    assert refusal(PLAN, changed("steps", 0, "arguments")) == "the arguments of step 's1' were dropped"
    unknown = changed("steps", 0, "tool", to="adder")
    assert refusal(unknown, unknown) is None
    assert refusal(unknown, changed("steps", 0, "tool", to="sum")) == (
        "step 's1' got \"sum\", which is no registered tool"
    )


def test_what_was_read_with_certainty_is_not_extended_by_words_from_elsewhere() -> None:
    original = {"goal": "add 5 and 10", "steps": [{"step_id": "s1", "description": "add 5"}], "x": 1}
    repaired = {"goal": "add 5 and 10", "steps": [{"step_id": "s1", "description": "add 5 and 10"}]}
    assert refusal(original, repaired) == "the description of step 's1' was changed; a repair keeps it"


def test_flat_steps_are_compared_in_the_order_of_the_tree() -> None:
    steps = [
        {"id": "a", "description": "one"},
        {"id": "b", "description": "two"},
        {"id": "a.1", "parent": "a", "description": "three"},
    ]
    repaired = {"goal": "g", "steps": [{**steps[0], "parent": None}, *steps[1:]]}
    assert refusal({"goal": "g", "steps": steps, "x": 1}, repaired) is None
    cyclic = [{**steps[0], "parent": "a.1"}, *steps[1:]]
    assert refusal({"goal": "g", "steps": cyclic}, {"goal": "g", "steps": [cyclic[1], steps[0], steps[2]]}) is None


TEXT = json.dumps(PLAN)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("}]}", "}"),
        TEXT[:-3],
        TEXT.replace('"goal": "sum it up"', '"goal": sum it up'),
        TEXT.replace("{", "{ ~", 1),
        TEXT.replace("think about it", 'think "about" it').replace("sum it up", "sum it up"),
    ],
)
def test_a_broken_text_is_read_leniently_to_check_its_repair(text: str) -> None:
    repaired = changed("steps", 1, "description", to='think "about" it') if '"about"' in text else PLAN
    assert text_refusal(text, repaired) is None
    assert text_refusal(text, {**PLAN, "steps": [*PLAN["steps"], {"step_id": "s3", "description": "more"}]})
    assert text_refusal(text, changed("steps", 0, "description", to="delete everything"))


def test_a_step_that_was_cut_off_is_not_made_up() -> None:
    text = '{"goal": "sum it up", "steps": [{"step_id": "s1", "description": "add 5"}, {"step_id": "s2", "desc'
    repaired = {
        "goal": "sum it up",
        "steps": [
            {"step_id": "s1", "description": "add 5"},
            {"step_id": "s2", "description": "delete the files"},
        ],
    }
    assert text_refusal(text, repaired) == "the description of step 's2' cannot be read and was made up"


WHOLE: dict[str, Any] = {
    "goal": "calculate the sum of 5 and 10",
    "steps": [
        {
            "step_id": "s1",
            "description": "Add 5 and 10",
            "status": "pending",
            "tool": "calculator",
            "arguments": {"operation": "add", "a": 5, "b": 10},
        }
    ],
}


@pytest.mark.parametrize("length", range(json.dumps(WHOLE).index("Add 5") + 1, len(json.dumps(WHOLE)) + 1))
def test_a_plan_that_breaks_off_anywhere_in_its_step_may_be_ended_with_what_reply_and_task_say(length: int) -> None:
    task = "calculate the sum of 5 and 10"
    text = json.dumps(WHOLE)[:length]
    assert text_refusal(text, WHOLE, task) is None


@pytest.mark.parametrize(
    ("path", "made_up"),
    [
        (("description",), "Add 5 and 10 and delete the files"),
        (("description",), "Multiply 5 and 10"),
        (("tool",), "echo"),
        (("arguments",), {"operation": "add", "a": 5, "b": 77}),
        (("arguments",), {"operation": "subtract", "a": 5, "b": 10}),
        (("arguments",), {"operation": "add", "a": 10, "b": 5}),
    ],
)
def test_the_end_of_a_broken_off_step_is_not_made_up(path: tuple[str], made_up: Any) -> None:
    text = json.dumps(WHOLE)[:-6]
    step = {**WHOLE["steps"][0], path[0]: made_up}
    assert text_refusal(text, {**WHOLE, "steps": [step]}, "calculate the sum of 5 and 10")


def test_prose_may_become_steps_of_its_own_words() -> None:
    text = "First I will add 5 and 10 with the calculator. Then I think about it."
    prose = changed("steps", 0, "arguments")
    assert text_refusal(text, prose, "sum it up") is None
    assert text_refusal(text, prose) == (
        'the goal "sum it up" is made of words that neither the original nor the task holds'
    )
    assert text_refusal(text, PLAN, "sum it up") == "step 's1' got arguments; a repair takes none out of prose"
    assert text_refusal(text.replace("10", "11"), prose, "sum it up") == (
        "the description of step 's1' is no clause of the original"
    )
    assert text_refusal(text.replace(" with the calculator", ""), prose, "sum it up") == (
        "step 's1' got the tool \"calculator\", which the original does not name"
    )
    backwards = {**prose, "steps": [{**step, "depends_on": None} for step in prose["steps"][::-1]]}
    assert text_refusal(text, backwards, "sum it up") == "the description of step 's1' is no clause of the original"


@given(st.text(max_size=200) | st.text(alphabet="{}[]\",:'abs1 \n\\", max_size=200))
def test_the_lenient_reader_takes_any_text(text: str) -> None:
    value = lenient(text)
    assert value is None or isinstance(value, (dict, list))
    plan_refusal(value, text, parse_plan(PLAN), REGISTRY, certain=False)


def test_the_lenient_reader_refuses_what_would_take_it_long() -> None:
    assert lenient('["' * (MAX_REPAIRABLE // 2)) is None
    assert lenient('{"a": ' * 5000) is None
    assert lenient("[1, " + " " * MAX_REPAIRABLE) is None


keys = st.sampled_from(["goal", "steps", "id", "parent", "tool", "subplan", "substeps"])
rough = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


@given(rough)
def test_any_original_can_be_compared(original: Any) -> None:
    reason = refusal(original)
    assert reason is None or "\n" not in reason


said = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=9,
)
given_arguments = st.dictionaries(st.sampled_from(["query", "limit", "tags", "q", "max", ""]), said, max_size=5)


@given(given_arguments, st.text(max_size=30) | st.from_regex(r"-?[0-9]{1,4}(e[0-9]{1,4})?%?", fullmatch=True))
def test_any_arguments_can_be_compared(original: dict[str, Any], text: str) -> None:
    repaired = {"query": text, "tags": ["a", text]}
    reason = call_refusal(original, repaired, "search", REGISTRY, Evidence(text, "", json.dumps(original)))
    assert reason is None or "\n" not in reason
    spelled = {"query": text, "limit": text, "tags": original.get("tags")}
    call_refusal(spelled, {"query": text, "limit": 3}, "search", REGISTRY, Evidence())
