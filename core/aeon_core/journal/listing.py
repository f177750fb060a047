"""The list of a great many runs: two short reads a run, and of those that have ended none the next time.

What was read is kept in a file beside the journals, which may be deleted at will: it only saves time.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from aeon_core.journal.reader import record_type
from aeon_core.journal.summary import (
    _STAMP,
    SUFFIX,
    RunSummary,
    _end,
    _is_file,
    is_being_written,
    journal_files,
    summarise,
)
from aeon_core.places import default_runs_directory

CACHE = ".runs-list"
"""Name of the file in the runs directory."""
ENOUGH = 500
"""Runs of which a cache saves more than it costs."""
_STALE = 0.01
"""The part of the runs that may have changed before the cache is written again."""
_VERSION = 1
_TEXTS = ("run", "task", "model", "ts")
_ENDS = 16 * 1024
"""Bytes that are read at each end of a journal."""


_Row = tuple[int, int, str, str, str, int, float | None, str]
"""Of a run, as its journal told it when the file had this size and mtime_ns: these two, task, status (empty where it
has not ended), model, passes, cost_usd, started."""


def list_runs(runs_dir: Path | None = None, *, cache: bool = True) -> list[RunSummary]:
    """Return the runs of a directory (None: the default one), newest first; files that are no journals are left out.

    `cache` says whether what is read is kept in the directory, where it holds many runs. Raises UsageError where the
    directory cannot be read; one that does not exist has no runs.
    """
    directory = runs_dir if runs_dir is not None else default_runs_directory()
    files = _files(directory)
    file = directory / CACHE if cache and len(files) >= ENOUGH else None
    known = _load(file) if file is not None else {}
    rows: dict[str, _Row] = {}
    found = [summary for each in files if (summary := _summary(each, known, rows)) is not None]
    if file is not None and _differ(known, rows) > len(rows) * _STALE:
        _save(file, rows)
    return sorted(found, key=lambda summary: (summary.started, summary.run_id), reverse=True)


def _differ(known: dict[str, _Row], rows: dict[str, _Row]) -> int:
    return sum(known.get(name) is not row for name, row in rows.items()) + len(known.keys() - rows.keys())


def _files(directory: Path) -> list[os.DirEntry[str]]:
    """Return what may be journals. Raises UsageError where the directory cannot be read."""
    try:
        with os.scandir(directory) as entries:
            return [entry for entry in entries if entry.name.endswith(SUFFIX) and _is_file(entry)]
    except (OSError, ValueError):
        list(journal_files(directory))  # which says what is wrong with it
        return []


def _summary(entry: os.DirEntry[str], known: dict[str, _Row], rows: dict[str, _Row]) -> RunSummary | None:
    """Return the summary of a run, and put into `rows` what of it only a change of the file can change."""
    try:
        before = entry.stat()
        row = known.get(entry.name)
        if row is not None and row[:2] == (before.st_size, before.st_mtime_ns):
            rows[entry.name] = row
            return _from_row(entry, row)
    except OSError:
        return None
    found = _ended_run(entry, before.st_size) or summarise(Path(entry.path))
    if found is not None:
        status = "" if found.status in ("running", "interrupted") else found.status
        facts = (found.task, status, found.model, found.passes, found.cost_usd, found.started)
        rows[entry.name] = (before.st_size, before.st_mtime_ns, *facts)
    return found


def _from_row(entry: os.DirEntry[str], row: _Row) -> RunSummary:
    _, _, task, status, model, passes, cost_usd, started = row
    if not status:
        status = "running" if is_being_written(Path(entry.path)) else "interrupted"
    run_id = entry.name.removesuffix(SUFFIX)
    return RunSummary(run_id, task, status, model, passes, cost_usd, started, entry.path)


def _ended_run(entry: os.DirEntry[str], size: int) -> RunSummary | None:
    """Return the summary of a run whose first and last lines tell it plainly, else None."""
    try:
        fd = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            beginning = os.pread(fd, _ENDS, 0)
            end = beginning if size <= _ENDS else os.pread(fd, _ENDS, size - _ENDS)
        finally:
            os.close(fd)
    except OSError:
        return None
    last_line = end.rfind(b"\n", 0, -1) + 1
    if not last_line or not end.endswith(b"\n"):
        return None
    first, last = (
        _record(beginning[: beginning.find(b"\n") + 1], "run_started"),
        _record(end[last_line:], "run_finished"),
    )
    if first is None or last is None or not all(isinstance(first.get(key), str) for key in _TEXTS):
        return None
    status, passes, cost_usd = _end(iter([last]))
    if status is None or not _STAMP.fullmatch(first["ts"]):
        return None
    return RunSummary(
        run_id=entry.name.removesuffix(SUFFIX),
        task=first["task"],
        status=status,
        model=first["model"],
        passes=passes,
        cost_usd=cost_usd,
        started=first["ts"],
        path=entry.path,
    )


def _record(line: bytes, kind: str) -> dict[str, Any] | None:
    if record_type(line) != kind:
        return None
    try:
        record = from_json(line, allow_inf_nan=False)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("seq"), int) else None


def _load(file: Path) -> dict[str, _Row]:
    """Return what was kept; nothing where it cannot be read, or is of another version."""
    try:
        version, rows = _adapter().validate_json(file.read_bytes(), strict=True)
    except (OSError, ValidationError):
        return {}
    return rows if version == _VERSION else {}


def _save(file: Path, rows: dict[str, _Row]) -> None:
    """Keep what is known for the next time; a directory that cannot be written keeps nothing."""
    with contextlib.suppress(OSError):
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f"{CACHE}.")
        try:
            with os.fdopen(descriptor, "wb") as out:
                out.write(_adapter().dump_json((_VERSION, rows)))
            Path(name).replace(file)
        except OSError:
            Path(name).unlink(missing_ok=True)


def _adapter() -> TypeAdapter[tuple[int, dict[str, _Row]]]:
    return TypeAdapter(tuple[int, dict[str, _Row]])
