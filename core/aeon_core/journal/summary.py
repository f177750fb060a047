"""What a list of runs shows of each, from the two ends of its journal alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.journal.reader import head, tail

SUFFIX = ".jsonl"


@dataclass(frozen=True)
class RunSummary:
    """One run (contract: `runs --json`).

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


def summarise(path: Path) -> RunSummary | None:
    """Return the summary of one journal, None where the file is none or cannot be read."""
    try:
        first = head(path)
        if first is None:
            return None
        status, passes, cost_usd = _end(tail(path))
        if status is None:
            status = "running" if is_being_written(path) else "interrupted"
    except (UsageError, OSError):
        return None
    return RunSummary(
        run_id=str(first.get("run") or path.stem),
        task=str(first.get("task") or ""),
        status=status,
        model=str(first.get("model") or ""),
        passes=passes,
        cost_usd=cost_usd,
        started=str(first.get("ts") or ""),
        path=str(path),
    )


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


def journal_files(runs_dir: Path) -> Iterator[Path]:
    """Yield the files of a runs directory that may be journals. Raises UsageError where it cannot be read."""
    try:
        with os.scandir(runs_dir) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX) and entry.is_file():
                    yield Path(entry.path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"the runs directory {str(runs_dir)!r} cannot be read: {reason}; name another one") from None
