from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from aeon_core.journal.records import MemoryRecord
from aeon_core.journal.search import search_journal
from aeon_widgets.match_list import excerpt
from tests.aeon_core.journal.build import started, write


def test_matches_are_highlighted() -> None:
    assert excerpt("the Yearly report", "yearly", 40) == [
        ("the ", "muted"),
        ("Yearly", "accent bold"),
        (" report", "muted"),
    ]


def test_text_before_a_match_is_cut_first() -> None:
    pieces = excerpt(f"{'before ' * 20}the place{' after' * 20}", "the place", 40)
    assert "".join(text for text, _ in pieces) == "…before the place after after after aft…"
    assert pieces[1] == ("the place", "accent bold")


def test_without_a_visible_match_the_text_starts_at_its_beginning() -> None:
    assert excerpt("a long text\x1b[2J", "short", 10) == [("a long te…", "muted")]
    assert excerpt("any", "", 10) == [("any", "muted")]


def test_control_characters_are_found_as_they_are_shown() -> None:
    assert excerpt("a\x1b[1mb", "\x1b[1m", 40) == [("a", "muted"), (r"\x1b[1m", "accent bold"), ("b", "muted")]


def test_a_match_that_is_too_long_is_cut() -> None:
    assert excerpt(f"{'before ' * 9}{'x' * 50}", "x" * 50, 20) == [
        ("…", "muted"),
        ("x" * 18 + "…", "accent bold"),
        ("", "muted"),
    ]


@pytest.mark.parametrize("width", [80, 140, 240])
def test_an_excerpt_fills_the_line(tmp_path: Path, width: int) -> None:
    value = f"{'before ' * 100}the NEEDLE is{' after' * 100}"
    (found,) = search_journal(write(tmp_path, started(), MemoryRecord(key="k", value=value)), "needle")
    shown = "".join(text for text, _ in excerpt(found.excerpt, "needle", width))
    assert "NEEDLE" in shown
    assert width - len("before ") <= cell_len(shown) <= width


@given(st.text(), st.text(min_size=1, max_size=3), st.text(), st.integers(12, 80))
def test_an_excerpt_fits_and_shows_a_short_match(before: str, wanted: str, after: str, width: int) -> None:
    pieces = excerpt(f"{before}{wanted}{after}", wanted, width)
    assert sum(cell_len(text) for text, _ in pieces) <= width
    marked = [text for text, style in pieces if "accent" in style]
    assert not marked or marked[0]
