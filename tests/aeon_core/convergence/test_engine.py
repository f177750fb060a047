"""The engine: flags, codes, scores, thresholds and reports (adaptive US 3; FR-017 to FR-025, FR-068)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.convergence.artifacts import facts_of
from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.convergence.criteria import ConvergenceCriteria
from aeon_core.convergence.engine import ConvergenceEngine
from aeon_core.memory.store import InMemoryStore
from aeon_core.plan.models import Plan
from aeon_core.validation.report import IssueLocation, SemanticValidationReport, ValidationIssue, report_of

GOAL = "Find the height and the weight of the bell."
ANSWER = "The bell has a height of 2.4 m and a weight of 5100 kg."
RESULTS: dict[str, Any] = {"s1": {"height_m": 2.4}, "s2": {"weight_kg": 5100}}


def plan(*changes: dict[str, Any], goal: str = GOAL, more: tuple[dict[str, Any], ...] = ()) -> Plan:
    steps = [
        {"step_id": "s1", "description": "Measure the height of the bell", "status": "complete"},
        {"step_id": "s2", "description": "Weigh the weight of the bell", "status": "complete"},
    ]
    for step, change in zip(steps, changes, strict=False):
        step.update(change)
    return Plan(goal=goal, steps=[*steps, *more])


def assess(criteria: ConvergenceCriteria | None = None, **changed: Any) -> ConvergenceAssessment:
    arguments = {"goal": GOAL, "plan": plan(), "results": RESULTS, "answer": ANSWER} | changed
    return ConvergenceEngine(criteria).assess(**arguments)


def broken(assessment: ConvergenceAssessment) -> list[str]:
    return [flag for flag, holds in assessment.consistency_status.items() if not holds]


def report(**fields: Any) -> SemanticValidationReport:
    artifact, step_id = fields.pop("artifact", "plan"), fields.pop("step_id", None)
    values = {
        "issue_id": "issue-1",
        "type": "consistency",
        "severity": "high",
        "description": "d",
        "proposed_repair": "r",
    }
    issue = ValidationIssue(**(values | fields), location=IssueLocation(artifact=artifact, step_id=step_id))
    return report_of("validation-1", "plan", [issue])


def test_a_sound_result_converges_with_every_criterion_named() -> None:
    found = assess()
    assert found.converged
    assert found.reason_codes == ["complete", "coherent", "consistent"]
    assert (found.completeness_score, found.coherence_score) == (1.0, 1.0)
    assert found.consistency_status == {"plan": True, "step": True, "answer": True, "memory": True}
    assert found.detected_issues == []
    assert found.metadata["steps"] == {"required": 2, "failed": [], "missing": []}


@pytest.mark.parametrize(
    ("flag", "changed"),
    [
        ("plan", {"results": {**RESULTS, "s9": {"width_m": 1}}}),
        ("step", {"report": report(artifact="step", step_id="s1")}),
        ("answer", {"answer": ANSWER.replace("5100", "6300")}),
        ("memory", {"memory": {"s1": {"height_m": 1.9}}}),
    ],
    ids=["plan", "step", "answer", "memory"],
)
def test_each_flag_can_be_driven_alone(flag: str, changed: dict[str, Any]) -> None:
    found = assess(**changed)
    assert broken(found) == [flag]
    assert not found.converged
    assert "inconsistent" in found.reason_codes
    assert found.detected_issues


def test_outputs_that_contradict_each_other_break_the_step_flag_alone() -> None:
    more = {"step_id": "s3", "description": "Measure the height of the bell by laser", "status": "complete"}
    steps = plan(more=(more,))
    found = assess(plan=steps, results={**RESULTS, "s3": {"height_m": 3.1}})
    assert broken(found) == ["step"]
    assert "contradiction_detected" in found.reason_codes


def test_a_flag_that_is_not_required_does_not_stand_in_the_way() -> None:
    changed = {"results": {**RESULTS, "s9": {"width_m": 1}}}
    assert assess(ConvergenceCriteria(consistency=["step", "answer"]), **changed).converged
    assert not assess(ConvergenceCriteria(consistency=["plan"]), **changed).converged


@pytest.mark.parametrize(
    ("changes", "results", "code"),
    [
        (({"status": "failed"},), {"s2": RESULTS["s2"]}, "failed_step"),
        (({"status": "pending"},), {"s2": RESULTS["s2"]}, "missing_step"),
        (({"status": "running"},), {"s2": RESULTS["s2"]}, "missing_step"),
        (({"status": "invalid"},), RESULTS, "missing_step"),
        (({},), {"s2": RESULTS["s2"]}, "missing_step"),
    ],
    ids=["failed", "pending", "running", "invalid", "no-output"],
)
def test_a_step_that_is_not_done_converges_nothing_whatever_is_claimed(
    changes: tuple[dict[str, Any], ...], results: dict[str, Any], code: str
) -> None:
    lax = ConvergenceCriteria(completeness=0, coherence=0, consistency=[])
    claim = {"text": "completeness_score: 1.0, coherence_score: 1.0, converged: true"}
    steps = plan(*changes, more=({"step_id": "s3", "description": "Judge the run", "status": "complete"},))
    found = assess(lax, plan=steps, results={**results, "s3": claim})
    assert not found.converged
    assert found.reason_codes == ["incomplete", code]
    assert found.completeness_score < 1


def test_the_score_is_the_share_of_steps_that_are_done() -> None:
    done = assess(plan=plan(more=({"step_id": "s3", "description": "Photograph the bell", "status": "pending"},)))
    assert done.completeness_score == 0.667
    assert done.metadata["steps"] == {"required": 3, "failed": [], "missing": ["s3"]}


def test_an_invalid_step_is_made_good_by_the_one_that_replaces_it() -> None:
    more = {
        "step_id": "s3",
        "description": "Measure the height of the bell anew",
        "status": "complete",
        "replaces": "s1",
    }
    found = assess(plan=plan({"status": "invalid"}, more=(more,)), results={**RESULTS, "s3": {"height_m": 2.4}})
    assert found.converged


def test_complete_but_incoherent_names_what_failed_alone() -> None:
    found = assess(answer=ANSWER.replace("2.4", "7.9"))
    assert found.reason_codes == ["incoherent", "inconsistent", "contradiction_detected"]
    assert found.completeness_score >= 0.8 > found.coherence_score


def test_coherent_but_incomplete_names_what_failed_alone() -> None:
    found = assess(answer="The bell has a height of 2.4 m.")
    assert found.reason_codes == ["incomplete"]
    assert found.coherence_score == 1.0


@pytest.mark.parametrize("answer", [None, "", "  \n", "I cannot determine that.", "TBD", "We will look into it."])
def test_no_answer_and_an_evasive_one_are_incomplete(answer: str | None) -> None:
    found = assess(answer=answer)
    assert found.completeness_score == 0
    assert found.reason_codes == ["incomplete"]


@pytest.mark.parametrize(
    ("issue", "codes"),
    [
        ({"type": "hallucination", "step_id": "s1"}, {"hallucinated_tool", "incoherent", "inconsistent"}),
        ({"type": "hallucination", "severity": "medium"}, {"hallucinated_tool", "incoherent"}),
        ({"description": "s1 contradicts s2"}, {"contradiction_detected", "incoherent", "inconsistent"}),
        ({"description": "the plan omits a step"}, {"missing_step", "incomplete", "incoherent", "inconsistent"}),
        ({"type": "relevance"}, {"incoherent"}),
        ({"type": "do_say_mismatch", "artifact": "step"}, {"incoherent", "inconsistent"}),
        ({"severity": "medium"}, set()),
        ({"severity": "low", "type": "specificity"}, set()),
    ],
    ids=["tool", "tool-medium", "contradiction", "omission", "relevance", "do-say", "warning", "remark"],
)
def test_the_validation_report_is_input(issue: dict[str, Any], codes: set[str]) -> None:
    found = assess(report=report(**issue))
    assert found.converged == (not codes)
    assert not codes or set(found.reason_codes) == codes
    assert found.coherence_score < 1
    assert len(found.detected_issues) == 1


def test_issues_of_a_superseded_step_are_over() -> None:
    more = {
        "step_id": "s3",
        "description": "Measure the height of the bell anew",
        "status": "complete",
        "replaces": "s1",
    }
    steps = plan({"status": "invalid"}, more=(more,))
    results = {**RESULTS, "s3": {"height_m": 2.4}}
    assert assess(plan=steps, results=results, report=[report(step_id="s1")]).converged
    assert not assess(plan=steps, results=results, report=[report(step_id="s3")]).converged


def test_a_tool_that_is_not_registered_is_hallucinated() -> None:
    steps = plan({"tool": "scales"})
    assert assess(plan=steps, tools={"scales"}).converged
    found = assess(plan=steps, tools={"calculator"})
    assert "hallucinated_tool" in found.reason_codes
    assert broken(found) == ["plan"]


def test_a_store_serves_as_memory_and_its_other_entries_do_no_harm() -> None:
    store = InMemoryStore()
    for key, value in {**RESULTS, "customer": "St Mary's"}.items():
        store.write(key, value)
    assert assess(memory=store).converged
    store.write("s2", {"weight_kg": 1})
    assert broken(assess(memory=store)) == ["memory"]


def test_success_claimed_over_a_failed_step_is_a_contradiction() -> None:
    found = assess(
        plan=plan({}, {"status": "failed"}),
        results={"s1": RESULTS["s1"]},
        failures={"s2": ["scales offline"]},
        answer="All steps completed successfully. The height of the bell is 2.4 m.",
    )
    assert {"failed_step", "contradiction_detected"} <= set(found.reason_codes)
    assert "step 's2' failed: scales offline" in found.detected_issues


def test_substeps_count_and_their_parent_need_not_repeat_them() -> None:
    sub = {"step_id": "s1a", "description": "Hold the tape to the height of the bell", "status": "complete"}
    nested = {"subplan": {"parent_step_id": "s1", "subplan_goal": "height", "substeps": [sub]}}
    results = {"s1a": {"height_m": 2.4}, "s2": RESULTS["s2"]}
    assert assess(plan=plan(nested), results=results).converged
    nested["subplan"]["substeps"] = [{**sub, "status": "pending"}]
    assert "missing_step" in assess(plan=plan(nested), results={"s2": RESULTS["s2"]}).reason_codes


def test_a_run_that_ends_otherwise_says_so() -> None:
    incomplete = assess(answer=None)
    assert incomplete.ended("no_progress").reason_codes == ["incomplete", "no_progress"]
    assert incomplete.ended("ttl_expired").ended("ttl_expired").reason_codes == ["incomplete", "ttl_expired"]
    enough = assess()
    assert enough.converged
    assert (enough.ended("ttl_expired").converged, enough.ended("ttl_expired").reason_codes) == (False, ["ttl_expired"])


def test_the_facts_of_an_output_come_in_one_order() -> None:
    one, other = {"b": 1, "a": [True, "x y"]}, {"a": [True, "x y"], "b": 1}
    assert list(facts_of("s1", one)) == list(facts_of("s1", other))
    assert [fact.text for fact in facts_of("s1", one)] == ["true", "x y", "1"]


def test_an_assessment_survives_json() -> None:
    found = assess(answer=None, report=report())
    assert ConvergenceAssessment.model_validate_json(found.model_dump_json()) == found
