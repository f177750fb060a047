"""A run of this app continues while its past is shown: what it asks is shown and decided at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon_core.journal.reader import read_records
from aeon_core.journal.view.reducer import fold
from aeon_tui.screens.run.screen import RunScreen
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.run_header import RunHeader
from tests.aeon_tui.screens.run.test_reviews import Reviewed
from tests.waiting import until


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


async def test_a_question_is_shown_in_the_past_and_decided_there_about_now(tmp_path: Path) -> None:
    reviewed = Reviewed(tmp_path, "plan", "pass")
    async with reviewed.app.run_test(size=(120, 40)) as pilot:
        first = await reviewed.question(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, RunScreen)
        screen.show_moment(1)
        await until(pilot, lambda: screen.travel.snapshot is not None)
        await pilot.press("a")
        second = await reviewed.question(pilot, first)
        assert second.point == "pass"
        assert screen.travel.snapshot is not None
        assert screen.travel.snapshot.seq == 1, "the reader stays where they are"
        assert "the run waits for you" in screen.query_one(RunHeader).render().plain
        assert screen.query_one(ApprovalPanel).display
        await pilot.press("escape")
        await until(pilot, lambda: screen.travel.snapshot is None)
        screen.show_moment(2)
        await until(pilot, lambda: screen.travel.snapshot is not None)
        await pilot.press("c")
        await until(pilot, lambda: reviewed.runner.result is not None)
        await until(pilot, lambda: screen.view.result is not None)
        assert screen.view == fold(read_records(reviewed.runner.journal)), "nothing is lost"
    assert [each[:3] for each in reviewed.told] == [("plan", 1, "approve"), ("pass", 1, "accept")]
    assert reviewed.runner.result is not None
    assert reviewed.runner.result.status == "accepted"
