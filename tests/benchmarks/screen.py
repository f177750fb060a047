"""The app on a journal of a gigabyte: how soon its end is shown, and how long the screen ever waits meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from aeon_tui.app import AeonApp
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.run.search import RecordSearch
from aeon_tui.sources.journal import JournalSource

ROUNDS = 7
SIZE = (120, 40)
TICK_SECONDS = 0.001
SETTLE_SECONDS = 0.2
"""After which the first screen has been drawn."""


async def _first_screen(path: Path) -> float:
    """Return the seconds from choosing the run in the list until its state has been drawn."""
    app = AeonApp(path.parent / "none")
    painted: list[float] = []
    async with app.run_test(size=SIZE):
        await asyncio.sleep(SETTLE_SECONDS)
        began = time.perf_counter()
        app.open_journal(path)
        while not (isinstance(app.screen, RunScreen) and app.screen.view.last_seq >= 0):
            await asyncio.sleep(TICK_SECONDS)
        app.screen.call_after_refresh(lambda: painted.append(time.perf_counter() - began))
        while not painted:
            await asyncio.sleep(TICK_SECONDS)
    return painted[0]


def first_screens(paths: dict[str, Path]) -> dict[str, float]:
    """Return the least seconds of some rounds until each journal's first screen is drawn, in turn."""
    best = dict.fromkeys(paths, float("inf"))
    for _ in range(ROUNDS):
        for name, path in paths.items():
            best[name] = min(best[name], asyncio.run(_first_screen(path)))
    return best


async def _gaps(path: Path, work: Callable[[JournalSource], Callable[[], bool]]) -> tuple[float, list[float]]:
    """Return how long the work took in seconds, and how long the screen was away each time it wanted its turn."""
    gaps: list[float] = []
    app = AeonApp(path.parent)
    source = JournalSource(path)
    app.first_screen = screen = RunScreen(source)
    async with app.run_test(size=SIZE):
        while screen.view.last_seq < 0:
            await asyncio.sleep(0.01)
        await asyncio.sleep(SETTLE_SECONDS)
        is_done, began = work(source), time.perf_counter()
        while not is_done():
            asked = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            gaps.append(time.perf_counter() - asked - TICK_SECONDS)
        return time.perf_counter() - began, gaps


def while_reading(path: Path) -> tuple[float, list[float]]:
    """Return seconds and gaps of the whole journal being read behind the screen."""
    return asyncio.run(_gaps(path, lambda source: lambda: source.ended))


def while_searching(path: Path, text: str) -> tuple[float, list[float]]:
    """Return seconds and gaps of a search through it; nothing else is read."""

    def work(source: JournalSource) -> Callable[[], bool]:
        source.close()
        search = RecordSearch(path, text)
        return lambda: search.ended

    return asyncio.run(_gaps(path, work))
