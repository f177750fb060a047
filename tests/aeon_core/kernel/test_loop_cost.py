"""What a run costs in model calls, by pass and purpose; nothing is asked twice (core FR-035: one cycle a reply)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings

from aeon_core import Orchestrator, RunConfig, RunResult, ToolRegistry
from aeon_core.llm.base import LLMRequest
from aeon_core.tools.registry import default_registry
from tests.aeon_core.kernel import loop_random
from tests.aeon_core.kernel.loop_random import scripts
from tests.aeon_core.kernel.test_passes import MENDED, NOTHING, TASK, Records, divide, model, of, plan
from tests.fakes import ScriptedModel, add, call
from tests.sampling import examples

Calls = dict[int, dict[str, int]]
"""Model calls by pass and purpose."""
SUM = "calculate the sum of 5 and 10"
UNKNOWN = {"step_id": "s1", "description": "Add 5 and 10", "tool": "adder"}
EXACT = {"type": "step_modify", "target": "s1", "changes": {"description": "Add 5 and 10", **add(5, 10)}, "reason": "x"}
ISSUE = {
    "issue_id": "j1",
    "type": "consistency",
    "severity": "high",
    "description": "the figure is wrong",
    "proposed_repair": "say 15",
}
ONE_PASS = {"profile": 1, "plan": 1, "answer": 1, "judge": 1}


def run(
    scripted: ScriptedModel, task: str = TASK, tools: ToolRegistry | None = None, **config: Any
) -> tuple[RunResult, Calls, Records]:
    records: Records = []
    settled = RunConfig(durability="off", **config)
    result = Orchestrator(scripted, tools, config=settled, journal=False, on_record=records.append).run(task)
    calls: dict[int, Counter[str]] = {}
    for record in of(records, "llm"):
        if record["state"] == "started":
            calls.setdefault(record["pass"], Counter())[record["purpose"]] += 1
    return result, {number: dict(counted) for number, counted in calls.items()}, records


def steps(*works: dict[str, Any]) -> dict[str, Any]:
    first = "Add 5 and 10" if "tool" in works[0] or "subplan" in works[0] else "Say what the sum of 5 and 10 is"
    texts = [first, *(text for _, text in zip(works[1:], MORE, strict=False))]
    made = zip(works, texts, strict=True)
    described = [{"step_id": f"s{number}", "description": text, **work} for number, (work, text) in enumerate(made, 1)]
    return {"goal": SUM, "steps": described}


MORE = ["Divide 15 by 1", "Say whether the sum of 5 and 10 is odd", "Multiply 15 by 2"]


PLAIN = {"agent": "llm"}
NO_ARGUMENTS = {"tool": "calculator"}
HOLDER = {
    "subplan": {
        "parent_step_id": "s1",
        "subplan_goal": "the sum",
        "substeps": [
            {"step_id": "s1.1", "description": "Add 5 and 10", **add(5, 10)},
            {"step_id": "s1.2", "description": "Say what the sum of 5 and 10 is", "agent": "llm"},
        ],
    }
}


@pytest.mark.parametrize(
    ("works", "calls"),
    [
        ([add(5, 10)], {}),
        ([add(5, 10), divide(15, 1)], {}),
        ([NO_ARGUMENTS], {"tool_call": 1}),
        ([PLAIN, NO_ARGUMENTS, PLAIN], {"reason": 2, "tool_call": 1}),
        ([add(5, 10), NO_ARGUMENTS, PLAIN], {"tool_call": 1, "reason": 1}),
        ([HOLDER], {"reason": 1}),
        ([{**HOLDER, "agent": "llm"}], {"reason": 2}),
    ],
    ids=["arguments", "two", "none", "reason", "mixed", "holder", "reasoning-holder"],
)
def test_a_pass_costs_four_calls_and_one_for_each_step_that_needs_a_model(
    works: list[dict[str, Any]], calls: dict[str, int]
) -> None:
    scripted = model(
        plan=steps(*works),
        tool_call=call("calculator", operation="add", a=5, b=10),
        reason="The sum of 5 and 10 is 15.",
        answer="The sum of 5 and 10 is 15.",
    )
    result, counted, _ = run(scripted, SUM)
    assert result.status == "converged"
    assert counted == {1: {**ONE_PASS, **calls}}
    assert result.ttl.spent == len(scripted.requests) == 4 + sum(calls.values())


def test_a_missing_tool_costs_two_repairs_a_fallback_and_a_refinement() -> None:
    told = "The sum of 5 and 10 is 15."
    scripted = model(plan=steps({"tool": "nope"}), fallback=told, repair="no", answer=told)
    result, counted, _ = run(scripted, SUM)
    assert result.status == "converged"
    assert [(step.tool, step.agent, step.status) for step in result.plan.walk()] == [(None, "llm", "complete")]
    assert counted == {1: {"profile": 1, "plan": 1, "judge": 1, "refine": 1, "repair": 2, "fallback": 1}}
    assert result.ttl.spent == len(scripted.requests) - 2


def test_a_plan_that_is_one_reasoning_step_costs_no_answer() -> None:
    result, counted, _ = run(model(plan=steps(PLAIN), reason="The sum is 15."), SUM)
    assert (result.status, result.answer) == ("converged", "The sum is 15.")
    assert counted == {1: {"profile": 1, "plan": 1, "reason": 1, "judge": 1}}


def test_an_issue_with_only_the_answer_costs_an_answer_and_a_judgement() -> None:
    wrong = {"issues": [{**ISSUE, "location": {"artifact": "answer", "step_id": None}}]}
    scripted = model(judge=[wrong, {"issues": []}], answer=["It is 16.", "It is 15, and 1 divided by 2 is 0.5."])
    result, counted, _ = run(scripted)
    assert (result.status, result.passes) == ("converged", 2)
    assert counted == {1: ONE_PASS, 2: {"answer": 1, "judge": 1}}


def test_a_repeated_answer_is_not_judged_again() -> None:
    wrong = {"issues": [{**ISSUE, "location": {"artifact": "answer", "step_id": None}}]}
    result, counted, _ = run(model(judge=wrong, answer="It is 16.", refine=NOTHING))
    assert (result.status, result.passes) == ("not_converged", 2)
    assert counted == {1: ONE_PASS, 2: {"answer": 1, "refine": 1}}
    assert result.convergence is not None
    assert result.convergence["reason_codes"][-1] == "no_progress"


def test_an_unchanged_plan_requests_one_more_answer_with_the_verdict() -> None:
    vague = {"issues": [{**ISSUE, "location": {"artifact": "plan", "step_id": None}}]}
    scripted = model(judge=vague, refine=NOTHING, answer=["one", "two", "three", "four"])
    result, counted, _ = run(scripted)
    assert (result.status, result.passes) == ("not_converged", 2)
    assert counted == {1: {**ONE_PASS, "refine": 1}, 2: {"answer": 1, "judge": 1, "refine": 1}}
    assert "the figure is wrong" in scripted.asked("answer")[1].prompt


def test_a_plan_with_an_unknown_tool_costs_one_refinement_before_it_runs() -> None:
    answer = "The sum of 5 and 10 is 15."
    refined = {"actions": [EXACT], "follow_up_questions": []}
    result, counted, _ = run(model(plan={"goal": SUM, "steps": [UNKNOWN]}, refine=refined, answer=answer), SUM)
    assert result.status == "converged"
    assert counted == {1: {**ONE_PASS, "refine": 1}}


def test_a_further_pass_costs_a_refinement_its_steps_answer_and_judgement() -> None:
    result, counted, _ = run(model(plan=plan(by=0), refine=MENDED))
    assert (result.status, result.passes) == ("converged", 2)
    assert counted == {1: {**ONE_PASS, "refine": 1}, 2: {"answer": 1, "judge": 1}}
    assert result.ttl.spent == 7


def _rewording(turn: int) -> dict[str, Any]:
    target = "s2" if turn == 1 else f"s2-r{turn - 1}"
    changes = {"description": f"Divide {turn} by 0", **divide(turn, 0)}
    return {"actions": [{"type": "step_modify", "target": target, "changes": changes, "reason": "x"}], **QUESTIONS}


QUESTIONS: dict[str, Any] = {"follow_up_questions": []}


def test_unconverged_passes_cost_two_calls_and_three_a_pass() -> None:
    refined = [_rewording(turn) for turn in range(1, 9)]
    result, counted, _ = run(model(plan=plan(by=0), refine=refined, answer="The sum of 5 and 10 is 15."))
    assert (result.status, result.passes) == ("not_converged", 4)
    assert counted == {
        1: {"profile": 1, "plan": 1, "answer": 1, "judge": 1, "refine": 1},
        2: {"answer": 1, "judge": 1, "refine": 1},
        3: {"answer": 1, "judge": 1, "refine": 1},
        4: {"answer": 1, "judge": 1},
    }
    assert [entry["step_id"] for entry in result.manual_intervention] == ["s2"]


def test_a_custom_criterion_costs_no_call(tmp_path: Path) -> None:
    criteria = tmp_path / "criteria.yml"
    criteria.write_text("additional:\n  - {name: wish, description: The answer is friendly}\n", encoding="utf-8")
    result, counted, _ = run(model(), criteria=criteria)
    assert result.status == "converged"
    assert counted == {1: ONE_PASS}


class Deletes:
    name, description, effect = "delete", "Deletes a file for good.", "unsafe"
    input_schema: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"path": {"type": "string"}}}
    output_schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def invoke(self, path: str) -> dict[str, Any]:
        return {"deleted": path}


def test_a_plan_with_unsafe_calls_costs_a_review() -> None:
    registry: ToolRegistry = default_registry()
    registry.register(Deletes())
    acts = steps({"tool": "delete", "arguments": {"path": "old.log"}})
    result, counted, _ = run(model(plan=acts, review={"issues": []}), SUM, tools=registry)
    assert result.status == "converged"
    assert counted == {1: {**ONE_PASS, "review": 1}}


@pytest.mark.parametrize(("limit", "room"), [(16_000, 16_000), (100, 4_096)])
def test_a_judge_has_the_configured_room_for_a_reply_and_never_too_little(limit: int, room: int) -> None:
    registry: ToolRegistry = default_registry()
    registry.register(Deletes())
    scripted = model(plan=steps({"tool": "delete", "arguments": {"path": "old.log"}}), review={"issues": []})
    run(scripted, SUM, tools=registry, max_tokens=limit)
    limits = {request.purpose: request.max_tokens for request in scripted.requests}
    assert limits == {"profile": limit, "plan": limit, "answer": limit, "review": room, "judge": room}


def test_single_pass_costs_a_plan_an_answer_and_the_steps() -> None:
    result, counted, _ = run(model(plan=steps(PLAIN, add(5, 10)), reason="15"), SUM, single_pass=True)
    assert result.status == "completed"
    assert counted == {1: {"plan": 1, "answer": 1, "reason": 1}}


@pytest.mark.parametrize(
    ("reply", "asked"), [('"no" JSON at all', {"refine": 1, "repair": 2}), ("no JSON at all", {"refine": 3})]
)
def test_after_an_unreadable_refinement_only_it_is_requested_again(reply: str, asked: dict[str, int]) -> None:
    scripted = model(plan=plan(by=0), refine=reply, repair="nor this", answer="1 cannot be divided by 0.")
    result, counted, _ = run(scripted)
    assert (result.status, result.passes) == ("not_converged", 2)
    assert counted == {1: {**ONE_PASS, **asked}, 2: asked}


def test_a_run_that_cannot_change_ends_without_another_call() -> None:
    result, counted, _ = run(model(plan=plan(by=0), refine=NOTHING, answer="1 cannot be divided by 0."))
    assert (result.status, result.passes) == ("not_converged", 1)
    assert counted == {1: {**ONE_PASS, "refine": 1}}


def _asked(request: LLMRequest) -> tuple[str, str]:
    return request.purpose, re.sub(r"<ttl>.*?</ttl>", "", request.prompt, flags=re.DOTALL)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(told=scripts)
def test_no_request_is_made_twice(told: dict[str, Any]) -> None:
    ran = loop_random.run(told, ttl=60)
    gave_up = {cycle["step_number"] for cycle in ran.of("cycle") if cycle["errors"]}
    counted = Counter(map(_asked, ran.model.requests))
    # Repairs answer a reply, and a refinement that nobody could read is requested again: the second chance.
    twice = [purpose for (purpose, _), times in counted.items() if times > (2 if purpose == "refine" else 1)]
    assert [purpose for purpose in twice if purpose != "repair"] == []
    repeated = [purpose for (purpose, _), times in counted.items() if purpose == "refine" and times > 1]
    assert not repeated or gave_up
