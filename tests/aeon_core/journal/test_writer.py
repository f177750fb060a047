"""The journal's file: whole lines, their order and form, what is lost when (contract: The journal)."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import MemoryRecord, StepRecord
from aeon_core.journal.writer import JournalWriter, new_run_id


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_line_begins_with_the_envelope_in_its_order(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "r.jsonl", "r")
    assert [writer.append(StepRecord(pass_number=1, step_id="s1", status="running")) for _ in range(3)] == [0, 1, 2]
    writer.close()
    raw = (tmp_path / "r.jsonl").read_bytes()
    assert raw.startswith(b'{"v":1,"seq":0,"ts":"20')
    found = lines(tmp_path / "r.jsonl")
    assert [list(line)[:5] for line in found] == [["v", "seq", "ts", "run", "type"]] * 3
    envelope = {"v": 1, "seq": 2, "ts": found[2]["ts"], "run": "r", "type": "step"}
    assert found[2] == {**envelope, "pass": 1, "step_id": "s1", "status": "running"}
    assert len(found[0]["ts"]) == len("2026-11-20T09:30:00.123456Z")


def test_the_file_is_private_and_locked_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "r.jsonl"
    writer = JournalWriter(path, "r")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with path.open("rb") as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        writer.close()
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_closed_journal_is_not_locked_by_a_process_that_was_forked_meanwhile(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "r.jsonl", "r")
    assert writer._fd is not None
    inherited = os.dup(writer._fd)
    with (tmp_path / "r.jsonl").open("rb") as other:
        writer.close()
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(inherited)


def test_an_existing_journal_is_never_written_into(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("precious")
    with pytest.raises(UsageError, match="already exists"):
        JournalWriter(tmp_path / "r.jsonl", "r")
    assert (tmp_path / "r.jsonl").read_text() == "precious"
    with pytest.raises(UsageError, match="is a folder; name a file in it"):
        JournalWriter(tmp_path, "r")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match=r"link\.jsonl' already exists"):
        JournalWriter(tmp_path / "link.jsonl", "r")
    assert not (tmp_path / "gone").exists()


def test_a_runs_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file"):
        JournalWriter(tmp_path / "file" / "r.jsonl", "r")


def test_past_the_first_record_a_long_text_is_written_once_and_listeners_get_it_whole(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    writer = JournalWriter(tmp_path / "r.jsonl", "r", lambda line: heard.append(json.loads(line)))
    text = 'a "quoted" \\ text ' * 100
    writer.append(MemoryRecord(key="first", value=text))
    writer.append(MemoryRecord(key="a", value={"text": text, "short": "x"}))
    writer.append(MemoryRecord(key="b", value=[text]))
    writer.close()
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    found = lines(tmp_path / "r.jsonl")
    assert [line["type"] for line in found] == ["memory", "text", "memory", "memory"]
    assert found[0]["value"] == text
    assert found[1]["sha256"] == sha256
    assert found[1]["text"] == text
    assert found[2]["value"] == {"text": {"$text": sha256}, "short": "x"}
    assert found[3]["value"] == [{"$text": sha256}]
    assert [line["seq"] for line in found] == [0, 1, 2, 3]
    assert heard[2]["value"] == {"text": text, "short": "x"}


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=1200))
def test_any_text_comes_back_from_its_line(text: str) -> None:
    heard: list[bytes] = []
    writer = JournalWriter(None, "r", heard.append)
    writer.append(MemoryRecord(key="k", value=text))
    assert json.loads(heard[-1])["value"] == text
    assert b"\n" not in heard[-1]


def test_a_full_disk_is_one_clear_error_and_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = JournalWriter(tmp_path / "r.jsonl", "r")
    writer.append(StepRecord(pass_number=1, step_id="s1", status="running"))
    whole = (tmp_path / "r.jsonl").read_bytes()
    real, turns = os.write, iter([True])

    def write(fd: int, data: bytes) -> int:
        if next(turns, False):
            return real(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(JournalError, match="No space left"):
        writer.append(StepRecord(pass_number=1, step_id="s1", status="complete"))
    monkeypatch.setattr(os, "write", real)
    assert (tmp_path / "r.jsonl").read_bytes() == whole
    with pytest.raises(JournalError):
        writer.append(StepRecord(pass_number=1, step_id="s1", status="complete"))


def test_a_line_that_is_cut_short_once_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = JournalWriter(tmp_path / "r.jsonl", "r")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:50]))
    writer.append(StepRecord(pass_number=1, step_id="s1", status="running"))
    assert lines(tmp_path / "r.jsonl")[0]["step_id"] == "s1"


def test_a_journal_that_cannot_take_its_first_line_leaves_no_file(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "r.jsonl", "r")
    writer.close()
    assert list(tmp_path.iterdir()) == []


def test_values_that_look_like_text_references_round_trip(tmp_path: Path) -> None:
    text = "long " * 100
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    values: list[Any] = [
        text,
        {"$text": sha256},
        {"v": [{"$text": "a" * 64}]},
        {"$text": None, "literal": {"$text": sha256}},
        {"$text": text},
        {"$text": 1, "a": 2, "b": 3},
    ]
    path = tmp_path / "r.jsonl"
    writer = JournalWriter(path, "r")
    for number, value in enumerate([None, *values]):
        writer.append(MemoryRecord(key=str(number), value=value))
    writer.close()
    damage: list[str] = []
    found = [record["value"] for record in read_records(path, damage=damage) if record["type"] == "memory"]
    assert found == [None, *values]
    assert damage == []


def test_written_records_are_readable_after_a_kill(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from aeon_core import Orchestrator, RunConfig, tool, ToolRegistry
from tests.fakes import ScriptedModel, add, steps
@tool(effect="pure")
def die() -> int:
    "Kills the process."
    os.kill(os.getpid(), signal.SIGKILL)
    return 1
registry = ToolRegistry()
registry.register(die)
@tool(effect="pure")
def one() -> int:
    "Is one."
    return 1
registry.register(one)
plan = steps({"tool": "one", "arguments": {}}, {"tool": "die", "arguments": {}})
config = RunConfig(single_pass=True, durability="off")
Orchestrator(ScriptedModel(), tools=registry, journal=sys.argv[1], config=config).run("t", plan)
"""
    path = tmp_path / "r.jsonl"
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'core'}"}
    done = subprocess.run([sys.executable, "-c", script, str(path)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    found = lines(path)
    [cycle] = [line for line in found if line["type"] == "cycle"]
    assert cycle["tool_calls"][0]["result"] == {"result": 1}
    assert found[-1]["type"] == "tool"
    assert found[-1]["state"] == "started"
    assert [line["seq"] for line in found] == list(range(len(found)))


def test_run_ids_differ_and_sort_by_time() -> None:
    assert len({new_run_id() for _ in range(3)}) == 3
