"""The files of a project that control the workflow, git or other tools (REQ-113, REQ-150)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath

PROTECTED = frozenset({".system2", ".claude", ".git", ".aeon", "claude.md"})
"""Folders and files, in lower case."""
MAX_FILES = 1000
_FILES = ("CLAUDE.md", ".system2/config.yml", ".git/config")

_GOVERNOR = "repo-governor"
_GOVERNED = re.compile(r"(?:CLAUDE|AGENTS)\.md|\.claude/rules/[\w.-]+\.md")


def is_own_work(agent: str, path: str) -> bool:
    """Return whether writing a file that steers agents is this agent's task: the rules of the repository.

    They are text that a person sees at Gate 0; settings and hooks can run commands, and stay protected.
    """
    return agent == _GOVERNOR and _GOVERNED.fullmatch(PurePosixPath(path).as_posix()) is not None


State = Mapping[str, tuple[int, int]]
"""The modification time in nanoseconds and the size in bytes of each file."""


def is_protected(path: str) -> bool:
    """Return whether a project's file, or a folder that it is in, is protected."""
    return any(part.lower() in PROTECTED for part in PurePosixPath(path).parts)


def protected_state(project_root: Path) -> State:
    """Return the state of the files that steer agents, so that a change by a command is noticed."""
    state = {}
    for path in steering_files(project_root):
        with suppress(OSError):
            found = (project_root / path).lstat()
            state[path] = (found.st_mtime_ns, found.st_size)
    return state


def steering_files(project_root: Path) -> list[str]:
    """Return the files that steer agents and git; they are compared even if git ignores them."""
    found = (path.relative_to(project_root).as_posix() for path in _files(project_root) if os.path.lexists(path))
    return list(islice(found, MAX_FILES))


def changed(before: State, after: State) -> list[str]:
    """Return the names of the files that were created, changed or removed."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _files(project_root: Path) -> Iterator[Path]:
    yield from (project_root / name for name in _FILES)
    yield from (path for path in (project_root / ".git/hooks").glob("*") if path.suffix != ".sample")
    yield from (path for path in (project_root / ".claude").rglob("*") if not path.is_dir())
