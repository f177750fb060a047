"""The state of a run between two passes: what a `pass` record holds, and how it is restored."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from pydantic import Field, ValidationError

from aeon_core.adaptive.depth import AdaptiveDepthConfiguration
from aeon_core.adaptive.profile import TaskProfile
from aeon_core.convergence import ConvergenceAssessment
from aeon_core.entities import Entity, SemanticValidationReport, StepResult, TTLState
from aeon_core.errors import UsageError
from aeon_core.kernel.executor import Executor
from aeon_core.kernel.result import Progress
from aeon_core.kernel.state import OrchestrationState
from aeon_core.plan.models import Plan
from aeon_core.plan.refinement.actions import RefinementLedger
from aeon_core.suggest import first_problem


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
    answer: str | None
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

    def restore(self, state: OrchestrationState, progress: Progress, executor: Executor) -> None:
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
