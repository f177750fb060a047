"""A workflow in words (contract: browser, watch and show open a transcript)."""

from __future__ import annotations

from typing import Any

from system2.transcript_renderer import render_transcript
from system2.view import WorkflowView, view_of
from tests.aeon_tui.workflows import Written, at_a_gate, completed


def written(*entries: tuple[str, dict[str, Any]]) -> Written:
    made = Written()
    made.records[0]["task"] = "build\x1b[2J it\nwith care"
    for kind, fields in entries:
        made.add(kind, **fields)
    return made


def status_of(view: WorkflowView, *, is_live: bool = True) -> str:
    return render_transcript(view, is_live=is_live).splitlines()[2]


def test_a_workflow_is_shown_with_its_gates_agents_and_cost() -> None:
    lines = render_transcript(view_of(completed().records), is_live=False).splitlines()
    assert lines[0] == "workflow 20260102-030405"
    assert lines[2] == "status   completed"
    assert lines[4].endswith(" UTC, 1m 1s")
    assert lines[5] == "cost     $0.21, 5,000 tokens in, 400 out, 1 call"
    assert "  0 scope         approved after 1 rejection" in lines
    assert "  1 context       ahead" in lines
    assert "  ✔ repo-governor          repo-governor is done." in lines
    assert "  ○ executor               waiting" in lines


def test_who_was_skipped_or_halted_and_what_a_model_says_to_spoil_a_screen() -> None:
    told = written(
        ("agent_skipped", {"agent": "mcp-toolsmith", "reason": "no tools"}),
        ("note", {"kind": "warning", "message": "a\nb"}),
        ("workflow_end", {"total_cost": {}, "duration_s": 1, "status": "cost_ceiling", "exit_code": 4}),
    )
    text = render_transcript(view_of(told.records), is_live=False)
    assert "task     build\\x1b[2J it\n" in text
    assert "status   cost ceiling reached\n" in text
    assert "  ⊘ mcp-toolsmith          skipped: no tools" in text
    assert text.endswith("warnings\n  a")


def test_what_a_workflow_waits_for_is_shown() -> None:
    made = written()
    assert status_of(view_of(made.records)) == "status   running"
    assert status_of(view_of(made.records), is_live=False) == "status   interrupted"
    assert status_of(view_of(at_a_gate().records)) == "status   waiting at gate 1 (context)"
    asked = {"kind": "bash", "text": "make test", "state": "asked", "choices": ["refuse", "run"]}
    made.add("question", agent="executor", **asked)
    assert status_of(view_of(made.records)) == "status   waiting for an answer: make test"
