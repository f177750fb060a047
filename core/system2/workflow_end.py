"""The end of a workflow: its status, its exit code, and why it did not complete (REQ-121)."""

from __future__ import annotations

from aeon_core.budget import CostCeilingReached
from aeon_core.errors import AeonError, RunAborted
from system2.workflow_result import Ending


def status_of(error: BaseException | None) -> Ending:
    """Return the status of a workflow that this error has ended; None means that it is complete."""
    if error is None:
        return "completed"
    if isinstance(error, CostCeilingReached):
        return "cost_ceiling"
    return "aborted" if isinstance(error, RunAborted | KeyboardInterrupt) else "failed"


def exit_code_of(error: BaseException | None) -> int:
    """Return the exit code for it, never that of bad usage: the workflow had started."""
    codes = {"completed": 0, "cost_ceiling": 4}
    is_refused = isinstance(error, AeonError) and error.exit_code == 3
    return codes.get(status_of(error), 3 if is_refused and status_of(error) == "failed" else 1)


def message_of(error: BaseException) -> str:
    """Return why it did not complete."""
    if isinstance(error, AeonError):
        return error.message
    return str(error) or ("interrupted" if isinstance(error, KeyboardInterrupt) else type(error).__name__)
