"""What a person is asked about: by default a pass and a tool's call in the app, nothing elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aeon_core.config.loading import LoadedConfig
    from aeon_core.config.schema import Approval
    from aeon_core.journal.records import ApprovalPoint

_IN_APP: tuple[Approval, ...] = ("pass", "tool")
_ASKED_AS: dict[ApprovalPoint, Approval] = {"plan": "plan", "pass": "pass", "tool": "tool", "budget": "tool"}


def approval_points(today: LoadedConfig, *, in_app: bool) -> list[Approval]:
    """Return what is asked about: what a configuration or the command line says, else the default."""
    return list(_IN_APP) if in_app and "approve" not in today.sources else list(today.config.approve)


def resumed_approval_points(today: LoadedConfig, path: Path, *, in_app: bool) -> list[Approval]:
    """Return the same for a run that is gone on with: with what it stopped over, which was to be asked about.

    Else a plan that somebody wanted to see would run because its process has died. Raises UsageError, JournalError.
    """
    from aeon_core.approvals.pending import asked_again

    asked = approval_points(today, in_app=in_app)
    point = asked_again(path)
    still = _ASKED_AS.get(point) if point is not None else None
    if still is None or still in asked:
        return asked
    return [still, *(each for each in asked if each != "none")]
