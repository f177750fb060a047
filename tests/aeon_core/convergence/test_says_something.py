"""An answer that says nothing which the task did not say is none (adaptive FR-018)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.convergence.engine import ConvergenceEngine
from aeon_core.plan.models import Plan

GOAL = "Explain how the tides in the bay come about."
TOLD = "The moon pulls at the water; the bay turns under two bulges a day, so the sea rises and falls twice."


def assess(answer: str, *, goal: str = GOAL, output: Any = None, **step: Any) -> ConvergenceAssessment:
    fields = {"step_id": "s1", "description": goal.rstrip("."), "status": "complete", **step}
    results = {"s1": {"text": TOLD} if output is None else output}
    return ConvergenceEngine().assess(goal=goal, plan=Plan(goal=goal, steps=[fields]), results=results, answer=answer)


@pytest.mark.parametrize(
    "answer",
    [
        GOAL,
        GOAL.upper(),
        "This explains how the tides in the bay come about.",
        "The tides in the bay.",
        "Done.",
        "Tides.",
    ],
    ids=["verbatim", "upper", "restated", "part", "done", "word"],
)
@pytest.mark.parametrize("output", [None, {"text": "This explains how the tides in the bay come about."}])
def test_the_task_repeated_is_no_answer_whatever_the_step_gave(answer: str, output: Any) -> None:
    found = assess(answer, output=output)
    assert not found.converged
    assert found.reason_codes == ["incomplete"]


def test_the_plan_repeated_is_no_answer() -> None:
    steps = [
        {"step_id": "s1", "description": "Gather the times of high water", "status": "complete"},
        {"step_id": "s2", "description": "Relate the times to the moon", "status": "complete"},
    ]
    results = {"s1": {"text": "06:12 and 18:37"}, "s2": {"text": "High water follows the moon by 48 minutes."}}
    answer = "Gather the times of high water. Relate the times to the moon."
    arguments: dict[str, Any] = {"goal": GOAL, "plan": Plan(goal=GOAL, steps=steps), "results": results}
    found = ConvergenceEngine().assess(answer=answer, **arguments)
    assert found.completeness_score == 0
    assert found.detected_issues == ["the answer only repeats the task or the plan"]


def test_what_the_step_gave_is_an_answer() -> None:
    assert assess(TOLD).converged


@pytest.mark.parametrize(
    ("goal", "output", "answer", "step"),
    [
        ("Which is heavier, lead or cork?", {"text": "Lead is heavier."}, "Lead", {}),
        ("Sort these names: Zoe, Adam, Mia", {"text": "Adam, Mia, Zoe"}, "Adam, Mia, Zoe", {}),
        ("Delete the folder old_logs", {"status": "ok"}, "The folder old_logs was deleted.", {"tool": "Bash"}),
        ("Is 97 a prime number?", {"result": True}, "Yes.", {"tool": "prime"}),
        ("Write a name for a black cat", {"text": "Salem"}, "Salem", {}),
    ],
    ids=["choice", "order", "report", "yes", "name"],
)
def test_short_answers_and_reports_that_use_the_words_of_the_task_are_answers(
    goal: str, output: Any, answer: str, step: dict[str, Any]
) -> None:
    assert assess(answer, goal=goal, output=output, **step).converged
