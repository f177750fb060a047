"""How a run of another process looks while it is waited for, asks, and has died. See `test_snapshots`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from aeon_core.paths import default_runs_directory
from aeon_tui.app import AeonApp
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sources.journal import notice_of
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.recordings import RUN_ID, START, live_run
from tests.aeon_tui.screens.run.test_run_snapshots import SIZES, Compare, then
from tests.aeon_tui.sources.test_followed import approval
from tests.sampling import sample


def waiting() -> ListSource:
    source = ListSource([])
    source.ended = False
    source.waiting = True  # type: ignore[misc]
    source.reading = "waiting for the run 'nightly' in '/home/ann/runs' …"
    return source


def asking() -> ListSource:
    records = live_run().records
    return ListSource([*records, approval(records[-1], state="asked")], live=True)


def died() -> ListSource:
    source = ListSource(live_run().records)
    source.journal = default_runs_directory() / f"{RUN_ID}.jsonl"
    source.notice = notice_of("interrupted", source.journal)
    return source


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize("source", [waiting, asking, died])
def test_watching(snap_compare: Compare, source: Callable[[], ListSource], size: tuple[int, int]) -> None:
    app = AeonApp(Path("runs"))
    app.first_screen = RunScreen(source(), clock=lambda: START + timedelta(seconds=41))
    assert snap_compare(app, terminal_size=size, run_before=then())
