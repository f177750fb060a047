"""What a person does with a run, by mouse alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.widget import Widget

from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.keys import KeysScreen
from aeon_tui.screens.run.screen import RunScreen
from aeon_widgets.approval_panel import AnswerKeys, ApprovalPanel, ApprovalText
from aeon_widgets.call_rows import RowKey
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.footer import KeyFooter
from aeon_widgets.issues import IssuesPane
from aeon_widgets.log_pane import LogPane
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.step_pane import StepPane, StepText, TabBar
from aeon_widgets.ttl_gauge import TTLGauge
from aeon_widgets.virtual_list import LinesView
from tests.aeon_tui.passes import converged_run, first_pass
from tests.aeon_tui.recordings import Recording, finished_run
from tests.aeon_tui.states import STATES, Asked, on, run_screen
from tests.sampling import sample

SIZE = (140, 44)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


class Mouse:
    """A person with one hand on the mouse."""

    def __init__(self, pilot: Pilot[None], screen: RunScreen) -> None:
        self.pilot, self.screen = pilot, screen

    async def click_text(self, text: str, within: type[Widget] | str, times: int = 1) -> None:
        """Click on a text of a pane."""
        region = self.pilot.app.screen.query_one(within).region
        strips = self.pilot.app.screen._compositor.render_strips()
        for y in range(region.y, region.bottom):
            line = strips[y].crop(region.x, region.right).text
            if (x := line.find(text)) >= 0:
                assert await self.pilot.click(offset=Offset(region.x + x, y), times=times)
                await self.pilot.pause()
                return
        raise AssertionError(f"{text!r} is not shown")

    async def click_key(self, words: str) -> None:
        """Click a key at the foot of the screen."""
        footer = self.pilot.app.screen.query_one(KeyFooter)
        key = next(key for key in footer.keys if key.description == words)
        assert await self.pilot.click(footer, offset=(key.start, 0))
        await self.pilot.pause()

    async def wheel(self, pane: Widget, kind: type[events.MouseEvent], times: int) -> None:
        at = pane.content_region.offset
        for _ in range(times):
            given: Any = {"x": at.x, "y": at.y, "screen_x": at.x, "screen_y": at.y, "delta_x": 0, "delta_y": 0}
            given |= {"button": 0, "shift": False, "meta": False, "ctrl": False}
            pane.post_message(kind(pane, **given))
            await self.pilot.pause()

    @property
    def step(self) -> StepPane:
        return self.screen.query_one(StepPane)

    @property
    def selected(self) -> RowKey | None:
        return self.screen.query_one(PlanTree).selected


@asynccontextmanager
async def by_mouse(
    run: Callable[[], Recording], asked: Asked | None = None, size: tuple[int, int] = SIZE
) -> AsyncIterator[Mouse]:
    screen = run_screen(run(), asked=asked)
    async with on(screen).run_test(size=size) as pilot:
        screen.tick()
        await pilot.pause()
        yield Mouse(pilot, screen)


async def test_clicks_on_a_row_and_a_tab_show_a_step() -> None:
    async with by_mouse(finished_run) as mouse:
        await mouse.click_text("s1 add 5", PlanTree)
        assert mouse.selected == RowKey("step", "s1")
        text = mouse.screen.query_one(StepText)
        for tab, said in (("Tool call", '"operation": "add"'), ("Repairs", "No repairs.")):
            await mouse.click_text(tab, TabBar)
            assert said in text.text
        await mouse.click_text("s3 say it", PlanTree)
        await mouse.click_text("Prompt", TabBar)
        assert "Say that 5 and 10 make 15." in text.text
        assert "Five and ten make fifteen!" in text.text, "the reply is below its prompt"


async def test_a_second_click_on_a_row_moves_to_its_step() -> None:
    async with by_mouse(finished_run) as mouse:
        await mouse.click_text("s2 repeat", PlanTree, times=2)
        assert mouse.screen.focused is mouse.screen.query_one(StepText)


async def test_a_repair_leads_to_its_step() -> None:
    async with by_mouse(finished_run) as mouse:
        await mouse.click_text("s2", RepairsPane)
        await mouse.click_text("s2", RepairsPane, times=2)
        assert mouse.selected == RowKey("step", "s2")
        assert mouse.step.tab == 3


async def test_an_issue_leads_to_its_step_and_its_changes() -> None:
    async with by_mouse(first_pass) as mouse:
        await mouse.click_text("s1", IssuesPane)
        await mouse.click_text("s1", IssuesPane, times=2)
        assert mouse.selected == RowKey("step", "s1")
        assert mouse.step.tab == 4


async def test_issues_are_filtered_by_the_keys_at_the_foot() -> None:
    async with by_mouse(first_pass) as mouse:
        issues = mouse.screen.query_one(IssuesPane)
        await mouse.pilot.click(IssuesPane, offset=(4, 1))
        await mouse.click_key("Severity")
        assert issues.pane_title.startswith("Issues 1 of 3 · high")
        await mouse.click_key("All passes")
        assert "all passes" in issues.pane_title


async def test_the_ttl_leads_to_its_reasons() -> None:
    async with by_mouse(first_pass) as mouse:
        await mouse.pilot.click(TTLGauge, offset=(4, 1), times=2)
        await mouse.pilot.pause()
        assert mouse.selected == RowKey("calls", "profile")


async def test_a_pane_is_zoomed_and_given_back() -> None:
    async with by_mouse(converged_run) as mouse:
        await mouse.pilot.click(LogPane, offset=(4, 2))
        await mouse.click_key("Zoom")
        assert mouse.screen.maximized is mouse.screen.query_one(LogPane)
        await mouse.click_key("Zoom")
        assert mouse.screen.maximized is None


async def test_the_wheel_scrolls_and_following_resumes() -> None:
    async with by_mouse(converged_run) as mouse:
        log = mouse.screen.query_one(LogPane)
        before = log.scroll_offset.y
        await mouse.wheel(log, events.MouseScrollUp, 3)
        assert log.scroll_offset.y < before
        assert not log.following
        await mouse.click_key("Follow")
        assert log.following
        assert log.scroll_offset.y == log.max_scroll_y


async def test_a_scroll_bar_is_dragged() -> None:
    async with by_mouse(converged_run) as mouse:
        log: LinesView = mouse.screen.query_one(LogPane)
        bar = log.vertical_scrollbar.region
        await mouse.pilot.mouse_down(offset=Offset(bar.x, bar.bottom - 1))
        await mouse.pilot.hover(offset=Offset(bar.x, bar.y))
        await mouse.pilot.mouse_up(offset=Offset(bar.x, bar.y))
        await mouse.pilot.pause()
        assert log.scroll_offset.y < log.max_scroll_y
        assert not log.following


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ("a Run another pass", "approve"),
        ("r Run this pass again", "replay"),
        ("c Accept the result as it is", "accept"),
    ],
)
@pytest.mark.parametrize("size", sample([SIZE, (80, 24), (60, 20)], 1))
async def test_a_pass_is_decided_by_a_click(answer: str, decision: str, size: tuple[int, int]) -> None:
    screen = STATES["pass"]()
    async with on(screen).run_test(size=size) as pilot:
        screen.tick()
        await pilot.pause()
        mouse = Mouse(pilot, screen)
        await mouse.click_text(answer, AnswerKeys)
        assert [each.decision for each in screen._runner.broker.decisions] == [decision]  # type: ignore[union-attr]


@pytest.mark.parametrize("size", [SIZE, (60, 20)])
async def test_a_run_is_aborted_by_a_click_after_a_question(size: tuple[int, int]) -> None:
    screen = STATES["pass"]()
    async with on(screen).run_test(size=size) as pilot:
        screen.tick()
        await pilot.pause()
        mouse, broker = Mouse(pilot, screen), screen._runner.broker  # type: ignore[union-attr]
        await mouse.click_text("X End here, not finished", AnswerKeys)
        await mouse.click_text("[ No ]", "Horizontal")
        assert broker.decisions == []
        await mouse.click_text("X End here, not finished", AnswerKeys)
        await mouse.click_text("[ End it ]", "Horizontal")
        assert [each.decision for each in broker.decisions] == ["abort"]


async def test_the_names_on_a_border_lead_to_their_panes_also_while_a_question_waits() -> None:
    screen = STATES["pass"]()
    async with on(screen).run_test(size=(80, 24)) as pilot:
        screen.tick()
        await pilot.pause()
        mouse, text = Mouse(pilot, screen), screen.query_one(ApprovalText)
        before = text.region
        await mouse.click_text("4 Convergence", StepPane)
        assert screen.query_one(ConvergencePane).has_focus_within
        assert text.region == before, "nothing moves under the mouse"
        await mouse.click_text("2 Step", ConvergencePane)
        assert mouse.step.has_focus_within


async def test_a_click_opens_the_field_for_a_reason() -> None:
    screen = STATES["pass"]()
    async with on(screen).run_test(size=SIZE) as pilot:
        screen.tick()
        await pilot.pause()
        await Mouse(pilot, screen).click_text("w Tell it what to fix", AnswerKeys)
        assert screen.focused is screen.query_one(ApprovalPanel).field


async def test_a_click_in_the_first_half_second_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 3_600.0)
    screen = STATES["tool"]()
    async with on(screen).run_test(size=SIZE) as pilot:
        screen.tick()
        await pilot.pause()
        await Mouse(pilot, screen).click_text("a Edit it", AnswerKeys)
        assert screen._runner.broker.decisions == []  # type: ignore[union-attr]


async def test_the_footer_opens_help_and_the_run_list_and_quits(tmp_path: Path) -> None:
    async with by_mouse(converged_run) as mouse:
        app = mouse.pilot.app
        app.runs_dir = tmp_path  # type: ignore[attr-defined]
        await mouse.click_key("Help")
        assert isinstance(app.screen, KeysScreen)
        await mouse.pilot.press("escape")
        await mouse.click_key("Runs")
        assert isinstance(app.screen, BrowserScreen)
        await app.workers.wait_for_complete()
        await mouse.click_key("Quit")
        assert not app.is_running or app._exit
