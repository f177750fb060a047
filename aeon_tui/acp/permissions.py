"""A run's questions as permission requests: answers are named by their outcome, as in the app."""

from __future__ import annotations

from acp.schema import PermissionOption, PermissionOptionKind

from aeon_core import ApprovalDecision, ApprovalRequest
from aeon_widgets.run_question import ALWAYS, REVIEWED, choices

KINDS: dict[str, PermissionOptionKind] = {ALWAYS: "allow_always", "reject": "reject_once", "abort": "reject_once"}
WORDS = "words"
"""The option after which the next message says what should change."""
_SAY_WHY = ", and say why"
_NO_FIELD = "edit"
"""The answer that needs more than a button; `aeon-tui decide` takes it."""


def options(request: ApprovalRequest) -> list[PermissionOption]:
    """Return what a person can answer with a click."""
    found = []
    for choice in choices(request.point, request.subject, request.pass_number):
        if choice.answer != _NO_FIELD:
            asks_for_words = choice.answer == "reject" and request.point in REVIEWED
            found.append(
                PermissionOption(
                    option_id=WORDS if asks_for_words else choice.answer,
                    name=choice.words.removesuffix(_SAY_WHY),
                    kind=KINDS.get(choice.answer, "allow_once"),
                )
            )
    return found


def rule(request: ApprovalRequest) -> str:
    """Return the rule that always allows calls like the one asked about; empty where none is proposed."""
    return str((request.subject.get("proposal") or {}).get("rule") or "")


def decision(request: ApprovalRequest, option_id: str) -> ApprovalDecision:
    """Return the decision for an option; one that was not offered aborts."""
    if option_id not in {each.option_id for each in options(request)}:
        return ApprovalDecision(decision="abort", feedback=f"the editor answered {option_id!r}, which was not offered")
    if option_id != ALWAYS:
        return ApprovalDecision.model_validate({"decision": option_id})
    return ApprovalDecision.model_validate({"decision": "approve", "allow": {"rule": rule(request), "scope": "run"}})
