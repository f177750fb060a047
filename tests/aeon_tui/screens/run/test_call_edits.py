"""The arguments of a call are edited in the app before it is made."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest

from aeon_core import ApprovalDecision
from aeon_tui.app import AeonApp
from aeon_tui.screens.run.approval_controller import TOO_LATE
from aeon_widgets.approval_panel import ApprovalPanel
from tests.aeon_tui.screens.run.test_approval_controller import Erasing, asked
from tests.waiting import until


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


async def test_the_arguments_of_a_call_are_edited_before_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(AeonApp, "suspend", lambda _: contextlib.nullcontext())
    script = tmp_path / "editor"
    script.write_text("#!/bin/sh\nsed -i 's/^path: .*/path: mine.txt/' \"$1\"\n")
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(script))
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        await asked(pilot)
        await pilot.press("e")
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.erased == ["mine.txt"]


async def test_an_edit_that_comes_too_late_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        screen = await asked(pilot)
        panel = screen.query_one(ApprovalPanel)
        waiting = erasing.runner.broker.waiting
        assert waiting is not None
        erasing.runner.broker.decide(waiting.digest, ApprovalDecision(decision="reject"))
        screen.asking.decide(panel, ApprovalDecision(decision="edit", edited={"path": "mine.txt"}))
        await until(pilot, lambda: TOO_LATE in [each.message for each in pilot.app._notifications])
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.erased == []
