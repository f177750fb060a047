"""User Story 4 through the Orchestrator, and what FR-NEW-001 to FR-NEW-010 ask of a run's TaskProfile."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeon_core import LLMError, Orchestrator, RunConfig, RunResult
from aeon_core.journal.history import open_history
from aeon_core.llm.base import LLMAdapter, LLMRequest
from aeon_core.llm.simulated import SimulatedModel
from aeon_core.task_profile import DIMENSIONS, TaskProfile, contradictions, tier
from tests.aeon_core.kernel import loop_random
from tests.aeon_core.kernel.test_passes import MENDED, NOTHING, PROFILE, TASK, Records, model, of, plan
from tests.fakes import judged

API = "design a REST API for invoices"
SHORT = "The sum of 5 and 10 is 15."
HARD = {**PROFILE, "reasoning_depth": "high", "information_sufficiency": "low", "output_breadth": "broad"}
EASY = {**PROFILE, "reasoning_depth": "low", "confidence_requirement": "low"}


def run(adapter: LLMAdapter, task: str = TASK, **config: Any) -> tuple[RunResult, Records]:
    records: Records = []
    settled = RunConfig(durability="off", **config)
    return Orchestrator(adapter, config=settled, journal=False, on_record=records.append).run(task), records


def profiles_of(records: Records) -> list[TaskProfile]:
    names = TaskProfile.model_fields
    return [TaskProfile(**{name: record[name] for name in names}) for record in of(records, "profile")]


def modes(records: Records) -> list[str]:
    return [record["adaptive_depth"]["reasoning_mode"] for record in of(records, "profile")]


def test_us4_1_a_simple_task_gets_a_minimal_ttl_and_shallow_reasoning() -> None:
    result, records = run(SimulatedModel(), "add 5 and 10")
    first = profiles_of(records)[0]
    assert (first.reasoning_depth, first.information_sufficiency) == ("low", "high")
    assert set(modes(records)) == {"shallow"}
    assert result.ttl.allocated <= 10


def test_us4_2_an_open_task_gets_more_ttl_and_deep_reasoning() -> None:
    simple, _ = run(SimulatedModel(), "add 5 and 10")
    result, records = run(SimulatedModel(), API)
    first = profiles_of(records)[0]
    assert (first.reasoning_depth, first.information_sufficiency) == ("high", "low")
    assert modes(records)[0] == "deep"
    assert result.ttl.allocated > 2 * simple.ttl.allocated


def test_us4_3_a_task_that_proves_harder_gets_more_depth_and_ttl() -> None:
    _, records = run(model(profile=EASY, plan=plan(by=0), refine=MENDED))
    told = of(records, "profile")
    assert (modes(records)[0], modes(records)[-1]) == ("shallow", "balanced")
    assert told[-1]["adaptive_depth"]["allocated_ttl"] > told[0]["adaptive_depth"]["allocated_ttl"]
    assert (told[-1]["pass"], told[-1]["profile_version"]) == (2, 2)


def test_us4_3_a_task_that_proves_simpler_gets_less_depth(tmp_path: Path) -> None:
    criteria = tmp_path / "criteria.yml"
    criteria.write_text("additional: [{name: wish, description: mentions a quotient}]", encoding="utf-8")

    def all_but_the_wish(request: LLMRequest) -> dict[str, Any]:
        reply = judged(request)
        reply["requirements"][-1]["met"] = "partly"
        return reply

    profile = {**HARD, "requirements": [f"Part {n} is told." for n in range(6)]}
    scripted = model(profile=profile, judge=all_but_the_wish, refine="no JSON at all", repair="nor this")
    _, records = run(scripted, criteria=criteria)
    first, last = profiles_of(records)[0], profiles_of(records)[-1]
    assert (first.reasoning_depth, last.reasoning_depth) == ("high", "medium")
    assert "simpler than estimated" in of(records, "profile")[-1]["adjustment_reason"]


@pytest.mark.parametrize(("tools", "usage"), [(None, "extensive"), ([], "none")])
def test_no_tool_usage_is_expected_without_tools(tools: list[Any] | None, usage: str) -> None:
    records: Records = []
    scripted = model(profile={**HARD, "expected_tool_usage": "extensive"})
    settled = RunConfig(durability="off", ttl=3)
    Orchestrator(scripted, tools, config=settled, journal=False, on_record=records.append).run(TASK)
    [made, *_] = profiles_of(records)
    assert made.expected_tool_usage == usage
    assert ("no tool is registered" in made.raw_inference) == (usage == "none")


def test_us4_3_a_plan_that_is_shorter_than_expected_gives_cycles_back() -> None:
    _, records = run(model(profile={**HARD, "expected_tool_usage": "extensive"}))
    allocated = [record["adaptive_depth"]["allocated_ttl"] for record in of(records, "profile")]
    assert allocated[-1] < allocated[0]
    assert "the plan has 2 steps to run" in of(records, "profile")[-1]["adjustment_reason"]


ISSUE = {
    "issue_id": "j1",
    "type": "do_say_mismatch",
    "severity": "high",
    "description": "the figure was never checked",
    "location": {"artifact": "results", "step_id": "s1"},
    "proposed_repair": "check it",
}


@pytest.mark.parametrize(
    ("scripts", "cause"),
    [
        ({"judge": [{"issues": [ISSUE]}, {"issues": []}]}, "validation found 1 high"),
        ({"plan": plan(by=0)}, "convergence was not reached (incomplete"),
        ({"plan": plan(by=0)}, "1 step failed"),
        ({"plan": plan(by=0)}, "the planner needed 1 refinement"),
    ],
    ids=["validation", "convergence", "execution", "planner"],
)
def test_us4_4_validation_convergence_and_the_planner_inform_the_depth(scripts: dict[str, Any], cause: str) -> None:
    target = "s1" if "judge" in scripts else "s2"
    changes = {"description": "Add 5 and 10", "arguments": {"operation": "add", "a": 5, "b": 10}}
    checked = {"actions": [{"type": "step_modify", "target": "s1", "changes": changes, "reason": "x"}]}
    refined = MENDED if target == "s2" else {**checked, "follow_up_questions": []}
    _, records = run(model(**scripts, refine=[refined, NOTHING]))
    second = [record for record in of(records, "profile") if record["profile_version"] == 2]
    assert second != []
    assert cause in second[0]["adjustment_reason"]
    assert "reasoning_depth medium → high" in second[0]["adjustment_reason"]


def test_us4_5_vague_words_and_missing_details_lower_the_sufficiency() -> None:
    vague = model(profile={**PROFILE, "information_sufficiency": "low"})
    told = {name: run(scripted, "make it better") for name, scripted in (("vague", vague), ("clear", model()))}
    (asked,) = vague.asked("profile")
    assert "low for vague words, missing details, gaps" in asked.system
    assert "make it better" in asked.prompt
    assert profiles_of(told["vague"][1])[0].information_sufficiency == "low"
    assert told["vague"][0].ttl.allocated > told["clear"][0].ttl.allocated


@pytest.mark.parametrize("limit", [8, 12])
def test_us4_6_an_allocation_beyond_the_limit_is_capped_and_reported(limit: int) -> None:
    result, records = run(model(profile=HARD), ttl=limit)
    assert result.ttl.allocated == limit
    told = of(records, "profile")[0]
    assert f"capped at the limit of {limit}" in told["adjustment_reason"]
    assert "ttl_cap" in told["adaptive_depth"]["heuristics_used"]
    assert max(record["allocated"] for record in of(records, "ttl")) == limit


def test_us4_7_the_history_explains_depth_and_ttl(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    scripted = model(profile=EASY, plan=plan(by=0), refine=MENDED)
    Orchestrator(scripted, config=RunConfig(durability="off"), journal=journal).run(TASK)
    first, second = open_history(journal).passes
    for each, version in ((first, 1), (second, 2)):
        assert each.task_profile is not None
        assert each.adaptive_depth is not None
        assert each.task_profile["profile_version"] == version
        assert f"TaskProfile version {version}" in each.adaptive_depth["adjustment_reason"]
    assert "1 step failed" in str(second.adaptive_depth)
    assert "1 step failed" not in str(first.adaptive_depth)


@pytest.mark.exhaustive
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(told=loop_random.scripts, ttl=st.integers(6, 60))
def test_the_profile_is_coherent_and_revised_only_between_passes(told: dict[str, Any], ttl: int) -> None:
    ran = loop_random.run(told, ttl)
    profiles = profiles_of(ran.records)
    assert all(contradictions(one) == [] and one.raw_inference.strip() for one in profiles)
    assert [one.profile_version for one in profiles[:1]] in ([], [1])
    for before, after in itertools.pairwise(profiles):
        assert after.profile_version - before.profile_version in (0, 1)
        assert all(abs(tier(after, name) - tier(before, name)) <= 1 for name in DIMENSIONS)
        if after.profile_version == before.profile_version:
            assert after == before
    _only_at_boundaries(ran.records)


def _only_at_boundaries(records: Records) -> None:
    version, ended = 0, 0
    for record in records:
        if record["type"] == "pass":
            ended = record["pass_number"]
        elif record["type"] == "profile":
            if record["profile_version"] > max(version, 1):
                assert record["pass"] == ended + 1
            assert record["adjustment_reason"].strip()
            version = record["profile_version"]
        elif record["type"] == "phase" and record["phase"] == "execute" and record["state"] == "started":
            assert record["pass"] == ended + 1


@pytest.mark.parametrize(
    "reply", ["I would rather not", {"reasoning_depth": "deep"}, [], 7], ids=["prose", "tier", "list", "number"]
)
def test_an_unrepairable_inference_uses_the_middle_of_each_dimension(reply: Any) -> None:
    result, records = run(model(profile=str(reply), repair="no"))
    assert result.status == "converged"
    (first, *_) = profiles_of(records)
    assert first.profile_version == 1
    assert first.raw_inference == "The model's reply was not usable: each dimension has its middle value."
    assert (first.reasoning_depth, first.information_sufficiency) == ("medium", "medium")


def test_an_incoherent_inference_is_corrected_and_reported() -> None:
    _, records = run(model(profile={**HARD, "reasoning_depth": "low"}))
    assert profiles_of(records)[0].reasoning_depth == "medium"
    assert "was raised to medium" in profiles_of(records)[0].raw_inference


def test_a_model_failure_during_profiling_ends_the_run() -> None:
    result, records = run(model(profile=LLMError("refused", status_code=400)))
    assert (result.status, of(records, "profile")) == ("failed", [])
