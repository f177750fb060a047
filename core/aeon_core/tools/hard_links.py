"""Which hard links in a project are refused: they give a file outside another name inside, which no path shows.

A link to a file of the same project, and those that package managers make (pnpm, uv, ccache, git's worktrees) to their
stores, are files like all others. Where a file has several names, it is refused if

1. it belongs neither to this user nor to whoever owns the project's folder: another user's file; or
2. only its owner may read it, unless the umask makes all files so: keys are stored that way, packages are not; or
3. it is one of the user's files whose names begin with a dot, or that lie in a folder in the home that does.

Anything else with a second name outside, such as a photo, cannot be told from a package, and is read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from aeon_core.tools.shell.secret_paths import secret_files

Secrets = Callable[[], frozenset[tuple[int, int]]]
"""Gives device and inode of the user's secret files; only asked for where a file has several names."""


def own_secrets() -> frozenset[tuple[int, int]]:
    """Return device and inode of this user's secret files."""
    return secret_files(os.environ)


def link_fault(status: os.stat_result, project_owner: int, secrets: Secrets = own_secrets) -> str | None:
    """Return why a file is refused for its links; None where it is not."""
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return None
    if status.st_uid not in {os.geteuid(), project_owner}:
        return "it is a hard link to a file of another user"
    if not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO) and not _keeps_all_private():
        return "it is a hard link to a file that only its owner may read"
    if (status.st_dev, status.st_ino) in secrets():
        return "it is a hard link to a file with settings or keys in your home"
    return None


@cache
def _keeps_all_private() -> bool:
    with suppress(OSError):
        found = re.search(r"(?m)^Umask:\s*([0-7]+)$", Path("/proc/self/status").read_text())
        return found is not None and int(found[1], 8) & 0o077 == 0o077
    return False
