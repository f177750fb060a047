"""The end of a workflow: how it ended, in the transcript, in the log and for the caller (REQ-121)."""

from __future__ import annotations

from pathlib import Path

from aeon_core.budget import CostCeilingReached
from aeon_core.errors import AeonError, RunAborted
from system2.context import WorkflowContext
from system2.entries import WorkflowEnd
from system2.policies import GateDecision
from system2.workflow_result import Ending, WorkflowResult


def end_workflow(
    context: WorkflowContext,
    agents_invoked: list[str],
    decisions: list[GateDecision],
    seconds: float,
    error: BaseException | None,
) -> WorkflowResult:
    """Write down how the workflow ended, and return it. None for `error` is the end of all work."""
    status, exit_code = outcome_of(error)
    message = _message(error)
    total = context.costs.total()
    context.transcript.write(
        WorkflowEnd(
            total_cost=total.as_dict(),
            duration_s=round(seconds, 3),
            status=status,
            exit_code=exit_code,
            agents_invoked=agents_invoked,
            error=message,
        )
    )
    path = context.transcript.path
    summary = context.costs.workflow_summary(agents_invoked, seconds, _shown(path, context.project_root))
    context.log.info(summary)
    return WorkflowResult(
        agents_invoked=list(agents_invoked),
        gate_decisions=decisions,
        total_cost=total,
        wall_clock_seconds=seconds,
        transcript_path=path,
        status=status,
        exit_code=exit_code,
        error=message,
        summary=summary,
    )


def outcome_of(error: BaseException | None) -> tuple[Ending, int]:
    """Return the status and the exit code of a workflow that this has ended; None is the end of all work."""
    if error is None:
        return "completed", 0
    if isinstance(error, CostCeilingReached):
        return "cost_ceiling", 4
    if isinstance(error, RunAborted | KeyboardInterrupt):
        return "aborted", 1
    # Bad usage cannot be told from here on: the workflow had begun.
    return "failed", 3 if isinstance(error, AeonError) and error.exit_code == 3 else 1


def _message(error: BaseException | None) -> str | None:
    if isinstance(error, AeonError):
        return error.message
    if error is None:
        return None
    return str(error) or ("interrupted" if isinstance(error, KeyboardInterrupt) else type(error).__name__)


def _shown(path: Path | None, project_root: Path) -> str | None:
    if path is None:
        return None
    return str(path.relative_to(project_root) if path.is_relative_to(project_root) else path)
