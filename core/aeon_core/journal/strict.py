"""Reading a journal that is to be gone on with, or gone over again: every line must be sound (Decision 3)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from aeon_core.errors import UsageError
from aeon_core.journal.reader import BEGINNINGS, VERSION, read_records
from aeon_core.journal.records import RECORD, TYPES
from aeon_core.journal.texts import TextTable
from aeon_core.suggest import first_problem


def sound_records(path: Path, texts: TextTable | None = None) -> Iterator[dict[str, Any]]:
    """Yield the records of a journal in order, long texts in full; a torn last line is no record.

    The texts that it holds are added to `texts`. Raises UsageError, with the line's number, at the first line that is
    broken, is missing, belongs to another run, or was written by a newer version; and where the file is no journal.
    """
    damage: list[str] = []
    checked = _Lines(texts if texts is not None else TextTable())
    for record in read_records(path, plans=False, damage=damage, check=checked.fault):
        if damage:
            break
        yield record
    if damage:
        raise UsageError(f"the journal {str(path)!r} is damaged: {damage[0]}; see what is left with `aeon-tui show`")


class _Lines:
    """What is known of the lines before."""

    def __init__(self, texts: TextTable) -> None:
        self._texts = texts
        self._run: Any = None

    def fault(self, record: dict[str, Any]) -> str | None:
        """Return what is wrong with a record, None where nothing is."""
        if record.get("v") != VERSION:
            return f"its version is {record.get('v')!r}, but this Aeon supports {VERSION}; use the Aeon that wrote it"
        if record["seq"] == 0:
            self._run = record.get("run")
            return _beginning_fault(record)
        if record.get("run") != self._run or not isinstance(record.get("ts"), str):
            return f"it is not a line of the run {self._run!r}"
        return self._text_fault(record) if record["type"] == "text" else _fault_of(record)

    def _text_fault(self, record: dict[str, Any]) -> str | None:
        sha256, text = record.get("sha256"), record.get("text")
        if not isinstance(text, str) or hashlib.sha256(text.encode()).hexdigest() != sha256:
            return "its text does not match its sha256"
        self._texts.add(sha256)
        return None


def _beginning_fault(record: dict[str, Any]) -> str | None:
    if record["type"] not in BEGINNINGS:
        return f"it is {record['type']!r}; expected {BEGINNINGS[0]!r}"
    if not isinstance(record.get("run"), str) or not isinstance(record.get("ts"), str):
        return "it names no run, or no time"
    return _fault_of(record)


def _fault_of(record: dict[str, Any]) -> str | None:
    """Return what is wrong with the fields of a record; those of a type that is not known are ignored."""
    if record["type"] not in TYPES:
        return None
    try:
        RECORD.validate_python(record)
    except ValidationError as error:
        return first_problem(error)
    if record["type"] == "run_resumed" and not 1 <= record["continues_at"] <= record["seq"]:
        return f"it continues from seq {record['continues_at']}, which is not before it"
    if record["type"] == "run_finished" and not 1 <= (record.get("resumes_at") or 1) <= record["seq"]:
        return f"it resumes from seq {record['resumes_at']}, which is not before it"
    ended = record["type"] == "llm" and record["state"] == "finished"
    return "it has neither a response nor an error" if ended and not {"response", "error"} & record.keys() else None
