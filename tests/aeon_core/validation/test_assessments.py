"""What an assessment of convergence claims that the artifacts do not bear out; contradictions that stay."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.convergence.engine import ConvergenceEngine
from aeon_core.plan.models import Plan
from aeon_core.tools.registry import default_registry
from aeon_core.validation.validator import SemanticValidator
from tests.aeon_core.validation.semantic.plans import plan

VALIDATOR = SemanticValidator(default_registry())
RESULTS: dict[str, Any] = {"s1": {"rows": 7}, "s2": {"text": "rows.csv has 7 rows"}}
SOUND: dict[str, Any] = {
    "converged": True,
    "reason_codes": ["complete", "coherent", "consistent"],
    "completeness_score": 1.0,
    "coherence_score": 1.0,
    "consistency_status": {"plan": True, "step": True, "answer": True, "memory": True},
    "detected_issues": [],
}


def done(*statuses: str) -> Plan:
    made = plan("Count the rows of rows.csv", "Read rows.csv", "Count the rows of rows.csv")
    for step, status in zip(made.steps, statuses, strict=True):
        if status != "pending":
            step.status = "running"
            step.status = status  # type: ignore[assignment]
    return made


def found(statuses: tuple[str, str] = ("complete", "complete"), **changed: Any) -> list[tuple[str, str, str]]:
    failures = {f"s{n}": ["boom"] for n, status in enumerate(statuses, 1) if status == "failed"}
    results = {
        step_id: result
        for (step_id, result), status in zip(RESULTS.items(), statuses, strict=True)
        if status == "complete"
    }
    report = VALIDATOR.validate_assessment(
        {**SOUND, **changed}, plan=done(*statuses), results=results, failures=failures
    )
    assert all(issue.location.artifact == "assessment" for issue in report.issues)
    assert report.proposed_repairs == [issue.proposed_repair for issue in report.issues]
    return [(issue.type, issue.severity, issue.description) for issue in report.issues]


def test_a_sound_assessment_has_no_issue() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("statuses", "how"), [(("complete", "failed"), "failed: 's2'"), (("complete", "pending"), "did not run: 's2'")]
)
def test_a_finished_result_with_a_step_that_is_not_is_a_hallucination(statuses: tuple[str, str], how: str) -> None:
    ((kind, severity, text),) = found(statuses)
    assert (kind, severity) == ("hallucination", "high")
    assert text == f"the assessment says converged, and these steps {how}"


def test_a_full_score_is_such_a_claim_too_and_an_honest_one_is_none() -> None:
    honest = {"converged": False, "completeness_score": 0.5}
    assert found(("complete", "failed"), **honest) == []
    ((kind, _, text),) = found(("complete", "failed"), converged=False)
    assert (kind, "says complete" in text) == ("hallucination", True)


def test_a_step_that_does_not_exist_is_a_hallucination() -> None:
    told = ["the answer contradicts step 's7'", "step 's1' gave 7", 'steps "s7" and others']
    assert [(kind, severity) for kind, severity, _ in found(detected_issues=told)] == [("hallucination", "medium")]


def test_converged_against_its_own_flags_is_inconsistent_unless_the_criteria_leave_them_out() -> None:
    status = {"plan": True, "step": True, "answer": False, "memory": True}
    assert [kind for kind, _, _ in found(consistency_status=status)] == ["consistency"]
    criteria = {"criteria": {"consistency": ["plan", "step"]}}
    assert found(consistency_status=status, metadata=criteria) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"detected_issues": 5, "consistency_status": [], "metadata": "x"},
        {"detected_issues": [None, 7], "consistency_status": None, "metadata": {"criteria": {"consistency": [[]]}}},
        {"converged": "yes", "completeness_score": "1.0"},
    ],
)
def test_what_is_no_assessment_is_read_as_far_as_it_goes(changed: dict[str, Any]) -> None:
    assert found(("complete", "complete"), **changed) == []


@pytest.mark.parametrize("statuses", [("complete", "complete"), ("complete", "failed"), ("failed", "pending")])
def test_what_the_engine_says_is_borne_out(statuses: tuple[str, str]) -> None:
    made = done(*statuses)
    results = {s: r for (s, r), status in zip(RESULTS.items(), statuses, strict=True) if status == "complete"}
    failures = {f"s{n}": ["boom"] for n, status in enumerate(statuses, 1) if status == "failed"}
    given: dict[str, Any] = {"plan": made, "results": results, "failures": failures}
    assessment = ConvergenceEngine().assess(goal=made.goal, answer="rows.csv has 7 rows", **given)
    assert VALIDATOR.validate_assessment(assessment.model_dump(), **given).issues == []


def test_a_contradiction_that_no_refinement_can_resolve_is_reported_the_same_each_time() -> None:
    """An executed step cannot change: what contradicts it is still told in every pass, high, with a repair."""
    made = done("complete", "complete")
    given: dict[str, Any] = {"goal": made.goal, "plan": made, "results": RESULTS, "memory": {"s1": {"rows": 9}}}
    first, second = (VALIDATOR.validate_execution(**given) for _ in range(2))
    assert first == second
    (issue,) = first.issues
    assert (issue.type, issue.severity, issue.location.step_id) == ("consistency", "high", "s1")
    assert "run the step once more" in issue.proposed_repair
    assert not ConvergenceEngine().assess(answer="rows.csv has 7 rows", report=first, **given).converged


def test_a_goal_that_rules_out_its_own_steps_is_told_at_each_of_them() -> None:
    ruled_out = plan("Delete all logs, but never delete anything", "Delete the logs of May", "Delete the logs of June")
    issues = VALIDATOR.validate_plan(ruled_out).issues
    assert [(i.type, i.severity, i.location.step_id) for i in issues] == [
        ("consistency", "high", "s1"),
        ("consistency", "high", "s2"),
    ]
    assert VALIDATOR.validate_plan(ruled_out).issues == issues
