from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import UsageError
from aeon_core.journal import search
from aeon_core.journal.records import MemoryRecord
from aeon_core.journal.search import SearchHit, search_journal
from tests.aeon_core.journal.build import line, lines, started, text, write

ALPHABET = 'abAB éÉ\n"\\/u0{}😀'


def journal(folder: Path, *values: Any) -> Path:
    return write(
        folder, started(), *(MemoryRecord(key=f"k{number}", value=value) for number, value in enumerate(values))
    )


def seqs(path: Path, wanted: str, **options: Any) -> list[int | None]:
    return [match.seq for match in search_journal(path, wanted, **options)]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("An Invoice", "invoice"),
        ("an invoice", "INVOICE"),
        ("Grüße aus Köln", "KÖLN"),
        ('say "yes"', 'Y "Yes'[2:]),
        ("one\ntwo", "ONE\nTWO"),
        ("C:\\temp", "c:\\TEMP"),
        ("a/b", "A/B"),
        ("bell \x07 rings", "\x07 RINGS"),
        ("😀 smile", "😀 s"),
        ("a.b*c", ".B*"),
        (["deep", {"er": ["here it is"]}], "HERE"),
        ("x" * 200 + "y", "x" * 100 + "y"),
    ],
)
def test_search_ignores_case_and_escapes(tmp_path: Path, value: Any, wanted: str) -> None:
    path = journal(tmp_path, "nothing", value, "nothing")
    assert seqs(path, wanted) == [2]
    escaped = [json.dumps(json.loads(each)).replace("/", "\\/") + "\n" for each in path.read_text().splitlines()]
    path.write_text("".join(escaped))
    assert seqs(path, wanted) == [2]


@pytest.mark.parametrize("wanted", ["k1x", "abn", "\\n", "seq", "2026-11-20", '"value"', "nulls", "x" * 100 + "z"])
def test_escaped_lookalikes_in_the_file_do_not_match(tmp_path: Path, wanted: str) -> None:
    assert seqs(journal(tmp_path, "a\nb", ["x" * 100 + "y"], None), wanted) == []


@given(
    values=st.lists(st.text(ALPHABET, max_size=12), min_size=1, max_size=12),
    wanted=st.text(ALPHABET, min_size=1, max_size=3),
    block=st.integers(1, 400),
    escaped=st.booleans(),
)
def test_exactly_the_matching_records_are_found(
    values: list[str], wanted: str, block: int, escaped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "searched.jsonl"
    records = [{"v": 1, "seq": seq, "ts": "", "run": "", "type": "x", "y": value} for seq, value in enumerate(values)]
    path.write_text("".join(json.dumps(each, ensure_ascii=escaped) + "\n" for each in records) + '{"torn')
    expected = [seq for seq, value in enumerate(values) if wanted.lower() in value.lower()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "BLOCK", block)
        assert seqs(path, wanted) == expected
        assert seqs(path, wanted, newest_first=True) == expected[::-1]


def test_a_match_has_its_position_and_context(tmp_path: Path) -> None:
    path = journal(tmp_path, "first " * 100 + "the NEEDLE\nin " + "hay " * 100)
    offset = len(lines(started())[0])
    (found,) = search_journal(path, "needle")
    assert found == SearchHit(offset, path.stat().st_size, 1, "memory", found.excerpt, part="memory.value")
    assert found.excerpt == "…" + "first " * 41 + "the NEEDLE in " + "hay " * 61 + "ha…"


def test_a_long_text_counts_for_the_record_that_holds_it(tmp_path: Path) -> None:
    path = write(tmp_path, started(), text("a long NEEDLE")[0], MemoryRecord(key="a", value={"$text": "0" * 64}))
    assert [(match.seq, match.type) for match in search_journal(path, "needle")] == [(1, "text")]


def test_damaged_lines_are_searched_raw(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    path.write_bytes(
        line(started(), 0)
        + b'{"v":1,"seq":1,"ts":"","run":"","type":"memory","value":"the needle\n'
        + b"\xff\xfe a NEEDLE \x00\n"
        + b'{"v":1,"seq":3,"ts":"","run":"","type":"x","y":"\xff needle"}\n'
        + b'"needle"\n'
        + b"needle torn"
    )
    found = list(search_journal(path, "needle"))
    assert [(match.seq, match.type) for match in found] == [(1, "memory"), (None, None), (3, "x"), (None, None)]
    assert found[1].excerpt == "\ufffd\ufffd a NEEDLE \x00"
    assert list(search_journal(path, "needle", newest_first=True)) == found[::-1]


@pytest.mark.parametrize("newest_first", [False, True], ids=["oldest", "newest"])
def test_a_line_longer_than_a_block_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest_first: bool
) -> None:
    monkeypatch.setattr(search, "BLOCK", 1_000)
    path = journal(tmp_path, "a", ["x" * 50_000, "needle"], "b")
    assert seqs(path, "needle", newest_first=newest_first) == [2]
    monkeypatch.setattr(search, "MAX_LINE", 8_000)
    assert len(seqs(path, "needle", newest_first=newest_first)) == 1


@pytest.mark.parametrize("newest_first", [False, True], ids=["oldest", "newest"])
@pytest.mark.parametrize("wanted", ["needle", "nowhere"])
def test_a_search_ends_soon_after_it_was_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest_first: bool, wanted: str
) -> None:
    monkeypatch.setattr(search, "BLOCK", 2_000)
    path = journal(tmp_path, *["needle " * 20] * 200)
    asked: list[None] = []

    def cancelled() -> bool:
        asked.append(None)
        return len(asked) > 5

    assert len(seqs(path, wanted, cancelled=cancelled, newest_first=newest_first)) <= 5
    assert len(asked) == 6


def test_nothing_to_search_for_and_nowhere_to_search_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to search for; enter at least one character"):
        search_journal(tmp_path / "none.jsonl", "")
    with pytest.raises(UsageError, match="does not exist"):
        next(search_journal(tmp_path / "none.jsonl", "a"))
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert list(search_journal(empty, "a")) == []


def test_a_lone_surrogate_is_searched_as_the_journal_writes_it(tmp_path: Path) -> None:
    assert seqs(journal(tmp_path, "a \ufffd b"), "a \ud83d") == [1]
