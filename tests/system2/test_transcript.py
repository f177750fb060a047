"""The transcript: entries of the specification's types, appended as things happen, never in the way (REQ-125, 126)."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon_core.redaction import redact_text
from system2.transcript import TranscriptEntries, TranscriptFile
from system2.view import WorkflowView
from system2.workflow_journal import free_path
from tests.fakes import full_disk
from tests.system2.kit import CONTRACT, Bench, done, uses
from tests.system2.workflows import TASK, Case, transcript


def entry(seq: int, **fields: Any) -> dict[str, Any]:
    return {"v": 1, "seq": seq, "ts": "t", "run": "r", "type": "note", "record": seq, **fields}


def test_a_transcript_has_specified_types_in_the_journal_envelope(tmp_path: Path) -> None:
    result = Case(tmp_path).orchestrator.run(TASK)
    assert result.transcript_path is not None
    assert result.journal is not None
    assert result.transcript_path.stem == result.journal.stem[:15]
    lines = [json.loads(line) for line in result.transcript_path.read_text().splitlines()]
    assert [list(line)[:5] for line in lines] == [["v", "seq", "ts", "run", "type"]] * len(lines)
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    named = {"workflow_start", "agent_start", "api_request", "api_response", "tool_exec", "gate_asked", "gate_decision"}
    assert {line["type"] for line in lines} >= {*named, "agent_complete", "agent_skipped", "workflow_end"}
    assert lines[0]["journal"] == result.journal.stem
    assert [line["record"] for line in lines] == sorted(line["record"] for line in lines)


def test_the_file_is_private_and_named_by_the_second(tmp_path: Path) -> None:
    first = free_path(tmp_path, "20260201-143022-a1b2c3")
    assert first.name == "20260201-143022.jsonl"
    TranscriptFile(first, print)
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    assert free_path(tmp_path, "20260201-143022-ffffff").name == "20260201-143022-2.jsonl"


def test_only_a_new_folder_is_kept_out_of_git(tmp_path: Path) -> None:
    TranscriptFile(tmp_path / "a" / "runs" / "x.jsonl", print).close()
    assert (tmp_path / "a" / "runs" / ".gitignore").read_text() == "*\n"
    (tmp_path / "b").mkdir()
    TranscriptFile(tmp_path / "b" / "x.jsonl", print).close()
    assert not (tmp_path / "b" / ".gitignore").exists()


def test_a_full_disk_leaves_no_folder_that_git_would_not_ignore(tmp_path: Path) -> None:
    said: list[str] = []
    with full_disk():
        TranscriptFile(tmp_path / "a" / "runs" / "x.jsonl", said.append)
    assert said == [f"cannot write the transcript '{tmp_path}/a/runs/x.jsonl': File too large; the work continues"]
    TranscriptFile(tmp_path / "a" / "runs" / "x.jsonl", print).close()
    assert (tmp_path / "a" / "runs" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_cannot_be_written_warns_and_the_work_continues(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    warned: list[str] = []
    made = TranscriptFile(tmp_path / "file" / "x.jsonl", warned.append)
    made.write(entry(0))
    assert made.path is None
    assert [line.startswith("cannot write the transcript") for line in warned] == [True]


def test_a_transcript_that_is_deleted_during_the_work_is_reported_once(tmp_path: Path) -> None:
    warned: list[str] = []
    made = TranscriptFile(tmp_path / "x.jsonl", warned.append)
    made.write(entry(0))
    (tmp_path / "x.jsonl").unlink()
    made.write(entry(1))
    made.write(entry(2))
    assert made.path is None
    assert warned == [f"cannot write the transcript '{tmp_path / 'x.jsonl'}': it was deleted; the work continues"]


def test_a_disk_that_gets_full_warns_once_for_each_agent_and_the_work_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, uses(("Write", {"file_path": "a", "content": "x"})), done(), done())
    real, left = os.write, [4]

    def full(fd: int, data: bytes) -> int:
        if fd == bench.transcript._fd and left_after(fd) < 0:
            raise OSError(28, "No space left on device")
        return real(fd, data)

    def left_after(_: int) -> int:
        left[0] -= 1
        return left[0]

    monkeypatch.setattr("system2.transcript.os.write", full)
    assert bench.session().run(CONTRACT).completion is not None
    assert bench.session(name="executor").run(CONTRACT).completion is not None
    assert (tmp_path / "a").read_text() == "x"
    warnings = [line for line in bench.logged if "cannot write the transcript" in line]
    assert len(warnings) == 2
    assert "No space left on device" in warnings[0]
    heard = [line["type"] for line in bench.lines]
    exchange = ["api_request", "api_response", "tool_exec"]
    assert heard == [each for count in (2, 1) for each in ("agent_start", *exchange * count, "agent_complete")]


def test_text_appended_by_another_program_spoils_no_entry(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    made = TranscriptFile(path, print)
    made.write(entry(0))
    with path.open("ab") as file:
        file.write(b"x")
    made.write(entry(1))
    first, foreign, second = path.read_text().splitlines()
    assert (json.loads(first)["seq"], foreign, json.loads(second)["seq"]) == (0, "x", 1)


@pytest.mark.parametrize("rest", [b"", b'{"v":1,"seq":2,"ts":"20', b"no json\n", b'{"seq":7,"record":7,"run":"r"}\n'])
def test_a_reopened_transcript_holds_only_what_is_written_then(rest: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    first = TranscriptFile(path, print)
    first.write(entry(0))
    first.close()
    with path.open("ab") as file:
        file.write(rest)
    second = TranscriptFile(path, print)
    for seq in range(3):
        second.write(entry(seq))
    assert [json.loads(line)["seq"] for line in path.read_text().splitlines()] == [0, 1, 2]


def test_a_key_in_the_conversation_reaches_the_model_and_neither_journal_nor_transcript(tmp_path: Path) -> None:
    key = "gh" + "p_" + "b2" * 18
    bench = Bench(tmp_path, uses(("Glob", {"pattern": "*"})), done())
    bench.session().run(replace(CONTRACT, objective=f"use {key}"))
    assert key in bench.requests[1].prompt
    assert bench.transcript.path is not None
    request = next(each for each in bench.records() if each["type"] == "api_request")
    assert key not in json.dumps(request)
    assert f"use {redact_text(key)}" in json.dumps(request)


def test_an_aws_secret_in_a_command_is_not_in_the_transcript(tmp_path: Path) -> None:
    secret = "wJalrXUtnFEMIzK7MDENGzbPxRfiCYzzzzzzzKEY"
    bench = Bench(tmp_path, uses(("Bash", {"command": f"export AWS_SECRET_ACCESS_KEY='{secret}'; make"})), done())
    bench.session().run(CONTRACT)
    assert bench.transcript.path is not None
    bench.transcript.write({"secret_access_key": secret, "session_token": 12345678901234567})
    text = bench.transcript.path.read_text()
    assert secret not in text
    entries = [json.loads(line) for line in text.splitlines()]
    assert entries[-1] == {"secret_access_key": "[redacted]", "session_token": 12345678901234567}


def test_journal_and_transcript_grow_only_with_new_turns(tmp_path: Path) -> None:
    def size(folder: Path, turns: int) -> int:
        folder.mkdir()
        bench = Bench(folder, *[uses(("Glob", {"pattern": "*.none"}))] * turns, done())
        bench.session().run(CONTRACT)
        assert bench.transcript.path is not None
        return bench.transcript.path.stat().st_size

    short, long = size(tmp_path / "short", 20), size(tmp_path / "long", 80)
    assert long < 4.2 * short


def test_the_transcript_covers_an_agents_work_from_prompt_to_completion(tmp_path: Path) -> None:
    bench = Bench(tmp_path, uses(("Glob", {"pattern": "*"})), done("found nothing"))
    bench.session("Glob", prompt="You look.").run(CONTRACT)
    exchange = ["api_request", "api_response", "tool_exec"]
    assert [record["type"] for record in bench.records()] == ["agent_start", *exchange, *exchange, "agent_complete"]
    start, *_, end = bench.records()
    assert (start["agent"], start["system"], start["tools"]) == (
        "spec-coordinator",
        "You look.",
        ["Glob", "signal_completion"],
    )
    assert start["contract"] == CONTRACT.as_dict()
    assert end["completion"] == {"status": "success", "files_changed": [], "summary": "found nothing", "blockers": []}
    assert end["cost"]["api_calls"] == 2


def test_a_resume_restores_a_removed_transcript(tmp_path: Path) -> None:
    from tests.system2.workflows import ABORT, SaidAtGates

    stopped = Case(tmp_path, gate_policy=SaidAtGates({1: [(ABORT, None)]})).orchestrator.run(TASK)
    assert stopped.journal is not None
    assert stopped.transcript_path is not None
    before = stopped.transcript_path.read_bytes()
    stopped.transcript_path.unlink()
    result = Case(tmp_path).orchestrator.resume(stopped.journal)
    assert result.transcript_path is not None
    after = result.transcript_path.read_bytes()
    known = [line for line in transcript(result.transcript_path) if line["type"] != "workflow_resumed"]
    assert (after.startswith(before.splitlines()[0]), known[-1]["type"]) == (True, "workflow_end")


def test_a_resumed_workflows_duration_includes_the_break() -> None:
    records: list[dict[str, Any]] = [
        {"type": "run_started", "task": TASK, "model": "simulated:default"},
        {"type": "run_finished", "result": {"status": "aborted"}},
        {"type": "run_resumed"},
        {"type": "run_finished", "result": {"status": "completed"}},
    ]
    entries = TranscriptEntries()
    told = [
        line
        for seq, record in enumerate(records)
        for line in entries.of({"seq": seq, "ts": f"2026-11-20T09:3{seq}:00.000000Z", "run": "r", **record})
    ]
    assert [line["duration_s"] for line in told if line["type"] == "workflow_end"] == [60.0, 180.0]


def test_a_forked_workflows_duration_is_its_own() -> None:
    parent = {"run_id": "p", "gate": 1, "ts": "2026-11-20T09:31:00.000000Z"}
    start = {"type": "run_started", "task": TASK, "model": "simulated:default", "parent": parent}
    end = {"type": "run_finished", "result": {"status": "completed"}}
    entries, view = TranscriptEntries(), WorkflowView()
    for seq, (minute, record) in enumerate([("09:00", start), ("09:32", end)]):
        for line in entries.of({"seq": seq, "ts": f"2026-11-20T{minute}:00.000000Z", "run": "r", **record}):
            view.apply(line)
    assert view.end is not None
    assert (view.started, view.end["duration_s"]) == (parent["ts"], 60.0)
