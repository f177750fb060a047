from __future__ import annotations

import io
import sys

import pytest

from aeon_tui.app import AeonApp
from aeon_tui.platform.terminal import notification, title, title_given_back
from tests.aeon_tui.recordings import HOSTILE


@pytest.mark.parametrize("told", [title, notification])
def test_no_text_controls_the_terminal(told: object) -> None:
    sequence = told(HOSTILE + "\n" + "x" * 1_000)  # type: ignore[operator]
    inside = sequence.removeprefix("\x1b]").removesuffix("\x07")
    assert inside.isascii() or inside.isprintable()
    assert not any(character in inside for character in "\x1b\x07\n\x9c")
    assert len(inside) < 400


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_gets_its_title_back(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "__stderr__", stream)
    with title_given_back():
        stream.write("|")
    assert stream.getvalue() == ("\x1b[22;2t|\x1b[23;2t" if terminal else "|")


def test_without_a_terminal_nothing_is_written_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "__stderr__", None)
    with title_given_back():
        pass


@pytest.mark.parametrize(("focused", "urgent", "sent"), [(True, True, 1), (False, True, 2), (False, False, 1)])
async def test_the_terminal_notifies_only_without_focus(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch, focused: bool, urgent: bool, sent: int
) -> None:
    app = AeonApp(tmp_path)  # type: ignore[arg-type]
    async with app.run_test() as pilot:
        written: list[str] = []
        monkeypatch.setattr(type(app), "is_headless", False)
        monkeypatch.setattr(app._driver, "write", written.append)
        monkeypatch.setattr(type(app), "app_focus", focused)
        app.update_terminal("aeon: waiting for you", urgent=urgent)
        monkeypatch.undo()
        await pilot.pause()
    assert written == [title("aeon: waiting for you"), notification("aeon: waiting for you")][:sent]
