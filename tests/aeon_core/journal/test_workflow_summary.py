"""What a list shows of a workflow's transcript, from its ends alone."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core.journal.listing import CACHE, list_runs
from aeon_core.journal.reader import head
from aeon_core.journal.summary import summarise

START = {"task": "build it", "model": "simulated:default", "config": {}, "simulated": True}
END = {"total_cost": {"cost_usd": 0.42}, "duration_s": 1.0, "status": "failed", "exit_code": 1}


def written(folder: Path, *records: tuple[str, dict[str, Any]], name: str = "20260102-030405") -> Path:
    path = folder / f"{name}.jsonl"
    lines = []
    for seq, (kind, fields) in enumerate([("workflow_start", START), *records]):
        envelope = {"v": 1, "seq": seq, "ts": f"2026-01-02T03:04:{seq:02}.000000Z", "run": name, "type": kind}
        lines.append(json.dumps({**envelope, **fields}) + "\n")
    path.write_text("".join(lines))
    return path


def test_the_head_of_a_transcript_is_its_start(tmp_path: Path) -> None:
    first = head(written(tmp_path))
    assert first is not None
    assert (first["type"], first["task"]) == ("workflow_start", "build it")


def test_an_ended_workflow_has_status_and_cost(tmp_path: Path) -> None:
    run = summarise(written(tmp_path, ("workflow_end", END)))
    assert run is not None
    assert (run.kind, run.task, run.status, run.cost_usd) == ("workflow", "build it", "failed", 0.42)
    assert (run.passes, run.ended, run.waits_for) == (0, True, "")
    assert "kind" not in run.as_dict()


@pytest.mark.parametrize(
    ("record", "waits_for"),
    [
        (("gate_asked", {"gate": 2, "artifact": "a", "summary": ""}), "gate 2"),
        (("question", {"kind": "bash", "state": "asked", "text": "ls"}), "bash"),
        (("question", {"kind": "cost_ceiling", "state": "asked", "text": ""}), "cost ceiling"),
        (("question", {"kind": "bash", "state": "decided", "text": "ls"}), ""),
        (("gate_decision", {"gate": 2, "decision": "approve"}), ""),
    ],
)
def test_a_waiting_workflow_names_its_question(
    tmp_path: Path, record: tuple[str, dict[str, Any]], waits_for: str
) -> None:
    path = written(tmp_path, record)
    run = summarise(path)
    assert run is not None
    assert (run.status, run.waits_for) == ("interrupted", waits_for)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert (live := summarise(path)) is not None
        assert live.status == "running"


def test_a_continued_workflow_has_not_ended(tmp_path: Path) -> None:
    run = summarise(written(tmp_path, ("workflow_end", END), ("workflow_resumed", {"config": {}, "model": "m"})))
    assert run is not None
    assert (run.status, run.ended) == ("interrupted", False)


def test_a_list_holds_workflows_also_from_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_core.journal.listing.ENOUGH", 1)
    written(tmp_path, ("workflow_end", END))
    first = list_runs(tmp_path)
    assert (tmp_path / CACHE).is_file()
    assert [run.kind for run in list_runs(tmp_path)] == [run.kind for run in first] == ["workflow"]
