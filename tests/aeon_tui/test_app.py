from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from aeon_core.config import RunConfig
from aeon_tui import app as app_module
from aeon_tui.app import AeonApp, run_app
from aeon_tui.runner import Runner, StartRun
from aeon_tui.screens.browser import BrowserScreen
from aeon_tui.screens.run import RunScreen
from aeon_widgets.outcome import Outcome
from aeon_widgets.step_pane import StepText
from tests.aeon_tui.fakes import ScriptedKernel, build_scripted
from tests.aeon_tui.recordings import live_run

START = StartRun("add 5 and 10", RunConfig(model="simulated:default"))


class Live:
    """The app with a run that stays in a model call."""

    def __init__(self) -> None:
        self.kernels: list[ScriptedKernel] = []
        self.runner = Runner(START, Path("runs/r1.jsonl"), build_scripted(live_run().records, self.kernels.append))
        self.app = AeonApp(Path("runs"), self.runner)

    @property
    def screen(self) -> RunScreen:
        assert isinstance(self.app.screen, RunScreen)
        return self.app.screen


async def until(pilot: Pilot[None], reached: object) -> None:
    assert callable(reached)
    for _ in range(300):
        if reached():
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not happen")


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Live, Pilot[None]]]:
    live = Live()
    async with live.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: live.screen.view.last_seq == len(live_run().records) - 1)
        yield live, pilot
    if live.kernels:
        live.kernels[0].release()


async def test_a_started_run_is_followed_live_to_its_answer() -> None:
    async with running() as (live, pilot):
        assert live.screen.status == "running"
        live.kernels[0].release()
        await until(pilot, lambda: live.screen.view.result is not None)
        assert live.screen.status == "completed"
        await until(pilot, lambda: live.screen.query_one(Outcome).text == "15")
        await pilot.press("q")
    assert live.runner.exit_code == 0


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_quitting_in_a_model_call_aborts_the_run_and_waits_for_its_end(key: str) -> None:
    async with running() as (live, pilot):
        await pilot.press(key)
        await until(pilot, lambda: not live.app.is_running)
    assert live.kernels[0].aborted
    assert live.runner.result is not None
    assert live.runner.result.status == "aborted"
    assert live.runner.exit_code == 1


async def test_while_it_ends_the_run_is_said_to_be_aborting(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as (live, pilot):
        live.kernels[0].deaf = True
        await pilot.press("q")
        await until(pilot, lambda: live.screen.status == "aborting")
        live.kernels[0].release()
        await until(pilot, lambda: not live.app.is_running)


async def test_a_run_that_does_not_end_does_not_hold_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "ABORT_SECONDS", 0.05)
    async with running() as (live, pilot):
        live.kernels[0].deaf = True
        await pilot.press("q")
        await until(pilot, lambda: not live.app.is_running)
    assert "still ending" in live.runner.outcome()


async def test_a_reply_is_shown_while_it_streams_in() -> None:
    async with running() as (live, pilot):
        live.kernels[0].on_delta("s3", "Five and [bold]ten")
        await until(pilot, lambda: "Five and [bold]ten▌" in live.screen.query_one(StepText).text)
        live.kernels[0].on_delta("s3", " make\x1b fifteen")
        await until(pilot, lambda: "ten make\\x1b fifteen▌" in live.screen.query_one(StepText).text)
        live.runner.stream.clear()
        await until(pilot, lambda: "▌" not in live.screen.query_one(StepText).text)


async def test_escape_does_not_leave_a_run_that_goes_on() -> None:
    async with running() as (live, pilot):
        shown = live.screen
        await pilot.press("escape")
        assert live.app.screen is shown
        live.kernels[0].release()
        await until(pilot, lambda: not live.runner.running)
        await pilot.press("escape")
        assert isinstance(live.app.screen, BrowserScreen)


async def test_what_start_up_made_is_kept_from_the_collector() -> None:
    assert gc.get_freeze_count() == 0
    async with running():
        assert gc.get_freeze_count() > 1_000


def test_run_app_prints_one_line_with_the_run_and_returns_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def build(*arguments: object) -> ScriptedKernel:
        kernel = build_scripted(live_run().records)(*arguments)  # type: ignore[arg-type]
        assert isinstance(kernel, ScriptedKernel)
        return kernel

    def run(self: AeonApp) -> None:
        assert self.runner is not None
        self.runner.start()

    monkeypatch.setattr("aeon_tui.runner.build_orchestrator", build)
    monkeypatch.setattr(AeonApp, "run", run)
    assert run_app(tmp_path, START) == 1
    printed = capsys.readouterr()
    run_id = printed.err.split()[1]
    assert printed.err == f"run {run_id} (simulated): aborted · see `aeon-tui show {run_id}`\n"
    assert printed.out == ""


def test_browsing_ends_with_code_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(AeonApp, "run", lambda self: None)
    assert run_app(Path("runs")) == 0
    assert capsys.readouterr() == ("", "")
