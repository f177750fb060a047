"""What a list of runs shows of each, from the two ends of its journal alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from aeon_core.errors import UsageError
from aeon_core.journal.locking import is_locked
from aeon_core.journal.reader import head, tail
from aeon_core.journal.values import int_of, number_of

SUFFIX = ".jsonl"
BESIDE = ("journal_recovered", "text")
"""Types of records that say nothing of where a run stands: a process may have died right after it had written them."""
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_NOT_ENDED = ("running", "interrupted")
_NOT_IN_JSON = ("parent", "forked_at")


@dataclass(frozen=True)
class RunSummary:
    """One run (contract: `runs --json`).

    `run_id` is the journal's name without its suffix, which is what names the run in every command.
    `status` is a RunResult's, or `running` while its writer lives, or `interrupted`. `passes` counts those that have
    ended. `cost_usd` is in US dollars, None where the model has no known price. `started` is ISO 8601, UTC.
    Of a fork, `parent` is the id of the run that it was forked from, `forked_at` the pass that it began with.
    """

    run_id: str
    task: str
    status: str
    model: str
    passes: int
    cost_usd: float | None
    started: str
    path: str
    parent: str | None = None
    forked_at: int | None = None

    @property
    def ended(self) -> bool:
        """Whether the journal holds how the run ended."""
        return self.status not in _NOT_ENDED

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as plain JSON, with the contract's fields alone."""
        return {name: value for name, value in asdict(self).items() if name not in _NOT_IN_JSON}


class Ending(NamedTuple):
    """What the last records of a journal tell; `status` is None where the run has not ended."""

    status: str | None
    passes: int
    cost_usd: float | None


def summarise(path: Path) -> RunSummary | None:
    """Return the summary of one journal, None where the file is none or cannot be read."""
    try:
        first = head(path)
        if first is None or not is_start(first):
            return None
        return summary_of(str(path), first, ending_of(tail(path)))
    except (UsageError, OSError):
        return None


def summary_of(path: str, first: dict[str, Any], ending: Ending) -> RunSummary:
    """Return what a `run_started` record, for which `is_start` holds, and an ending tell of a run.

    Raises OSError where the run has not ended and the file cannot be opened.
    """
    status, passes, cost_usd = ending
    parent, forked_at = forked_from(first)
    return RunSummary(
        run_id=run_id_of(path),
        task=first["task"],
        status=status if status is not None else unended_status(path),
        model=first["model"],
        passes=passes,
        cost_usd=cost_usd,
        started=first["ts"],
        path=path,
        parent=parent,
        forked_at=forked_at,
    )


def run_id_of(path: str) -> str:
    """Return the id that names a journal's run."""
    return path.rpartition(os.sep)[2].removesuffix(SUFFIX)


def is_start(first: dict[str, Any]) -> bool:
    """Return whether the fields of a `run_started` record are what Aeon writes."""
    return all(isinstance(first.get(key), str) for key in ("run", "task", "model", "ts")) and bool(
        _STAMP.fullmatch(first["ts"])
    )


def forked_from(first: dict[str, Any]) -> tuple[str | None, int | None]:
    """Return of a fork's `run_started` record the parent's run id and the pass, each None where it is not told."""
    parent = first.get("parent")
    if not isinstance(parent, dict) or not isinstance(parent.get("run_id"), str):
        return None, None
    return parent["run_id"], int_of(parent.get("pass")) or None


def last_told(newest_first: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the last record that says where a run stands, {} where none does."""
    return next((record for record in newest_first if record["type"] not in BESIDE), {})


def ending_of(newest_first: Iterator[dict[str, Any]]) -> Ending:
    """Return how a run stands as far as its last records tell, those left out that a resume took back."""
    last = last_told(newest_first)
    result = last.get("result") if last.get("type") == "run_finished" else None
    if isinstance(result, dict) and isinstance(result.get("status"), str):
        return Ending(result["status"], int_of(result.get("passes")), _dollars(result.get("cost_usd")))
    passes, cost_usd, seen_cost = 0, None, False
    for record in _that_count(chain([last], newest_first)):
        if not seen_cost and record.get("type") == "ttl":
            cost_usd, seen_cost = _dollars(record.get("cost_usd")), True
        if not passes:
            # A record within pass N says that N − 1 have ended.
            passes = int_of(record.get("pass_number")) or max(0, int_of(record.get("pass")) - 1)
    return Ending(None, passes, cost_usd)


def _that_count(newest_first: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the records but for those that a later `run_resumed` took back."""
    gone: list[range] = []
    for record in newest_first:
        if any(record.get("seq") in span for span in gone):
            continue
        if record.get("type") == "run_resumed":
            gone.append(range(int_of(record.get("continues_at")), int_of(record.get("seq"))))
        yield record


def _dollars(value: Any) -> float | None:
    dollars = number_of(value)
    return float(dollars) if dollars is not None else None


def unended_status(path: str | Path) -> str:
    """Return `running` where a process writes the journal, else `interrupted`. Raises OSError."""
    return "running" if is_being_written(path) else "interrupted"


def is_being_written(path: str | Path) -> bool:
    """Return whether a process holds the journal's lock: its writer does for as long as it lives."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return is_locked(fd)
    finally:
        os.close(fd)


def journal_entries(runs_dir: Path) -> list[os.DirEntry[str]]:
    """Return the files of a runs directory that may be journals; none where there is no such directory.

    Raises UsageError where it cannot be read.
    """
    try:
        with os.scandir(runs_dir) as entries:
            return [entry for entry in entries if entry.name.endswith(SUFFIX) and _is_file(entry)]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"the runs directory {str(runs_dir)!r} cannot be read: {reason}; name another one") from None


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # such as a link that leads in a circle
        return False
