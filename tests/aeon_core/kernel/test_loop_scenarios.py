"""User Story 1 and the edge cases of the loop, each through the Orchestrator (adaptive FR-001 to FR-007, FR-067)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core import LLMError, Orchestrator, RunConfig, RunResult
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.llm.simulated import SimulatedModel
from aeon_core.plan.models import Plan
from tests.aeon_core.kernel.test_passes import MENDED, NOTHING, TASK, THOUGHT, Records, model, of, plan
from tests.fakes import ScriptedModel, add, judged

API = "design a REST API for invoices"
FIRST = ["plan", "execute", "evaluate", "refine"]
UNREADABLE = '"no" JSON at all'
"""With something that a repair could keep."""
SUM = "calculate the sum of 5 and 10"
SHORT = "The sum of 5 and 10 is 15."


def run(adapter: LLMAdapter, task: str = TASK, ttl: int = 50, given: Any = None) -> tuple[RunResult, Records]:
    records: Records = []
    config = RunConfig(ttl=ttl, durability="off")
    orchestrator = Orchestrator(adapter, config=config, journal=False, on_record=records.append)
    return orchestrator.run(task, given), records


def phases(records: Records) -> list[list[str]]:
    """The phases that ended, by pass."""
    found: dict[int, list[str]] = {}
    for record in of(records, "phase"):
        if record["state"] == "finished":
            found.setdefault(record["pass"], []).append(record["phase"])
    return list(found.values())


def issue(step_id: str, description: str = "the figure was never checked") -> dict[str, Any]:
    return {
        "issue_id": "j1",
        "type": "do_say_mismatch",
        "severity": "high",
        "description": description,
        "location": {"artifact": "results", "step_id": step_id},
        "proposed_repair": "check the figure",
    }


def test_us1_1_an_open_task_repeats_passes_until_it_converges() -> None:
    result, records = run(SimulatedModel(), API)
    assert (result.status, result.passes) == ("converged", 2)
    assert phases(records) == [FIRST, ["execute", "evaluate"]]


def test_us1_1_or_until_the_ttl_is_spent() -> None:
    result, records = run(SimulatedModel(), API, ttl=11)
    assert (result.status, result.termination_reason) == ("ttl_expired", "ttl_expired")
    assert phases(records)[0][:3] == FIRST[:3]


def test_us1_2_every_pass_is_evaluated_and_refined_unless_converged() -> None:
    _, records = run(SimulatedModel(), API)
    assert [record["converged"] for record in of(records, "convergence")] == [False, True]
    for record in of(records, "pass"):
        assessed = record["evaluation_results"]["convergence"]["converged"]
        assert ("refine" in [phase["phase"] for phase in record["phases"]]) is not assessed


def test_us1_3_refinement_changes_what_is_wrong_and_keeps_the_rest_of_the_plan() -> None:
    _, records = run(model(plan=plan(by=0), refine=MENDED))
    before, after = (record["plan"] for record in of(records, "plan"))
    Plan.model_validate(after)
    assert after["goal"] == before["goal"]
    assert [step["step_id"] for step in after["steps"]] == ["s1", "s2", "s2-r1"]
    for old, new in zip(before["steps"], after["steps"], strict=False):
        kept = {key: value for key, value in new.items() if key not in ("status", "errors")}
        assert kept == {key: value for key, value in old.items() if key not in ("status", "errors")}
    assert after["steps"][2]["replaces"] == "s2"


def test_us1_4_a_converged_result_reports_its_criteria_and_scores() -> None:
    result, _ = run(model())
    assert (result.status, result.converged) == ("converged", True)
    told = result.convergence
    assert told is not None
    assert told["reason_codes"] == ["complete", "coherent", "consistent"]
    assert (told["completeness_score"], told["coherence_score"]) == (1.0, 1.0)
    assert told["consistency_status"] == {"plan": True, "step": True, "answer": True, "memory": True}
    assert told["detected_issues"] == []


@pytest.mark.parametrize("ttl", [3, 4, 5])
def test_us1_5_an_expired_run_returns_its_latest_completed_pass(ttl: int) -> None:
    result, _ = run(model(plan=plan(by=0), refine=MENDED, answer=SHORT), ttl=ttl)
    assert (result.converged, result.expiration_point) == (False, "phase_boundary")
    assert result.latest_pass_result is not None
    assert result.latest_pass_result["answer"] == SHORT
    assert result.ttl_expired_metadata is not None
    assert result.ttl_expired_metadata.completeness_score is not None


@pytest.mark.parametrize("ttl", [0, 1, 2])
def test_us1_5_without_a_completed_pass_partial_results_are_returned(ttl: int) -> None:
    result, _ = run(model(plan=plan(by=0), refine=MENDED, answer=SHORT), ttl=ttl)
    assert (result.converged, result.expiration_point, result.passes) == (False, "mid_phase", 0)
    assert result.latest_pass_result is None
    assert result.partial_result == {"answer": None, "steps": [step.model_dump() for step in result.steps]}


def test_us1_6_other_words_of_the_model_go_through_the_same_phases() -> None:
    answers = ["The sum is 15; the quotient is 0.5.", "15, and 0.5: both were calculated."]
    seen = [
        [(record["pass"], record["phase"], record["state"]) for record in of(run(scripted)[1], "phase")]
        for scripted in (model(plan=plan(by=0), refine=MENDED, answer=[SHORT, answer]) for answer in answers)
    ]
    assert seen[0] == seen[1]
    assert [phase for _, phase, state in seen[0] if state == "started"][:5] == [*FIRST, "execute"]


def test_us1_6_the_same_replies_make_the_same_records() -> None:
    def told(records: Records) -> list[Any]:
        varying = {"ts", "run", "duration_ms", "latency_ms", "timestamp", "timing_information", "phases", "result"}
        return [{key: value for key, value in record.items() if key not in varying} for record in records]

    first, second = (run(SimulatedModel(), API)[1] for _ in range(2))
    assert told(first) == told(second)


GOOD: dict[str, Any] = {
    "requirements": [{"n": 1, "met": "yes"}],
    "coherent": {"ok": True},
    "consistent": {name: {"evidence": "", "ok": True} for name in ("plan", "step", "answer", "memory")},
    "suspicions": [],
    "issues": [],
}


def test_new_findings_in_a_pass_that_looked_finished_are_refined_in_another() -> None:
    checked = {
        "actions": [
            {
                "type": "step_modify",
                "target": "s1",
                "changes": {"description": "Add 5 and 10", **add(5, 10)},
                "reason": "check the figure",
            }
        ],
        "follow_up_questions": [],
    }
    scripted = model(
        plan=plan(by=0),
        judge=[{"issues": []}, {"issues": [issue("s1")]}, {"issues": []}],
        refine=[MENDED, checked],
    )
    result, records = run(scripted)
    assert [record["converged"] for record in of(records, "convergence")] == [False, False, True]
    assert any("never checked" in found for found in of(records, "convergence")[1]["detected_issues"])
    assert (result.status, result.passes) == ("converged", 3)
    assert [step.step_id for step in result.steps if step.status == "invalid"] == ["s1", "s2"]


def test_a_contradiction_that_refinement_cannot_resolve_ends_the_run_honestly() -> None:
    one = {"goal": SUM, "steps": plan()["steps"][:1]}
    wrong = "The sum of 5 and 10 is 271."

    def judge(request: LLMRequest) -> dict[str, Any]:
        return {**judged(request), "suspicions": [{"n": 1, "evidence": "271", "stands": True}]}

    result, _ = run(model(plan=one, answer=wrong, judge=judge, refine=NOTHING), SUM)
    assert result.status == "not_converged"
    assert result.convergence is not None
    assert {"contradiction_detected", "inconsistent", "no_progress"} <= set(result.convergence["reason_codes"])


@pytest.mark.parametrize("purpose", ["profile", "plan", "tool_call", "reason", "answer", "refine"])
def test_a_final_model_failure_ends_the_run_with_partial_results(purpose: str) -> None:
    works: dict[str, Any] = {
        "tool_call": {"tool": "calculator"},
        "reason": {"agent": "llm"},
    }
    made = plan(by=0)
    made["steps"].append({"step_id": "s3", "description": "Add 15 and 0.5", **works.get(purpose, add(15, 0.5))})
    scripts: dict[str, Any] = {"plan": made, purpose: LLMError("refused", status_code=400)}
    result, records = run(model(**scripts))
    assert (result.status, result.exit_code) == ("failed", 1)
    assert result.error is not None
    assert "refused" in result.error["message"]
    assert of(records, "run_finished")[0]["result"] == result.model_dump(mode="json")
    ended = [(record["pass"], record["phase"]) for record in of(records, "phase") if record["state"] == "finished"]
    started = [(record["pass"], record["phase"]) for record in of(records, "phase") if record["state"] == "started"]
    assert ended == started
    assert result.passes == len(of(records, "pass"))
    if purpose not in ("profile", "plan"):
        assert result.steps[0].output == {"result": 15}


@pytest.mark.parametrize(
    "judge",
    [
        LLMError("refused", status_code=400),
        UNREADABLE,
        "",
        '{"issues": [',
        {"requirements": "many"},
        {"n": 1, "met": "yes"},
        {**GOOD, "requirements": [{"n": 1, "met": "perhaps"}]},
        LLMResponse(text='{"issues": []}', stop_reason="refusal"),
    ],
    ids=["error", "prose", "empty", "cut", "form", "part", "verdict", "refusal"],
)
@pytest.mark.parametrize("by", [1, 0], ids=["sound", "failed-step"])
def test_an_unjudged_result_never_converges(judge: Any, by: int) -> None:
    result, records = run(model(plan=plan(by=by), judge=judge, repair="nor this"))
    assert (result.status, result.exit_code, result.passes) == ("not_converged", 5, 1)
    assert result.answer is not None
    assert result.convergence is not None
    assert result.convergence["judged"] is False
    assert result.convergence["reason_codes"][-1] == "not_judged"
    assert ("failed_step" in result.convergence["reason_codes"]) is (by == 0)
    assert [record["kind"] for record in of(records, "notice")] == ["not_judged"]
    assert "the judge gave no usable verdict: " in of(records, "notice")[0]["message"]


@pytest.mark.parametrize(
    "judge",
    [
        {"issues": [issue("s1")]},
        {"issues": [{**issue("nope"), "severity": "High"}]},
        {"issues": [{"type": "style", "severity": "fatal", "description": "it refuses to do the task"}]},
        {**GOOD, "requirements": [{"n": 1, "evidence": "I cannot help with that", "met": "no"}]},
        {**GOOD, "requirements": [{"n": 1, "met": "partly"}]},
        {**GOOD, "coherent": {"ok": False}},
        {**GOOD, "consistent": {**GOOD["consistent"], "answer": {"ok": False}}},
    ],
    ids=["issue", "unknown-step", "unknown-words", "requirement", "partly", "incoherent", "inconsistent"],
)
def test_a_negative_verdict_is_never_overruled(judge: Any) -> None:
    result, _ = run(model(judge=judge, refine=NOTHING))
    assert (result.status, result.exit_code) == ("not_converged", 5)
    assert result.convergence is not None
    unmet = [each for each in judge.get("requirements", ()) if each["met"] != "yes"]
    assert not unmet or "incomplete" in result.convergence["reason_codes"]
    assert not unmet or result.convergence["completeness_score"] < 0.8


def test_good_verdicts_converge() -> None:
    result, records = run(model(judge=GOOD))
    assert (result.status, result.exit_code) == ("converged", 0)
    assert of(records, "convergence")[-1]["judged"] is True


def test_a_perfect_verdict_does_not_converge_failed_steps() -> None:
    praise = {"issues": [], "completeness_score": 1.0, "converged": True}
    result, _ = run(model(plan=plan(by=0), judge=praise, answer=SHORT))
    assert (result.status, result.converged) == ("not_converged", False)


def test_an_unrepairable_refinement_keeps_the_plan_for_the_next_pass() -> None:
    scripted = model(plan=plan(by=0), refine=[UNREADABLE, MENDED], repair="nor this")
    result, records = run(scripted)
    assert (result.status, result.passes) == ("converged", 2 + 1)
    assert [record["cause"] for record in of(records, "plan")] == ["generated", "refined"]
    assert [record["pass"] for record in of(records, "supervisor")] == [1, 1]
    assert of(records, "pass")[0]["refinement_changes"] == []


def test_a_second_unrepairable_refinement_in_a_row_ends_the_run() -> None:
    result, _ = run(model(plan=plan(by=0), refine=UNREADABLE, repair="nor this", answer=SHORT))
    assert (result.status, result.passes) == ("not_converged", 2)
    assert result.convergence is not None
    assert result.convergence["reason_codes"][-1] == "no_progress"


def test_failures_that_are_not_in_a_row_do_not_end_the_run() -> None:
    worse = {
        "actions": [{**MENDED["actions"][0], "changes": {"description": "Divide 2 by 0", **_divide(2, 0)}}],
        "follow_up_questions": [],
    }
    mended = {"actions": [{**MENDED["actions"][0], "target": "s2-r1"}], "follow_up_questions": []}
    replies = [UNREADABLE, worse, UNREADABLE, mended]
    scripted = model(plan=plan(by=0), refine=replies, repair="nor this", answer=[SHORT, SHORT, ALL])
    result, _ = run(scripted)
    assert (result.status, result.passes) == ("converged", 5)


ALL = "The sum of 5 and 10 is 15, and 1 divided by 2 is 0.5."


def _divide(a: float, b: float) -> dict[str, Any]:
    return {"tool": "calculator", "arguments": {"operation": "divide", "a": a, "b": b}}


def test_a_fragment_at_the_nesting_limit_is_left_to_a_person_and_the_run_continues() -> None:
    step: dict[str, Any] = {"step_id": "s1.1.1.1.1.1", "description": "Improve the things", "tool": "improver"}
    for depth in range(5, 0, -1):
        step_id = "s1" + ".1" * (depth - 1)
        nested = {"parent_step_id": step_id, "subplan_goal": "a part", "depth_level": depth, "substeps": [step]}
        step = {"step_id": step_id, "description": "Add 5 and 10", "subplan": nested}
    deeper = {
        "type": "subplan_create",
        "target": "s1.1.1.1.1.1",
        "changes": {"steps": [{"id": "x", "parent": None, "description": "Add 5 and 10", **add(5, 10)}]},
        "reason": "it holds several actions",
    }
    replies = [{"actions": [deeper], "follow_up_questions": []}, NOTHING]
    scripted = model(refine=replies, repair="no", fallback="15", answer=SHORT)
    result, records = run(scripted, SUM, given={"goal": "g", "steps": [step]})
    (left,) = result.manual_intervention
    assert (left["step_id"], left["cause"]) == ("s1.1.1.1.1.1", "nesting_limit")
    assert [record["accepted"] for record in of(records, "refinement")] == [False]
    assert {told.status for told in result.steps} == {"complete"}
    assert result.error is None


def test_a_reasoned_step_keeps_its_first_output() -> None:
    count = iter(range(100))
    scripted = model(
        plan=THOUGHT,
        reason=lambda _: f"the number {next(count)}",
        judge={"issues": [issue("s1")]},
        refine=[{"actions": [_again("s1")], "follow_up_questions": []}, NOTHING],
    )
    result, records = run(scripted, "name the prime after 7")
    assert {step.step_id: step.output for step in result.steps} == {
        "s1": {"text": "the number 0"},
        "s1-r1": {"text": "the number 1"},
    }
    outputs = [record["execution_results"]["steps"][0]["output"] for record in of(records, "pass")]
    assert outputs == [{"text": "the number 0"}] * len(outputs)
    assert len(outputs) > 1


def _again(step_id: str) -> dict[str, Any]:
    changes = {"description": "Name the prime after 7 and say why", "agent": "llm"}
    return {"type": "step_modify", "target": step_id, "changes": changes, "reason": "it is wrong"}


def test_every_request_of_the_loop_states_the_remaining_ttl() -> None:
    scripted = ScriptedModel(**model(plan=plan(by=0), refine=MENDED).scripts)
    run(scripted)

    def left(request: LLMRequest) -> int:
        return int(request.prompt.split("<ttl>\n")[1].split(" ")[0])

    told = [left(request) for request in scripted.requests if "<ttl>" in request.prompt]
    assert told[0] == 50
    assert len(told) >= 5


def _refined_at_once(steps: int, each: int) -> tuple[RunResult, list[tuple[str, bool]]]:
    """A run whose one refinement, before anything ran, rewrites each of so many impossible steps so often."""
    named = [f"s{number}" for number in range(1, steps + 1)]
    unknown = [{"step_id": step_id, "description": "Do the things", "tool": "doer"} for step_id in named]
    rewritten = [
        {
            "type": "step_modify",
            "target": step_id,
            "changes": {"description": f"Add 5 and {number}{turn}", **add(5, int(f"{number}{turn}"))},
            "reason": "it says nothing",
        }
        for number, step_id in enumerate(named)
        for turn in range(each)
    ]
    replies = [{"actions": rewritten, "follow_up_questions": []}, NOTHING]
    scripted = model(plan={"goal": SUM, "steps": unknown}, refine=replies, repair="no", fallback="15", answer=SHORT)
    result, records = run(scripted, SUM)
    return result, [(record["action"]["target"], record["accepted"]) for record in of(records, "refinement")]


def test_the_fourth_refinement_of_a_fragment_is_refused_even_in_one_reply() -> None:
    _, refined = _refined_at_once(steps=1, each=5)
    assert refined == [("s1", True)] * 3 + [("s1", False)] * 2


def test_the_eleventh_refinement_in_all_is_refused_even_in_one_reply() -> None:
    result, refined = _refined_at_once(steps=6, each=2)
    assert [accepted for _, accepted in refined] == [True] * 10 + [False] * 2
    assert result.steps[-1].description == "Do the things"
    assert result.error is None
