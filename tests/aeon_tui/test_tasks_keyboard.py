"""What a person does with a run, by keyboard alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.fork import ForkDialog
from aeon_tui.screens.run.layout import PANES, SIDE
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.run.search import SearchScreen
from aeon_widgets.call_rows import RowKey
from aeon_widgets.issues import IssuesPane
from aeon_widgets.log_pane import LogPane
from aeon_widgets.match_list import MatchList
from aeon_widgets.outcome import Outcome
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.step_pane import StepText
from tests.aeon_tui.passes import converged_run, first_pass
from tests.aeon_tui.recordings import RUN_ID, Recording, finished_run
from tests.aeon_tui.screens.run.test_reviews import Reviewed, at_once
from tests.aeon_tui.states import on, run_screen
from tests.aeon_tui.test_run_actions import compares, cut, journal, runs, shows_result, today
from tests.waiting import until

__all__ = ["at_once", "runs"]
"""Fixtures that are used here, too."""


class Keys:
    """A person whose hands stay on the keys."""

    def __init__(self, app: AeonApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def screen(self) -> RunScreen:
        assert isinstance(self.app.screen, RunScreen)
        return self.app.screen

    @property
    def step(self) -> str:
        return self.screen.query_one(StepText).text

    @property
    def selected(self) -> RowKey | None:
        return self.screen.query_one(PlanTree).selected


@asynccontextmanager
async def on_a_run(run: Recording) -> AsyncIterator[Keys]:
    screen = run_screen(run)
    app = on(screen)
    async with app.run_test(size=(80, 24)) as pilot:
        screen.tick()
        await pilot.pause()
        yield Keys(app, pilot)


async def test_a_past_run_is_opened_and_a_step_looked_into(tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps(record)}\n" for record in finished_run().records)
    (tmp_path / f"{RUN_ID}.jsonl").write_text(lines)
    app = AeonApp(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        keys, browser = Keys(app, pilot), app.screen
        assert isinstance(browser, BrowserScreen)
        await until(pilot, lambda: browser.selected_run is not None)
        await keys.press("enter")
        await until(pilot, lambda: shows_result(app))
        await keys.press("1", "g")
        assert keys.selected == RowKey("step", "s1")
        await keys.press("enter")
        assert isinstance(keys.screen.focused, StepText)
        assert '"result": 15' in keys.step
        await keys.press("t")
        assert '"operation": "add"' in keys.step
        await keys.press("1", "j", "t", "right")
        assert '"tool": "shout"' in keys.step
        assert '"tool": "echo"' in keys.step
        await keys.press("1", "j", "p")
        assert "Say that 5 and 10 make 15." in keys.step
        assert "Five and ten make fifteen!" in keys.step
        await keys.press("7")
        assert isinstance(keys.screen.focused, Outcome)
        await keys.press("escape")
        assert isinstance(app.screen, BrowserScreen)
        await keys.press("q")
    assert app.return_code == 0


async def test_an_issue_opens_its_step_and_back() -> None:
    async with on_a_run(first_pass()) as keys:
        await keys.press("5", "G", "enter")
        assert keys.selected == RowKey("step", "s1")
        assert "do/say mismatch" in keys.step
        await keys.press("i")
        issues = keys.screen.query_one(IssuesPane)
        assert keys.screen.focused is issues
        assert "s1" in "".join(text for text, _ in issues.pieces(issues.cursor, 60))


async def test_issues_are_filtered_by_severity_type_and_pass() -> None:
    async with on_a_run(first_pass()) as keys:
        issues = keys.screen.query_one(IssuesPane)
        await keys.press("5", "v")
        assert issues.pane_title.startswith("Issues 1 of 3 · high")
        await keys.press("v", "v")
        assert issues.pane_title.startswith("Issues 1 of 3 · low")
        await keys.press("v", "V", "I")
        assert issues.pane_title == "Issues 1 of 4 · do/say mismatch · all passes"


async def test_a_zoomed_pane_is_left_for_another_and_unzoomed() -> None:
    async with on_a_run(converged_run()) as keys:
        await keys.press("8", "z")
        assert keys.screen.maximized is keys.screen.query_one(LogPane)
        await keys.press("1")
        assert keys.screen.maximized is keys.screen.query_one(PlanTree)
        await keys.press("escape")
        assert keys.screen.maximized is None


async def test_a_zoomed_pane_beside_the_step_fills_the_screen() -> None:
    screen = run_screen(converged_run())
    app = on(screen)
    async with app.run_test(size=(120, 36)) as pilot:
        screen.tick()
        for number in sorted(SIDE):
            await pilot.press(str(number))
            await pilot.pause()
            pane = screen.query_one(PANES[number])
            height = pane.outer_size.height
            await pilot.press("z")
            await pilot.pause()
            assert pane.outer_size.height > screen.size.height * 3 // 4, number
            await pilot.press("z")
            await pilot.pause()
            assert pane.outer_size.height == height, number


async def test_one_key_shows_what_changed_in_a_step_and_why() -> None:
    async with on_a_run(converged_run()) as keys:
        tree = keys.screen.query_one(PlanTree)
        await keys.press("1", "g")
        while keys.selected != RowKey("step", "s3-r1"):
            before = tree.cursor
            await keys.press("j")
            assert tree.cursor > before
        await keys.press("2", "left")
        assert "It replaces s3, which is invalid." in keys.step
        assert "because: it says nothing" in keys.step


async def test_a_run_is_searched(tmp_path: Path) -> None:
    path = tmp_path / f"{RUN_ID}.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in finished_run().records))
    screen = run_screen(finished_run())
    screen._source.journal = path  # type: ignore[misc]
    app = on(screen)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("slash", *"fifteen", "enter")
        assert isinstance(app.screen, SearchScreen)
        found = app.screen.query_one(MatchList)
        await until(pilot, lambda: found.line_count >= 3)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)


async def test_a_run_is_decided_from_its_plan_to_its_end(tmp_path: Path) -> None:
    reviewed = Reviewed(tmp_path, "plan", "pass")
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        asked = await reviewed.question(pilot)
        for keys in (("a",), ("w", *"say more", "enter"), ("r",), ("a",)):
            await pilot.press(*keys)
            asked = await reviewed.question(pilot, asked)
        await pilot.press("c")
        await until(pilot, lambda: reviewed.runner.result is not None)
        await pilot.press("q")
    assert [(point, decision, words) for point, _, decision, words in reviewed.told] == [
        ("plan", "approve", None),
        ("pass", "reject", "say more"),
        ("pass", "replay", None),
        ("plan", "approve", None),
        ("pass", "accept", None),
    ]
    assert reviewed.runner.exit_code == 0


async def test_a_run_that_was_cut_off_continues(runs: Path) -> None:
    cut(runs)
    app = AeonApp(runs, today=today)
    async with app.run_test(size=(80, 24)) as pilot:
        browser = app.screen
        assert isinstance(browser, BrowserScreen)
        await until(pilot, lambda: browser.selected_run is not None)
        await pilot.press("R")
        await until(pilot, lambda: shows_result(app))
        assert app.sessions.all[0].journal == journal(runs)
        await pilot.press("q")


async def test_a_run_is_forked_from_its_second_pass(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    app = AeonApp(runs, today=today)
    async with app.run_test(size=(80, 24)) as pilot:
        browser = app.screen
        assert isinstance(browser, BrowserScreen)
        await until(pilot, lambda: browser.selected_run is not None)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        await pilot.press("enter")
        await until(pilot, lambda: compares(app))
        await pilot.press("enter")
        await until(pilot, lambda: shows_result(app))
        assert app.sessions.all[0].journal != journal(runs)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        await pilot.press("q")
    assert len(list(runs.glob("*.jsonl"))) == 2
