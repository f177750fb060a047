"""The part of a person's git settings that commands see: without it, git could not say who commits."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_KEPT = _words(
    """
    user.name user.email author.name author.email committer.name committer.email init.defaultbranch
    core.autocrlf core.eol core.excludesfile core.attributesfile core.quotepath core.whitespace pull.rebase
    pull.ff push.default merge.ff merge.conflictstyle diff.algorithm diff.renames rebase.autosquash
    rebase.autostash fetch.prune branch.autosetuprebase safe.directory
    """
)
"""Neither keys nor names of programs: no credential helper, no alias, no `url.insteadOf`, which may hold a password."""
_SECONDS = 5


def git_settings(git: str, environ: Mapping[str, str], home: Path) -> str:
    """Return the harmless settings of the user, in the form of git's own file; empty where git gives none.

    The project's settings are not read: git finds those by itself. `home` is a folder outside every repository.
    """
    try:
        listed = subprocess.run(  # noqa: S603  # git, with words of our own
            [git, "config", "--global", "--includes", "--list", "-z"],
            cwd=home, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False,
        ).stdout.decode("utf-8", "replace")  # fmt: skip
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    lines = []
    for entry in listed.split("\0"):
        key, has_value, value = entry.partition("\n")
        if key in _KEPT and has_value:
            section, _, name = key.partition(".")
            lines.append(f"[{section}]\n\t{name} = {_quoted(value)}\n")
    return "".join(lines)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
