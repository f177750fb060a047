"""Units, codes, names and lists in an answer (adaptive FR-018 to FR-021)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.convergence.engine import ConvergenceEngine
from aeon_core.plan.models import Plan


def assess(goal: str, output: Any, answer: str, *, do: str | None = None, **more: Any) -> ConvergenceAssessment:
    steps = [{"step_id": "s1", "description": do or goal, "status": "complete"}]
    return ConvergenceEngine().assess(
        goal=goal, plan=Plan(goal=goal, steps=steps), results={"s1": output}, answer=answer, **more
    )


def answer_is_against(found: ConvergenceAssessment) -> bool:
    broken = [flag for flag, holds in found.consistency_status.items() if not holds]
    return broken == ["answer"] and "contradiction_detected" in found.reason_codes


@pytest.mark.parametrize(
    ("output", "right", "wrong"),
    [
        ({"length_km": 48}, "48 km", "48 miles"),
        ({"text": "The cable is 48 km long."}, "48 kilometres", "48 m"),
        ({"length_m": 48000}, "48 km", "48000 km"),
        ({"temperature_c": 18.5}, "18.5 °C, that is 65.3 °F,", "18.5 °F"),
        ({"price_eur": 2400}, "€2,400", "$2,400"),
        ({"mass_g": 750}, "0.75 kg", "750 kg"),
        ({"result": 48}, "48", "48 tonnes"),
    ],
    ids=["miles", "text", "converted", "degrees", "money", "grams", "none-known"],
)
def test_a_number_in_another_unit_is_another_number(output: Any, right: str, wrong: str) -> None:
    do = "Find the length of the cable in kilometres" if "result" in output else None
    goal = "Find out about the cable."
    assert assess(goal, output, f"The cable: {right}.", do=do).consistency_status["answer"]
    assert answer_is_against(assess(goal, output, f"The cable: {wrong}.", do=do))


def test_a_code_with_other_digits_is_another_code() -> None:
    goal, output = "Book the room and give the booking code.", {"booking": "RM-4417", "room": "Lilac"}
    assert assess(goal, output, "The room Lilac is booked, code RM-4417.").converged
    assert answer_is_against(assess(goal, output, "The room Lilac is booked, code RM-4471."))


def test_a_code_of_another_form_is_not_held_against_the_answer() -> None:
    goal, output = "Book the room and give the booking code.", {"booking": "RM-4417", "room": "Lilac"}
    found = assess(goal, output, "The room Lilac on floor B2 is booked.")
    assert found.consistency_status["answer"]


@pytest.mark.parametrize(
    ("answer", "hallucinated"),
    [
        ("I called the tide_table tool: high water is at 06:12.", True),
        ("I called the `tides` tool: high water is at 06:12.", True),
        ("I called the harbour_log tool: high water is at 06:12.", False),
        ("The right tool for this was a table: high water is at 06:12.", False),
    ],
    ids=["unknown", "quoted", "registered", "plain-word"],
)
def test_a_tool_that_the_answer_names_must_be_registered(answer: str, hallucinated: bool) -> None:
    found = assess("Find the time of high water.", {"high_water": "06:12"}, answer, tools={"harbour_log"})
    assert ("hallucinated_tool" in found.reason_codes) is hallucinated
    assert found.consistency_status["answer"] is not hallucinated


def test_without_known_tools_none_is_hallucinated() -> None:
    answer = "I called the tide_table tool: high water is at 06:12."
    assert assess("Find the time of high water.", {"high_water": "06:12"}, answer).converged


SIGNED = {
    "matches": ["Signed for the buyer by Ines Kovar", "Signed for the seller by Tom Adeyemi"],
    "text": "For the seller the deed was signed by Tom Adeyemi.",
}


def test_a_known_name_in_the_place_of_another_is_a_contradiction() -> None:
    goal = "Who signed the deed for the seller?"
    assert assess(goal, SIGNED, "For the seller the deed was signed by Tom Adeyemi.").converged
    assert answer_is_against(assess(goal, SIGNED, "For the seller the deed was signed by Ines Kovar."))


def test_a_first_that_belongs_to_another_is_a_contradiction() -> None:
    goal, output = (
        "Find out whether Adele, Bruno or Cyrus is the tallest.",
        {"text": "Bruno is the tallest with 192 cm."},
    )
    assert assess(goal, output, "Bruno is the tallest.").converged
    assert answer_is_against(assess(goal, output, "Cyrus is the tallest."))


def test_a_member_of_a_list_that_the_answer_leaves_out_makes_it_incomplete() -> None:
    goal = "Weigh the crates of Ada, Bo and Cy."
    output = {"Ada": 41.5, "Bo": 38.2, "Cy": 44.9}
    assert assess(goal, output, "Cy 44.9 kg, Ada 41.5 kg, Bo 38.2 kg.").converged
    found = assess(goal, output, "Ada 41.5 kg, Bo 38.2 kg.")
    assert found.reason_codes == ["incomplete"]
    assert "the answer leaves out 'Cy', which the goal names" in found.detected_issues


def test_an_entry_of_a_table_is_told_where_each_is_asked_for() -> None:
    output = {"Falcons": 31, "Otters": 27, "Herons": 18}
    assert assess("Give the points of each team.", output, "Falcons 31, Otters 27, Herons 18").converged
    assert not assess("Give the points of each team.", output, "Falcons 31, Otters 27").converged
    assert assess("Find the team with most points.", output, "The Falcons lead with 31 points.").converged


@pytest.mark.parametrize(
    ("said", "answer", "at_odds"),
    [
        ("The gate was not locked.", "The gate was locked.", True),
        ("The gate was not locked.", 'The log says: "The gate was not locked."', False),
        ("The gate was not locked.", 'Nobody can say "the gate was locked", since the gate was not locked.', False),
        ("The guard denied that \"the gate was not locked\"; the gate was locked.", "The gate was locked.", False),
        (
            'The guard said "the north gate was locked at night by the porter".',
            "The north gate was not locked at night by the porter.",
            False,
        ),
        ("No key is there to lock the gate, so nothing was locked.", "No key is there to lock the gate.", False),
        ("The gate number is not required.", "Gate number, colour and height.", False),
    ],
    ids=["denied", "quoted", "quoted-affirmed", "quoted-in-output", "reported", "twice-denied", "list"],
)  # fmt: skip
def test_a_quotation_is_nobody_s_own_word(said: str, answer: str, at_odds: bool) -> None:
    found = assess("Find out about the gate.", {"text": said}, answer)
    assert ("contradiction_detected" in found.reason_codes) is at_odds


@pytest.mark.parametrize("failed", [True, False], ids=["failed", "said-so"])
def test_a_thing_that_was_not_done_is_not_told_as_done(failed: bool) -> None:
    steps = [{"step_id": "s1", "description": "Book the ferry", "status": "failed" if failed else "complete"}]
    run: dict[str, Any] = {"goal": "Book the ferry.", "plan": Plan(goal="Book the ferry.", steps=steps)}
    run |= {"results": {}, "failures": {"s1": ["full"]}} if failed else {"results": {"s1": {"booked": False}}}
    found = ConvergenceEngine().assess(answer="The ferry is booked for you.", **run)
    assert "contradiction_detected" in found.reason_codes
    honest = ConvergenceEngine().assess(answer="The ferry is not booked, it is full.", **run)
    assert "contradiction_detected" not in honest.reason_codes
