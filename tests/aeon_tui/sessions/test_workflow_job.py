"""A workflow in this process: what it is called, where its records are, how it is ended and continued."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal.reader import read_records
from aeon_tui.sessions.runner import Runner
from aeon_tui.sessions.workflow_session import WorkflowJob, resume_workflow
from tests.waiting import PATIENCE, wait_until


def runner_of(folder: Path, runs: Path | None = None, **options: bool) -> Runner[WorkflowJob]:
    root = folder / "project"
    root.mkdir()
    job = WorkflowJob(root, "build it", model="simulated:default", runs_dir=runs, **options)
    return Runner(job, job.journal_in(folder / "elsewhere"))


def at_the_first_gate(runner: Runner[WorkflowJob]) -> None:
    runner.start()
    wait_until(lambda: runner.waiting)


def test_an_abort_at_a_gate_ends_the_workflow_and_it_is_continued_from_there(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runner = runner_of(tmp_path, runs)
    at_the_first_gate(runner)
    runner.abort()
    assert runner.wait(PATIENCE)
    run_id = runner.run_id
    assert runner.journal == runs / f"{run_id}.jsonl"
    assert runner.outcome() == f"workflow {run_id}: aborted · continue with `aeon-tui resume {runner.journal}`"
    assert [record["seq"] for record in runner.source.take(1)] == [
        record["seq"] for record in read_records(runs / f"{run_id}.jsonl")
    ]
    job = resume_workflow(runs / f"{run_id}.jsonl")
    again = Runner(job, job.journal_in(tmp_path))
    at_the_first_gate(again)
    first = wait_until(lambda: again.source.take(1))
    assert (first[0]["type"], "run_finished" in {record["type"] for record in first}) == ("run_started", False)
    again.abort()
    assert again.wait(PATIENCE)


@pytest.mark.parametrize("named", [".", "..", "../..", "../../..", "/"])
def test_a_journal_does_not_name_a_folder_around_its_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    clone = tmp_path / "home" / "src" / "clone"
    root = Path(os.path.normpath(clone / named))
    started = {"v": 1, "seq": 0, "ts": "2026-01-01T00:00:00Z", "run": "r", "type": "run_started", "task": "build it"}
    workflow = {"project_root": str(root), "transcript": "t.jsonl"}
    journal = clone / ".aeon" / "runs" / "r.jsonl"
    journal.parent.mkdir(parents=True)
    monkeypatch.chdir(clone)
    journal.write_text(json.dumps({**started, "model": "simulated:default", "workflow": workflow}) + "\n")
    if named == ".":
        assert resume_workflow(journal).project_root == clone
        return
    with pytest.raises(UsageError, match=r"belongs to another project, .*; to continue it there, add --project-root"):
        resume_workflow(journal)
    assert resume_workflow(journal, project_root=root).project_root == root


def test_a_workflow_in_the_default_place_is_named_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = runner_of(tmp_path, auto_approve=True, unsafe_bash=True)
    runner.start()
    assert runner.wait(PATIENCE)
    assert runner.outcome() == f"workflow {runner.run_id}: completed · see `aeon-tui show {runner.run_id}`"
    assert runner.exit_code == 0


def test_no_resume_command_is_shown_without_a_journal(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")
    runner = runner_of(tmp_path, tmp_path / "runs")
    at_the_first_gate(runner)
    assert runner.journal is None
    assert any("is not a folder" in each for each in runner.job.warnings)
    runner.abort()
    assert runner.wait(PATIENCE)
    assert runner.outcome() == f"workflow {runner.run_id}: aborted"


def test_errors_are_reported_before_the_workflow_starts(tmp_path: Path) -> None:
    runner = Runner(WorkflowJob(tmp_path / "gone", "x", model="simulated:default"), tmp_path / "r.jsonl")
    runner.start()
    assert runner.wait(PATIENCE)
    assert "is not a folder" in runner.outcome()
    assert (runner.exit_code, runner.ending()) == (2, None)
