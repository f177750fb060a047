"""Vague steps, and steps that serve no part of the goal."""

from __future__ import annotations

import pytest

from tests.aeon_core.validation.semantic.plans import found, repairs

GOAL = "Compute the average delivery time from parcels.csv"


@pytest.mark.parametrize(
    "description",
    ["Do stuff", "Handle it", "Finalize", "Make it work", "Process the data", "Improve the situation somehow", "Etc."],
)
def test_a_step_without_action_or_object_is_vague(description: str) -> None:
    assert found(GOAL, "Read parcels.csv", description) in (
        [("specificity", "high", "s2")],
        [("specificity", "medium", "s2")],
    )


@pytest.mark.parametrize(
    "description",
    [
        "Verify the result",
        "Summarise the findings in two sentences",
        "Handle parcels without a delivery date by dropping their rows",
        "Fix the parser in load.py",
        "Process 200 rows at a time",
        "Update the changelog",
        "Paket nach Gewicht sortieren",
        "データを並べ替える",
    ],
)
def test_a_concrete_or_supporting_step_is_not_vague(description: str) -> None:
    assert found(GOAL, "Read parcels.csv", description) == []


def test_arguments_and_substeps_make_a_step_concrete() -> None:
    assert found("Add 2 and 3", ("Do it", "calculator", {"operation": "add", "a": 2, "b": 3})) == []


def test_the_repair_of_a_vague_step_names_the_goal_or_what_the_tool_needs() -> None:
    assert GOAL in repairs(GOAL, "Read parcels.csv", "Do stuff")[0]
    assert "'city'" in repairs("Check the weather in Oslo", ("Get the data", "get_weather"))[0]


@pytest.mark.parametrize(
    ("goal", "steps", "odd"),
    [
        ("Deploy the web service", ["Build the Docker image", "Push the Docker image", "Knit a scarf"], "s3"),
        (
            "Add an index to the orders table",
            ["Read the query plan of the orders table", "Bake bread", "Create the index"],
            "s2",
        ),
        ("Plan a birthday party", ["Send invitations", "Refactor the Python module", "Buy balloons"], "s2"),
    ],
)
def test_a_step_from_a_far_field_is_irrelevant(goal: str, steps: list[str], odd: str) -> None:
    assert found(goal, *steps) == [("relevance", "medium", odd)]


def test_a_step_outside_a_chain_that_holds_all_others_is_irrelevant() -> None:
    steps = [
        "List the tariffs",
        ("Compare the tariffs by weight", None, None, ["s1"]),
        ("Choose the tariff", None, None, ["s2"]),
    ]
    assert found("Find the best tariff", *steps, "Varnish the trophy") == [("relevance", "medium", "s4")]
    assert found("Find the best tariff", *steps, ("Varnish the trophy", None, None, ["s3"])) == []


@pytest.mark.parametrize(
    ("goal", "steps"),
    [
        ("Organise a picnic", ["Buy bread and cheese", "Pack a blanket", "Check the weather for Saturday"]),
        ("Move to another flat", ["Cancel the lease", "Pack the dishes", "Redirect the post"]),
        ("Analyse coffee sales", ["Load the sales of each cafe", "Group them by coffee bean", "Plot the trend"]),
    ],
)
def test_a_step_in_other_words_than_the_goal_is_not_irrelevant(goal: str, steps: list[str]) -> None:
    assert found(goal, *steps) == []
