"""Records that are read through the index, with the long texts whose places a fold has noted."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from aeon_core.journal import index as index_module
from aeon_core.journal.index import OffsetIndex
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import MemoryRecord, TextRecord
from aeon_core.journal.view.incremental import IncrementalFold
from aeon_core.journal.writer import JournalWriter
from tests.aeon_core.journal.build import line, started, text, ttl, write

LONG = "grüße " * 100


def indexed(path: Path) -> OffsetIndex:
    index = OffsetIndex(path)
    while index.extend(0):
        pass
    return index


def folded(path: Path) -> OffsetIndex:
    index = indexed(path)
    fold = IncrementalFold(index)
    while fold.step():
        pass
    return index


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


@pytest.mark.parametrize("spaced", [False, True], ids=["compact", "spaced"])
def test_every_record_is_what_the_reader_yields(tmp_path: Path, spaced: bool) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 200)
    if spaced:
        path.write_text("".join(json.dumps(json.loads(each)) + "\n" for each in path.read_text().splitlines()))
    with folded(path) as index:
        assert [index.record(seq) for seq in range(len(index))] == list(read_records(path))
        assert index.record(5_000) is None
        assert index.memory / len(index) <= 16


def test_a_text_is_a_reference_until_its_place_was_noted(tmp_path: Path) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 5)
    last = path.read_bytes().count(b"\n") - 1
    with indexed(path) as index:
        assert (index.record(last) or {})["value"] == {
            "own": {"$text": sha(f"4 {LONG}")},
            "shared": [{"$text": sha(LONG)}],
        }
    with folded(path) as index:
        assert (index.record(last) or {})["value"] == {"own": f"4 {LONG}", "shared": [LONG]}


def test_the_nearest_text_before_a_record_counts_and_none_after_it(tmp_path: Path) -> None:
    value = {"$text": sha("t")}
    stray = MemoryRecord(key="a", value={"type": "text", "sha256": sha("t"), "text": "stray"})
    path = write(
        tmp_path, started(), MemoryRecord(key="a", value=value), text("t")[0], stray, MemoryRecord(key="b", value=value)
    )
    with folded(path) as index:
        assert (index.record(1) or {})["value"] == value
        assert (index.record(4) or {})["value"] == "t"


def test_texts_whose_sha256_begin_alike_are_distinguished(tmp_path: Path) -> None:
    digests = ["aaaaaaaa" + "1" * 56, "aaaaaaaa" + "2" * 56, "aabbbbbb" + "3" * 56]
    texts = [TextRecord(sha256=each, text=f"text {each[-1]}") for each in digests]
    records = [MemoryRecord(key="k", value={"$text": each}) for each in digests]
    with folded(write(tmp_path, started(), *texts, *records)) as index:
        assert list(index.texts.lines_of(digests[0], 99)) == [2, 1]
        assert list(index.texts.lines_of("aaaabbbb" + "0" * 56, 99)) == []
        assert list(index.texts.lines_of("no digest", 99)) == []
        assert [(index.record(seq) or {})["value"] for seq in (4, 5, 6)] == ["text 1", "text 2", "text 3"]


def test_a_text_that_is_noted_twice_has_one_place(tmp_path: Path) -> None:
    with folded(with_texts(tmp_path / "r1.jsonl", 3)) as index:
        again = IncrementalFold(index)
        while again.step():
            pass
        assert len(list(index.texts.lines_of(sha(LONG), 99))) == 1


def test_a_file_that_was_replaced_has_other_texts(tmp_path: Path) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 3)
    with folded(path) as index:
        path.unlink()
        write(tmp_path, started(), text("new")[0], MemoryRecord(key="b", value={"$text": sha("new")}), run="r1")
        index.extend()
        assert list(index.texts.lines_of(sha(LONG), 99)) == []
        fold = IncrementalFold(index)
        while fold.step():
            pass
        assert (index.record(2) or {})["value"] == "new"


@pytest.mark.parametrize(
    "bad",
    [
        b"\n",
        b"\x00\x00\n",
        b'{"v":1,"seq":1,"type":"memory","value":"\xff"}\n',
        b"[1]\n",
        b'{"v":1,"seq":18446744073709551616,"type":"ttl"}\n',
    ],
)
def test_a_damaged_line_is_skipped_and_hides_no_record(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "r1.jsonl"
    path.write_bytes(line(started(), 0) + bad + line(ttl(1), 2).replace(b"\n", b"\r\n"))
    with folded(path) as index:
        assert index.record(1) is None
        assert index.record(2) == json.loads(line(ttl(1), 2))


def test_an_excessively_long_line_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "MAX_LINE", 1_000)
    path = write(tmp_path, started(), MemoryRecord(key="a", value=["x"] * 1_000))
    with indexed(path) as index:
        assert index.record(1) is None
