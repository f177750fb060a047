"""The result of a workflow, why it did not complete, and how far it is (REQ-072, REQ-121)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from aeon_core.budget import CostCeilingReached
from aeon_core.errors import AeonError, RunAborted
from system2.cost import CostRecord
from system2.policies import GateDecision
from system2.view import AgentState

Ending = Literal["completed", "aborted", "failed", "cost_ceiling"]
WorkflowState = Literal["idle", "running", "waiting", "completed", "aborted", "failed", "cost_ceiling"]


@dataclass(frozen=True)
class WorkflowResult:
    """How a workflow ended."""

    agents_invoked: list[str]
    """In the order in which they first worked, each once."""
    gate_decisions: list[GateDecision]
    total_cost: CostRecord
    wall_clock_seconds: float
    transcript_path: Path | None
    """None if it could not be written."""
    status: Ending = "completed"
    exit_code: int = 0
    """The command's exit code: 0 completed, 1 aborted or failed, 3 credentials rejected, 4 cost ceiling reached."""
    error: str | None = None
    """Why it did not complete, in one line."""
    summary: str = ""
    """The summary that is shown at the end (REQ-121)."""
    journal: Path | None = None
    """The journal; None if it could not be written."""


@dataclass
class WorkflowStatus:
    """How far a workflow is; any thread may ask."""

    state: WorkflowState = "idle"
    task: str = ""
    agent: str | None = None
    """The agent at work."""
    gate: int | None = None
    """The gate that waits for a decision."""
    agents: dict[str, AgentState] = field(default_factory=dict)
    gate_decisions: list[GateDecision] = field(default_factory=list)
    cost_usd: float = 0.0
    transcript_path: Path | None = None


def status_of(error: BaseException | None) -> Ending:
    """Return the status of a workflow that ended with this error; None means that it is complete."""
    if error is None:
        return "completed"
    if isinstance(error, CostCeilingReached):
        return "cost_ceiling"
    return "aborted" if isinstance(error, RunAborted | KeyboardInterrupt) else "failed"


def message_of(error: BaseException) -> str:
    """Return why it did not complete."""
    if isinstance(error, AeonError):
        return error.message
    return str(error) or ("interrupted" if isinstance(error, KeyboardInterrupt) else type(error).__name__)
