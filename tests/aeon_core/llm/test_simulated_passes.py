"""What the simulated model says in a run of several passes: profile, judge, refinement, and the runs these make."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core import Orchestrator, RunConfig, RunResult
from aeon_core.effects.record_stream import RecordStream
from aeon_core.judge.judgement import JUDGE_SCHEMA, REVIEW_SCHEMA
from aeon_core.judge.quote import find_quote
from aeon_core.llm.base import LLMRequest, Purpose
from aeon_core.llm.simulated import SimulatedModel
from aeon_core.plan.requests import refine_schema
from aeon_core.task_profile import PROFILE_SCHEMA, contradictions, read_profile
from aeon_core.tools.schema import Schema
from tests.aeon_core.llm.simulated_talk import CALCULATOR_AND_ECHO, READ_FILE, ask, lines
from tests.sampling import examples

REFINE_SCHEMA = refine_schema(["echo", "calculator", "read_file"])
API = "design a REST API for invoices"
TOOLS = lines(CALCULATOR_AND_ECHO)
RULE = "simulated judge, a plain rule"
NOTHING: dict[str, Any] = {"actions": [], "follow_up_questions": []}


def run(task: str, name: str = "default", *, ttl: int = 50) -> RunResult:
    return recorded(task, name, ttl=ttl)[0]


def recorded(task: str, name: str = "default", *, ttl: int = 50) -> tuple[RunResult, list[dict[str, Any]]]:
    records: list[dict[str, Any]] = []
    config = RunConfig(durability="off", ttl=ttl)
    return Orchestrator(SimulatedModel(name), config=config, journal=False, on_record=records.append).run(task), records


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


def test_a_sum_is_shallow_and_a_vague_design_deep() -> None:
    shallow, deep = profile_of("add 5 and 10"), profile_of(API)
    assert (shallow["reasoning_depth"], shallow["output_breadth"]) == ("low", "narrow")
    assert (deep["reasoning_depth"], deep["information_sufficiency"]) == ("high", "low")
    assert deep["confidence_requirement"] == "high"
    assert len(deep["follow_up_questions"]) == 1


@pytest.mark.parametrize(
    ("task", "usage"),
    [
        ("explain how TLS works", "none"),
        ("add 5 and 10", "minimal"),
        ("multiply 3 by 4, then add 2, then subtract 1 and divide by 13", "moderate"),
        ("add 1 and 2, " + ", then ".join(f"add {number}" for number in range(3, 10)), "extensive"),
    ],
)
def test_the_expected_tool_usage_is_that_of_the_plan_that_the_tools_allow(task: str, usage: str) -> None:
    assert profile_of(task)["expected_tool_usage"] == usage
    assert profile_of(task, tools="")["expected_tool_usage"] == "none"


@given(st.lists(st.sampled_from(["add 5 and 10", API, "write a poem", "do it", "echo hi"]), max_size=5))
def test_every_profile_is_coherent(parts: list[str]) -> None:
    assert contradictions(read_profile(profile_of(", then ".join(parts)))) == []


def test_a_step_the_script_rejects_is_an_issue_until_replaced() -> None:
    step = {"step_id": "s5", "description": "Put together the final version of a REST API for invoices"}
    shown = {"goal": json.dumps(API), "results": lines([{"step_id": "s5", "output": {"text": "…"}}])}
    (issue,) = issues_of(plan=lines([{"goal": API}, {**step, "status": "complete"}]), **shown)
    assert (issue["type"], issue["severity"], issue["location"]["step_id"]) == ("specificity", "high", "s5")
    assert issue["description"].startswith(f"{RULE}: step 's5' gives no result of its own")
    assert issues_of(plan=lines([{"goal": API}, {**step, "status": "invalid"}]), **shown) == []


def test_a_requirement_is_not_met_if_a_step_failed() -> None:
    results = lines([{"step_id": "s1", "errors": ["division by zero"]}])
    assert [each["met"] for each in judged("do it", results=results)["requirements"]] == ["no"]


def test_criteria_are_judged_by_the_words_and_figures_that_the_answer_shows() -> None:
    criteria = ('total: The answer names the total "15"', 'currency: The answer names "EUR"')
    said = judged("add", *criteria, goal="add", plan="", answer="The total is 15.")
    assert [entry["met"] for entry in said["requirements"]] == ["yes", "yes", "no"]
    shown = f"{RULE}: currency: the answer does not show 'EUR'"
    assert [issue["description"] for issue in said["issues"]] == [shown]


def test_a_suspicion_is_confirmed_if_the_answer_lacks_the_last_result() -> None:
    plan = lines([{"step_id": "s1", "description": "Add 5 and 10", "tool": "calculator", "status": "complete"}])
    shown = {"goal": '"add 5 and 10"', "plan": plan, "results": lines([{"step_id": "s1", "output": {"result": 15}}])}
    shown["suspicions"] = lines([{"n": 1, "text": "the answer says '16'"}])
    for answer, stands in (("The sum is 16.", True), ("The sum is 15, not 16.", False)):
        said = judged(answer=json.dumps(answer), **shown)
        assert [entry["stands"] for entry in said["suspicions"]] == [stands]
        assert said["consistent"]["answer"]["ok"] is not stands
        assert all(entry["evidence"] == answer for entry in said["requirements"])


@pytest.mark.parametrize(("description", "runs_on"), [("Read notes.txt", "read_file"), ("Ponder", "llm")])
def test_a_tool_that_is_not_listed_gives_way_to_one_that_fits_or_to_reasoning(description: str, runs_on: str) -> None:
    step = {"step_id": "s1", "description": description, "status": "pending", "tool": "nope"}
    (action,) = refined("read notes.txt", [step], tools=lines([READ_FILE]))["actions"]
    (stand_in,) = action["changes"]["steps"]
    assert (action["type"], action["target"]) == ("step_modify", "s1")
    assert (stand_in["tool"] or stand_in["agent"]) == runs_on


def test_steps_the_script_does_not_mention_are_kept() -> None:
    step = {"step_id": "s1", "description": "Ponder", "status": "complete", "agent": "llm"}
    assert refined("ponder", [step], {"step_id": "s1", "output": {"text": "…"}}) == NOTHING


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
def test_the_reply_always_matches_its_schema(purpose: Purpose, sections: dict[str, str], task: str) -> None:
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
        ("add 5 and 10, then echo it", "15"),
    ],
)
def test_a_known_task_converges_in_one_pass(task: str, answer: str) -> None:
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


def test_a_calculation_that_cannot_be_done_ends_without_convergence() -> None:
    result = run("divide 1 by 0")
    assert result.status == "not_converged"
    assert result.convergence is not None
    assert {"incomplete", "no_progress"} <= set(result.convergence["reason_codes"])


@pytest.mark.parametrize("ttl", [2, 5, 12])
def test_under_a_small_ttl_an_open_task_expires(ttl: int) -> None:
    assert run(API, ttl=ttl).status == "ttl_expired"


def test_an_open_task_gets_a_subplan_whose_results_reach_the_step_it_expands() -> None:
    result = run(API)
    whole = next(step for step in result.steps if step.step_id == "s5-r1")
    parts = [step for step in result.steps if step.step_id.startswith("s5.")]
    assert len(parts) == 4
    for part in parts:
        assert part.output is not None
        assert whole.output is not None
        assert part.output["text"] in whole.output["text"]


def test_a_step_without_a_result_becomes_invalid_and_is_replaced() -> None:
    result, records = recorded(API)
    assert [step.step_id for step in result.steps if step.status == "invalid"] == ["s5"]
    assert [record["replaced"] for record in records if record["type"] == "refinement"] == [{"s5": "s5-r1"}]


@pytest.mark.parametrize("task", ["divide 1 by 0", API], ids=["sum", "open"])
def test_a_stubborn_planner_leaves_the_step_to_a_person(task: str) -> None:
    result, records = recorded(task, "stubborn")
    accepted = [record for record in records if record["type"] == "refinement" and record["accepted"]]
    of_plan = [record for record in accepted if record["action"]["target"] != "answer"]
    assert (result.status, len(of_plan)) == ("not_converged", 3)
    assert result.passes == 1 + len(accepted) <= 5
    (left,) = result.manual_intervention
    assert (left["step_id"], left["cause"], left["attempts"]) == (result.steps[-4].step_id, "refinement_limit", 3)


def test_unreadable_refinements_leave_the_plan_unchanged() -> None:
    result, records = recorded(API, "unrefinable")
    assert (result.status, result.passes) == ("not_converged", 2)
    assert [record["cause"] for record in records if record["type"] == "plan"] == ["generated"]
    assert [record["pass"] for record in records if record["type"] == "supervisor"] == [1, 1, 2, 2]


@pytest.mark.parametrize("task", ["add 5 and 10", "divide 1 by 0"])
def test_without_a_readable_judge_nothing_converges(task: str) -> None:
    result = run(task, "muddled")
    assert (result.status, result.passes) == ("not_converged", 1)
    assert result.convergence is not None
    assert result.convergence["reason_codes"][-1] == "not_judged"


def test_a_wrong_figure_in_the_answer_is_found_by_the_judge() -> None:
    result = run("add 5 and 10", "careless")
    assert (result.status, result.answer) == ("not_converged", "The sum of 5 and 10 is 16.")
    assert result.convergence is not None
    assert "contradiction_detected" in result.convergence["reason_codes"]


@pytest.mark.parametrize("name", ["stubborn", "unrefinable"])
def test_a_task_without_refinement_has_the_right_result(name: str) -> None:
    result = run("multiply 3 by 4 and add 2", name)
    assert (result.status, result.passes) == ("converged", 1)
    assert "14" in (result.answer or "")


@pytest.mark.parametrize("ttl", range(13))
def test_a_small_ttl_ends_an_open_task_as_expired(ttl: int) -> None:
    result = run(API, ttl=ttl)
    assert (result.status, result.ttl.spent) == ("ttl_expired", ttl)
    assert result.ttl_expired_metadata is not None
    assert "ttl_expired" in result.ttl_expired_metadata.reason_codes


@pytest.mark.parametrize("name", ["broken", "malformed", "rambling"])
def test_a_refinement_that_has_to_be_repaired_is_carried_out(name: str) -> None:
    result, records = recorded(API, name)
    assert (result.status, result.passes) == ("converged", 2)
    assert 1 in {record["pass"] for record in records if record["type"] == "supervisor"}


def test_a_model_that_insists_on_an_unknown_tool_reasons_instead_and_its_plan_names_no_such_tool() -> None:
    result = run("multiply 3 by 4 and add 2", "no-such-tool")
    assert result.plan is not None
    assert {step.tool for step in result.plan.walk()} <= {None, "echo", "calculator"}
    assert "fallback" in {step.mode for step in result.steps}


def test_a_shortened_quote_is_marked_and_found() -> None:
    answer = "Resources: the collection /invoices, and each of its members under its own address /invoices/{id}."
    quote = judged(answer=json.dumps(answer), goal='"name the resources"')["requirements"][0]["evidence"]
    assert quote == "Resources: the collection /invoices, and each of its members under its own …"
    assert find_quote(answer, quote)
