"""Keys changed on their screen: by pressing them, with a question where one is taken."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from aeon_core.config.loading import load_values
from aeon_tui.app import AeonApp
from aeon_tui.keymap import known_keys
from aeon_tui.screens.dialogs import ConfirmDialog
from aeon_tui.screens.keys import COLUMN, HelpRow, KeyList, KeyRow, KeySettingsScreen, PressDialog, _pieces, label_of
from aeon_widgets.footer import KeyFooter
from aeon_widgets.keys import shown_key
from tests.waiting import until


@pytest.fixture(autouse=True)
def at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


@asynccontextmanager
async def changing(action: str) -> AsyncIterator[tuple[AeonApp, Pilot[None]]]:
    """Open the screen with an action selected."""
    app = AeonApp(Path("runs"))
    async with app.run_test(size=(100, 30)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.press("K")
        await until(pilot, lambda: isinstance(app.screen, KeySettingsScreen))
        await until(pilot, lambda: app.screen.query_one(KeyList).rows)
        rows = app.screen.query_one(KeyList)
        rows.cursor = [row.id for row in rows.rows].index(action)
        yield app, pilot


def test_the_key_help_cuts_no_action_where_two_or_three_columns_fit() -> None:
    for known in known_keys().values():
        row = HelpRow("  ".join(dict.fromkeys(map(shown_key, known.keys))), label_of(known.action, known.description))
        assert "".join(text for text, _ in _pieces(row, COLUMN - 1)).split() == [*row.keys.split(), *row.label.split()]


def test_an_action_with_many_keys_stays_in_its_column() -> None:
    pieces = [text for text, _ in _pieces(HelpRow("ctrl+shift+left  ctrl+shift+right  alt+f12", "Zoom"), COLUMN - 1)]
    assert pieces == ["ctrl+shift+left  ctrl+shi… ", "Zoom"]


def row_of(app: AeonApp, action: str) -> KeyRow:
    return next(row for row in app.screen.query_one(KeyList).rows if row.id == action)


async def give(app: AeonApp, pilot: Pilot[None], key: str) -> None:
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, PressDialog))
    await pilot.press(key)
    await until(pilot, lambda: not isinstance(app.screen, PressDialog))


def offers_default(app: AeonApp) -> bool:
    """Return whether the foot of the screen names the key that restores a default."""
    return any(key.description == "Default key" for key in app.screen.query_one(KeyFooter).keys)


async def test_a_key_is_assigned_by_pressing_it_and_can_be_reset() -> None:
    async with changing("run.zoom") as (app, pilot):
        assert not offers_default(app)
        await give(app, pilot, "Z")
        await until(pilot, lambda: row_of(app, "run.zoom").keys == ("Z",))
        assert row_of(app, "run.zoom").changed
        await until(pilot, lambda: load_values().app.keys == {"run.zoom": "Z"})
        await until(pilot, lambda: offers_default(app))
        await pilot.press("up")
        await until(pilot, lambda: not offers_default(app))
        await pilot.press("down")
        await until(pilot, lambda: offers_default(app))
        await pilot.press("backspace")
        await until(pilot, lambda: row_of(app, "run.zoom").keys == ("z",))
        await until(pilot, lambda: load_values().app.keys == {})


@pytest.mark.parametrize(
    ("action", "words"),
    [("confirm.previous", "Other button"), ("pane.previous", "Previous pane"), ("pane.next", "Next pane")],
)
async def test_an_action_is_named_after_what_it_does_on_its_screen(action: str, words: str) -> None:
    async with changing(action) as (app, _):
        assert row_of(app, action).what == words


@pytest.mark.parametrize(("action", "own"), [("app.quit_anywhere", "ctrl+q"), ("app.quit", "q")])
async def test_an_exit_action_gets_its_default_key_back(action: str, own: str) -> None:
    async with changing(action) as (app, pilot):
        await give(app, pilot, "f9")
        await until(pilot, lambda: row_of(app, action).keys == ("f9",))
        await pilot.press("backspace")
        await until(pilot, lambda: row_of(app, action).keys == (own,))


async def test_swapping_a_taken_key_asks_first() -> None:
    async with changing("run.zoom") as (app, pilot):
        await give(app, pilot, "f")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        said = " ".join(str(each.render()) for each in app.screen.query(".line"))
        assert said == "f is Run: Follow. After a swap, that is z."
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, KeySettingsScreen))
        assert app.user_settings.keymap == {}
        await give(app, pilot, "f")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: row_of(app, "run.zoom").keys == ("f",))
        assert row_of(app, "run.follow").keys == ("z",)
        await until(pilot, lambda: load_values().app.keys == {"run.zoom": "f", "run.follow": "z"})
        await pilot.press("backspace")
        await until(pilot, lambda: row_of(app, "run.zoom").keys == ("z",))
        assert row_of(app, "run.follow").keys == ("f",)
        await until(pilot, lambda: load_values().app.keys == {})


async def test_a_swap_shows_which_keys_remain() -> None:
    async with changing("run.zoom") as (app, pilot):
        await give(app, pilot, "f1")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        said = " ".join(str(each.render()) for each in app.screen.query(".line"))
        assert said == "f1 is Everywhere: Help. After a swap, that is ?."


@pytest.mark.parametrize(
    ("action", "key", "other"), [("run.pane_ttl", "f", "Run: Follow"), ("app.copy", "z", "Run: Zoom")]
)
async def test_a_swap_that_would_be_refused_at_the_next_start_is_not_offered(action: str, key: str, other: str) -> None:
    async with changing(action) as (app, pilot):
        await give(app, pilot, key)
        await until(pilot, lambda: app._notifications)
        assert [each.message for each in app._notifications] == [
            f"{key} is {other}. Give that action another key first."
        ]
        assert isinstance(app.screen, KeySettingsScreen)
        assert app.user_settings.keymap == {}


@pytest.mark.parametrize("key", ["escape", "z"])
async def test_escape_and_the_same_key_change_nothing(key: str) -> None:
    async with changing("run.zoom") as (app, pilot):
        await give(app, pilot, key)
        await pilot.pause()
        assert (app.user_settings.keymap, isinstance(app.screen, KeySettingsScreen)) == ({}, True)


async def test_universal_exit_keys_cannot_be_assigned() -> None:
    async with changing("run.zoom") as (app, pilot):
        await give(app, pilot, "ctrl+q")
        await until(pilot, lambda: app._notifications)
        assert "is reserved for quitting" in next(iter(app._notifications)).message
        assert app.user_settings.keymap == {}


async def test_the_keys_of_the_screen_itself_can_be_changed() -> None:
    async with changing("keys.reset") as (app, pilot):
        await give(app, pilot, "f6")
        await until(pilot, lambda: row_of(app, "keys.reset").keys == ("f6",))
        await pilot.press("f6")
        await until(pilot, lambda: row_of(app, "keys.reset").keys == ("backspace",))


async def test_a_filter_finds_a_key_and_two_clicks_reassign_it() -> None:
    async with changing("app.quit") as (app, pilot):
        await pilot.press("slash", *"ctrl+p")
        await pilot.pause()
        assert [row.id for row in app.screen.query_one(KeyList).rows] == ["app.palette"]
        await pilot.click(KeyList, offset=(10, 1), times=2)
        await until(pilot, lambda: isinstance(app.screen, PressDialog))
        await pilot.click("PressDialog Static")
        await until(pilot, lambda: isinstance(app.screen, KeySettingsScreen))


def test_a_wide_screen_shows_every_key_whole() -> None:
    rows = KeyList()
    rows.rows = [KeyRow("lines.page_down", "Runs", "Page down", ("pagedown", "ctrl+d"), False)]
    assert "pgdn  ctrl+d " in "".join(text for text, _ in rows.pieces(0, 119))
