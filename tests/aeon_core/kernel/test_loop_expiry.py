"""When the TTL is spent: the three shapes of the TTL Expiration Response (adaptive US1.5, FR-062 to FR-064)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core import LLMRequest, Orchestrator, RunConfig, RunResult, ToolRegistry, tool
from aeon_core.tools.registry import default_registry
from tests.aeon_core.kernel.test_passes import MENDED, PROFILE, TASK, Records, model, of, plan
from tests.fakes import ScriptedModel, add, judged
from tests.sampling import sample

RESPONSE = (
    "result_type",
    "latest_pass_result",
    "partial_result",
    "expiration_point",
    "ttl_expired_metadata",
    "termination_reason",
)
THOUGHTS: dict[str, Any] = {
    "goal": "name primes",
    "steps": [
        {"step_id": "s1", "description": "Name the prime after 7", "agent": "llm"},
        {"step_id": "s2", "description": "Name the prime after 11", "agent": "llm"},
    ],
}
NESTED = {
    "goal": "name primes",
    "steps": [
        {
            "step_id": "s1",
            "description": "Name the primes after 7 and 11",
            "agent": "llm",
            "subplan": {"parent_step_id": "s1", "subplan_goal": "both", "substeps": THOUGHTS["steps"][1:]},
        }
    ],
}
SHORT = "The sum of 5 and 10 is 15."


def run(
    scripted: ScriptedModel, ttl: int, task: str = TASK, tools: ToolRegistry | None = None
) -> tuple[RunResult, Records]:
    records: Records = []
    config = RunConfig(ttl=ttl, durability="off")
    orchestrator = Orchestrator(scripted, tools, config=config, journal=False, on_record=records.append)
    return orchestrator.run(task), records


def mending() -> ScriptedModel:
    """Two passes and no convergence: 7 calls for profile, plan, answer, judge, refine; answer, judge."""
    return model(plan=plan(by=0), refine=MENDED, answer=SHORT)


def thinking() -> ScriptedModel:
    """One pass of two thoughts that converges: 6 calls."""
    return model(plan=THOUGHTS, reason=["11", "13"], answer="The primes are 11 and 13.")


def thinking_again() -> ScriptedModel:
    """Two passes, in each of which two thoughts are had: 7 calls, then 4."""
    found = {"type": "relevance", "severity": "high", "description": "it is wrong", "proposed_repair": "think again"}
    issues = [
        {**found, "issue_id": step_id, "location": {"artifact": "results", "step_id": step_id}}
        for step_id in ("s1", "s2")
    ]
    again = [
        {
            "type": "step_modify",
            "target": step["step_id"],
            "changes": {"description": f"{step['description']} once more", "agent": "llm"},
            "reason": "it is wrong",
        }
        for step in THOUGHTS["steps"]
    ]
    return model(
        plan=THOUGHTS,
        reason=["12", "14", "11", "13"],
        answer=["The primes are 12 and 14.", "The primes are 11 and 13."],
        judge=[{"issues": issues}, {"issues": []}],
        refine={"actions": again, "follow_up_questions": []},
    )


def nesting() -> ScriptedModel:
    """One pass of a step with a substep that converges: 6 calls."""
    return model(plan=NESTED, reason=["13", "11 and 13"], answer="The primes after 7 and 11 are 11 and 13.")


@pytest.mark.parametrize("ttl", sample(range(13), 4))
@pytest.mark.parametrize("make", [mending, thinking, thinking_again, nesting])
def test_the_result_is_accurate_under_every_small_ttl(make: Any, ttl: int) -> None:
    result, records = run(make(), ttl)
    assert result.ttl.limit == ttl
    assert result.ttl.spent <= ttl
    if result.status != "ttl_expired":
        assert {name: getattr(result, name) for name in RESPONSE} == dict.fromkeys(RESPONSE)
        return
    assert result.ttl.remaining == 0
    assert (result.converged, result.result_type, result.termination_reason) == (False, "ttl_expired", "ttl_expired")
    _is_one_of_three_shapes(result, records)
    _has_scores_of_the_engine(result, records)


def _is_one_of_three_shapes(result: RunResult, records: Records) -> None:
    ended = {record["pass_number"]: record["execution_results"] for record in of(records, "pass")}
    now = {"answer": result.answer, "steps": [step.model_dump() for step in result.steps]}
    assert len(ended) == result.passes
    if result.expiration_point == "phase_boundary":
        assert result.passes
    if result.passes:
        assert (result.latest_pass_result, result.partial_result) == (ended[result.passes], None)
    else:
        assert (result.latest_pass_result, result.partial_result) == (None, now)


def _has_scores_of_the_engine(result: RunResult, records: Records) -> None:
    told = result.ttl_expired_metadata
    assert told is not None
    waiting = [step.step_id for step in result.steps if step.status in ("pending", "running")]
    assert told.incomplete_steps == waiting
    assert told.reason_codes[-1] == "ttl_expired"
    assert told.pass_number == max(1, result.passes)
    if result.plan is None:
        assert (told.completeness_score, told.coherence_score, told.consistency_status) == (None, None, None)
        return
    last = of(records, "convergence")[-1]
    assert last["converged"] is False
    for name in ("completeness_score", "coherence_score", "consistency_status", "detected_issues", "reason_codes"):
        assert getattr(told, name) == last[name]
    assert last["pass"] == told.pass_number
    if result.partial_result is not None:
        assert {"incomplete", "missing_step"} <= set(told.reason_codes)
        assert told.completeness_score is not None
        assert told.completeness_score < 1


@pytest.mark.parametrize(("ttl", "incomplete"), [(0, ["s1", "s2"]), (1, ["s1", "s2"]), (2, ["s2"])])
def test_an_expired_result_holds_the_given_plan_once(ttl: int, incomplete: list[str]) -> None:
    records: Records = []
    config = RunConfig(ttl=ttl, durability="off")
    orchestrator = Orchestrator(thinking(), config=config, journal=False, on_record=records.append)
    result = orchestrator.run(TASK, THOUGHTS)
    assert result.status == "ttl_expired"
    assert result.plan is not None
    assert [step.step_id for step in result.steps] == ["s1", "s2"]
    assert result.ttl_expired_metadata is not None
    assert result.ttl_expired_metadata.incomplete_steps == incomplete
    assert [record["cause"] for record in of(records, "plan")] == ["given"]
    assert (result.convergence is None) == (ttl == 0)


def test_a_pass_that_expires_at_a_phase_boundary_counts() -> None:
    result, records = run(mending(), 4)
    assert (result.expiration_point, result.passes) == ("phase_boundary", 1)
    assert result.latest_pass_result == of(records, "pass")[0]["execution_results"]
    assert result.latest_pass_result["answer"] == SHORT
    assert result.partial_result is None
    assert result.ttl_expired_metadata is not None
    assert result.ttl_expired_metadata.pass_number == 1
    assert "failed_step" in result.ttl_expired_metadata.reason_codes


def test_expiry_between_passes_returns_the_assessed_pass() -> None:
    result, records = run(mending(), 5)
    assert (result.expiration_point, result.passes) == ("phase_boundary", 1)
    assert result.latest_pass_result is not None
    assert [(step["step_id"], step["status"]) for step in result.latest_pass_result["steps"]] == [
        ("s1", "complete"),
        ("s2", "failed"),
    ]
    assert [step.step_id for step in result.steps] == ["s1", "s2", "s2-r1"]
    assert "failed_step" in of(records, "convergence")[-1]["reason_codes"]


def test_expiry_in_a_later_pass_returns_the_judged_previous_one() -> None:
    result, records = run(thinking_again(), 8, "name the primes after 7 and 11")
    assert (result.expiration_point, result.passes) == ("mid_phase", 1)
    assert result.latest_pass_result == of(records, "pass")[0]["execution_results"]
    assert [(step["status"], step["output"]) for step in result.latest_pass_result["steps"]] == [
        ("complete", {"text": "12"}),
        ("complete", {"text": "14"}),
    ]
    assert result.latest_pass_result["answer"] == "The primes are 12 and 14."
    assert result.partial_result is None
    told, judged_first = result.ttl_expired_metadata, of(records, "convergence")[0]
    assert told is not None
    assert (told.pass_number, told.incomplete_steps) == (1, ["s2-r1"])
    assert (told.completeness_score, told.detected_issues) == (
        judged_first["completeness_score"],
        judged_first["detected_issues"],
    )
    assert told.reason_codes == [*judged_first["reason_codes"], "ttl_expired"]


def test_a_later_pass_that_is_cut_off_before_its_answer_is_not_the_latest_completed_one() -> None:
    result, records = run(thinking_again(), 9, "name the primes after 7 and 11")
    assert (result.expiration_point, result.passes) == ("mid_phase", 1)
    assert [step.output for step in result.steps if step.step_id.endswith("-r1")] == [{"text": "11"}, {"text": "13"}]
    assert result.latest_pass_result == of(records, "pass")[0]["execution_results"]
    assert result.latest_pass_result["answer"] == result.answer == "The primes are 12 and 14."
    assert result.ttl_expired_metadata is not None
    assert (result.ttl_expired_metadata.pass_number, result.ttl_expired_metadata.incomplete_steps) == (1, [])
    judged = of(records, "convergence")[0]
    assert result.ttl_expired_metadata.completeness_score == judged["completeness_score"]


def test_expiry_in_the_first_pass_returns_partial_results() -> None:
    result, records = run(thinking(), 3)
    assert (result.expiration_point, result.passes) == ("mid_phase", 0)
    assert result.latest_pass_result is None
    assert result.partial_result is not None
    assert result.partial_result["answer"] is None
    assert [(step["status"], step["output"]) for step in result.partial_result["steps"]] == [
        ("complete", {"text": "11"}),
        ("pending", None),
    ]
    assert of(records, "pass") == []


@pytest.mark.parametrize(
    ("ttl", "statuses"), [(2, ["running", "pending"]), (3, ["running", "complete"])], ids=["substep", "parent"]
)
def test_an_abandoned_step_keeps_its_status(ttl: int, statuses: list[str]) -> None:
    result, records = run(nesting(), ttl)
    assert result.status == "ttl_expired"
    told = [step.status for step in result.steps]
    journaled: dict[str, str] = {}
    for record in of(records, "step"):
        journaled[record["step_id"]] = record["status"]
    assert told == [journaled.get(step.step_id, "pending") for step in result.steps]
    assert told[1] == statuses[1]
    assert told[0] in (statuses[0], "pending")
    assert result.ttl_expired_metadata is not None
    assert "s1" in result.ttl_expired_metadata.incomplete_steps


def test_a_started_tool_finishes_and_none_starts_after_the_last_cycle() -> None:
    called: list[str] = []

    @tool(effect="unsafe")
    def note(text: str) -> str:
        """Notes a text."""
        called.append(text)
        return f"noted {text}"

    registry = default_registry()
    registry.register(note)
    works = [
        {"step_id": "s1", "description": "Note the word before", "tool": "note", "arguments": {"text": "before"}},
        {"step_id": "s2", "description": "Name the prime after 7", "agent": "llm"},
        {"step_id": "s3", "description": "Note the word after", "tool": "note", "arguments": {"text": "after"}},
    ]
    result, records = run(
        model(plan={"goal": "note", "steps": works}, reason="11"), 3, "note before, name the prime after 7, note after",
        registry,
    )  # fmt: skip
    assert result.status == "ttl_expired"
    assert called == ["before"]
    assert [record["state"] for record in of(records, "tool")] == ["started", "finished"]
    assert [(step.status, step.output) for step in result.steps] == [
        ("complete", {"result": "noted before"}),
        ("complete", {"text": "11"}),
        ("pending", None),
    ]


def test_the_last_verdict_is_kept_without_a_cycle_to_refine() -> None:
    issue = {
        "issue_id": "j1",
        "type": "do_say_mismatch",
        "severity": "high",
        "description": "the sum was never checked",
        "location": {"artifact": "results", "step_id": "s1"},
        "proposed_repair": "check it",
    }
    result, _ = run(model(plan={"goal": TASK, "steps": [PLAIN]}, judge={"issues": [issue]}, answer=SHORT), 4)
    assert (result.status, result.expiration_point) == ("ttl_expired", "phase_boundary")
    assert result.ttl_expired_metadata is not None
    assert any("never checked" in found for found in result.ttl_expired_metadata.detected_issues)


PLAIN = {"step_id": "s1", "description": "Add 5 and 10", **add(5, 10)}


def test_without_cycles_no_call_plan_or_pass_is_made() -> None:
    scripted = thinking()
    result, _ = run(scripted, 0)
    assert (result.status, result.exit_code, result.passes, result.plan) == ("ttl_expired", 5, 0, None)
    assert scripted.requests == []
    assert result.partial_result == {"answer": None, "steps": []}
    assert result.expiration_point == "mid_phase"


def test_the_allocation_covers_a_pass_in_which_three_votes_are_all_in_doubt() -> None:
    def doubtful(request: LLMRequest) -> dict[str, Any]:
        reply = judged(request, met="no")
        reply["requirements"][0]["evidence"] = "words that occur nowhere"
        return reply

    simple = {**PROFILE, "reasoning_depth": "low", "expected_tool_usage": "none", "confidence_requirement": "low"}
    scripted = model(profile=simple, plan=THOUGHTS, reason="11", judge=doubtful)
    result = Orchestrator(scripted, config=RunConfig(judge_votes=3, durability="off"), journal=False).run(TASK)
    assert len(scripted.asked("judge")) == 6
    assert scripted.asked("refine")
    assert (result.status, result.ttl.remaining > 0) == ("not_converged", True)
