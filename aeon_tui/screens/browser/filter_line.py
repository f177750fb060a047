"""Narrowing a list of runs as one types, with suggestions, and searching the full text of their journals."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.suggester import Suggester
from textual.timer import Timer
from textual.widgets import Input
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_tui.screens.browser.actions import RunsScreen
from aeon_tui.screens.browser.run_filter import (
    FILTERS,
    KINDS,
    STATUSES,
    TIMES,
    RunFilter,
    asked_status,
    read_filter,
    with_status,
)
from aeon_tui.screens.browser.widgets import BrowserTitle, FilterHint
from aeon_widgets.filter_line import FilterLine
from aeon_widgets.run_list import RunList
from aeon_widgets.run_tree import as_tree

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary
    from aeon_tui.screens.browser.run_filter import RunFilter


TASK_CHARACTERS = 2_000
"""Of a task that a filter looks at; a search of the full text knows all of it."""


class Runs:
    """The runs of a directory, prepared to be filtered at each key; made on a thread, where they are many."""

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

        Where these are all runs, it is `all` itself.
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
    """What holds it: `task`, `answer`, `prompt`."""
    excerpt: str
    seq: int | None = None
    """Of the record; None where its line is damaged."""


class RunSearch:
    """A search through the full text of runs, the first of them first. `work` is for a thread; all else for any."""

    def __init__(self, runs: Sequence[RunSummary], text: str) -> None:
        self.text = text
        self.total = len(runs)
        self.searched = 0
        self.unreadable = 0
        self.found: list[Found] = []
        """Grows at its end."""
        self.ended = False
        self.stopped = False
        """Whether it was told to stop before its end."""
        self._runs = runs

    def told(self) -> str:
        """Return in words how far it is."""
        runs = f"{len(self.found):,} of {self.total:,} match"
        unreadable = f", {self.unreadable:,} cannot be read" if self.unreadable else ""
        if self.ended:
            return f"{runs}{unreadable}{f'; stopped after {self.searched:,}' if self.stopped else ''}"
        return f"{runs}{unreadable}; searched {self.searched:,} …"

    def stop(self) -> None:
        """End it soon."""
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


@dataclass(frozen=True)
class Present:
    """What there is among the runs: it is offered first."""

    models: Sequence[str] = ()
    statuses: Sequence[str] = ()


class FilterSuggester(Suggester):
    """Completes the last term of the line."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self.present = Present()

    @override
    async def get_suggestion(self, value: str) -> str | None:
        """Return the line with its last term completed; None where there is nothing to add."""
        before, term = _last_term(value)
        sign = "-" if term.startswith("-") else ""
        options = [f"{sign}{each}" for each in offered(term.removeprefix("-"), self.present)]
        return next((before + each for each in options if each.startswith(term) and each != term), None)


def offered(term: str, present: Present) -> list[str]:
    """Return what a term that was begun may become; nothing for one that is empty or no filter."""
    name, colon, value = term.partition(":")
    if not colon or name not in FILTERS:
        return [f"{each}:" for each in FILTERS if term and not colon and each.startswith(name)]
    first, comma, last = value.rpartition(",")
    return [f"{name}:{first}{comma}{each}" for each in _values(name, last, present)]


def hint(line: str, problem: str, present: Present) -> str:
    """Return the hint under the line: what is wrong with it, a filter's possible values, or the filters."""
    if problem:
        return f"✖ {problem}"
    name, colon, value = _last_term(line)[1].removeprefix("-").partition(":")
    last = value.rpartition(",")[2]
    if not colon or name not in FILTERS or (found := _values(name, last, present)) == [last]:
        return HINT
    more = " or a date as 2026-11-01" if name in ("since", "before") else ""
    return f"{name}: {' '.join(found) or 'part of its name'}{more}"


def _values(name: str, begun: str, present: Present) -> list[str]:
    """Return the values that begin so, those that there are runs of first."""
    statuses = [*present.statuses, *(each for each in STATUSES if each not in present.statuses)]
    known = {"status": statuses, "model": present.models, "since": TIMES, "before": TIMES, "is": KINDS}
    return [each for each in known[name] if each.startswith(begun)]


def _last_term(line: str) -> tuple[str, str]:
    """Return the text before the term that is being typed, and the term."""
    at = max(line.rfind(" "), line.rfind("\t")) + 1
    return line[:at], line[at:]


FOUND_SECONDS = 0.1
"""How often what a search has found is shown."""


class FilteredScreen(RunsScreen):
    """A screen with a FilterLine and a FilterHint over its list. `clock` gives the time that ages are computed from."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__()
        self.clock = clock
        self.runs: Runs | None = None
        """None as long as the directory has not been read, or cannot be."""
        self.search: RunSearch | None = None
        self.shown_of_search = 0
        self.suggester = FilterSuggester()
        self._watch: Timer | None = None

    @abstractmethod
    def show_runs(self, *, keep: bool = True) -> None:
        """Show what there is of the runs: those found, those that pass the filter, or all; `keep` the selection."""

    @property
    def asked(self) -> RunFilter:
        """What the line asks for."""
        return read_filter(self.query_one(FilterLine).value, self.clock().astimezone())

    def show_hint(self, problem: str) -> None:
        """Say under the line what it knows, or what of it does not count."""
        line = self.query_one(FilterLine).value
        self.query_one(FilterHint).update_hint(hint(line, problem, self.suggester.present), problem=bool(problem))

    def action_next_status(self) -> None:
        """Ask for the next status that there is among the runs, after the last one for all."""
        if self.runs is None:
            return
        line = self.query_one(FilterLine).value
        choices = ["", *self.runs.statuses]
        asked = asked_status(line)
        at = choices.index(asked) if asked in choices else 0
        self.action_ask(with_status(line, choices[(at + 1) % len(choices)]))

    def action_ask(self, line: str) -> None:
        """Show the runs that a filter's line lets pass."""
        self.set_class(bool(line), "-filtered")
        filter_line = self.query_one(FilterLine)
        filter_line.value = line
        filter_line.cursor_position = len(line)
        self.query_one(RunList).focus()
        self.refresh_bindings()

    def action_filter(self) -> None:
        """Open the line that narrows the list."""
        self.add_class("-filtered")
        self.set_focus(self.query_one(FilterLine))  # at once: the next key is a letter
        self.show_hint(self.asked.problem)
        self.refresh_bindings()

    def action_back(self) -> None:
        """Stop a search that is going on; else show all runs again."""
        if self.search is not None and not self.search.ended:
            self.search.stop()
            return
        self.drop_search()
        self.remove_class("-filtered")
        self.query_one(FilterLine).value = ""
        self.query_one(RunList).focus()
        self.show_runs()
        self.refresh_bindings()

    @on(Input.Changed)
    def _narrow(self) -> None:
        self.drop_search()
        self.show_runs(keep=not self.query_one(FilterLine).value)

    @on(Input.Submitted)
    def _search_texts(self) -> None:
        asked = self.asked
        if asked.problem:
            return  # in the list, the letters that mend the line would be keys
        self.query_one(RunList).focus()
        if not asked.text or self.runs is None:
            return
        self.drop_search()
        of = RunFilter(conditions=asked.conditions)
        search = self.search = RunSearch(self.runs.matching(of), asked.text)
        self.run_worker(search.work, thread=True, group="search", exit_on_error=False)
        self._watch = self.set_interval(FOUND_SECONDS, self.look_at_search)
        self.show_runs()

    def look_at_search(self) -> None:
        """Show what a search has found since."""
        search = self.search
        if search is None or self.runs is None:
            return
        ended = search.ended
        if ended or len(search.found) != self.shown_of_search:
            self.show_runs()
        else:
            self.query_one(BrowserTitle).update_count(search.told())
        if ended and self._watch is not None:
            self._watch.stop()

    def drop_search(self) -> None:
        """End a search, and leave what it found."""
        if self._watch is not None:
            self._watch.stop()
        if self.search is not None:
            self.search.stop()
            self.search = None
