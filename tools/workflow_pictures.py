"""The pictures of a workflow with simulated agents: at a gate, with a command to confirm, and at its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from aeon_core.journal.reader import read_records
from aeon_tui.app import AeonApp
from aeon_tui.screens.workflow.screen import WorkflowScreen
from aeon_tui.sessions.runner import Runner
from aeon_tui.sessions.workflow_session import WorkflowJob
from aeon_tui.sources.workflow import WorkflowState
from system2 import AutoApproveGatePolicy, Orchestrator
from tools.pictures import START, OpenQuestion, Picture, RecordedSource, Records, on_fixed_clock, showing

TASK = "build a REST API for invoices"
SHOWN_ROOT = "/home/ann/invoices"
_PROJECT = Path("workflow")
"""Relative to the working directory, which is the pictures' own while they are taken."""
_JOURNAL = Path("workflow.jsonl")


def record_workflow() -> None:
    """Run the whole workflow with simulated agents, and replace the times in its journal by fixed ones."""
    _PROJECT.mkdir(exist_ok=True)
    runs = _PROJECT / ".system2" / "runs"
    orchestrator = Orchestrator(_PROJECT, gate_policy=AutoApproveGatePolicy(), model="simulated:default", runs_dir=runs)
    result = orchestrator.run(TASK)
    assert result.journal is not None
    text = result.journal.read_text(encoding="utf-8").replace(str(_PROJECT.absolute()), SHOWN_ROOT)
    lines = [on_fixed_clock(json.loads(line), START) for line in text.splitlines()]
    _JOURNAL.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def _records() -> Records:
    return list(read_records(_JOURNAL))


def _screen(records: Records, asked: bool = False) -> AeonApp:
    runner = None
    if asked:
        runner = Runner(WorkflowJob(Path(SHOWN_ROOT), TASK), _JOURNAL)
        runner.broker = OpenQuestion(records[-1])
    last = datetime.fromisoformat(records[-1]["ts"])
    source = RecordedSource[WorkflowState](records, live=asked)
    return showing(WorkflowScreen(source, runner, clock=lambda: last + timedelta(seconds=1)))


def _at_a_gate() -> AeonApp:
    return _asked("gate", lambda subject: subject["gate"] == 1)


def _with_a_command() -> AeonApp:
    return _asked("approval", lambda subject: subject["tool_name"] == "Bash")


def _asked(kind: str, wanted: Callable[[dict[str, Any]], bool]) -> AeonApp:
    records = _records()
    asked = (i for i, each in enumerate(records) if each["type"] == kind and each["state"] == "asked")
    index = next(i for i in asked if wanted(records[i]["subject"]))
    return _screen(records[: index + 1], asked=True)


WORKFLOW_PICTURES = [
    Picture("workflow-gate", _at_a_gate, size=(120, 40)),
    Picture("workflow-command", _with_a_command, size=(120, 40)),
    Picture("workflow-done", lambda: _screen(_records()), size=(120, 36)),
    Picture("workflow-80x24", _at_a_gate, size=(80, 24)),
]
