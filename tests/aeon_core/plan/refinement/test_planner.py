"""The planner as the loop uses it: when a model is asked, what is left to the user, what an answer request says."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from aeon_core.convergence import ConvergenceAssessment
from aeon_core.entities import IssueLocation, SemanticValidationReport, TTLState, ValidationIssue, report_of
from aeon_core.evaluation import Evaluator, Findings, RecursivePlanner
from aeon_core.plan.models import Plan
from aeon_core.plan.refinement.actions import RefinementLedger, left_to_a_person
from aeon_core.tools.registry import ToolRegistry
from tests.aeon_core.plan.refinement.kit import issue, plan_of, step

TASK = "Find the height and the weight of the bell."
PLAN = plan_of(step("a", "complete", description="Measure the height of the bell"))
REGISTRY = ToolRegistry()
PLANNER = RecursivePlanner(TASK, REGISTRY, Evaluator(TASK, REGISTRY, None, None), max_tokens=500, prompts_dir=None)
TTL = TTLState(limit=20, allocated=20, spent=5, remaining=15)
CLEAN = report_of("v", "plan", [])


def report(*issues: ValidationIssue) -> SemanticValidationReport:
    return report_of("v", "cross_phase", issues)


MISSED = "requirement 2 is not met: The weight is told."
LEFT_OUT = ConvergenceAssessment(
    converged=False,
    reason_codes=["incomplete"],
    completeness_score=0.5,
    coherence_score=1,
    consistency_status={"plan": True, "step": True, "answer": True, "memory": True},
    detected_issues=[MISSED],
    requirements=[
        {"n": 1, "text": "The height is told.", "met": "yes", "evidence": "2.4 m", "quote_found": True},
        {"n": 2, "text": "The weight is told.", "met": "no", "evidence": "2.4 m", "quote_found": True},
    ],
    judged=True,
)


def asked(
    plan: Plan,
    found: SemanticValidationReport,
    ledger: RefinementLedger | None = None,
    assessment: ConvergenceAssessment | None = None,
) -> str | None:
    findings = Findings(plan, found, assessment, ledger if ledger is not None else RefinementLedger())
    request = PLANNER.request(findings, requirements=["The weight is told."], outputs={}, ttl=TTL)
    return request.messages[0]["content"].partition("<fragments>")[2] if request is not None else None


def test_no_model_is_called_if_nothing_is_deficient() -> None:
    assert asked(PLAN, CLEAN) is None


def test_an_unserved_part_of_the_goal_is_requested() -> None:
    fragments = asked(PLAN, CLEAN, assessment=LEFT_OUT)

    assert fragments is not None
    assert '"step_id": "plan"' in fragments
    assert MISSED in fragments


@pytest.mark.parametrize(
    "ledger",
    [
        RefinementLedger(total=10, fragments={"x": 3, "y": 3, "z": 3, "v": 1}),
        RefinementLedger(total=6, fragments={"a": 3, "plan": 3}),
        RefinementLedger().marked("a", "nesting_limit", "too deep").marked("plan", "refinement_limit", "enough"),
    ],
    ids=["in all", "each", "marked"],
)
def test_no_model_is_called_if_nothing_can_be_refined(ledger: RefinementLedger) -> None:
    found = report(issue("a", "high"), issue(None, "high"))

    assert asked(PLAN, found) is not None
    assert asked(PLAN, found, ledger) is None


def test_only_refinable_fragments_are_shown() -> None:
    ledger = RefinementLedger(total=3, fragments={"a": 3})
    fragments = asked(PLAN, report(issue("a", "high"), issue(None, "high")), ledger)

    assert fragments is not None
    assert '"step_id": "a"' not in fragments
    assert '"step_id": "plan"' in fragments


def settled(found: Sequence[ValidationIssue], ledger: RefinementLedger) -> RefinementLedger:
    return left_to_a_person(ledger, Findings(PLAN, report(*found), LEFT_OUT, ledger).fragments())


def test_exactly_the_fragments_at_their_limit_are_settled_once() -> None:
    ledger = RefinementLedger(total=4, fragments={"a": 3, "plan": 1})
    once = settled([issue("a", "high")], ledger)

    assert [entry.step_id for entry in once.manual_intervention] == ["a"]
    assert settled([issue("a", "high")], once) == once
    assert settled([], ledger) == ledger


def test_an_answer_request_names_the_faults_of_the_previous_one() -> None:
    wrong = issue(None, "high", "consistency", description="the answer tells a colour", proposed_repair="Leave it out.")
    wrong = wrong.model_copy(update={"location": IssueLocation(artifact="answer")})
    sections = PLANNER.answer_sections("It is green.", report(wrong, issue("a", "high")), LEFT_OUT)

    assert json.loads(sections["assessment"]) == {
        "answer": "It is green.",
        "requirements": [LEFT_OUT.requirements[1]],
        "issues": ["the answer tells a colour → Leave it out."],
        "detected_issues": [MISSED],
    }


def test_requests_for_the_first_answer_and_after_a_converged_pass_name_no_faults() -> None:
    done = LEFT_OUT.model_copy(update={"converged": True})

    assert PLANNER.answer_sections(None, None, None) == {}
    assert PLANNER.answer_sections("x", CLEAN, None) == {}
    assert PLANNER.answer_sections("x", CLEAN, done) == {}
