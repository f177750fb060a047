"""Several runs in one app: each continues wherever the person looks, and what waits is one key away."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from aeon_core import RunConfig
from aeon_core.config.keys import AppSettings
from aeon_core.journal.reader import read_records
from aeon_core.journal.recovery import reopen
from aeon_core.journal.view.reducer import fold
from aeon_tui.app import AeonApp
from aeon_tui.platform import terminal
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.compare import CompareScreen
from aeon_tui.screens.dialogs import ConfirmDialog, QuitDialog
from aeon_tui.screens.new_run import NewRunScreen, TaskArea
from aeon_tui.screens.pane_screen import PaneScreen
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.settings import SettingsScreen
from aeon_tui.sessions.run_jobs import NewRunJob
from aeon_tui.sessions.runner import AnyRunner
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.run_list import RunList
from aeon_widgets.tally import Tally, TallyHeader
from tests.aeon_tui.recordings import RUN_ID, live_run
from tests.waiting import until

CONFIG = RunConfig(model="simulated:default", durability="off", approve=["pass"])


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


def start(app: AeonApp, task: str, **config: Any) -> AnyRunner:
    app.start_job(NewRunJob(task, CONFIG.model_copy(update=config)))
    assert app.sessions.all
    return app.sessions.all[-1]


def said(app: AeonApp) -> list[str]:
    return [each.message for each in app._notifications]


def tally(app: AeonApp) -> Tally:
    return app.screen.query_one(TallyHeader).tally


def shown(app: AeonApp) -> AnyRunner | None:
    return app.session_on(app.screen)


def panel_has_focus(app: AeonApp) -> bool:
    return isinstance(app.screen, PaneScreen) and app.screen.asking.is_focused


async def two_waiting(app: AeonApp, pilot: Pilot[None]) -> tuple[AnyRunner, AnyRunner]:
    """Start two runs, the second shown; both end their pass and wait."""
    first, second = start(app, "add 5 and 10"), start(app, "add 7 and 8")
    await until(pilot, lambda: first.waiting is not None and second.waiting is not None)
    await until(pilot, lambda: panel_has_focus(app) and tally(app) == Tally(0, 2))
    return first, second


async def test_two_waiting_runs_are_decided_in_turn(tmp_path: Path) -> None:
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        first, second = await two_waiting(app, pilot)
        notice = "add 5 and 10: waits for you"  # without the key, which answers the question on screen
        await until(pilot, lambda: [text for text in said(app) if "add 5 and 10" in text] == [notice])
        assert shown(app) is second
        await pilot.press("a")
        await until(pilot, lambda: second.result is not None)
        assert first.waiting is not None, "it decided the run that was shown"
        await until(pilot, lambda: tally(app) == Tally(0, 1))
        await pilot.press("a")
        await until(pilot, lambda: shown(app) is first and panel_has_focus(app))
        await pilot.press("a")
        await until(pilot, lambda: first.result is not None)
        await until(pilot, lambda: tally(app) == Tally())
    tasks = []
    for session in (first, second):
        assert session.journal is not None
        records = list(read_records(session.journal))
        assert [record["seq"] for record in records] == list(range(len(records)))
        assert {record["run"] for record in records} == {session.run_id}
        assert records[-1]["type"] == "run_finished"
        tasks.append((fold(records).task, fold(records).status))
    assert tasks == [("add 5 and 10", "converged"), ("add 7 and 8", "converged")]


async def test_a_change_on_a_covered_screen_does_not_repaint_the_list(tmp_path: Path) -> None:
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        start(app, "add 5 and 10")
        below = app.screen
        await until(pilot, lambda: app.screen is below and below.is_current)
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, QuitDialog) and below.is_current)
        await pilot.press("escape")
        app.push_screen(BrowserScreen(tmp_path))
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen) and not below.is_current)


async def test_one_run_is_ended_and_the_others_continue(tmp_path: Path) -> None:
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        first, second = await two_waiting(app, pilot)
        screen = app.screen
        await pilot.press("1", "X")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("n")
        await until(pilot, lambda: app.screen is screen)
        assert second.waiting is not None
        await pilot.press("X", "y")
        await until(pilot, lambda: not second.running)
        assert (second.result.status, first.running) == ("aborted", True)
        await until(pilot, lambda: tally(app) == Tally(0, 1))
        # It has ended, so the key does nothing; another one resumes it.
        await until(pilot, lambda: screen.check_action("abort", ()) is False)
        await pilot.press("X", "R")
        await until(pilot, lambda: tally(app) == Tally(0, 2))
        assert shown(app) not in (first, second, None)
        app.sessions.abort()


async def test_a_run_left_behind_continues_and_its_screen_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: list[str] = []
    monkeypatch.setattr(AeonApp, "update_terminal", lambda _, text, **__: titles.append(text))
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        first, second = await two_waiting(app, pilot)
        await pilot.press("1", "g")
        screen = app.screen
        selected = screen.query_one(PlanTree).selected
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen) and tally(app) == Tally(0, 2))
        await until(pilot, lambda: titles[-1] == "aeon: 2 wait for you")
        rows = app.screen.query_one(RunList)
        await until(pilot, lambda: [line.run.waits_for for line in rows._lines] == ["pass", "pass"])
        first_row = rows.selected
        assert first_row is not None
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        assert shown(app) is app.sessions.of(tmp_path / f"{first_row.run_id}.jsonl")
        await pilot.press("b")
        await until(pilot, lambda: shown(app) is (first if first_row.run_id == second.run_id else second))
        await pilot.press("b")
        await until(pilot, lambda: shown(app) is app.sessions.of(tmp_path / f"{first_row.run_id}.jsonl"))
        app.show_session(second)
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: titles[-1] == "aeon: waiting for you · add 7 and 8")
        assert screen.query_one(PlanTree).selected == selected
        assert screen.focused is screen.query_one(PlanTree)
        await pilot.press("a")
        await until(pilot, lambda: panel_has_focus(app), "the first key leads to the panel")
        assert second.waiting is not None
        await pilot.press("comma")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen) and tally(app) == Tally(0, 2))
        await pilot.press("a")
        await until(pilot, lambda: shown(app) is first or shown(app) is second)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        first.abort()
        second.abort()
        await until(pilot, lambda: not app.sessions.running)


async def test_a_run_that_is_shown_from_a_comparison_opened_on_it_can_be_left_twice(tmp_path: Path) -> None:
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        first, second = await two_waiting(app, pilot)
        assert first.journal is not None
        assert second.journal is not None
        app.compare_runs(first.journal, second.journal)
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        for _ in range(2):
            app.show_session(second)
            await until(pilot, lambda: shown(app) is second)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        await pilot.press("escape")
        await until(pilot, lambda: shown(app) is second)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        app.show_session(second)
        await until(pilot, lambda: shown(app) is second and panel_has_focus(app))
        first.abort()
        second.abort()
        await until(pilot, lambda: not app.sessions.running)


async def test_a_notice_names_no_key_while_a_text_field_has_the_focus(tmp_path: Path) -> None:
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        start(app, "add 1 and 2", approve=["pass"])
        app.push_screen(NewRunScreen())
        await until(pilot, lambda: isinstance(app.focused, TaskArea))
        await until(pilot, lambda: said(app) == ["add 1 and 2: waits for you"])


async def test_a_run_that_ends_off_screen_is_reported_and_opened_by_its_key(tmp_path: Path) -> None:
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        done = start(app, "add 1 and 2", approve=["tool"])
        failed = start(app, "add", model="simulated:nothing")
        app.show_browser()
        await until(pilot, lambda: len(said(app)) == 2)
        told = sorted(said(app))
        assert told[0] == "add 1 and 2: converged · a shows it"
        assert told[1].startswith("add: failed: ")
        seen = []
        for _ in range(2):
            await pilot.press("a")
            await until(pilot, lambda: shown(app))
            seen.append(shown(app))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        assert set(seen) == {done, failed}
        await until(pilot, lambda: not app.check_action("next_decision", ()))
        assert [type(each) for each in app.screen_stack] == [BrowserScreen]
        assert app._session_screens == {}, "nobody needs their screens any more"


async def test_live_runs_of_other_processes_are_counted(tmp_path: Path) -> None:
    asks = live_run()
    asks.add("approval", **{"pass": 1, "point": "pass", "state": "asked", "digest": "d"})
    working, waits = tmp_path / "working.jsonl", tmp_path / f"{RUN_ID}.jsonl"
    for journal, run in ((working, live_run()), (waits, asks)):
        journal.write_text("".join(f"{json.dumps(record)}\n" for record in run.records))
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        app.monitor._look_elsewhere()
        await app.workers.wait_for_complete()
        assert tally(app) == Tally(), "what processes left that died"
        with closing(reopen(working)), closing(reopen(waits)):
            app.monitor._look_elsewhere()
            await until(pilot, lambda: tally(app) == Tally(1, 1))
            notice = f"{live_run().records[0]['task']}: waits for you · a shows it"
            await until(pilot, lambda: said(app) == [notice])
            app.monitor._look_elsewhere()
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert said(app) == [notice], "once for each question"
            await pilot.press("a")
            await until(pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.chosen_run == waits)
            await until(pilot, lambda: app.screen.query(TallyHeader) and tally(app) == Tally(1, 1))
            here = start(app, "add 5 and 10")
            await until(pilot, lambda: here.waiting is not None and tally(app) == Tally(1, 2))
            here.abort()
            await until(pilot, lambda: tally(app) == Tally(1, 1))


async def test_live_runs_of_other_processes_that_begin_to_wait_together_are_one_notice(tmp_path: Path) -> None:
    asks = live_run()
    asks.add("approval", **{"pass": 1, "point": "pass", "state": "asked", "digest": "d"})
    journals = [tmp_path / f"run{number}.jsonl" for number in range(3)]
    for journal in journals:
        journal.write_text("".join(f"{json.dumps(record)}\n" for record in asks.records))
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot, AsyncExitStack() as stack:
        await app.workers.wait_for_complete()
        for journal in journals:
            stack.enter_context(closing(reopen(journal)))
        app.monitor._look_elsewhere()
        await until(pilot, lambda: tally(app) == Tally(0, 3))
        await until(pilot, lambda: said(app) == ["3 runs wait for you · a shows it"])


async def test_repeated_notices_are_shown_once_and_many_at_most_three_at_a_time(tmp_path: Path) -> None:
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        for text in ("one", "two", "one", "three", "four", "four"):
            app.notify(text, markup=False)
        await until(pilot, lambda: said(app) == ["one", "three", "four"])


async def test_the_screen_of_the_only_run_has_no_tally(tmp_path: Path) -> None:
    journal = tmp_path / f"{RUN_ID}.jsonl"
    journal.write_text("".join(f"{json.dumps(record)}\n" for record in live_run().records))
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        with closing(reopen(journal)):
            app.monitor._look_elsewhere()
            await until(pilot, lambda: tally(app) == Tally(1))
            app.open_journal(journal)
            await until(pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.query(TallyHeader))
            await until(pilot, lambda: tally(app) == Tally())
            app.push_screen(ConfirmDialog("Sure?", ["It is."], "Yes"))
            await pilot.pause()
            assert app.monitor.tally() == Tally(), "nor under a dialog"


async def test_quitting_asks_once_and_journals_all_as_aborted(tmp_path: Path) -> None:
    app = AeonApp(tmp_path)
    app.apply_settings(AppSettings(keys={"run.resume": "f8"}))
    async with app.run_test(size=(100, 30)) as pilot:
        first, second = await two_waiting(app, pilot)
        await until(pilot, lambda: app.user_settings.keymap)
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, QuitDialog) and len(app.screen.query(".line")))
        dialog = app.screen
        text = "\n".join(str(each.render()) for each in dialog.query(".line"))
        assert dialog.query_one("Vertical").border_title == "2 runs are running"
        expected = ("Abort them and quit?", "add 5 and 10", "add 7 and 8", "f8 resumes them later")
        assert [each in text for each in expected] == [True] * 4
        await pilot.press("y")
        await until(pilot, lambda: not app.is_running)
    assert not app.sessions.running
    for session in (first, second):
        assert session.journal is not None
        assert fold(read_records(session.journal)).status == "aborted"
        how = f"continue with `aeon-tui resume {session.journal}`"
        assert session.outcome() == f"run {session.run_id} (simulated): aborted · {how}"


async def test_suspending_explains_why_it_is_impossible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = AeonApp(tmp_path)
    async with app.run_test() as pilot:
        await pilot.press("ctrl+z")
        await until(pilot, lambda: said(app) == [terminal.NO_TERMINAL])
        app.clear_notifications()
        monkeypatch.setattr(AeonApp, "is_headless", False)
        monkeypatch.setattr(terminal.os, "getsid", lambda _: terminal.os.getpgrp())
        assert terminal.suspend(app, 1) == terminal.NO_SHELL
