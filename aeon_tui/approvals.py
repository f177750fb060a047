"""What a person is asked about: by default a pass and a tool's call in the app, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aeon_core.config import Approval
    from aeon_core.config_files import LoadedConfig
    from aeon_core.effects.approval import ApprovalDecision, ApprovalRequest, Approver

_IN_APP: tuple[Approval, ...] = ("pass", "tool")
_CALLS = frozenset({"tool", "budget"})
"""Points that are asked about with `tool`. The kernel itself knows when the others are."""


def approvals(today: LoadedConfig, *, in_app: bool) -> list[Approval]:
    """Return what is asked about: what a configuration or the command line says, else the default."""
    return list(_IN_APP) if in_app and "approve" not in today.sources else list(today.config.approve)


def about(approve: Sequence[str], approver: Approver | None) -> Approver | None:
    """Return an approver that is asked before calls only where `approve` has `tool`: else nobody can be."""
    if "tool" in approve or approver is None:
        return approver
    from aeon_core.effects.approval import ask

    def decide(request: ApprovalRequest) -> ApprovalDecision:
        return ask(None if request.point in _CALLS else approver, request)

    return decide
