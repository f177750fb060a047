"""The pictures of a workflow that the simulated agents have done: at a gate, with a command to confirm, at its end."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from aeon_core.errors import AeonError
from aeon_core.journal.reader import read_records
from aeon_tui.app import AeonApp
from aeon_tui.screens.workflow.screen import WorkflowScreen
from aeon_tui.sessions.workflow_broker import PendingQuestion, WorkflowBroker
from aeon_tui.sessions.workflow_session import WorkflowRequest, WorkflowRunner
from aeon_tui.sources.workflow import Taken
from system2 import AutoApproveGates, Orchestrator
from tools.pictures import START, Picture, Records, on_fixed_clock, showing

TASK = "build a REST API for invoices"
SHOWN_ROOT = "/home/ann/invoices"
_PROJECT = Path("workflow")
"""Below the working directory, which is the pictures' own meanwhile."""
_TRANSCRIPT = Path("workflow.jsonl")


class RecordedWorkflowSource:
    """Entries of a transcript that are there already."""

    def __init__(self, records: Records, live: bool) -> None:
        self.error: AeonError | None = None
        self.damage: list[str] = []
        self.reading = False
        self.path: Path | None = None
        self.live = live
        self._records = records

    def take(self, seconds: float) -> Taken:  # noqa: ARG002  # a source is given a time limit
        """Return all there are, once."""
        records, self._records = self._records, []
        return Taken(records)

    def close(self) -> None:
        """Nothing is open."""


class _Still(WorkflowBroker):
    """A broker at which one question waits, and nobody answers."""

    def __init__(self, asked: PendingQuestion) -> None:
        super().__init__(_PROJECT)
        self._waiting = asked


def record_workflow() -> None:
    """Have the simulated agents do the whole workflow, and keep its transcript on the fixed clock."""
    _PROJECT.mkdir(exist_ok=True)
    result = Orchestrator(_PROJECT, gate_policy=AutoApproveGates(), model="simulated:default").run(TASK)
    assert result.transcript_path is not None
    text = result.transcript_path.read_text(encoding="utf-8").replace(str(_PROJECT.absolute()), SHOWN_ROOT)
    lines = [on_fixed_clock(json.loads(line), START) for line in text.splitlines()]
    _TRANSCRIPT.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def _records() -> Records:
    return list(read_records(_TRANSCRIPT, plans=False))


def _screen(records: Records, asked: PendingQuestion | None = None) -> AeonApp:
    runner = None
    if asked is not None:
        runner = WorkflowRunner(WorkflowRequest(Path(SHOWN_ROOT), TASK))
        runner.broker = _Still(asked)
    last = datetime.fromisoformat(records[-1]["ts"])
    source = RecordedWorkflowSource(records, live=asked is not None)
    return showing(WorkflowScreen(source, runner, clock=lambda: last + timedelta(seconds=1)))


def _at_a_gate() -> AeonApp:
    records = _records()
    index = next(i for i, each in enumerate(records) if each["type"] == "gate_asked" and each["gate"] == 1)
    gate = records[index]
    content = (_PROJECT / gate["artifact"]).read_text(encoding="utf-8")
    return _screen(
        records[: index + 1], PendingQuestion(1, "gate", gate["summary"], gate["gate"], gate["artifact"], content)
    )


def _with_a_command() -> AeonApp:
    records = _records()
    index = next(i for i, each in enumerate(records) if each["type"] == "question" and each["kind"] == "bash")
    return _screen(records[: index + 1], PendingQuestion(1, "bash", records[index]["text"]))


WORKFLOW_PICTURES = [
    Picture("workflow-gate", _at_a_gate, size=(120, 40)),
    Picture("workflow-command", _with_a_command, size=(120, 40)),
    Picture("workflow-done", lambda: _screen(_records()), size=(120, 36)),
    Picture("workflow-80x24", _at_a_gate, size=(80, 24)),
]
