"""A workflow in words (contract: browser, watch and show open a transcript)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_tui.reports import workflow_report
from aeon_tui.reports.workflow_report import WorkflowReport
from tests.aeon_tui.workflows import Written, at_a_gate, completed


def written(*entries: tuple[str, dict[str, Any]]) -> Written:
    made = Written()
    made.records[0]["task"] = "build\x1b[2J it\nwith care"
    for kind, fields in entries:
        made.add(kind, **fields)
    return made


def text_of(made: Written, folder: Path) -> str:
    path = folder / "20260102-030405.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in made.records))
    return WorkflowReport(path).text


def test_a_workflow_is_shown_with_its_gates_agents_and_cost(tmp_path: Path) -> None:
    lines = text_of(completed(), tmp_path).splitlines()
    assert lines[0] == "workflow 20260102-030405"
    assert lines[2] == "status   completed"
    assert lines[4].endswith(" UTC, 01:01")
    assert lines[5] == "cost     $0.21, 5,000 tokens in, 400 out, 1 call"
    assert "◆ gate 0 scope          approved           spec/scope.md · 1 rejection" in lines
    assert "◇ gate 1 context                           spec/context.md" in lines
    assert any(line.startswith("✔ repo-governor         complete ") for line in lines)
    assert "○ executor              waiting" in lines


def test_who_was_skipped_or_halted_and_what_a_model_says_to_spoil_a_screen(tmp_path: Path) -> None:
    told = written(
        ("agent_skipped", {"agent": "mcp-toolsmith", "reason": "no tools"}),
        ("note", {"kind": "warning", "message": "a\nb"}),
        ("workflow_end", {"total_cost": {}, "duration_s": 1, "status": "cost_ceiling", "exit_code": 4}),
    )
    text = text_of(told, tmp_path)
    assert "task     build\\x1b[2J it with care\n" in text
    assert "status   cost ceiling\n" in text
    assert "⊘ mcp-toolsmith         skipped            no tools" in text
    assert "warnings\n  a b" in text


def test_what_a_workflow_waits_for_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def status_of(made: Written) -> str:
        return text_of(made, tmp_path).splitlines()[2]

    made = written()
    assert status_of(made) == "status   interrupted"
    monkeypatch.setattr(workflow_report, "is_being_written", lambda _: True)
    assert status_of(made) == "status   running"
    assert status_of(at_a_gate()) == "status   waiting for a decision"
    assert "? gate 1 context        waits " in text_of(at_a_gate(), tmp_path)
    asked = {"kind": "bash", "text": "make test", "state": "asked", "choices": ["refuse", "run"]}
    made.add("question", agent="executor", **asked)
    assert status_of(made) == "status   waiting for a decision: make test"
