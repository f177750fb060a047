"""Commands, units, dates and numbers that do something else than the description says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.aeon_core.validation.semantic.plans import found, repairs

GOAL = "Prepare the yearly figures for the board"


def kinds(said: str, tool: str, arguments: dict[str, Any]) -> list[str]:
    return [kind for kind, _, step_id in found(GOAL, "Read figures.csv", (said, tool, arguments)) if step_id == "s2"]


@pytest.mark.parametrize(
    ("said", "tool", "arguments"),
    [
        ("Query the orders of 2024", "sql_query", {"database": "shop", "query": "DELETE FROM orders"}),
        ("List the tables of the shop", "sql_query", {"database": "shop", "query": "drop table orders"}),
        ("Show the newest orders", "sql_query", {"database": "shop", "query": "UPDATE orders SET paid = 1"}),
        ("List the files in src", "Bash", {"command": "ls; rm -rf src"}),
        ("Count the lines of figures.csv", "Bash", {"command": "sudo rm figures.csv"}),
        ("List the folder figures/2025", "run_tests", {"target": "figures/2025"}),
    ],
)
def test_a_description_that_only_looks_does_not_fit_a_call_that_acts(
    said: str, tool: str, arguments: dict[str, Any]
) -> None:
    assert kinds(said, tool, arguments) == ["do_say_mismatch"]


@pytest.mark.parametrize(
    ("said", "tool", "arguments"),
    [
        ("Query the orders of 2024", "sql_query", {"database": "shop", "query": "SELECT * FROM deleted_orders"}),
        ("List the orders and delete the test ones", "sql_query", {"database": "s", "query": "DELETE FROM orders"}),
        ("Find the stale locks and their removal dates", "Bash", {"command": "rm -f *.lock"}),
        ("List the files that rm has left", "Bash", {"command": "ls | grep -v rm"}),
        ("Check which commands use rm", "Bash", {"command": "grep -rn 'xrm' src"}),
        ("Free the disk", "Bash", {"command": "rm -rf build"}),
        ("List the failing tests", "run_tests", {"target": "tests"}),
    ],
)
def test_a_command_that_fits_is_left_alone(said: str, tool: str, arguments: dict[str, Any]) -> None:
    assert kinds(said, tool, arguments) == []


def test_the_repair_names_the_words_that_change_something() -> None:
    step = ("List the files in src", "Bash", {"command": "rm  -rf src"})
    (repair,) = repairs(GOAL, "Read figures.csv", step)
    assert repair.startswith("Put a command that only looks in place of 'rm'")


@pytest.mark.parametrize(
    ("units", "mismatch"),
    [
        (("litre", "gallon"), True),
        (("inch", "centimetre"), False),
        (("in", "cm"), False),
        (("inches", "cm"), False),
    ],
)
def test_units_are_compared_where_both_are_written_out(units: tuple[str, str], mismatch: bool) -> None:
    arguments = {"value": 80, "from_unit": units[0], "to_unit": units[1]}
    step = ("Convert the height of 80 inches to centimetres", "convert_units", arguments)
    assert (found("Convert 80 inches to centimetres", step) != []) is mismatch


@pytest.mark.parametrize(
    ("said", "date", "mismatch"),
    [
        ("Schedule the review for 3 May 2026", "2026-06-03", True),
        ("Schedule the review for May 3rd", "2026-05-04", True),
        ("Schedule the review for 3 May 2026", "2026-05-03", False),
        ("Schedule the review for 3 May 2026", "2026-05-03T10:00:00", False),
        ("Schedule the review between 3 May and 9 May", "2026-05-07", False),
        ("Schedule the review for 3 May 2026", "next week", False),
    ],
)
def test_a_date_in_words_is_compared_with_the_one_that_is_given(said: str, date: str, mismatch: bool) -> None:
    arguments = {"title": "Review", "date": date, "attendees": ["board"]}
    assert (kinds(said, "schedule_meeting", arguments) == ["do_say_mismatch"]) is mismatch


@pytest.mark.parametrize(
    ("said", "tool", "arguments", "mismatch"),
    [
        ("Multiply the 25.5 rows by 4 seeds", "calculator", {"operation": "multiply", "a": 25.5, "b": 7}, True),
        ("Multiply the 25.5 rows by 4 seeds", "calculator", {"operation": "multiply", "a": 25.5, "b": 4}, False),
        ("Resize a.png to 1024 by 1024", "resize_image", {"path": "a.png", "width": 2048, "height": 2048}, True),
        ("Divide the sum of 12 and 18 by 2", "calculator", {"operation": "divide", "a": 30, "b": 2}, False),
    ],
)
def test_an_operand_is_no_count_and_only_arithmetic_gives_a_sum(
    said: str, tool: str, arguments: dict[str, Any], mismatch: bool
) -> None:
    assert (kinds(said, tool, arguments) == ["do_say_mismatch"]) is mismatch


def test_a_tool_that_is_named_by_an_identifier_is_looked_up_whatever_the_verb() -> None:
    assert [kind for kind, _, _ in found(GOAL, "Read figures.csv", "Ask the ledger_oracle tool for the total")] == [
        "hallucination"
    ]
    assert found(GOAL, "Read figures.csv", "Ask the weather tool what figures it has") == []


def test_letters_that_only_look_like_others_name_no_month() -> None:
    arguments = {"title": "Review", "date": "2026-03-04", "attendees": ["board"]}
    assert kinds("Schedule the review on 5 augu\u017ft", "schedule_meeting", arguments) == []
