"""How a result is judged: what is asked, quotes that are checked, doubts, votes (Decision 7; contract: `judge`)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from aeon_core.convergence import ConvergenceAssessment, ConvergenceEngine
from aeon_core.errors import LLMError, RunAborted
from aeon_core.judge.judgement import JUDGE_SCHEMA, Check, Judgement, RequirementCheck
from aeon_core.judge.result import majority
from aeon_core.plan.models import Plan
from tests.fakes import ScriptedModel, lines_of, section

GOAL = "Zähle die Boote und die Bojen."
PLAN = Plan(
    goal=GOAL,
    steps=[
        {"step_id": "s1", "description": "Zähle die Boote", "status": "complete", "tool": "sonar"},
        {"step_id": "s2", "description": "Zähle die Bojen", "status": "complete"},
    ],
)
REQUIREMENTS = ["Die Zahl der Boote ist genannt.", "Die Zahl der Bojen ist genannt."]
RUN: dict[str, Any] = {
    "goal": GOAL,
    "plan": PLAN,
    "results": {"s1": {"boats": 37}, "s2": {"text": "112 Bojen"}},
    "answer": "Es sind 37 Boote und 112 Bojen.",
    "memory": {"s1": {"boats": 37}, "harbour": "Nord"},
    "requirements": REQUIREMENTS,
}
QUOTE = "37 Boote und 112 Bojen"
GOOD: dict[str, Any] = {
    "requirements": [{"n": n, "evidence": QUOTE, "met": "yes"} for n in (1, 2)],
    "coherent": {"evidence": QUOTE, "ok": True},
    "consistent": {flag: {"evidence": QUOTE, "ok": True} for flag in ("plan", "step", "answer", "memory")},
    "suspicions": [],
    "issues": [],
}
ISSUE = {
    "issue_id": "j1",
    "description": "the buoys were not counted twice",
    "location": {"artifact": "answer", "step_id": None},
    "proposed_repair": "Count them again.",
    "type": "consistency",
    "severity": "medium",
}


def reply(change: Callable[[dict[str, Any]], Any] | None = None) -> dict[str, Any]:
    made = copy.deepcopy(GOOD)
    if change is not None:
        change(made)
    return made


def unmet(quote: str, met: str = "no") -> dict[str, Any]:
    return reply(lambda r: r["requirements"][1].update(met=met, evidence=quote))


def judged(*replies: Any, votes: int = 1, **changed: Any) -> tuple[ConvergenceAssessment, ScriptedModel]:
    model = ScriptedModel(judge=list(replies))
    return ConvergenceEngine(judge=model, votes=votes).assess(**{**RUN, **changed}), model


def test_the_judge_is_asked_once_with_everything() -> None:
    found, model = judged(GOOD)
    [request] = model.requests
    assert found.converged
    assert (request.purpose, request.schema) == ("judge", JUDGE_SCHEMA)
    assert request.most == {"requirements": 2, "suspicions": 1, "issues": 50}
    assert request.system.startswith("Aeon judge\n")
    assert section(request, "goal") == f'"{GOAL}"'
    assert lines_of(section(request, "requirements")) == [
        '{"n": 1, "text": "Die Zahl der Boote ist genannt."}',
        '{"n": 2, "text": "Die Zahl der Bojen ist genannt."}',
    ]
    for shown, name in (("Zähle die Bojen", "plan"), ("112 Bojen", "results"), ("Nord", "memory")):
        assert shown in section(request, name)
    assert section(request, "answer") == '"Es sind 37 Boote und 112 Bojen."'
    for left_out in ("<suspicions>", "<known>", "<doubts>"):
        assert left_out not in request.prompt


def test_without_requirements_the_task_is_the_requirement() -> None:
    one = reply(lambda r: r["requirements"].pop())
    found, model = judged(one, requirements=())
    assert f'"text": "{GOAL}"' in section(model.requests[0], "requirements")
    assert [verdict["text"] for verdict in found.requirements] == [GOAL]


def test_the_judge_gets_proven_facts_and_suspicions() -> None:
    faults: dict[str, Any] = {"results": {"s1": {"boats": 37, "exit_code": 3}}, "memory": None}
    faults["answer"] = "Es sind 37 Boote und 512 Bojen."
    _, model = judged(GOOD, **faults)
    assert section(model.requests[0], "known") == "\"step 's2' is complete, but has no output\""
    assert lines_of(section(model.requests[0], "suspicions")) == [
        '{"n": 1, "text": "the answer says \'512\', which no output contains or leads to"}',
        '{"n": 2, "text": "step \'s1\' ended with exit_code 3, which the answer must account for"}',
    ]


COSTLY: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "requirement": (lambda r: r["requirements"][1].update(met="no", evidence="keine Bojen"), "requirements[2]"),
    "in part": (lambda r: r["requirements"][1].update(met="partly", evidence="keine Bojen"), "requirements[2]"),
    "coherent": (lambda r: r["coherent"].update(ok=False, evidence="keine Bojen"), "coherent"),
    "flag": (lambda r: r["consistent"]["step"].update(ok=False, evidence="keine Bojen"), "consistent.step"),
}


@pytest.mark.parametrize(("change", "name"), COSTLY.values(), ids=COSTLY.keys())
def test_a_verdict_that_costs_a_pass_must_quote_words_that_are_there(
    change: Callable[[dict[str, Any]], Any], name: str
) -> None:
    found, model = judged(reply(change), GOOD)
    first, second = model.requests
    assert "<doubts>" not in first.prompt
    assert section(second, "doubts") == (
        f"\"{name}: 'keine Bojen' occurs in no artifact; quote the words that show it, or change the verdict\""
    )
    assert found.converged


@pytest.mark.parametrize(("change", "name"), COSTLY.values(), ids=COSTLY.keys())
def test_a_quote_that_is_not_found_twice_is_marked_and_the_verdict_kept(
    change: Callable[[dict[str, Any]], Any], name: str
) -> None:
    found, model = judged(reply(change), reply(change), GOOD)
    assert len(model.requests) == 2
    assert not found.converged
    marks = [v["quote_found"] for v in found.requirements]
    marks += [check["quote_found"] for check in found.metadata["evidence"].values()]
    assert marks.count(False) == 1


@pytest.mark.parametrize("second", [LLMError("overloaded"), "prose"])
def test_the_first_verdict_is_kept_if_the_second_reply_fails(second: Any) -> None:
    found, _ = judged(unmet("keine Bojen"), second)
    assert (found.judged, found.converged) == (True, False)
    assert [(v["met"], v["quote_found"]) for v in found.requirements] == [("yes", True), ("no", False)]


def test_errors_that_end_a_run_propagate() -> None:
    for replies in ([RunAborted("by a person")], [unmet("keine Bojen"), RunAborted("by a person")]):
        with pytest.raises(RunAborted):
            judged(*replies)


def test_a_quoted_verdict_costs_one_call() -> None:
    for quote in (QUOTE, "Zahl der Bojen ist genannt", "37 … Bojen"):
        found, model = judged(unmet(quote))
        assert len(model.requests) == 1
        assert found.requirements[1] == {
            "n": 2,
            "text": REQUIREMENTS[1],
            "met": "no",
            "evidence": quote,
            "quote_found": True,
        }


def test_a_good_verdict_without_its_quote_is_marked_and_costs_nothing() -> None:
    found, model = judged(reply(lambda r: r["requirements"][0].update(evidence="forty boats")))
    assert (len(model.requests), found.converged) == (1, True)
    assert [verdict["quote_found"] for verdict in found.requirements] == [False, True]


@pytest.mark.parametrize("severity", ["medium", "high"])
def test_good_verdicts_next_to_an_issue_with_the_answer_are_asked_about_and_then_the_issue_counts(
    severity: str,
) -> None:
    against = reply(lambda r: r["issues"].append({**ISSUE, "severity": severity}))
    found, model = judged(against, against)
    assert len(model.requests) == 2
    assert "all verdicts are good, yet there is an issue with the answer" in section(model.requests[1], "doubts")
    assert (found.converged, found.consistency_status["answer"]) == (False, False)
    assert found.reason_codes == ["inconsistent", "contradiction_detected"]
    assert found.metadata["evidence"]["answer"]["evidence"] == ISSUE["description"]
    assert ISSUE["description"] in found.detected_issues
    assert judged(against, GOOD)[0].converged


@pytest.mark.parametrize(
    "change",
    [{"severity": "low"}, {"location": {"artifact": "step", "step_id": "s1"}}, {"location": {"artifact": "plan"}}],
    ids=["remark", "step", "plan"],
)
def test_other_issues_next_to_good_verdicts_are_remarks(change: dict[str, Any]) -> None:
    found, model = judged(reply(lambda r: r["issues"].append({**ISSUE, **change})))
    assert (found.converged, len(model.requests)) == (True, 1)
    assert found.detected_issues == [ISSUE["description"]]


ODD = {"answer": "Es sind 37 Boote und 112 Bojen, also 9841 Dinge."}
SUSPECTED = "the answer says '9841', which no output contains or leads to"


def cleared(stands: Any) -> dict[str, Any]:
    return reply(lambda r: r["suspicions"].append({"n": 1, "evidence": "also 9841 Dinge", "stands": stands}))


def test_a_suspicion_is_a_fault_only_if_the_judge_confirms_it() -> None:
    assert judged(cleared(stands=False), **ODD)[0].converged
    found, _ = judged(cleared(stands=True), **ODD)
    assert (found.converged, found.consistency_status["answer"]) == (False, False)
    assert SUSPECTED in found.detected_issues
    assert found.metadata["suspicions"] == [
        {"n": 1, "text": SUSPECTED, "stands": True, "evidence": "also 9841 Dinge", "quote_found": True}
    ]


def test_a_suspicion_that_is_not_answered_is_asked_again_and_then_undecided() -> None:
    found, model = judged(GOOD, GOOD, **ODD)
    assert section(model.requests[1], "doubts") == f'"suspicions[1] is not answered: {SUSPECTED}"'
    assert found.converged
    assert found.metadata["suspicions"][0]["stands"] is None


def test_three_votes_are_taken_only_if_the_first_is_not_a_clear_yes() -> None:
    assert len(judged(GOOD, votes=3)[1].requests) == 1
    assert len(judged(unmet(QUOTE), votes=3)[1].requests) == 3
    assert len(judged(cleared(stands=False), votes=3, **ODD)[1].requests) == 3
    by_default = ScriptedModel(judge=unmet(QUOTE))
    assert not ConvergenceEngine(judge=by_default).assess(**RUN).converged
    assert len(by_default.requests) == 1


@pytest.mark.parametrize(
    ("replies", "converged"),
    [
        ([unmet(QUOTE), GOOD, GOOD], True),
        ([unmet(QUOTE), GOOD, unmet(QUOTE)], False),
        ([unmet(QUOTE), LLMError("overloaded")], False),
        ([unmet(QUOTE), GOOD, LLMError("overloaded")], False),
    ],
    ids=["two-to-one", "one-to-two", "no-other", "a-tie"],
)
def test_most_votes_decide_and_a_tie_goes_to_the_first(replies: Sequence[Any], converged: bool) -> None:
    found, _ = judged(*replies, votes=3)
    assert (found.converged, found.judged) == (converged, True)


def test_without_the_first_vote_nothing_is_judged() -> None:
    found, model = judged(LLMError("overloaded"), GOOD, GOOD, votes=3)
    assert (found.reason_codes, len(model.requests)) == (["not_judged"], 1)


def test_each_verdict_is_the_majoritys_in_the_words_of_one_vote() -> None:
    def vote(met: Any, words: str, *, ok: bool = True) -> Judgement:
        check = Check(ok, words)
        flags: Any = dict.fromkeys(("plan", "step", "answer", "memory"), check)
        return Judgement((RequirementCheck(1, met, words),), check, flags, {1: check})

    most = majority([vote("no", "a", ok=False), vote("yes", "b"), vote("yes", "c")])
    assert most.requirements == (RequirementCheck(1, "yes", "b"),)
    assert most.coherent == most.suspicions[1] == most.consistent["memory"] == Check(True, "b")
    assert most.good


def test_votes_that_find_different_faults_agree_that_there_is_one() -> None:
    def vote(first: Any, second: Any) -> Judgement:
        flags: Any = dict.fromkeys(("plan", "step", "answer", "memory"), Check(True))
        return Judgement((RequirementCheck(1, first), RequirementCheck(2, second)), Check(True), flags)

    most = majority([vote("no", "yes"), vote("yes", "no"), vote("yes", "yes")])
    assert [check.met for check in most.requirements] == ["no", "no"]


def test_a_suspicion_that_the_first_vote_left_open_is_confirmed_by_the_others() -> None:
    def vote(**suspicions: Check) -> Judgement:
        flags: Any = dict.fromkeys(("plan", "step", "answer", "memory"), Check(True))
        return Judgement(
            (RequirementCheck(1, "yes"),), Check(True), flags, {int(n[1:]): c for n, c in suspicions.items()}
        )

    most = majority([vote(), vote(n1=Check(False, "9841")), vote(n1=Check(False, "9841"))])
    assert most.suspicions == {1: Check(False, "9841")}


def test_an_issue_with_the_answer_that_names_a_step_contradicts_good_verdicts() -> None:
    issue = {
        "description": "the total is wrong",
        "severity": "high",
        "location": {"artifact": "answer", "step_id": "s1"},
    }
    found, model = judged({**GOOD, "issues": [issue]})
    assert (found.converged, found.consistency_status["answer"], len(model.requests)) == (False, False, 2)


def test_without_a_judge_or_an_answer_nothing_is_asked() -> None:
    alone = ConvergenceEngine().assess(**RUN)
    assert (alone.reason_codes, alone.detected_issues) == (["not_judged"], ["no model judged the result"])
    found, model = judged(GOOD, answer=" ")
    assert model.requests == []
    assert "not_judged" not in found.reason_codes
    assert (found.judged, found.converged, found.completeness_score) == (False, False, 0)
