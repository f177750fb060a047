"""The loop: plan, execute, evaluate, refine, and round again; or one pass (core FR-001 to FR-005, adaptive FR-001)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from aeon_core.adaptive.depth import AdaptiveDepth
from aeon_core.adaptive.evidence import DepthEvidence
from aeon_core.adaptive.profiling import default_profile, profile_request, read_profile
from aeon_core.budget import CostCeilingReached
from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.convergence.criteria import ConvergenceCriteria
from aeon_core.entities import RunResult, RunStatus
from aeon_core.errors import (
    AeonError,
    JournalError,
    LLMError,
    ReplayMismatchError,
    RunAborted,
    RunEnding,
    SupervisorError,
    UsageError,
)
from aeon_core.evaluation.evaluator import Evaluator, depth_evidence
from aeon_core.evaluation.planner import RecursivePlanner
from aeon_core.journal.records import (
    ConvergenceRecord,
    Phase,
    PhaseRecord,
    RefinementRecord,
    RunFinished,
    ValidationRecord,
)
from aeon_core.kernel.executor import Executor, TTLExpired
from aeon_core.kernel.result import Progress, advisory_record, pass_record, profile_record, run_result, run_started
from aeon_core.llm.base import LLMAdapter, LLMRequest
from aeon_core.plan.applying import Refinement
from aeon_core.plan.generation import plan_request
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.questions import follow_up_questions
from aeon_core.plan.refining import RefinementReply, read_refinement
from aeon_core.reasoning import reply_text
from aeon_core.timing import milliseconds_between
from aeon_core.validation.report import SemanticValidationReport
from aeon_core.validation.structural import validate_plan_tools

T = TypeVar("T")
logger = logging.getLogger("aeon")


class Loop:
    """One run, from its first record to its last."""

    def __init__(
        self,
        task: str,
        given: Plan | None,
        executor: Executor,
        progress: Progress,
        criteria: ConvergenceCriteria | None,
    ) -> None:
        self.task = task
        self.given = given
        self.executor = executor
        self.effects = executor.effects
        self.state = executor.state
        self.config = executor.config
        self.progress = progress
        self.depth = AdaptiveDepth(self.config.ttl)
        self.evaluator = Evaluator(task, executor.registry, criteria, self.config.prompts_dir)
        self.how: dict[str, Any] = {"max_tokens": self.config.max_tokens, "prompts_dir": self.config.prompts_dir}
        self.planner = RecursivePlanner(task, executor.registry, self.evaluator, **self.how)
        self.refined = self.gave_up = self.gave_up_before = False

    def run(self) -> RunResult:
        try:
            self.effects.emit(run_started(self.task, self.config, self.effects, self.executor.registry, self.progress))
        except JournalError as failure:
            raise UsageError(failure.message) from None
        status, error = self._ending()
        result = self._result(status, error)
        try:
            self.effects.emit(RunFinished(result=result))
        except JournalError as failure:
            return self._result("failed", failure)
        return result

    def _result(self, status: RunStatus, error: AeonError | None) -> RunResult:
        self._count()
        return run_result(self.state, self.progress, status, error)

    def _count(self) -> None:
        models = self.effects.models
        self.progress.usage, self.progress.cost_usd = dict(models.usage), models.cost_usd
        self.progress.model, self.progress.simulated = models.model.model, models.simulated

    def _ending(self) -> tuple[RunStatus, AeonError | None]:
        try:
            self._begin_pass()
            self.executor.emit_ttl("allocated")
            return (self._single_pass() if self.config.single_pass else self._passes()), None
        except TTLExpired:
            return "ttl_expired", None
        except ReplayMismatchError:
            raise
        except RunAborted as abort:
            return "aborted", self._cut_cycle(abort)
        except CostCeilingReached as ceiling:
            return "cost_ceiling", self._cut_cycle(ceiling)
        except KeyboardInterrupt:
            return "aborted", self._cut_cycle(RunAborted("the run was interrupted"))
        except AeonError as error:
            return "failed", error
        except Exception as error:
            logger.exception("the run failed on an error in Aeon itself")
            message = f"internal error: {type(error).__name__}: {error}"
            return "failed", self._cut_cycle(AeonError(message, error_type="InternalError"))

    def _cut_cycle(self, error: AeonError) -> AeonError:
        """Write the cycle that did not come to its end; return why (core FR-039)."""
        if self.executor.cycle.open:
            self.executor.cycle.errors.append(error.as_dict())
            try:
                self.executor.end_cycle()
            except JournalError as failure:
                return failure
        return error

    def _begin_pass(self) -> None:
        self.progress.started, self.progress.phases, self.progress.refinements = self.effects.now, [], []

    def _single_pass(self) -> RunStatus:
        self._phase("plan", self._plan)
        self._phase("execute", self._execute)
        self.progress.passes = 1
        try:
            self._answer()
        except TTLExpired:
            self._end_pass()
            raise
        self._end_pass()
        complete = all(step.status == "complete" for step in self.executor.plan.walk())
        return "completed" if complete else "not_converged"

    def _passes(self) -> RunStatus:
        """Go round until the result converges, or another pass could change nothing (adaptive FR-001, FR-006)."""
        while True:
            try:
                if self.state.pass_number == 1:
                    self._phase("plan", self._plan_adaptively)
                self._phase("execute", self._execute)
                self.progress.passes = self.state.pass_number
                self._phase("evaluate", self._evaluate)
                if self.progress.assessment is not None and self.progress.assessment.converged:
                    self._end_pass()
                    return "converged"
                self._phase("refine", self._refine)
            except TTLExpired:
                if self.state.plan is not None:
                    # No model is asked any more (adaptive FR-062).
                    report, assessment = self._found(None)
                    self._note(report, assessment.ended("ttl_expired"))
                if self.progress.passes == self.state.pass_number:
                    self._end_pass()
                raise
            if not self._another_pass():
                self._end_pass()
                return "not_converged"
            self._end_pass()
            self.state.pass_number += 1
            self._begin_pass()

    def _end_pass(self) -> None:
        self._count()
        snapshot = {"memory": self.effects.memory, "cycles": self.executor.cycles}
        self.effects.emit(pass_record(self.state, self.progress, self.effects.now, snapshot))

    def _phase(self, phase: Phase, work: Callable[[], None]) -> None:
        number, started = self.state.pass_number, self.effects.now
        self.effects.emit(PhaseRecord(pass_number=number, phase=phase, state="started"))
        try:
            work()
        except RunEnding:
            raise
        except Exception:
            self._end_phase(phase, started)
            raise
        self._end_phase(phase, started)

    def _end_phase(self, phase: Phase, started: str) -> None:
        number = self.state.pass_number
        duration_ms = milliseconds_between(started, self.effects.now)
        self.effects.emit(PhaseRecord(pass_number=number, phase=phase, state="finished", duration_ms=duration_ms))
        self.progress.phases.append({"phase": phase, "duration_ms": duration_ms})

    def _plan(self) -> None:
        """Take the plan that was given, else let the model make one (core FR-006); mark missing tools (core FR-063)."""
        executor = self.executor
        if self.given is not None:
            self.state.plan = self.given
            validate_plan_tools(self.given, executor.registry)
            executor.emit_plan("given")
            return
        executor.begin_cycle()
        request = plan_request(
            self.task,
            executor.registry.export_tools_for_llm(),
            ttl_remaining=self.state.ttl_remaining,
            ttl_limit=self.state.ttl_limit,
            **self.how,
        )
        with executor.failing_cycle():
            reply = executor.llm.complete(request)
            plan = executor.supervisor.read_plan(reply, executor.registry, task=self.task)
        self.state.plan = plan
        validate_plan_tools(plan, executor.registry)
        executor.emit_plan("generated")
        executor.cycle.plan_state = executor.recorder.at_cycle_start()
        executor.end_cycle()

    def _execute(self) -> None:
        """Run every step in strict order (core FR-052, FR-053)."""
        self.executor.recorder.new_pass()
        steps = self.executor.plan.steps
        for step in list(steps):
            if step.status == "pending":
                self.executor.execute(step, steps)

    def _answer(self) -> None:
        """Let the model answer the task from the steps' outputs. A refused or empty answer fails the run."""
        executor = self.executor
        executor.begin_cycle()
        with executor.failing_cycle():
            self.progress.answer = reply_text(executor.llm.complete(executor.request("answer", task=self.task)))
        executor.end_cycle()

    def _plan_adaptively(self) -> None:
        """Infer the profile, plan, allocate the TTL, and refine what is vague before it runs (adaptive FR-012)."""
        self._profile()
        self._plan()
        self._deepen()
        self.state.follow_up_questions = follow_up_questions(self.task, self.executor.plan)
        self._note(self.evaluator.of_plan(self.executor.plan))
        self._refine()

    def _profile(self) -> None:
        """Let the model infer the TaskProfile; where its reply is of no use, by rules (adaptive FR-NEW-009)."""
        executor, state = self.executor, self.state
        tools = executor.registry.export_tools_for_llm()
        ttl: dict[str, Any] = {"ttl_remaining": state.ttl_remaining, "ttl_limit": state.ttl_limit, **self.how}
        executor.begin_cycle()
        with executor.failing_cycle():
            profile = self._asked(profile_request(self.task, tools, **ttl), "the profile", read_profile)
        state.task_profile = profile or default_profile(self.task, tools=len(tools))
        executor.end_cycle()

    def _deepen(self, evidence: DepthEvidence | None = None) -> None:
        """Allocate cycles and choose the reasoning mode; at a pass boundary on what was found (adaptive FR-080)."""
        state, ttl, before = self.state, self.state.ttl, self.state.adaptive_depth
        assert state.task_profile is not None
        number = state.pass_number + (evidence is not None)
        place: dict[str, Any] = {"steps": len(self._pending()), "pass_number": number, "spent": ttl.spent}
        revised = self.depth.revise(state.task_profile, evidence, **place) if evidence is not None else None
        state.task_profile = revised.profile if revised is not None else state.task_profile
        depth = revised.configuration if revised is not None else self.depth.configure(state.task_profile, **place)
        if before is not None and revised is None and depth.allocated_ttl == before.allocated_ttl:
            return
        state.adaptive_depth = depth
        self.effects.emit(profile_record(state.task_profile, depth, number))
        state.allocate(depth.allocated_ttl)
        self.executor.emit_ttl(depth.adjustment_reason)

    def _pending(self) -> list[PlanStep]:
        return [step for step in self.executor.plan.walk() if step.status == "pending"]

    def _evaluate(self) -> None:
        """Answer from the outputs, then validate and assess all of it (adaptive FR-007)."""
        executor = self.executor
        try:
            self._answer()
        except (RunEnding, LLMError):
            raise
        except AeonError:
            self.progress.answer = None
        if self.state.ttl_remaining < 1:
            self._note(*self._found(None))  # a judge is advice: without a cycle for one the rules decide
            return
        executor.begin_cycle()
        with executor.failing_cycle():
            found = self._found(executor.llm)
        executor.end_cycle()
        self._note(*found)

    def _found(self, judge: LLMAdapter | None) -> tuple[SemanticValidationReport, ConvergenceAssessment]:
        state, memory = self.state, self.effects.recall()
        artifacts: dict[str, Any] = {"outputs": state.outputs, "failures": state.failures, "memory": memory}
        return self.evaluator.of_pass(self.executor.plan, answer=self.progress.answer, judge=judge, **artifacts)

    def _note(self, report: SemanticValidationReport, assessment: ConvergenceAssessment | None = None) -> None:
        number = self.state.pass_number
        self.progress.report, self.progress.assessment = report, assessment
        self.effects.emit(ValidationRecord(pass_number=number, **report.model_dump(mode="json")))
        if assessment is not None:
            self.effects.emit(ConvergenceRecord(pass_number=number, **assessment.model_dump(mode="json")))

    def _refine(self) -> None:
        """Let the planner rewrite what validation and failures point at; then reason as deeply as it takes."""
        executor, state, progress = self.executor, self.state, self.progress
        report, assessment = progress.report, progress.assessment
        assert report is not None
        self.refined, self.gave_up_before, self.gave_up = False, self.gave_up, False
        known: dict[str, Any] = {"outputs": state.outputs, "failures": state.failures, "ledger": state.ledger}
        request = self.planner.request(executor.plan, report, assessment, ttl=state.ttl, **known)
        if request is not None:
            executor.begin_cycle()
            with executor.failing_cycle():
                reply = self._asked(request, "the refinement", read_refinement)
            self.gave_up = reply is None
            if reply is not None:
                self._apply(reply, report)
            executor.end_cycle()
        if assessment is not None:
            failed, asked = len(state.failures), len(state.follow_up_questions)
            counts = {"failed_steps": failed, "refinements": len(progress.refinements), "questions": asked}
            self._deepen(depth_evidence(report, assessment, state.ledger, **counts))

    def _asked(self, request: LLMRequest, what: str, read: Callable[[Any], T]) -> T | None:
        """Return what the model's reply says, None where the supervisor gave up (adaptive FR-067)."""
        executor = self.executor
        try:
            reply = executor.llm.complete(request)
            return executor.supervisor.read_object(reply, what, read, schema=request.schema or {}, task=self.task)
        except SupervisorError as error:
            executor.cycle.errors.append(error.as_dict())
            return None

    def _apply(self, reply: RefinementReply, report: SemanticValidationReport) -> None:
        state, plan, number = self.state, self.executor.plan, self.state.pass_number
        outcome = self.planner.applied(plan, reply, report, state.ledger)
        questions = [*state.follow_up_questions, *reply.follow_up_questions]
        state.ledger, state.follow_up_questions = outcome.ledger, follow_up_questions(self.task, None, questions)
        for done in map(Refinement.as_dict, outcome.refinements):
            self.progress.refinements.append(done)
            self.effects.emit(RefinementRecord(pass_number=number, **done))
        for advisory in outcome.advisories:
            self.effects.emit(advisory_record(advisory, number))
        self.refined = bool(outcome.accepted)
        if self.refined:
            plan.goal, plan.steps[:] = outcome.plan.goal, outcome.plan.steps
            validate_plan_tools(plan, self.executor.registry)
            self.executor.emit_plan("refined")

    def _another_pass(self) -> bool:
        """Return whether another pass could change something; one in which refinement gave up gets a second chance."""
        if self._pending() or self.refined or (self.gave_up and not self.gave_up_before):
            return True
        if (report := self.progress.report) and (assessment := self.progress.assessment):
            self._note(report, assessment.ended("no_progress"))
        return False
