"""The list of runs as pictures: families, a filter, and what a search has found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from aeon_core.journal.listing import list_runs
from aeon_core.journal.summary import RunSummary
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser import BrowserScreen
from aeon_widgets.filter_line import FilterLine
from tests.aeon_core.journal.build import finished, started, ttl, write
from tests.aeon_tui.recordings import HOSTILE
from tests.aeon_tui.test_browser import settle, summary

Compare = Callable[..., bool]
SIZES = [
    pytest.param((60, 20), id="60x20"),
    pytest.param((80, 24), id="80x24"),
    pytest.param((120, 40), id="120x40"),
]


def fork(number: int, parent: int, status: str, at: int = 1) -> RunSummary:
    run = summary(number, "design a REST API for invoices with customers and payments", status)
    return replace(run, parent=summary(parent).run_id, forked_at=at)


FAMILIES = [
    fork(55, 30, "completed", 2),
    summary(50, "publish the report", "failed"),
    fork(45, 40, "running", 3),
    fork(42, 30, "not_converged"),
    summary(41, HOSTILE, "aborted"),
    fork(40, 30, "interrupted", 2),
    fork(35, 5, "converged"),
    summary(30, "design a REST API for invoices with customers and payments"),
    summary(20, "summarise the report", "ttl_expired"),
]


def browser_app(runs: Sequence[RunSummary]) -> AeonApp:
    app = AeonApp(Path("runs"))
    app.first_screen = BrowserScreen(Path("/home/ann/invoices/.aeon/runs"), lambda directory: runs)
    return app


def then(*keys: str) -> Callable[[Pilot[None]], object]:
    async def settled(pilot: Pilot[None]) -> None:
        await settle(pilot)
        pilot.app.screen.query_one(FilterLine).cursor_blink = False
        await pilot.press(*keys)
        await settle(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, BrowserScreen)
        screen.look_at_search()
        await pilot.pause()

    return settled


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(("down", "down"), id="all"),
        pytest.param(("slash", *"rest inv"), id="filtered"),
        pytest.param(("slash", *"nothing like it"), id="none"),
    ],
)
def test_families(snap_compare: Compare, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    assert snap_compare(browser_app(FAMILIES), terminal_size=size, run_before=then(*keys))


@pytest.mark.parametrize("size", SIZES)
def test_found(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    long = f"{'what stands before it ' * 3}customers, and [b]\x1b[31m more"
    parent = {"run_id": "20261120-080000-aaaaaa", "pass": 2}
    write(tmp_path, started(), finished(answer=long), run="20261120-080000-aaaaaa")
    write(tmp_path, started(task="list the Customers", parent=parent), ttl(1), run="20261120-090000-bbbbbb")
    write(tmp_path, started(), ttl(1), run="20261120-100000-cccccc")
    app = browser_app(list_runs(tmp_path))
    assert snap_compare(app, terminal_size=size, run_before=then("slash", *"customers", "enter", "down"))
