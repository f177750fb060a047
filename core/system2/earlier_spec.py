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
ARTIFACTS = tuple(gate.artifact for gate in GATES[:-1])


def earlier_documents(project_root: Path) -> list[str]:
    """Return the documents of the gates that are there, in the order of the gates."""
    return [path for path in ARTIFACTS if (project_root / path).is_file()]


def kept_documents(present: Collection[str]) -> tuple[str, ...]:
    """Return those that a workflow can begin with: up to the first gate whose document is missing."""
    return tuple(takewhile(lambda path: path in present, ARTIFACTS))


def spec_question(present: Collection[str], task: str) -> Question:
    """Return what a person is asked where documents are `present`; `task` is that of the workflow they are from."""
    kept = kept_documents(present)
    names = ", ".join(path for path in ARTIFACTS if path in present)
    is_whole = len(kept) == len(present)
    missing = () if is_whole else (f"{ARTIFACTS[len(kept)]} is missing: later documents are rewritten",)
    return Question(
        "existing_spec",
        "repo-governor",
        f"an earlier workflow left {names}; continue with that, or replace it?",
        ("stop", *SPEC_CHOICES),
        "stop",
        (*([f"its task: {task}"] if task else []), *missing),
    )


def earlier_task(transcripts: Path, run_id: str) -> str:
    """Return the task of the last workflow of the project but this one, "" where it is not known."""
    try:
        starts = (head(path) or {} for path in sorted(transcripts.glob("*.jsonl"), reverse=True))
        first = next((start for start in starts if start.get("run") != run_id), {})
    except (AeonError, OSError):
        return ""
    return " ".join(str(first.get("task", "")).split())[:200]
