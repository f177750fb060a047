"""Where a workflow's screen gets its records from, and what its questions show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aeon_tui.screens.workflow.approval_controller import panel_question
from aeon_tui.sources.run_index import RunIndex
from aeon_tui.sources.workflow import LiveWorkflowSource, Taken, TranscriptSource, WorkflowState
from tests.aeon_tui.workflows import at_a_gate, completed, request
from tests.waiting import wait_until


def lines(records: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(record).encode() + b"\n" for record in records]


def taken_from(source: TranscriptSource | LiveWorkflowSource, number: int) -> Taken:
    """Take until so many records have come since the last beginning."""
    records: list[dict[str, Any]] = []
    anew = False

    def enough() -> bool:
        nonlocal records, anew
        taken = source.take(1.0)
        if taken.anew:
            records, anew = [], True
        records = [*records, *taken.records]
        return len(records) >= number

    wait_until(enough)
    return Taken(records, anew)


def test_a_transcript_is_followed_as_it_grows(tmp_path: Path) -> None:
    path, all_lines = tmp_path / "w.jsonl", lines(completed().records)
    path.write_bytes(b"".join(all_lines[:3]))
    source = TranscriptSource(path)
    assert [record["seq"] for record in taken_from(source, 3).records] == [0, 1, 2]
    with path.open("ab") as file:
        file.write(b"".join(all_lines[3:]))
    assert taken_from(source, len(all_lines) - 3).records[-1]["type"] == "workflow_end"
    assert not source.live
    wait_until(lambda: not source.reading)
    source.close()


def test_a_file_that_is_no_transcript_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text("not a record\n" * 30)
    source = TranscriptSource(path)
    error = wait_until(lambda: source.error)
    assert "w.jsonl" in error.message
    assert not source.reading


def test_own_lines_come_in_order_once_and_the_feed_ends_with_the_last(tmp_path: Path) -> None:
    records = completed().records
    source = LiveWorkflowSource()
    for record in records[:4]:
        source.put(record)
    for line in lines(records[2:]):
        source.put(line)
    source.finish()
    assert source.live
    assert [record["seq"] for record in source.take(1.0).records] == list(range(len(records)))
    assert not source.live


def test_where_more_lines_wait_than_there_is_room_for_the_transcript_is_read(tmp_path: Path) -> None:
    records = completed().records
    path = tmp_path / "w.jsonl"
    path.write_bytes(b"".join(lines(records)))
    source = LiveWorkflowSource(capacity=3)
    source.path = path
    for line in lines(records):
        source.put(line)
    source.finish()
    taken = taken_from(source, len(records))
    assert taken.anew
    assert [record["seq"] for record in taken.records] == list(range(len(records)))
    source.close()


def test_a_blocklisted_command_is_shown_whole_and_marked() -> None:
    command = "cd src && \\\nrm -rf build" + " x" * 3_000
    asked = request("tool", "executor", tool_name="Bash", arguments={"command": command}, blocklisted=True, reason="r")
    question = panel_question(asked)
    assert question.headline == "Run this destructive command?"
    assert question.body[-1][1] == command
    proposal = {"rule": "Bash(make test)"}
    plain = request("tool", "executor", tool_name="Bash", arguments={"command": "make test"}, proposal=proposal)
    assert [choice.key for choice in panel_question(plain).choices] == ["a", "A", "w", "X"]


def test_the_ceiling_grows_as_it_is_lifted_and_rounds_are_timed() -> None:
    written, state = at_a_gate(), WorkflowState()
    for choice in ("continue", "stop"):
        written.add(
            "question", agent="executor", kind="cost_ceiling", text="", state="decided", choices=[], choice=choice
        )
    for record in written.records:
        state.apply(record)
    assert (state.warning_usd, state.ceiling_usd, state.current) == (2.0, 10.0, "gate 1")
    assert state.seconds_worked("repo-governor", state.last_ts) == 4.0
    assert state.seconds_worked("executor", state.last_ts) is None
    assert state.rejections(0) == 1


def test_a_record_that_is_not_what_a_workflow_writes_is_damage_and_the_rest_is_shown() -> None:
    state, written = WorkflowState(), completed().records
    at = next(number for number, record in enumerate(written) if record["type"] == "agent_start")
    for record in [*written[:at], {**written[at], "contract": 7}, *written[at + 1 :]]:
        state.apply(record)
    seq = written[at]["seq"]
    assert state.damage == [f"the record with seq {seq} cannot be read: contract: expected object, got int"]
    assert state.status(live=False, reading=False) == "completed"
    assert state.view.agents["repo-governor"].contract is None


def test_runs_and_workflows_are_one_list(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / ".system2" / "runs"
    folder.mkdir(parents=True)
    (folder / "20260102-030405.jsonl").write_bytes(b"".join(lines(completed().records)))
    monkeypatch.chdir(tmp_path)
    (run,) = RunIndex(tmp_path / "kept").runs()
    assert (run.kind, run.run_id, run.status) == ("workflow", "20260102-030405", "completed")
    assert [each.path for each in RunIndex(folder).runs()] == [run.path]
    exported = {**completed().records[0], "journal": "20260102-030405-abcdef"}
    (folder / "20260102-030406.jsonl").write_bytes(b"".join(lines([exported])))
    assert [each.path for each in RunIndex(tmp_path / "kept").runs()] == [run.path]
