from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from aeon_core.units import local_time, span
from aeon_widgets.text import MAX_SHOWN, block, duration, fit, one_line, pretty, readable, wrap, wrap_hanging

CONTROL = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)


@given(ANY_TEXT, st.integers(2, 60))
def test_wrapped_lines_fit_and_hold_no_control_characters(text: str, width: int) -> None:
    for line in [*wrap(block(text), width), *wrap_hanging(block(text), width)]:
        assert cell_len(line) <= width
        assert not set(line) & set(CONTROL)
        line.encode()


@given(st.text(st.sampled_from("ab \n-ü字✔"), max_size=200), st.integers(2, 40))
def test_wrapping_loses_nothing_but_white_space(text: str, width: int) -> None:
    for wrapped in (wrap, wrap_hanging):
        assert "".join("".join(wrapped(text, width)).split()) == "".join(text.split())


def test_words_are_broken_at_spaces_and_long_words_at_the_edge() -> None:
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert wrap("1 model call · 340 ms", 19) == ["1 model call ·", "340 ms"]
    assert wrap("a\n\n  b", 8) == ["a", "", "  b"]
    assert wrap("字字字", 4) == ["字字", "字"]
    assert wrap_hanging("  ✔ s1 one two", 12) == ["  ✔ s1 one", "    two"]
    for sign in "□◐▸•":
        assert wrap_hanging(f"{sign} one two", 8) == [f"{sign} one", "  two"]
    assert wrap_hanging("⏎ ? one two three", 12) == ["⏎ ? one two", "    three"]
    assert wrap_hanging("fork of  one two", 14) == ["fork of  one", "two"], "no more than a third is left empty"
    assert wrap_hanging("cost  one two", 20) == ["cost  one two"]
    assert wrap_hanging("one two three", 8) == wrap("one two three", 8)


@given(ANY_TEXT, st.integers(0, 60))
def test_fitted_text_never_exceeds_its_cells(text: str, width: int) -> None:
    assert cell_len(fit(one_line(text), width)) <= width


def test_an_ellipsis_marks_cut_text() -> None:
    assert fit("abcdef", 6) == "abcdef"
    assert fit("abcdef", 5) == "abcd…"
    assert fit("字字字", 4) == "字…"
    assert fit("abc", 0) == ""


def test_five_megabytes_are_clipped_with_a_note() -> None:
    shown = block("x" * 5_000_000)
    assert shown == "x" * MAX_SHOWN + "\n… 4,800,000 more characters, not shown here"
    assert len(one_line("y " * 2_500_000)) <= 1_000


def test_control_characters_are_reported_and_new_lines_kept() -> None:
    assert block("a\x1b[31m\r\nb\tc\x00") == "a\\x1b[31m\nb    c\\x00"
    assert one_line("a\n\tb\x07") == "a b\\x07"
    assert block("\ud800") == "\\ud800"


def test_json_is_shown_whole_and_plain_text_as_text() -> None:
    assert readable({"text": "two\nlines"}) == "two\nlines"
    assert readable({"result": 15}) == json.dumps({"result": 15}, indent=2)
    assert readable({"text": "a", "more": 1}) == json.dumps({"text": "a", "more": 1}, indent=2)


def test_too_deep_nesting_is_reported_instead_of_raised() -> None:
    deep: Any = []
    for _ in range(200_000):
        deep = [deep]
    assert pretty(deep) == "(cannot be shown: RecursionError)"


@pytest.mark.parametrize(("seconds", "shown"), [(0, "00:00"), (61.9, "01:01"), (3_600, "1:00:00"), (-5, "00:00")])
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_time_spans() -> None:
    assert [span(None), span(0.4), span(999.0), span(2_149.0)] == ["", "0 ms", "999 ms", "2.1 s"]


def test_time_stamps_are_shown_in_the_persons_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XYZ-2")
    time.tzset()
    try:
        assert local_time("2026-11-20T23:30:01.123456Z", "%Y-%m-%d %H:%M:%S") == "2026-11-21 01:30:01"
        assert local_time("no\x1btime", "%H") == "no\\x1btime"
    finally:
        monkeypatch.undo()
        time.tzset()
