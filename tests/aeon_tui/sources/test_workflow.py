"""Where a workflow's screen gets its records from, and what its questions show."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aeon_tui.screens.workflow.approval_controller import panel_question
from aeon_tui.sources import base, journal
from aeon_tui.sources.base import RecordSource
from aeon_tui.sources.live import LiveSource
from aeon_tui.sources.run_index import RunIndex
from aeon_tui.sources.workflow import WorkflowState, follow_workflow
from tests.aeon_tui.workflows import at_a_gate, completed, request
from tests.waiting import wait_until


def lines(records: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(record).encode() + b"\n" for record in records]


def read(source: RecordSource[WorkflowState], enough: Callable[[WorkflowState], bool]) -> WorkflowState:
    """Take as a screen does until enough has come."""
    state = WorkflowState()

    def step() -> bool:
        nonlocal state
        if (view := source.take_view()) is not None:
            state = view
        for record in source.take(1.0):
            state.apply(record)
        return enough(state)

    wait_until(step)
    return state


def test_a_transcript_is_followed_as_it_grows(tmp_path: Path) -> None:
    path, all_lines = tmp_path / "w.jsonl", lines(completed().records)
    path.write_bytes(b"".join(all_lines[:3]))
    source = follow_workflow(path)
    assert read(source, lambda state: state.last_seq == 2).view.end is None
    with path.open("ab") as file:
        file.write(b"".join(all_lines[3:]))
    wait_until(lambda: source.take(1.0)[-1:] == [completed().records[-1]])
    wait_until(lambda: source.take(1.0) == [] and source.ended)
    assert (source.live, source.journal) == (False, path)
    source.close()


def test_a_file_that_is_not_a_transcript_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text("not a record\n" * 30)
    source = follow_workflow(path)
    error = wait_until(lambda: source.error)
    assert "w.jsonl" in error.message
    wait_until(lambda: source.ended)


def test_a_workflow_resumed_elsewhere_loses_its_superseded_end(tmp_path: Path) -> None:
    written, path = at_a_gate(), tmp_path / "w.jsonl"
    shown = len(written.records)
    written.end("aborted", 1)
    path.write_bytes(b"".join(lines(written.records)))
    source = follow_workflow(path)
    read(source, lambda state: state.view.end is not None)
    path.write_bytes(b"".join(lines(written.records[:shown])))
    state = read(source, lambda state: state.last_seq == shown - 1 and state.view.end is None)
    assert state.view.open_gate is not None
    source.close()


def test_a_long_workflow_is_read_from_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LONG", 1)
    monkeypatch.setattr(base, "FAST", 0)
    path = tmp_path / "w.jsonl"
    path.write_bytes(b"".join(lines(completed().records)))
    source = follow_workflow(path)
    assert read(source, lambda state: state.view.end is not None).view.agents["repo-governor"].state == "complete"
    source.close()


def test_if_queued_lines_overflow_the_journal_is_read(tmp_path: Path) -> None:
    records = completed().records
    path = tmp_path / "w.jsonl"
    path.write_bytes(b"".join(lines(records)))
    source = LiveSource[WorkflowState](path, capacity=3, follow=partial(follow_workflow, fast=True))
    for line in lines(records):
        source.put(line)
    source.finish()
    state = read(source, lambda state: state.view.end is not None)
    assert (state.last_seq, state.rejections(0)) == (len(records) - 1, 1)
    wait_until(lambda: source.take(1.0) == [] and source.ended)
    source.close()


def test_without_a_journal_the_remaining_lines_are_shown() -> None:
    records = completed().records
    source = LiveSource[WorkflowState](None, capacity=3)
    for line in lines(records):
        source.put(line)
    assert [record["seq"] for record in source.take(1.0)] == [record["seq"] for record in records[-3:]]


def test_a_blocklisted_command_is_shown_whole_and_marked() -> None:
    command = "cd src && \\\nrm -rf build\xa0/" + " x" * 3_000
    asked = request("tool", "executor", tool_name="Bash", arguments={"command": command}, blocklisted=True, reason="r")
    question = panel_question(asked)
    assert question.headline == "Run this destructive command?"
    assert question.body[-1][1] == command.replace("\xa0", r"\xa0")
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


def test_an_unexpected_record_is_damage_and_the_rest_is_shown() -> None:
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
