"""How it looks to steer: a reason, answers, what a reply becomes, an end by the TTL, a run's family, quitting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from aeon_core.config.schema import RunConfig
from aeon_tui.app import AeonApp
from aeon_tui.screens.dialogs import QuitDialog
from aeon_tui.screens.fork import LineageScreen
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.run_jobs import NewRunJob
from aeon_tui.sessions.runner import Runner
from aeon_widgets.run_list import RunList
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.passes import QUESTION, Passes, first_pass, second_pass
from tests.aeon_tui.screens.browser.test_browser_snapshots import FAMILIES, TASK, browser_app
from tests.aeon_tui.screens.browser.test_browser_snapshots import then as in_the_list
from tests.aeon_tui.screens.browser.test_screen import NOW
from tests.aeon_tui.screens.run import test_review_snapshots as reviews
from tests.aeon_tui.screens.run.test_reply_stream import CHANGES, PLAN, VERDICT, halves
from tests.aeon_tui.screens.run.test_run_snapshots import run_app, then
from tests.waiting import painted, until

Compare = Callable[..., bool]
SIZES = pytest.mark.parametrize("size", [pytest.param((80, 24), id="80x24"), pytest.param((140, 45), id="140x45")])
TWO_QUESTIONS = {**reviews.PASS, "questions": [*reviews.PASS["questions"], "For whom is it?"]}


@SIZES
@pytest.mark.parametrize(
    ("subject", "keys"),
    [
        pytest.param(reviews.PASS, ("w", *"name the users first"), id="reason"),
        pytest.param(TWO_QUESTIONS, ("enter", *"at most ten endpoints", "enter"), id="answers"),
    ],
)
def test_feedback_for_the_next_pass(
    snap_compare: Compare,
    monkeypatch: pytest.MonkeyPatch,
    subject: dict[str, Any],
    keys: tuple[str, ...],
    size: tuple[int, int],
) -> None:
    reviews.test_review(snap_compare, monkeypatch, reviews.second_pass_assessed, "pass", subject, keys, size)


def planning() -> Passes:
    run = Passes()
    run.phase("plan")
    return run


@pytest.mark.usefixtures("drawn_frames")
@SIZES
@pytest.mark.parametrize(
    ("run", "purpose", "value", "cut"),
    [
        pytest.param(planning, "plan", PLAN, "The f", id="plan"),
        pytest.param(first_pass, "refine", CHANGES, "not nee", id="refine"),
        pytest.param(first_pass, "judge", VERDICT, '"met": "no"', id="judge"),
    ],
)
def test_a_reply_while_it_arrives(
    snap_compare: Compare,
    run: Callable[[], Passes],
    purpose: str,
    value: dict[str, Any],
    cut: str,
    size: tuple[int, int],
) -> None:
    recorded = run()
    recorded.ask(purpose)
    asked_at = datetime.fromisoformat(recorded.records[-1]["ts"])
    runner = Runner(NewRunJob("task", RunConfig()), Path("runs/r.jsonl"))
    runner.stream._now = lambda: 0.0
    app, source = AeonApp(Path("runs")), ListSource(recorded.records, live=True)
    screen = app.first_screen = RunScreen(source, runner, clock=lambda: asked_at + timedelta(seconds=4))

    async def write(pilot: Pilot[None]) -> None:
        screen.tick()
        await pilot.pause()
        runner.stream.add(purpose, None, halves(value, cut)[0])
        runner.stream._now = lambda: 4.0
        screen.tick()
        await painted(pilot)

    assert snap_compare(app, terminal_size=size, run_before=write)


def expired() -> Passes:
    run = second_pass()
    metadata = {"incomplete_steps": ["s3-r1", "s3.1", "s3.2"], "pass_number": 2, "reason_codes": ["ttl_expired"]}
    ttl = {"limit": 50, "allocated": 40, "spent": 40, "remaining": 0}
    run.finish(
        "ttl_expired", answer="Not finished.", ttl=ttl, ttl_expired_metadata=metadata, follow_up_questions=[QUESTION]
    )
    return run


@SIZES
def test_an_end_by_the_ttl(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(run_app(expired()), terminal_size=size, run_before=then())


@SIZES
def test_the_family_of_a_run(snap_compare: Compare, size: tuple[int, int]) -> None:
    app, of = AeonApp(Path("runs")), next(run for run in FAMILIES if run.status == "interrupted")
    app.first_screen = LineageScreen(Path(of.path).with_name(f"{of.run_id}.jsonl"), lambda: FAMILIES, lambda: NOW)

    async def listed(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: pilot.app.screen.query_one(RunList).selected)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=listed)


@SIZES
def test_quitting_while_runs_continue(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def quit_app(pilot: Pilot[None]) -> None:
        await in_the_list()(pilot)  # type: ignore[misc]
        running = [("run", TASK), ("run", "summarise the report"), ("workflow", "build a REST API for invoices")]
        await pilot.app.push_screen(QuitDialog(running, "R"))
        await pilot.pause()

    assert snap_compare(browser_app(FAMILIES), terminal_size=size, run_before=quit_app)
