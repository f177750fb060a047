"""A run's progress as records: the record of a pass, the checkpoint in it that restores a run, and the RunResult.

Pure functions over data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field, ValidationError

from aeon_core.adaptive_depth import AdaptiveDepthConfiguration, DepthEvidence
from aeon_core.config.schema import RunConfig
from aeon_core.convergence import ConvergenceAssessment
from aeon_core.effects.model_calls import ModelCalls
from aeon_core.effects.port import Effects
from aeon_core.entities import (
    Entity,
    RunResult,
    RunStatus,
    SemanticValidationReport,
    StepResult,
    TTLExpiredMetadata,
    TTLState,
    UsageTotals,
)
from aeon_core.errors import AeonError, JournalError, UsageError
from aeon_core.evaluation import depth_evidence
from aeon_core.installation import versions
from aeon_core.journal.records import NoticeRecord, PassRecord, PlanCause, ProfileRecord, RunStarted
from aeon_core.journal.writer import JournalWriter
from aeon_core.json_safe import clean_text
from aeon_core.kernel.executor import Executor
from aeon_core.kernel.state import OrchestrationState
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan
from aeon_core.plan.refinement.actions import Advisory, RefinementLedger
from aeon_core.suggest import first_problem
from aeon_core.task_profile import TaskProfile
from aeon_core.tools.registry import ToolRegistry
from aeon_core.units import seconds_between


@dataclass
class RunProgress:
    """A run's progress, apart from its state."""

    run_id: str
    journal: str | None
    model: str
    simulated: bool
    criteria: dict[str, Any] | None = None
    """The criteria of convergence, None for the defaults."""
    requirements: list[str] = field(default_factory=list)
    """The requirements that the run was given; none if they are inferred."""
    given_plan: dict[str, Any] | None = None
    """The plan that the run was given."""
    plan_cut: tuple[str, ...] = ()
    """Its steps whose subplans nest too deeply."""
    answer: str | None = None
    """The last one."""
    given: str | None = None
    """The answer of the current pass."""
    passes: int = 0
    """Passes that were completed."""
    executed: int = 0
    """The last pass in which every step was executed."""
    started: str = ""
    """When the current pass began."""
    plan_state: dict[str, Any] = field(default_factory=dict)
    """The plan when the current pass began; in the first, as it was made or given (adaptive: Execution Pass)."""
    snapshot: dict[str, Any] = field(default_factory=dict)
    """Memory and counters when the current pass began."""
    phases: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    report: SemanticValidationReport | None = None
    """What validation last found."""
    plan_report: SemanticValidationReport | None = None
    """The last review's report on the refined plan; None if it was not reviewed since."""
    assessment: ConvergenceAssessment | None = None
    """What convergence last found."""
    assessed: int = 0
    """The pass that was assessed."""
    refinements: list[dict[str, Any]] = field(default_factory=list)
    """The outcomes of the current pass's refinement actions."""
    earlier_refinements: list[dict[str, Any]] = field(default_factory=list)
    """Those of the pass before it."""
    refined: bool = False
    """Whether the last refinement changed the plan."""
    gave_up: bool = False
    """Whether the last refinement came to nothing, or there is no answer; and the same for the one before it."""
    previous_refine_failed: bool = False
    repeated: bool = False
    """Whether the model gave the same answer again after the verdict on it."""
    before: dict[str, Any] | None = None
    """The plan when the steps of the current pass began to run, as plain JSON."""
    ended: Literal["converged", "accepted", "not_converged", "ttl_expired"] | None = None
    """How the run ends; None while another pass follows."""
    forked: PlanCause | None = None
    """In a fork, whether its plan is the parent's or an edited one, until that is journaled."""
    results: dict[str, Any] | None = None
    """The outcome of the current pass, as it was assessed; None if it was not."""
    latest: dict[str, Any] | None = None
    """The results of the last pass that was completed."""

    def begin(self, executor: Executor) -> None:
        """Begin a pass, and keep its starting point."""
        state, now = executor.state, executor.effects.now
        self.earlier_refinements = self.refinements
        self.started, self.phases, self.refinements, self.results = now, [], [], None
        self.given = None
        self.plan_state = dump_plan(state.plan) if state.plan is not None else {}
        self.snapshot = {
            "memory": executor.effects.memory.known,
            "cycles": executor.cycles,
            "ttl": state.ttl.model_dump(),
            "ledger": state.ledger.model_dump(mode="json"),
            "follow_up_questions": list(state.follow_up_questions),
        }

    def plan_cause(self) -> PlanCause | None:
        """Return, once, why the plan of a fork is journaled; None in any other run."""
        cause, self.forked = self.forked, None
        return cause

    @property
    def converged(self) -> bool:
        """Whether convergence was found when it was last assessed."""
        return self.assessment is not None and self.assessment.converged

    @property
    def judged(self) -> bool:
        """Whether the last assessment has a judgement where there was an answer to judge (contract: not_judged)."""
        return self.assessment is None or "not_judged" not in self.assessment.reason_codes

    def completes(self, state: OrchestrationState) -> bool:
        """Return whether the current pass counts as completed if the TTL expires now: its steps have run, and it has
        its answer unless it is the first (adaptive FR-062).
        """
        has_answer = self.given is not None or self.passes in (0, state.pass_number)
        return self.executed == state.pass_number and has_answer

    def returned_pass(self, state: OrchestrationState) -> int:
        """Return the pass whose result is returned if the TTL expires now: the current one, or the last completed one
        if the current one is cut short (adaptive FR-062).
        """
        return self.passes if self.passes and not self.completes(state) else state.pass_number

    def assess(self, state: OrchestrationState, assessment: ConvergenceAssessment) -> None:
        """Keep the assessment of the current pass, and what was assessed: refinement changes the plan afterwards."""
        self.assessment, self.assessed = assessment, state.pass_number
        self.results = self.results or pass_results(state, self)

    def evidence(self, state: OrchestrationState) -> DepthEvidence:
        """Return the finished pass's findings about its task (adaptive FR-031 to FR-033)."""
        assert self.report is not None
        assert self.assessment is not None
        counts = {"refinements": len(self.refinements), "questions": len(state.follow_up_questions)}
        return depth_evidence(self.report, self.assessment, state.ledger, **counts)

    def count(self, models: ModelCalls) -> None:
        """Update the totals of usage and cost, and the model in use."""
        self.usage, self.cost_usd = dict(models.usage), models.cost_usd
        self.model, self.simulated = models.model.model, models.simulated


def profile_record(state: OrchestrationState, pass_number: int, reason: str | None = None) -> ProfileRecord:
    """Return the record of a profile that was inferred or revised, with the requirements.

    `reason` says why, unless the depth was adjusted.
    """
    profile, depth = state.task_profile, state.adaptive_depth
    assert profile is not None
    assert depth is not None
    described = {**profile.model_dump(), "adaptive_depth": depth.model_dump(), "requirements": state.requirements}
    reason = reason or depth.adjustment_reason
    return ProfileRecord(pass_number=pass_number, adjustment_reason=reason, **described)


def advisory_record(advisory: Advisory, pass_number: int) -> NoticeRecord:
    """Return the notice that a repair proposed by validation was not made (adaptive FR-079)."""
    data = advisory.as_dict()
    message = f"validation also proposed: {data['issue']['proposed_repair']}"
    return NoticeRecord(kind="advisory", pass_number=pass_number, message=message, data=data)


def judge_notice(assessment: ConvergenceAssessment, pass_number: int) -> NoticeRecord:
    """Return the notice that a pass was not judged, so that it cannot converge (Decision 7)."""
    message = (
        f"not judged: {assessment.detected_issues[-1]}; the answer is available: "
        "check it yourself and accept it when asked, or fork the run with another --model"
    )
    return NoticeRecord(kind="not_judged", pass_number=pass_number, message=message)


def person_notices(state: OrchestrationState, questions: list[str], ledger: RefinementLedger) -> Iterator[NoticeRecord]:
    """Yield what is new for a person: open questions, and fragments left to them (adaptive FR-011, FR-065)."""
    number = state.pass_number
    if new := [question for question in questions if question not in state.follow_up_questions]:
        message = f"{'a question is' if len(new) == 1 else f'{len(new)} questions are'} open: {' '.join(new)}"
        yield NoticeRecord(kind="questions", pass_number=number, message=message, data={"questions": new})
    for entry in ledger.manual_intervention:
        if entry not in state.ledger.manual_intervention:
            message = f"{entry.step_id!r} is left to a person: {entry.reason}"
            data = entry.model_dump()
            yield NoticeRecord(
                kind="manual_intervention", pass_number=number, step_id=entry.step_id, message=message, data=data
            )


def run_started(
    task: str,
    config: RunConfig,
    effects: Effects,
    registry: ToolRegistry,
    progress: RunProgress,
    more: Mapping[str, Any],
) -> RunStarted:
    """Return the first record of a run. `more` holds a fork's `parent` and `start`, or a workflow's options."""
    return RunStarted(
        task=task,
        config=config.as_json(),
        model=progress.model,
        simulated=progress.simulated,
        models=[known.described() for known in effects.models.known],
        prices=effects.models.prices,
        tools=registry.export_tools_for_llm(),
        versions=versions(),
        criteria=progress.criteria,
        requirements=progress.requirements or None,
        plan=progress.given_plan,
        plan_cut=list(progress.plan_cut) or None,
        memory=effects.memory.known,
        **more,
    )


def only_reasoning(plan: Plan, state: OrchestrationState) -> str | None:
    """Return the output text of a plan whose only step is a completed reasoning step; None for any other plan."""
    step = plan.steps[0]
    if len(plan.steps) > 1 or step.subplan is not None or step.tool is not None or step.status != "complete":
        return None
    text = state.outputs.get(step.step_id, {}).get("text")
    return text if isinstance(text, str) and text.strip() else None


def pass_results(state: OrchestrationState, progress: RunProgress) -> dict[str, Any]:
    """Return the results of the current pass: the answer so far and each step's."""
    return {"answer": progress.given, "steps": state.described_steps()}


def pass_record(progress: RunProgress, executor: Executor) -> PassRecord:
    """Return the record of the pass that ends now, and keep its results as those of the last completed pass (adaptive
    FR-062). If the TTL was spent before the first answer, they have none.
    """
    state, effects, now = executor.state, executor.effects, executor.effects.now
    progress.count(effects.models)
    progress.passes = state.pass_number
    progress.latest = results = progress.results or pass_results(state, progress)
    return PassRecord(
        pass_number=state.pass_number,
        phases=progress.phases,
        plan_state=progress.plan_state,
        execution_results=results,
        evaluation_results=_evaluation(progress),
        refinement_changes=progress.refinements,
        ttl_remaining=state.ttl_remaining,
        timing_information={
            "start_time": progress.started,
            "end_time": now,
            "duration": seconds_between(progress.started, now),
        },
        task_profile=state.task_profile.model_dump() if state.task_profile is not None else None,
        adaptive_depth=state.adaptive_depth.model_dump() if state.adaptive_depth is not None else None,
        snapshot=progress.snapshot,
        totals={"usage": progress.usage, "cost_usd": progress.cost_usd},
        standing=_checkpoint(progress, executor, results)
        if progress.assessed and progress.ended != "ttl_expired"
        else None,
    )


def _checkpoint(progress: RunProgress, executor: Executor, results: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a Checkpoint needs besides the record's own fields and the models' state."""
    state = executor.state
    # Of a step that has an output in the results, adopting the plan shows whether it still counts.
    outdated = state.outdated.difference(
        state.outputs, (s["step_id"] for s in results["steps"] if s["output"] is not None)
    )
    return {
        "ended": progress.ended,
        "plan": dump_plan(executor.plan),
        "cycles": executor.cycles,
        "ttl": state.ttl.model_dump(),
        "ledger": state.ledger.model_dump(mode="json"),
        "follow_up_questions": list(state.follow_up_questions),
        "requirements": list(state.requirements),
        "answer": progress.answer,
        "failures": dict(state.failures),
        **({"substitutions": dict(state.substitutions)} if state.substitutions else {}),
        **({"reviewed": dict(state.reviewed)} if state.reviewed else {}),
        **({"outdated": sorted(outdated)} if outdated else {}),
        **({"answers": dict(state.answers)} if state.answers else {}),
        **({"allowed": list(executor.policy.allowed)} if executor.policy.allowed else {}),
        "refined": progress.refined,
        "gave_up": progress.gave_up,
        "models": executor.effects.models.state(),
    }


def _evaluation(progress: RunProgress) -> dict[str, Any]:
    parts = {"semantic_validation": progress.report, "convergence": progress.assessment}
    return {name: part.model_dump(mode="json") for name, part in parts.items() if part is not None}


class PassResults(Entity):
    """The outcome of a pass: its answer and its step results."""

    answer: str | None = None
    steps: list[StepResult]


class Checkpoint(Entity):
    """Everything that the passes after `pass_number` depend on, apart from the memory. Plain JSON in a journal
    (Decision 2).
    """

    pass_number: int
    ended: Literal["converged", "accepted", "not_converged"] | None = None
    """How the run ends after this pass; None if another follows."""
    plan: Plan
    cycles: int
    ttl: TTLState
    task_profile: TaskProfile
    adaptive_depth: AdaptiveDepthConfiguration
    ledger: RefinementLedger
    follow_up_questions: list[str]
    answers: dict[str, str] = Field(default_factory=dict)
    requirements: list[str] = Field(default_factory=list)
    answer: str | None = None
    report: SemanticValidationReport
    assessment: ConvergenceAssessment
    results: PassResults
    """The outcome of the pass, as it was assessed."""
    failures: dict[str, list[str]]
    """Why steps failed, by step_id."""
    substitutions: dict[str, str] = Field(default_factory=dict)
    """Steps whose tool a repair replaced, with the tool they named before."""
    reviewed: dict[str, str | None] = Field(default_factory=dict)
    outdated: list[str] = Field(default_factory=list)
    """Steps whose entries in the memory do not count: they ran again in vain, or were taken out of the plan."""
    allowed: list[str] = Field(default_factory=list)
    """The rules that a person allowed during the run. A fork is another run and does not inherit them."""
    refinements: list[dict[str, Any]] = Field(default_factory=list)
    refined: bool
    gave_up: bool

    @classmethod
    def after_pass(cls, record: Mapping[str, Any]) -> Checkpoint | None:
        """Return the state of a run after a `pass` record; None if the record does not hold it.

        Raises UsageError if what it holds is not a run's state.
        """
        if (standing := record.get("standing")) is None:
            return None
        found = record.get("evaluation_results") or {}
        held = {
            **{key: value for key, value in standing.items() if key in cls.model_fields},
            "pass_number": record["pass_number"],
            "task_profile": record.get("task_profile"),
            "adaptive_depth": record.get("adaptive_depth"),
            "report": found.get("semantic_validation"),
            "assessment": found.get("convergence"),
            "results": record.get("execution_results"),
            "refinements": record.get("refinement_changes"),
        }
        try:
            return cls.model_validate(held)
        except ValidationError as error:
            raise UsageError(f"cannot continue from the pass at seq {record['seq']}: {first_problem(error)}") from None

    def restore(self, state: OrchestrationState, progress: RunProgress, executor: Executor) -> None:
        """Restore the run's state after the pass: the next pass follows, or the end."""
        state.pass_number, state.ttl_limit = self.pass_number, self.ttl.limit
        state.ttl_allocated, state.ttl_remaining = self.ttl.allocated, self.ttl.remaining
        state.task_profile, state.adaptive_depth = self.task_profile, self.adaptive_depth
        state.ledger, state.follow_up_questions = self.ledger, list(self.follow_up_questions)
        state.failures, state.requirements = dict(self.failures), list(self.requirements)
        state.substitutions.update(self.substitutions)
        state.reviewed.update(self.reviewed)
        state.answers.update(self.answers)
        state.outdated.update(self.outdated)
        for rule in self.allowed:
            with suppress(UsageError):
                executor.policy.allow(rule)
        for step in self.results.steps:
            if step.output is not None:
                state.outputs[step.step_id] = step.output
            if step.mode is not None:
                state.modes[step.step_id] = step.mode
        state.adopt(self.plan)
        executor.cycles = self.cycles
        executor.recorder.structure(self.plan)
        progress.ended, progress.answer = self.ended, self.answer
        progress.passes = progress.executed = progress.assessed = self.pass_number
        progress.report, progress.assessment = self.report, self.assessment
        progress.latest, progress.refinements = self.results.model_dump(mode="json"), self.refinements
        progress.refined, progress.gave_up = self.refined, self.gave_up


def run_result(
    state: OrchestrationState, progress: RunProgress, status: RunStatus, error: AeonError | None
) -> RunResult:
    """Return how the run ended. `error` is set if it was aborted or failed."""
    return RunResult(
        run_id=progress.run_id,
        status=status,
        converged=status == "converged",
        answer=progress.answer,
        plan=state.plan,
        steps=state.step_results(),
        passes=progress.passes,
        convergence=progress.assessment.model_dump(mode="json") if progress.assessment is not None else None,
        follow_up_questions=state.follow_up_questions,
        manual_intervention=[entry.model_dump() for entry in state.ledger.manual_intervention],
        ttl=state.ttl,
        usage=UsageTotals(**progress.usage),
        cost_usd=progress.cost_usd,
        model=progress.model,
        simulated=progress.simulated,
        error=_describe(error, state) if error is not None else None,
        journal=progress.journal,
        **(_expiration(state, progress) if status == "ttl_expired" else {}),
    )


def located(result: RunResult, journal: JournalWriter) -> RunResult:
    """Return the result with the journal's path, which may have been moved in the meantime; as failed if the journal is
    lost.
    """
    place = journal.location()
    if place == journal.path:
        return result
    if place is not None:
        return result.model_copy(update={"journal": clean_text(str(place))})
    if result.error is not None:
        return result
    message = f"the journal {str(journal.path)!r} was moved or deleted during the run"
    error = JournalError(f"{message}; the run was not recorded").as_dict()
    return result.model_copy(update={"status": "failed", "converged": False, "error": error})


def _describe(error: AeonError, state: OrchestrationState) -> dict[str, Any]:
    described = error.as_dict()
    if state.current_step_id is not None:
        described.setdefault("step_id", state.current_step_id)
    if error.exit_code != 1:
        described["exit_code"] = error.exit_code
    return described


def _expiration(state: OrchestrationState, progress: RunProgress) -> dict[str, Any]:
    """Return the TTL Expiration Response (core FR-036, adaptive FR-062 to FR-064)."""
    boundary = progress.completes(state)
    results, assessment = pass_results(state, progress), progress.assessment
    scores: dict[str, Any] = {}
    if assessment is not None:
        scores = {
            "completeness_score": assessment.completeness_score,
            "coherence_score": assessment.coherence_score,
            "consistency_status": dict(assessment.consistency_status),
            "detected_issues": assessment.detected_issues,
        }
    elif boundary and progress.given is None:
        scores = {"detected_issues": ["no cycle was left for the answer"]}
    return {
        "result_type": "ttl_expired",
        "latest_pass_result": progress.latest,
        "partial_result": results if not boundary and progress.latest is None else None,
        "expiration_point": "phase_boundary" if boundary else "mid_phase",
        "ttl_expired_metadata": TTLExpiredMetadata(
            **scores,
            reason_codes=assessment.reason_codes if assessment is not None else ["ttl_expired"],
            pass_number=progress.returned_pass(state),
            incomplete_steps=[s.step_id for s in state.step_results() if s.status in ("pending", "running")],
        ),
        "termination_reason": "ttl_expired",
    }
