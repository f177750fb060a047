"""A workflow in words (contract: browser, watch and show open a transcript)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from aeon_core.journal.reader import read_records
from aeon_tui.reports import workflow_report
from aeon_tui.reports.workflow_report import WorkflowReport, gate_items, items_of, whole_items
from aeon_tui.sources.workflow import WorkflowState
from tests.aeon_tui.workflows import Written, at_a_gate, completed, failed
from tests.sampling import sample
from tests.system2.workflows import REJECT, TASK, Case, SaidAtGates


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


def test_the_name_of_a_changed_file_takes_one_line() -> None:
    cost = {"input_tokens": 1, "output_tokens": 1, "cost_usd": 0.1}
    entry = {"type": "agent_complete", "agent": "executor", "cost": cost, "files_changed": ["a.py\nchanged: b.py"]}
    lines = [text for item in items_of(entry) for _, text in item.body if text.startswith("changed: ")]
    assert len(lines) == 1
    assert "\n" not in lines[0]


def test_a_retried_call_is_shown_once() -> None:
    error = {"error_type": "ThrottlingException", "message": "too many requests"}
    response = {"type": "api_response", "agent": "executor", "error": error, "retry_in_s": 2.0}
    note = {"type": "note", "kind": "retry", "agent": "executor", "message": "too many requests; retrying in 2 s"}
    assert [item.head for entry in (response, note) for item in items_of(entry)] == [
        "ThrottlingException · retrying in 2.0 s"
    ]


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("exit code 0\nstdout:\nexit code 1", "✔ Bash command=pytest · 4 ms"),
        (
            "[Parts of this look like instructions]\nexit code 1\nstdout:\n1 failed",
            "⚠ Bash command=pytest · exit code 1 · 4 ms",
        ),
        (
            "exit code -9 (ended by the time limit)",
            "⚠ Bash command=pytest · exit code -9 (ended by the time limit) · 4 ms",
        ),
    ],
)
def test_a_command_that_failed_is_shown_with_its_exit_code(result: str, shown: str) -> None:
    call = {"agent": "executor", "tool": "Bash", "args_summary": "command=pytest", "success": True, "duration_ms": 4.0}
    items = items_of({"type": "tool_exec", "input": {"command": "pytest"}, "result": result, **call})
    assert [f"{item.icon} {item.head}" for item in items] == [shown]


@pytest.mark.parametrize(
    ("status", "error", "shown"),
    [
        ("aborted", "aborted at gate 3 (design): nobody decided in time", ""),
        ("failed", "the credentials were refused", "failed: "),
    ],
)
def test_why_a_workflow_has_ended_follows_its_status(tmp_path: Path, status: str, error: str, shown: str) -> None:
    made = Written()
    made.end(status, 1, error=error)
    assert text_of(made, tmp_path).splitlines()[2] == f"status   {shown}{error}"


def test_a_workflow_is_shown_with_its_gates_agents_and_cost(tmp_path: Path) -> None:
    lines = text_of(completed(), tmp_path).splitlines()
    assert lines[0] == "workflow 20260102-030405"
    assert lines[2] == "status   completed"
    assert lines[4].endswith(" UTC, 01:01")
    assert lines[5] == "cost     $0.21, 5,000 tokens in, 400 out, 1 call"
    assert "◆ gate 0 scope          approved           spec/scope.md · 1 rejection" in lines
    assert "◇ gate 1 context                           spec/context.md" in lines
    assert any(line.startswith("✔ repo-governor         complete ") for line in lines)
    assert "○ executor" in lines


def test_skipped_and_halted_agents_and_hostile_text(tmp_path: Path) -> None:
    told = written(
        ("agent_skipped", {"agent": "mcp-toolsmith", "reason": "no tools"}),
        ("note", {"kind": "warning", "message": "a\nb"}),
        ("workflow_end", {"total_cost": {}, "duration_s": 1, "status": "cost_ceiling", "exit_code": 4}),
    )
    text = text_of(told, tmp_path)
    assert "task     build\\x1b[2J it with care\n" in text
    assert "status   cost ceiling\n" in text
    assert "⊘ mcp-toolsmith         skipped            no tools" in text
    assert "  ⊘ skipped · no tools" in text
    assert "warnings\n  a b" in text


def test_a_name_in_a_journal_is_no_markup_in_markdown(tmp_path: Path) -> None:
    path = tmp_path / "<b>`x`.jsonl"
    made = written(("agent_skipped", {"agent": "<img src=x> ![y](z)", "reason": "```\n<img src=x>"}))
    path.write_text("".join(f"{json.dumps(record)}\n" for record in made.records))
    tokens = MarkdownIt("commonmark").parse(WorkflowReport(path).render("md"))
    kinds = [(each.type, [child.type for child in each.children or ()]) for each in tokens]
    assert [kind for kind in kinds if kind[0] not in ("heading_open", "heading_close")] == [
        *[("inline", ["text"]), ("fence", [])] * 2
    ]


def test_the_question_of_a_waiting_workflow_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


ODD: list[Any] = [None, True, 7, 10**30, -1.5, 1e308, "text", [], ["a", None], {}, {"text": [3]}, [[{"path": 1}]]]


def fields_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each field of a record, those within others too; of a list's items the first."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, item in items:
        if path or key not in ("v", "seq", "type"):
            yield (*path, key)
            yield from fields_of(item, (*path, key)) if len(path) < 2 else ()


def with_field(record: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(record)
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def one_of_each(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first record of each kind."""
    kinds = {(each["type"], each.get("state"), each.get("point"), "error" in each): each for each in reversed(records)}
    return sorted(kinds.values(), key=lambda each: int(each["seq"]))


def read_in_every_form(records: list[dict[str, Any]], path: Path) -> None:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    report, state = WorkflowReport(path), WorkflowState()
    for record in records:
        for entry in state.apply(record):
            list(items_of(entry))
    assert report.text
    assert report.render("html")
    json.dumps(report.as_json(), allow_nan=False)
    for number in state.view.gates:
        gate_items(state, number)
    whole_items(state, state.status(live=False, reading=False), "")


@pytest.mark.parametrize(
    ("decisions", "order"),
    [
        ([("reject", "why"), ("", None)], ["✎ rejected", "◇ summary", "? waits"]),
        ([("reject", "why"), ("approve", None)], ["✎ rejected", "◇ summary", "◆ approved"]),
        ([("approve", None)], ["◇ summary", "◆ approved"]),
    ],
)
def test_the_summary_of_a_gate_precedes_only_the_decision_on_it(
    decisions: list[tuple[str, str | None]], order: list[str]
) -> None:
    made, state = Written(), WorkflowState()
    made.gate(0, "repo-governor", "spec/scope.md", *decisions)
    for record in made.records:
        state.apply(record)
    assert [" ".join([item.icon, *item.head.split()[:1]]) for item in gate_items(state, 0)] == order


@pytest.mark.parametrize("recorded", sample(["journal", "transcript"]))
def test_a_workflow_with_any_field_replaced_is_still_shown(recorded: str, tmp_path: Path) -> None:
    if recorded == "journal":
        result = Case(tmp_path, gate_policy=SaidAtGates({1: [(REJECT, "more")]})).orchestrator.run(TASK)
        assert result.journal is not None
        records = one_of_each(list(read_records(result.journal)))
    else:
        made = failed()
        made.gate(2, "executor", "spec/requirements.md")
        made.records[-1]["changes"] = [{"path": "a", "status": "changed", "diff": "-a", "added": 1, "removed": 0}]
        made.add("question", agent="executor", kind="bash", text="ls", state="decided", choices=["run"], choice="run")
        records = one_of_each(made.records)
    seen = set()
    for at, record in enumerate(records):
        for path in fields_of(record):
            place = (record["type"], record.get("state"), record.get("point"), *path)
            if place not in seen:
                seen.add(place)
                # One copy holds all the odd values one after the other: a record that cannot be read is left out.
                odd = (with_field(record, path, value) for value in ODD)
                read_in_every_form([*records[:at], *odd, *records[at + 1 :]], tmp_path / "odd.jsonl")
    assert len(seen) > 100
