"""Forks a workflow: a new one starts at a gate of another, which stays as it is (Decision 2)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aeon_core.approvals.pending import ApprovalDecision
from aeon_core.errors import UsageError
from aeon_core.journal.reader import parse_line
from aeon_core.journal.recovery import sound_records
from aeon_core.journal.summary import run_id_of
from aeon_core.journal.writer import new_run_id
from aeon_core.json_safe import clean_text
from aeon_core.paths import make_runs_folder
from system2.transcript import free_path
from system2.workflow_journal import first_record


def fork(path: Path, gate: int, runs_dir: Path, feedback: str | None = None) -> Path:
    """Write the journal of a workflow that waits where a gate of another was last asked; return its path.

    With `feedback` the gate is rejected, and its agent continues with these words. The new workflow has a copy of all
    that came before, including its cost. The project's files stay as they are now.
    Raises UsageError if the file is not a sound journal of a workflow, the gate was not decided, or writing fails.
    """
    decided = decided_gates(path)
    if gate not in decided:
        there = f"gate {', '.join(map(str, decided))}" if decided else "none"
        raise UsageError(f"gate {gate} was not decided in the workflow {run_id_of(str(path))!r}; decided: {there}")
    run_id = new_run_id()
    child = runs_dir / f"{run_id}.jsonl"
    lines = b"".join(_copy_lines(path, decided[gate], run_id, gate, feedback))
    try:
        make_runs_folder(runs_dir)
        fd = os.open(child, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(lines)
        if (snapshots := path.with_suffix(".files")).is_file():
            shutil.copy(snapshots, child.with_suffix(".files"))  # keeps the mode: only the user can read it
    except OSError as error:
        discard(child)
        raise UsageError(f"cannot write to the runs folder {str(runs_dir)!r}: {error.strerror}") from None
    return child


def discard(child: Path) -> None:
    """Remove a fork that could not start."""
    child.unlink(missing_ok=True)
    child.with_suffix(".files").unlink(missing_ok=True)


def decided_gates(path: Path) -> dict[int, int]:
    """Return the gates that a fork can start from, in order, each with the seq of its last decision.

    Raises UsageError if the file is not a sound journal of a workflow.
    """
    first_record(path)
    decided: dict[int, int] = {}
    asked = -1
    for record in sound_records(path):
        if record["type"] == "gate" and record["state"] == "asked":
            asked = record["subject"]["gate"]
        elif record["type"] == "gate" and record["decision"] != "abort":
            decided[asked] = record["seq"]
    return dict(sorted(decided.items()))


def _copy_lines(path: Path, end: int, run_id: str, gate: int, feedback: str | None) -> Iterator[bytes]:
    """Yield the lines before seq `end` with the new run's id; with `feedback`, a rejection replaces that record."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            record = parse_line(line, number, [])
            if record is None or record["seq"] >= end:
                if record is not None and feedback is not None:
                    decision = ApprovalDecision(decision="reject", feedback=clean_text(feedback)).model_dump()
                    yield _line(record | decision | {"run": run_id, "ts": _now()})
                return
            if record["seq"]:
                old = b'"run":' + json.dumps(record["run"]).encode()
                yield line.replace(old, b'"run":' + json.dumps(run_id).encode(), 1)
                continue
            workflow = record["workflow"]
            transcript = free_path(Path(workflow["transcript"]).parent, run_id)
            parent = {"run_id": record["run"], "gate": gate, "ts": _now()}
            record |= {"run": run_id, "parent": parent}
            record["workflow"] = {**workflow, "transcript": str(transcript)}
            yield _line(record)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def _line(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
