from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal import reader
from aeon_core.journal.labels import labelled_passes
from aeon_core.journal.reader import head, read_records, record_type, tail
from aeon_core.journal.records import MemoryRecord
from aeon_core.journal.view.reducer import fold
from aeon_core.journal.writer import JournalWriter
from tests.aeon_core.journal.build import finished, line, lines, started, text, ttl, whole_run, write


def read(path: Path, **options: Any) -> tuple[list[dict[str, Any]], list[str]]:
    damage: list[str] = []
    return list(read_records(path, damage=damage, **options)), damage


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    records, damage = read(write(tmp_path, *whole_run()))
    assert [record["type"] for record in records] == [record.tag for record in whole_run()]
    assert records == [json.loads(each) for each in lines(*whole_run())]
    assert damage == []


def test_long_texts_are_restored_in_their_records(tmp_path: Path) -> None:
    long = "grüße " * 500
    writer = JournalWriter(tmp_path / "r1.jsonl", "r1")
    writer.append(started(task=long))
    writer.append(MemoryRecord(key="s1", value={"deep": [long]}))
    writer.close()

    records, damage = read(tmp_path / "r1.jsonl")
    unresolved, _ = read(tmp_path / "r1.jsonl", texts=False)

    assert damage == []
    assert fold(records).task == long
    assert records[-1]["value"] == {"deep": [long]}
    assert list(unresolved[-1]["value"]["deep"][0]) == ["$text"]


def test_a_missing_text_is_reported_and_its_reference_stays(tmp_path: Path) -> None:
    reference = {"$text": "0" * 64}
    records, damage = read(write(tmp_path, started(), MemoryRecord(key="a", value=reference)))
    assert records[-1]["value"] == reference
    assert damage == [f"line 2: the text '{'0' * 64}' is missing"]


def test_a_torn_last_line_does_not_count(tmp_path: Path) -> None:
    path = write(tmp_path, *whole_run())
    whole = path.read_bytes()
    for cut in (1, 2, 40):
        path.write_bytes(whole[:-cut])
        records, damage = read(path)
        assert len(records) == len(whole_run()) - 1
        assert damage == []


def test_truncation_at_any_byte_reads_the_whole_lines_before_it(tmp_path: Path) -> None:
    path = write(tmp_path, started(), ttl(0), ttl(1))
    whole = path.read_bytes()
    for end in range(len(whole.splitlines(keepends=True)[0]), len(whole)):
        path.write_bytes(whole[:end])
        records, damage = read(path)
        assert len(records) == whole[:end].count(b"\n")
        assert damage == []


@pytest.mark.parametrize(
    ("broken", "report"),
    [
        (b'{"v":1,"seq":2,"ts":"x", broken\n', "line 3: broken"),
        (b"\xff\xfe\n", "line 3: broken"),
        (b'{"v":1,"seq":2,"x":NaN}\n', "line 3: broken"),
        (b'{"v":1,"seq":2,"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}\n", "line 3: broken (recursion limit exceeded)"),
        (b"[]\n", "line 3: not a record"),
        (b'{"v":1,"seq":-1,"type":"ttl"}\n', "line 3: not a record"),
        (b"\n", "line 3: broken"),
    ],
)
def test_a_broken_line_is_reported_by_number_and_skipped(tmp_path: Path, broken: bytes, report: str) -> None:
    content = lines(*whole_run())
    content[2] = broken
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(content))

    records, damage = read(path)

    assert [record["seq"] for record in records] == [0, 1, *range(3, len(content))]
    (reported,) = damage
    assert reported.startswith(report)
    assert fold(records).status == "completed"


def test_duplicate_lines_are_not_reported_as_missing(tmp_path: Path) -> None:
    content = lines(*whole_run())
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join([*content[:3], *content]))

    how = "a run begins here, but a journal holds only one; put each run into a file of its own"
    assert read(path)[1] == [f"line 4: seq 0 where 3 was expected; {how}"]


def test_a_broken_first_line_does_not_hide_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"{broken\n" + b"".join(lines(*whole_run())[1:]))
    records, damage = read(path)
    assert len(records) == len(whole_run()) - 1
    assert damage[0].startswith("line 1: broken")


def test_a_line_of_five_megabytes_is_read(tmp_path: Path) -> None:
    record, reference = text("x" * 5_000_000)
    path = write(tmp_path, started(), record, MemoryRecord(key="a", value=reference))
    records, damage = read(path)
    assert len(records[-1]["value"]) == 5_000_000
    assert damage == []


def test_a_newer_type_and_unknown_fields_pass_through(tmp_path: Path) -> None:
    extra = b'{"v":1,"seq":1,"ts":"2027-01-01T00:00:00Z","run":"r","type":"hologram","colour":"red"}\n'
    path = tmp_path / "r.jsonl"
    path.write_bytes(line(started(), 0) + extra)
    records, damage = read(path)
    assert records[1]["colour"] == "red"
    assert damage == []


@pytest.mark.parametrize(("version", "said"), [(b"2", "2"), (b'"%s"' % (b"9" * 5000), f"'{'9' * 79}…")])
def test_records_of_a_newer_version_are_reported_once(tmp_path: Path, version: bytes, said: str) -> None:
    path = tmp_path / "r.jsonl"
    newer = b'{"v":%s,"seq":%d,"ts":"2027-01-01T00:00:00Z","run":"r","type":"memory","key":"a","value":1}\n'
    path.write_bytes(line(started(), 0) + newer % (version, 1) + newer % (version, 2))
    records, damage = read(path)
    assert [record["seq"] for record in records] == [0, 1, 2]
    assert damage == [f"line 2: its version is {said}, but this Aeon supports 1; new details are not shown"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"\x7fELF\x00\x00" * 100 + b"\n", "not Aeon records"),
        (b'{"level": "info", "msg": "hello"}\n', "not Aeon records"),
        (b'{"v": 1, "id": 3}\n', "not Aeon records"),
        (b"just a text\n" * 50, "not Aeon records"),
        (b'{"v":2,"seq":0,"ts":"t","run":"r","type":"run_started"}\n', "or a newer version wrote them"),
        (b'{"v":1,"seq":0,"ts":"t","run":"r","type":"run_sta', "its first line ends after 49 bytes"),
        (b'{"v', "its first line ends after 3 bytes, so nothing of the run was recorded"),
        (b'{"v":1,"seq":0,' + b"x" * 5_000_000, "its first line ends after 5,000,015 bytes"),
        (b"no record" * 1_000, "its lines are not Aeon records"),
    ],
)
def test_a_file_that_is_not_a_journal_is_refused_in_one_line(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read(path)
    assert reason in caught.value.message
    assert repr(str(path)) in caught.value.message
    assert "\n" not in caught.value.message


def test_folders_missing_files_and_odd_names_are_refused(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path, "a folder"),
        (tmp_path / "none.jsonl", "does not exist"),
        (Path("a\x00b"), "cannot read the journal"),
        (Path("/dev/null"), "it is a device"),
    ):
        with pytest.raises(UsageError, match=reason):
            read(path)


def test_the_type_is_read_from_only_the_envelope() -> None:
    assert record_type(line(ttl(0), 3)) == "ttl"
    assert record_type(b'{"type":"ttl"}') is None


def test_the_head_is_the_start_with_its_task_in_full(tmp_path: Path) -> None:
    record, reference = text("a long task " * 100)
    path = tmp_path / "r.jsonl"
    start = line(started(task="X"), 1).replace(b'"X"', json.dumps(reference).encode())
    path.write_bytes(line(record, 0) + start + b"rest is not read\n")
    first = head(path)
    assert first is not None
    assert first["task"] == "a long task " * 100


def test_the_tail_reads_only_the_end_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, *([started()] + [ttl(n % 50) for n in range(2_000)] + [finished()]))
    last = list(tail(path))
    assert last[0]["type"] == "run_finished"
    assert 100 < len(last) < 1_000
    assert [record["seq"] for record in last] == list(range(2_001, 2_001 - len(last), -1))


def test_the_tail_reads_a_last_line_longer_than_its_window(tmp_path: Path) -> None:
    path = write(tmp_path, started(), finished(answer="x" * 500_000))
    assert next(tail(path))["type"] == "run_finished"


def test_head_and_tail_of_a_foreign_file_are_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    assert head(path) is None
    assert list(tail(path)) == []


def test_a_huge_foreign_file_is_recognised_by_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(10**12)
    monkeypatch.setattr(reader.JournalLines, "read", lambda *_: pytest.fail("it is read on"))
    with pytest.raises(UsageError, match="is not a journal: its lines are not Aeon records"):
        next(read_records(path))
    assert head(path) is None


def fail(*_: object) -> bytes:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


class FailingFile(io.FileIO):
    read = fail


READS = [head, lambda path: list(read_records(path)), lambda path: list(tail(path)), labelled_passes]


@pytest.mark.parametrize("read", READS)
def test_an_error_of_the_disk_names_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object]
) -> None:
    path = write(tmp_path, *whole_run())
    monkeypatch.setattr(os, "pread", fail)
    monkeypatch.setattr(reader, "open_journal", FailingFile)
    with pytest.raises(OSError, match="Input/output error") as failed:
        read(path)
    assert failed.value.filename == str(path)
