"""Forks: a new run that starts where a pass of another started; the other is only read (Decision 2)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from aeon_core.approvals import Approver
from aeon_core.config.schema import RunConfig, providers_of, recorded_config
from aeon_core.convergence import ConvergenceCriteria, load_criteria
from aeon_core.effects.secret_recovery import RunSecrets
from aeon_core.entities import TTLState
from aeon_core.errors import UsageError
from aeon_core.journal.reader import read_records
from aeon_core.journal.recovery import sound_records
from aeon_core.journal.summary import run_id_of
from aeon_core.journal.values import strs_of
from aeon_core.journal.writer import LineListener
from aeon_core.json_safe import clean_text
from aeon_core.kernel.progress import Checkpoint, PassResults
from aeon_core.llm.base import LLMAdapter
from aeon_core.memory import Memory
from aeon_core.plan.files import PlanEdit, load_requirements, parse_plan_edit, reuse_executed_steps
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import checked_plan, dump_plan
from aeon_core.runs.factory import as_config, as_model, as_registry, consented
from aeon_core.runs.orchestrator import Orchestrator, PreparedRun
from aeon_core.runs.replay import journal_of, note_memory, recorded_criteria, recorded_start
from aeon_core.runs.setup import RunStart, run_vault
from aeon_core.suggest import first_problem
from aeon_core.tools.base import Tools

_KEPT = ("ttl", "budget", "model", "judge_model")
"""Overrides of a resume that stay in effect."""


def forked_config(path: Path) -> RunConfig:
    """Return a run's final options, which a fork without overrides has.

    A model's address is dropped if a later override names a model of another provider. Raises UsageError if the file is
    not a journal.
    """
    started = _started(sound_records(path))
    overrides: dict[str, Any] = {}
    for record in read_records(path, texts=False):
        # Damage after the pass does not matter.
        if record["type"] == "run_resumed" and isinstance(options := record.get("options"), dict):
            overrides |= {key: value for key, value in options.items() if key in _KEPT}
    if "model" in overrides and providers_of(overrides["model"]) != providers_of(started["config"].get("model")):
        overrides["base_url"] = None
    return recorded_config({"config": {**started["config"], **overrides}})


def starting_edit(path: Path, pass_number: int) -> PlanEdit:
    """Return what an edit of a pass starts from: its plan, with the steps executed by then, and the run's requirements.

    Each is None if there was none. Raises UsageError if the run has no such pass.
    """
    return starting_point(path, pass_number)[0]


def starting_point(path: Path, pass_number: int) -> tuple[PlanEdit, ConvergenceCriteria]:
    """Return the same, and the convergence criteria at the start of the pass."""
    begun = _begun(path, pass_number)
    plan = begun.checkpoint.plan if begun.checkpoint is not None else begun.plan
    return PlanEdit(plan, begun.requirements or None), begun.criteria or ConvergenceCriteria()


class Fork(PreparedRun):
    """A run that starts where a pass of another started. `run` once; `abort` from another thread, `close` in the end.

    `run` is a run id, a unique prefix of one, a path to a journal, or `last`. The options, which name the model and the
    tools to use without `llm` and `tools`, are the parent's (`forked_config`) with those of a `config` that is a dict,
    or a RunConfig alone. `plan` is the pass's plan as a person edited it, and may hold `requirements`: executed
    steps that are unchanged do not run again. `criteria` and `requirements` take precedence over the files that
    `config` names, and these over the parent's. The cycles spent before the pass count; cost starts at zero. Raises
    UsageError if the run has no such pass, no cycle is left, the journal cannot be read up to there, or it names a
    model, tools or rules without consent.
    """

    def __init__(
        self,
        run: Path | str,
        pass_number: int,
        llm: LLMAdapter | str | Sequence[str] | None = None,
        tools: Tools | None = None,
        memory: Memory | None = None,
        config: RunConfig | Mapping[str, Any] | None = None,
        approver: Approver | None = None,
        journal: Path | str | Literal[False] | None = None,
        on_record: Callable[[dict[str, Any]], None] | None = None,
        *,
        plan: Plan | Mapping[str, Any] | None = None,
        criteria: ConvergenceCriteria | None = None,
        requirements: Sequence[str] | None = None,
        on_line: LineListener | None = None,
        on_delta: Callable[[str, str | None, str], None] | None = None,
    ) -> None:
        path = journal_of(run)
        begun = _begun(path, pass_number)
        own = forked_config(path)
        if not isinstance(config, RunConfig):
            as_config(config)
            given = dict(config or {})
            config = RunConfig(**{**own.model_dump(exclude_none=True), **given})
            config = consented(_started(sound_records(path)), config, llm, tools, given)
        llm, config = as_model(llm, config)
        tools = as_registry(tools, config)
        secrets = RunSecrets(run_vault(llm, tools, config), partial(_as_far_as_sound, path))
        edit = parse_plan_edit(dict(plan)) if isinstance(plan, Mapping) else PlanEdit(plan)
        edited = _edited(edit.plan, secrets)
        requirements = requirements if requirements is not None else edit.requirements
        if requirements is None and config.requirements not in (None, own.requirements):
            requirements = load_requirements(str(config.requirements))
        if criteria is None and config.criteria is not None and config.criteria != own.criteria:
            criteria = load_criteria(config.criteria)
        start = RunStart(
            None, begun.memory, {"run_id": begun.run_id, "pass": pass_number, "edited": edited is not None}
        )
        first_plan: Plan | None = None
        if begun.checkpoint is not None:
            start = _started_at(begun.checkpoint, start, config, edited)
            if edited is not None or criteria is not None or requirements is not None:
                # The previous pass's findings no longer hold, even if no step is left to run.
                assert start.checkpoint is not None
                changed: dict[str, Any] = {"refined": True}
                if requirements is not None:
                    changed["requirements"] = secrets.conceal_edited(list(requirements))
                start = replace(start, checkpoint=start.checkpoint.model_copy(update=changed))
        else:
            first_plan = reuse_executed_steps(edited, None) if edited is not None else begun.plan
        orchestrator = Orchestrator(
            llm,
            tools,
            memory,
            config.model_copy(update={"criteria": None, "requirements": None}),
            approver,
            journal,
            on_record,
            on_line=on_line,
            on_delta=on_delta,
            criteria=criteria if criteria is not None else begun.criteria,
            requirements=requirements if requirements is not None else begun.requirements,
            start=start,
            secrets=secrets,
        )
        super().__init__(orchestrator, begun.task, first_plan)


@dataclass
class _Begun:
    """The start of a pass. Without a `checkpoint`, it is the first pass, with the `plan` made in it."""

    run_id: str
    task: str
    criteria: ConvergenceCriteria | None
    requirements: list[str]
    memory: dict[str, Any]
    checkpoint: Checkpoint | None = None
    plan: Plan | None = None
    passes: list[int] = field(default_factory=list)
    """The number of passes begun so far."""

    def apply(self, checkpoint: Checkpoint) -> None:
        """Move the start to the end of a finished pass."""
        self.checkpoint, self.requirements = checkpoint, list(checkpoint.requirements)


def _begun(path: Path, pass_number: int) -> _Begun:
    """Return the start of a pass, reading no further than that. Raises UsageError."""
    records = sound_records(path)
    started = _started(records)
    # Every command identifies a run by its journal's name, even if the file was renamed.
    run_id = clean_text(run_id_of(str(path)))
    given = list(started.get("requirements") or ())
    begun = _Begun(run_id, started["task"], recorded_criteria(started), given, dict(started["memory"]))
    forked = recorded_start(started)
    if forked is not None and forked.checkpoint is not None:
        begun.apply(forked.checkpoint)
    first = begun.checkpoint.pass_number + 1 if begun.checkpoint is not None else 1
    begun.passes.append(first)
    if pass_number == first:
        if begun.checkpoint is None:
            begun.plan = _first_plan(started, records)
            begun.requirements = _approved_requirements(path) or begun.requirements
        return begun
    for record in records:
        if record["type"] == "memory":
            note_memory(begun.memory, record)
        elif record["type"] == "pass" and (checkpoint := Checkpoint.after_pass(record)) and checkpoint.ended is None:
            begun.apply(checkpoint)
            begun.passes.append(checkpoint.pass_number + 1)
            if pass_number == checkpoint.pass_number + 1:
                return begun
    known = _listed(begun.passes)
    raise UsageError(f"the run {begun.run_id!r} has no pass {pass_number}; a fork can start with {known}")


def _started(records: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Return the first record, `run_started`. Raises UsageError if a damaged line revoked it."""
    started = next(records)
    if started["type"] != "run_started":
        raise UsageError(f"the run {started['run']!r} has no start: one of its lines revokes it")
    return started


def _first_plan(started: Mapping[str, Any], records: Iterator[dict[str, Any]]) -> Plan | None:
    """Return the plan of a first pass as given or made, without later changes."""
    made = started if started.get("plan") else next((each for each in records if each["type"] == "plan"), {})
    if made.get("plan") is None:
        return None
    try:
        plan = Plan.model_validate(made["plan"])
    except ValidationError as error:
        raise UsageError(f"cannot read the plan of the first pass: {first_problem(error)}") from None
    chosen = made.get("substitutions") or {}
    for step in plan.walk():
        step.errors = None
        if step.step_id in chosen:
            # The fork repeats the repair, so that its own journal records who chose the tool.
            step.tool = chosen[step.step_id] or None
    return plan


def _approved_requirements(path: Path) -> list[str]:
    """Return the requirements with which a run's first pass was executed; none if it was not executed."""
    settled: list[str] = []
    for record in _as_far_as_sound(path):
        if record["type"] == "profile":
            settled = strs_of(record.get("requirements"))
        elif record["type"] == "phase" and record["phase"] == "execute":
            return settled
    return []


def _edited(plan: Plan | None, secrets: RunSecrets) -> Plan | None:
    """Return a copy of an edited plan for the journal; its steps may have been executed. Raises UsageError."""
    if plan is None:
        return None
    data = dump_plan(checked_plan(plan))
    concealed = secrets.conceal_edited(data)
    return plan.model_copy(deep=True) if concealed is data else Plan.model_validate(concealed)


def _started_at(checkpoint: Checkpoint, start: RunStart, config: RunConfig, edited: Plan | None) -> RunStart:
    """Return the start of a fork from a later pass: with its own TTL, and the edited plan if there is one."""
    number, ttl = checkpoint.pass_number + 1, checkpoint.ttl
    if config.single_pass:
        raise UsageError(f"a fork from pass {number} needs more than one pass; drop the single-pass option")
    if config.ttl <= ttl.spent:
        raise UsageError(
            f"a TTL of {config.ttl} is too small: {ttl.spent} cycles were spent before pass {number}; "
            "raise it with --ttl"
        )
    changed: dict[str, Any] = {"allowed": []}
    if config.ttl != ttl.limit:
        left = config.ttl - ttl.spent
        changed["ttl"] = TTLState(limit=config.ttl, allocated=config.ttl, spent=ttl.spent, remaining=left)
    if edited is None:
        return replace(start, checkpoint=checkpoint.model_copy(update=changed))
    plan = reuse_executed_steps(edited, checkpoint.plan)
    executed = {step.step_id for step in plan.walk() if step.executed}
    steps = checkpoint.results.steps
    changed |= {
        "plan": plan,
        "results": PassResults(
            answer=checkpoint.results.answer, steps=[step for step in steps if step.step_id in executed]
        ),
        "failures": {key: value for key, value in checkpoint.failures.items() if key in executed},
    }
    forgotten = {step.step_id for step in steps} - executed
    memory = {key: value for key, value in start.memory.items() if key not in forgotten}
    return RunStart(checkpoint.model_copy(update=changed), memory, start.parent)


def _as_far_as_sound(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a journal up to any damage, which must come after the start of the forked pass."""
    with contextlib.suppress(UsageError):
        yield from sound_records(path)


def _listed(passes: list[int]) -> str:
    if len(passes) == 1:
        return f"pass {passes[0]}"
    return f"one of the passes {passes[0]} to {passes[-1]}"
