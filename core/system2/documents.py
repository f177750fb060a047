"""The documents of a workflow: those that agents must produce, and those that an earlier workflow left in `spec/`.

Only the files decide whether a document was produced, never what an agent says.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Collection, Iterable
from itertools import takewhile
from pathlib import Path
from typing import Literal, get_args

from aeon_core.errors import AeonError
from aeon_core.journal.reader import head
from aeon_core.paths import real_path
from aeon_core.regular_file import read_whole, start_of_text
from system2.constants import ARTIFACTS
from system2.policies import Question

_LARGEST = 50_000_000
"""Bytes of a document: a link may lead to a file without end, and a few bytes on the disk be a file of terabytes."""
MAX_ARTIFACT = 1_000_000
"""Bytes of a document that are read."""


def text_of(root: Path, name: str) -> str:
    """Return the start of a project file's text, or in parentheses why it is not shown."""
    path = root / name
    inside = real_path(path).is_relative_to(real_path(root))
    return start_of_text(path, MAX_ARTIFACT) if inside else "(not in the project)"


def state_of(root: Path, path: str) -> dict[str, str | None]:
    """Return a document's SHA-256, None if it cannot be read, and what is wrong with it."""
    link, problem, digest = None, None, None
    try:
        if any((root / part).is_symlink() for part in (Path(path), *Path(path).parents)):
            link = f"{path} is reached through a symbolic link; it must be a file in the project"
        if not stat.S_ISREG((root / path).stat().st_mode):
            problem = f"{path} is not a regular file"
        else:
            content = read_whole(root / path, _LARGEST)
            problem = None if content.strip() else f"{path} is empty"
            digest = hashlib.sha256(content).hexdigest()
    except FileNotFoundError:
        problem = f"{path} was not written"
    except OSError as error:
        problem = f"{path} cannot be read: {error.strerror}"
    return {"problem": link or problem, "digest": digest}


def digests(project_root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of each of these documents that can be read."""
    states = {path: state_of(project_root, path)["digest"] for path in paths}
    return {path: digest for path, digest in states.items() if digest is not None}


SpecChoice = Literal["continue", "replace"]
UNDECIDED = "spec/ holds documents of an earlier workflow; add --spec continue to build on them, or --spec replace"


def earlier_documents(project_root: Path) -> list[str]:
    """Return the gates' documents that exist, in the order of the gates."""
    return [path for path in ARTIFACTS if (project_root / path).is_file()]


def kept_documents(present: Collection[str]) -> tuple[str, ...]:
    """Return the documents that a workflow can build on: those of the gates before the first missing document."""
    return tuple(takewhile(lambda path: path in present, ARTIFACTS))


def spec_question(present: Collection[str], task: str) -> Question:
    """Return the question about documents that are `present`; `task` is that of the workflow that wrote them."""
    kept = kept_documents(present)
    names = ", ".join(path for path in ARTIFACTS if path in present)
    is_whole = len(kept) == len(present)
    missing = () if is_whole else (f"{ARTIFACTS[len(kept)]} is missing: later documents are rewritten",)
    return Question(
        "existing_spec",
        "repo-governor",
        f"an earlier workflow left {names}; continue with that, or replace it?",
        ("stop", *get_args(SpecChoice)),
        "stop",
        (*([f"its task: {task}"] if task else []), *missing),
    )


def earlier_task(transcripts: Path, run_id: str) -> str:
    """Return the task of the project's last workflow other than `run_id`, or "" if it is unknown."""
    try:
        starts = (head(path) or {} for path in sorted(transcripts.glob("*.jsonl"), reverse=True))
        first = next((start for start in starts if start.get("run") != run_id), {})
    except (AeonError, OSError):
        return ""
    return " ".join(str(first.get("task", "")).split())[:200]
