"""The options of a run: its approval points, and what a resumed or forked run keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.config.trust import ASKED_IN_APP

if TYPE_CHECKING:
    from aeon_core.config.loading import LoadedConfig
    from aeon_core.config.schema import Approval, RunConfig
    from aeon_core.journal.records import ApprovalPoint
    from aeon_core.llm.base import LLMAdapter
    from aeon_core.policy import PolicyRules

_ASKED_AS: dict[ApprovalPoint, Approval] = {"plan": "plan", "pass": "pass", "tool": "tool", "budget": "tool"}


def approval_points(today: LoadedConfig, *, in_app: bool) -> list[Approval]:
    """Return the approval points: those of a configuration or the command line, else the default."""
    return list(ASKED_IN_APP if in_app and "approve" not in today.sources else today.config.approve)


def resumed_approval_points(today: LoadedConfig, path: Path, *, in_app: bool) -> list[Approval]:
    """Return the approval points of a resumed run, plus the point that it stopped at, if it asked there.

    Otherwise a plan that a person wanted to see would run because its process died. Raises UsageError, JournalError.
    """
    from aeon_core.approvals import asked_again

    asked = approval_points(today, in_app=in_app)
    point = asked_again(path)
    still = _ASKED_AS.get(point) if point is not None else None
    if still is None or still in asked:
        return asked
    return [still, *(each for each in asked if each != "none")]


def rules_for(recorded: RunConfig, today: LoadedConfig) -> PolicyRules:
    """Return today's rules for a run that is continued, and those that ask or deny in its project, if that is another.

    Raises UsageError if that project's configuration cannot be read.
    """
    from aeon_core.config.loading import load_config
    from aeon_core.policy import PolicyRules

    rules = today.config.policy
    if recorded.root == today.config.root or not recorded.root.is_dir():
        return rules
    there = load_config({"project_root": str(recorded.root)}).config.policy
    return rules.joined(there.restrictions(PolicyRules()))


_NEVER_WRITTEN = ("mcp_servers", "bedrock", "prices")
"""Options that come from today's configuration, since a journal holds no secrets."""
_OF_TODAY = ("wait",)
"""Options about who can answer today, not when the journal was started."""


def started_of(path: Path) -> dict[str, Any]:
    """Return the `run_started` record of a journal. Raises UsageError if the file is not a journal."""
    from aeon_core.journal.recovery import sound_records

    return next(sound_records(path))


def merge_overrides(
    recorded: RunConfig,
    started: Mapping[str, Any],
    loaded: LoadedConfig,
    overrides: Mapping[str, Any],
    rules: Sequence[str] = (),
) -> RunConfig:
    """Return a run's own options, with overrides and with what journals leave out.

    An overriding `policy` is added to the run's rules; `rules` are those that the user added during the run. Raises
    UsageError if the journal names something that needs consent and lacks it.
    """
    from aeon_core.config.journal_trust import check_journal
    from aeon_core.config.schema import providers_of

    today = loaded.config
    kept = {name: getattr(today, name) for name in (*_NEVER_WRITTEN, *_OF_TODAY)}
    hidden = recorded.base_url is None and started["config"].get("base_url") is not None
    elsewhere = "model" in overrides and providers_of(overrides["model"]) != providers_of(recorded.model)
    if "base_url" not in overrides and (hidden or elsewhere):
        # The address of one provider is not valid for another; within one, nothing is redirected without a request.
        kept["base_url"] = today.base_url
    if (added := overrides.get("policy")) is not None:
        kept["policy"] = recorded.policy.joined(added)
    config = recorded.model_copy(update={**overrides, **kept})
    return check_journal(started, config, today, overrides, rules=rules, trusts_project=loaded.mode == "apply")


def usable_model(config: RunConfig) -> LLMAdapter:
    """Return the configured model, checked. Raises ModelUnavailableError, UsageError."""
    from aeon_core.runs.factory import connect_model

    model = connect_model(config)
    try:
        model.check()
    except BaseException:
        model.close()
        raise
    return model
