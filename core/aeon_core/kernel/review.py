"""What a person is asked about a plan and a pass, and what their decision changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from aeon_core.effects.approvals import Point, Review, review
from aeon_core.entities import SemanticValidationReport, ValidationIssue
from aeon_core.errors import AeonError, LLMError, RunAborted, SupervisorError
from aeon_core.evaluation import Evaluator
from aeon_core.journal.records import NoticeRecord, ValidationRecord
from aeon_core.judge.judgement import Ask
from aeon_core.kernel.executor import Executor
from aeon_core.kernel.progress import RunProgress, profile_record
from aeon_core.kernel.state import call_form
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan


def request_review(
    point: Point, executor: Executor, progress: RunProgress, *, unchanged: bool = False
) -> Review | None:
    """Return the changes the user wants, None if the run continues unchanged or nobody is asked.

    A plan is shown before it first runs, and again if it was refined since; `unchanged` says that they rejected it and
    no change followed. Raises RunAborted.
    """
    known = progress.executed > 0 and not progress.refined
    if point not in executor.effects.approve or progress.report is None or (point == "plan" and known):
        return None
    report = progress.plan_report if point == "plan" and progress.plan_report is not None else progress.report
    return _asked(point, executor, progress, report, unchanged=unchanged)


def approve_single_pass(executor: Executor, progress: RunProgress, evaluator: Evaluator) -> Plan | None:
    """Have a person approve the plan of a single pass; return the plan they want instead, None to run it as it is.

    A single pass refines nothing: a rejection ends the run, which asks again when it is resumed. Raises RunAborted.
    """
    effects = executor.effects
    if not effects.asks_here("plan"):
        return None
    asked_at = effects.next_seq
    review = _asked("plan", executor, progress, evaluator.of_plan(executor.plan))
    if review is None:
        return None
    if review.report is not None:
        effects.resumes_from(asked_at)
        raise RunAborted("the plan was rejected, and a single-pass run cannot refine it; fork the run with --plan FILE")
    return review.plan


def _asked(
    point: Point,
    executor: Executor,
    progress: RunProgress,
    report: SemanticValidationReport,
    *,
    unchanged: bool = False,
) -> Review | None:
    subject = _plan(executor, report) | _given(executor)
    if unchanged:
        subject["unchanged"] = True
    if point == "pass":
        subject |= _pass(progress)
    else:
        subject["refinements"] = progress.refinements or progress.earlier_refinements
    if executor.config.single_pass:
        subject["single_pass"] = True
    found = review(
        executor.effects,
        point,
        subject,
        plan=executor.plan,
        before=Plan.model_validate(progress.before) if point == "pass" else None,
        report=report,
        pass_number=executor.state.pass_number,
    )
    if found is not None:
        executor.state.answer(found.answers)
    if found is not None and found.requirements is not None:
        executor.state.requirements = found.requirements
        if executor.state.task_profile is not None:
            why = "a person edited the requirements"
            executor.effects.emit(profile_record(executor.state, executor.state.pass_number, why))
    # Answers alone do not continue a run that the decision ends.
    return found if found is not None and found != Review(answers=found.answers) else None


def _plan(executor: Executor, report: SemanticValidationReport) -> dict[str, Any]:
    return {
        "plan": dump_plan(executor.plan),
        "requirements": executor.state.requirements,
        "issues": [issue.model_dump(mode="json") for issue in report.issues],
        "questions": executor.state.follow_up_questions,
        "ttl": executor.state.ttl.model_dump(),
    }


def _given(executor: Executor) -> dict[str, Any]:
    """Return the `answers` that a person already gave to the open questions."""
    given, questions = executor.effects.given_answers, executor.state.follow_up_questions
    answers = {question: given[question] for question in questions if given.get(question, "").strip()}
    return {"answers": answers} if answers else {}


def _pass(progress: RunProgress) -> dict[str, Any]:
    """Return how the pass went, and what follows if it is approved: `ended`, null for another pass.

    `refinements` are this pass's own, `earlier_refinements` those that produced its plan.
    """
    assessment = progress.assessment
    found = assessment.model_dump(mode="json", exclude={"metadata"}) if assessment is not None else None
    return {
        "answer": progress.answer,
        "convergence": found,
        "ended": progress.ended,
        "refinements": progress.refinements,
        "earlier_refinements": progress.earlier_refinements,
    }


T = TypeVar("T")


def review_plan(executor: Executor, evaluator: Evaluator, ask: Ask) -> SemanticValidationReport:
    """Return the journaled report on a plan; a model reviews it if a step calls an unsafe tool, or in deep mode."""
    deep = executor.state.reasoning_mode == "deep"
    return _reviewed(executor, evaluator, ask if deep or _new_calls(executor) else None)


def review_changes(executor: Executor, evaluator: Evaluator, ask: Ask) -> SemanticValidationReport | None:
    """Return the report on a refined plan that has a new call of an unsafe tool; None if it has none."""
    return _reviewed(executor, evaluator, ask) if _new_calls(executor) else None


def _reviewed(executor: Executor, evaluator: Evaluator, ask: Ask | None) -> SemanticValidationReport:
    """Validate the plan, with a review if `ask` is given.

    A high-severity issue that the review raises about a call of an unsafe tool, or about a step containing it, is an
    objection: a person must approve the call. A review that fails raises no objections, unless an earlier one did: then
    calls changed since are objected to as well. A notice says why there is no review.
    """
    state, plan, failures = executor.state, executor.plan, list[AeonError]()

    def asked(request: LLMRequest, what: str, read: Callable[[Any], T]) -> T:
        assert ask is not None
        try:
            return ask(request, what, read)
        except (LLMError, SupervisorError) as error:
            failures.append(error)
            raise

    exact = evaluator.of_plan(plan)
    report = exact if ask is None else evaluator.of_plan(plan, state.requirements, asked)
    executor.effects.emit(ValidationRecord(pass_number=state.pass_number, **report.model_dump(mode="json")))
    if failures:
        message = f"no model reviewed the plan before it acts: {failures[0].message}"
        executor.effects.emit(NoticeRecord(kind="not_reviewed", pass_number=state.pass_number, message=message))
        if not any(state.reviewed.values()):
            return report
    objections = _by_step(plan, report.issues[len(exact.issues) :])
    unseen = "it was changed after an objection, and not reviewed again" if failures else None
    for step_id, form in _unsafe_calls(executor):
        state.reviewed[form] = objections.get(step_id) or state.reviewed.get(form, unseen)
    return report


def _by_step(plan: Plan, issues: Sequence[ValidationIssue]) -> dict[str, str]:
    """Return the first grave issue with each step, or with a step that contains it, by step_id."""
    grave = {issue.location.step_id: issue.description for issue in reversed(issues) if issue.severity == "high"}
    found: dict[str, str] = {}
    for step in plan.walk():
        if (why := grave.get(step.step_id) or found.get(step.step_id)) is not None:
            found |= dict.fromkeys([step.step_id, *(part.step_id for part in step.substeps)], why)
    return found


def _new_calls(executor: Executor) -> bool:
    """Return whether a pending call of an unsafe tool was not reviewed."""
    return any(form not in executor.state.reviewed for _, form in _unsafe_calls(executor))


def _unsafe_calls(executor: Executor) -> Iterator[tuple[str, str]]:
    """Yield the step_id and the form of each pending call of an unsafe tool."""
    for step in executor.plan.pending:
        tool = executor.registry.get(step.tool) if step.tool is not None else None
        if tool is not None and tool.effect == "unsafe":
            yield step.step_id, call_form(step)
