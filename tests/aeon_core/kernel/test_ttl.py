"""Time to live: one cycle a processed response, and the three ways it runs out (core FR-034 to FR-036)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.aeon_core.kernel.test_execution import of, run
from tests.fakes import ScriptedModel, add, call, steps

REASONED = steps({"agent": "llm"}, {"agent": "llm"}, {"agent": "llm"})


def model(**scripts: Any) -> ScriptedModel:
    return ScriptedModel(**{"plan": REASONED, "reason": "thought", "answer": "done", **scripts})


def test_every_processed_response_costs_one_cycle() -> None:
    plan = steps(add(1, 1), {"tool": "calculator"}, {"agent": "llm"})
    result, records = run(model(plan=plan, tool_call=call("calculator", operation="add", a=1, b=2)), ttl=10)
    assert [record["spent"] for record in of(records, "ttl")] == [0, 1, 2, 3, 4]
    assert [record["ttl_remaining"] for record in of(records, "cycle")] == [9, 9, 8, 7, 6]
    assert result.ttl.model_dump() == {"limit": 10, "allocated": 10, "spent": 4, "remaining": 6}


def test_repairs_are_free() -> None:
    broken = {**REASONED, "steps": [{**REASONED["steps"][0], "description": ""}, *REASONED["steps"][1:]]}
    scripted = model(plan=broken, repair=[{"goal": 5}, REASONED])
    result, _ = run(scripted, ttl=9)
    assert len(scripted.asked("repair")) == 2
    assert (result.status, result.ttl.spent) == ("completed", 5)


def test_expiry_within_a_phase_returns_a_partial_result() -> None:
    scripted = model()
    result, records = run(scripted, ttl=3)
    assert (result.status, result.exit_code, result.converged) == ("ttl_expired", 5, False)
    assert result.result_type == "ttl_expired"
    assert result.termination_reason == "ttl_expired"
    assert result.expiration_point == "mid_phase"
    assert result.latest_pass_result is None
    assert result.partial_result is not None
    assert [step["output"] for step in result.partial_result["steps"]] == [{"text": "thought"}] * 2 + [None]
    assert result.ttl_expired_metadata is not None
    assert result.ttl_expired_metadata.model_dump() == {
        "completeness_score": None,
        "coherence_score": None,
        "consistency_status": None,
        "detected_issues": [],
        "reason_codes": ["ttl_expired"],
        "pass_number": 1,
        "incomplete_steps": ["s3"],
    }
    assert [step.status for step in result.steps] == ["complete", "complete", "pending"]
    assert len(scripted.asked("reason")) == 2
    assert of(records, "pass") == []


def test_expiry_in_a_substep_leaves_the_step_around_it_incomplete() -> None:
    substeps = [{"step_id": f"s1.{n}", "description": "think", "agent": "llm"} for n in (1, 2)]
    nested = steps({"agent": "llm", "subplan": {"goal": "think twice", "substeps": substeps}})
    result, _ = run(model(plan=nested), ttl=2)
    assert result.ttl_expired_metadata is not None
    assert result.ttl_expired_metadata.incomplete_steps == ["s1", "s1.2"]


def test_a_step_whose_parts_were_never_begun_keeps_its_status() -> None:
    plan = steps({"agent": "llm"}, {"agent": "llm"})
    parts = {"parent_step_id": "s2", "subplan_goal": "g", "substeps": [{**plan["steps"][0], "step_id": "s3"}]}
    plan["steps"][1]["subplan"] = parts
    result, records = run(model(plan=plan), ttl=2)
    assert (result.status, [step.status for step in result.steps]) == (
        "ttl_expired",
        ["complete", "pending", "pending"],
    )
    assert {record["step_id"] for record in of(records, "step")} == {"s1"}


def test_expiry_at_a_phase_boundary_returns_the_finished_pass() -> None:
    result, records = run(model(), ttl=4)
    assert (result.status, result.expiration_point) == ("ttl_expired", "phase_boundary")
    assert result.partial_result is None
    assert result.latest_pass_result is not None
    assert [step["status"] for step in result.latest_pass_result["steps"]] == ["complete"] * 3
    assert result.ttl_expired_metadata is not None
    assert result.ttl_expired_metadata.incomplete_steps == []
    assert result.ttl_expired_metadata.detected_issues == ["no cycle was left for the answer"]
    assert len(of(records, "pass")) == 1


def test_exactly_enough_cycles_suffice() -> None:
    result, _ = run(model(), ttl=5)
    assert (result.status, result.ttl.remaining) == ("completed", 0)


@pytest.mark.parametrize("ttl", [0, 1])
def test_without_a_cycle_no_tool_is_started(ttl: int) -> None:
    result, records = run(model(plan=steps(add(1, 1))), ttl=ttl)
    assert result.status == "ttl_expired"
    assert of(records, "tool") == []
    assert "latest_pass_result" in result.model_dump()


def test_an_unexpired_result_does_not_mention_expiry() -> None:
    result, _ = run(model())
    assert not {"result_type", "partial_result", "ttl_expired_metadata"} & set(result.model_dump())
