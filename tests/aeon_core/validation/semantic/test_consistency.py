"""Dependencies, references, duplicates, order and contradictions."""

from __future__ import annotations

import pytest

from tests.aeon_core.validation.semantic.plans import Step, found, said

HIGH, MEDIUM = ("consistency", "high"), ("consistency", "medium")
READ = "Read parcels.csv"


@pytest.mark.parametrize(
    ("steps", "place", "words"),
    [
        ([READ, ("Count the rows", None, None, ["s7"])], (*HIGH, "s2"), "depends on 's7': no step has that id"),
        ([(READ, None, None, ["s2"]), "Count the rows"], (*HIGH, "s1"), "depends on 's2': that step runs later"),
        (
            [(READ, None, None, ["s2"]), ("Count the rows", None, None, ["s1"])],
            (*HIGH, "s1"),
            "the dependencies go round in a circle: s1 → s2 → s1",
        ),
        ([(READ, None, None, ["s1"]), "Count the rows"], (*HIGH, "s1"), "circle: s1 → s1"),
        (["Count the rows in the result of step 2", READ], (*HIGH, "s1"), "'step 2': that step runs later"),
        ([READ, "Count the rows from step 9"], (*HIGH, "s2"), "'step 9': the plan has no such step"),
        (
            [READ, ("Count the words", "echo", {"text": "{{s5.text}}"})],
            (*HIGH, "s2"),
            "'s5': the plan has no such step",
        ),
        ([READ, "Count the rows", "Count the rows"], (*MEDIUM, "s3"), "repeats step 's2'"),
        ([READ, "Load parcels.csv"], (*MEDIUM, "s2"), "repeats step 's1'"),
        (["Send late.csv to Ann", "Write the late parcels to late.csv"], (*MEDIUM, "s1"), "only step 's2' makes"),
        (["Delete parcels.csv", "Read parcels.csv"], (*MEDIUM, "s2"), "which step 's1' has destroyed"),
        (["Keep rows without a date", "Delete rows without a date"], (*HIGH, "s2"), "contradicts step 's1'"),
        (["Do not email the list", "Email the list to Ann"], (*HIGH, "s1"), "contradicts step 's2'"),
    ],
)
def test_what_cannot_be_together_is_found(steps: list[Step], place: tuple[str, str, str], words: str) -> None:
    assert found("Find late parcels", *steps) == [place]
    assert words in said("Find late parcels", *steps)[0]


@pytest.mark.parametrize(
    "steps",
    [
        [READ, "Run the tests", "Count the rows", "Run the tests"],
        [READ, "Count the rows", "Count the rows again"],
        ["Compare parcels 1 and 2", "Compare parcels 2 and 3"],
        ["Convert euros to dollars", "Convert dollars to euros"],
        ["Write late.csv", "Send late.csv to Ann"],
        ["Stop the scanner", "Start the scanner"],
        [READ, "Prepare the table for step 3", "Follow step 12 of the manual"],
        ["Read log.txt", "Append the count to log.txt"],
        [READ, ("Say the count", "echo", {"text": "{{s1.text}} and {{name}}"})],
    ],
)
def test_what_can_be_together_is_left_alone(steps: list[Step]) -> None:
    assert found("Find late parcels", *steps) == []


@pytest.mark.parametrize(
    ("goal", "step"),
    [
        ("Clean the mailbox without deleting any letters", "Delete letters older than a year"),
        ("Tidy the table; do not remove columns", "Remove columns without a name"),
        ("Sort the parcels in ascending order", "Sort the parcels in descending order"),
        ("Translate the letter into Dutch", "Translate the letter into Danish"),
    ],
)
def test_a_step_that_goes_against_the_goal_is_found(goal: str, step: str) -> None:
    assert found(goal, step) == [(*HIGH, "s1")]


def test_a_long_circle_is_found_once() -> None:
    steps = [(f"Weigh parcel {n}", None, None, [f"s{n % 50 + 1}"]) for n in range(1, 51)]
    assert found("Weigh parcels", *steps) == [(*HIGH, "s1")]


def test_what_only_later_steps_speak_of_is_not_there_from_the_start() -> None:
    steps = ["Send the slide deck to Ann", "Make the slide deck", "Number the slide deck"]
    assert found("Report the parcels", *steps)[0] == ("consistency", "medium", "s1")


def test_a_file_that_was_spoken_of_may_be_there_from_the_start() -> None:
    steps = ["Never delete late.csv", "Send late.csv to Ann", "Write the late parcels of today to late.csv"]
    assert found("Report the parcels", *steps) == []
