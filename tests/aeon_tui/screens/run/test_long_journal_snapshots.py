"""A long journal as pictures: its end while the rest is being read, and what a search in it has found."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from textual.pilot import Pilot

from aeon_core.journal.view.last_states import LastStates
from aeon_tui.app import AeonApp
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.run.search import SearchScreen
from aeon_tui.sources.base import ReadAheadSource
from aeon_widgets.match_list import MatchList, RecordText
from aeon_widgets.text_fields import FilterLine
from tests.aeon_tui.recordings import START
from tests.aeon_tui.sources.test_journal import LONG, TwoViews, journal
from tests.sampling import sample
from tests.waiting import painted, until

Compare = Callable[..., bool]
SIZES = [pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40")]


@pytest.mark.parametrize("size", sample(SIZES, 1))
def test_the_end_of_a_long_journal(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    with LastStates(journal(tmp_path, LONG)) as end:
        end.read_on()
        view = end.view()
    source = TwoViews([view], LONG)
    source.views, source.reading = [view], "reading 37 %"
    app = AeonApp(tmp_path)
    app.first_screen = RunScreen(source, clock=lambda: START + timedelta(seconds=100))

    async def read(pilot: Pilot[None]) -> None:
        await pilot.press("8", "home")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=read)


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize("opened", [False, True], ids=["list", "record"])
def test_found_in_a_run(snap_compare: Compare, tmp_path: Path, opened: bool, size: tuple[int, int]) -> None:
    path = journal(tmp_path, LONG)
    with path.open("a") as file:
        file.write(json.dumps({"v": 1, "seq": len(LONG), "type": "[b]\x1b[31m", "x": "reply 12 [/]\x1b[0m"}) + "\n")
    app = AeonApp(tmp_path)
    app.first_screen = RunScreen(ReadAheadSource(path))

    async def search(pilot: Pilot[None]) -> None:
        await pilot.press("slash")
        await pilot.pause()
        screen = pilot.app.screen
        assert isinstance(screen, SearchScreen)
        screen.query_one(FilterLine).cursor_blink = False
        await pilot.press(*"reply 12", "enter")
        await until(pilot, lambda: screen.query_one(MatchList).line_count == 4)
        await pilot.press("n", *(["v"] if opened else []))
        await until(pilot, lambda: not opened or screen.query_one(RecordText).text)
        await painted(pilot)

    assert snap_compare(app, terminal_size=size, run_before=search)
