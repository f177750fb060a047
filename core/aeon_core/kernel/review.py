"""What a person is asked about a plan and about a pass: what the run's state says of them, and what that changes."""

from __future__ import annotations

from typing import Any

from aeon_core.effects.approvals import Point, Review, review
from aeon_core.kernel.executor import Executor
from aeon_core.kernel.result import Progress, profile_record
from aeon_core.plan.parsing import dump_plan
from aeon_core.validation.report import SemanticValidationReport


def request_review(point: Point, executor: Executor, progress: Progress) -> Review | None:
    """Return what a person wants otherwise, None where the run goes on as it is, or nobody is to be asked.

    A plan is shown before it first runs, and again where it was refined since. Raises RunAborted.
    """
    known = progress.executed > 0 and not progress.refined
    if point not in executor.effects.approve or progress.report is None or (point == "plan" and known):
        return None
    report = progress.plan_report if point == "plan" and progress.plan_report is not None else progress.report
    subject = _plan(executor, report)
    if point == "pass":
        subject |= _pass(progress)
    else:
        subject["refinements"] = progress.refinements or progress.earlier_refinements
    found = review(
        executor.effects,
        point,
        subject,
        plan=executor.plan,
        before=progress.before if point == "pass" else None,
        report=report,
        pass_number=executor.state.pass_number,
    )
    if found is not None and found.requirements is not None:
        executor.state.requirements = found.requirements
        why = "a person edited the requirements"
        executor.effects.emit(profile_record(executor.state, executor.state.pass_number, why))
    return found


def _plan(executor: Executor, report: SemanticValidationReport) -> dict[str, Any]:
    return {
        "plan": dump_plan(executor.plan),
        "requirements": executor.state.requirements,
        "issues": [issue.model_dump(mode="json") for issue in report.issues],
        "questions": executor.state.follow_up_questions,
        "ttl": executor.state.ttl.model_dump(),
    }


def _pass(progress: Progress) -> dict[str, Any]:
    """Return how the pass went, and what follows where it is approved: `ended`, null for another pass.

    `refinements` are those of this pass, `earlier_refinements` those that led from the pass before to its plan.
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
