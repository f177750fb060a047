from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import JournalError, UsageError
from aeon_core.journal import follow, lock, reader
from aeon_core.journal.follow import Follower, FollowPosition
from aeon_core.journal.reader import read_records
from tests.aeon_core.journal.build import RUN_ID

SHA = "a" * 64


def a_line(seq: int, kind: str, second: int | None = None, **fields: Any) -> bytes:
    stamp = f"2026-11-20T09:30:{(seq if second is None else second) % 60:02d}.000000Z"
    return (
        json.dumps({"v": 1, "seq": seq, "ts": stamp, "run": RUN_ID, "type": kind, **fields})
        .encode()
        .replace(b'": ', b'":')
        .replace(b', "', b',"')
        + b"\n"
    )


def begun(count: int) -> list[bytes]:
    steps = [a_line(seq, "step", step_id=f"s{seq}", status="running") for seq in range(1, count)]
    return [a_line(0, "run_started", task="t", model="simulated:default"), *steps]


ENDED = [*begun(4), a_line(4, "run_finished", result={"status": "aborted"})]


class Journal:
    """A file that grows, a follower of it, and what the follower has given of its last generation."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.follower = Follower(path)
        self.generation = 0
        self.records: list[dict[str, Any]] = []

    def write(self, *lines: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(b"".join(lines))

    def read(self) -> list[int]:
        """Read on; return the seqs of what came."""
        new = []
        for generation, record in self.follower.read():
            if generation != self.generation:
                assert generation > self.generation
                self.generation, self.records, new = generation, [], []
            self.records.append(record)
            new.append(record["seq"])
        return new

    def whole(self) -> list[dict[str, Any]]:
        return list(read_records(self.path))


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / f"{RUN_ID}.jsonl")
    yield made
    made.follower.close()


@contextmanager
def written(path: Path) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield
    os.close(fd)


@st.composite
def histories(draw: st.DrawFn) -> list[bytes]:
    """Lines of a run that ends and is resumed several times, with texts, and now and then a broken line."""
    lines = begun(1)
    for kind in draw(st.lists(st.sampled_from(["step", "text", "told", "broken", "end", "resume"]), max_size=14)):
        seq = len(lines)
        fields: dict[str, Any] = {
            "text": {"sha256": SHA, "text": "long, ü "},
            "told": {"step_id": "s1", "output": {"text": {"$text": SHA}}},
            "end": {"result": {"status": "aborted"}},
            "resume": {"options": {}, "continues_at": draw(st.integers(1, seq))},
        }.get(kind, {"step_id": "s1", "status": "running"})
        name = {"told": "step", "end": "run_finished", "resume": "run_resumed", "broken": "step"}.get(kind, kind)
        line = a_line(seq, name, **fields)
        lines.append(b'{"v":1,"seq"\n' if kind == "broken" else line)
    return lines


@given(lines=histories(), cuts=st.lists(st.integers(0, 3000), max_size=8))
def test_following_a_growing_journal_equals_a_full_read(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int]
) -> None:
    journal = Journal(tmp_path_factory.mktemp("grows") / f"{RUN_ID}.jsonl")
    data = b"".join(lines)
    places = sorted({min(cut, len(data)) for cut in cuts} | {len(lines[0]), len(data)})
    with written_later(journal.path):
        for start, end in zip([0, *places], places, strict=False):
            journal.write(data[start:end])
            journal.read()
            if end >= len(lines[0]):
                assert journal.records == journal.whole()
    damage: list[str] = []
    list(read_records(journal.path, damage=damage))
    assert journal.follower.damage == damage
    assert journal.follower.offset == len(data)
    journal.follower.close()


@contextmanager
def written_later(path: Path) -> Iterator[None]:
    path.touch()
    with written(path):
        yield


def test_a_missing_file_is_awaited(journal: Journal) -> None:
    assert (journal.read(), journal.follower.status) == ([], "awaited")
    journal.write()
    assert (journal.read(), journal.follower.status) == ([], "awaited")
    journal.write(*begun(2))
    assert (journal.read(), journal.follower.status) == ([0, 1], "reading")
    assert (journal.read(), journal.follower.status) == ([], "interrupted")


def test_only_what_is_new_is_read(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = begun(2_000)
    journal.write(*lines[:-1])
    journal.read()
    read: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read.append(len(found := pread(fd, size, at))) or found)
    journal.write(lines[-1])
    assert journal.read() == [1_999]
    assert sum(read) < len(lines[-1]) + follow._SIGN + 10
    read.clear()
    assert journal.read() == []
    assert sum(read) <= follow._SIGN


def test_a_torn_end_counts_once_completed(journal: Journal) -> None:
    lines = begun(3)
    journal.write(lines[0], lines[1][:30])
    assert journal.read() == [0]
    journal.write(lines[1][30:], lines[2][:-1])
    assert journal.read() == [1]


def test_a_torn_end_set_aside_is_not_reported_missing(journal: Journal) -> None:
    lines = begun(3)
    with written_later(journal.path):
        journal.write(lines[0], lines[1], lines[2][:50])
        journal.read()
        os.truncate(journal.path, len(lines[0] + lines[1]))
        assert journal.read() == []
        journal.write(a_line(2, "journal_recovered", offset=9, set_aside="x"), a_line(3, "run_resumed", continues_at=3))
        assert journal.read() == [2, 3]
    assert journal.generation == 0
    assert journal.follower.damage == []


def test_an_ended_run_stays_ended_if_a_resume_wrote_nothing(journal: Journal) -> None:
    journal.write(*ENDED, a_line(5, "journal_recovered", offset=9, set_aside="x"))
    journal.read()
    journal.read()
    assert journal.follower.status == "ended"


def test_a_resume_that_takes_nothing_back_continues(journal: Journal) -> None:
    journal.write(*begun(3))
    journal.read()
    journal.write(a_line(3, "run_resumed", options={}, continues_at=3))
    assert (journal.read(), journal.generation) == ([3], 0)


def test_superseded_records_are_not_yielded(journal: Journal) -> None:
    journal.write(*ENDED)
    assert journal.read() == [0, 1, 2, 3, 4]
    journal.read()
    assert journal.follower.status == "ended"
    journal.write(a_line(5, "run_resumed", options={}, continues_at=3))
    assert (journal.read(), journal.generation) == ([0, 1, 2, 5], 1)
    journal.read()
    assert journal.follower.status == "interrupted"
    journal.write(a_line(6, "step", step_id="s6", status="running"))
    assert (journal.read(), journal.generation) == ([6], 1)


def test_an_already_resumed_journal_starts_without_superseded_records(journal: Journal) -> None:
    journal.write(*ENDED, a_line(5, "run_resumed", options={}, continues_at=3), a_line(6, "step", step_id="s6"))
    assert (journal.read(), journal.generation) == ([0, 1, 2, 5, 6], 0)


def test_a_superseded_and_rewritten_line_starts_a_generation(journal: Journal) -> None:
    """An interrupt may come between the writing of a line and its counting; the next one then takes its place."""
    lines = begun(3)
    journal.write(*lines)
    journal.read()
    os.truncate(journal.path, len(lines[0] + lines[1]))
    journal.write(a_line(2, "step", second=59, step_id="other"), a_line(3, "step", step_id="s3"))
    assert (journal.read(), journal.generation) == ([0, 1, 2, 3], 1)
    assert journal.records == journal.whole()


def test_a_replaced_file_starts_a_generation(journal: Journal, tmp_path: Path) -> None:
    journal.write(*begun(3))
    journal.read()
    other = tmp_path / "other"
    other.write_bytes(b"".join(begun(2)))
    other.replace(journal.path)
    assert (journal.read(), journal.generation) == ([0, 1], 1)


def test_a_follower_can_start_after_lines_already_read(journal: Journal) -> None:
    asked: list[set[str]] = []

    def find_texts(wanted: set[str]) -> dict[str, str]:
        asked.append(wanted)
        return dict.fromkeys(wanted, "from further up")

    lines = [*ENDED, a_line(5, "run_resumed", options={}, continues_at=3)]
    journal.write(*lines)
    size = sum(map(len, lines))
    place = FollowPosition(6, size - len(lines[-1]), size, 6, [range(3, 5)], find_texts)
    journal.follower = Follower(journal.path, place)
    assert (journal.read(), journal.follower.status) == ([], "interrupted")
    told = a_line(6, "step", step_id="s1", output={"text": {"$text": SHA}})
    journal.write(told, a_line(8, "step", step_id="s2", output={"text": {"$text": SHA}}))
    assert journal.read() == [6, 8]
    assert [record["output"] for record in journal.records] == [{"text": "from further up"}] * 2
    assert asked == [{SHA}]
    assert journal.follower.damage == ["line 8: seq 8 where 7 was expected; lines are missing"]
    journal.write(a_line(9, "run_resumed", options={}, continues_at=6))
    assert (journal.read(), journal.generation) == ([0, 1, 2, 5, 9], 1)


def test_a_deleted_file_is_read_to_its_end(journal: Journal) -> None:
    lines = begun(3)
    journal.write(*lines[:2])
    with journal.path.open("ab") as writer:
        journal.read()
        journal.path.unlink()
        writer.write(lines[2])
    assert (journal.read(), journal.follower.status) == ([2], "gone")
    journal.write(*lines)
    assert (journal.read(), journal.generation) == ([0, 1, 2], 1)
    assert (journal.read(), journal.follower.status) == ([], "interrupted")


def test_the_lock_shows_whether_a_process_writes_it(journal: Journal) -> None:
    journal.write(*begun(2))
    with written(journal.path):
        journal.read()
        assert journal.follower.status == "running"
        journal.read()
        assert journal.follower.status == "running"
    journal.read()
    assert journal.follower.status == "interrupted"


def test_a_liveness_check_does_not_lock_out_a_writer(journal: Journal) -> None:
    journal.write(*begun(2))
    journal.read()
    fd = os.open(journal.path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)


def test_without_locks_a_run_is_assumed_alive(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> bool:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(lock, "is_locked", refuse)
    journal.write(*begun(2))
    journal.read()
    journal.read()
    assert journal.follower.status == "running"


def test_a_line_that_is_too_long_is_skipped_and_reported(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LINE", 4_000)
    monkeypatch.setattr(reader, "_FIRST_CHUNK", 1_000)
    lines = begun(3)
    journal.write(lines[0], b"x" * 9_000)
    assert journal.read() == [0]
    journal.write(b"\n", lines[1])
    assert journal.read() == [1]
    assert journal.follower.damage == ["line 2: longer than 4000 bytes"]


def test_a_first_line_that_is_cut_off_is_reported(journal: Journal) -> None:
    journal.write(b'{"v":1,"seq":0,' + b"x" * 5_000)
    with pytest.raises(UsageError, match="is not a journal: its first line ends after 5,015 bytes"):
        journal.read()


@pytest.mark.parametrize("content", [b"no journal\n" * 30, b'{"a": 1}\n', b"\x00\x01\n", b"no line at all", b"one\n"])
def test_a_foreign_file_is_reported(journal: Journal, content: bytes) -> None:
    journal.write(content)
    with pytest.raises(UsageError, match="is not a journal: its lines are not Aeon records"):
        journal.read()


def test_a_folder_is_not_a_journal(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a folder"):
        list(Follower(tmp_path).read())


@pytest.mark.parametrize("name", ["n" * 300, "nul\0"])
def test_an_impossible_file_name_is_reported(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot read the journal"):
        list(Follower(tmp_path / name).read())


def test_a_disk_failure_is_reported(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int, size: int, at: int) -> bytes:
        raise OSError(5, "Input/output error")

    journal.write(*begun(2))
    journal.read()
    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(JournalError, match=r"cannot read the journal .*: Input/output error"):
        journal.read()
