"""What a list of runs shows of each, from the two ends of its journal alone."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.journal.reader import head, tail
from aeon_core.places import default_runs_directory

SUFFIX = ".jsonl"
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


@dataclass(frozen=True)
class RunSummary:
    """One run (contract: `runs --json`).

    `run_id` is the journal's name without its suffix, which is what names the run in every command.
    `status` is a RunResult's, or `running` while its writer lives, or `interrupted`. `passes` counts those that have
    ended. `cost_usd` is in US dollars, None where the model has no known price. `started` is ISO 8601, UTC.
    """

    run_id: str
    task: str
    status: str
    model: str
    passes: int
    cost_usd: float | None
    started: str
    path: str

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as plain JSON."""
        return asdict(self)


def list_runs(runs_dir: Path | None = None) -> list[RunSummary]:
    """Return the runs of a directory (None: the default one), newest first; files that are no journals are left out.

    Raises UsageError where the directory cannot be read; one that does not exist has no runs.
    """
    directory = runs_dir if runs_dir is not None else default_runs_directory()
    summaries = (summarise(path) for path in journal_files(directory))
    found = [summary for summary in summaries if summary is not None]
    return sorted(found, key=lambda summary: (summary.started, summary.run_id), reverse=True)


def summarise(path: Path) -> RunSummary | None:
    """Return the summary of one journal, None where the file is none or cannot be read."""
    try:
        first = _beginning(path)
        if first is None:
            return None
        status, passes, cost_usd = _end(tail(path))
        if status is None:
            status = "running" if is_being_written(path) else "interrupted"
    except (UsageError, OSError):
        return None
    return RunSummary(
        run_id=path.stem,
        task=first["task"],
        status=status,
        model=first["model"],
        passes=passes,
        cost_usd=cost_usd,
        started=first["ts"],
        path=str(path),
    )


def is_journal(path: Path) -> bool:
    """Return whether a file begins as a run's journal does; one that cannot be read does not."""
    try:
        return _beginning(path) is not None
    except (UsageError, OSError):
        return False


def _beginning(path: Path) -> dict[str, Any] | None:
    """Return the `run_started` record, None where there is none or its fields are not what Aeon writes."""
    first = head(path)
    if first is None or not all(isinstance(first.get(key), str) for key in ("run", "task", "model", "ts")):
        return None
    return first if _STAMP.fullmatch(first["ts"]) else None


def _end(newest_first: Iterator[dict[str, Any]]) -> tuple[str | None, int, float | None]:
    """Return status (None where the run has not ended), passes and cost, as far as the last records tell."""
    last = next(newest_first, {})
    result = last.get("result") if last.get("type") == "run_finished" else None
    if isinstance(result, dict) and isinstance(result.get("status"), str):
        return result["status"], _count(result.get("passes")), _dollars(result.get("cost_usd"))
    passes, cost_usd, seen_cost = 0, None, False
    for record in chain([last], newest_first):
        if not seen_cost and record.get("type") == "ttl":
            cost_usd, seen_cost = _dollars(record.get("cost_usd")), True
        if not passes:
            # A record within pass N says that N − 1 have ended.
            passes = _count(record.get("pass_number")) or max(0, _count(record.get("pass")) - 1)
    return None, passes, cost_usd


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _dollars(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def is_being_written(path: Path) -> bool:
    """Return whether a process holds the journal's lock: its writer does for as long as it lives."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # such as a link that leads in a circle
        return False


def journal_files(runs_dir: Path) -> Iterator[Path]:
    """Yield the files of a runs directory that may be journals. Raises UsageError where it cannot be read."""
    try:
        with os.scandir(runs_dir) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX) and _is_file(entry):
                    yield Path(entry.path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"the runs directory {str(runs_dir)!r} cannot be read: {reason}; name another one") from None
