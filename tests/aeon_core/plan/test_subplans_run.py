"""Subplans run within the loop, and what they give reaches the step around them (adaptive FR-009, FR-069, FR-082)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon_core import Orchestrator, RunConfig, RunResult
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import PlanStep
from tests.fakes import ScriptedModel, add, call, lines_of, section

Records = list[dict[str, Any]]
TASK = "calculate the sum of 5 and 10, and 1 divided by 2"
PROFILE = {
    "reasoning_depth": "high",
    "information_sufficiency": "high",
    "expected_tool_usage": "minimal",
    "output_breadth": "narrow",
    "confidence_requirement": "medium",
    "raw_inference": "two sums",
}
VAGUE = "Do the things"
SUM = {"step_id": "s1.1", "description": "Add 5 and 10", **add(5, 10)}


def divide(step_id: str, b: float) -> dict[str, Any]:
    arguments = {"operation": "divide", "a": 1, "b": b}
    return {"step_id": step_id, "description": f"Divide 1 by {b}", "tool": "calculator", "arguments": arguments}


def plan(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"goal": TASK, "steps": list(steps)}


def act(kind: str, target: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "target": target, "changes": {"steps": list(steps)}, "reason": "it says too little"}


def refined(*replies: list[dict[str, Any]]) -> list[Any]:
    """Return the replies to requests for refinement, one after the other; then nothing more."""
    return [{"actions": actions, "follow_up_questions": []} for actions in (*replies, [])]


def reviewed(request: LLMRequest) -> dict[str, Any]:
    """Return the review of a plan: each step that says too little has an issue."""
    plan = [json.loads(line) for line in lines_of(section(request, "plan"))]
    vague = [step["step_id"] for step in plan if step.get("description") == VAGUE and step["status"] == "pending"]
    issue = {
        "type": "specificity",
        "severity": "medium",
        "description": "vague",
        "proposed_repair": "Say what is done.",
    }
    return {
        "issues": [
            {**issue, "issue_id": f"r-{each}", "location": {"artifact": "plan", "step_id": each}} for each in vague
        ]
    }


def run(steps: dict[str, Any], refine: list[Any], **scripts: Any) -> tuple[RunResult, Records, ScriptedModel]:
    told: dict[str, Any] = {
        "profile": PROFILE,
        "plan": steps,
        "refine": refine,
        "answer": "The sum of 5 and 10 is 15, and 1 divided by 2 is 0.5.",
        "judge": {"issues": []},
        "review": reviewed,
        "reason": "15 and 0.5",
        "fallback": "15 and 0.5",
        "repair": "no",
    }
    scripted = ScriptedModel(**{**told, **scripts})
    records: Records = []
    config = RunConfig(ttl=60, durability="off", single_pass=False)
    result = Orchestrator(scripted, config=config, journal=False, on_record=records.append).run(TASK)
    return result, records, scripted


def of(records: Records, kind: str) -> Records:
    return [record for record in records if record["type"] == kind]


def outputs(result: RunResult) -> dict[str, Any]:
    return {step.step_id: step.output for step in result.steps if step.output is not None}


def statuses(result: RunResult) -> dict[str, str]:
    return {step.step_id: step.status for step in result.steps}


def found(result: RunResult, step_id: str) -> PlanStep:
    assert result.plan is not None
    step = result.plan.find(step_id)
    assert step is not None
    return step


def ended(records: Records) -> list[str]:
    """Return the steps in the order in which they came to their end."""
    return [record["step_id"] for record in of(records, "step") if record["status"] in ("complete", "failed")]


@pytest.mark.parametrize("agent", ["llm", None], ids=["reasoned", "gathered"])
def test_substeps_run_first_and_their_results_reach_the_step_around_them(agent: str | None) -> None:
    vague = {"step_id": "s1", "description": VAGUE, **({"agent": agent} if agent else {})}
    reply = refined([act("subplan_create", "s1", SUM, divide("s1.2", 2))])
    result, records, scripted = run(plan(vague), reply)

    assert (result.status, ended(records)) == ("converged", ["s1.1", "s1.2", "s1"])
    parts = {"s1.1": {"result": 15}, "s1.2": {"result": 0.5}}
    whole = outputs(result)["s1"]
    if agent is None:
        assert (whole, scripted.asked("reason")) == (parts, [])
    else:
        (request,) = scripted.asked("reason")
        assert '{"step_id": "s1.1", "output": {"result": 15}}' in request.messages[0]["content"]
        assert "15 and 0.5" in json.dumps(whole)
    assert outputs(result) == {**parts, "s1": whole}


def test_a_subplan_records_parent_depth_and_author() -> None:
    inner = {"step_id": "s1.2", "description": "Divide 1 by 2 in one step", "subplan": [divide("s1.2.1", 2)]}
    result, _, _ = run(
        plan({"step_id": "s1", "description": VAGUE}), refined([act("subplan_create", "s1", SUM, inner)])
    )

    assert result.status == "converged"
    outer, nested = found(result, "s1").subplan, found(result, "s1.2").subplan
    assert outer is not None
    assert nested is not None
    assert (outer.parent_step_id, outer.depth_level, outer.created_by) == ("s1", 1, "recursive_planner")
    assert (nested.parent_step_id, nested.depth_level, nested.created_by) == ("s1.2", 2, "recursive_planner")
    assert outputs(result)["s1"] == {"s1.1": {"result": 15}, "s1.2": {"s1.2.1": {"result": 0.5}}}


def test_a_step_calls_its_tool_after_its_substeps() -> None:
    vague = {"step_id": "s1", "description": VAGUE, "tool": "calculator"}
    told = call("calculator", operation="multiply", a=15, b=0.5)
    reply = refined([act("subplan_create", "s1", SUM, divide("s1.2", 2))])
    result, records, scripted = run(plan(vague), reply, tool_call=told, answer="15, 0.5 and together 7.5.")

    assert ended(records) == ["s1.1", "s1.2", "s1"]
    assert outputs(result)["s1"] == {"result": 7.5}
    (request,) = scripted.asked("tool_call")
    assert '{"step_id": "s1.2", "output": {"result": 0.5}}' in request.messages[0]["content"]
    assert found(result, "s1").subplan is not None


def test_a_failing_substep_fails_the_step_around_it_and_only_that_substep_runs_again() -> None:
    first = act("subplan_create", "s1", SUM, divide("s1.2", 0))
    result, records, _ = run(
        plan({"step_id": "s1", "description": VAGUE}), refined([first], [act("step_modify", "s1.2", divide("s1.2", 2))])
    )

    assert (result.status, result.passes) == ("converged", 2)
    assert ended(records) == ["s1.1", "s1.2", "s1", "s1.2-r1", "s1-r1"]
    assert statuses(result) == {
        "s1": "invalid",
        "s1.1": "complete",
        "s1.2": "invalid",
        "s1-r1": "complete",
        "s1.2-r1": "complete",
    }
    assert [(found(result, each).replaces) for each in ("s1-r1", "s1.2-r1")] == ["s1", "s1.2"]
    stand_in = found(result, "s1-r1").subplan
    assert stand_in is not None
    assert (stand_in.parent_step_id, stand_in.depth_level, stand_in.created_by) == ("s1-r1", 1, "refinement")
    assert outputs(result)["s1-r1"]["s1.2-r1"] == {"result": 0.5}


def test_a_substep_is_expanded_by_a_subplan_of_its_own_in_a_later_pass() -> None:
    first = act("subplan_create", "s1", SUM, divide("s1.2", 0))
    whole = {"step_id": "s1.2", "description": "Divide 1 by 2 and keep the result", "agent": "llm"}
    second = act("step_modify", "s1.2", whole, divide("q", 2))
    result, records, _ = run(plan({"step_id": "s1", "description": VAGUE}), refined([first], [second]), reason="0.5")

    assert (result.status, ended(records)[3:]) == ("converged", ["q", "s1.2-r1", "s1-r1"])
    nested = found(result, "s1.2-r1").subplan
    assert nested is not None
    assert (nested.depth_level, [each.step_id for each in nested.substeps]) == (2, ["q"])
    assert outputs(result)["q"] == {"result": 0.5}


def test_a_subplan_beyond_five_levels_is_left_to_a_person() -> None:
    inner: dict[str, Any] = SUM
    for number in range(6):
        inner = {"step_id": f"n{number}", "description": "Add 5 and 10 in parts", "subplan": [inner]}
    steps = plan({"step_id": "s1", "description": VAGUE, "agent": "llm"}, divide("s2", 2))
    result, records, scripted = run(steps, refined([act("subplan_create", "s1", inner)]))

    (entry,) = result.manual_intervention
    assert (entry["step_id"], entry["cause"], entry["attempts"]) == ("s1", "nesting_limit", 1)
    assert (list(statuses(result)), ended(records)) == (["s1", "s2"], ["s1", "s2"])
    assert found(result, "s1").subplan is None
    assert result.error is None
    assert of(records, "refinement")[0]["accepted"] is False
    assert len(scripted.asked("refine")) == 1


def test_a_wrong_result_is_replaced_with_its_dependents() -> None:
    thought = {"step_id": "s1", "description": "Name the sum of 5 and 10", "agent": "llm"}
    blamed = {
        "issue_id": "j1",
        "type": "hallucination",
        "severity": "high",
        "description": "step s1 gives 16 as the sum of 5 and 10",
        "location": {"artifact": "step", "step_id": "s1"},
        "proposed_repair": "Add 5 and 10.",
    }
    mended = {"step_id": "s1", "description": "Add 5 and 10", **add(5, 10)}
    result, records, _ = run(
        plan(thought, {**divide("s2", 2), "depends_on": ["s1"]}),
        refined([act("step_mark_invalid", "s1", mended)]),
        reason="16",
        judge=[{"issues": [blamed]}, {"issues": []}],
    )

    assert (result.status, result.passes) == ("converged", 2)
    assert statuses(result) == {"s1": "invalid", "s1-r1": "complete", "s2": "invalid", "s2-r1": "complete"}
    assert found(result, "s2-r1").depends_on == ["s1-r1"]
    assert [found(result, each).replaces for each in ("s1-r1", "s2-r1")] == ["s1", "s2"]
    assert "16" in json.dumps(outputs(result)["s1"])
    (refinement,) = of(records, "refinement")
    assert refinement["action"]["inconsistency_detected"] is True
    assert refinement["replaced"] == {"s1": "s1-r1", "s2": "s2-r1"}
    assert [each["type"] for each in refinement["action"]["semantic_validation_input"]] == ["hallucination"]


def test_an_ignored_proposed_repair_is_journaled_as_an_advisory() -> None:
    misnamed = {"step_id": "s1", "description": "Add 5 and 10", "tool": "calculater", "arguments": {"a": 5, "b": 10}}
    other = {"step_id": "s1", "description": "Add 5 and 10 by reasoning", "agent": "llm"}
    result, records, _ = run(plan(misnamed, divide("s2", 2)), refined([act("step_modify", "s1", other)]), reason="15")

    (advisory,) = [record for record in of(records, "notice") if record["kind"] == "advisory"]
    assert advisory["data"]["issue"]["type"] == "hallucination"
    assert "calculator" in advisory["message"]
    assert advisory["data"]["resolution"] == "the recursive planner's refinement was kept"
    assert (found(result, "s1").tool, found(result, "s1").agent) == (None, "llm")
