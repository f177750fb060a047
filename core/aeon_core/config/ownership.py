"""Whose a project's own folders are: settings that another user of the machine has planted are not read, as in git."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from aeon_core.errors import UsageError

FOLDERS = (".aeon", ".system2", ".git")
_GIT_SECONDS = 5


def refuse_foreign_folders(root: Path, environ: Mapping[str, str] | None = None) -> None:
    """Raise UsageError where `.aeon`, `.system2` or `.git` of the project belongs to another user.

    Root's own rule is git's: under sudo, the folders of the user who called it are fine, too. So is a project that
    `safe.directory` of the user's git configuration names.
    """
    mine = _own_ids(os.environ if environ is None else environ)
    for name in FOLDERS:
        folder = root / name
        try:
            owners = {folder.lstat().st_uid, folder.stat().st_uid}
        except (OSError, RuntimeError):
            continue
        if owners <= mine or _is_safe_for_git(root):
            continue
        raise UsageError(
            f"{str(folder)!r} belongs to another user (uid {max(owners - mine)}), so nothing in it is used; take the "
            f"folder over with chown, or vouch for it: git config --global --add safe.directory {str(root)!r}"
        )


def _own_ids(environ: Mapping[str, str]) -> set[int]:
    own = os.geteuid()
    caller = environ.get("SUDO_UID", "")
    return {own, int(caller)} if own == 0 and caller.isascii() and caller.isdecimal() else {own}


def _is_safe_for_git(root: Path) -> bool:
    """Return whether the user's git configuration vouches for the folder; the project's own is not asked."""
    import shutil
    import subprocess

    if (git := shutil.which("git")) is None:
        return False
    for scope in ("--global", "--system"):
        command = [git, "config", scope, "--get-all", "safe.directory"]
        try:
            told = subprocess.run(command, capture_output=True, cwd="/", timeout=_GIT_SECONDS, check=False)  # noqa: S603
        except (OSError, subprocess.SubprocessError):
            continue
        named = {line.rstrip("/") for line in os.fsdecode(told.stdout).splitlines()}
        if named & {"*", str(root), os.path.realpath(root)}:
            return True
    return False
