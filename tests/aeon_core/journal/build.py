"""Journals for tests, made of records' bodies behind the envelope that the contract describes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from aeon_core.entities import RunResult, StepResult, TTLState
from aeon_core.journal.records import (
    CycleRecord,
    LLMRecord,
    MemoryRecord,
    PassRecord,
    PhaseRecord,
    PlanRecord,
    Record,
    RunFinished,
    RunStarted,
    StepRecord,
    SupervisorRecord,
    TextRecord,
    ToolRecord,
    TTLRecord,
)
from aeon_core.plan.models import Plan

RUN_ID = "20261120-093000-abc123"


def line(record: Record, seq: int, run: str = RUN_ID, second: int | None = None) -> bytes:
    """Return a record as a line of the journal."""
    second = seq if second is None else second
    body = record.body()
    stamp = f"2026-11-20T09:{30 + second // 60 % 30:02d}:{second % 60:02d}.{seq % 1000000:06d}Z"
    envelope = f'{{"v":1,"seq":{seq},"ts":"{stamp}","run":"{run}","type":"{record.tag}"{"," if len(body) > 2 else ""}'
    return envelope.encode() + body[1:] + b"\n"


def lines(*records: Record, run: str = RUN_ID) -> list[bytes]:
    return [line(record, seq, run) for seq, record in enumerate(records)]


def parsed(*records: Record) -> list[dict[str, Any]]:
    return [json.loads(each) for each in lines(*records)]


def write(folder: Path, *records: Record, run: str = RUN_ID) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run}.jsonl"
    path.write_bytes(b"".join(lines(*records, run=run)))
    return path


def started(**fields: Any) -> RunStarted:
    given: dict[str, Any] = {
        "task": "calculate the sum of 5 and 10",
        "config": {"ttl": 50},
        "model": "simulated:default",
        "simulated": True,
        "tools": [{"name": "calculator"}],
        "versions": {"aeon": "0.1.0"},
        "memory": {"city": "Bonn"},
    }
    return RunStarted(**{**given, **fields})


def plan(*steps: dict[str, Any], goal: str = "the sum of 5 and 10") -> Plan:
    return Plan.model_validate({"goal": goal, "steps": list(steps)})


def plan_record(*steps: dict[str, Any], cause: Any = "generated", step_id: str | None = None) -> PlanRecord:
    return PlanRecord(pass_number=1, cause=cause, plan=plan(*steps), step_id=step_id)


def step(step_id: str, status: Any, **fields: Any) -> StepRecord:
    return StepRecord(pass_number=1, step_id=step_id, status=status, **fields)


def ttl(spent: int, reason: str = "cycle", limit: int = 50) -> TTLRecord:
    return TTLRecord(
        limit=limit,
        allocated=limit,
        spent=spent,
        remaining=limit - spent,
        reason=reason,
        usage={"input_tokens": 10 * spent, "output_tokens": spent},
        cost_usd=0.0,
    )


def llm(state: Any, call_id: str = "c1", attempt: int = 1, **fields: Any) -> LLMRecord:
    given: dict[str, Any] = {"purpose": "plan"}
    return LLMRecord(call_id=call_id, state=state, attempt=attempt, pass_number=1, **{**given, **fields})


def tool(state: Any, step_id: str = "s1", **fields: Any) -> ToolRecord:
    return ToolRecord(call_id="t1", state=state, pass_number=1, step_id=step_id, tool_name="calculator", **fields)


def cycle(number: int, plan_state: dict[str, Any], **fields: Any) -> CycleRecord:
    given: dict[str, Any] = {"llm_output": {}, "supervisor_actions": [], "tool_calls": [], "errors": []}
    return CycleRecord(
        step_number=number,
        plan_state=plan_state,
        ttl_remaining=50 - number,
        timestamp="2026-11-20T09:30:00.000000Z",
        **{**given, **fields},
    )


def repair(step_id: str | None = "s2", attempt: int = 1, **fields: Any) -> SupervisorRecord:
    given: dict[str, Any] = {"original_output": {"tool": "calc"}}
    return SupervisorRecord(
        action_type="plan_repair",
        attempt_number=attempt,
        timestamp="2026-11-20T09:30:00.000000Z",
        method="llm",
        pass_number=1,
        step_id=step_id,
        **{**given, **(fields or {"repaired_output": {"tool": "calculator"}})},
    )


def finished(status: Any = "completed", **fields: Any) -> RunFinished:
    given: dict[str, Any] = {
        "run_id": RUN_ID,
        "status": status,
        "answer": "The sum is 15.",
        "passes": 1,
        "ttl": TTLState(limit=50, allocated=50, spent=3, remaining=47),
        "cost_usd": 0.0,
        "model": "simulated:default",
        "simulated": True,
        "steps": [StepResult(step_id="s1", description="add", status="complete", mode="tool", output={"result": 15})],
    }
    return RunFinished(result=RunResult(**{**given, **fields}))


def text(content: str) -> tuple[TextRecord, dict[str, str]]:
    """Return the record of a long text, and the reference to it."""
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    return TextRecord(sha256=sha256, text=content), {"$text": sha256}


def pass_record(number: int = 1, **fields: Any) -> PassRecord:
    given: dict[str, Any] = {
        "phases": [{"phase": "plan", "duration_ms": 1.0}],
        "plan_state": plan({"step_id": "s1", "description": "add", "status": "complete"}).model_dump(),
        "execution_results": {"answer": "The sum is 15.", "steps": []},
        "evaluation_results": {},
        "refinement_changes": [],
        "ttl_remaining": 47,
        "timing_information": {"start_time": "a", "end_time": "b", "duration": 1.0},
        "snapshot": {},
        "totals": {},
    }
    return PassRecord(pass_number=number, **{**given, **fields})


def whole_run() -> list[Record]:
    """Return the records of a run with a tool step, a repaired step and a fallback."""
    missing = "Tool 'calc' not found in registry"
    add = {"step_id": "s1", "description": "add 5 and 10", "tool": "calculator", "arguments": {"a": 5, "b": 10}}
    wrong = {"step_id": "s2", "description": "double it", "tool": "calc", "errors": [missing]}
    unknown = {"step_id": "s3", "description": "tell the news", "tool": "web", "errors": ["Tool 'web' not found"]}
    right = {"step_id": "s2", "description": "double it", "tool": "calculator"}
    done = {**add, "status": "complete"}
    return [
        started(),
        ttl(0, "allocated"),
        PhaseRecord(pass_number=1, phase="plan", state="started"),
        llm("started", request={"system": "Aeon plan", "messages": []}),
        llm("finished", error={"message": "503 overloaded"}, retry_in_s=1.0, latency_ms=5.0),
        llm("started", attempt=2, request={"system": "Aeon plan", "messages": []}),
        llm("finished", attempt=2, response={"text": "{}"}, usage={"input_tokens": 7, "output_tokens": 3}),
        plan_record(add, wrong, unknown),
        ttl(1),
        PhaseRecord(pass_number=1, phase="plan", state="finished", duration_ms=12.0),
        PhaseRecord(pass_number=1, phase="execute", state="started"),
        step("s1", "running"),
        tool("started", arguments={"a": 5, "b": 10}, effect="pure"),
        tool("finished", result={"result": 15}, duration_ms=0.1),
        MemoryRecord(key="s1", value={"result": 15}),
        step("s1", "complete", mode="tool", output={"result": 15}),
        step("s2", "running"),
        repair(),
        plan_record(done, {**right, "status": "running"}, unknown, cause="repaired", step_id="s2"),
        step("s2", "complete", mode="tool", output={"result": 30}),
        step("s3", "running"),
        llm("started", call_id="c2", purpose="fallback", step_id="s3", request={"messages": []}),
        llm("finished", call_id="c2", purpose="fallback", step_id="s3", response={"text": "no news"}),
        step("s3", "complete", mode="fallback", output={"text": "no news"}),
        PhaseRecord(pass_number=1, phase="execute", state="finished", duration_ms=20.0),
        ttl(3),
        pass_record(),
        finished(),
    ]
