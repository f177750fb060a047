"""Replay: the kernel repeats a recorded run from its own lines; no model, no tool, no network, no key (Decision 2)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from aeon_core.config.schema import RunConfig, hidden_options, recorded_config
from aeon_core.convergence import ConvergenceCriteria, load_criteria
from aeon_core.effects.replay_cursor import Difference, RecordingEnded, ReplayCursor, early_end, missing_outcome
from aeon_core.entities import RunResult
from aeon_core.errors import AeonError, ReplayMismatchError, ToolError, UsageError
from aeon_core.journal.listing import find_run
from aeon_core.journal.reader import head
from aeon_core.journal.records import Record, RunStarted
from aeon_core.journal.recovery import sound_records
from aeon_core.journal.summary import is_workflow_start
from aeon_core.journal.writer import LineListener
from aeon_core.json_safe import json_safe
from aeon_core.kernel.progress import Checkpoint
from aeon_core.llm.base import LLMAdapter, as_adapter
from aeon_core.memory import InMemoryStore, Memory
from aeon_core.plan.files import load_requirements
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import given_plan
from aeon_core.runs.factory import as_config, as_registry, is_model_name, with_model_name
from aeon_core.runs.orchestrator import Orchestrator
from aeon_core.runs.setup import RunStart, check_arguments, check_task
from aeon_core.suggest import check_type, first_problem
from aeon_core.tools.base import Effect, Tool, Tools
from aeon_core.tools.registry import ToolRegistry

_PLACES = frozenset({"criteria", "project_root", "prompts_dir", "requirements", "runs_dir"})
"""Options that say where something is."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The outcome of a replay. `result` is None if the recorded run had not ended, or if the replay differs.

    `difference` is the first place where the kernel does not do what was recorded; None if there is none.
    """

    run_id: str
    records: int
    """How many emitted records match the recording."""
    result: RunResult | None
    difference: Difference | None


class ComparedLines(ReplayCursor):
    """Recorded lines, compared with what a later version emits.

    Of a run's options, only recorded ones and those in `request.options` are compared, since a later version has more
    of them, with defaults. Folders and files may be elsewhere: their content is in the records. A fork's start is taken
    from its line, whatever it holds.
    """

    def __init__(self, lines: Iterable[Mapping[str, Any]], request: RunRequest | None = None) -> None:
        super().__init__(lines)
        self._request = request

    def expect(self, record: Record) -> int:
        if isinstance(record, RunStarted):
            recorded = self.first["config"]
            given = self._request.config.model_fields_set if self._request is not None else set()
            now = {key: value for key, value in record.config.items() if key in given}
            compared = {**now, **_those_in(recorded, record.config), **hidden_options(recorded)}
            places = {key: recorded[key] for key in _PLACES if key in recorded}
            compared = {**{key: value for key, value in compared.items() if key not in _PLACES}, **places}
            begins = self._request.begins if self._request is not None else {}
            record = record.model_copy(update={"config": compared, "start": self.first.get("start"), **begins})
        return super().expect(record)


def _those_in(recorded: Any, now: Any) -> Any:
    if not isinstance(recorded, dict) or not isinstance(now, dict):
        return now
    return {key: _those_in(recorded[key], value) for key, value in now.items() if key in recorded}


class RecordedTool(Tool):
    """A tool as a journal describes it; its results are in the journal, and it is never called."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        self.name: str = str(described["name"])
        self.description: str = str(described["description"])
        self.input_schema: dict[str, Any] = described["input_schema"]
        self.output_schema: dict[str, Any] = described["output_schema"]
        self.effect: Effect = described["effect"]
        self.examples: tuple[dict[str, Any], ...] = described["examples"]

    def invoke(self, **_arguments: Any) -> Any:
        raise ToolError(f"{self.name!r} is a recorded tool; it cannot be called", tool_name=self.name)


class RunRequest:
    """A run that would be started now: the arguments of an Orchestrator and its `run`, with the same defaults.

    The model is not connected, and no tool is called. Raises AeonError for arguments of the wrong type.
    """

    def __init__(
        self,
        task: str,
        llm: LLMAdapter | str | Sequence[str] | None = None,
        tools: Tools | None = None,
        memory: Memory | None = None,
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        plan: Plan | Mapping[str, Any] | None = None,
        criteria: ConvergenceCriteria | None = None,
        requirements: Sequence[str] | None = None,
    ) -> None:
        check_task(task)
        given_plan(plan)
        check_arguments(memory=memory, criteria=criteria, requirements=requirements)
        model = llm if llm is None or is_model_name(llm) else as_adapter(llm)
        self.task: str = task
        self.plan: Plan | Mapping[str, Any] | None = plan
        config = with_model_name(model, as_config(config))
        self.config: RunConfig = config
        self.memory: Memory = memory if memory is not None else InMemoryStore()
        if criteria is None and config.criteria is not None:
            criteria = load_criteria(config.criteria)
        if requirements is None and config.requirements is not None:
            requirements = load_requirements(config.requirements)
        self.criteria = criteria
        # Tools that the options name may need a server.
        self.tools: ToolRegistry | None = None if tools is None and config.tools else as_registry(tools, config)
        self.begins: dict[str, Any] = {
            "memory": {key: json_safe(value) for key, value in self.memory.search("")},
            "requirements": list(requirements) if requirements else None,
        }
        """The part of the run's first record that the kernel does not get."""
        if isinstance(model, LLMAdapter):
            self.begins["model"] = model.model


def replay(run: Path | str, on_line: LineListener | None = None, request: RunRequest | None = None) -> Replay:
    """Run the kernel over the recorded effects of a run, and return whether it does what was recorded.

    `run` is a run id, a unique prefix of one, a path to a journal, or `last`. Every record that the kernel emits is
    compared, except for times, durations and versions; with a `request`, what would be run now is compared too, and a
    plan and an InMemoryStore given with it end up as recorded; another store is not written to. `on_line` gets each
    record as it is emitted. Raises UsageError if there is no such run, or its journal is damaged or lacks what a replay
    needs.
    """
    if request is not None:
        check_type(request, RunRequest, "the request")
    return replay_lines(recorded_lines(journal_of(run)), on_line, request)


def replay_lines(
    lines: list[dict[str, Any]], on_line: LineListener | None = None, request: RunRequest | None = None
) -> Replay:
    """Return the same for records that were already read: all of a run's from `run_started` on, long texts in full."""
    started = lines[0]
    cursor = ComparedLines(lines, request)
    tools = request.tools.export_tools_for_llm() if request is not None and request.tools is not None else None
    orchestrator = Orchestrator(
        None,
        recorded_tools(started if tools is None else {"tools": tools}),
        request.memory if request is not None else None,
        request.config if request is not None else recorded_config(started),
        recorded=cursor,
        on_line=on_line,
        criteria=request.criteria if request is not None else recorded_criteria(started),
        start=recorded_start(started),
    )
    task, plan = (request.task, request.plan) if request is not None else (started["task"], given_plan_of(lines))
    return replayed(cursor, lambda: orchestrator.run(task, plan))


def replayed(cursor: ReplayCursor, run: Callable[[], RunResult]) -> Replay:
    """Return the outcome of a replay; `run` emits the records that the cursor compares."""
    result = None
    with contextlib.suppress(RecordingEnded, ReplayMismatchError):
        result = run()
    difference = cursor.difference
    if difference is None and (line := cursor.peek()) is not None:
        difference = early_end(line) if result is not None else missing_outcome(line)
    return Replay(str(cursor.first["run"]), cursor.passed, None if difference else result, difference)


def journal_of(run: Path | str) -> Path:
    """Return the journal of a run, as `find_run` does. Raises UsageError for a workflow too."""
    if is_workflow_start(head(path := find_run(run)) or {}):
        raise UsageError(f"{path.stem!r} is a workflow, not a run; system2 or the command aeon-tui can continue it")
    return path


def recorded_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a journal, long texts in full. Raises UsageError if any of them cannot be read."""
    return list(sound_records(path))


def recorded_criteria(started: Mapping[str, Any]) -> ConvergenceCriteria | None:
    """Return the convergence criteria that a run was started with, None for the defaults. Raises UsageError."""
    if (found := started.get("criteria")) is None:
        return None
    return ConvergenceCriteria.model_validate(found, context="the convergence criteria in the journal")


def recorded_start(started: Mapping[str, Any]) -> RunStart | None:
    """Return where a fork began, None for any other run. Raises UsageError if that cannot be read."""
    if (parent := started.get("parent")) is None:
        return None
    try:
        checkpoint = Checkpoint.model_validate(started["start"]) if started.get("start") is not None else None
    except ValidationError as error:
        raise UsageError(f"cannot read where the fork starts: {first_problem(error)}") from None
    return RunStart(checkpoint, dict(started["memory"]), dict(parent))


def note_memory(held: dict[str, Any], line: Mapping[str, Any]) -> None:
    """Apply a `memory` line to the entries."""
    held[line["key"]] = line["value"]
    if line["value"] is None and line["source"] == "external":
        del held[line["key"]]


def recorded_tools(started: Mapping[str, Any]) -> ToolRegistry:
    """Return a registry of the tools that a run had; they have descriptions but cannot be called."""
    registry = ToolRegistry()
    try:
        for described in started["tools"]:
            registry.register(RecordedTool(described))
    except KeyError as missing:
        raise UsageError(f"cannot read the tools in the journal: one of them has no {missing}") from None
    except (AeonError, TypeError) as error:
        raise UsageError(f"cannot read the tools in the journal: {error}") from None
    return registry


def given_plan_of(lines: list[dict[str, Any]]) -> Plan | None:
    """Return the plan that the run was given, None if the model made it. Its problems are recorded again."""
    if (given := lines[0].get("plan")) is None:
        return None
    try:
        return Plan.model_validate(given).cut_at(lines[0].get("plan_cut") or ())
    except ValidationError:
        raise UsageError("cannot read the plan that the run was given") from None
