from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_widgets.compare_steps import MOST_LINES, CompareRow, line_row, text_rows

texts = st.lists(st.text("ab c.", max_size=8), max_size=6).map("\n".join)


def marked(text: str, spans: tuple[tuple[int, int], ...]) -> list[str]:
    return [text[begin:end] for begin, end in spans]


def test_words_that_differ_are_marked_on_both_sides() -> None:
    row = line_row("it costs 0.50 in all", "it costs 0.75 in all", "  ")
    assert (row.mark, row.hang) == ("≠", 2)
    assert marked(row.left, row.left_spans) == ["0.50"]
    assert marked(row.right, row.right_spans) == ["0.75"]


def test_lines_that_have_little_in_common_differ_as_a_whole() -> None:
    row = line_row("Name the parts of it", "Count 17 invoices")
    assert (row.mark, row.left_spans, row.right_spans) == ("≠", (), ())


def test_lines_are_side_by_side_and_each_stretch_that_differs_begins_once() -> None:
    rows = text_rows("one\ntwo\nthree\nfour", "one\ntwo!\n2\nthree\nfour\nfive")
    assert [(row.mark, row.left, row.right, row.begins) for row in rows] == [
        (" ", "one", "one", False),
        ("≠", "two", "two!", True),
        ("B", "", "2", False),
        (" ", "three", "three", False),
        (" ", "four", "four", False),
        ("B", "", "five", True),
    ]


def test_a_text_that_is_not_there_has_no_line() -> None:
    assert text_rows("", "") == []
    assert text_rows("a", "") == [CompareRow("A", "a", "", begins=True)]


def test_of_longer_texts_lines_are_compared_at_their_places() -> None:
    lines = [f"line {number}" for number in range(MOST_LINES)]
    rows = text_rows("\n".join(lines), "\n".join([*lines[:10], "new", *lines[10:]]))
    assert sum(row.differs for row in rows) == MOST_LINES - 9
    assert [row.mark for row in rows[:11]] == [" "] * 10 + ["≠"]


@given(texts)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert not any(row.differs or row.begins for row in text_rows(text, text))


@given(texts, texts)
def test_exchanging_the_texts_exchanges_the_sides_and_nothing_is_lost(left: str, right: str) -> None:
    rows = text_rows(left, right)
    assert [row.mirrored for row in text_rows(right, left)] == rows
    assert "\n".join(row.left for row in rows if row.mark != "B") == left
    assert "\n".join(row.right for row in rows if row.mark != "A") == right
    assert all((row.left == row.right) is (row.mark == " ") for row in rows if row.mark not in "AB")


@pytest.mark.parametrize(("left", "right"), [("tide", "diet"), ("diet", "tide")])
def test_what_the_sides_have_in_common_does_not_depend_on_which_comes_first(left: str, right: str) -> None:
    there, back = text_rows("\n".join(left), "\n".join(right)), text_rows("\n".join(right), "\n".join(left))
    assert there == [row.mirrored for row in back]
    words, others = line_row(" ".join(left), " ".join(right)), line_row(" ".join(right), " ".join(left))
    assert words == others.mirrored


@given(st.text("ab c.,", max_size=20), st.text("ab c.,", max_size=20))
def test_what_is_not_marked_is_the_same_on_both_sides(left: str, right: str) -> None:
    row = line_row(left, right)
    if row.left_spans or row.right_spans:
        assert _without(row.left, row.left_spans) == _without(row.right, row.right_spans)


def _without(text: str, spans: tuple[tuple[int, int], ...]) -> str:
    for begin, end in reversed(spans):
        text = text[:begin] + text[end:]
    return text
