"""The parts of a run's view: calls, repairs, steps, phases and lines of the log, as the journal tells them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aeon_core.step_words import ExecutionMode, StepStatus


@dataclass(slots=True)
class CallView:
    """One attempt of a model call. `finished` is False while the reply is awaited."""

    call_id: str
    purpose: str
    pass_number: int
    step_id: str | None
    attempt: int
    seq: int
    started: str
    finished: bool = False
    request: dict[str, Any] = field(default_factory=dict)
    response: dict[str, Any] | None = None
    usage: dict[str, int] | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    error: dict[str, Any] | None = None
    retry_in_s: float | None = None
    finished_seq: int | None = None
    """The record that says how it ended."""


@dataclass(slots=True)
class ToolCallView:
    """One tool invocation. `finished` is False while it runs."""

    call_id: str
    pass_number: int
    step_id: str
    tool_name: str
    arguments: dict[str, Any]
    effect: str
    seq: int
    started: str
    finished: bool = False
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    duration_ms: float | None = None
    finished_seq: int | None = None
    """The record that says how it ended."""


@dataclass(slots=True)
class RepairView:
    """One repair attempt of the supervisor."""

    seq: int
    action_type: str
    method: str
    attempt_number: int
    pass_number: int
    step_id: str | None
    original_output: dict[str, Any]
    repaired_output: dict[str, Any] | None
    error: dict[str, Any] | None


@dataclass(slots=True)
class StepView:
    """One step as the plan and its records show it."""

    step_id: str
    description: str
    depth: int = 0
    parent: str | None = None
    """The step whose subplan it belongs to."""
    status: StepStatus = "pending"
    tool: str | None = None
    agent: str | None = None
    arguments: dict[str, Any] | None = None
    replaces: str | None = None
    depends_on: list[str] = field(default_factory=list)
    validator_errors: list[str] = field(default_factory=list)
    """What the validator said of it; kept when the step ends, cleared when it is repaired."""
    mode: ExecutionMode | None = None
    output: dict[str, Any] | None = None
    output_seq: int | None = None
    """The record that holds the output."""
    errors: list[str] = field(default_factory=list)
    """Why it failed."""
    repaired: bool = False
    """Whether the supervisor replaced it."""
    calls: list[CallView] = field(default_factory=list)
    tool_calls: list[ToolCallView] = field(default_factory=list)
    repairs: list[RepairView] = field(default_factory=list)


@dataclass(slots=True)
class PhaseView:
    """One phase of a pass."""

    pass_number: int
    phase: str
    started: str
    finished: bool = False
    duration_ms: float | None = None


@dataclass(slots=True)
class LogLine:
    """One record as a line a person can read."""

    seq: int
    ts: str
    type: str
    level: str
    """`info`, `warning` or `error`."""
    text: str
