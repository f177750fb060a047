"""Whether the words that a judge quotes are there (Decision 7)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.judge.result import Evidence
from aeon_core.plan.models import Plan
from aeon_core.validation.result_checks import Artifacts

STEP = {"step_id": "scan", "description": "Durchsuche die Logs", "tool": "grep", "status": "complete"}
ARTIFACTS = Artifacts(
    goal="Nenne die Fehler",
    plan=Plan(goal="Nenne die Fehler", steps=[{**STEP, "arguments": {"pattern": "ERROR 5\\d\\d", "depth": 3}}]),
    results={
        "scan": {"matches": ["ERROR 502 at 14:30", "ERROR 504 at 15:10"], "count": 2, "complete": True, "next": None}
    },
    answer="Es gab **zwei** Fehler:\n\n| Code | Zeit |\n| --- | --- |\n| `502` | 14:30 |\n\n東京のサーバー、٣ مرات, "
    "**1.204** M€, -5 % im Monat, हिन्दी ١٬٢٤٨",
    memory={"server": {"host": "web-1", "k": 7}},
    failures={"other": ["timed out after 30 s"]},
)
EVIDENCE = Evidence(ARTIFACTS, ["Die Antwort nennt die Zahl der Fehler."])

FOUND = {
    "verbatim": "ERROR 502 at 14:30",
    "another case": "error 502 AT 14:30",
    "other blanks": "ERROR\n 502   at 14:30",
    "quotation marks": '"ERROR 502 at 14:30"',
    "without the Markdown": "Es gab zwei Fehler: Code Zeit 502 14:30",
    "with Markdown": "**ERROR** `502` at 14:30",
    "elided": "ERROR 502 … 15:10",
    "elided with dots": "Es gab ... Fehler",
    "elided with brackets": "Es gab [...] Fehler",
    "across the values of an output": "ERROR 502 at 14:30, ERROR 504 at 15:10",
    "a key and its value": '"count": 2',
    "a boolean": "complete: true",
    "a null": '"next": null',
    "a line break as JSON shows it": "Es gab zwei Fehler:\\n\\n| Code",
    "a control character as JSON shows it": "Es gab \\u001bzwei Fehler",
    "a control character as Python shows it": "Es gab \\x1bzwei Fehler",
    "decimals": "1.204 M€",
    "a sign": "−5 % im Monat",
    "a part of a time": "14:30",
    "marks": "हिन्दी",
    "the answer beside the output": "matches: ERROR 502 at 14:30",
    "a requirement": "nennt die Zahl der Fehler",
    "the goal": "Nenne die Fehler",
    "a step": "Durchsuche die Logs",
    "a step's arguments": "ERROR 5\\d\\d",
    "the memory": "web-1",
    "a failure": "timed out after 30 s",
    "a number": "2",
    "Japanese": "東京のサーバー",
    "Arabic": "٣ مرات",
    "full-width": "ＥＲＲＯＲ ５０２",
}
MISSING = {
    "other words": "three errors were found",
    "another number": "ERROR 503 at 14:30",
    "another decimal point": "12.04 M€",
    "a decimal point left out": "1204 M€",
    "a sign left out": "5 % im Monat",
    "a sign too many": "-1.204",
    "half a number": "ERROR 50",
    "two numbers for one": "50 2",
    "half a grouped number": "٢٤٨",
    "other marks": "हन्दी",
    "a letter": "e",
    "the key of a value": "k",
    "one part of two": "ERROR 502 … 16:00",
    "empty": "",
    "blank": " \n",
    "signs alone": "…",
    "dots alone": "...",
    "Markdown alone": "| --- |",
}


@pytest.mark.parametrize("quote", FOUND.values(), ids=FOUND.keys())
def test_a_quote_is_found_in_any_form(quote: str) -> None:
    assert EVIDENCE.contains(quote)


@pytest.mark.parametrize("quote", MISSING.values(), ids=MISSING.keys())
def test_words_that_occur_nowhere_are_not_a_quote(quote: str) -> None:
    assert not EVIDENCE.contains(quote)


@given(st.integers(0, len(ARTIFACTS.answer) - 6), st.integers(6, 60))
def test_every_part_of_the_answer_with_a_letter_in_it_can_be_quoted(start: int, length: int) -> None:
    quote = ARTIFACTS.answer[start : start + length]
    inner = (start, start + length)
    halved = any(at < len(ARTIFACTS.answer) and _joins(ARTIFACTS.answer[at - 1 : at + 1]) for at in inner if at)
    assert EVIDENCE.contains(quote) or halved or sum(map(str.isalnum, quote)) < 2


def _joins(pair: str) -> bool:
    """Whether a number, or a letter with its marks, may continue from one character to the next."""
    return any(map(str.isdecimal, pair)) or any(unicodedata.category(char)[0] == "M" for char in pair)


def test_words_of_the_task_alone_do_not_show_that_a_requirement_is_met() -> None:
    for asked in ("Nenne die Fehler", "Die Antwort nennt die Zahl der Fehler.", "zwei Fehler … nennt die Zahl"):
        assert EVIDENCE.contains(asked)
        assert not EVIDENCE.contains(asked, met=True)
    assert EVIDENCE.contains("zwei Fehler", met=True)


@given(st.text())
def test_any_text_can_be_looked_up(quote: str) -> None:
    assert EVIDENCE.contains(quote) in (True, False)
