"""The engine: scores, flags, codes, thresholds, criteria (adaptive US 3; FR-017 to FR-025, FR-068; contract)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from aeon_core.convergence import REASON_CODES, ConvergenceAssessment, ConvergenceCriteria, ConvergenceEngine
from aeon_core.entities import IssueLocation, SemanticValidationReport, ValidationIssue, report_of
from aeon_core.errors import UsageError
from aeon_core.memory import InMemoryStore
from aeon_core.plan.models import Plan
from tests.fakes import ScriptedModel

ANSWER = "The bell has a height of 2.4 m and a weight of 5100 kg."
RESULTS: dict[str, Any] = {"s1": {"height_m": 2.4}, "s2": {"weight_kg": 5100}}
FLAGS = ("plan", "step", "answer", "memory")
LAX = ConvergenceCriteria(completeness=0, coherence=0, consistency=[])


def plan(first: dict[str, Any] | None = None, *more: dict[str, Any]) -> Plan:
    steps = [
        {"step_id": "s1", "description": "Measure the height", "status": "complete", **(first or {})},
        {"step_id": "s2", "description": "Weigh it", "status": "complete"},
        *more,
    ]
    return Plan(goal="Measure the bell", steps=steps)


def verdict(*met: str, coherent: bool = True, broken: tuple[str, ...] = ()) -> dict[str, Any]:
    quote = "a height of 2.4 m"
    return {
        "requirements": [{"n": n, "evidence": quote, "met": word} for n, word in enumerate(met, 1)],
        "coherent": {"evidence": quote, "ok": coherent},
        "consistent": {flag: {"evidence": quote, "ok": flag not in broken} for flag in FLAGS},
        "suspicions": [],
        "issues": [],
    }


def assess(
    reply: dict[str, Any] | None = None, criteria: ConvergenceCriteria | None = None, **changed: Any
) -> ConvergenceAssessment:
    given = {"goal": "Measure the bell", "plan": plan(), "results": RESULTS, "answer": ANSWER, **changed}
    reply = reply if reply is not None else verdict("yes")
    given.setdefault("requirements", [f"requirement {n}" for n in range(len(reply["requirements"]))])
    return ConvergenceEngine(criteria, ScriptedModel(judge=reply)).assess(**given)


def broken(found: ConvergenceAssessment) -> list[str]:
    return [flag for flag, holds in found.consistency_status.items() if not holds]


def report(**fields: Any) -> SemanticValidationReport:
    location = IssueLocation(artifact=fields.pop("artifact", "plan"), step_id=None)
    values = {"issue_id": "i1", "type": "consistency", "severity": "high", "description": "d", "proposed_repair": "r"}
    return report_of("v1", "plan", [ValidationIssue(**{**values, **fields}, location=location)])


def test_a_sound_result_converges_with_every_criterion_named() -> None:
    found = assess(verdict("yes", "yes"))
    assert (found.converged, found.judged) == (True, True)
    assert found.reason_codes == ["complete", "coherent", "consistent"]
    assert (found.completeness_score, found.coherence_score) == (1.0, 1.0)
    assert found.consistency_status == dict.fromkeys(FLAGS, True)
    assert found.detected_issues == []
    assert found.metadata["steps"] == {"required": 2, "failed": [], "missing": []}
    assert ConvergenceAssessment.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("met", "score"),
    [
        (["yes", "yes", "partly"], 0.833),
        (["partly"], 0.5),
        (["yes", "partly"], 0.75),
        (["yes", "no"], 0.5),
        (["no"], 0.0),
        (["yes", "yes", "yes", "yes", "partly"], 0.9),
    ],
)
def test_completeness_counts_met_fully_and_partly_met_half(met: list[str], score: float) -> None:
    assert assess(verdict(*met)).completeness_score == score


def test_partly_met_requirements_can_reach_the_threshold() -> None:
    parts = verdict("yes", "yes", "partly")
    assert assess(parts).converged
    assert assess(parts, ConvergenceCriteria(completeness=0.833)).converged
    assert assess(parts, ConvergenceCriteria(completeness=0.834)).reason_codes == ["incomplete"]
    assert assess(parts).detected_issues == ["requirement 3 is partly met: requirement 2"]


def test_an_unmet_requirement_is_incomplete_at_any_threshold() -> None:
    missed = verdict(*["yes"] * 7, "no")
    assert assess(missed).completeness_score == 0.875
    for criteria in (None, LAX):
        found = assess(missed, criteria)
        assert (found.converged, found.reason_codes) == (False, ["incomplete"])
        assert found.detected_issues == ["requirement 8 is not met: requirement 7"]


def test_a_step_that_is_not_done_lowers_completeness_and_the_judge_cannot_raise_it() -> None:
    more = {"step_id": "s3", "description": "Photograph it", "status": "pending"}
    found = assess(plan=plan(None, more))
    assert (found.completeness_score, found.reason_codes) == (0.667, ["incomplete", "missing_step"])
    assert assess(verdict("yes", "no"), plan=plan(None, more)).completeness_score == 0.5


@pytest.mark.parametrize(
    ("first", "results", "code"),
    [
        ({"status": "failed"}, {"s2": RESULTS["s2"]}, "failed_step"),
        ({}, {**RESULTS, "s1": {"success": False}}, "failed_step"),
        ({"status": "pending"}, {"s2": RESULTS["s2"]}, "missing_step"),
        ({"status": "running"}, {"s2": RESULTS["s2"]}, "missing_step"),
        ({"status": "invalid"}, RESULTS, "missing_step"),
        ({}, {"s2": RESULTS["s2"]}, "missing_step"),
    ],
    ids=["failed", "reports-failure", "pending", "running", "invalid", "no-output"],
)
def test_the_exact_layer_lowers_what_a_judge_and_the_laxest_criteria_accept(
    first: dict[str, Any], results: dict[str, Any], code: str
) -> None:
    found = assess(criteria=LAX, plan=plan(first), results=results)
    assert (found.judged, found.converged) == (True, False)
    assert found.reason_codes == ["incomplete", code]
    assert found.completeness_score == 0.5


def test_a_clean_exact_layer_raises_nothing_that_the_judge_rejects() -> None:
    for reply in (verdict("no"), verdict("yes", coherent=False), verdict("yes", broken=("memory",))):
        assert not assess(reply).converged


DRIVEN: dict[str, dict[str, Any]] = {
    "incomplete": {"reply": verdict("no")},
    "incoherent": {"reply": verdict("yes", coherent=False)},
    "inconsistent": {"reply": verdict("yes", broken=("plan",))},
    "missing_step": {"plan": plan({"status": "pending"}), "results": {"s2": RESULTS["s2"]}},
    "failed_step": {"plan": plan({"status": "failed"}), "results": {"s2": RESULTS["s2"]}},
    "contradiction_detected": {"reply": verdict("yes", broken=("answer",))},
    "hallucinated_tool": {"plan": plan({"tool": "scales"}), "tools": ["ruler"]},
    "not_judged": {"reply": {**verdict("yes"), "coherent": None}},
}
CODES = {
    "incoherent": ["incoherent", "contradiction_detected"],
    "missing_step": ["incomplete", "missing_step"],
    "failed_step": ["incomplete", "failed_step"],
    "contradiction_detected": ["inconsistent", "contradiction_detected"],
    "hallucinated_tool": ["inconsistent", "hallucinated_tool"],
}


@pytest.mark.parametrize("code", DRIVEN)
def test_each_code_comes_with_what_it_implies_and_nothing_else(code: str) -> None:
    found = assess(**DRIVEN[code])
    assert (found.converged, found.reason_codes) == (False, CODES.get(code, [code]))


def test_a_reported_hallucination_is_an_invented_tool_only_in_the_plan_and_only_if_severe() -> None:
    def codes(kind: str = "hallucination", **fields: Any) -> list[str]:
        return assess(report=report(type=kind, **fields)).reason_codes

    assert [codes(artifact=artifact) for artifact in ("plan", "step")] == [["inconsistent", "hallucinated_tool"]] * 2
    assert codes("consistency") == ["inconsistent"]
    assert codes(artifact="answer") == ["inconsistent", "contradiction_detected"]
    assert codes(severity="medium") == ["complete", "coherent", "consistent"]


def test_all_codes_of_the_contract_are_driven() -> None:
    met, none = assess(), assess(answer=None)
    assert none.ended("no_progress").reason_codes[-1] == "no_progress"
    assert none.ended("ttl_expired").ended("ttl_expired").reason_codes == [*none.reason_codes, "ttl_expired"]
    assert (met.ended("ttl_expired").converged, met.ended("ttl_expired").reason_codes) == (False, ["ttl_expired"])
    assert {*met.reason_codes, *DRIVEN, "no_progress", "ttl_expired"} == set(REASON_CODES)


@pytest.mark.parametrize("answer", [None, "", "  \n"])
@pytest.mark.parametrize("criteria", [None, LAX])
def test_a_missing_answer_is_incomplete_under_any_criteria(
    answer: str | None, criteria: ConvergenceCriteria | None
) -> None:
    found = assess(criteria=criteria, answer=answer)
    assert (found.completeness_score, found.converged) == (0, False)
    assert found.reason_codes[0] == "incomplete"
    assert "not_judged" not in found.reason_codes
    assert "there is no answer" in found.detected_issues


ALONE: dict[str, list[dict[str, Any]]] = {
    flag: [{"reply": verdict("yes", broken=(flag,))}, {"report": report(artifact=flag)}] for flag in FLAGS
}
ALONE["plan"] += [
    {"results": {**RESULTS, "s9": {"width_m": 1}}},
    {"plan": plan({"depends_on": ["s7"]})},
    {"plan": plan({"tool": "scales"}), "tools": ["ruler"]},
]
ALONE["step"] += [{"report": report(artifact="results")}, {"results": {"s2": RESULTS["s2"]}}]
ALONE["answer"] += [{"report": report(artifact="goal")}]
ALONE["memory"] += [{"memory": {"s2": {"weight_kg": 1}}}]


@pytest.mark.parametrize(
    ("flag", "changed"),
    [(flag, changed) for flag, ways in ALONE.items() for changed in ways],
    ids=[f"{flag}-{number}" for flag, ways in ALONE.items() for number, _ in enumerate(ways)],
)
def test_each_flag_fails_separately(flag: str, changed: dict[str, Any]) -> None:
    found = assess(**changed)
    assert broken(found) == [flag]
    assert "inconsistent" in found.reason_codes


@pytest.mark.parametrize("flag", FLAGS)
def test_only_required_flags_must_hold(flag: Any) -> None:
    others = [other for other in FLAGS if other != flag]
    reply = verdict("yes", broken=(flag,))
    found = assess(reply, ConvergenceCriteria(consistency=others))
    assert (found.converged, broken(found)) == (True, [flag])
    assert assess(reply, ConvergenceCriteria(consistency=[flag])).reason_codes[0] == "inconsistent"


def test_coherence_is_one_or_a_half() -> None:
    reply = verdict("yes", coherent=False)
    assert assess(reply).coherence_score == 0.5
    assert assess(reply, ConvergenceCriteria(coherence=0.5)).converged
    assert assess(reply, ConvergenceCriteria(coherence=0.51)).reason_codes == ["incoherent", "contradiction_detected"]


@pytest.mark.parametrize("severity", ["low", "medium"])
def test_issues_below_high_are_reported_and_decide_nothing(severity: str) -> None:
    found = assess(report=[report(severity=severity, description="a remark")])
    assert (found.converged, found.detected_issues) == (True, ["a remark"])


def test_a_replacement_resolves_an_invalid_step() -> None:
    more = {"step_id": "s3", "description": "Measure again", "status": "complete", "replaces": "s1"}
    assert assess(plan=plan({"status": "invalid"}, more), results={"s2": 1, "s3": 2.4}).converged


def test_a_store_serves_as_memory_and_its_other_entries_do_no_harm() -> None:
    store = InMemoryStore()
    for key, value in {**RESULTS, "customer": "St Mary's"}.items():
        store.write(key, value)
    assert assess(memory=store).converged
    assert assess(memory=SimpleNamespace(search=store.search)).converged
    store.write("s2", {"weight_kg": 1})
    assert broken(assess(memory=store)) == ["memory"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"plan": {"goal": "g"}}, "the plan is of type dict, expected a Plan"),
        ({"results": None}, "results is of type NoneType, expected a Mapping"),
    ],
)
def test_invalid_input_is_named(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        assess(**changed)


POLITE = {"name": "polite", "description": "the tone is polite"}
SOURCED = {"name": "sourced", "description": "every claim has a source"}
OWN = ConvergenceCriteria(additional=[POLITE, SOURCED])


def with_own(*met: str) -> ConvergenceAssessment:
    return assess(verdict(*met), OWN, requirements=["The height is told."])


def test_custom_criteria_are_additional_requirements() -> None:
    found = with_own("yes", "yes", "yes")
    assert found.reason_codes == ["complete", "coherent", "consistent", "polite", "sourced"]
    assert [verdict["text"] for verdict in found.requirements] == [
        "The height is told.",
        "polite: the tone is polite",
        "sourced: every claim has a source",
    ]
    assert found.metadata["additional"] == {
        "polite": {"met": True, "by": "model"},
        "sourced": {"met": True, "by": "model"},
    }


@pytest.mark.parametrize(
    ("met", "codes"),
    [
        (["yes", "yes", "no"], ["incomplete", "sourced"]),
        (["yes", "partly", "yes"], ["polite"]),
        (["yes", "no", "no"], ["incomplete", "polite", "sourced"]),
        (["no", "yes", "yes"], ["incomplete"]),
    ],
)
def test_an_unmet_custom_criterion_is_a_reason_code(met: list[str], codes: list[str]) -> None:
    found = with_own(*met)
    assert (found.converged, found.reason_codes) == (False, codes)


def test_an_unjudged_custom_criterion_is_not_met() -> None:
    found = ConvergenceEngine(OWN).assess(
        goal="Measure the bell", plan=plan(), results=RESULTS, answer=ANSWER, requirements=()
    )
    assert (found.converged, found.reason_codes) == (False, ["not_judged"])
    assert found.metadata["additional"] == {}
