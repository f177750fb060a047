"""Figures of an answer that no output contains or yields: suspicions for the judge, never a verdict (Decision 7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.plan.models import Plan
from aeon_core.validation.result_checks import MAX_SUSPICIONS, Artifacts, suspicions_about, unsupported_figures


def artifacts(answer: str, output: Any, goal: str = "Sag es", **more: Any) -> Artifacts:
    plan = Plan(goal=goal, steps=[{"step_id": "s", "description": "Sieh nach", "status": "complete"}])
    return Artifacts(**{"goal": goal, "plan": plan, "results": {"s": output}, "answer": answer, **more})


def suspected(answer: str, output: Any, **more: Any) -> list[str]:
    told = unsupported_figures(artifacts(answer, output, **more))
    return [line.removeprefix("the answer says ").partition(", which")[0].strip("'") for line in told]


BACKED: dict[str, tuple[str, Any]] = {
    "as it is": ("Es sind 412 Zeilen", {"rows": 412}),
    "in a text": ("412 rows", {"text": "Total: 412 rows."}),
    "grouped": ("1,234,567 rows", {"rows": 1234567}),
    "grouped the German way": ("1.234.567,50 Euro", {"sum": 1234567.5}),
    "grouped with blanks": ("18 400 messages", {"count": 18387}),
    "grouped with apostrophes": ("CHF 12'345", {"sum": 12345}),
    "decimal comma": ("2,44 m", {"height": 2.44}),
    "rounded": ("12.3 s", {"seconds": 12.3149}),
    "rounded to a hundred": ("about 388,000", {"people": 387758}),
    "rounded up": ("rund 1500", {"sum": 1496.2}),
    "a sum": ("1522.70 in all", {"invoices": [{"id": "a", "net": 1204.5}, {"id": "b", "net": 318.2}]}),
    "a sum of two": ("1522.70 in all", {"a": 1204.5, "b": 318.2}),
    "a difference": ("70 fewer", {"before": 1200, "after": 1130}),
    "a product": ("4,650 euros", {"price": 37.2, "count": 125}),
    "a quotient": ("32.5 a day", {"sum": 1040, "days": 32}),
    "a mean": ("48.25 on average", {"rows": [{"ms": 37}, {"ms": 59.5}, {"ms": None}]}),
    "a percentage": ("37.5 % failed", {"failed": 60, "all": 160}),
    "a change in percent": ("up 25 %", {"before": 80, "after": 100}),
    "a share as a percentage": ("43.7 %", {"share": 0.437}),
    "a count of a list": ("23 hosts", {"hosts": ["h"] * 23}),
    "seconds in minutes": ("45 minutes", {"seconds": 2700}),
    "milliseconds in seconds": ("1.25 s", {"ms": 1250}),
    "seconds in hours": ("37 hours", {"seconds": 133200}),
    "months in years": ("31 years", {"months": 372}),
    "days in weeks": ("26 weeks", {"days": 182}),
    "cents in euros": ("41.37 euros", {"cents": 4137}),
    "bytes in KiB": ("43 KiB", {"bytes": 44032}),
    "bytes in MB": ("67 MB", {"bytes": 67108864}),
    "bytes in MiB": ("64 MiB", {"bytes": 67108864}),
    "bytes in GB": ("34.4 GB", {"bytes": 34359738368}),
    "bytes in GiB": ("37 GiB", {"bytes": 39728447488}),
    "millimetres in centimetres": ("42.3 cm", {"mm": 423}),
    "metres in kilometres": ("42.2 km", {"metres": 42195}),
    "hours in days": ("72 hours", {"days": 3}),
    "Celsius in Fahrenheit": ("64.8 °F", {"celsius": 18.2}),
    "frost in Fahrenheit": ("-22 °F", {"celsius": -30}),
    "Fahrenheit in Celsius": ("38.9 °C", {"fahrenheit": 102}),
    "Fahrenheit in frost": ("−23.3 °C", {"fahrenheit": -10}),
    "kilometres in miles": ("26.2 miles", {"km": 42.195}),
    "miles in kilometres": ("100 km", {"miles": 62.137}),
    "miles in metres": ("83686 m", {"miles": 52}),
    "feet in metres": ("8848 m", {"feet": 29029}),
    "inches in centimetres": ("68.6 cm", {"inches": 27}),
    "pounds in kilograms": ("81.6 kg", {"pounds": 180}),
    "of the goal": ("Of the 250 asked for, all", {}),
    "of another sign": ("a loss of 350", {"profit": -350}),
    "Arabic digits": ("٤١٢ صفًا", {"rows": 412}),
    "Devanagari digits": ("४१२ पंक्तियाँ", {"rows": 412}),
    "a table": ("| a | 412 |\n| b | 97 |\n| all | 509 |", {"a": 412, "b": 97}),
}


@pytest.mark.parametrize(("answer", "output"), BACKED.values(), ids=BACKED.keys())
def test_a_figure_that_follows_from_an_output_is_not_suspected(answer: str, output: Any) -> None:
    assert suspected(answer, output, goal="Prüfe 250 Zeilen") == []


PASSED_OVER = {
    "small counts": "There are 3 reasons and 20 rows",
    "times": "at 14:30, 18:05:33",
    "dates": "on 2026-03-01, 01.03.2026 and 28/02/2026",
    "names": "web-47, INV-2026-77, v1.2.3, B52, ISO8601, 9f86d081",
    "ranges": "pages 44-87",
    "list numbers": "1. one\n2. two",
}


@pytest.mark.parametrize("answer", PASSED_OVER.values(), ids=PASSED_OVER.keys())
def test_text_without_figures_is_not_suspected(answer: str) -> None:
    assert suspected(answer, {"text": "yes"}) == []


@pytest.mark.parametrize(
    ("answer", "output", "lonely"),
    [
        ("Es sind 421 Zeilen", {"rows": 412}, ["421"]),
        ("12.4 s", {"seconds": 12.3149}, ["12.4"]),
        ("about 389,000", {"people": 387758}, ["389,000"]),
        ("95 fewer", {"before": 1200, "after": 1130}, ["95"]),
        ("66.8 °F", {"celsius": 18.2}, ["66.8"]),
        ("64,3 % und 412", {"rows": 412}, ["64,3"]),
        ("٤٢١ صفًا", {"rows": 412}, ["421"]),
        ("54321 and 98765", {}, ["54321", "98765"]),
    ],
)
def test_a_figure_from_nowhere_is_suspected(answer: str, output: Any, lonely: list[str]) -> None:
    assert suspected(answer, output) == lonely


def test_requirements_memory_and_arguments_are_sources_too() -> None:
    answer = "7919, 6007 and 4999"
    made = artifacts(answer, {}, memory={"k": [6007]})
    made.plan.steps[0].arguments = {"limit": 4999}
    assert len(unsupported_figures(artifacts(answer, {}))) == 3
    assert unsupported_figures(made, ["Nenne 7919."]) == []


def test_an_exit_code_that_is_not_zero_is_suspected() -> None:
    told = "step 's' ended with exit_code 2, which the answer must account for"
    assert suspicions_about(artifacts("Fertig", {"exit_code": 2})) == [told]
    for code in (0, "2", None, False, True):
        assert suspicions_about(artifacts("Fertig", {"exit_code": code})) == []
    assert suspicions_about(artifacts("Fertig", "exit_code 2")) == []


def test_a_failure_is_suspected_only_next_to_a_result() -> None:
    told = "step 's' gave a result, and yet {}, which the answer must account for"
    for output, failure in (
        ({"success": False, "issues": ["zu lang"]}, "success is false"),
        ({"value": "groß", "error": "±0.04"}, "error is '±0.04'"),
        ({"success": True, "error": "keiner"}, "error is 'keiner'"),
    ):
        assert suspicions_about(artifacts("Fertig", output)) == [told.format(failure)]
    for alone in (
        {"success": False},
        {"error": "voll"},
        {"success": False, "error": "voll", "rows": ["x"]},
        {"error": 0.1},
    ):
        assert suspicions_about(artifacts("Fertig", alone)) == []


def test_the_number_of_suspicions_is_bounded() -> None:
    answer = " ".join(str(10_007 * n + 13) for n in range(50, 150))
    assert len(unsupported_figures(artifacts(answer, {}))) == MAX_SUSPICIONS


def test_a_number_too_large_to_compare_is_left_out() -> None:
    digits = "1" + "0" * 400
    assert suspected(f"{digits} and 54321", {"result": 10**400}) == ["54321"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(alphabet="0123456789.,'-− %٣४²½a\u00a0", max_size=40) | st.text(), values)
def test_figures_never_raise_for_any_answer_and_output(answer: str, output: Any) -> None:
    made = artifacts(answer, output)
    assert unsupported_figures(made) == unsupported_figures(made)


@given(st.floats(21, 1e9, allow_nan=False).map(lambda number: round(number, 2)), st.lists(values, max_size=3))
def test_a_figure_that_an_output_holds_is_never_suspected(number: float, others: list[Any]) -> None:
    assert suspected(f"It is {number:.2f}, in all {number:,.2f}.", [number, *others]) == []
