"""Over all profiles and random replies the loop holds (adaptive FR-002, FR-003, FR-064, FR-066, SC-008)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeon_core.journal.history import open_history
from aeon_core.schemas import schema
from tests.aeon_core.kernel.loop_random import Ran, replay, run, scripts

EXAMPLES = int(os.environ.get("LOOP_EXAMPLES", "25"))
"""How many runs each property is tried on; LOOP_EXAMPLES=2000 for a night."""
PLAN = jsonschema_rs.validator_for(schema("Plan"))
LATER = ("execute", "evaluate", "refine")
ENDS = {"converged", "not_converged", "ttl_expired", "failed"}

ttls = st.sampled_from([60, 55, 50, 45, 40, 35, 30, 25, 20, 18, 16, 14, *range(13)])
lively = settings(
    max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None
)


@lively
@given(told=scripts, ttl=ttls)
def test_the_loop_ends_and_the_ttl_stays_between_zero_and_the_limit(told: dict[str, Any], ttl: int) -> None:
    ran = run(told, ttl)
    assert ran.result.status in ENDS
    assert ran.result.error is None or ran.result.error["error_type"] != "InternalError"
    spent = [record["spent"] for record in ran.of("ttl")]
    assert spent == sorted(spent)
    for record in ran.of("ttl"):
        assert 0 <= record["remaining"] <= record["allocated"] <= record["limit"] == ttl
        assert record["remaining"] == record["allocated"] - record["spent"]
    last = ran.result.ttl
    assert (last.remaining, last.limit) == (last.allocated - last.spent, ttl)


@pytest.mark.exhaustive
@lively
@given(told=scripts, ttl=st.integers(20, 60))
def test_a_run_expires_only_at_the_limit(told: dict[str, Any], ttl: int) -> None:
    ran = run(told, ttl)
    if ran.result.status == "ttl_expired":
        assert ran.result.ttl.spent == ttl


@pytest.mark.exhaustive
@lively
@given(told=scripts, ttl=ttls)
def test_phases_come_in_fixed_order_for_any_replies(told: dict[str, Any], ttl: int) -> None:
    ran = run(told, ttl)
    told_phases = [(record["pass"], record["phase"], record["state"]) for record in ran.of("phase")]
    expected = [
        (number, phase, state)
        for number in range(1, len(told_phases) + 2)
        for phase in (("plan", *LATER) if number == 1 else LATER)
        for state in ("started", "finished")
    ]
    assert told_phases == expected[: len(told_phases)]
    numbers = [record["pass_number"] for record in ran.of("pass")]
    assert numbers == list(range(1, len(numbers) + 1))
    for record in ran.of("pass"):
        named = [phase["phase"] for phase in record["phases"]]
        order = ["plan", *LATER] if record["pass_number"] == 1 else list(LATER)
        assert named == order[: len(named)]
        assert "execute" in named
        assert record["evaluation_results"]["convergence"]["reason_codes"]


@lively
@given(told=scripts, ttl=ttls)
def test_executed_steps_never_change(told: dict[str, Any], ttl: int) -> None:
    ran = run(told, ttl)
    done: dict[str, Any] = {}
    for record in ran.of("step"):
        if record["status"] in ("complete", "failed"):
            assert record["step_id"] not in done
            done[record["step_id"]] = (record.get("output"), record.get("errors") or [])
    states = [{"steps": [step.model_dump() for step in ran.result.steps]}]
    for told_pass in [record["execution_results"] for record in ran.of("pass")] + states:
        for step in told_pass["steps"]:
            if step["status"] in ("complete", "failed"):
                assert (step["output"], step["errors"]) == done[step["step_id"]]
            elif step["status"] == "invalid":
                assert step["step_id"] in done
    assert [step.output for step in ran.result.steps if step.status in ("pending", "running") and step.output] == []


@pytest.mark.exhaustive
@lively
@given(told=scripts, ttl=ttls)
def test_every_plan_snapshot_fits_its_schema(told: dict[str, Any], ttl: int) -> None:
    ran = run(told, ttl)
    snapshots = [record["plan"] for record in ran.of("plan")] + [record["plan_state"] for record in ran.of("pass")]
    states = [record["plan_state"] for record in ran.of("cycle")]
    snapshots += [state for state in states if state and "since" not in state]
    for snapshot in snapshots:
        assert [error.message for error in PLAN.iter_errors(snapshot)] == []


@pytest.mark.exhaustive
@lively
@given(told=scripts, ttl=st.integers(20, 60))
def test_refinement_stays_within_its_limits(told: dict[str, Any], ttl: int) -> None:
    ran = run(told, ttl)
    accepted = [record for record in ran.of("refinement") if record["accepted"]]
    assert len(accepted) <= ran.ledger.total <= 10
    assert max(ran.ledger.fragments.values(), default=0) <= 3
    assert sum(ran.ledger.fragments.values()) == ran.ledger.total
    replaced = {new: old for record in accepted for old, new in (record.get("replaced") or {}).items()}
    counts: dict[str, int] = {}
    for record in accepted:
        if record["action"]["type"] in ("step_modify", "step_mark_invalid", "subplan_create"):
            fragment = record["action"]["target"]
            while fragment in replaced:
                fragment = replaced[fragment]
            counts[fragment] = counts.get(fragment, 0) + 1
    assert max(counts.values(), default=0) <= 3
    steps = {step.step_id for step in ran.result.steps}
    assert {entry["step_id"] for entry in ran.result.manual_intervention} <= {*steps, "plan"}


@lively
@given(told=scripts, ttl=st.integers(0, 20))
def test_no_tool_and_no_model_starts_after_the_last_cycle(told: dict[str, Any], ttl: int) -> None:
    ran = run(told, ttl)
    remaining = ttl
    for record in ran.records:
        if record["type"] == "ttl":
            remaining = record["remaining"]
        elif record["type"] in ("tool", "llm") and record["state"] == "started":
            assert remaining >= 1
    started = [record["call_id"] for record in ran.of("tool") if record["state"] == "started"]
    assert started == [record["call_id"] for record in ran.of("tool") if record["state"] == "finished"]


@lively
@given(told=scripts, ttl=ttls)
def test_a_run_is_reproduced_from_its_records(told: dict[str, Any], ttl: int) -> None:
    ran = run(told, ttl)
    again, exhausted = replay(ran, ttl)
    assert exhausted
    assert again.model_dump(exclude={"run_id"}) == ran.result.model_dump(exclude={"run_id"})


@settings(lively, max_examples=EXAMPLES // 2)
@given(told=scripts, ttl=ttls)
def test_the_history_of_the_journal_is_what_the_run_returned(told: dict[str, Any], ttl: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "run.jsonl"
        ran = run(told, ttl, journal)
        history = open_history(journal)
    assert history.final_result == ran.result
    assert [each.pass_number for each in history.passes] == list(range(1, ran.result.passes + 1))
    _same_passes(ran, [each.model_dump() for each in history.passes])
    assert history.overall_statistics.total_cycles == len(ran.of("cycle"))
    assert history.overall_statistics.convergence_achieved == ran.result.converged
    accepted = [record["accepted"] for record in ran.of("refinement")]
    assert history.overall_statistics.total_refinements == accepted.count(True)


def _same_passes(ran: Ran, folded: list[dict[str, Any]]) -> None:
    fields = ("plan_state", "execution_results", "evaluation_results", "refinement_changes", "ttl_remaining", "phases")
    for record, one in zip(ran.of("pass"), folded, strict=True):
        assert {name: one[name] for name in fields} == {name: record[name] for name in fields}
