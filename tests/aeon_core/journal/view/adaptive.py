"""Records of a run of two passes, as the adaptive engine journals them, and a run of that engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aeon_core import Orchestrator, RunConfig, RunResult
from aeon_core.journal.records import (
    ConvergenceRecord,
    NoticeRecord,
    PhaseRecord,
    ProfileRecord,
    Record,
    RefinementRecord,
    StepRecord,
    ValidationRecord,
)
from tests.aeon_core.journal.build import finished, pass_record, plan_record, started, ttl
from tests.aeon_core.kernel.test_passes import MENDED, TASK, model, plan

QUESTION = "Which database is meant?"
VAGUE = {
    "issue_id": "i1",
    "type": "specificity",
    "severity": "high",
    "description": "'Do it' says nothing",
    "location": {"artifact": "plan", "step_id": "s1"},
    "proposed_repair": "name what is done",
}
REMARK = {
    **VAGUE,
    "issue_id": "i2",
    "type": "do_say_mismatch",
    "severity": "low",
    "location": {"artifact": "answer", "step_id": None},
    "description": "the answer is terse",
}


def profile(number: int, mode: str, ttl: int, reason: str, version: int | None = None) -> ProfileRecord:
    return ProfileRecord(
        pass_number=number,
        adaptive_depth={"reasoning_mode": mode, "allocated_ttl": ttl, "adjustment_reason": reason},
        adjustment_reason=reason,
        profile_version=version or number,
        reasoning_depth="high",
        raw_inference="r",
    )


def report(number: int, name: str, *issues: dict[str, Any], artifact: str = "cross_phase") -> ValidationRecord:
    return ValidationRecord(pass_number=number, validation_id=name, artifact_type=artifact, issues=list(issues))


def assessment(number: int, completeness: float, *codes: str, answer: bool = True, **fields: Any) -> ConvergenceRecord:
    told: dict[str, Any] = {
        "converged": completeness == 1,
        "reason_codes": list(codes),
        "completeness_score": completeness,
        "coherence_score": 1.0,
        "consistency_status": {"plan": True, "step": True, "answer": answer, "memory": True},
        "detected_issues": [],
    }
    return ConvergenceRecord(pass_number=number, **{**told, **fields})


def refinement(number: int, target: str, *, accepted: bool, **fields: Any) -> RefinementRecord:
    issue = {**VAGUE, "step_id": "s1"}
    del issue["location"]
    action = {
        "type": "step_modify",
        "target": target,
        "changes": {},
        "reason": "it says nothing",
        "semantic_validation_input": [issue],
        "inconsistency_detected": False,
    }
    told = {"before": [], "after": [], "replaced": {}, "explanation": "done" if accepted else "still vague", **fields}
    return RefinementRecord(pass_number=number, **{"action": action, "accepted": accepted, **told})


def advisory(number: int) -> NoticeRecord:
    data = {"step_id": "s1", "issue": {**VAGUE, "step_id": "s1"}, "resolution": "the refinement stands"}
    return NoticeRecord(kind="advisory", pass_number=number, message="validation also proposed: less", data=data)


def phase(number: int, name: Any) -> PhaseRecord:
    return PhaseRecord(pass_number=number, phase=name, state="finished", duration_ms=3.0)


def two_adaptive_passes() -> list[Record]:
    """Return the records of a run that is refined before, and after, its first pass, and converges in the second."""
    before = {"step_id": "s1", "description": "Do it", "agent": "llm"}
    after = {**before, "description": "Name a prime"}
    replaced = {"before": [after], "after": [{**after, "step_id": "s1-r1"}], "replaced": {"s1": "s1-r1"}}
    left = {"step_id": "s1", "cause": "refinement_limit", "reason": "refined too often", "attempts": 3}
    return [
        started(),
        profile(1, "balanced", 10, "inferred from the task"),
        plan_record(before),
        report(1, "v1", REMARK, VAGUE, artifact="plan"),
        refinement(1, "s1", accepted=False),
        refinement(1, "s1", accepted=True, before=[before], after=[after]),
        advisory(1),
        phase(1, "plan"),
        StepRecord(pass_number=1, step_id="s1", status="failed", errors=["no"]),
        report(1, "v2", REMARK),
        assessment(1, 0.5, "incomplete", "failed_step", answer=False, detected_issues=["the answer is terse", "odd"]),
        phase(1, "evaluate"),
        refinement(1, "s1", accepted=True, **replaced),
        ttl(3),
        phase(1, "refine"),
        pass_record(
            1,
            refinement_changes=[{"accepted": False}, {"accepted": True}, {"accepted": True}],
            task_profile={"profile_version": 1},
        ),
        profile(2, "deep", 20, "convergence was not reached"),
        phase(2, "execute"),
        StepRecord(pass_number=2, step_id="s1-r1", status="complete", mode="llm", output={"text": "11"}),
        report(2, "v3"),
        assessment(2, 1.0, "complete", "coherent", "consistent"),
        phase(2, "evaluate"),
        pass_record(2),
        finished("converged", converged=True, follow_up_questions=[QUESTION], manual_intervention=[left]),
    ]


def refined_run(path: Path) -> RunResult:
    """Let the engine run a plan whose second step fails, and is replaced for the second pass."""
    config = RunConfig(ttl=50, durability="off", single_pass=False)
    return Orchestrator(model(plan=plan(by=0), refine=MENDED), config=config, journal=path).run(TASK)
