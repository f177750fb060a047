"""A run's status in a word: what its records say, and who writes or reads them."""

from __future__ import annotations

from aeon_core.journal.view.reducer import fold
from aeon_tui.screens.run.status import status_of
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.recordings import Recording


def test_a_run_with_an_unreadable_result_has_ended() -> None:
    recording = Recording()
    recording.finish("converged", answer={"$text": "a" * 64})
    view = fold(recording.records)
    assert view.result is not None
    assert view.result.answer is None
    assert status_of(view, ListSource([]), None) == "converged"
