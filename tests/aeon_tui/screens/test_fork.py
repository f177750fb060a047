"""The dialog of a fork: what is filled in, what may be wrong, and what it answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from aeon_tui.app import AeonApp
from aeon_tui.screens.fork import ForkAnswer, ForkDialog, Parent

PARENT = Parent(Path("20261120-093000-a1b2c3.jsonl"), "simulated:default", 50, 2)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.key_guard.SILENCE_SECONDS", 0.0)


class Asked:
    """The dialog of a fork, and what it was answered with."""

    def __init__(self, parent: Parent = PARENT) -> None:
        self.answers: list[ForkAnswer | None] = []
        self.app = AeonApp(Path("runs"))
        self.dialog = ForkDialog(parent)


@asynccontextmanager
async def asked(parent: Parent = PARENT) -> AsyncIterator[tuple[Asked, Pilot[None]]]:
    fork = Asked(parent)
    async with fork.app.run_test(size=(80, 24)) as pilot:
        fork.app.push_screen(fork.dialog, fork.answers.append)
        await pilot.pause()
        yield fork, pilot


async def test_enter_takes_what_is_filled_in() -> None:
    async with asked() as (fork, pilot):
        await pilot.press("enter")
        await pilot.pause()
    assert fork.answers == [ForkAnswer(2, "simulated:default", 50)]


async def test_an_enter_that_was_typed_ahead_forks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.key_guard.SILENCE_SECONDS", 3_600.0)
    async with asked() as (fork, pilot):
        await pilot.press("enter")
        await pilot.pause()
        assert fork.app.screen is fork.dialog
    assert fork.answers == []


async def test_escape_forks_nothing() -> None:
    async with asked() as (fork, pilot):
        await pilot.press("3", "escape")
        await pilot.pause()
    assert fork.answers == [None]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (("0",), "the pass is '0'; expected a whole number, 1 or more"),
        (("backspace",), "the pass is ''; expected a whole number, 1 or more"),
        (("tab", "backspace"), "the model is empty; expected PROVIDER:NAME"),
        (("tab", "tab", "minus"), "the TTL is '-'; expected a whole number, 0 or more"),
    ],
)
async def test_what_is_wrong_in_a_field_is_said_in_the_dialog(keys: tuple[str, ...], problem: str) -> None:
    async with asked() as (fork, pilot):
        await pilot.press(*keys, "enter")
        await pilot.pause()
        assert str(fork.dialog.query_one("#problem", Static).content) == f"✖ {problem}"
        assert fork.answers == []


async def test_a_number_of_thousands_of_digits_that_was_pasted_is_refused() -> None:
    async with asked() as (fork, pilot):
        fork.dialog.query_one("#pass", Input).value = "9" * 5_000
        await pilot.press("enter")
        await pilot.pause()
        told = str(fork.dialog.query_one("#problem", Static).content)
        assert told == f"✖ the pass is '{'9' * 40}'; expected a whole number, 1 or more"
        assert fork.answers == []
