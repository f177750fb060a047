"""New run, settings, keys, first start and palette as pictures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot

from tests.aeon_tui.frame import ROWS, fill, frame_app
from tests.sampling import sample

Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def _ann(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/home/ann/.config")


SIZES = [
    pytest.param((60, 20), id="60x20"),
    pytest.param((80, 24), id="80x24"),
    pytest.param((120, 40), id="120x40"),
]


def then(*keys: str) -> Callable[[Pilot[None]], object]:
    async def settled(pilot: Pilot[None]) -> None:
        await fill(pilot)
        await pilot.press(*keys)
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    return settled


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize("screen", ["new", "new-problems", "settings", "keys", "first"])
def test_screen_snapshots(snap_compare: Compare, screen: str, size: tuple[int, int]) -> None:
    keys = ("f5",) if screen == "new-problems" else ()
    assert snap_compare(frame_app(screen), terminal_size=size, run_before=then(*keys))


def test_leaving_a_new_run_snapshot(snap_compare: Compare) -> None:
    assert snap_compare(frame_app("new"), terminal_size=(80, 24), run_before=then(*"pay", "escape"))


def test_unknown_setting_snapshot(snap_compare: Compare) -> None:
    settle = then("slash", *"nothing")
    assert snap_compare(frame_app("settings"), terminal_size=(80, 24), run_before=settle)


def test_assigning_a_key_snapshot(snap_compare: Compare) -> None:
    assert ROWS[0].id == "app.quit"
    assert snap_compare(frame_app("keys"), terminal_size=(80, 24), run_before=then("j", "enter"))


@pytest.mark.parametrize("size", sample(SIZES, 1))
def test_palette_snapshot(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def opened(pilot: Pilot[None]) -> None:
        await then("ctrl+p")(pilot)  # type: ignore[misc]
        assert isinstance(pilot.app.screen, CommandPalette)
        pilot.app.screen.query_one("CommandInput").cursor_blink = False  # type: ignore[attr-defined]
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(frame_app("first"), terminal_size=size, run_before=opened)
