"""A person labels the result of a run, from its screen and from the list of runs (key L)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from aeon_core.journal.labels import label_run, last_label
from aeon_core.journal.listing import Awaited
from aeon_core.journal.recovery import reopen
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.dialogs import LabelAnswer, LabelDialog
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sources.journal import FollowedSource
from aeon_widgets.keys import TOO_SOON
from aeon_widgets.virtual_list import ChoiceRows
from tests.aeon_tui.screens.browser.test_screen import NOW, summary
from tests.aeon_tui.test_run_actions import (
    SIZES,
    Compare,
    at_once,
    browsing,
    cut,
    journal,
    runs,
    said,
    shows_result,
)
from tests.waiting import until

__all__ = ["at_once", "runs"]
KEY = "sk-" + "x" * 30


def asks(app: AeonApp) -> bool:
    return isinstance(app.screen, LabelDialog) and bool(app.screen.query(ChoiceRows))


def told(app: AeonApp) -> list[str]:
    assert isinstance(app.screen, RunScreen)
    return [line.text for line in app.screen.view.log if line.type == "label"]


async def test_a_run_is_labelled_from_the_list(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        await pilot.press("L")
        await until(pilot, lambda: asks(app))
        await pilot.press("down", "tab", *"wrong sum", "enter")
        await until(pilot, lambda: said(app))
        assert said(app) == ["Labelled bad: 20261120-093000-a1b2c3"]
    assert last_label(journal(runs)) == ("bad", "wrong sum")
    record = json.loads(journal(runs).read_bytes().splitlines()[-1])
    assert (record["type"], record["pass"], record["source"]) == ("label", 2, "person")


async def test_a_run_is_labelled_on_its_screen_and_logged_once(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: shows_result(app))
        for count, key in enumerate(("down", "up")):
            await pilot.press("L")
            await until(pilot, lambda: asks(app))
            await pilot.press(key, "enter")
            await until(pilot, lambda before=count: shows_result(app) and len(told(app)) > before)
        assert told(app) == ["pass 2 labelled bad", "pass 2 labelled good"]
        assert isinstance(app.screen, RunScreen)
        assert app.screen.view.damage == []
        assert app.screen.status == "converged"


async def test_a_label_is_shown_once_if_the_journal_is_followed(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        source = FollowedSource(Awaited(journal(runs), runs))
        app.show_run(RunScreen(source))
        await until(pilot, lambda: shows_result(app))
        await pilot.press("L")
        await until(pilot, lambda: asks(app))
        await pilot.press("enter")
        await until(pilot, lambda: shows_result(app) and told(app) and said(app))
        record = label_run(journal(runs), "bad")
        await until(pilot, lambda: len(told(app)) > 1 and source.ended)
        app.note_record(journal(runs), record)
        assert told(app) == ["pass 2 labelled good", "pass 2 labelled bad"]


async def test_the_dialog_begins_with_the_last_label(runs: Path) -> None:
    label_run(journal(runs), "bad", "not what I asked")
    async with browsing(runs) as (app, pilot):
        await pilot.press("L")
        await until(pilot, lambda: asks(app))
        assert app.screen.query_one(ChoiceRows).value == "bad"
        assert app.screen.query_one(Input).value == "not what I asked"
        await pilot.press("up", "enter")
        await until(pilot, lambda: said(app))
    assert last_label(journal(runs)) == ("good", "not what I asked")


async def test_escape_labels_nothing(runs: Path) -> None:
    content = journal(runs).read_bytes()
    async with browsing(runs) as (app, pilot):
        await pilot.press("L")
        await until(pilot, lambda: asks(app))
        await pilot.press("down", "escape")
        await pilot.pause()
        assert not asks(app)
    assert journal(runs).read_bytes() == content


async def test_an_enter_typed_ahead_labels_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 3_600.0)
    async with browsing(runs) as (app, pilot):
        await pilot.press("L")
        await until(pilot, lambda: asks(app))
        await pilot.press("enter", "enter")
        await pilot.pause()
        assert asks(app)
        assert [note.message for note in app._notifications] == [TOO_SOON]
    assert last_label(journal(runs)) is None


async def test_a_run_without_a_result_cannot_be_labelled(runs: Path) -> None:
    cut(runs)
    async with browsing(runs) as (app, pilot):
        assert "F" in app.screen.active_bindings
        assert "L" not in app.screen.active_bindings
        await pilot.press("L")
        assert not asks(app)


async def test_a_run_written_by_another_process_cannot_be_labelled(runs: Path) -> None:
    writer = reopen(journal(runs))
    try:
        async with browsing(runs) as (app, pilot):
            await pilot.press("L")
            await until(pilot, lambda: said(app))
            assert "is being written by process" in said(app)[0]
            assert not asks(app)
    finally:
        writer.close()


async def test_a_secret_in_the_reason_is_not_written(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        await pilot.press("L")
        await until(pilot, lambda: asks(app))
        app.screen.query_one(Input).value = f"it shows {KEY}"
        await pilot.press("enter")
        await until(pilot, lambda: said(app))
    assert KEY.encode() not in journal(runs).read_bytes()
    assert last_label(journal(runs)) is not None


@pytest.mark.parametrize("size", SIZES)
def test_dialog_snapshot(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = AeonApp(Path("runs"))
    screen = BrowserScreen(Path("/home/ann/runs"), lambda _: [summary(30)], lambda: NOW)
    screen.preview_wanted = False
    app.first_screen = screen
    before = LabelAnswer("bad", "the answer has no\n\x1b[31msum")

    async def ask(pilot: Pilot[None]) -> None:
        await pilot.app.workers.wait_for_complete()
        pilot.app.push_screen(LabelDialog("20261120-093000-a1b2c3", before))
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=ask)
