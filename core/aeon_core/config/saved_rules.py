"""Lists, saves and removes the policy rules in the user's and in the project's configuration.

Rules in a project's file need consent to everything that the file asks for (Decision 6). Saving or removing a rule
there is consent to that rule only, so it renews the consent only if nothing else in the file was waiting for one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from aeon_core.config.editing import KeyPath, edit_file, with_item, without_item
from aeon_core.config.loading import assess_project, read_config_file, user_config_file
from aeon_core.config.trust import ProjectTrust, grant_trust
from aeon_core.errors import UsageError
from aeon_core.paths import PROJECT_FOLDER
from aeon_core.policy import PolicyRules
from aeon_core.tools.base import Answer

SavedScope = Literal["project", "always"]
_POLICY = "policy"


@dataclass(frozen=True)
class SavedRule:
    """A rule of a configuration file. `file` is the user's own for the scope `always`, else the project's."""

    answer: Answer
    rule: str
    scope: SavedScope
    file: Path


def saved_rules(root: Path) -> list[SavedRule]:
    """Return the rules of both files, the user's own first. Raises UsageError if one cannot be read."""
    return [
        SavedRule(answer, rule, scope, file)
        for scope, file in _files(root).items()
        for rules in [_rules(file)]
        for answer in get_args(Answer)
        for rule in getattr(rules, answer)
    ]


def _files(root: Path) -> dict[SavedScope, Path]:
    return {"always": user_config_file(os.environ), "project": root / PROJECT_FOLDER / "config.yml"}


def _rules(file: Path) -> PolicyRules:
    """Return the rules of a file; none if it does not exist."""
    found = read_config_file(file).get(_POLICY) if file.exists() else None
    return found if found is not None else PolicyRules()


def save_rule(rule: str, scope: SavedScope, root: Path) -> Path:
    """Add an allow rule to the configuration of a scope, and return its file, the rest of which stays as it is.

    Raises UsageError if it is not a rule, the file cannot be changed, or the project is not trusted.
    """
    try:
        PolicyRules(allow=(rule,))
    except ValueError:
        raise UsageError(f"{rule!r} is not a policy rule") from None
    saved = SavedRule("allow", rule, scope, _files(root)[scope])
    _change(saved, root, with_item)
    return saved.file


def remove_rule(saved: SavedRule, root: Path) -> None:
    """Remove a rule from its file. Raises UsageError if the file cannot be changed."""
    _change(saved, root, without_item)


def _change(saved: SavedRule, root: Path, change: Callable[[str, KeyPath, str], str]) -> None:
    def edit(text: str) -> str:
        return change(text, (_POLICY, saved.answer), saved.rule)

    if saved.scope == "always":
        edit_file(saved.file, edit)
        return
    before, allowed = assess_project(root), {*_rules(saved.file).allow}
    if not before.allowed:
        raise UsageError(
            "this project's settings are not trusted, so a rule in them would not apply; "
            "trust the folder first (`aeon-tui trust`), or choose another scope"
        )
    edit_file(saved.file, edit)
    after = assess_project(root)
    if _apart_from_rules(after) != _apart_from_rules(before) or {*_rules(saved.file).allow} ^ allowed > {saved.rule}:
        raise UsageError("the project's settings have changed in the meantime; review them with `aeon-tui trust`")
    grant_trust(after)


def _apart_from_rules(trust: ProjectTrust) -> object:
    return [item for item in trust.items if item.key != "policy.allow"], dict(trust.digests)
