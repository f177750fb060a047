"""What a text says: words, signed numbers, and what stands under a negation."""

from __future__ import annotations

import pytest

from aeon_core.supervisor.words import Words, numbers, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 and 10.", {"5", "10"}),
        ("-5 - 3, (-2)", {"-5", "3", "-2"}),
        ("10-5", {"10", "5"}),
        ("10 -5", {"10", "-5", "5"}),
        ('{"a":-5,"b":5.0}', {"-5", "5"}),
        ("1,000 or 1.50 or 2e3", {"1000", "1.5", "2000"}),
        ("[100,200]", {"100", "200", "100200"}),
        ("twenty-one, two hundred and five, five ten", {"21", "205", "5", "10"}),
        ("minus five, negative 3", {"5", "-5", "3", "-3"}),
        ("20% of half a dozen", {"20", "0.2", "0.5", "2", "12"}),
        ("s1 and v2", set()),
    ],
)
def test_numbers_have_their_sign_and_one_form(text: str, expected: set[str]) -> None:
    assert numbers(text) == expected


def test_words_and_numbers_are_read_without_case_and_quotes() -> None:
    assert tokens('Add "-5.0" to_the SUM.') == ["add", "-5", "to", "the", "sum"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("read the report", True),
        ("Reading reports", True),
        ("delete the file", False),
        ("do not delete the file", True),
        ("delete", False),
        ("keep it", True),
        ("send it", False),
        ("the", True),
        ("", False),
    ],
)
def test_what_is_said_only_under_a_negation_is_not_said(text: str, told: bool) -> None:
    words = Words(["Read the report; don't delete the file, but keep it."])
    assert words.tell(text, prose=True) is told


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("notes.txt", True),
        ("out/notes.txt", True),
        ("notes", False),
        ("notes.txt.bak", False),
        ("/out/notes.txt", False),
    ],
)
def test_a_file_name_is_taken_as_a_whole(text: str, there: bool) -> None:
    assert Words(["Show out/notes.txt."]).literally(text) is there
