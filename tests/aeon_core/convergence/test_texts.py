"""Reading texts: quantities, parts of a goal, asked counts, evasion, polarity."""

from __future__ import annotations

import pytest

from aeon_core.convergence.quantities import Quantity, derived, quantities
from aeon_core.convergence.requirements import asked_counts, counted_items, evasive, goal_parts
from aeon_core.convergence.units import measures
from aeon_core.convergence.verdicts import opposite, outcome_of
from aeon_core.convergence.words import admits_failure, claims_success, content_stems, denied, stem, turned


def only(text: str) -> Quantity:
    [found] = quantities(text)
    return found


@pytest.mark.parametrize(
    ("said", "given", "same"),
    [
        ("1,234.50", "1234.5", True),
        ("about 388,000", "387758", True),
        ("388,000", "387758", False),
        ("12.3", "12.315", True),
        ("12.4", "12.315", False),
        ("1.2 million", "1234567", True),
        ("12%", "0.12", True),
        ("577.026", "577026", True),
        ("3,5", "3.5", True),
        ("-5", "5", True),
        ("28 February 2026", "2026-02-28", True),
        ("February 28, 2026", "2027-02-28", False),
        ("28 February", "2026-02-28", True),
        ("Thursday", "Friday", False),
        ("14:30", "15:30", False),
        ("seven", "7", True),
    ],
)
def test_two_quantities_are_the_same_or_not(said: str, given: str, same: bool) -> None:
    assert only(said).same(only(given)) is same


@pytest.mark.parametrize("text", ["step s1", "v1.2.3", "1. first\n2. second", "INV-2026-03-77", "sha 9f86d081"])
def test_names_markers_and_versions_are_no_quantities(text: str) -> None:
    assert quantities(text) == ()


def test_a_number_follows_from_known_ones_or_does_not() -> None:
    known = (*quantities("1200"), *quantities("1130"))
    assert derived(only("70"), known)
    assert derived(only("94.2%"), known)
    assert not derived(only("95"), known)
    assert not derived(only("Monday"), known)


def heads(goal: str) -> list[str]:
    return [part.text for part in goal_parts(goal)]


def test_a_goal_is_cut_into_what_it_asks_for() -> None:
    assert heads("Compute the mean, the variance and the range of the data") == [
        "Compute the mean",
        "the variance",
        "the range of the data",
    ]
    assert heads("Review it: 1. list risks 2. suggest fixes") == ["list risks", "suggest fixes"]
    assert heads("Sort the rows, and report it.") == ["Sort the rows"]
    assert heads("For the city of Lyon, find the population") == ["For the city of Lyon, find the population"]
    assert heads("?") == []


def test_asked_counts_are_of_things_not_of_measures() -> None:
    assert asked_counts("Propose three short slogans and list 5 risks") == [(3, "short slogans"), (5, "risks")]
    assert asked_counts("Write 200 words; wait 3 days; add 3 and 4; find up to 4 errors") == []


@pytest.mark.parametrize(
    ("answer", "count"),
    [("1. a\n2. b\n3. c", 3), ("- a\n- b", 2), ("Miso, Pixel and Nori", 3), ("One thing only", None)],
)
def test_listed_things_are_counted(answer: str, count: int | None) -> None:
    assert counted_items(answer) == count


@pytest.mark.parametrize(
    "text",
    [
        "I cannot answer.",
        "We don't have the data.",
        "I'll compute it next.",
        "TBD",
        "It depends.",
        "No data was given.",
    ],
)
def test_evasion_is_recognised(text: str) -> None:
    assert evasive(text)


@pytest.mark.parametrize(
    "text", ["The port cannot be reached.", "There are no TODO comments.", "No.", "The result is 42.", "It will rain."]
)
def test_a_negative_finding_is_no_evasion(text: str) -> None:
    assert not evasive(text)


def test_polarity_of_clauses() -> None:
    assert denied("It is not valid")
    assert not denied("It isn't without faults")
    assert claims_success("The upload was successful")
    assert claims_success("It ran without errors")
    assert not claims_success("The upload was not successful")
    assert admits_failure("The upload failed")
    assert not admits_failure("No errors were found")


def test_opposite_clauses() -> None:
    def against(one: str, other: str) -> bool:
        return opposite(content_stems(one), content_stems(other), denied(one), denied(other))

    assert against("The bridge is open", "The bridge is not open")
    assert against("The bridge is open", "The bridge is closed")
    assert not against("The bridge is open", "The bridge is not closed")
    assert not against("The bridge is open", "The tunnel is not lit")


@pytest.mark.parametrize(
    ("output", "well"),
    [
        ({"status": "ok"}, True),
        ({"exit_code": 2, "output": ""}, False),
        ({"success": False}, False),
        ({"error": None, "ok": True}, True),
        ({"error": "disk full"}, False),
        ({"errors": 412, "lines": 9}, None),
        ({"text": "failed"}, None),
        ("ok", None),
    ],
)
def test_an_output_says_whether_its_step_went_well(output: object, well: bool | None) -> None:
    assert outcome_of(output) is well


def test_word_forms_share_a_stem() -> None:
    for forms in (
        ["report", "reports", "reported", "reporting"],
        ["plan", "planned", "planning", "plans"],
        ["box", "boxes"],
    ):
        assert len({stem(form) for form in forms}) == 1, forms


@pytest.mark.parametrize(
    "text", ["5 au\u017fts", "3 augu\u017ft", "augu\u017ft 3", "fr\u0131day", "5 m\u0131les", "5 lb\u017f"]
)
def test_letters_that_only_look_like_others_name_no_day_and_no_unit(text: str) -> None:
    assert {number.kind for number in quantities(text)} <= {"number"}
    assert [measure.unit for measure in measures("the goal", text) if measure.unit is not None] == []
    assert asked_counts(f"list f\u0131ve names by {text}") == []


def test_a_unit_may_be_in_capitals() -> None:
    assert [measure.unit and measure.unit.name for measure in measures("the goal", "5 KM and 3 Kg")] == ["km", "kg"]


def test_pairs_of_opposites_are_counted_where_each_side_has_one_alone() -> None:
    assert turned(frozenset({"open", "bridg"}), frozenset({"clos", "bridg"})) == 1
    assert turned(frozenset({"stabl", "high"}), frozenset({"unstabl", "low"})) == 2
    assert turned(frozenset({"open", "clos"}), frozenset({"clos", "open"})) == 0
    assert turned(frozenset({"to"}), frozenset({"into"})) == 0
