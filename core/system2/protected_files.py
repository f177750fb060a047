"""The files of a project by which the workflow, git or other tools are steered (REQ-113, REQ-150)."""

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
    """Return whether a file steers agents and is what this agent is there to write: the rules of the repository.

    They are text, which a person sees at Gate 0; settings and hooks run commands, and stay protected.
    """
    return agent == _GOVERNOR and _GOVERNED.fullmatch(PurePosixPath(path).as_posix()) is not None


State = Mapping[str, tuple[int, int]]
"""Of each file its time of change and its size."""


def is_protected(path: str) -> bool:
    """Return whether a file of the project, or the folder that it is in, steers something."""
    return any(part.lower() in PROTECTED for part in PurePosixPath(path).parts)


def protected_state(project_root: Path) -> State:
    """Return the state of the files that steer agents: what a command changes there is worth a word."""
    state = {}
    for path in steering_files(project_root):
        with suppress(OSError):
            found = (project_root / path).lstat()
            state[path] = (found.st_mtime_ns, found.st_size)
    return state


def steering_files(project_root: Path) -> list[str]:
    """Return the files that steer agents and git, which count as the project's though git ignores them."""
    found = (path.relative_to(project_root).as_posix() for path in _files(project_root) if os.path.lexists(path))
    return list(islice(found, MAX_FILES))


def changed(before: State, after: State) -> list[str]:
    """Return which files were made, changed or removed, by name."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _files(project_root: Path) -> Iterator[Path]:
    yield from (project_root / name for name in _FILES)
    yield from (path for path in (project_root / ".git/hooks").glob("*") if path.suffix != ".sample")
    yield from (path for path in (project_root / ".claude").rglob("*") if not path.is_dir())
