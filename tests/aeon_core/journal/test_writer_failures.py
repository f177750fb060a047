"""A journal that cannot be written any more stops its run, with the reason; what was acknowledged stays."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core import Orchestrator, RunConfig, ToolRegistry, tool
from aeon_core.errors import JournalError, UsageError
from aeon_core.journal import lock
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import MemoryRecord, StepRecord
from aeon_core.journal.writer import CHECKED_EVERY, JournalWriter
from tests.fakes import ScriptedModel, add, steps

STEP = StepRecord(pass_number=1, step_id="s1", status="running")


def written(path: Path, count: int = 3) -> JournalWriter:
    writer = JournalWriter(path, "r")
    append(writer, count)
    return writer


def append(writer: JournalWriter, count: int) -> None:
    for _ in range(count):
        writer.append(STEP)


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(("number", "why"), [(errno.ENOSPC, "No space left"), (errno.EIO, "Input/output error")])
def test_lines_that_do_not_reach_the_disk_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, why: str
) -> None:
    writer = written(tmp_path / "r.jsonl")
    monkeypatch.setattr(os, "fdatasync", failing(number))
    with pytest.raises(JournalError, match=f"r.jsonl' cannot be synced to disk: {why}.*; its last lines may be lost$"):
        writer.sync()
    monkeypatch.undo()
    with pytest.raises(JournalError, match=why):
        writer.append(STEP)
    assert len((tmp_path / "r.jsonl").read_bytes().splitlines()) == 3


def test_a_partial_line_that_cannot_be_removed_is_a_torn_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = written(tmp_path / "r.jsonl")
    real, turns = os.write, iter([True])

    def write(fd: int, data: bytes) -> int:
        return real(fd, data[:20]) if next(turns, False) else failing(errno.EIO)()  # type: ignore[no-any-return]

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "ftruncate", failing(errno.EROFS))
    with pytest.raises(JournalError, match="Read-only"):
        writer.append(STEP)
    monkeypatch.undo()
    with pytest.raises(JournalError, match="Read-only"):
        writer.append(STEP)
    damage: list[str] = []
    assert len(list(read_records(tmp_path / "r.jsonl", damage=damage))) == 3
    assert damage == []


def delete(path: Path) -> None:
    path.unlink()


def delete_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def cut(path: Path) -> None:
    os.truncate(path, 10)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"not ours\n")


def replace(path: Path) -> None:
    path.rename(path.with_name("old"))
    path.write_bytes(b"x" * path.with_name("old").stat().st_size)


def rename_over(path: Path) -> None:
    path.with_name("new").write_text("")
    path.with_name("new").rename(path)


HARM = [
    (delete, "was deleted"),
    (delete_folder, "was deleted"),
    (cut, "it has 10 bytes, "),
    (grow, "was changed by something else"),
    (replace, "was replaced by another file"),
    (rename_over, "was deleted"),
]


@pytest.mark.parametrize(("harm", "why"), HARM, ids=[harm.__name__ for harm, _ in HARM])
def test_a_file_that_is_no_longer_the_journal_is_noticed_at_the_next_sync(
    tmp_path: Path, harm: Callable[[Path], None], why: str
) -> None:
    path = tmp_path / "runs" / "r.jsonl"
    writer = written(path)
    writer.sync()
    harm(path)
    with pytest.raises(JournalError, match=why):
        writer.sync()
    with pytest.raises(JournalError, match=why):
        writer.append(STEP)


@pytest.mark.parametrize(("harm", "why"), HARM, ids=[harm.__name__ for harm, _ in HARM])
def test_without_syncs_it_is_noticed_after_some_lines(tmp_path: Path, harm: Callable[[Path], None], why: str) -> None:
    path = tmp_path / "runs" / "r.jsonl"
    writer = written(path)
    harm(path)
    with pytest.raises(JournalError, match=r"was deleted|changed|replaced"):
        append(writer, CHECKED_EVERY)


def test_a_folder_that_is_moved_takes_its_journal_along(tmp_path: Path) -> None:
    writer = written(tmp_path / "runs" / "r.jsonl")
    (tmp_path / "runs").rename(tmp_path / "moved")
    append(writer, CHECKED_EVERY)
    writer.sync()
    assert len((tmp_path / "moved" / "r.jsonl").read_bytes().splitlines()) == 3 + CHECKED_EVERY
    assert writer.location() == tmp_path / "moved" / "r.jsonl"


def test_the_location_always_belongs_to_the_open_file(tmp_path: Path) -> None:
    path, moved = tmp_path / "r.jsonl", tmp_path / "moved (deleted)"
    writer = written(path)
    assert writer.location() == path
    path.rename(moved)
    path.write_text("another file")
    assert writer.location() == moved
    moved.unlink()
    assert writer.location() is None
    assert JournalWriter(None, "r").location() is None


def test_a_new_journal_is_entered_in_its_folder_once_with_the_first_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = written(tmp_path / "r.jsonl")
    events: list[str] = []
    for name in ("fdatasync", "fsync"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda fd, _n=name, _r=real: events.append(_n) or _r(fd))
    writer.sync()
    writer.append(STEP)
    writer.sync()
    assert events == ["fdatasync", "fsync", "fdatasync"]


def test_on_macos_a_journal_is_synced_without_fdatasync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = written(tmp_path / "r.jsonl")
    writer.sync()
    synced: list[int] = []
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(os, "fsync", synced.append)
    writer.append(STEP)
    monkeypatch.setattr(writer, "_check", lambda size: None)
    writer.sync()
    assert len(synced) == 1


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("line", [0, 1])
def test_a_record_whose_writing_is_interrupted_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool, line: int
) -> None:
    path, text = tmp_path / "r.jsonl", "a long text " * 50
    writer = written(path)
    before = path.read_bytes()
    real, turns = os.write, iter(range(9))

    def interrupt(fd: int, data: bytes) -> int:
        if next(turns) == line:
            if after:
                real(fd, data)
            raise KeyboardInterrupt
        return real(fd, data)

    monkeypatch.setattr(os, "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        writer.append(MemoryRecord(key="a", value=text))
    monkeypatch.undo()
    writer.append(MemoryRecord(key="b", value=text))
    writer.sync()
    damage: list[str] = []
    records = list(read_records(path, damage=damage))
    assert damage == []
    assert path.read_bytes().startswith(before)
    assert [(record["key"], record["value"]) for record in records if record["type"] == "memory"] == [("b", text)]


def test_reading_a_new_journal_does_not_block_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([BlockingIOError(), None])

    def flock(fd: int, how: int) -> None:
        if (answer := next(answers, None)) is not None:
            raise answer

    monkeypatch.setattr(lock.fcntl, "flock", flock)
    JournalWriter(tmp_path / "r.jsonl", "r").close()
    assert next(answers, "none") == "none"


def test_an_error_on_closing_takes_no_result_from_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer = written(tmp_path / "r.jsonl")
    fd, close = writer._fd, os.close

    def fail(closed: int) -> None:
        close(closed)
        if closed == fd:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with monkeypatch.context() as patched:
        patched.setattr(os, "close", fail)
        writer.close()
    assert "r.jsonl' may lack its last lines: Disk quota exceeded" in caplog.text
    with pytest.raises(JournalError, match="the journal is closed"):
        writer.append(STEP)


def test_an_empty_journal_on_a_disk_that_became_read_only_is_closed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = JournalWriter(tmp_path / "r.jsonl", "r")
    monkeypatch.setattr(Path, "unlink", failing(errno.EROFS))
    writer.close()
    with pytest.raises(JournalError, match="the journal is closed"):
        writer.append(STEP)


def test_a_runs_directory_without_locks_is_named_and_keeps_no_empty_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock.fcntl, "flock", failing(errno.ENOLCK))
    with pytest.raises(UsageError, match=r"cannot lock journals in the runs directory .*: No locks available; choose"):
        JournalWriter(tmp_path / "r.jsonl", "r")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None:
        pytest.skip("only root can mount a file system")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("durability", ["normal", "off"])
def test_a_full_disk_ends_the_run_with_the_reason_and_keeps_whole_lines(small_disk: Path, durability: Any) -> None:
    heard: list[dict[str, Any]] = []
    calls: list[int] = []
    registry = ToolRegistry()

    @tool(effect="unsafe")
    def act(number: int) -> str:
        """Acts."""
        calls.append(number)
        return os.urandom(1000).hex()

    registry.register(act)
    path = small_disk / "r.jsonl"
    plan = steps(*({"tool": "act", "arguments": {"number": number}} for number in range(40)))
    result = Orchestrator(
        ScriptedModel(answer="x"),
        tools=registry,
        journal=path,
        on_record=heard.append,
        config=RunConfig(single_pass=True, durability=durability),
    ).run("t", plan)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["message"] == (f"the journal {str(path)!r} cannot be written: No space left on device")
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["seq"] for line in lines] == [record["seq"] for record in heard]
    begun = [line["arguments"]["number"] for line in lines if line["type"] == "tool" and line["state"] == "started"]
    assert calls == begun
    assert 0 < len(calls) < 40


def test_a_run_whose_folder_is_deleted_stops_before_the_next_unsafe_call(tmp_path: Path) -> None:
    calls: list[int] = []
    registry = ToolRegistry()

    @tool(effect="unsafe")
    def act(number: int) -> int:
        """Acts, and loses the runs directory on the way."""
        calls.append(number)
        if number == 1:
            shutil.rmtree(tmp_path / "runs")
        return number

    registry.register(act)
    plan = steps(*({"tool": "act", "arguments": {"number": number}} for number in range(4)))
    config, path = RunConfig(single_pass=True), tmp_path / "runs" / "r.jsonl"
    result = Orchestrator(ScriptedModel(answer="x"), tools=registry, journal=path, config=config).run("t", plan)
    assert calls == [0, 1]
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["message"] == f"the journal {str(path)!r} was deleted"


def test_a_journal_taken_by_another_process_starts_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_core.journal.writer.lock", lambda fd: False)
    with pytest.raises(UsageError, match="was locked by another process"):
        Orchestrator(ScriptedModel(), journal=tmp_path / "r.jsonl").run("t", steps(add(1, 1)))
