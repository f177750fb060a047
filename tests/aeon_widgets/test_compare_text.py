from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aeon_widgets.compare_rows import MOST_LINES, CompareRow, row_of, text_rows

texts = st.lists(st.text("ab c.", max_size=8), max_size=6).map("\n".join)


def marked(text: str, spans: tuple[tuple[int, int], ...]) -> list[str]:
    return [text[begin:end] for begin, end in spans]


def test_words_that_differ_are_marked_on_both_sides() -> None:
    row = row_of("it costs 0.50 in all", "it costs 0.75 in all", "  ")
    assert (row.mark, row.hang) == ("≠", 2)
    assert marked(row.left, row.spans[0]) == ["0.50"]
    assert marked(row.right, row.spans[1]) == ["0.75"]


def test_lines_with_little_in_common_are_marked_whole() -> None:
    row = row_of("Name the parts of it", "Count 17 invoices")
    assert (row.mark, row.spans[0], row.spans[1]) == ("≠", (), ())


def test_lines_are_aligned_and_each_difference_starts_once() -> None:
    rows = text_rows("one\ntwo\nthree\nfour", "one\ntwo!\n2\nthree\nfour\nfive")
    assert [(row.mark, row.left, row.right, row.begins) for row in rows] == [
        (" ", "one", "one", False),
        ("≠", "two", "two!", True),
        ("B", "", "2", False),
        (" ", "three", "three", False),
        (" ", "four", "four", False),
        ("B", "", "five", True),
    ]


def test_a_missing_text_has_no_lines() -> None:
    assert text_rows("", "") == []
    assert text_rows("a", "") == [CompareRow("A", "a", "", begins=True)]


def test_long_texts_are_compared_line_by_line() -> None:
    lines = [f"line {number}" for number in range(MOST_LINES)]
    rows = text_rows("\n".join(lines), "\n".join([*lines[:10], "new", *lines[10:]]))
    assert sum(row.differs for row in rows) == MOST_LINES - 9
    assert [row.mark for row in rows[:11]] == [" "] * 10 + ["≠"]


@given(texts)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert not any(row.differs or row.begins for row in text_rows(text, text))


@given(texts, texts)
def test_no_text_is_lost_on_either_side(left: str, right: str) -> None:
    rows = text_rows(left, right)
    assert "\n".join(row.left for row in rows if row.mark != "B") == left
    assert "\n".join(row.right for row in rows if row.mark != "A") == right
    assert all((row.left == row.right) is (row.mark == " ") for row in rows if row.mark not in "AB")


@given(st.text("ab c.,", max_size=20), st.text("ab c.,", max_size=20))
def test_unmarked_text_is_equal_on_both_sides(left: str, right: str) -> None:
    row = row_of(left, right)
    if row.spans[0] or row.spans[1]:
        assert _without(row.left, row.spans[0]) == _without(row.right, row.spans[1])


def _without(text: str, spans: tuple[tuple[int, int], ...]) -> str:
    for begin, end in reversed(spans):
        text = text[:begin] + text[end:]
    return text
