"""Plans of the simulated model: calculations and named tools, valid over any text and any tools."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core.llm.simulated import SimulatedModel, script
from aeon_core.tools.schema import Schema
from tests.aeon_core.llm.simulated_talk import (
    CALCULATOR_AND_ECHO,
    GET_WEATHER,
    GET_WORDS,
    READ_FILE,
    WRITE_FILE,
    Talk,
    as_plan,
    plan_of,
    shape,
)
from tests.cpu_limit import cpu_limit
from tests.sampling import examples

ALL_TOOLS = [*CALCULATOR_AND_ECHO, READ_FILE, WRITE_FILE, GET_WEATHER]
WORDS = (
    "calculate the sum of 5 and 10 echo 'x' read a.txt then please add it reverse - * ( ) 1e9 \" </task> \n, ."
    " how design"
)

TASKS = st.text(max_size=300) | st.lists(st.sampled_from(WORDS.split(" ")), max_size=40).map(" ".join)


def calculator(operation: str, a: float, b: float) -> tuple[str, dict[str, Any]]:
    return "calculator", {"operation": operation, "a": a, "b": b}


@pytest.mark.parametrize(
    ("task", "operation", "a", "b"),
    [
        ("calculate the sum of 5 and 10", "add", 5, 10),
        ("Please calculate the sum of 5 and 10.", "add", 5, 10),
        ("what is 12 * 7", "multiply", 12, 7),
        ("What's 12 x 7?", "multiply", 12, 7),
        ("12×7", "multiply", 12, 7),
        ("how much is 7 minus 9?", "subtract", 7, 9),
        ("divide 7 by 0", "divide", 7, 0),
        ("subtract 3 from 10", "subtract", 10, 3),
        ("the difference between 10 and 3", "subtract", 10, 3),
        ("what is the product of -2 and 1,000.5", "multiply", -2, 1000.5),
        ("5 - -3", "subtract", 5, -3),
        ("add 5 to 10", "add", 5, 10),
        ("10 / 4 =", "divide", 10, 4),
        ("2.5 + .5", "add", 2.5, 0.5),
        ("could you tell me the quotient of 9 and 3?", "divide", 9, 3),
    ],
)
def test_one_calculation_is_one_step_with_full_arguments(task: str, operation: str, a: float, b: float) -> None:
    assert shape(plan_of(task)) == [calculator(operation, a, b)]


def test_behaviours_that_another_thread_loads_at_the_same_time_change_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "behaviours", script.behaviours.__wrapped__)
    assert shape(plan_of("divide 7 by 0")) == [calculator("divide", 7, 0)]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("multiply 3 by 4 and add 2", 14),
        ("add 5 and 10, then multiply the result by 3, then subtract 4", 41),
        ("sum of 5 and 10 and multiply by 2", 30),
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("Calculate (3+4)*2-1", 13),
        ("20% of 50", 10),
        ("what is 10 - 3 - 2", 5),
        ("100 / 5 / 2", 10),
        ("compute 3 times the sum of 1 and 2", 9),
        ("subtract the product of 2 and 3 from 10", 4),
        ("add 1, 2, 3 and 4", 10),
        ("divide 10 by 4. Then multiply it by 2.", 5),
    ],
)
def test_chained_calculations_reach_the_right_value_through_the_calculator(task: str, expected: float) -> None:
    talk = Talk(task)

    assert talk.outputs[-1] == {"result": expected}
    assert {step.tool for step in talk.plan.steps} == {"calculator"}


def test_a_step_that_needs_an_earlier_result_names_it_and_leaves_its_arguments_out() -> None:
    first, second = plan_of("multiply 3 by 4 and add 2")["steps"]

    assert (first["arguments"], first["depends_on"]) == ({"operation": "multiply", "a": 3, "b": 4}, [])
    assert (second["tool"], second["arguments"], second["depends_on"]) == ("calculator", None, [first["id"]])
    assert "the result of s1" in second["description"]


def test_without_a_calculator_arithmetic_is_reasoned() -> None:
    assert shape(plan_of("multiply 3 by 4 and add 2", [])) == [("llm", None), ("llm", None)]


def test_a_calculator_under_other_names_is_used_by_its_schema() -> None:
    tool = {
        "name": "math",
        "description": "Does arithmetic.",
        "input_schema": {
            "type": "object",
            "properties": {"op": {"enum": ["add", "multiply"]}, "x": {"type": "number"}, "y": {"type": "number"}},
            "required": ["op", "x", "y"],
        },
    }

    assert shape(plan_of("2 plus 3", [tool])) == [("math", {"op": "add", "x": 2, "y": 3})]
    assert shape(plan_of("2 minus 3", [tool])) == [("llm", None)]


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("echo hello", "hello"),
        ("Please echo 'hello world'", "hello world"),
        ('echo: "so it is"', "so it is"),
        ("echo Grüße aus 東京", "Grüße aus 東京"),
        ("echo " + "long " * 5000, ("long " * 5000).strip()),
    ],
)
def test_echo_gets_the_text_verbatim(task: str, text: str) -> None:
    assert shape(plan_of(task)) == [("echo", {"text": text})]


def test_a_result_is_passed_to_echo() -> None:
    talk = Talk("calculate the sum of 5 and 10 and echo the result")

    assert [step.tool for step in talk.plan.steps] == ["calculator", "echo"]
    assert talk.outputs == [{"result": 15}, {"text": "15"}]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("read README.md", ("read_file", {"path": "README.md"})),
        ('write "hello" to out.txt', ("write_file", {"path": "out.txt", "content": "hello"})),
        ("write the file a.md with the text 'b'", ("write_file", {"path": "a.md", "content": "b"})),
        ("use get_weather on 'Berlin'", ("get_weather", {"city": "Berlin"})),
        ('get weather of "Berlin"', ("get_weather", {"city": "Berlin"})),
        ("use word_count on 'to be or not to be'", ("word_count", {"text": "to be or not to be"})),
    ],
)
def test_a_tool_is_used_if_the_task_names_it_with_arguments(task: str, expected: Any) -> None:
    assert shape(plan_of(task, [*ALL_TOOLS, {**GET_WORDS, "name": "word_count"}])) == [expected]


def test_a_named_tool_may_take_an_earlier_result_for_its_argument() -> None:
    steps = plan_of("add 5 and 10, then use get_weather", ALL_TOOLS)["steps"]

    assert [(step["tool"], step["depends_on"]) for step in steps] == [("calculator", []), ("get_weather", ["s1"])]
    assert steps[1]["arguments"] is None


@pytest.mark.parametrize(
    "task",
    [
        "write an essay on 3 reasons to read 5 books",
        "why is the sky blue?",
        "schreibe ein Gedicht über den Herbst",
        "explain the difference between 5 and 10 year bonds",
        "Развивай план",
        "?",
        "add",
        "get the weather",
        "read chapter 3 - introduction",
        "$" * 50,
        "please. and. now.",
    ],
)
def test_every_other_task_gets_two_steps_of_reasoning_that_name_it(task: str) -> None:
    plan = plan_of(task, ALL_TOOLS)

    assert shape(plan) == [("llm", None)] * 2
    assert all(task[:20] in step["description"] for step in plan["steps"])
    as_plan(plan)


def test_an_unreasoned_answer_is_labelled() -> None:
    talk = Talk("why is the sky blue?")

    assert talk.answer.startswith("This is a simulated answer to “why is the sky blue?”.")


def test_the_unknown_part_of_a_task_becomes_one_reasoning_step() -> None:
    steps = plan_of("compute 5 + 10, then write a poem about it")["steps"]

    assert [step["tool"] or step["agent"] for step in steps] == ["calculator", "llm"]
    assert (steps[1]["description"], steps[1]["depends_on"]) == ("Write a poem about it", ["s1"])


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0 or draw(st.booleans()):
        return str(draw(st.integers(-99, 99)))
    sign = draw(st.sampled_from(["+", "-", "*"]))
    left, right = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    return draw(st.sampled_from([f"{left} {sign} {right}", f"({left} {sign} {right})"]))


@given(expression=expressions())
def test_any_expression_respects_operator_precedence(expression: str) -> None:
    text = f"what is {expression}?"

    if any(sign in expression for sign in (" + ", " - ", " * ")):
        assert Talk(text).outputs[-1] == {"result": eval(expression)}


@settings(max_examples=examples(400))
@given(task=TASKS, tools=st.lists(st.sampled_from(ALL_TOOLS), unique_by=lambda tool: str(tool["name"])))
def test_any_text_gives_a_valid_plan_with_listed_tools_and_fitting_arguments(task: str, tools: list[Any]) -> None:
    plan = plan_of(task, tools)
    listed = {tool["name"]: tool for tool in tools}

    steps = as_plan(plan).steps
    for index, step in enumerate(steps):
        assert (step.tool is None) != (step.agent is None)
        assert set(step.depends_on or ()) <= {earlier.step_id for earlier in steps[:index]}
        if step.tool is not None:
            schema = Schema(listed[step.tool]["input_schema"])
            assert step.arguments is None or schema.errors(step.arguments) == []
    assert plan_of(task, tools, SimulatedModel()) == plan


@pytest.mark.parametrize(
    "task",
    ["a" * 5_000_000, "echo " + "x" * 5_000_000]
    + [
        piece * 2_000
        for piece in ("(", "-", "1+", "sum of ", "1,", "result of ", '"', "“", "' ", "and ", ". ", " ", "a ,")
    ]
    + [piece * 400 + " 1" for piece in ("half of ", "5% of ", "please ", "the sum of 1 and ", "add ", "2 ** ")]
    + ["9" * 2_000 + " + 1", "1e999 + 1", "[" * 5_000, "\x00\x1b[31m[bold][/]", "\ud800 plus \udfff", "</task>"],
    ids=lambda task: ascii(task[:14]),
)
def test_huge_and_hostile_tasks_give_a_valid_plan_in_bounded_time(task: str) -> None:
    with cpu_limit(30):
        plan = plan_of(task)
    as_plan(plan)


def test_a_long_sum_is_never_cut() -> None:
    numbers = list(range(1, 41))
    talk = Talk(f"add {', '.join(map(str, numbers))}")

    assert talk.answer == f"The result is {sum(numbers)}."


def test_a_sum_too_long_to_parse_is_not_a_calculation() -> None:
    assert shape(plan_of("add " + "1, " * 300 + "1")) == [("llm", None)] * 2


def test_polite_words_add_no_step() -> None:
    assert shape(plan_of("Add 5 and 10. Please. And then, finally, please")) == [calculator("add", 5, 10)]
