"""What the simulated model says in a run of several passes: profile, judge, refinement, and the runs these make."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core import Orchestrator, RunConfig, RunResult
from aeon_core.adaptive.profile import DIMENSIONS, contradictions
from aeon_core.adaptive.profile_inference import PROFILE_SCHEMA, read_profile
from aeon_core.effects.record_stream import RecordStream
from aeon_core.judge.judgement import JUDGE_SCHEMA, REVIEW_SCHEMA
from aeon_core.llm.base import LLMRequest, Purpose
from aeon_core.llm.simulated import SimulatedModel
from aeon_core.plan.models import Plan
from aeon_core.plan.refinement.reply import refine_schema
from aeon_core.tools.schema import Schema
from tests.aeon_core.llm.simulated_talk import CALCULATOR_AND_ECHO, READ_FILE, ask, lines
from tests.sampling import examples

REFINE_SCHEMA = refine_schema(["echo", "calculator", "read_file"])
API = "design a REST API for invoices"
TOOLS = lines(CALCULATOR_AND_ECHO)
RULE = "simulated judge, a plain rule"
VAGUE = {"step_id": "s1", "description": "Do the things", "agent": "llm"}


def run(task: str, name: str = "default", *, ttl: int = 50, steps: list[dict[str, Any]] | None = None) -> RunResult:
    config = RunConfig(single_pass=False, durability="off", ttl=ttl)
    plan = Plan.model_validate({"goal": task, "steps": steps}) if steps is not None else None
    return Orchestrator(SimulatedModel(name), config=config, journal=False).run(task, plan)


def profile_of(task: str, tools: str = TOOLS) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(ask(SimulatedModel(), "profile", task=task, tools=tools).text)
    assert not Schema(PROFILE_SCHEMA).errors(said)
    return said


def judged(*requirements: str, **sections: str) -> dict[str, Any]:
    sections["requirements"] = lines([{"n": n, "text": text} for n, text in enumerate(requirements or ["do it"], 1)])
    said: dict[str, Any] = json.loads(ask(SimulatedModel(), "judge", **sections).text)
    assert not Schema(JUDGE_SCHEMA).errors(said)
    return said


def issues_of(**sections: str) -> list[dict[str, Any]]:
    said = judged(**sections)
    assert all(entry["met"] == ("no" if said["issues"] else "yes") for entry in said["requirements"])
    issues: list[dict[str, Any]] = said["issues"]
    return issues


def refined(task: str, steps: list[dict[str, Any]], *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The refinement of all steps that are not complete or have an issue, as the loop asks for it."""
    fragments = [
        {
            "step_id": step["step_id"],
            "status": step["status"],
            "reasons": ["vague"],
            "issues": [],
            "attempts": 0,
            **more,
        }
        for step in steps
    ]
    sections = {"task": task, "tools": more.pop("tools", TOOLS), "plan": lines([{"goal": task}, *steps])}
    sections |= {"results": lines(results), "fragments": lines(fragments), "limits": "10", "ttl": "9 cycles remaining"}
    said: dict[str, Any] = json.loads(ask(SimulatedModel(), "refine", **sections).text)
    assert not Schema(REFINE_SCHEMA).errors(said)
    return said


def test_a_sum_is_shallow_and_a_design_deep_with_little_information() -> None:
    shallow, deep = profile_of("add two numbers"), profile_of(API)
    assert (shallow["reasoning_depth"], shallow["output_breadth"]) == ("low", "narrow")
    assert (deep["reasoning_depth"], deep["information_sufficiency"]) == ("high", "low")
    assert deep["confidence_requirement"] == "high"
    assert "'design'" in deep["raw_inference"]


@pytest.mark.parametrize(
    ("task", "usage"),
    [
        ("explain how TLS works", "none"),
        ("add 5 and 10", "minimal"),
        ("multiply 3 by 4, add 2, subtract 1 and divide by 13", "moderate"),
        ("add 1 and 2, " + ", ".join(f"add {number}" for number in range(3, 10)), "extensive"),
    ],
)
def test_the_expected_tool_usage_is_that_of_the_plan_that_the_tools_allow(task: str, usage: str) -> None:
    assert profile_of(task)["expected_tool_usage"] == usage
    assert profile_of(task, tools="")["expected_tool_usage"] == "none"


@given(
    st.lists(st.sampled_from(["add 5 and 10", API, "write a poem", "do it", "echo hi", "pay 3 invoices"]), max_size=5)
)
def test_every_profile_is_coherent_and_more_to_do_lowers_neither_depth_nor_breadth(parts: list[str]) -> None:
    profiles = [profile_of(", then ".join(parts[:count])) for count in range(1, len(parts) + 1)]
    for said in profiles:
        assert contradictions(read_profile(said)) == []
    for dimension in ("reasoning_depth", "output_breadth"):
        tiers = [DIMENSIONS[dimension].index(said[dimension]) for said in profiles]
        assert tiers == sorted(tiers)


def test_a_result_that_only_repeats_the_task_is_an_issue_of_its_step() -> None:
    plan = lines([{"goal": API}, {"step_id": "s1", "description": "Put together a REST API", "status": "complete"}])
    text = "Put together a REST API. The points are REST, API, invoices."
    (issue,) = issues_of(goal=json.dumps(API), plan=plan, results=lines([{"step_id": "s1", "output": {"text": text}}]))
    assert (issue["type"], issue["severity"], issue["location"]["step_id"]) == ("specificity", "high", "s1")


def test_a_step_that_says_it_was_not_done_is_an_issue_and_superseded_ones_are_none() -> None:
    steps = [
        {"step_id": "s1", "description": "Read a.txt", "status": "complete"},
        {"step_id": "s2", "description": "Read b.txt", "status": "invalid"},
    ]
    results = [
        {"step_id": step["step_id"], "output": {"text": "No tool is there to read it, so nothing was read."}}
        for step in steps
    ]
    issues = issues_of(goal='"read a.txt"', plan=lines(steps), results=lines(results))
    assert [(issue["type"], issue["location"]["step_id"]) for issue in issues] == [("do_say_mismatch", "s1")]


def test_a_part_of_the_goal_that_no_step_serves_is_an_issue() -> None:
    plan = lines([{"step_id": "s1", "description": "Add 5 and 10", "tool": "calculator", "status": "complete"}])
    results = lines([{"step_id": "s1", "output": {"result": 15}}])
    (issue,) = issues_of(goal=json.dumps("add 5 and 10 and design a logo"), plan=plan, results=results)
    assert issue["description"] == f"{RULE}: the plan leaves out a part of the goal: 'design a logo'"
    assert issues_of(goal=json.dumps("add 5 and 10"), plan=plan, results=results) == []


def test_criteria_are_judged_by_the_words_and_figures_that_the_answer_shows() -> None:
    criteria = ('total: The answer names the total "15"', "currency: The answer names the currency")
    said = judged("add", *criteria, goal="add", plan="", answer="The total is 15.")
    assert [entry["met"] for entry in said["requirements"]] == ["yes", "yes", "no"]
    shown = f"{RULE}: currency: the answer does not show 'currency'"
    assert [issue["description"] for issue in said["issues"]] == [shown]


def test_a_suspicion_is_confirmed_where_the_answer_lacks_the_last_result() -> None:
    plan = lines([{"step_id": "s1", "description": "Add 5 and 10", "tool": "calculator", "status": "complete"}])
    shown = {"goal": '"add 5 and 10"', "plan": plan, "results": lines([{"step_id": "s1", "output": {"result": 15}}])}
    shown["suspicions"] = lines([{"n": 1, "text": "the answer says '16'"}])
    for answer, stands in (("The sum is 16.", True), ("The sum is 15, not 16.", False)):
        said = judged(answer=json.dumps(answer), **shown)
        assert [entry["stands"] for entry in said["suspicions"]] == [stands]
        assert said["consistent"]["answer"]["ok"] is not stands
        assert all(entry["evidence"] == answer for entry in said["requirements"])


def test_a_vague_step_is_rewritten_in_the_words_of_the_task() -> None:
    (action,) = refined("add 5 and 10", [{**VAGUE, "status": "pending"}])["actions"]
    (step,) = action["changes"]["steps"]
    assert (action["type"], step["id"], step["description"], step["tool"]) == (
        "step_modify", "s1", "Add 5 and 10", "calculator",
    )  # fmt: skip
    assert json.loads(step["arguments_json"]) == {"operation": "add", "a": 5, "b": 10}


def test_a_step_of_several_actions_becomes_a_subplan_whose_references_hold() -> None:
    step = {"step_id": "s1", "description": "Multiply 3 by 4, add 2, subtract 1", "status": "pending", "agent": "llm"}
    (action,) = refined("calculate", [step])["actions"]
    assert action["type"] == "subplan_create"
    assert [(part["id"], part["description"], part["depends_on"]) for part in action["changes"]["steps"]] == [
        ("s1.1", "Multiply 3 by 4", []),
        ("s1.2", "Add the result of s1.1 and 2", ["s1.1"]),
        ("s1.3", "Subtract 1 from the result of s1.2", ["s1.2"]),
    ]


def test_where_nothing_helps_there_is_no_action_but_a_question() -> None:
    step = {"step_id": "s1", "description": "Read notes.txt", "status": "complete", "agent": "llm"}
    text = {"text": "No tool is there to read notes.txt, so nothing was read."}
    said = refined("read notes.txt", [step], {"step_id": "s1", "output": text})
    assert said == {"actions": [], "follow_up_questions": ["What does 'notes.txt' hold? No registered tool gets it."]}


def test_a_tool_that_can_do_an_undone_step_takes_it_over() -> None:
    step = {"step_id": "s1", "description": "Read notes.txt", "status": "complete", "agent": "llm"}
    text = {"text": "No tool is there to read notes.txt, so nothing was read."}
    said = refined("read notes.txt", [step], {"step_id": "s1", "output": text}, tools=lines([READ_FILE]))
    assert [(action["type"], action["changes"]["steps"][0]["tool"]) for action in said["actions"]] == [
        ("step_mark_invalid", "read_file")
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "step_id": st.sampled_from(["s1", "s2"]),
        "status": st.sampled_from(["pending", "complete", "failed", "invalid"]) | json_values,
        "description": st.sampled_from(["Add 1 and 2", "Divide 1 by 0", "Do things, then stop"]) | json_values,
        "tool": st.sampled_from(["calculator", "x"]) | json_values,
        "depends_on": st.lists(st.sampled_from(["s1", "s2"]), max_size=2) | json_values,
        "output": json_values,
        "reasons": json_values,
        "name": json_values,
    },
)


@settings(max_examples=examples(150))
@given(
    purpose=st.sampled_from(["profile", "judge", "review", "refine"]),
    sections=st.fixed_dictionaries(
        {
            name: st.lists(entries, min_size=1, max_size=3).map(lines)
            for name in ("plan", "results", "fragments", "requirements", "suspicions")
        }
    ),
    task=st.text(max_size=40) | st.sampled_from([API, "add 5 and 10", "divide 1 by 2"]),
)
def test_whatever_is_shown_the_reply_has_its_form(purpose: Purpose, sections: dict[str, str], task: str) -> None:
    schemas = {"profile": PROFILE_SCHEMA, "judge": JUDGE_SCHEMA, "review": REVIEW_SCHEMA, "refine": REFINE_SCHEMA}
    reply = json.loads(ask(SimulatedModel(), purpose, task=task, tools=TOOLS, **sections).text)
    assert Schema(schemas[purpose]).errors(reply) == []


def test_a_message_without_sections_is_answered_too() -> None:
    request = LLMRequest("judge", "Aeon judge", [{"role": "user", "content": "x"}])
    assert not Schema(JUDGE_SCHEMA).errors(json.loads(SimulatedModel().complete(request).text))


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("calculate the sum of 5 and 10", "The sum of 5 and 10 is 15."),
        ("count the words in 'the quick brown fox', then multiply by 3", "12"),
        ("reverse 'abc' and uppercase it", "CBA"),
    ],
)
def test_what_the_rules_know_converges_in_one_pass(task: str, answer: str) -> None:
    result = run(task)
    assert (result.status, result.passes) == ("converged", 1)
    assert answer in (result.answer or "")


@pytest.mark.parametrize("name", ["default", "malformed", "broken", "rambling", "missing-tool", "flaky", "hostile"])
def test_an_open_task_is_worked_out_in_a_second_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordStream, "wait", lambda *_: None)
    result = run(API, name)
    assert (result.status, result.passes) == ("converged", 2)
    assert "Operations: GET lists or reads, POST adds" in (result.answer or "")
    assert [step.step_id for step in result.steps if step.status == "invalid"] == ["s5"]
    assert len(result.follow_up_questions) >= 1


@pytest.mark.parametrize("task", ["divide 1 by 0", "explain how TLS works", "write a poem about autumn", "do it"])
def test_a_task_that_cannot_be_finished_ends_without_convergence(task: str) -> None:
    result = run(task)
    assert result.status == "not_converged"
    assert result.convergence is not None
    assert {"incomplete", "no_progress"} <= set(result.convergence["reason_codes"])


@pytest.mark.parametrize("ttl", [2, 5, 12])
def test_under_a_small_ttl_an_open_task_expires(ttl: int) -> None:
    assert run(API, ttl=ttl).status == "ttl_expired"


def test_a_part_that_was_left_out_is_added_and_stays_undone_honestly() -> None:
    result = run(f"{API}, then write a poem about it")
    assert (result.status, result.passes) == ("not_converged", 4)
    assert result.steps[-1].description == "Write a poem about it"
    assert (result.answer or "").startswith("The task was not completed: s5-r1-1 only repeats")
    assert "Resources: the collection /invoices" in (result.answer or "")


def test_a_failed_calculation_is_mended_from_the_task_and_only_from_it() -> None:
    failing = {"tool": "calculator", "arguments": {"operation": "divide", "a": 1, "b": 0}}
    steps = [{"step_id": "s1", "description": "Divide 1 by 0", **failing}]
    mended = run("divide 1 by 2", steps=steps)
    assert (mended.status, mended.passes, mended.steps[-1].output) == ("converged", 2, {"result": 0.5})
    assert run("divide 1 by 0", steps=steps).status == "not_converged"


@pytest.mark.parametrize("name", ["broken", "malformed", "bad-arguments"])
def test_a_refinement_that_has_to_be_repaired_keeps_its_arguments(name: str) -> None:
    failing = {"tool": "calculator", "arguments": {"operation": "divide", "a": 1, "b": 0}}
    result = run("divide 1 by 2", name, steps=[{"step_id": "s1", "description": "Divide 1 by 0", **failing}])
    assert (result.status, result.passes) == ("converged", 2)
    assert result.steps[-1].output == {"result": 0.5}


def test_a_model_that_insists_on_an_unknown_tool_reasons_instead_and_its_plan_names_no_such_tool() -> None:
    result = run("multiply 3 by 4 and add 2", "no-such-tool")
    assert result.plan is not None
    assert {step.tool for step in result.plan.walk()} <= {None, "echo", "calculator"}
    assert "fallback" in {step.mode for step in result.steps}
