"""Reading a journal: whole lines, long texts and plan deltas resolved, damage reported by line number (core FR-037).

A last line without its newline is torn and does not count. What is no journal at all is a UsageError.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from pydantic_core import from_json

from aeon_core.errors import UsageError
from aeon_core.journal.plan_deltas import PlanStates
from aeon_core.journal.taken_back import taken_back
from aeon_core.journal.texts import is_marked

VERSION = 1
MAX_LINE = 256 * 1024 * 1024
"""Bytes; a longer line is reported as broken and skipped."""
END_BYTES = 64 * 1024
"""How much `tail` reads; more only where the last line is longer."""

_ENVELOPE = re.compile(rb'\{\s*"v"\s*:\s*(\d+)\s*,\s*"seq"\s*:\s*\d+\s*,\s*"ts"\s*:.*?"type"\s*:\s*"(\w+)"', re.DOTALL)
_LINES_TO_TRY = 20


def record_type(line: bytes) -> str | None:
    """Return the type of the record that a line holds, from its beginning alone; None where it is no record."""
    match = _ENVELOPE.match(line[:2_000])
    return match[2].decode() if match is not None and int(match[1]) <= VERSION else None


def read_records(
    path: Path,
    *,
    texts: bool = True,
    plans: bool = True,
    damage: list[str] | None = None,
    check: Callable[[dict[str, Any]], str | None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the records of a journal in order.

    `texts` puts long texts where `{"$text": sha256}` stands for them, `plans` whole plans where a cycle holds what
    changed. What cannot be read is appended to `damage`, one line with the line's number, and left out; what `check`
    says of a record, before its plan is put in, is appended too. The lines that a resume took back are left out.
    Raises UsageError, when the first record is asked for, for a file that is no journal.
    """
    found = damage if damage is not None else []
    table: dict[str, str] = {}
    states = PlanStates()
    expected, gone = 0, taken_back(path)
    for number, line in _journal_lines(path, found):
        record = _parse(line, number, found)
        if record is None:
            continue
        if record["seq"] != expected:
            found.append(f"line {number}: seq {record['seq']} where {expected} was expected; lines are missing")
        expected = record["seq"] + 1
        if record["type"] == "text":
            table[str(record.get("sha256"))] = str(record.get("text", ""))
        elif texts and b'"$text"' in line and record["seq"] > 0:
            missing: set[str] = set()
            record = _resolved(record, table, missing)
            found.extend(f"line {number}: the text {sha256!r} is missing" for sha256 in sorted(missing))
        if check is not None and (problem := check(record)):
            found.append(f"line {number}: {problem}")
        if gone and record["type"] != "text" and any(record["seq"] in span for span in gone):
            continue
        if plans and record["type"] == "cycle" and (problem := states.resolve(record)):
            found.append(f"line {number}: {problem}")
        yield record


def _journal_lines(path: Path, damage: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each whole line; make sure early that the file is a journal."""
    known, number = False, 0
    with open_journal(path) as file:
        for number, line in _lines(file, damage):
            if not known:
                known = record_type(line) is not None
                if not known and (number >= _LINES_TO_TRY or _is_foreign(line)):
                    raise _no_journal(path)
            yield number, line
    if not known:
        raise _no_journal(path, "it is empty" if number == 0 else None)


def open_journal(path: Path) -> IO[bytes]:
    """Return the file, open for reading. Raises UsageError where there is none that could be a journal."""
    try:
        if path.is_dir():
            raise _no_journal(path, "it is a folder")
        if path.exists() and not path.is_file():
            raise _no_journal(path, "it is no regular file")
        return path.open("rb")
    except FileNotFoundError:
        raise UsageError(f"the journal {str(path)!r} does not exist; `aeon-tui runs` lists those there are") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"the journal {str(path)!r} cannot be read: {reason}") from None


def _no_journal(path: Path, why: str | None = None) -> UsageError:
    reason = why or "its lines are no records of Aeon, or of a newer version"
    return UsageError(f"{str(path)!r} is no journal: {reason}; expected a <run_id>.jsonl file that a run has written")


def _is_foreign(line: bytes) -> bool:
    """Whether a line is sound but not ours, or binary: nothing that damage would explain."""
    if b"\x00" in line[:4_096]:
        return True
    try:
        value = from_json(line, allow_inf_nan=False)
    except ValueError:
        return False
    return not (isinstance(value, dict) and value.get("v") == VERSION and "seq" in value)


def _lines(file: IO[bytes], damage: list[str]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MAX_LINE):
        number += 1
        if line.endswith(b"\n"):
            yield number, line
        elif len(line) == MAX_LINE:
            damage.append(f"line {number}: longer than {MAX_LINE} bytes")
            while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                pass


def _parse(line: bytes, number: int, damage: list[str]) -> dict[str, Any] | None:
    try:
        record = from_json(line, allow_inf_nan=False)
    except ValueError as error:
        reason = str(error).partition(" at line ")[0]
        damage.append(f"line {number}: broken ({reason})")
        return None
    if not isinstance(record, dict) or not isinstance(record.get("type"), str) or not _is_count(record.get("seq")):
        damage.append(f"line {number}: no record (it has no type or no seq)")
        return None
    return record


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _resolved(value: Any, table: dict[str, str], missing: set[str]) -> Any:
    # The parser allows 200 levels, so recursion ends well before the interpreter's limit.
    if isinstance(value, dict):
        if is_marked(value) and isinstance(literal := value.get("literal"), dict) and value["$text"] is None:
            return {key: _resolved(item, table, missing) for key, item in literal.items()}
        if len(value) == 1 and isinstance(sha256 := value.get("$text"), str):
            if sha256 in table:
                return table[sha256]
            missing.add(sha256)
            return value
        return {key: _resolved(item, table, missing) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, table, missing) for item in value]
    return value


def head(path: Path) -> dict[str, Any] | None:
    """Return the `run_started` record, its task in full; None where the file does not begin like a journal.

    Reads no further than that record. Raises UsageError where the file cannot be opened.
    """
    table: dict[str, str] = {}
    with open_journal(path) as file:
        for number, line in _lines(file, []):
            kind = record_type(line)
            record = _parse(line, number, []) if kind in ("text", "run_started") else None
            if record is None:
                return None
            if kind == "run_started":
                record["task"] = _resolved(record.get("task"), table, set())
                return record
            table[str(record.get("sha256"))] = str(record.get("text", ""))
    return None


def tail(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the last whole records, newest first, references unresolved: those in the file's last 64 kB, at least one.

    Raises UsageError where the file cannot be opened.
    """
    with open_journal(path) as file:
        end = file.seek(0, os.SEEK_END)
        wanted = END_BYTES
        while True:
            start = max(0, end - wanted)
            file.seek(start)
            chunk = file.read(end - start)
            whole = chunk[: chunk.rfind(b"\n") + 1]
            if start > 0:
                whole = whole[whole.find(b"\n") + 1 :]
            if whole or start == 0 or wanted > MAX_LINE:
                break
            wanted *= 4
    for line in reversed(whole.split(b"\n")):
        if record_type(line) is not None and (record := _parse(line, 0, [])) is not None:
            yield record
