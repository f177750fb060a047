"""Authorization of a tool call: by the policy, and by a person where it asks for one. Bound to the final arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from aeon_core.approvals.pending import ApprovalDecision, nobody_answered
from aeon_core.effects.port import Effects
from aeon_core.errors import RunAborted, ToolError, UsageError
from aeon_core.policy import Policy, unruled
from aeon_core.tools.base import Tool
from aeon_core.tools.schema import Schema


def authorize_call(
    effects: Effects,
    policy: Policy,
    tool: Tool,
    step_id: str,
    arguments: Mapping[str, Any],
    *,
    schema: Schema,
    pass_number: int,
    description: str,
    more: Mapping[str, Any] | None = None,
    substitutes: str | None = None,
    objection: str | None = None,
) -> dict[str, Any]:
    """Return the arguments to call the tool with. `substitutes` is the tool that a repair put this one in place of,
    `objection` what the review of the plan has against the call, `more` what else a person is to know.

    The user sees what the call would change in a file, and may edit the arguments: edits are authorized again, and
    asked about no second time. The rule that they allow with the call holds in `policy` from here on. Raises ToolError
    where the call is denied or not approved, RunAborted where a person ended the run.
    """
    judge = partial(
        effects.judge,
        policy,
        tool,
        pass_number=pass_number,
        step_id=step_id,
        substitutes=substitutes,
        objection=objection,
    )
    verdict = judge(arguments)
    if verdict.answer == "allow":
        return dict(arguments)
    if verdict.answer == "deny":
        raise ToolError(f"the call of {tool.name!r} is denied: {verdict.reason}", tool_name=tool.name)
    subject = {
        "tool_name": tool.name,
        "arguments": dict(arguments),
        "description": description,
        "reason": verdict.reason,
        **({"proposal": verdict.proposal} if verdict.proposal is not None else {}),
        **(more or {}),
    }
    decide = partial(effects.decide, "tool", pass_number=pass_number, step_id=step_id)
    answer = _decided(effects, tool, arguments, subject, decide)
    if answer.decision == "abort":
        why = f": {answer.feedback}" if answer.feedback else ""
        raise RunAborted(f"the run was aborted at the call of {tool.name!r}{why}")
    if answer.decision == "approve":
        if answer.allow is not None:
            with suppress(UsageError):  # the call itself is approved
                policy.allow(answer.allow.rule)
        return dict(arguments)
    if answer.decision != "edit" or answer.edited is None:
        plain = "a person rejected it" if answer.decision == "reject" else "nothing was edited"
        why = answer.feedback or plain
        if nobody_answered(why):
            how = f"allow it with --allow {tool.name}, or a rule under `policy:` in a config file"
            if verdict.reason != unruled(tool, substitutes):
                how = "--allow cannot change that; use --approve tool, at a terminal or with --wait SECONDS"
            why = f"{verdict.reason} and {why}; {how}"
        raise ToolError(f"the call of {tool.name!r} was not approved: {why}", tool_name=tool.name)
    if problems := schema.errors(answer.edited):
        raise ToolError(f"the edited arguments do not fit: {'; '.join(problems)}", tool_name=tool.name)
    edited = judge(answer.edited)
    if edited.answer == "deny":
        raise ToolError(f"the edited call of {tool.name!r} is denied: {edited.reason}", tool_name=tool.name)
    return answer.edited


def _decided(
    effects: Effects,
    tool: Tool,
    arguments: Mapping[str, Any],
    subject: dict[str, Any],
    decide: Callable[[dict[str, Any]], ApprovalDecision],
) -> ApprovalDecision:
    """Return what a person decides about a call that they have seen as it is made.

    Where the file has changed when they have approved, they see it again.
    """
    while True:
        shown = effects.preview(tool, arguments)
        answer = decide(subject if shown is None else {**subject, "preview": shown})
        if answer.decision != "approve" or not effects.preview_changed(tool, arguments, shown):
            return answer
