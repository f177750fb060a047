"""The documents of an earlier workflow in `spec/`: a new one builds on them or replaces them, as a person says."""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile
from pathlib import Path
from typing import Literal, get_args

from aeon_core.errors import AeonError
from aeon_core.journal.reader import head
from system2.constants import GATES
from system2.policies import Question

SpecChoice = Literal["continue", "replace"]
SPEC_CHOICES: tuple[SpecChoice, ...] = get_args(SpecChoice)
UNDECIDED = "spec/ holds documents of an earlier workflow; add --spec continue to build on them, or --spec replace"
_ARTIFACTS = tuple(gate.artifact for gate in GATES[:-1])


def earlier_documents(project_root: Path) -> list[str]:
    """Return the documents of the gates that are there, in the order of the gates."""
    return [path for path in _ARTIFACTS if (project_root / path).is_file()]


def kept_documents(present: Collection[str]) -> tuple[str, ...]:
    """Return those that a workflow can begin with: up to the first gate whose document is missing."""
    return tuple(takewhile(lambda path: path in present, _ARTIFACTS))


def spec_question(present: Collection[str], transcripts: Path, current: Path | None) -> Question:
    """Return what a person is asked where documents are `present`."""
    kept = kept_documents(present)
    names = ", ".join(path for path in _ARTIFACTS if path in present)
    is_whole = len(kept) == len(present)
    missing = () if is_whole else (f"{_ARTIFACTS[len(kept)]} is missing: later documents are rewritten",)
    task = _earlier_task(transcripts, current)
    return Question(
        "existing_spec",
        "repo-governor",
        f"an earlier workflow left {names}; continue with that, or replace it?",
        ("stop", *SPEC_CHOICES),
        "stop",
        (*([f"its task: {task}"] if task else []), *missing),
    )


def _earlier_task(transcripts: Path, current: Path | None) -> str:
    """Return the task of the last workflow of the project, "" where it is not known."""
    others = sorted((path for path in transcripts.glob("*.jsonl") if path != current), reverse=True)
    try:
        first = head(others[0]) if others else None
    except (AeonError, OSError):
        return ""
    return " ".join(str((first or {}).get("task", "")).split())[:200]
