"""What a person is asked about a plan and about a pass: what the run's state says of them. No control flow."""

from __future__ import annotations

from typing import Any

from aeon_core.effects.review import Point, Review, review
from aeon_core.kernel.executor import Executor
from aeon_core.kernel.result import Progress
from aeon_core.plan.parsing import dump_plan


def reviewed(point: Point, executor: Executor, progress: Progress) -> Review | None:
    """Return what a person wants otherwise, None where the run goes on as it is, or nobody is to be asked.

    A plan is shown before it first runs, and again where it was refined since. Raises RunAborted.
    """
    known = progress.executed > 0 and not progress.refined
    if point not in executor.effects.approve or progress.report is None or (point == "plan" and known):
        return None
    subject = _plan(executor, progress) if point == "plan" else {**_plan(executor, progress), **_pass(progress)}
    return review(
        executor.effects,
        point,
        subject,
        plan=executor.plan,
        before=progress.before if point == "pass" else None,
        report=progress.report,
        pass_number=executor.state.pass_number,
    )


def _plan(executor: Executor, progress: Progress) -> dict[str, Any]:
    assert progress.report is not None
    return {
        "plan": dump_plan(executor.plan),
        "issues": [issue.model_dump(mode="json") for issue in progress.report.issues],
        "refinements": progress.refinements or progress.earlier_refinements,
        "questions": executor.state.follow_up_questions,
        "ttl": executor.state.ttl.model_dump(),
    }


def _pass(progress: Progress) -> dict[str, Any]:
    """Return how the pass went, and what follows where it is approved: `ended`, null for another pass."""
    assessment = progress.assessment
    found = assessment.model_dump(mode="json", exclude={"metadata"}) if assessment is not None else None
    return {"answer": progress.answer, "convergence": found, "ended": progress.ended}
