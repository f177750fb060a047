"""A quote is found where a reader would find it."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.judge.quote import find_quote


@pytest.mark.parametrize(
    ("text", "quote", "found"),
    [
        ("The sum is 15.", "the SUM is", ["The sum is"]),
        ("The **sum**\nis `15`.", "sum is 15", ["sum**\nis `15"]),
        ("The sum is 15, and half of it 7.5.", "sum … half of it 7.5", ["sum", "half of it 7.5"]),
        ("a [b] c", "[…] c", ["c"]),
        ("Die Größe beträgt 3 m", "GRÖSSE BETRÄGT", ["Größe beträgt"]),
        ("ｆｕｌｌ width", "full", ["ｆｕｌｌ"]),
        (unicodedata.normalize("NFD", "déjà vu"), "déjà", [unicodedata.normalize("NFD", "déjà")]),
        ("合計は十五です。", "合計は十五", ["合計は十五"]),
        ("المجموع ١٥", "المجموع", ["المجموع"]),
        ("योग पंद्रह है", "पंद्रह", ["पंद्रह"]),
        (json.dumps({"stdout": "two\nlines"}), "two lines", ["two\\nlines"]),
        (r"C:\new\table", r"C:\new\table", [r"C:\new\table"]),
        ("The sum is 15.", "the product", []),
        ("The sum is 15.", "sum … product", []),
        ("The sum is 15.", " — ", []),
        ("", "x", []),
    ],
)
def test_a_quote_is_found_in_any_form(text: str, quote: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in find_quote(text, quote)] == found


@given(st.text(max_size=60), st.text(max_size=20))
def test_a_found_quote_is_a_part_of_the_text(text: str, quote: str) -> None:
    for start, end in find_quote(text, quote):
        assert 0 <= start < end <= len(text)


@given(st.text(max_size=20), st.text(alphabet="aB1 é,\n", min_size=1, max_size=20), st.text(max_size=20))
def test_an_inserted_quote_is_found(before: str, quote: str, after: str) -> None:
    if any(char.isalnum() for char in quote):
        assert find_quote(f"{before} {quote} {after}", quote)
