"""The opened step of a lean view: what was left in the journal is read on a thread, and the screen never waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.screen import Screen

from aeon_core.journal.view.elided import RecordOf
from aeon_core.journal.view.model import CallView, RunView
from aeon_tui.screens.latest_worker import LatestWorker
from aeon_widgets.call_rows import RowKey
from aeon_widgets.step_detail import StepDetail, step_detail

Take = Callable[[], None]


class StepDetailReader:
    """Holds in full what the selected row stands for. `has_come` is called when it has been read."""

    def __init__(self, screen: Screen[None], has_come: Callable[[], None]) -> None:
        self._has_come = has_come
        self._reading = LatestWorker(screen, "opened")
        self._wanted: tuple[RunView, int, RowKey | None] | None = None
        self._filled: StepDetail | None = None

    def filled(
        self, view: RunView, key: RowKey | None, calls: Sequence[CallView], record_of: RecordOf
    ) -> StepDetail | None:
        """Return the row's step or calls in full; None where the view holds all, or until they have been read."""
        found = step_detail(view, key, calls)
        if not found.lean:
            return None
        wanted = (view, view.last_seq, key)
        if self._wanted is None or self._wanted[0] is not view or self._wanted[1:] != wanted[1:]:
            self._wanted, self._filled = wanted, None
            self._reading.submit(lambda: self._read(wanted, found, record_of))
        return self._filled

    def _read(self, wanted: tuple[RunView, int, RowKey | None], found: StepDetail, record_of: RecordOf) -> Take:
        filled = found.filled(record_of)
        return lambda: self._take(wanted, filled)

    def _take(self, wanted: tuple[RunView, int, RowKey | None], filled: StepDetail) -> None:
        if wanted is self._wanted:
            self._filled = filled
            self._has_come()
