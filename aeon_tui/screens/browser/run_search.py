"""Finding runs among many: by words as they are typed, and by the full text of their journals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aeon_core.errors import AeonError
from aeon_tui.screens.browser.run_filter import STATUSES
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
