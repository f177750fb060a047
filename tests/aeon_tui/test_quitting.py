"""The app is quit in any moment: also before a screen has been made, and while one is taken down."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.screen import Screen

from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.fork import ForkDialog, Parent
from aeon_tui.screens.keys import KeysScreen
from aeon_tui.screens.replay import replay_screen
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.run.search import SearchScreen
from aeon_tui.sources.base import ReadAheadSource
from tests.aeon_tui.recordings import RUN_ID, finished_run
from tests.sampling import sample

SCREENS: dict[str, Callable[[Path], Screen[object]]] = {
    "browser": lambda journal: BrowserScreen(journal.parent),
    "fork": lambda journal: ForkDialog(Parent(journal, "simulated:default", 50, 1)),
    "keys": lambda _: KeysScreen({}),
    "run": lambda journal: RunScreen(ReadAheadSource(journal)),
    "replay": replay_screen,
    "search": lambda journal: SearchScreen(ReadAheadSource(journal), journal),
}


@pytest.mark.parametrize("turns", sample([2, 0, 6, 14, 30]))
@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_being_created_does_not_delay_quitting(tmp_path: Path, name: str, turns: int) -> None:
    journal = tmp_path / f"{RUN_ID}.jsonl"
    journal.write_text("".join(f"{json.dumps(record)}\n" for record in finished_run().records))
    app = AeonApp(tmp_path)
    async with app.run_test(size=(80, 24)):
        app.push_screen(SCREENS[name](journal))
        for _ in range(turns):
            await asyncio.sleep(0)
        app.exit()
    assert app.return_code in (None, 0)
