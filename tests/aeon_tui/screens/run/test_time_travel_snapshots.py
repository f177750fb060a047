"""A past moment, a pause and the differences of two passes as pictures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from textual.pilot import Pilot

from aeon_tui.app import AeonApp
from aeon_tui.screens.run.screen import RunScreen
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.passes import converged_run
from tests.aeon_tui.recordings import START
from tests.aeon_tui.sources.test_snapshots import written
from tests.sampling import sample

Compare = Callable[..., bool]
SIZES = [pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40")]
STATES = {"past": ("left_square_bracket", "left_square_bracket"), "paused": ("space",), "differences": ("d", "(")}


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize("state", STATES)
def test_time_travel_snapshots(snap_compare: Compare, tmp_path: Path, state: str, size: tuple[int, int]) -> None:
    records = converged_run().records
    source = ListSource(records if state != "paused" else records[:40], live=state == "paused")
    source.journal = written(tmp_path / "20261120-093000-a1b2c3.jsonl", records)
    app = AeonApp(tmp_path)
    screen = app.first_screen = RunScreen(source, clock=lambda: START + timedelta(seconds=100))

    async def travel(pilot: Pilot[None]) -> None:
        for key in STATES[state]:
            await pilot.press(key)
            await app.workers.wait_for_complete()
            await pilot.pause()
        source.waiting += records[40:45] if state == "paused" else []
        screen.tick()
        await app.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=travel)
