"""A person's labels in journals: adding one to a finished run, and reading all with the judge's verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.journal.reader import (
    STATE_TYPES,
    head,
    marks,
    no_journal,
    opened,
    parse_line,
    record_type,
    superseded_in,
    tail,
)
from aeon_core.journal.records import LabelRecord, Verdict
from aeon_core.journal.recovery import make_sure_nobody_writes, reopen
from aeon_core.journal.summary import is_workflow_start, last_state
from aeon_core.journal.values import dicts_of, int_of, str_of

_MARK = b'"type":"label"'
_JUDGE = b'"purpose":"judge"'
_PURPOSE_WITHIN = 1_000
_NEEDED = frozenset({"run_started", "run_resumed", "llm", "convergence", "label"})


@dataclass(frozen=True)
class LabelledPass:
    """A pass with a person's last label and the judge's verdict."""

    run_id: str
    pass_number: int
    model: str
    """The judge's model."""
    verdict: Verdict
    why: str
    assessment: Mapping[str, Any]
    """The ConvergenceAssessment; empty if the pass was not assessed."""


def label_run(path: Path, verdict: Verdict, why: str | None = None) -> dict[str, Any]:
    """Append a person's verdict on the last result to the journal of a finished run; return the record.

    Raises UsageError, and changes nothing, if the file is not a run's journal, cannot be written, is damaged, is being
    written by another process, or its run has not ended; JournalError if the disk fails.
    """
    make_sure_it_has_a_result(path)
    number, last, lines = 1, "", list[bytes]()

    def note(record: dict[str, Any]) -> None:
        nonlocal number, last
        last = record["type"] if record["type"] in STATE_TYPES else last
        if record["type"] in ("phase", "convergence"):
            number = record["pass"]

    writer = reopen(path, lines.append, note)
    try:
        if last != "run_finished":
            raise _not_ended(path)
        writer.append(LabelRecord(verdict=verdict, why=why, pass_number=number, source="person"))
        writer.sync()
    finally:
        writer.close()
    record: dict[str, Any] = json.loads(lines[-1])
    return record


def make_sure_it_has_a_result(path: Path) -> None:
    """Raise UsageError if a journal holds no result to label or is being written. Reads only its ends."""
    if (first := head(path)) is None:
        why = "its first line is not a readable record" if path.stat().st_size else "it is empty"
        raise no_journal(path, why)
    if is_workflow_start(first):
        raise UsageError(f"{path.stem!r} is a workflow; only the result of a run can be labelled")
    make_sure_nobody_writes(path)
    if last_state(tail(path)).get("type") != "run_finished":
        raise _not_ended(path)


def last_label(path: Path) -> tuple[Verdict, str] | None:
    """Return a run's last label and its reason, if the end of its journal holds one. Raises UsageError."""
    for record in tail(path):
        if record["type"] == "run_resumed":
            break  # it superseded earlier labels
        if record["type"] == "label" and record.get("verdict") in ("good", "bad"):
            return record["verdict"], str_of(record.get("why"))
    return None


def _not_ended(path: Path) -> UsageError:
    return UsageError(f"the run {path.stem!r} has not ended, so there is no result to label; resume it first")


def labelled_passes(path: Path) -> list[LabelledPass]:
    """Return the labelled passes of a run, in order; none if there is no label.

    A run without labels is only scanned, not parsed. Raises UsageError and OSError if it cannot be read.
    """
    with opened(path) as file:
        if next(marks(file.fileno(), _MARK), None) is None:
            return []
        found: dict[int, LabelledPass] = {}
        model = judge = ""
        assessments: dict[int, tuple[str, Mapping[str, Any]]] = {}
        for record in _needed(file.fileno(), file):
            kind, number = record["type"], int_of(record.get("pass"))
            if kind in ("run_started", "run_resumed"):
                models = dicts_of(record.get("models"))
                named = next((each for each in models if each.get("judges") is True), next(iter(models), record))
                model, judge = str_of(named.get("model")) or model, ""
            elif kind == "llm":
                judge = str_of(record.get("model")) or judge
            elif kind == "convergence":
                # A later one for the same pass says how the run ended, not what the judge said.
                assessments.setdefault(number, (judge or model, record))
            elif record.get("verdict") in ("good", "bad"):
                judged_by, assessment = assessments.get(number, (judge or model, {}))
                why = str_of(record.get("why"))
                found[number] = LabelledPass(path.stem, number, judged_by, record["verdict"], why, assessment)
    return list(found.values())


def _needed(fd: int, lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the records needed for labels that no resume superseded."""
    gone = superseded_in(fd)
    for line in lines:
        kind = record_type(line)
        if kind not in _NEEDED or (kind == "llm" and _JUDGE not in line[:_PURPOSE_WITHIN]):
            continue
        record = parse_line(line, 0, [])
        if record is not None and not any(record["seq"] in span for span in gone):
            yield record
