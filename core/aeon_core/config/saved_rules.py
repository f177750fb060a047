"""The policy rules in a person's configuration and in a project's: listed, saved and removed one at a time.

What a project's file allows needs consent to the whole of what the file asks for (Decision 6). Who saves or removes a
rule there consents to that rule alone: the consent is renewed only where nothing else of the file was waiting for one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from aeon_core.config.editing import KeyPath, add_item, remove_item
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
    """A rule of a configuration file. `file` is the person's own for the scope `always`, else the project's."""

    answer: Answer
    rule: str
    scope: SavedScope
    file: Path


def rules_file(scope: SavedScope, root: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Return the configuration file that holds the rules of a scope; `root` is the project's folder."""
    if scope == "always":
        return user_config_file(os.environ if environ is None else environ)
    return root / PROJECT_FOLDER / "config.yml"


def saved_rules(root: Path, environ: Mapping[str, str] | None = None) -> list[SavedRule]:
    """Return the rules of both files, the person's own first. Raises UsageError if one cannot be read."""
    found: list[SavedRule] = []
    for scope in ("always", "project"):
        file = rules_file(scope, root, environ)
        rules = read_config_file(file).get(_POLICY) if file.exists() else None
        for answer in get_args(Answer) if rules is not None else ():
            found += [SavedRule(answer, rule, scope, file) for rule in getattr(rules, answer)]
    return found


def save_rule(rule: str, scope: SavedScope, root: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Add a rule that allows to the configuration of a scope, and return its file; the rest of it stays as it is.

    Raises UsageError if that is no rule, the file cannot be changed, or the project is not trusted.
    """
    try:
        PolicyRules(allow=(rule,))
    except ValueError:
        raise UsageError(f"{rule!r} is not a policy rule") from None
    saved = SavedRule("allow", rule, scope, rules_file(scope, root, environ))
    _change(saved, root, environ, add_item)
    return saved.file


def remove_rule(saved: SavedRule, root: Path, environ: Mapping[str, str] | None = None) -> None:
    """Remove a rule from its file. Raises UsageError if that cannot be changed."""
    _change(saved, root, environ, remove_item)


def _change(
    saved: SavedRule, root: Path, environ: Mapping[str, str] | None, change: Callable[[Path, KeyPath, str], None]
) -> None:
    path = (_POLICY, saved.answer)
    if saved.scope == "always":
        change(saved.file, path, saved.rule)
        return
    before, allowed = assess_project(root, environ), _allowed(saved.file)
    if not before.allowed:
        raise UsageError(
            "this project's settings are not trusted, so a rule in them would not apply; "
            "trust the folder first (`aeon-tui trust`), or choose another scope"
        )
    change(saved.file, path, saved.rule)
    after = assess_project(root, environ)
    if _apart_from_rules(after) != _apart_from_rules(before) or _allowed(saved.file) ^ allowed > {saved.rule}:
        raise UsageError("the project's settings have changed meanwhile; review them with `aeon-tui trust`")
    grant_trust(after, environ)


def _allowed(file: Path) -> set[str]:
    rules = read_config_file(file).get(_POLICY) if file.exists() else None
    return set(rules.allow) if rules is not None else set()


def _apart_from_rules(trust: ProjectTrust) -> object:
    return [item for item in trust.items if item.key != "policy.allow"], dict(trust.digests)
