"""The tutorial, as a newcomer follows it in the app: the demo falls short, `a` starts a second pass, `a` accepts it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aeon_core import RunConfig
from aeon_core.config.loading import LoadedConfig
from aeon_tui.app import AeonApp
from aeon_tui.sessions.run_jobs import demo_job
from aeon_tui.sessions.runner import Runner
from aeon_widgets.approval_panel import ApprovalPanel, ApprovalText
from tests.aeon_tui.screens.run.test_approval_controller import asked
from tests.waiting import until

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()


async def test_a_second_pass_is_approved_and_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    demo = replace(demo_job(LoadedConfig(RunConfig(durability="off"))), paced=False)
    runner = Runner(demo, tmp_path / "demo.jsonl")
    app = AeonApp(tmp_path, runner)
    assert f"`{demo.task}`" in TUTORIAL
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(pilot)
        question = str(app.screen.query_one(ApprovalPanel).border_title)
        assert "Not finished: the requirement is unmet" in question
        assert "Not finished: the requirement is unmet" in TUTORIAL
        await until(pilot, lambda: app.screen.query_one(ApprovalText).line_count)
        assert app.screen.query_one(ApprovalText).max_scroll_y == 0, "all of it fits 80x24"
        await pilot.press("a")
        await until(
            pilot, lambda: any(str(panel.border_title) != question for panel in app.screen.query(ApprovalPanel))
        )
        await asked(pilot)
        await pilot.press("a")
        await until(pilot, lambda: runner.result is not None)
    assert runner.result is not None
    assert (runner.result.status, runner.result.passes) == ("converged", 2)
