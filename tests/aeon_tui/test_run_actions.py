"""What can be done with a past run from the browser and from its own screen: resume, replay, fork."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static, TextArea

from aeon_core import Orchestrator, RunConfig
from aeon_core.config.loading import LoadedConfig
from aeon_core.journal.recovery import reopen
from aeon_core.llm.base import LLMAdapter
from aeon_core.llm.simulated import SimulatedModel
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.compare import CompareScreen
from aeon_tui.screens.dialogs import TtlDialog
from aeon_tui.screens.fork import ForkDialog, LineageScreen, Parent, StartChoice
from aeon_tui.screens.keys import KeyColumns, KeysScreen
from aeon_tui.screens.replay import ReplayScreen
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.run.search import SearchScreen
from aeon_tui.sources.base import read_journal
from aeon_tui.sources.journal import JournalSource, source_of
from aeon_widgets.compare_view import CompareHeader, CompareView
from aeon_widgets.pane import Problem
from aeon_widgets.run_header import RunHeader
from aeon_widgets.run_list import RunList
from aeon_widgets.run_question import run_question
from aeon_widgets.tally import HeadLine
from tests.aeon_core.kernel.test_passes import MENDED, TASK, model, plan
from tests.aeon_tui.screens.browser.test_screen import NOW, summary
from tests.waiting import PATIENCE, until

Compare = Callable[..., bool]
SIZES = [pytest.param((60, 20), id="60x20"), pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40")]
PARENT = Parent(Path("20261120-093000-a1b2c3.jsonl"), "simulated:default", 50, 2)


def two_passes() -> LLMAdapter:
    return model(plan=plan(by=0), refine=MENDED, answer="The sum of 5 and 10 is 15, and 1 divided by 2 is 0.5.")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run of two passes, and today a model that says the same."""
    monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _: two_passes())
    folder = tmp_path / "runs"
    path = folder / "20261120-093000-a1b2c3.jsonl"
    config = RunConfig(model="simulated:default", durability="off", ttl=30)
    assert Orchestrator(two_passes(), config=config, journal=path).run(TASK).passes == 2
    return folder


def journal(runs: Path) -> Path:
    return runs / "20261120-093000-a1b2c3.jsonl"


def cut(runs: Path) -> None:
    """Let the run be one that was cut off in its first pass."""
    lines = journal(runs).read_text().splitlines(keepends=True)
    journal(runs).write_text("".join(lines[: len(lines) // 3]))


def today() -> LoadedConfig:
    return LoadedConfig(RunConfig(), {"approve": "the option --approve"})


@asynccontextmanager
async def browsing(runs: Path) -> AsyncIterator[tuple[AeonApp, Pilot[None]]]:
    app = AeonApp(runs, today=today)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        assert isinstance(screen, BrowserScreen)
        await until(pilot, lambda: screen.selected_run is not None)
        yield app, pilot
        for runner in app.sessions.all:
            runner.abort()
            runner.wait(PATIENCE)


def offered(app: AeonApp) -> list[str]:
    """Return what can be done with the run that is shown or selected."""
    return [what for what in ("resume", "replay", "fork", "label") if app.check_action("past_run", (what,))]


def said(app: AeonApp) -> list[str]:
    return [each.message for each in app._notifications]


def shows_result(app: AeonApp) -> bool:
    return isinstance(app.screen, RunScreen) and app.screen.view.result is not None


def compares(app: AeonApp) -> bool:
    return isinstance(app.screen, CompareScreen) and "Overview" in app.screen.query_one(CompareView).text


async def test_a_run_that_was_cut_off_continues_from_the_browser(runs: Path) -> None:
    cut(runs)
    async with browsing(runs) as (app, pilot):
        await pilot.press("R")
        await until(pilot, lambda: shows_result(app))
        assert isinstance(app.screen, RunScreen)
        assert (app.screen.status, app.screen.view.passes) == ("converged", 2)
        assert [runner.journal for runner in app.sessions.all] == [journal(runs)]


async def test_a_finished_run_does_not_offer_resume(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        assert offered(app) == ["replay", "fork", "label"]
        await pilot.press("R")
        await pilot.pause()
        assert app.screen_stack == [app.screen]
        app.actions.resume(journal(runs))
        await until(pilot, lambda: said(app))
        assert said(app) == ["the run ended as converged; there is nothing left to do; fork it instead"]
        assert app.sessions.all == []


async def test_an_expired_run_asks_for_a_higher_ttl_and_continues_with_it(tmp_path: Path) -> None:
    config = RunConfig(model="simulated:default", ttl=8, durability="off", approve=["none"])
    path = tmp_path / "20261120-093000-a1b2c3.jsonl"
    run = Orchestrator(SimulatedModel(), config=config, journal=path).run("design a REST API for invoices")
    assert run.status == "ttl_expired"
    before = path.read_bytes()
    async with browsing(tmp_path) as (app, pilot):
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, TtlDialog) and app.screen.is_mounted)
        assert "Its TTL of 8 cycles is used up" in str(app.screen.query_one("#hint", Static).content)
        field = app.screen.query_one("#ttl", Input)
        assert (app.focused, field.value) == (field, "16")
        problems = {"": "TTL is empty, expected a whole number", "8": "TTL is 8, and 8 are used up"}
        for typed, problem in problems.items():
            field.value = typed
            await pilot.press("enter")
            assert problem in str(app.screen.query_one(Problem).content)
        assert path.read_bytes() == before
        await pilot.press("escape", "R")
        await until(pilot, lambda: isinstance(app.screen, TtlDialog) and app.screen.is_mounted)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        resumed = next(record for record in read_journal(path, []) if record["type"] == "run_resumed")
        assert resumed["options"]["ttl"] == 16


async def test_a_run_that_another_process_writes_is_not_continued(runs: Path) -> None:
    cut(runs)
    writer = reopen(journal(runs))
    try:
        async with browsing(runs) as (app, pilot):
            assert offered(app) == ["fork"]
            app.actions.resume(journal(runs))
            await until(pilot, lambda: said(app))
            assert "is being written by" in said(app)[0]
    finally:
        writer.close()


async def test_a_live_run_is_forked_from_its_beginning_before_its_first_pass_has_ended(runs: Path) -> None:
    cut(runs)
    with closing(reopen(journal(runs))):
        async with browsing(runs) as (app, pilot):
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, RunScreen) and offered(app) == ["fork"])
            await pilot.press("F")
            await until(pilot, lambda: isinstance(app.screen, ForkDialog))
            assert app.screen.query_one(StartChoice).render().plain.strip() == "pass 1"


async def test_a_run_that_another_process_writes_is_not_replayed_as_if_it_had_been_cut_off(runs: Path) -> None:
    cut(runs)
    writer = reopen(journal(runs))
    try:
        async with browsing(runs) as (app, pilot):
            app.actions.replay(journal(runs))
            await until(pilot, lambda: said(app))
            assert said(app)[0].startswith("the run '20261120-093000-a1b2c3' is still running")
            assert isinstance(app.screen, BrowserScreen)
    finally:
        writer.close()


async def test_a_replay_takes_the_place_of_the_run_and_escape_leads_to_the_list(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await pilot.press("P")
        await until(pilot, lambda: isinstance(app.screen, ReplayScreen))
        await pilot.press("end")
        await until(pilot, lambda: shows_result(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        assert app.sessions.all == []


async def test_a_replay_of_the_run_that_the_app_opened_on_leads_to_the_list_too(runs: Path) -> None:
    app = AeonApp(runs, today=today)
    app.first_screen = RunScreen(JournalSource(journal(runs)))
    async with app.run_test(size=(80, 24)) as pilot:
        for _ in range(2):
            await until(pilot, lambda: shows_result(app))
            shown = app.screen
            await pilot.press("P")
            await until(pilot, lambda before=shown: app.screen is not before)
            await pilot.press("end")
        await until(pilot, lambda: isinstance(app.screen, ReplayScreen) and shows_result(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        assert [type(each) for each in app.screen_stack] == [RunScreen, BrowserScreen]


async def test_a_run_that_begins_takes_the_place_of_what_was_opened_meanwhile(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: shows_result(app))
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.screen, SearchScreen))
        app.actions.replay(journal(runs))
        await until(pilot, lambda: isinstance(app.screen, ReplayScreen))
        assert [type(each) for each in app.screen_stack] == [BrowserScreen, ReplayScreen]


async def test_a_fork_is_started_from_its_dialog(runs: Path) -> None:
    before = journal(runs).read_bytes()
    async with browsing(runs) as (app, pilot):
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        assert [field.value for field in app.screen.query(Input)] == ["scripted:test", "30", ""]
        await pilot.press("1", "tab", "tab", "4", "0", "enter")
        await until(pilot, lambda: compares(app))
        await pilot.press("enter")
        await until(pilot, lambda: shows_result(app))
        (runner,) = app.sessions.all
        assert runner.result is not None
        assert (runner.result.status, runner.result.ttl.limit) == ("converged", 40)
        assert runner.journal.parent == runs
        assert runner.journal != journal(runs)
    assert journal(runs).read_bytes() == before


async def test_a_fork_that_cannot_start_shows_why_in_its_dialog(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        await pilot.press("tab", "tab", "backspace", "backspace", "3", "enter")
        await until(pilot, lambda: "a TTL of 3 is too small" in str(app.screen.query_one("#problem", Static).content))
        assert [field.value for field in app.screen.query(Input)] == ["scripted:test", "3", ""]


async def test_a_fork_from_the_shown_moment_runs_next_to_its_parent(runs: Path) -> None:
    app = AeonApp(runs, today=today)
    app.first_screen = RunScreen(JournalSource(journal(runs)))
    async with app.run_test(size=(140, 45)) as pilot:
        run = app.screen
        assert isinstance(run, RunScreen)
        await until(pilot, lambda: run.view.result is not None)
        assert not app.check_action("past_run", ("resume",)), "it has ended"
        assert app.check_action("past_run", ("fork",))
        await pilot.press("[", "[")
        await until(pilot, lambda: run.travel.snapshot is not None and run.travel.snapshot.view.passes == 1)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        assert "pass 2" in app.screen.query_one(StartChoice).render().plain
        await until(pilot, lambda: "goal:" in app.screen.query_one(TextArea).text)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        compared = app.screen
        view = compared.query_one(CompareView)
        await until(pilot, lambda: "✔ converged" in view.text)
        fork = app.sessions.all[-1].journal
        assert fork is not None
        assert compared._paths == [journal(runs), fork]
        header = compared.query_one(CompareHeader)
        await until(pilot, lambda: "B is a fork of A at pass 2" in header.render().plain)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.chosen_run == fork)
        forked = app.screen
        assert isinstance(forked, RunScreen)
        await until(pilot, lambda: forked.view.result is not None)
        await pilot.press("H")
        await until(pilot, lambda: isinstance(app.screen, LineageScreen) and len(app.screen._runs) == 2)
        lines = app.screen.query_one(RunList)._lines
        assert [(line.run.run_id, line.guide) for line in lines] == [(journal(runs).stem, ""), (fork.stem, "└ ")]
        await pilot.press("escape", "v")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        for runner in app.sessions.all:
            runner.wait(PATIENCE)


async def test_the_lineage_of_a_run_outside_the_runs_directory_counts_no_runs(runs: Path, tmp_path: Path) -> None:
    app = AeonApp(runs, today=today)
    app.first_screen = LineageScreen(tmp_path / "elsewhere.jsonl", list)
    async with app.run_test(size=(80, 24)) as pilot:
        rows = app.screen.query_one(RunList)
        await until(pilot, lambda: rows.where_empty == ("this run is not in the list",))
        assert app.screen.query_one(HeadLine).title == "Lineage of elsewhere"


async def test_a_notification_about_a_run_does_not_cover_the_next_screen(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        app.actions.resume(journal(runs))
        await until(pilot, lambda: len(said(app)) == 1)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        assert said(app) == []
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        app.actions.resume(journal(runs))
        await until(pilot, lambda: said(app))
        await pilot.press("enter")
        await until(pilot, lambda: shows_result(app))
        assert said(app) == []
        app.notify("of the run")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        assert said(app) == []


async def test_the_key_help_names_keys_as_typed(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, KeysScreen)
        lines = [" ".join(line.split()) for line in app.screen.query_one(KeyColumns).text.splitlines()]
        assert {"P Replay", "F Fork"} <= set(lines)
        assert "R Resume" not in lines, "the run has ended"


async def test_a_key_that_is_pressed_twice_asks_once(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        await pilot.press("F", "F", "F")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert [type(each) for each in app.screen_stack] == [BrowserScreen, ForkDialog]


@pytest.mark.parametrize("size", SIZES)
def test_dialog_snapshot(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = AeonApp(Path("runs"))
    screen = BrowserScreen(Path("/home/ann/runs"), lambda _: [summary(30)], lambda: NOW)
    screen.preview_wanted = False
    app.first_screen = screen

    async def ask(pilot: Pilot[None]) -> None:
        await pilot.app.workers.wait_for_complete()
        dialog = ForkDialog(PARENT, 2, lambda *_: TEXT)
        pilot.app.push_screen(dialog)
        await until(pilot, lambda: bool(dialog.query(TextArea)) and "goal" in dialog.query_one(TextArea).text)
        dialog.query_one("#ttl", Input).value = "-"
        await pilot.press("enter")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=ask)


TEXT = """\
requirements:
- The sum of 5 and 10 is there
criteria:
  completeness: 0.8
  coherence: 0.8
goal: add 5 and 10
steps:
- step_id: s1
  description: Add 5 and 10
  status: complete
"""
UNKNOWN = {"tool_name": "pay", "arguments": {"amount": 12.5}, "call_id": "c3"}


def test_the_question_about_an_unknown_call_explains_each_answer() -> None:
    question = run_question("unknown", UNKNOWN)
    assert question.headline == "pay was interrupted: call it again?"
    assert [text for _, text in question.body] == [
        "The process ended during this call: its outcome is unknown. Check before you decide.",
        "amount: 12.5",
    ]
    assert [f"{each.key} {each.words}" for each in question.choices] == [
        "a Call it again, perhaps a second time",
        "w Let the step fail, and say why",
        "X End here, not finished",
    ]


async def test_opening_an_invalid_journal_notifies(runs: Path) -> None:
    async with browsing(runs) as (app, pilot):
        journal(runs).write_text("hello\n")
        app.actions.fork(journal(runs))
        await until(pilot, lambda: said(app))
        assert "is not a journal" in said(app)[0]


async def test_the_first_notice_is_shown_as_text(runs: Path) -> None:
    app = AeonApp(runs, today=today)
    app.first_notice = "[b]there is nothing[/b] to go on with"
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: said(app))
        assert said(app) == ["[b]there is nothing[/b] to go on with"]


async def test_a_run_with_a_deleted_journal_offers_nothing(runs: Path) -> None:
    app = AeonApp(runs, today=today)
    async with app.run_test(size=(100, 30)) as pilot:
        with closing(reopen(journal(runs))):
            app.show_run(RunScreen(source_of(journal(runs), runs)))
        await until(pilot, lambda: {"F", "P"} <= offered_keys(app))
        journal(runs).unlink()
        await until(pilot, lambda: not {"F", "P", "L", "R"} & offered_keys(app))
        await until(pilot, lambda: app.screen.query_one(RunHeader)._note == "⚠ journal deleted or moved")
        await pilot.press("F", "P")
        assert isinstance(app.screen, RunScreen)


def offered_keys(app: AeonApp) -> set[str]:
    return {key for key, active in app.screen.active_bindings.items() if active.enabled}
