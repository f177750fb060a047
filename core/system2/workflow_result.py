"""What a workflow came to, and where it stands (REQ-072)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from system2.cost import CostRecord
from system2.policies import GateDecision
from system2.view import AgentState

Ending = Literal["completed", "aborted", "failed", "cost_ceiling"]
WorkflowState = Literal["idle", "running", "waiting", "completed", "aborted", "failed", "cost_ceiling"]


@dataclass(frozen=True)
class WorkflowResult:
    """How a workflow ended."""

    agents_invoked: list[str]
    """In the order of their first work, each once."""
    gate_decisions: list[GateDecision]
    total_cost: CostRecord
    wall_clock_seconds: float
    transcript_path: Path | None
    """None where it could not be written."""
    status: Literal["completed", "aborted", "failed", "cost_ceiling"] = "completed"
    exit_code: int = 0
    """What a command ends with: 0 completed, 1 aborted or failed, 3 credentials, 4 the cost ceiling."""
    error: str | None = None
    """Why it did not complete, in one line."""
    summary: str = ""
    """What it was and cost, as it is shown at the end (REQ-121)."""
    journal: Path | None = None
    """The journal; None where it could not be written."""


@dataclass
class WorkflowStatus:
    """Where a workflow stands, asked for from any thread."""

    state: WorkflowState = "idle"
    task: str = ""
    agent: str | None = None
    """Whose work goes on."""
    gate: int | None = None
    """The gate that waits for a decision."""
    agents: dict[str, AgentState] = field(default_factory=dict)
    gate_decisions: list[GateDecision] = field(default_factory=list)
    cost_usd: float = 0.0
    transcript_path: Path | None = None
