"""The loop goes round until the result converges, another pass could change nothing, or the TTL is spent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core import LLMRequest, LLMResponse, Orchestrator, RunConfig, RunResult
from aeon_core.effects.replay_cursor import ReplayCursor
from aeon_core.errors import UsageError
from aeon_core.journal.view.reducer import fold
from aeon_core.plan.models import Plan
from tests.fakes import ScriptedModel, add
from tests.sampling import examples

Records = list[dict[str, Any]]
TASK = "calculate the sum of 5 and 10, and 1 divided by 2"
PROFILE = {
    "reasoning_depth": "medium",
    "information_sufficiency": "high",
    "expected_tool_usage": "minimal",
    "output_breadth": "narrow",
    "confidence_requirement": "medium",
    "raw_inference": "two sums",
}
NOTHING: dict[str, Any] = {"actions": [], "follow_up_questions": []}


def divide(a: float, b: float) -> dict[str, Any]:
    return {"tool": "calculator", "arguments": {"operation": "divide", "a": a, "b": b}}


def plan(by: float = 2) -> dict[str, Any]:
    steps = [
        {"step_id": "s1", "description": "Add 5 and 10", **add(5, 10)},
        {"step_id": "s2", "description": f"Divide 1 by {by}", **divide(1, by)},
    ]
    return {"goal": TASK, "steps": steps}


def model(**scripts: Any) -> ScriptedModel:
    told = {
        "profile": PROFILE,
        "plan": plan(),
        "answer": "The sum of 5 and 10 is 15, and 1 divided by 2 is 0.5.",
        "judge": {"issues": []},
        "refine": NOTHING,
    }
    return ScriptedModel(**{**told, **scripts})


def run(scripted: ScriptedModel, ttl: int = 50, task: str = TASK) -> tuple[RunResult, Records]:
    records: Records = []
    config = RunConfig(ttl=ttl, durability="off", single_pass=False)
    result = Orchestrator(scripted, config=config, journal=False, on_record=records.append).run(task)
    return result, records


def of(records: Records, kind: str) -> Records:
    return [record for record in records if record["type"] == kind]


def asked(scripted: ScriptedModel) -> list[str]:
    return [request.purpose for request in scripted.requests]


MENDED = {
    "actions": [
        {
            "type": "step_modify",
            "target": "s2",
            "changes": {"description": "Divide 1 by 2", "arguments": {"operation": "divide", "a": 1, "b": 2}},
            "reason": "one cannot divide by zero",
        }
    ],
    "follow_up_questions": [],
}


def test_a_complete_coherent_consistent_result_converges_in_one_pass() -> None:
    scripted = model()
    result, records = run(scripted)
    assert (result.status, result.converged, result.passes, result.exit_code) == ("converged", True, 1, 0)
    assert result.convergence is not None
    assert result.convergence["reason_codes"] == ["complete", "coherent", "consistent"]
    assert asked(scripted) == ["profile", "plan", "answer", "judge"]
    assert [(r["phase"], r["state"]) for r in of(records, "phase")] == [
        (phase, state) for phase in ("plan", "execute", "evaluate") for state in ("started", "finished")
    ]


def test_a_failed_step_is_replaced_and_the_next_pass_converges() -> None:
    scripted = model(plan=plan(by=0), refine=MENDED)
    result, records = run(scripted)
    assert (result.status, result.passes) == ("converged", 2)
    assert [(s.step_id, s.status) for s in result.steps[:2]] == [("s1", "complete"), ("s2", "invalid")]
    stand_in = result.steps[2]
    assert (stand_in.status, stand_in.output) == ("complete", {"result": 0.5})
    assert result.plan is not None
    assert result.plan.steps[2].replaces == "s2"
    refinement = of(records, "refinement")[0]
    assert (refinement["accepted"], refinement["action"]["type"]) == (True, "step_modify")
    first, second = of(records, "pass")
    assert (first["pass_number"], second["pass_number"]) == (1, 2)
    assert first["refinement_changes"][0]["replaced"] == {"s2": stand_in.step_id}
    assert first["evaluation_results"]["convergence"]["converged"] is False
    assert [tool["tool_name"] for tool in of(records, "tool") if tool["state"] == "started"] == ["calculator"] * 3


@pytest.mark.parametrize(
    ("method", "written"),
    [("llm", json.dumps(MENDED)[:-2]), ("local", f"```json\n{json.dumps(MENDED)[:-1]},\n}}\n```")],
    ids=["cut off", "trailing comma"],
)
def test_a_refinement_that_has_to_be_repaired_keeps_its_arguments(method: str, written: str) -> None:
    result, records = run(model(plan=plan(by=0), refine=written, repair=MENDED))
    assert [record["method"] for record in of(records, "supervisor")] == [method]
    assert (result.status, result.passes) == ("converged", 2)
    assert result.steps[2].output == {"result": 0.5}


def made(records: Records) -> list[tuple[Any, Any]]:
    return [(record["explanation"], record["after"]) for record in of(records, "refinement")]


@pytest.mark.parametrize("wrapper", [lambda reply: [reply], lambda reply: {"result": reply}], ids=["list", "object"])
@pytest.mark.parametrize("inside", ["itself", "steps"])
def test_a_wrapped_refinement_equals_an_unwrapped_one(wrapper: Callable[[Any], Any], inside: str) -> None:
    added = {"step_id": "s3", "description": "Divide 1 by 2", **divide(1, 2), "depends_on": ["s1"]}
    changes = added if inside == "itself" else {"steps": [added]}
    reply = {"actions": [{"type": "step_add", "target": "s2", "changes": changes, "reason": "it is missing"}]}
    _, plain = run(model(plan=plan(by=0), refine=reply))
    _, records = run(model(plan=plan(by=0), refine=json.dumps(wrapper(reply))))
    assert of(plain, "refinement")[0]["accepted"]
    assert made(records) == made(plain)
    assert {record["method"] for record in of(records, "supervisor")} == {"local"}


def test_the_run_ends_when_another_pass_could_change_nothing() -> None:
    scripted = model(plan=plan(by=0), answer="The sum is 15; 1 cannot be divided by 0.")
    result, records = run(scripted)
    assert (result.status, result.passes, result.exit_code) == ("not_converged", 1, 5)
    assert result.convergence is not None
    assert "no_progress" in result.convergence["reason_codes"]
    assert of(records, "convergence")[-1]["reason_codes"] == result.convergence["reason_codes"]


def test_a_refinement_that_cannot_be_read_leaves_the_plan_and_gets_one_more_pass() -> None:
    scripted = model(plan=plan(by=0), refine="no JSON at all", repair="nor this", answer="1 cannot be divided by 0.")
    result, records = run(scripted)
    assert (result.status, result.passes) == ("not_converged", 2)
    assert [record["cause"] for record in of(records, "plan")] == ["generated"]


def test_a_step_with_an_unknown_tool_is_refined_before_it_runs() -> None:
    unknown = {"goal": TASK, "steps": [{"step_id": "s1", "description": "Do the things", "tool": "doer"}]}
    changes = {"description": "Add 5 and 10", **add(5, 10)}
    action = {"type": "step_modify", "target": "s1", "changes": changes, "reason": "it says nothing"}
    scripted = model(
        plan=unknown,
        refine=[{"actions": [action], "follow_up_questions": []}, NOTHING],
        answer="The sum of 5 and 10 is 15.",
    )
    result, _ = run(scripted, task="calculate the sum of 5 and 10")
    assert result.status == "converged"
    assert result.steps[0].output == {"result": 15}
    assert "fallback" not in asked(scripted)


def test_the_profile_allocates_the_ttl_within_the_limit_with_a_reason() -> None:
    _, records = run(model())
    told = of(records, "profile")[-1]
    assert told["reasoning_depth"] == "medium"
    assert told["adaptive_depth"]["allocated_ttl"] == of(records, "ttl")[-1]["allocated"] < 50
    assert "TaskProfile version 1" in told["adjustment_reason"]
    assert run(model(), ttl=7)[0].ttl.allocated <= 7


def test_an_unreadable_profile_falls_back_to_defaults() -> None:
    result, records = run(model(profile="I would rather not", repair="no"))
    assert result.status == "converged"
    assert of(records, "profile")[0]["profile_version"] == 1


def test_a_run_without_a_cycle_for_the_judge_expires_unjudged() -> None:
    scripted = model()
    result, records = run(scripted, ttl=3)
    assert (result.status, asked(scripted)) == ("ttl_expired", ["profile", "plan", "answer"])
    told = result.ttl_expired_metadata
    assert told is not None
    assert (result.expiration_point, told.completeness_score, told.reason_codes) == (
        "phase_boundary",
        1.0,
        ["not_judged", "ttl_expired"],
    )
    view = fold(records)
    assert view.assessment is not None
    assert (view.assessment.not_judged, view.assessment.completeness_score) == ("no model judged the result", None)


THOUGHT = {
    "goal": "name a prime",
    "steps": [{"step_id": "s1", "description": "Name the prime after 7", "agent": "llm"}],
}


@pytest.mark.parametrize(
    ("ttl", "point", "latest"), [(1, "mid_phase", False), (2, "mid_phase", False), (3, "phase_boundary", True)]
)
def test_an_expired_run_has_scores_and_its_last_phase(ttl: int, point: str, latest: bool) -> None:
    result, _ = run(model(plan=THOUGHT, reason="11"), ttl=ttl, task="name the prime after 7")
    assert (result.status, result.expiration_point) == ("ttl_expired", point)
    assert (result.latest_pass_result is not None) == latest
    assert (result.partial_result is not None) != latest
    assert result.ttl_expired_metadata is not None
    assert "ttl_expired" in result.ttl_expired_metadata.reason_codes
    assert (result.ttl_expired_metadata.completeness_score is not None) == (ttl > 1)


def test_a_run_of_several_passes_replays_without_a_model() -> None:
    result, records = run(model(plan=plan(by=0), refine=MENDED))
    cursor = ReplayCursor(records)
    config = RunConfig(durability="off", single_pass=False)
    again = Orchestrator(None, config=config, recorded=cursor).run(TASK)
    assert cursor.exhausted
    assert again.model_dump() == result.model_dump()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab{}", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)
actions = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["step_modify", "step_add", "step_remove", "subplan_create", "step_mark_invalid", "x"]),
        "target": st.sampled_from(["s1", "s2", "plan", "nope"]),
        "changes": st.fixed_dictionaries({}, optional={"description": st.text(max_size=20), "steps": json_values})
        | json_values,
        "reason": st.text("abc ", max_size=5),
    }
)


@settings(max_examples=examples(60))
@given(
    replies=st.lists(
        st.fixed_dictionaries({"actions": st.lists(actions, max_size=3), "follow_up_questions": json_values})
        | json_values,
        min_size=1,
        max_size=4,
    ),
    ttl=st.integers(0, 20),
    by=st.sampled_from([0, 2]),
)
def test_the_loop_ends_within_the_ttl_for_any_replies(replies: list[Any], ttl: int, by: int) -> None:
    scripted = model(
        plan=plan(by), refine=[json.dumps(reply) for reply in replies], reason="r", fallback="f", repair="no"
    )
    result, records = run(scripted, ttl=ttl)
    assert result.status in ("converged", "not_converged", "ttl_expired", "failed")
    assert all(0 <= record["remaining"] <= record["allocated"] <= ttl for record in of(records, "ttl"))
    outputs: dict[str, Any] = {}
    for record in of(records, "step"):
        if record["status"] == "complete":
            assert outputs.setdefault(record["step_id"], record["output"]) == record["output"]
    for record in of(records, "pass"):
        Plan.model_validate(record["plan_state"])
    assert len([r for r in of(records, "refinement") if r["accepted"]]) <= 10


def test_unreadable_parts_of_a_refinement_are_in_the_cycle() -> None:
    odd = {"actions": [*json.loads(json.dumps(MENDED))["actions"], {"type": "explode", "target": "s2", "reason": "r"}]}
    _, records = run(model(plan=plan(by=0), refine=odd))
    told = [error for cycle in of(records, "cycle") for error in cycle["errors"]]
    assert any(error["message"].startswith("refinement: actions[1]: type: ") for error in told)


def test_a_model_needs_only_one_method() -> None:
    class Own:
        def complete(self, request: LLMRequest) -> LLMResponse:
            return model(plan=plan(by=1), answer="The sum is 15.").complete(request)

    own: Any = Own()
    result = Orchestrator(own, config=RunConfig(durability="off", single_pass=True), journal=False).run("add")
    assert (result.status, result.model, result.simulated) == ("completed", "custom", False)


def test_an_object_that_is_not_a_model_is_refused_in_one_line() -> None:
    nothing: Any = 5
    with pytest.raises(UsageError, match="int is not a model; write connect"):
        Orchestrator(nothing)


def test_an_empty_answer_is_requested_again() -> None:
    right = "The sum of 5 and 10 is 15, and 1 divided by 2 is 0.5."
    scripted = model(answer=["", right])
    result, _ = run(scripted)
    assert (result.status, result.passes, result.answer) == ("converged", 2, right)
    assert asked(scripted).count("answer") == 2


def test_an_answer_that_stays_empty_ends_the_run_after_a_second_chance() -> None:
    scripted = model(answer="")
    result, _ = run(scripted)
    assert (result.status, result.passes, result.answer) == ("not_converged", 2, None)
    assert asked(scripted).count("answer") == 2
