"""The loop: plan, execute, evaluate, refine, repeat; or a single pass (core FR-001 to FR-005, adaptive FR-001)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from aeon_core.adaptive_depth import AdaptiveDepth, DepthEvidence
from aeon_core.budget import CostCeilingReached
from aeon_core.config.schema import RunConfig
from aeon_core.convergence import ConvergenceAssessment, ConvergenceCriteria
from aeon_core.effects.port import Effects
from aeon_core.entities import RunResult, RunStatus, SemanticValidationReport
from aeon_core.errors import (
    AeonError,
    JournalError,
    LLMError,
    ReplayMismatchError,
    RunAborted,
    RunEnding,
    SupervisorError,
    UnconfirmedCall,
)
from aeon_core.evaluation import Evaluator, Findings, RecursivePlanner, answer_alone
from aeon_core.journal.records import (
    ConvergenceRecord,
    Phase,
    PhaseRecord,
    PlanCause,
    RefinementRecord,
    RunFinished,
    ValidationRecord,
)
from aeon_core.kernel.executor import Executor, TTLExpired
from aeon_core.kernel.progress import (
    Checkpoint,
    RunProgress,
    advisory_record,
    judge_notice,
    only_reasoning,
    pass_record,
    person_notices,
    profile_record,
    run_result,
)
from aeon_core.kernel.review import approve_single_pass, request_review, review_changes, review_plan
from aeon_core.kernel.state import OrchestrationState
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan
from aeon_core.plan.refinement.actions import MAX_QUESTIONS, RefinementLedger, left_to_a_person
from aeon_core.plan.refinement.apply import Refinement
from aeon_core.plan.requests import RefinementReply, plan_request, read_refinement
from aeon_core.prompts import initial_memory_section, requirements_section, with_room
from aeon_core.reasoning import reply_text
from aeon_core.task_profile import ProfileReply, default_profile, profile_request, read_profile_reply, with_tools
from aeon_core.units import milliseconds_between
from aeon_core.validation.plan_checks import validate_plan_tools

T = TypeVar("T")
logger: logging.Logger = logging.getLogger("aeon")


@dataclass
class Loop:
    """One run, from its first record to its last."""

    task: str
    given: Plan | None
    executor: Executor
    progress: RunProgress
    criteria: ConvergenceCriteria | None
    start: Checkpoint | None

    def __post_init__(self) -> None:
        self.effects: Effects = self.executor.effects
        self.state: OrchestrationState = self.executor.state
        self.config: RunConfig = self.executor.config
        config, known = self.config, (self.task, self.executor.registry, self.criteria)
        self.evaluator: Evaluator = Evaluator(*known, config.prompts_dir, config.judge_votes)
        self.request_options: dict[str, Any] = {
            "max_tokens": self.config.max_tokens,
            "prompts_dir": self.config.prompts_dir,
        }
        tools = self.executor.registry
        self.planner: RecursivePlanner = RecursivePlanner(self.task, tools, self.evaluator, **self.request_options)

    def run(self) -> RunResult:
        result = self._result(*self._ending())
        try:
            self.effects.emit(RunFinished(result=result))
        except JournalError as failure:
            return self._result("failed", failure)
        return result

    def _result(self, status: RunStatus, error: AeonError | None) -> RunResult:
        self.progress.count(self.effects.models)
        return run_result(self.state, self.progress, status, error)

    def _ending(self) -> tuple[RunStatus, AeonError | None]:
        try:
            return self._status(), None
        except (ReplayMismatchError, UnconfirmedCall):
            raise
        except (RunAborted, CostCeilingReached) as ending:
            return ending.status, self._cut_cycle(ending)
        except KeyboardInterrupt:
            return "aborted", self._cut_cycle(self.effects.interrupted())
        except AeonError as error:
            return "failed", error
        except Exception as error:
            logger.exception("the run failed because of an error in Aeon itself")
            message = f"internal error: {type(error).__name__}: {error}"
            return "failed", self._cut_cycle(AeonError(message, error_type="InternalError"))

    def _cut_cycle(self, error: AeonError) -> AeonError:
        """Write the cycle that was cut short; return why (core FR-039)."""
        if self.executor.cycle.open:
            self.executor.cycle.errors.append(error.as_dict())
            try:
                self.executor.end_cycle()
            except JournalError as failure:
                return failure
        return error

    def _status(self) -> RunStatus:
        try:
            if self.start is None:
                self.progress.begin(self.executor)
                self.executor.emit_ttl("allocated")
            return self._single_pass() if self.config.single_pass else self._passes()
        except TTLExpired:
            if not self.config.single_pass:
                self._note_expiry()
            if self.state.plan is None and self.given is not None:
                self._planned(self.given, "given")
            self.progress.ended = "ttl_expired"
            if self.progress.completes(self.state) and self.state.pass_number > self.progress.passes:
                self.effects.emit(pass_record(self.progress, self.executor))
            return "ttl_expired"

    def _single_pass(self) -> RunStatus:
        self.state.requirements = self.progress.requirements
        self._phase("plan", self._plan)
        edited = approve_single_pass(self.executor, self.progress, self.evaluator)
        if edited is not None:
            self._planned(edited, "edited")
        self._phase("execute", self._execute)
        self.progress.executed = 1
        self._answer()
        self.effects.emit(pass_record(self.progress, self.executor))
        complete = all(step.status == "complete" for step in self.executor.plan.walk())
        return "completed" if complete and self.progress.answer is not None else "not_converged"

    def _passes(self) -> RunStatus:
        """Repeat until the result converges or another pass could change nothing (adaptive FR-001, FR-006)."""
        if self.start is None:
            self._pass()
        while self.progress.ended is None:
            self._next_pass()
            self._pass()
        return self.progress.ended

    def _pass(self) -> None:
        """Run the phases once; `ended` then says whether this was the last pass."""
        progress = self.progress
        if self.state.pass_number == 1:
            self._phase("plan", self._plan_adaptively)
        self._apply_review("plan")
        progress.before = dump_plan(self.executor.plan)
        self._phase("execute", self._execute)
        progress.executed = self.state.pass_number
        self._phase("evaluate", self._evaluate)
        if progress.judged and not progress.converged:
            self._phase("refine", self._refine)
        another = progress.judged and not progress.converged and self._another_pass()
        progress.ended = "converged" if progress.converged else None if another else "not_converged"
        self._apply_review("pass")
        self.effects.emit(pass_record(self.progress, self.executor))

    def _apply_review(self, point: Literal["plan", "pass"]) -> None:
        """Apply a person's changes: another plan, or words for which the plan is refined; then ask again.

        Whoever rejects twice what cannot be refined any more ends the run: the question would never end.
        """
        progress, in_vain, unchanged = self.progress, 0, False
        while (review := request_review(point, self.executor, progress, unchanged=unchanged)) is not None:
            progress.ended = "accepted" if review.accepted else None
            if review.plan is not None:
                self._planned(review.plan, "edited")
                self._deepen()
            if review.report is None:
                return
            refined, cycles = progress.refined, self.executor.cycles
            self._note(review.report)
            self._phase("refine", self._refine)
            self._deepen()
            if review.approved:
                progress.refined = progress.refined or refined
                return
            progress.ended = None if self._another_pass() else "not_converged"
            unchanged = not progress.refined
            in_vain = 0 if progress.refined or self.executor.cycles > cycles else in_vain + 1
            if in_vain > 1 and point == "plan":
                raise RunAborted("the plan was rejected, and can no longer be refined; fork the run with --plan FILE")
            if in_vain > 1:
                progress.ended = "not_converged"
                return

    def _next_pass(self) -> None:
        self._deepen(self.progress.evidence(self.state))
        self.executor.check()
        self.state.pass_number += 1
        self.progress.begin(self.executor)
        if (cause := self.progress.plan_cause()) is not None:
            self.executor.emit_plan(cause)

    def _note_expiry(self) -> None:
        """Assess what is returned, by rules alone if no judge was asked: none is asked any more (adaptive FR-062)."""
        progress, number = self.progress, self.progress.returned_pass(self.state)
        if self.state.plan is not None and progress.assessed < number:
            progress.report, progress.assessment = self._found(judge=False)
        if progress.report is not None and progress.assessment is not None:
            self._note(progress.report, progress.assessment.ended("ttl_expired"), number)

    def _phase(self, phase: Phase, work: Callable[[], None]) -> None:
        number, started, failure = self.state.pass_number, self.effects.now, None
        self.effects.emit(PhaseRecord(pass_number=number, phase=phase, state="started"))
        try:
            work()
        except RunEnding:
            raise
        except Exception as error:
            failure = error
        duration_ms = milliseconds_between(started, self.effects.now)
        self.effects.emit(PhaseRecord(pass_number=number, phase=phase, state="finished", duration_ms=duration_ms))
        self.progress.phases.append({"phase": phase, "duration_ms": duration_ms})
        if failure is not None:
            raise failure

    def _plan(self) -> None:
        """Use the given plan, else have the model generate one (core FR-006); mark missing tools (core FR-063)."""
        executor = self.executor
        if self.given is not None:
            self._planned(self.given, "given")
            return
        with executor.in_cycle():
            tools, requirements = executor.registry.export_tools_for_llm(), self.state.requirements
            request = plan_request(self.task, tools, requirements=requirements, **self._request_options())
            reply = executor.llm.complete(request)
            plan = executor.supervisor.read_plan(reply, executor.registry, task=self.task, request=request)
            self._planned(plan, "generated")
            executor.cycle.plan_state = executor.recorder.at_cycle_start()

    def _request_options(self) -> dict[str, Any]:
        held = dict(self.executor.memory.search(""))
        return {
            "memory": initial_memory_section(held, characters=self.state.output_characters),
            "ttl_remaining": self.state.ttl_remaining,
            "ttl_limit": self.state.ttl.allocated,
            **self.request_options,
        }

    def _planned(self, plan: Plan, cause: PlanCause) -> None:
        self.state.adopt(plan)
        validate_plan_tools(plan, self.executor.registry)
        self.executor.emit_plan(cause)
        self._notify_person(self.state.follow_up_questions, self.state.ledger.nested_too_deep(plan.cut))
        if self.progress.executed < self.state.pass_number:
            self.progress.plan_state = dump_plan(plan)

    def _execute(self) -> None:
        """Run every step in strict order (core FR-052, FR-053)."""
        self.executor.recorder.new_pass()
        steps = self.executor.plan.steps
        for step in list(steps):
            if step.status == "pending":
                self.executor.execute(step, steps)

    def _answer(self) -> None:
        """Have the model answer the task from the steps' outputs. A refused or empty reply is no answer.

        If the plan is one reasoning step, its output is already the answer.
        """
        executor, progress = self.executor, self.progress
        if (given := only_reasoning(executor.plan, self.state)) is not None and progress.answer is None:
            progress.given = progress.answer = given
            return
        try:
            with executor.in_cycle():
                wanted = requirements_section(self.state.requirements)
                known = self.planner.answer_sections(progress.answer, progress.report, progress.assessment)
                request = executor.request("answer", task=self.task, requirements=wanted, **known)
                progress.given = progress.answer = reply_text(executor.llm.complete(request))
        except (RunEnding, LLMError):
            raise
        except AeonError:
            progress.answer = progress.given = None

    def _plan_adaptively(self) -> None:
        """Infer the profile, plan as deeply as it requires, and refine vague steps before they run (adaptive
        FR-012).
        """
        self._profile()
        self._deepen()
        self._plan()
        self.progress.report = review_plan(self.executor, self.evaluator, self._ask)
        self._refine()
        self._deepen()

    def _profile(self) -> None:
        """Have the model infer TaskProfile and requirements (adaptive FR-NEW-009); middle values if it cannot."""
        executor, state = self.executor, self.state
        tools = executor.registry.export_tools_for_llm()
        with executor.in_cycle():
            asked = self._asked(
                profile_request(self.task, tools, **self._request_options()), "the profile", read_profile_reply
            )
            inferred = asked or ProfileReply(default_profile(tools=len(tools)))
        state.task_profile = with_tools(inferred.profile, tools)
        state.requirements = self.progress.requirements or inferred.requirements
        self._notify_person(inferred.follow_up_questions, state.ledger)

    def _deepen(self, evidence: DepthEvidence | None = None) -> None:
        """Allocate cycles for the plan and choose the reasoning mode; at a pass boundary, by the pass's findings
        (adaptive FR-080).
        """
        state, number = self.state, self.state.pass_number + (evidence is not None)
        assert state.task_profile is not None
        place: dict[str, Any] = {"pass_number": number, "spent": state.ttl.spent}
        place["steps"] = len(state.plan.pending) if state.plan is not None else None
        depth = AdaptiveDepth(state.ttl_limit, self.config.judge_votes)
        made = depth.adjusted(state.task_profile, state.adaptive_depth, evidence, **place)
        if made is not None:
            state.task_profile, state.adaptive_depth = made.profile, made.configuration
            self.effects.emit(profile_record(state, number))
            state.allocate(made.configuration.allocated_ttl)
            self.executor.emit_ttl(made.configuration.adjustment_reason)

    def _evaluate(self) -> None:
        """Answer from the outputs, then validate and assess everything (adaptive FR-007); only once if nothing ran."""
        executor, progress = self.executor, self.progress
        changed = progress.refined or progress.answer is None or executor.cycles > progress.snapshot["cycles"]
        if not changed and progress.report is not None:
            progress.given = progress.answer
            self._note(progress.report, progress.assessment)
            return
        last = progress.answer
        self._answer()
        executor.check()
        progress.repeated = progress.given == last and answer_alone(progress.earlier_refinements)
        if progress.repeated and progress.report is not None:
            self._note(progress.report, progress.assessment)
            return
        report, assessment = self._found(judge=True)
        self._note(report, assessment)
        if not self.progress.judged:
            self.effects.emit(judge_notice(assessment, self.state.pass_number))

    def _found(self, *, judge: bool) -> tuple[SemanticValidationReport, ConvergenceAssessment]:
        state, memory = self.state, self.effects.memory.recall(self.state.pass_number)
        artifacts: dict[str, Any] = {"outputs": state.outputs, "failures": state.failures, "memory": memory}
        artifacts |= {"requirements": state.requirements, "ask": self._ask if judge else None}
        return self.evaluator.of_pass(self.executor.plan, answer=self.progress.given, **artifacts)

    def _ask(self, request: LLMRequest, what: str, read: Callable[[Any], T]) -> T:
        """Return the parsed reply of a model, in a cycle of its own. Raises LLMError, also if no cycle is left."""
        executor = self.executor
        if self.state.ttl_remaining < 1:
            raise LLMError("no TTL cycle is left for it")
        request = with_room(request, self.config.max_tokens)
        with executor.in_cycle():
            reply = executor.llm.complete(request)
            return executor.supervisor.read_object(reply, what, read, request=request, task=self.task)

    def _note(
        self,
        report: SemanticValidationReport,
        assessment: ConvergenceAssessment | None = None,
        pass_number: int | None = None,
    ) -> None:
        number = pass_number or self.state.pass_number
        self.progress.report = report
        self.effects.emit(ValidationRecord(pass_number=number, **report.model_dump(mode="json")))
        if assessment is not None:
            self.progress.assess(self.state, assessment)
            self.effects.emit(ConvergenceRecord(pass_number=number, **assessment.model_dump(mode="json")))

    def _refine(self) -> None:
        """Have the planner rewrite what validation and failures point at (adaptive FR-004)."""
        executor, state, progress = self.executor, self.state, self.progress
        report, assessment = progress.report, progress.assessment
        assert report is not None
        unanswered = assessment is not None and progress.answer is None
        progress.refined, progress.previous_refine_failed, progress.gave_up = False, progress.gave_up, unanswered
        found = Findings(executor.plan, report, assessment, state.ledger, state.failures)
        again = None if progress.repeated else self.planner.answer_again(found)
        if again is not None:
            self._apply(again, report)
            return
        self._notify_person(state.follow_up_questions, left_to_a_person(state.ledger, found.fragments()))
        found = replace(found, ledger=state.ledger)
        known: dict[str, Any] = {"outputs": state.outputs, "requirements": state.requirements, "ttl": state.ttl}
        if (request := self.planner.request(found, **known)) is not None:
            with executor.in_cycle():
                reply = self._asked(request, "the refinement", read_refinement)
                progress.gave_up = unanswered or reply is None
                if reply is not None:
                    self._apply(reply, report)
        if not progress.refined and not progress.gave_up:
            last = self.planner.last_answer(replace(found, plan=executor.plan, ledger=state.ledger))
            if last is not None and not answer_alone(progress.earlier_refinements):
                self._apply(last, report)
        progress.plan_report = review_changes(executor, self.evaluator, self._ask) if progress.refined else None

    def _asked(self, request: LLMRequest, what: str, read: Callable[[Any], T]) -> T | None:
        """Return the parsed reply, None if the supervisor gave up (adaptive FR-067)."""
        executor = self.executor
        try:
            reply = executor.llm.complete(request)
            return executor.supervisor.read_object(reply, what, read, request=request, task=self.task)
        except SupervisorError as error:
            executor.cycle.errors.append(error.as_dict())
            return None

    def _apply(self, reply: RefinementReply, report: SemanticValidationReport) -> None:
        state, plan, number = self.state, self.executor.plan, self.state.pass_number
        self.executor.cycle.errors += reply.errors()
        outcome = self.planner.applied(plan, reply, report, state.ledger)
        questions = [*state.follow_up_questions, *(q for q in reply.follow_up_questions if q not in state.answers)]
        self._notify_person(list(dict.fromkeys(questions))[:MAX_QUESTIONS], outcome.ledger)
        for done in map(Refinement.as_dict, outcome.refinements):
            self.progress.refinements.append(done)
            self.effects.emit(RefinementRecord(pass_number=number, **done))
        for advisory in outcome.advisories:
            self.effects.emit(advisory_record(advisory, number))
        self.progress.refined = bool(outcome.accepted)
        if self.progress.refined:
            registry = self.executor.registry
            unknown = {step.step_id: step.tool for step in plan.walk() if step.tool and step.tool not in registry}
            plan.steps[:] = outcome.plan.steps
            changed = {step.step_id for step in plan.walk() if step.tool != unknown.get(step.step_id)}
            self.state.substitutions.update({key: unknown[key] for key in unknown.keys() & changed})
            validate_plan_tools(plan, registry)
            self.executor.emit_plan("refined")

    def _notify_person(self, questions: list[str], ledger: RefinementLedger) -> None:
        """Journal what is new for a person: questions, and fragments left to them (adaptive FR-011, FR-065)."""
        for notice in person_notices(self.state, questions, ledger):
            self.effects.emit(notice)
        self.state.follow_up_questions, self.state.ledger = questions, ledger

    def _another_pass(self) -> bool:
        """Return whether another pass could change something; a refinement that gave up gets a second chance."""
        progress = self.progress
        if self.executor.plan.pending or progress.refined or (progress.gave_up and not progress.previous_refine_failed):
            return True
        if (report := progress.report) and (assessment := progress.assessment):
            self._note(report, assessment.ended("no_progress"))
        return False
