"""What the line above the list of runs asks for: words, and filters such as `status:failed -model:gpt since:2d`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from aeon_core.llm import PROVIDERS

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary

Holds = Callable[["RunSummary"], bool]

STATUSES = (
    "running",
    "waiting",
    "converged",
    "accepted",
    "completed",
    "not_converged",
    "ttl_expired",
    "cost_ceiling",
    "failed",
    "aborted",
    "interrupted",
)
"""What `status:` knows; `waiting` is a running one that asks for a decision."""
KINDS = ("live", "ended", "fork", "damaged", "simulated")
"""What `is:` knows."""
FILTERS = ("status", "model", "since", "before", "is")
TIMES = ("today", "yesterday", "1h", "2d", "1w")
"""Times to offer; besides them any number of a unit, and dates."""
_UNITS = {"s": 1, "min": 60, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_AGO = re.compile(rf"(\d{{1,6}})({'|'.join(_UNITS)})")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:t\d\d:\d\d)?")
_TERM = re.compile(r"(-?)([a-z]+):(.*)", re.DOTALL)
_LOOKS_LIKE_ONE = re.compile(r"-?[a-z]{2,12}:[^:/\s]*")


@dataclass(frozen=True)
class RunFilter:
    """A parsed filter. `words` must occur in the run's texts, `text` is the words as they were typed."""

    words: tuple[str, ...] = ()
    text: str = ""
    conditions: tuple[Holds, ...] = ()
    problem: str = ""
    """What of the line does not count, and what was expected; empty where all of it counts."""

    @property
    def is_empty(self) -> bool:
        """Whether all runs pass."""
        return not self.words and not self.conditions

    def passes(self, run: RunSummary, about: str) -> bool:
        """Return whether a run passes; `about` is its texts in lower case."""
        return all(word in about for word in self.words) and all(holds(run) for holds in self.conditions)


@dataclass
class _Reading:
    words: list[str] = field(default_factory=list)
    conditions: list[Holds] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_filter(line: str, now: datetime) -> RunFilter:
    """Return what a line asks for; never raises. `now` has a time zone, the one that dates and days are of."""
    reading = _Reading()
    for term in line.split():
        _read_term(term, now, reading)
    return RunFilter(
        words=tuple(word.casefold() for word in reading.words),
        text=" ".join(reading.words),
        conditions=tuple(reading.conditions),
        problem=reading.problems[0] if reading.problems else "",
    )


def with_status(line: str, status: str) -> str:
    """Return the line with this status asked for in place of any other; without one where `status` is empty."""
    others = [term for term in line.split() if not term.casefold().startswith("status:")]
    return " ".join([f"status:{status}", *others] if status else others)


def asked_status(line: str) -> str:
    """Return the first status that the line asks for, as typed; empty if there is none."""
    asked = (term[7:] for term in line.split() if term.casefold().startswith("status:"))
    return next(asked, "")


def _read_term(term: str, now: datetime, reading: _Reading) -> None:
    match = _TERM.fullmatch(term.casefold())
    if match is None or match[2] not in FILTERS:
        reading.words.append(term)
        if _LOOKS_LIKE_ONE.fullmatch(term.casefold()) and not _may_name_a_model(term):
            reading.problems.append(
                f"unknown filter {term.partition(':')[0].lstrip('-')!r}; choose from {_listed(FILTERS)}"
            )
        return
    negated, name, value = match[1] == "-", match[2], match[3]
    if not value:
        return  # it is still being typed
    holds = _READERS[name](value, now)
    if isinstance(holds, str):
        reading.problems.append(holds)
    else:
        reading.conditions.append((lambda run: not holds(run)) if negated else holds)


def _may_name_a_model(term: str) -> bool:
    """Whether a term is a model's name as shown in the list, `PROVIDER:NAME`."""
    provider, _, name = term.casefold().partition(":")
    return bool(name) and provider in PROVIDERS


def _status(value: str, now: datetime) -> Holds | str:
    del now
    asked = [each.replace("-", "_") for each in value.split(",") if each]
    unknown = [each for each in asked if not any(known.startswith(each) for known in STATUSES)]
    if unknown:
        return f"unknown status {unknown[0]!r}; choose from {_listed(STATUSES)}"

    def holds(run: RunSummary) -> bool:
        waits = run.status == "running" and bool(run.waits_for)
        return any(run.status.startswith(each) or (waits and "waiting".startswith(each)) for each in asked)

    return holds


def _model(value: str, now: datetime) -> Holds:
    del now
    asked = [each for each in value.split(",") if each]
    return lambda run: any(each in run.model.casefold() for each in asked)


def _since(value: str, now: datetime) -> Holds | str:
    begins = _time(value, now)
    if begins is None:
        return _no_time("since", value)
    return lambda run: (at := _started(run)) is not None and at >= begins


def _before(value: str, now: datetime) -> Holds | str:
    ends = _time(value, now)
    if ends is None:
        return _no_time("before", value)
    return lambda run: (at := _started(run)) is not None and at < ends


def _is(value: str, now: datetime) -> Holds | str:
    del now
    found = next((kind for kind in KINDS if kind.startswith(value)), None)
    if found is None:
        return f"unknown kind {value!r}; choose from {_listed(KINDS)}"
    tests: dict[str, Holds] = {
        "live": lambda run: run.status == "running",
        "ended": lambda run: run.ended,
        "fork": lambda run: run.parent is not None,
        "damaged": lambda run: run.damaged,
        "simulated": lambda run: run.model.startswith("simulated:"),
    }
    return tests[found]


_READERS: dict[str, Callable[[str, datetime], Holds | str]] = {
    "status": _status,
    "model": _model,
    "since": _since,
    "before": _before,
    "is": _is,
}


def _time(value: str, now: datetime) -> datetime | None:
    """Return the moment that is meant, None where it is none: `2d` ago, a date with or without a time, a day's name."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if value in ("today", "yesterday"):
        return midnight - timedelta(days=value == "yesterday")
    try:
        if ago := _AGO.fullmatch(value):
            return now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        if _DATE.fullmatch(value):
            # As the person's clock shows it: a time zone changes with the season.
            return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _no_time(name: str, value: str) -> str:
    return (
        f"{name}:{value[:20]} is not a time; expected an age such as 30min, 2d or 1w, a date such as 2026-11-01, or "
        "today"
    )


def _started(run: RunSummary) -> datetime | None:
    try:
        return datetime.fromisoformat(run.started)
    except ValueError:
        return None


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)
