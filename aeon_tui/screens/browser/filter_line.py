"""Narrowing a list of runs as one types, and searching the full text of their journals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime

from textual import on
from textual.timer import Timer
from textual.widgets import Input

from aeon_tui.screens.browser.actions import RunsScreen
from aeon_tui.screens.browser.filter_suggestions import FilterSuggester, hint
from aeon_tui.screens.browser.run_filter import RunFilter, asked_status, read_filter, with_status
from aeon_tui.screens.browser.run_search import Runs, RunSearch
from aeon_tui.screens.browser.widgets import BrowserTitle, FilterHint
from aeon_widgets.filter_line import FilterLine
from aeon_widgets.run_list import RunList

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
