"""A run in a list, read only from the two ends of its journal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from aeon_core.errors import UsageError, reason_of
from aeon_core.journal.lock import is_locked, may_be_locked
from aeon_core.journal.reader import ASKED, STATE_TYPES, head, tail
from aeon_core.journal.values import dict_of, int_of, number_of, str_of, strs_of
from aeon_core.json_safe import clean_text
from aeon_core.regular_file import closing_fd, open_regular

SUFFIX = ".jsonl"
INBOX = ".inbox"
"""The suffix of the file beside a journal that receives decisions from other terminals."""
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_NOT_ENDED = ("running", "interrupted")
_NOT_IN_JSON = ("parent", "forked_at", "completeness", "coherence", "waits_for", "damaged", "kind", "resumable")
WORKFLOW = "workflow"
"""The kind of a system2 workflow."""


class RunSummary(Struct, frozen=True, array_like=True):
    """One run (contract: `runs --json`).

    `run_id` is the journal's name without its suffix, which names the run in every command. `status` is a RunResult's,
    or `running` while a process writes it, or `interrupted`. `passes` counts finished ones. `cost_usd` is in US
    dollars, None if unknown. `started` is ISO 8601, UTC. For a fork, `parent` is the id of the run that it was forked
    from, `forked_at` the pass that it started with. `completeness` and `coherence` are those of the last assessment,
    0…1; once the run has ended, those of the last finished pass. `waits_for` is the point of the last approval that was
    asked for and not decided, empty if there is none; while the run is `running`, its process waits for it. `damaged`
    says that lines near the ends of the journal are broken or missing: a list reads no more. `kind` is `run`;
    `workflow` for one of system2, which waits for a gate or an answer and has no passes; or `transcript` for the export
    of a workflow's journal. `resumable` says that there is something to continue.
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
    completeness: float | None = None
    coherence: float | None = None
    waits_for: str = ""
    damaged: bool = False
    kind: str = "run"
    resumable: bool = False

    @property
    def ended(self) -> bool:
        """Whether the journal records how the run ended."""
        return self.status not in _NOT_ENDED

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as plain JSON, with only the contract's fields."""
        fields = {**asdict(self), "path": clean_text(self.path)}
        return {name: value for name, value in fields.items() if name not in _NOT_IN_JSON}


class Ending(NamedTuple):
    """The state in the last records of a journal; `status` is None if the run has not ended."""

    status: str | None
    passes: int
    cost_usd: float | None
    completeness: float | None = None
    coherence: float | None = None
    waits_for: str = ""
    resumable: bool = False
    """Whether a run that has ended can be resumed."""


def summarise(path: Path) -> RunSummary | None:
    """Return the summary of one journal, None if the file is not a journal or cannot be read."""
    try:
        first = head(path)
        if first is None or not is_start(first):
            return None
        # Records of another run in the file say nothing about this one.
        own = (record for record in tail(path) if record.get("run") == first["run"])
        return summary_of(str(path), first, ending_of(own))
    except (UsageError, OSError):
        return None


def summary_of(path: str, first: dict[str, Any], ending: Ending) -> RunSummary:
    """Return the summary, from the first record of a run or a workflow (`is_start` is true) and its ending.

    Raises OSError if the run has not ended and the file cannot be opened.
    """
    parent, forked_at = forked_from(first)
    status = ending.status if ending.status is not None else unended_status(path)
    resumable = ending.resumable or (status == "interrupted" and first.get("type") == "run_started")
    return RunSummary(
        run_id=run_id_of(path),
        task=first["task"],
        model=first["model"],
        started=started_at(first),
        path=path,
        parent=parent,
        forked_at=forked_at,
        kind="run" if not is_workflow_start(first) else "transcript" if "journal" in first else WORKFLOW,
        **ending._replace(status=status, resumable=resumable)._asdict(),
    )


def started_at(first: Mapping[str, Any]) -> str:
    """Return when a run started; a forked workflow begins with its parent's first record, but has its own time."""
    forked = (dict_of(first.get("parent")) or {}).get("ts")
    return forked if isinstance(forked, str) and _STAMP.fullmatch(forked) else str_of(first["ts"])


def run_id_of(path: str) -> str:
    """Return the id that names a journal's run."""
    return path.rpartition(os.sep)[2].removesuffix(SUFFIX)


def is_start(first: dict[str, Any]) -> bool:
    """Return whether the fields of a `run_started` or `workflow_start` record are valid."""
    return all(isinstance(first.get(key), str) for key in ("run", "task", "model", "ts")) and bool(
        _STAMP.fullmatch(first["ts"])
    )


def is_workflow_start(first: Mapping[str, Any]) -> bool:
    """Return whether a journal's first record is that of a workflow, or of its transcript."""
    return first.get("type") == "workflow_start" or dict_of(first.get("workflow")) is not None


def forked_from(first: dict[str, Any]) -> tuple[str | None, int | None]:
    """Return the parent's run id and the pass in a fork's `run_started` record, each None if it is not recorded."""
    parent = first.get("parent")
    if not isinstance(parent, dict) or not isinstance(parent.get("run_id"), str):
        return None, None
    return parent["run_id"], int_of(parent.get("pass")) or None


def last_state(newest_first: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the last record that holds a run's state, {} if there is none."""
    return next((record for record in newest_first if record["type"] in STATE_TYPES), {})


def ending_of(newest_first: Iterator[dict[str, Any]]) -> Ending:
    """Return a run's status from its last records, without those that a resume superseded."""
    last = last_state(newest_first)
    result = last.get("result") if last.get("type") == "run_finished" else None
    if isinstance(result, dict) and isinstance(result.get("status"), str):
        passes, scores = int_of(result.get("passes")), _scores(dict_of(result.get("convergence")) or {})
        if last.get("resumes_at") is not None:
            scores = _scores_of_finished(_not_superseded(newest_first), passes, scores)
        totals = result["status"], passes, _float(result.get("cost_usd"))
        return Ending(*totals, *scores, resumable=last.get("resumes_at") is not None)
    if last.get("type") == "workflow_end":
        total = dict_of(last.get("total_cost")) or {}
        status = str_of(last.get("status")) or None
        return Ending(status, 0, _float(total.get("cost_usd")))
    passes, cost_usd, seen_cost = 0, None, False
    scores, scored = (None, None), False
    waits_for: str | None = None
    for record in _not_superseded(chain([last], newest_first)):
        kind = record.get("type")
        if waits_for is None and kind in STATE_TYPES and kind != "run_resumed":
            waits_for = _asked(record)
        if not seen_cost and kind == "ttl":
            cost_usd, seen_cost = _float(record.get("cost_usd")), True
        if not scored and kind == "convergence":
            scores, scored = _scores(record), True
        if not passes:
            # A record within pass N says that N − 1 have ended.
            passes = int_of(record.get("pass_number")) or max(0, int_of(record.get("pass")) - 1)
    return Ending(None, passes, cost_usd, *scores, waits_for=waits_for or "")


_Scores = tuple[float | None, float | None]


def _scores_of_finished(newest_first: Iterable[dict[str, Any]], passes: int, last: _Scores) -> _Scores:
    """Return the scores of the last finished pass: a run may have ended after those of a pass that did not finish."""
    is_last = True
    for record in newest_first:
        if record.get("type") == "convergence":
            if int_of(record.get("pass")) <= passes:
                return _scores(record)
            is_last = False
    return last if is_last else (None, None)


def _scores(assessment: dict[str, Any]) -> _Scores:
    if "not_judged" in strs_of(assessment.get("reason_codes")):
        return None, None
    return _score(assessment.get("completeness_score")), _score(assessment.get("coherence_score"))


def _score(value: Any) -> float | None:
    number = number_of(value)
    return float(number) if number is not None and 0 <= number <= 1 else None


def _asked(last: dict[str, Any]) -> str:
    """Return the point of the open approval of a run: until it is decided, the run can only be resumed.

    For a workflow it is the gate, or the kind of its question.
    """
    if last.get("type") == "gate_asked":
        return f"gate {int_of(last.get('gate'))}"
    if last.get("type") not in ASKED or last.get("state") != "asked":
        return ""
    subject, point = dict_of(last.get("subject")) or last, str_of(last.get("point"))
    if point == "gate":
        return f"gate {int_of(subject.get('gate'))}"
    return point if point not in ("", "question") else str_of(subject.get("kind")).replace("_", " ")


def _not_superseded(newest_first: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the records that no later `run_resumed` superseded."""
    gone: list[range] = []
    for record in newest_first:
        if any(record.get("seq") in span for span in gone):
            continue
        if record.get("type") == "run_resumed":
            gone.append(range(int_of(record.get("continues_at")), int_of(record.get("seq"))))
        yield record


def _float(value: Any) -> float | None:
    number = number_of(value)
    return float(number) if number is not None else None


def unended_status(path: str | Path) -> str:
    """Return `running` if a process may be writing the journal, else `interrupted`. Raises OSError."""
    with closing_fd(open_regular(path)) as fd:
        return "running" if may_be_locked(fd) else "interrupted"


def is_being_written(path: str | Path) -> bool:
    """Return whether a process holds the journal's lock, as its writer does while it lives."""
    with closing_fd(open_regular(path)) as fd:
        return is_locked(fd)


def journal_entries(runs_dir: Path) -> list[os.DirEntry[str]]:
    """Return the files of a runs directory that may be journals; none if there is no such directory.

    Raises UsageError if it cannot be read.
    """
    try:
        with os.scandir(runs_dir) as entries:
            return [entry for entry in entries if entry.name.endswith(SUFFIX) and _is_file(entry)]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        where = f"the runs directory {str(runs_dir)!r}"
        raise UsageError(f"cannot read {where}: {reason_of(error)}; choose another") from None


def journal_named(name: str, folder: Path) -> Path | None:
    """Return the only journal in a folder with an id, or a prefix of it; None if there is none, or more than one.

    Raises UsageError if the folder cannot be read.
    """
    known = [Path(each.path) for each in journal_entries(folder) if name and each.name.startswith(name)]
    fitting = [path for path in known if path.stem == name] or known
    return fitting[0] if len(fitting) == 1 else None


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # such as a circular link
        return False
