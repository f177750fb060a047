from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from aeon_core.journal import index as index_module
from aeon_core.journal.index import JournalLine, OffsetIndex, Pages, TextPlaces
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import MemoryRecord, TextRecord
from aeon_core.journal.writer import JournalWriter
from tests.aeon_core.journal.build import (
    line,
    started,
    text,
    ttl,
    write,
)

LONG = "grüße " * 100


def indexed(path: Path) -> tuple[OffsetIndex, TextPlaces]:
    index = OffsetIndex(path)
    places = TextPlaces(index)
    while index.extend(0) or places.extend(0):
        pass
    return index, places


def sha(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def with_texts(path: Path, count: int) -> Path:
    """Write a journal with the writer itself: every record holds a text of its own and one that all share."""
    writer = JournalWriter(path, "r1")
    writer.append(started())
    for number in range(count):
        writer.append(MemoryRecord(key=f"s{number}", value={"own": f"{number} {LONG}", "shared": [LONG]}))
    writer.close()
    return path


def test_every_record_is_what_the_reader_yields(tmp_path: Path) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 200)
    index, places = indexed(path)
    with index:
        assert places.complete
        entries = [Pages(index, places).at(number) for number in range(len(index))]
        assert [entry.record for entry in entries] == list(read_records(path))
        assert [entry.number for entry in entries] == list(range(len(entries)))
        assert not any(entry.pending or entry.problem for entry in entries)
        assert Pages(index, places).by_seq(5) == entries[5]
        assert Pages(index, places).by_seq(5_000) is None
        assert index.memory / len(index) + places.memory / len(index) <= 16


def test_the_last_records_are_there_before_there_is_an_index(tmp_path: Path) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 30)
    with OffsetIndex(path) as index:
        entries = Pages(index).last(4)
        assert [entry.record for entry in entries] == list(read_records(path))[-4:]
        assert [entry.number for entry in entries] == [None] * 4
        earlier = Pages(index).last(3, before=entries[0].offset)
        assert [entry.record for entry in earlier] == list(read_records(path))[-7:-4]


@pytest.mark.parametrize("spaced", [False, True], ids=["compact", "spaced"])
def test_a_text_far_away_is_pending_until_its_place_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spaced: bool
) -> None:
    monkeypatch.setattr(index_module, "NEARBY", 3_000)
    monkeypatch.setattr(index_module, "BEGINNING", 10)
    path = with_texts(tmp_path / "r1.jsonl", 5)
    if spaced:
        path.write_text("".join(json.dumps(json.loads(each)) + "\n" for each in path.read_text().splitlines()))
    with OffsetIndex(path) as index:
        before = Pages(index).last(1)[0]
        assert before.pending == {sha(LONG)}
        assert before.record is not None
        assert before.record["value"]["own"] == f"4 {LONG}"
        assert before.record["value"]["shared"] == [{"$text": sha(LONG)}]
        places = TextPlaces(index)
        while index.extend(0) or places.extend(0):
            pass
        after = Pages(index, places).last(1)[0]
        assert after.pending == frozenset()
        assert after.record is not None
        assert after.record["value"]["shared"] == [LONG]


def test_what_every_request_repeats_is_found_at_the_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "NEARBY", 1_000)
    with OffsetIndex(with_texts(tmp_path / "r1.jsonl", 20)) as index:
        assert Pages(index).last(1)[0].pending == frozenset()


@pytest.mark.parametrize("chunk", range(60, 200, 7))
def test_texts_are_found_wherever_a_chunk_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr("aeon_core.journal.index.CHUNK", chunk)
    monkeypatch.setattr(index_module, "_BLOCK", chunk + 40)
    path = with_texts(tmp_path / "r1.jsonl", 6)
    index, places = indexed(path)
    with index:
        holders = [number for number, record in enumerate(read_records(path)) if record["type"] == "text"]
        found = [next(places.lines_of(json.loads(index.line(number))["sha256"], 99)) for number in holders]
        assert found == holders
        assert [entry.record for entry in Pages(index).last(30)] == list(read_records(path))


def test_the_nearest_text_before_a_record_counts_and_none_after_it(tmp_path: Path) -> None:
    value = {"$text": sha("t")}
    stray = MemoryRecord(key="a", value={"type": "text", "sha256": sha("t"), "text": "stray"})
    path = write(
        tmp_path, started(), MemoryRecord(key="a", value=value), text("t")[0], stray, MemoryRecord(key="b", value=value)
    )
    index, places = indexed(path)
    with index:
        early, late = Pages(index, places).at(1), Pages(index, places).at(4)
        assert (early.record or {})["value"] == value
        assert early.pending == {sha("t")}
        assert (late.record or {})["value"] == "t"


def test_texts_whose_sha256_begin_alike_are_distinguished(tmp_path: Path) -> None:
    digests = ["aaaaaaaa" + "1" * 56, "aaaaaaaa" + "2" * 56, "aabbbbbb" + "3" * 56]
    texts = [TextRecord(sha256=each, text=f"text {each[-1]}") for each in digests]
    records = [MemoryRecord(key="k", value={"$text": each}) for each in digests]
    index, places = indexed(write(tmp_path, started(), *texts, *records))
    with index:
        assert list(places.lines_of(digests[0], 99)) == [2, 1]
        assert list(places.lines_of("aaaabbbb" + "0" * 56, 99)) == []
        assert list(places.lines_of("no digest", 99)) == []
        for pages in (Pages(index, places), Pages(index)):
            assert [(entry.record or {})["value"] for entry in pages.last(3)] == ["text 1", "text 2", "text 3"]


def test_what_only_names_a_sha256_is_no_text(tmp_path: Path) -> None:
    path = write(tmp_path, started(), text("t")[0], MemoryRecord(key="k", value={"$text": sha("t")}))
    stray = line(MemoryRecord(key="k", value=0), 2).replace(
        b'"key"', b'"sha256":"%s","text":"u","key"' % sha("t").encode()
    )
    head, kept, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(head + kept + stray + last.replace(b'"seq":2', b'"seq":3'))
    with OffsetIndex(path) as index:
        assert (Pages(index).last(1)[0].record or {})["value"] == "t"


def test_a_file_that_was_replaced_has_other_texts(tmp_path: Path) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 3)
    index, places = indexed(path)
    with index:
        path.unlink()
        write(tmp_path, started(), text("new")[0], MemoryRecord(key="b", value={"$text": sha("new")}), run="r1")
        index.extend()
        assert list(places.lines_of(sha(LONG), 99)) == []
        assert not places.complete
        places.extend()
        assert (Pages(index, places).at(2).record or {})["value"] == "new"


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b"\n", "broken (EOF while parsing a value)"),
        (b"\x00\x00\n", "broken (expected value)"),
        (b'{"v":1,"seq":1,"type":"memory","value":"\xff"}\n', "broken"),
        (b"[1]\n", "not a record (no type or no seq)"),
        (b'{"v":1,"seq":18446744073709551616,"type":"ttl"}\n', "not a record (no type or no seq)"),
    ],
)
def test_a_damaged_line_is_an_entry_that_says_why(tmp_path: Path, bad: bytes, problem: str) -> None:
    path = tmp_path / "r1.jsonl"
    path.write_bytes(line(started(), 0) + bad + line(ttl(1), 2).replace(b"\n", b"\r\n"))
    index, places = indexed(path)
    with index:
        entry = Pages(index, places).at(1)
        assert (entry.record, entry.size, entry.number) == (None, len(bad), 1)
        assert entry.problem is not None
        assert entry.problem.startswith(problem)
        assert (Pages(index, places).by_seq(2) or entry).record == json.loads(line(ttl(1), 2))


def test_a_line_is_found_by_where_it_begins_without_an_index(tmp_path: Path) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 5)
    with OffsetIndex(path) as index:
        entries = Pages(index).last(6)
        assert [Pages(index).at_offset(entry.offset) for entry in entries] == entries


def test_a_line_beyond_all_measure_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "MAX_LINE", 1_000)
    path = write(tmp_path, started(), MemoryRecord(key="a", value=["x"] * 1_000))
    with OffsetIndex(path) as index:
        (entry,) = Pages(index).last(1)
        assert entry == JournalLine(entry.offset, entry.size, None, None, "longer than 1000 bytes")
