"""Tools that do not exist, and steps that say one thing and do another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.aeon_core.validation.semantic.plans import found, repairs

MISMATCH = [("do_say_mismatch", "high", "s1")]


@pytest.mark.parametrize(
    ("step", "severity", "repair"),
    [
        (("Add 2 and 3", "calculater"), "high", "Set the tool of step 's1' to 'calculator'."),
        (("Send an e-mail to Ann", "mailer"), "high", "Set the tool of step 's1' to 'send_email'."),
        (("Weigh the parcel", "scales"), "high", "Register the tool 'scales', or remove it from step 's1'"),
        (("Weigh the parcel with the scale_reader tool",), "medium", "Register the tool 'scale_reader'"),
        (("Raise 2 to 3", "calculator", {"operation": "power", "a": 2, "b": 3}), "high", "add, subtract, multiply"),
        (("Sort it by name", "sort_list", {"items": [], "order": "descend"}), "high", "Set arguments.order to 'desc"),
    ],
)
def test_a_tool_or_an_operation_that_does_not_exist_is_a_hallucination(
    step: tuple[Any, ...], severity: str, repair: str
) -> None:
    assert found("Weigh parcels", step) == [("hallucination", severity, "s1")]
    assert repair in repairs("Weigh parcels", step)[0]


def test_arguments_of_the_wrong_type_are_inconsistent() -> None:
    step = ("Add 2 and 3", "calculator", {"operation": "add", "a": "2", "b": 3})
    assert found("Add", step) == [("consistency", "high", "s1")]


@pytest.mark.parametrize(
    "step",
    [
        ("Multiply 6 by 7", "calculator", {"operation": "add", "a": 6, "b": 7}),
        ("Add 6 and 7", "calculator", {"operation": "add", "a": 6, "b": 8}),
        ("Delete parcels.csv", "read_file", {"path": "parcels.csv"}),
        ("Look at parcels.csv", "delete_file", {"path": "parcels.csv"}),
        ("Read parcels.csv", "read_file", {"path": "letters.csv"}),
        ("Send Ann an e-mail", "calculator", {"operation": "add", "a": 1, "b": 2}),
        ("Multiply the counts", "echo", {"text": "counts"}),
        ("Search the web for tariffs", "calculator", {"operation": "add", "a": 1, "b": 2}),
        ('Repeat "hello"', "echo", {"text": "goodbye"}),
        ("Get the weather in Oslo", "get_weather", {"city": "Rome"}),
        ("Sort by weight, heaviest and largest first", "sort_list", {"items": [], "order": "ascending"}),
        ("Restart web-1", "restart_service", {"service": "web", "host": "web-2"}),
        ("Use get_weather to see if it rains", "echo", {"text": "rain"}),
        ("Use the calculator tool to add 2 and 3",),
        ("Get the weather", "translate_text", {"text": "x", "target_language": "y"}),
    ],
    ids=lambda step: step[0][:30],
)
def test_a_step_that_does_otherwise_than_it_says_is_found(step: tuple[Any, ...]) -> None:
    assert found("Weigh parcels", step) == MISMATCH


@pytest.mark.parametrize(
    "step",
    [
        ("Halve 90", "calculator", {"operation": "divide", "a": 90, "b": 2}),
        ("Find the cost of 4 boxes at 5 euros", "calculator", {"operation": "multiply", "a": 4, "b": 5}),
        ("Take 15% of 80", "calculator", {"operation": "multiply", "a": 80, "b": 0.15}),
        ("Multiply the sum by 4", "calculator", {"operation": "multiply", "a": 42, "b": 4}),
        ("Greet the reader", "echo", {"text": "Welcome!"}),
        ("Delete old logs", "Bash", {"command": "rm -r logs"}),
        ("Save the total as out.txt", "write_file", {"path": "reports/out.txt", "content": "42"}),
        ("Check Paris's weather", "get_weather", {"city": "Paris"}),
        ("Count the orders by city", "sql_query", {"database": "d", "query": "SELECT COUNT(*) FROM orders"}),
        ("Tell the customer by e-mail", "send_email", {"to": "a@example.org", "subject": "S", "body": "B"}),
    ],
    ids=lambda step: step[0][:30],
)
def test_a_step_that_does_what_it_says_is_left_alone(step: tuple[Any, ...]) -> None:
    assert found("Find the total", step) == []


def test_the_repair_of_a_mismatch_names_the_value_or_the_tool() -> None:
    wrong = ("Multiply 6 by 7", "calculator", {"operation": "add", "a": 6, "b": 7})
    assert repairs("g", wrong) == ["Set arguments.operation to 'multiply', or correct the description."]
    other = ("Get the weather in Oslo", "translate_text", {"text": "x", "target_language": "y"})
    assert repairs("g", other) == ["Set its tool to 'get_weather', or describe what the step really does."]
