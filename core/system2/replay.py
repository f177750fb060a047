"""Replays a workflow: its program runs on the recorded lines, without a model, tool or file (Decision 2)."""

from __future__ import annotations

from pathlib import Path

from aeon_core.config.schema import recorded_config
from aeon_core.effects.port import Effects
from aeon_core.effects.replay_cursor import RecordedModel
from aeon_core.entities import RunResult
from aeon_core.journal.records import RunStarted
from aeon_core.journal.writer import JournalWriter, LineListener
from aeon_core.runs.replay import ComparedLines, Replay, recorded_lines, recorded_tools, replayed
from system2.context import WorkflowContext
from system2.cost import CostRecord
from system2.session import RETRIES
from system2.settings import recorded_settings
from system2.workflow import Program
from system2.workflow_journal import first_record


def replay(path: Path, on_line: LineListener | None = None) -> Replay:
    """Replay a workflow's journal, and return whether the program still does what was recorded.

    `on_line` gets each record as it is emitted. Raises UsageError if the file is not a sound workflow's journal.
    """
    first_record(path)
    lines = recorded_lines(path)
    started = RunStarted.model_validate(lines[0])
    assert started.workflow is not None
    cursor = ComparedLines(lines)
    journal = JournalWriter(None, lines[0]["run"], on_line)
    registry = recorded_tools(lines[0])
    spent: list[CostRecord] = []
    effects = Effects(
        journal,
        llm=RecordedModel(cursor),
        config=recorded_config(lines[0]),
        recorded=cursor,
        tools=registry,
        retries=RETRIES,
        on_cost=lambda *call: spent.append(CostRecord.of_call(*call)),
    )
    root, settings = Path(started.workflow["project_root"]), recorded_settings(started.workflow)
    program = Program(WorkflowContext(root, settings, effects, registry, spent), started, lines[0]["run"])

    def run() -> RunResult:
        program.run()
        return program.ending

    return replayed(cursor, run)
