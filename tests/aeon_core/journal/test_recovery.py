"""Going on with a journal: one writer, behind its last whole line, and only where all before it is sound."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal import lock
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import MemoryRecord, RunStarted, StepRecord
from aeon_core.journal.recovery import make_sure_nobody_writes, reopen
from aeon_core.journal.writer import JournalWriter

LONG = "a long text " * 100
SHA256 = hashlib.sha256(LONG.encode()).hexdigest()
Line = dict[str, Any]


def journal(path: Path, run_id: str = "r1") -> list[bytes]:
    """Write a journal of five lines, one of them a long text; return its lines."""
    writer = JournalWriter(path, run_id)
    writer.append(RunStarted(task="t", config={}, model="m", tools=[], versions={}, memory={}))
    writer.append(MemoryRecord(key="a", value=LONG))
    for status in ("running", "complete"):
        writer.append(StepRecord(pass_number=1, step_id="s1", status=status))  # type: ignore[arg-type]
    writer.close()
    return path.read_bytes().splitlines(keepends=True)


def sound(path: Path) -> list[Line]:
    damage: list[str] = []
    records = list(read_records(path, damage=damage))
    assert damage == []
    return records


def test_a_complete_journal_is_continued_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "another-name.jsonl"
    before = b"".join(journal(path))
    seen: list[Line] = []
    writer = reopen(path, on_record=seen.append)
    assert (writer.run_id, writer.seq, writer.stamp) == ("r1", 5, seen[-1]["ts"])
    assert [record["type"] for record in seen] == ["run_started", "text", "memory", "step", "step"]
    assert path.read_bytes() == before
    assert writer.append(MemoryRecord(key="b", value=[LONG])) == 5
    writer.close()
    assert path.read_bytes().startswith(before)
    last = json.loads(path.read_bytes().splitlines()[-1])
    assert (last["seq"], last["run"], last["value"]) == (5, "r1", [{"$text": SHA256}])
    assert sound(path)[-1]["value"] == [LONG]
    assert list(tmp_path.iterdir()) == [path]


def test_cut_at_any_byte_all_whole_lines_stay_and_the_rest_is_set_aside(tmp_path: Path) -> None:
    lines = journal(tmp_path / "r1.jsonl")
    whole = b"".join(lines)
    for end in range(len(lines[0]), len(whole), 7):
        path = tmp_path / str(end) / "r1.jsonl"
        path.parent.mkdir()
        path.write_bytes(whole[:end])
        kept = whole[: whole.rfind(b"\n", 0, end) + 1]
        writer = reopen(path)
        writer.append(MemoryRecord(key="b", value=1))
        writer.close()
        records = sound(path)
        assert path.read_bytes().startswith(kept)
        torn = path.parent / "r1.torn-1"
        if kept == whole[:end]:
            assert not torn.exists()
            continue
        assert torn.read_bytes() == whole[len(kept) : end]
        assert stat.S_IMODE(torn.stat().st_mode) == 0o600
        assert records[-2]["type"] == "journal_recovered"
        assert (records[-2]["offset"], records[-2]["set_aside"]) == (len(kept), "r1.torn-1")


def test_earlier_torn_ends_are_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    journal(path)
    for rest in (b'{"v":1,', b"\x00" * 100):
        with path.open("ab") as file:
            file.write(rest)
        reopen(path).close()
    assert (tmp_path / "r1.torn-1").read_bytes() == b'{"v":1,'
    assert (tmp_path / "r1.torn-2").read_bytes() == b"\x00" * 100
    assert [record["type"] for record in sound(path)][-2:] == ["journal_recovered", "journal_recovered"]


def test_the_rest_is_on_the_disk_before_it_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r1.jsonl"
    journal(path)
    with path.open("ab") as file:
        file.write(b"torn")
    events: list[str] = []
    for name in ("fsync", "ftruncate", "write"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, _n=name, _r=real: events.append(_n) or _r(*given))
    reopen(path).close()
    assert events == ["write", "fsync", "fsync", "ftruncate", "write"]


def test_nothing_is_cut_if_the_torn_end_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r1.jsonl"
    journal(path)
    with path.open("ab") as file:
        file.write(b"torn")
    before = path.read_bytes()

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(UsageError, match="No space left"):
        reopen(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    reopen(path).close()


def put(number: int, line: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [*lines[: number - 1], line, *lines[number:]]


def other(number: int, **fields: Any) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: put(number, json.dumps({**json.loads(lines[number - 1]), **fields}).encode() + b"\n")(lines)


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (put(3, b'{"v":1,"seq":2,"ts"\n'), "line 3: broken"),
        (put(4, b"\n"), "line 4: broken"),
        (lambda lines: [*lines[:3], lines[4]], "line 4: seq 4 where 3 was expected"),
        (lambda lines: [*lines, lines[4]], "line 6: seq 4 where 5 was expected"),
        (lambda lines: [lines[0], *lines[2:]], "line 2: seq 2 where 1 was expected"),
        (other(4, v=2), "line 4: its version is 2, but this Aeon supports 1"),
        (other(4, v="9" * 5000), f"line 4: its version is '{'9' * 79}…, but this Aeon supports 1"),
        (other(1, type="9" * 5000), f"line 1: it is '{'9' * 79}…; expected 'run_started'"),
        (other(4, run="r2"), "line 4: it is not a line of the run 'r1'"),
        (other(2, text="another text"), "line 2: its text does not match its sha256"),
        (other(3, value={"$text": "0" * 64}), f"line 3: the text '{'0' * 64}' is missing"),
        (
            other(4, type="approval", point="tool", state="decided", digest="", allow={"rule": "Read", "scope": "all"}),
            "line 4: approval.allow.scope: Input should be 'run', 'project' or 'always'",
        ),
        (other(1, type="plan"), "line 1: it is 'plan'; expected 'run_started'"),
        (other(1, run=7), "line 1: it names no run"),
        (other(1, v=2), "not a journal"),
        (lambda lines: [], "it is empty"),
        (lambda lines: [lines[0][:-1]], "not a journal"),
    ],
    ids=[
        "broken", "blank", "gap", "twice", "lost-text", "version", "long-version", "long-type", "run", "text",
        "missing", "allow", "first", "no-run", "newer", "empty", "torn-first",
    ],
)  # fmt: skip
def test_a_damaged_journal_is_refused_and_left_unchanged(
    tmp_path: Path, damaged: Callable[[list[bytes]], list[bytes]], why: str
) -> None:
    path = tmp_path / "r1.jsonl"
    path.write_bytes(b"".join(damaged(journal(path))) + (b"torn" if "line" in why else b""))
    before = path.read_bytes()
    with pytest.raises(UsageError) as caught:
        reopen(path)
    assert why in caught.value.message
    assert "\n" not in caught.value.message
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device", "nothing", "nul"])
def test_an_irregular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "r1.jsonl"
    journal(tmp_path / "real.jsonl")
    if kind == "link":
        path.symlink_to(tmp_path / "real.jsonl")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(UsageError, match="'"):
        reopen({"device": Path("/dev/null"), "nul": tmp_path / "a\0b.jsonl"}.get(kind, path))


def test_a_journal_that_others_may_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    journal(path)
    path.chmod(0o644)
    reopen(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


HOLD = "import fcntl, sys; file = open(sys.argv[1], 'rb'); fcntl.flock(file, fcntl.LOCK_EX); print(flush=True); input()"


@pytest.fixture
def held(tmp_path: Path) -> Any:
    """A journal that another process holds."""
    path = tmp_path / "r1.jsonl"
    journal(path)
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield path, process
        process.communicate(b"\n")


def test_the_second_writer_learns_which_process_holds_the_journal(
    held: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 0.02)
    path, process = held
    with path.open("ab") as file:
        file.write(b"torn")
    with pytest.raises(UsageError, match=f"is being written by process {process.pid} \\(.*python") as caught:
        reopen(path)
    assert "\n" not in caught.value.message
    assert path.read_bytes().endswith(b"torn")


def test_checking_for_a_writer_does_not_change_the_file(held: tuple[Path, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"is being written by process {held[1].pid} "):
        make_sure_nobody_writes(held[0])
    free = tmp_path / "free.jsonl"
    free.write_bytes(held[0].read_bytes() + b"torn")
    make_sure_nobody_writes(free)
    assert free.read_bytes() == held[0].read_bytes() + b"torn"


def test_without_lock_owners_the_holder_is_another_process(
    held: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 0.02)
    monkeypatch.setattr(lock, "_LOCKS", Path("/nowhere"))
    with pytest.raises(UsageError, match="is being written by another process;"):
        reopen(held[0])


def test_a_holder_that_has_ended_and_left_the_lock_to_a_child_is_not_named(
    held: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 0.02)
    table = tmp_path / "locks"
    inode = held[0].stat().st_ino
    gone = f"1: FLOCK  ADVISORY  WRITE 4194999 00:01:{inode} 0 EOF\n"
    table.write_text(f"2: -> FLOCK  ADVISORY  WRITE 1 00:01:{inode} 0 EOF\n{gone}")
    monkeypatch.setattr(lock, "_LOCKS", table)
    with pytest.raises(UsageError, match="is being written by another process;"):
        reopen(held[0])


def test_a_writer_waits_for_a_liveness_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r1.jsonl"
    journal(path)
    with path.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        monkeypatch.setattr(lock.time, "sleep", lambda _: fcntl.flock(reader, fcntl.LOCK_UN))
        reopen(path).close()


def test_a_file_that_is_replaced_while_its_lock_is_awaited_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r1.jsonl"
    journal(path)
    journal(tmp_path / "r2.jsonl")

    def lock(fd: int) -> bool:
        (tmp_path / "r2.jsonl").rename(path)
        return True

    monkeypatch.setattr("aeon_core.journal.recovery.lock", lock)
    with pytest.raises(UsageError, match="replaced"):
        reopen(path)


def test_a_run_that_continues_twice_has_one_sound_journal(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    journal(path)
    for number in range(3):
        writer = reopen(path)
        writer.append(MemoryRecord(key=str(number), value=f"{number} {LONG}"))
        writer.append(MemoryRecord(key=str(number), value=LONG))
        writer.close()
    records = sound(path)
    assert [record["seq"] for record in records] == list(range(14))
    assert sum(record["type"] == "text" for record in records) == 4
