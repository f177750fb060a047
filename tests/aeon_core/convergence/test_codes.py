"""Every reason code and every consistency flag is driven alone (adaptive FR-019 to FR-025, FR-068; contract)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.convergence.criteria import REASON_CODES, ConvergenceCriteria
from aeon_core.convergence.engine import ConvergenceEngine
from aeon_core.plan.models import Plan
from aeon_core.validation.report import IssueLocation, SemanticValidationReport, ValidationIssue, report_of

GOAL = "Count the boats and the buoys in the harbour."
ANSWER = "There are 37 boats and 112 buoys in the harbour."
RESULTS: dict[str, Any] = {"s1": {"boats": 37}, "s2": {"buoys": 112}}


def plan(second: str = "complete", goal: str = GOAL, **more: Any) -> Plan:
    steps = [
        {"step_id": "s1", "description": "Count the boats in the harbour", "status": "complete"},
        {"step_id": "s2", "description": "Count the buoys in the harbour", "status": second, **more},
    ]
    return Plan(goal=goal, steps=steps)


def report(**fields: Any) -> SemanticValidationReport:
    values = {"issue_id": "i1", "severity": "high", "description": "d", "proposed_repair": "r", **fields}
    location = IssueLocation(artifact=values.pop("artifact", "plan"), step_id=None)
    return report_of("v1", "plan", [ValidationIssue(**values, location=location)])


def assess(criteria: ConvergenceCriteria | None = None, **changed: Any) -> ConvergenceAssessment:
    return ConvergenceEngine(criteria).assess(
        **({"goal": GOAL, "plan": plan(), "results": RESULTS, "answer": ANSWER} | changed)
    )


def broken(found: ConvergenceAssessment) -> list[str]:
    return [flag for flag, holds in found.consistency_status.items() if not holds]


LAX = ConvergenceCriteria(completeness=0, coherence=0, consistency=[])
UNREACHED = {"results": {"s1": RESULTS["s1"]}, "answer": "There are 37 boats in the harbour; no buoys were counted."}
DIRECT: dict[str, tuple[ConvergenceCriteria | None, dict[str, Any], list[str]]] = {
    "incomplete": (None, {"answer": "There are 37 boats in the harbour."}, ["incomplete"]),
    "incoherent": (None, {"report": report(type="relevance")}, ["incoherent"]),
    "inconsistent": (None, {"results": {**RESULTS, "s9": {"gulls": 4}}}, ["inconsistent"]),
    "missing_step": (LAX, {"plan": plan("pending"), **UNREACHED}, ["incomplete", "missing_step"]),
    "failed_step": (LAX, {"plan": plan("failed"), **UNREACHED}, ["incomplete", "failed_step"]),
    "contradiction_detected": (
        LAX,
        {"answer": ANSWER.replace("37", "73")},
        ["incoherent", "contradiction_detected"],
    ),
    "hallucinated_tool": (
        LAX,
        {"plan": plan(tool="sonar"), "tools": {"counter"}},
        ["incoherent", "hallucinated_tool"],
    ),
}
"""What brings a code about, under which criteria, and all codes there are then: beside it only what it implies."""


@pytest.mark.parametrize("code", DIRECT)
def test_each_code_stands_alone_but_for_what_it_implies(code: str) -> None:
    criteria, changed, codes = DIRECT[code]
    found = assess(criteria, **changed)
    assert (found.converged, found.reason_codes) == (False, codes)
    assert found.detected_issues


def test_all_codes_of_the_contract_are_driven() -> None:
    met = assess()
    assert met.reason_codes == ["complete", "coherent", "consistent"]
    ended = assess(answer=None)
    assert ended.ended("no_progress").reason_codes == ["incomplete", "no_progress"]
    assert ended.ended("ttl_expired").reason_codes == ["incomplete", "ttl_expired"]
    unjudged = met.unjudged("the judge failed")
    assert (unjudged.converged, unjudged.reason_codes, unjudged.judged) == (False, ["not_judged"], False)
    assert {*met.reason_codes, *DIRECT, "no_progress", "not_judged", "ttl_expired"} == set(REASON_CODES)


def test_the_name_of_a_criterion_is_a_code() -> None:
    criteria = ConvergenceCriteria(additional=[{"name": "brief", "description": "at most 3 words"}])
    assert assess(criteria).reason_codes == ["brief"]


FLAG_ALONE: dict[str, list[dict[str, Any]]] = {
    "plan": [
        {"results": {**RESULTS, "s9": {"gulls": 4}}},
        {"plan": plan(depends_on=["s7"])},
        {"plan": plan(tool="sonar"), "tools": {"counter"}},
        {"report": report(type="do_say_mismatch", artifact="plan")},
    ],
    "step": [
        {"report": report(type="do_say_mismatch", artifact="step")},
        {"plan": plan("running"), "answer": "There are 37 boats in the harbour."},
        {"failures": {"s1": ["late"]}, "answer": "There are 37 boats and 112 buoys, and counting the boats was late."},
    ],
    "answer": [
        {"answer": ANSWER.replace("112", "211")},
        {"answer": ANSWER + " The sonar_scan tool counted them.", "tools": {"counter"}},
        {"report": report(type="consistency", artifact="answer")},
    ],
    "memory": [
        {"memory": {"s2": {"buoys": 110}}},
        {"memory": {"boats": 36}},
        {"report": report(type="consistency", artifact="memory")},
    ],
}


@pytest.mark.parametrize(
    ("flag", "changed"),
    [(flag, changed) for flag, ways in FLAG_ALONE.items() for changed in ways],
    ids=[f"{flag}-{number}" for flag, ways in FLAG_ALONE.items() for number, _ in enumerate(ways, 1)],
)
def test_each_flag_falls_alone(flag: str, changed: dict[str, Any]) -> None:
    found = assess(**changed)
    assert broken(found) == [flag]
    assert "inconsistent" in found.reason_codes


@pytest.mark.parametrize("flag", ["plan", "step", "memory"])
def test_only_the_flags_that_are_asked_for_must_hold(flag: str) -> None:
    changed = {
        "plan": FLAG_ALONE["plan"][0],
        "step": {"report": report(type="do_say_mismatch", artifact="step")},
        "memory": FLAG_ALONE["memory"][0],
    }[flag]
    answer_alone = ConvergenceCriteria(consistency=["answer"], coherence=0)
    found = assess(answer_alone, **changed)
    assert (found.converged, broken(found)) == (True, [flag])
    assert not assess(ConvergenceCriteria(consistency=[flag], coherence=0), **changed).converged


def test_a_threshold_of_ones_own_is_added_to_what_always_holds() -> None:
    warned = {"report": report(type="specificity", severity="medium")}
    assert assess(**warned).converged
    assert assess(ConvergenceCriteria(coherence=0.95), **warned).reason_codes == ["incoherent"]
    partial = {"answer": "There are 37 boats in the harbour."}
    assert assess(ConvergenceCriteria(completeness=0.5), **partial).converged
    found = assess(ConvergenceCriteria(completeness=0.5), plan=plan("pending"), **UNREACHED)
    assert found.reason_codes == ["incomplete", "missing_step"]
