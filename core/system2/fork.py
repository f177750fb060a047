"""Fork of a workflow: a new one that stands where a gate of another was asked; the other is only read (Decision 2)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.journal.reader import parse_line
from aeon_core.journal.strict import sound_records
from aeon_core.journal.summary import run_id_of
from aeon_core.journal.writer import new_run_id
from system2.transcript import free_path


def fork(path: Path, gate: int, runs_dir: Path) -> Path:
    """Make the journal of a workflow that waits where a gate of another was asked last; return it, to be resumed.

    It has its own copy of all that came before, what that has cost included. The project's files stay as they are now.
    Raises UsageError where the file is no sound journal of a workflow, or the gate was not decided in it.
    """
    decided = _last_decision(path, gate)
    run_id = new_run_id()
    child = runs_dir / f"{run_id}.jsonl"
    lines = b"".join(_copied(path, decided, run_id, gate))
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        fd = os.open(child, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(lines)
        if (snapshots := path.with_suffix(".files")).is_file():
            shutil.copyfile(snapshots, child.with_suffix(".files"))
    except OSError as error:
        child.unlink(missing_ok=True)
        raise UsageError(f"cannot write to the runs folder {str(runs_dir)!r}: {error.strerror}") from None
    return child


def _last_decision(path: Path, gate: int) -> int:
    """Return the seq of the record with which a gate was decided last."""
    found, asked, known = -1, -1, set()
    for record in sound_records(path):
        if record["seq"] == 0 and not isinstance(record.get("workflow"), dict):
            raise UsageError(f"{str(path)!r} is not the journal of a workflow: a transcript can only be shown")
        if record["type"] == "gate" and record["state"] == "asked":
            asked = record["subject"]["gate"]
        elif record["type"] == "gate" and record["decision"] != "abort":
            known.add(asked)
            found = record["seq"] if asked == gate else found
    if found < 0:
        there = f"gate {', '.join(map(str, sorted(known)))}" if known else "none"
        raise UsageError(f"gate {gate} was not decided in the workflow {run_id_of(str(path))!r}; decided: {there}")
    return found


def _copied(path: Path, end: int, run_id: str, gate: int) -> Iterator[bytes]:
    """Yield the lines before a record, as those of another run."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            record = parse_line(line, number, [])
            if record is None or record["seq"] >= end:
                return
            if record["seq"]:
                old = b'"run":' + json.dumps(record["run"]).encode()
                yield line.replace(old, b'"run":' + json.dumps(run_id).encode(), 1)
                continue
            workflow = record["workflow"]
            transcript = free_path(Path(workflow["transcript"]).parent, run_id)
            record |= {"run": run_id, "parent": {"run_id": record["run"], "gate": gate}}
            record["workflow"] = {**workflow, "transcript": str(transcript)}
            yield (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
