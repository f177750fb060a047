"""The arguments of an Orchestrator, validated once; opens each run and passes it to the kernel."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from aeon_core.approvals import Approver
from aeon_core.config.journal_trust import needs_consent, remembers_run
from aeon_core.config.schema import RunConfig, configured_secrets, runs_directory
from aeon_core.convergence import ConvergenceCriteria, load_criteria
from aeon_core.effects.model_calls import adapters_of
from aeon_core.effects.outcomes import are_in_use
from aeon_core.effects.port import Effects
from aeon_core.effects.replay_cursor import RecordedModel, ReplayCursor
from aeon_core.effects.secret_recovery import RunSecrets
from aeon_core.entities import RunResult
from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.records import RunResumed
from aeon_core.journal.writer import JournalWriter, LineListener, as_dicts, fan_out, logger, open_journal
from aeon_core.json_safe import clean_text, json_safe
from aeon_core.kernel.executor import Executor
from aeon_core.kernel.orchestrator import Loop
from aeon_core.kernel.progress import Checkpoint, RunProgress, located, run_started
from aeon_core.kernel.state import OrchestrationState
from aeon_core.llm.base import LLMAdapter
from aeon_core.memory import InMemoryStore, Memory
from aeon_core.plan.files import load_requirements
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan, given_plan
from aeon_core.prompts import check_prompts
from aeon_core.redaction import SecretVault, environment_secrets, holds_token, names_in, protect
from aeon_core.runs.factory import as_config, as_model, as_registry
from aeon_core.schemas import schema
from aeon_core.suggest import check_type
from aeon_core.tools.base import Tools
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.schema import describe

_EXCHANGED = ("Plan", "TaskProfile", "RefinementAction", "ValidationIssue", "LLMResponse", "ToolCall", "RunResult")
"""Entities with fields that models write and people see."""


@dataclass(frozen=True)
class RunStart:
    """The start of a run that does not begin with its task: a fork, or a run resumed after a pass (Decision 2).

    A fork has `parent`: `run_id`, `pass`, and whether its plan was `edited`; a resumed run has `last_pass`: the line of
    its last pass.
    """

    checkpoint: Checkpoint | None
    memory: dict[str, Any] = field(default_factory=dict)
    parent: dict[str, Any] | None = None
    last_pass: Mapping[str, Any] | None = None

    def record_fields(self) -> dict[str, Any]:
        """Return its form in `run_started`."""
        checkpoint = self.checkpoint
        start = checkpoint.model_dump(mode="json", exclude_none=True) if checkpoint is not None else None
        for key in ("answers", "allowed"):
            if start is not None and not start[key]:
                del start[key]  # as in the journals of earlier versions
        return {"parent": self.parent, "start": start}


class RunSetup:
    """An Orchestrator's arguments as its runs use them. Raises UsageError if one has the wrong type."""

    def __init__(
        self,
        llm: LLMAdapter | str | Sequence[str] | None = None,
        tools: Tools | None = None,
        memory: Memory | None = None,
        config: RunConfig | Mapping[str, Any] | None = None,
        approver: Approver | None = None,
        journal: JournalWriter | Path | str | Literal[False] | None = None,
        on_record: Callable[[dict[str, Any]], None] | None = None,
        *,
        on_line: LineListener | None = None,
        on_delta: Callable[[str, str | None, str], None] | None = None,
        recorded: ReplayCursor | None = None,
        criteria: ConvergenceCriteria | None = None,
        requirements: Sequence[str] | None = None,
        resumed: RunResumed | None = None,
        start: RunStart | None = None,
        secrets: RunSecrets | None = None,
    ) -> None:
        check_arguments(
            memory=memory,
            approver=approver,
            journal=journal,
            on_record=on_record,
            on_line=on_line,
            on_delta=on_delta,
            criteria=criteria,
            requirements=requirements,
        )
        check_type(recorded, ReplayCursor | None, "recorded")
        check_type(resumed, RunResumed | None, "resumed")
        check_type(start, RunStart | None, "start")
        check_type(secrets, RunSecrets | None, "secrets")
        if llm is None and recorded is not None:
            llm = RecordedModel(recorded)
        self.llm: LLMAdapter
        self.config: RunConfig
        self.llm, self.config = as_model(llm, as_config(config), renames=recorded is None)
        self.tools: ToolRegistry = as_registry(tools, self.config)
        self.memory: Memory = memory if memory is not None else InMemoryStore()
        self.state: OrchestrationState | None = None
        """The state of the current or last run (core FR-011)."""
        self._approver = approver
        self._journal = journal
        self._on_record = on_record
        self._listener = fan_out([on_line, as_dicts(on_record)])
        self._on_delta = on_delta
        self._recorded = recorded
        self._criteria = criteria
        self._requirements = requirements
        self._resumed = resumed
        self._start = start
        if recorded is None:
            self._warn_of_unused()
        self._secrets = secrets if secrets is not None else RunSecrets(run_vault(self.llm, self.tools, self.config))
        self.effects: Effects | None = None
        """The port of the current run."""

    def _warn_of_unused(self) -> None:
        """Warn of options that commands act on, and that do nothing without the caller's part."""
        if self.config.otel and self._on_record is None:
            logger.warning(
                "'otel' sends nothing without a listener; pass on_record=otel_listener() of aeon_core.telemetry"
            )
        if self.config.wait and self._approver is None:
            logger.warning("'wait' has no effect without an approver; pass approver=, a function that decides")

    def close(self) -> None:
        """Release what `Orchestrator.close` says."""
        shared = self.effects is None and are_in_use(adapters_of(self.llm))
        for held in (None if shared else self.llm, self.tools, self._on_record):
            if close := getattr(held, "close", None):
                close()

    def run(
        self,
        task: str,
        plan: Plan | Mapping[str, Any] | None,
        listener: LineListener | None,
        abort_asked: threading.Event,
    ) -> RunResult:
        """Run a task as `Orchestrator.run` does; `listener` also gets its lines."""
        check_task(task)
        given, recorded, start = given_plan(plan), self._recorded, self._start
        task, criteria, requirements = self._inputs(clean_text(task))
        journal = self._open_journal(fan_out([self._listener, listener]))
        journal.redact = self._secrets.vault.redact_json
        try:
            redacted_plan = self._conceal_plan(given) if given is not None else None
            begun = start.memory if start is not None and start.parent is not None and recorded is None else {}
            effects = Effects(
                journal,
                llm=self.llm,
                memory=self.memory,
                approver=self._approver,
                recorded=recorded,
                config=self.config,
                on_delta=self._on_delta,
                resumed=self._resumed,
                secrets=self._secrets,
                tools=self.tools,
                unstored=self._begin_with(begun),
            )
            self.effects = effects
            if abort_asked.is_set():
                effects.abort()
            if start is not None and start.last_pass is not None:
                effects.restore_checkpoint(start.last_pass, start.memory)
            self.state = OrchestrationState(ttl_remaining=self.config.ttl)
            executor = Executor(effects, self.state, self.tools, self.config)
            place = journal.path if recorded is None or journal.path is not None else recorded.journal
            progress = RunProgress(
                run_id=journal.run_id,
                journal=clean_text(str(place)) if place is not None else None,
                model=self.llm.model if recorded is None else recorded.first["model"],
                simulated=self.llm.simulated if recorded is None else recorded.first.get("simulated") is True,
                criteria=criteria.model_dump(mode="json") if criteria is not None else None,
                requirements=requirements,
                given_plan=redacted_plan,
                plan_cut=given.cut if given is not None else (),
            )
            checkpoint = start.checkpoint if start is not None else None
            with effects.in_use():
                self._announce(task, executor, progress)
                result = located(Loop(task, given, executor, progress, criteria, checkpoint).run(), journal)
                if holds_token(result.model_dump_json()):
                    result = RunResult.model_validate(self._secrets.shown(result.model_dump(mode="json")))
            return result
        finally:
            if given is not None:
                _restore_into(given, self._secrets.shown(dump_plan(given)))
            journal.close()

    def _inputs(self, task: str) -> tuple[str, ConvergenceCriteria | None, list[str]]:
        """Return the task, the criteria and the given requirements without secrets; in a replay, as recorded.

        Raises UsageError if a file cannot be used.
        """
        criteria, requirements = self._criteria, self._requirements
        if self._recorded is not None:
            return task, criteria, list(self._recorded.first.get("requirements") or ())
        if criteria is None and self.config.criteria is not None:
            criteria = load_criteria(self.config.criteria)
        if requirements is None and self.config.requirements is not None:
            requirements = load_requirements(self.config.requirements)
        if self.config.prompts_dir is not None:
            check_prompts(self.config.prompts_dir)
        if self._start is None:
            # In any other run, it comes from a journal.
            task = self._secrets.conceal(task)
        concealed_requirements = self._secrets.conceal_edited(list(requirements or ()))
        if criteria is not None:
            data = criteria.model_dump(mode="json")
            if (concealed := self._secrets.conceal_edited(data)) is not data:
                criteria = ConvergenceCriteria.model_validate(concealed)
        return task, criteria, concealed_requirements

    def _conceal_plan(self, given: Plan) -> dict[str, Any]:
        """Replace the secrets in a given plan with tokens while it runs; return it as it is recorded.

        Raises UsageError if a new run's plan holds a token whose secret is unknown.
        """
        data = dump_plan(given)
        if self._recorded is not None:
            return data
        concealed = self._secrets.conceal_edited(data)
        lost = None if self._start is not None else next(self._secrets.lost_in(concealed), None)
        if lost is not None:
            raise UsageError(f"the plan contains {lost}, a placeholder for an unknown secret; put the secret there")
        if concealed is not data:
            _restore_into(given, concealed)
        return dump_plan(given)

    def _announce(self, task: str, executor: Executor, progress: RunProgress) -> None:
        """Write the run's first record and move the run to its start; a run that continues after a pass already has
        one. Raises UsageError if it cannot be written.
        """
        start = self._start
        if start is None or start.parent is not None:
            fork = start.record_fields() if start is not None else {}
            try:
                executor.effects.emit(run_started(task, self.config, executor.effects, self.tools, progress, fork))
            except JournalError as failure:
                raise UsageError(failure.message) from None
        if start is not None and start.checkpoint is not None:
            start.checkpoint.restore(executor.state, progress, executor)
            if start.parent is not None:
                progress.forked = "edited" if start.parent.get("edited") else "given"

    def _begin_with(self, memory: Mapping[str, Any]) -> dict[str, Any]:
        """Fill the memory with its initial entries; return those it cannot hold yet because a secret is missing.

        Existing entries are left alone. Raises UsageError if the store refuses.
        """
        unstored: dict[str, Any] = {}
        try:
            for key, value in memory.items():
                if any(self._secrets.lost_in([key, value])):
                    unstored[key] = value
                    continue
                name = self._secrets.shown(key)
                if self._secrets.conceal(json_safe(self.memory.read(name))) != value:
                    self.memory.write(name, json_safe(self._secrets.shown(value)))
        except Exception as error:
            raise UsageError(f"the memory rejects what the fork starts with: {error}") from None
        return unstored

    def _open_journal(self, listener: LineListener | None) -> JournalWriter:
        if isinstance(self._journal, JournalWriter):
            return self._journal
        if self._recorded is not None:
            return JournalWriter(None, self._recorded.first["run"], listener)
        if self._journal is not False and needs_consent(self.config):
            # Whoever starts a run here may continue it.
            listener = fan_out([listener, remembers_run()])
        return open_journal(self._journal, partial(runs_directory, self.config), listener)


def run_vault(llm: LLMAdapter, tools: ToolRegistry, config: RunConfig) -> SecretVault:
    """Return a run's secrets, from the environment and the configuration. A replay has none, since it performs
    nothing.
    """
    if isinstance(llm, RecordedModel):
        return SecretVault()
    configured = list(configured_secrets(config))
    protect(configured)
    return SecretVault(
        [*environment_secrets(), *configured], lambda: names_in(tools.export_tools_for_llm()) | _names_of_types()
    )


@cache
def _names_of_types() -> frozenset[str]:
    return names_in([*map(schema, _EXCHANGED)])


def _restore_into(plan: Plan, dumped: Mapping[str, Any]) -> None:
    """Restore a dumped plan in place; unchanged steps remain the same objects."""
    if dump_plan(plan) != dumped:
        other = Plan.model_validate(dumped)
        plan.goal, plan.steps[:] = other.goal, other.steps


def check_task(task: Any) -> None:
    """Raise UsageError if this is not a task: text that is not blank."""
    if not isinstance(task, str) or not task.strip():
        raise UsageError(f"the task is {task!r}; expected non-empty text")


def check_arguments(**given: Any) -> None:
    """Raise UsageError, which says what to write, if an argument of an Orchestrator has the wrong type."""
    for name, value in given.items():
        if value is None:
            continue
        fits, expected = _EXPECTED[name]
        if not fits(value):
            raise UsageError(f"{name} is {describe(value)}; write {expected}")
        methods = {f"{each!r} of {name}": getattr(value, each) for each in _METHODS} if name == "memory" else {}
        for what, called in {name: value, **methods}.items():
            if inspect.iscoroutinefunction(called):
                raise UsageError(
                    f"{what} is async, expected a plain function; run the coroutine inside it with asyncio.run"
                )


def _is_store(value: Any) -> bool:
    return not isinstance(value, type) and all(callable(getattr(value, each, None)) for each in _METHODS)


def _is_journal(value: Any) -> bool:
    return value is False or isinstance(value, str | os.PathLike | JournalWriter)


def _is_list(value: Any) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and all(isinstance(each, str) for each in value)


_METHODS = ("write", "read", "search")
_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "memory": (_is_store, "InMemoryStore(), or an object with write, read and search"),
    "approver": (callable, "a function that takes an ApprovalRequest"),
    "journal": (_is_journal, "a path, False for none, or None for the runs directory"),
    "on_record": (callable, "a function that takes a dict, such as records.append"),
    "on_line": (callable, "a function that takes bytes, such as lines.append"),
    "on_delta": (callable, "a function that takes (purpose, step_id, text)"),
    "criteria": (lambda value: isinstance(value, ConvergenceCriteria), "ConvergenceCriteria(completeness=0.9)"),
    "requirements": (_is_list, 'a list such as ["…"]'),
}
"""By argument: what fits, and what to write otherwise."""
