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


@pytest.mark.parametrize(
    "description",
    [
        "Handle the technical side appropriately",
        "Sort out the remaining contractual bits",
        "Deal with the delivery side of things",
        "Bring it all to the next level",
        "Get the parcels looking right",
        "Do the usual with the parcels",
        "Do whatever the carrier might need",
        "Improve the overall appearance",
        "Make everything work for everyone",
    ],
)
def test_words_that_would_fit_any_subject_do_not_make_a_step_concrete(description: str) -> None:
    assert [kind for kind, _, _ in found(GOAL, "Read parcels.csv", description)] == ["specificity"]


@pytest.mark.parametrize(
    "description",
    [
        "Determine the longer side of the parcel",
        "Set the parity bits of the label code",
        "Put the two halves of the label together",
        "Do the usual 12 checks on the parcels",
        "Handle both sides of 40 parcels with tape",
        "Find the parcels that look good in parcels.csv",
    ],
)
def test_the_same_words_with_a_subject_of_their_own_do(description: str) -> None:
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
        ("Plan a birthday party", ["Send party invitations", "Refactor the Python module", "Buy balloons"], "s2"),
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


CHAIN = [
    "List the tariffs",
    ("Compare the tariffs by weight", None, None, ["s1"]),
    ("Choose the tariff", None, None, ["s2"]),
]


@pytest.mark.parametrize("odd", ["Warm a sample to 60 degrees", "Time the riders by transponder", "Varnish the panel"])
def test_a_step_outside_the_chain_is_not_irrelevant_for_that_alone(odd: str) -> None:
    assert found("Find the best tariff", *CHAIN, odd) == []


@pytest.mark.parametrize(
    ("goal", "steps"),
    [
        ("Resurface Oak Avenue", ["Mill off 4 cm", "Spray bitumen", "Pave with the mix", "Roll and paint the lines"]),
        ("Write a revue", ["Queue at an office", "Take notes", "Test punchlines on stage", "Cut the long ones"]),
        ("Teach the snowplough", ["Practise falling flat", "Slide on the slope", "Ski the blue run", "Sled downhill"]),
    ],
)
def test_where_the_others_are_not_seen_to_belong_together_none_is_seen_not_to(goal: str, steps: list[str]) -> None:
    assert found(goal, *steps) == []


def test_a_plan_that_is_mostly_strangers_has_none() -> None:
    steps = ["Bake bread", "Knit a scarf", "Tune the violin", "Refactor the parser"]
    assert found("File the patent", "Compare earlier patents", *steps, "File the patent claims") == []


@pytest.mark.parametrize(
    "steps",
    [
        ["Draft the patent claims", "Bake bread for the inventors", "Send the claims to the patent office"],
        ["Draft the patent claims", ("Bake bread", None, None, ["s1"]), "Send the claims to the patent office"],
        ["Draft the patent claims", "Bake them into bread", "Send the claims to the patent office"],
        ["Draft the patent claims", "Bake bread as in claim 4", "Send the four claims, 4 in all, to the office"],
    ],
)
def test_a_far_step_is_irrelevant_only_without_any_tie(steps: list[str]) -> None:
    tied = steps[1] != "Bake bread for the inventors"
    assert (found("File the patent for the drying machine", *steps) == []) is tied


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
