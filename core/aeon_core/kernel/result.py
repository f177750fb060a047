"""What a run's state says: as a RunResult, and as the record of a pass. Pure functions over data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aeon_core.entities import RunResult, RunStatus, TTLExpiredMetadata, UsageTotals
from aeon_core.errors import AeonError
from aeon_core.journal.records import PassRecord
from aeon_core.kernel.state import OrchestrationState
from aeon_core.plan.parsing import dump_plan
from aeon_core.timing import seconds_between


@dataclass
class Progress:
    """How far a run has come, beside its state."""

    run_id: str
    journal: str | None
    model: str
    simulated: bool
    answer: str | None = None
    passes: int = 0
    """Passes that were completed."""
    started: str = ""
    """When the current pass began."""
    phases: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = None


def pass_results(state: OrchestrationState, progress: Progress) -> dict[str, Any]:
    """Return the results of the current pass: the answer so far and each step's."""
    return {"answer": progress.answer, "steps": state.described_steps()}


def pass_record(state: OrchestrationState, progress: Progress, now: str, snapshot: dict[str, Any]) -> PassRecord:
    """Return the record of the pass that ends now."""
    assert state.plan is not None
    return PassRecord(
        pass_number=state.pass_number,
        phases=progress.phases,
        plan_state=dump_plan(state.plan),
        execution_results=pass_results(state, progress),
        evaluation_results={},
        refinement_changes=[],
        ttl_remaining=state.ttl_remaining,
        timing_information={
            "start_time": progress.started,
            "end_time": now,
            "duration": seconds_between(progress.started, now),
        },
        snapshot=snapshot,
        totals={"usage": progress.usage, "cost_usd": progress.cost_usd},
    )


def run_result(state: OrchestrationState, progress: Progress, status: RunStatus, error: AeonError | None) -> RunResult:
    """Return how the run ended. `error` is there when it was aborted or has failed."""
    return RunResult(
        run_id=progress.run_id,
        status=status,
        answer=progress.answer,
        plan=state.plan,
        steps=state.step_results(),
        passes=progress.passes,
        ttl=state.ttl,
        usage=UsageTotals(**progress.usage),
        cost_usd=progress.cost_usd,
        model=progress.model,
        simulated=progress.simulated,
        error=_describe(error, state) if error is not None else None,
        journal=progress.journal,
        **(_expiration(state, progress) if status == "ttl_expired" else {}),
    )


def _describe(error: AeonError, state: OrchestrationState) -> dict[str, Any]:
    described = error.as_dict()
    if state.current_step_id is not None:
        described.setdefault("step_id", state.current_step_id)
    if error.exit_code != 1:
        described["exit_code"] = error.exit_code
    return described


def _expiration(state: OrchestrationState, progress: Progress) -> dict[str, Any]:
    """Return the TTL Expiration Response (core FR-036, adaptive FR-062 to FR-064)."""
    boundary = progress.passes == state.pass_number
    results = pass_results(state, progress)
    return {
        "result_type": "ttl_expired",
        "latest_pass_result": results if boundary else None,
        "partial_result": None if boundary else results,
        "expiration_point": "phase_boundary" if boundary else "mid_phase",
        "ttl_expired_metadata": TTLExpiredMetadata(
            reason_codes=["ttl_expired"],
            pass_number=state.pass_number,
            incomplete_steps=[s.step_id for s in state.step_results() if s.status in ("pending", "running")],
        ),
        "termination_reason": "ttl_expired",
    }
