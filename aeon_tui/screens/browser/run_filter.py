"""The filter above the list of runs: words, and terms such as `status:failed -model:gpt since:2d`.

It is completed from what there is among the runs; its words are also searched for in the full text of journals.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.suggester import Suggester
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_core.llm import PROVIDERS
from aeon_widgets.run_list import as_tree

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
"""The values of `status:`; a `waiting` run is running and needs a decision."""
KINDS = ("live", "ended", "fork", "damaged", "simulated")
"""The values of `is:`."""
FILTERS = ("status", "model", "since", "before", "is")
TIMES = ("today", "yesterday", "1h", "2d", "1w")
"""Suggested times; any other number of a unit, and dates, are valid too."""
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
    """The part of the line that has no effect, and what was expected instead; empty if there is none."""

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
    """Parse a line; never raises. Dates and days are in the time zone of `now`."""
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
    """Return the line with this status in place of any other, or without a status if `status` is empty."""
    others = [term for term in line.split() if not term.casefold().startswith("status:")]
    return " ".join([f"status:{status}", *others] if status else others)


def asked_status(line: str) -> str:
    """Return the first status in the line, as typed; empty if there is none."""
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


def _started_at(value: str, now: datetime, name: str, compare: Callable[[datetime, datetime], bool]) -> Holds | str:
    limit = _time(value, now)
    if limit is None:
        return _no_time(name, value)
    return lambda run: (at := _started(run)) is not None and compare(at, limit)


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
    "since": partial(_started_at, name="since", compare=operator.ge),
    "before": partial(_started_at, name="before", compare=operator.lt),
    "is": _is,
}


def _time(value: str, now: datetime) -> datetime | None:
    """Return the moment that a text names, if any: `2d` ago, a date with or without a time, or a weekday."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if value in ("today", "yesterday"):
        return midnight - timedelta(days=value == "yesterday")
    try:
        if ago := _AGO.fullmatch(value):
            return now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        if _DATE.fullmatch(value):
            # In local time, since a time zone changes with the season.
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


TASK_CHARACTERS = 2_000
"""Characters of a task that a filter looks at; a full-text search covers all of it."""


class Runs:
    """The runs of a directory, prepared for filtering at each key press; built on a thread, since there may be many."""

    def __init__(self, runs: Sequence[RunSummary]) -> None:
        self.all = runs
        self.by_id = {run.run_id: run for run in runs}
        self._texts = [
            f"{run.task[:TASK_CHARACTERS]}\n{run.status}\n{run.model}\n{run.run_id}".casefold() for run in runs
        ]
        self.tree = as_tree(runs)
        """All of them."""
        self.models = [model for model, _ in Counter(run.model.casefold() for run in runs).most_common()]
        """In lower case, the most frequent first."""
        there = {run.status for run in runs} | {"waiting" for run in runs if run.status == "running" and run.waits_for}
        self.statuses = [status for status in STATUSES if status in there]
        """As a filter names them."""
        self.forks: dict[str, list[RunSummary]] = {}
        """By their parent's id, in the order given."""
        for run in runs:
            if run.parent is not None:
                self.forks.setdefault(run.parent, []).append(run)

    def matching(self, asked: RunFilter) -> Sequence[RunSummary]:
        """Return the runs that pass a filter; its words count for task, status, model and run id.

        If all runs pass, this is `all` itself.
        """
        if asked.is_empty:
            return self.all
        pairs = zip(self.all, self._texts, strict=True)
        found = [run for run, about in pairs if asked.passes(run, about)]
        return found if len(found) < len(self.all) else self.all


@dataclass(frozen=True)
class Found:
    """A run that contains a text, and the context of the last match."""

    run_id: str
    part: str
    """Where it occurs: `task`, `answer`, `prompt`."""
    excerpt: str
    seq: int | None = None
    """Of the record; None if its line is damaged."""


class RunSearch:
    """A full-text search through runs, in order. `work` runs on a thread; the rest may be called from any."""

    def __init__(self, runs: Sequence[RunSummary], text: str) -> None:
        self.text = text
        self.total = len(runs)
        self.searched = 0
        self.unreadable = 0
        self.found: list[Found] = []
        """Grows at its end."""
        self.ended = False
        self.stopped = False
        """Whether it was stopped before its end."""
        self._runs = runs

    def summary(self) -> str:
        """Return its progress in words."""
        runs = f"{len(self.found):,} of {self.total:,} match"
        unreadable = f", {self.unreadable:,} cannot be read" if self.unreadable else ""
        if self.ended:
            return f"{runs}{unreadable}{f'; stopped after {self.searched:,}' if self.stopped else ''}"
        return f"{runs}{unreadable}; searched {self.searched:,} …"

    def stop(self) -> None:
        """End the search soon."""
        self.stopped = self.stopped or not self.ended

    def work(self) -> None:
        """Search to the end, or until stopped."""
        try:
            for run in self._runs:
                if self.stopped:
                    break
                self._look(run)
                self.searched += 1
        finally:
            self.ended = True

    def _look(self, run: RunSummary) -> None:
        from aeon_core.journal.search import search_journal
        from aeon_widgets.match_list import part_words

        try:
            matches = search_journal(Path(run.path), self.text, cancelled=lambda: self.stopped, newest_first=True)
            match = next(matches, None)
        except AeonError:  # such as a journal that was deleted meanwhile
            self.unreadable += 1
        else:
            if match is not None:
                self.found.append(Found(run.run_id, part_words(match), match.excerpt, match.seq))


KNOWN = " ".join(f"{name}:" for name in FILTERS)
HINT = f"{KNOWN} · -status: excludes · tab completes"


class FilterSuggester(Suggester):
    """Completes the last term of the filter."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self.runs = Runs([])
        """Values that occur in these runs are suggested first."""

    @override
    async def get_suggestion(self, value: str) -> str | None:
        """Return the line with its last term completed; None if there is nothing to add."""
        before, term = _last_term(value)
        sign = "-" if term.startswith("-") else ""
        options = [f"{sign}{each}" for each in offered(term.removeprefix("-"), self.runs)]
        return next((before + each for each in options if each.startswith(term) and each != term), None)


def offered(term: str, runs: Runs) -> list[str]:
    """Return the completions of a term; none for an empty one or one that is no filter."""
    name, colon, value = term.partition(":")
    if not colon or name not in FILTERS:
        return [f"{each}:" for each in FILTERS if term and not colon and each.startswith(name)]
    first, comma, last = value.rpartition(",")
    return [f"{name}:{first}{comma}{each}" for each in _values(name, last, runs)]


def hint(line: str, problem: str, runs: Runs) -> str:
    """Return the hint under the line: what is wrong with it, a filter's possible values, or the filters."""
    if problem:
        return f"✖ {problem}"
    name, colon, value = _last_term(line)[1].removeprefix("-").partition(":")
    last = value.rpartition(",")[2]
    if not colon or name not in FILTERS or (found := _values(name, last, runs)) == [last]:
        return HINT
    more = " or a date as 2026-11-01" if name in ("since", "before") else ""
    return f"{name}: {' '.join(found) or 'part of its name'}{more}"


def _values(name: str, begun: str, runs: Runs) -> list[str]:
    """Return the values with this prefix, those that occur in runs first."""
    statuses = [*runs.statuses, *(each for each in STATUSES if each not in runs.statuses)]
    known = {"status": statuses, "model": runs.models, "since": TIMES, "before": TIMES, "is": KINDS}
    return [each for each in known[name] if each.startswith(begun)]


def _last_term(line: str) -> tuple[str, str]:
    """Return the text before the term that is being typed, and the term."""
    at = max(line.rfind(" "), line.rfind("\t")) + 1
    return line[:at], line[at:]
