"""The terminal is resized in the middle of everything: focus, place and typed words stay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input

from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.run.search import SearchScreen
from aeon_widgets.approval_panel import ApprovalPanel, ApprovalText
from aeon_widgets.log_pane import LogPane
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.step_pane import StepPane, StepText
from aeon_widgets.text_fields import FeedbackField
from aeon_widgets.virtual_list import LinesView
from tests.aeon_tui.odd_texts import problems_of
from tests.aeon_tui.passes import Passes, step
from tests.aeon_tui.recordings import finished_run
from tests.aeon_tui.scenes import RUNS
from tests.aeon_tui.screens.run.test_search import searching
from tests.aeon_tui.states import STATES, on, run_screen
from tests.sampling import sample
from tests.waiting import until

SIZES = [(60, 20), (200, 60), (20, 5), (120, 24), (40, 12)]
START = (80, 24)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


async def resize(pilot: Pilot[None], check: Callable[[], object]) -> None:
    """Go through all sizes and back to the first one; `check` after each."""
    for size in [*SIZES, START]:
        await pilot.resize_terminal(*size)
        await pilot.pause()
        if isinstance(pilot.app.screen, RunScreen):
            pilot.app.screen.tick()
            await pilot.pause()
        assert problems_of(pilot.app) == [], size
        check()


def long_run() -> Passes:
    """A run with more steps and lines than any screen has room for."""
    run = Passes()
    run.plan(*(step(f"s{number}", f"Name part {number}") for number in range(1, 200)))
    for number in range(1, 150):
        run.step(f"s{number}", "running")
        run.step(
            f"s{number}", "complete", output={"text": "\n".join(f"line {line} of {number}" for line in range(300))}
        )
    return run


async def opened(screen: RunScreen, act: Callable[[Pilot[None]], Awaitable[None]]) -> None:
    async with on(screen).run_test(size=START) as pilot:
        screen.tick()
        await pilot.pause()
        await act(pilot)


@pytest.mark.parametrize("kind", sample([PlanTree, StepText, LogPane], 1))
async def test_resizing_keeps_the_line_being_read(kind: type[LinesView]) -> None:
    screen = run_screen(long_run(), live=True)

    async def act(pilot: Pilot[None]) -> None:
        pane = screen.query_one(kind)
        pane.focus()
        await pilot.press("g", *["pagedown"] * 3, "k")
        await pilot.pause()

        def top() -> str:
            marked = pane.marked_line
            index = marked if marked is not None else pane.scroll_offset.y
            return "".join(text for text, _ in pane.pieces(index, 200)).split("  ")[0].strip()

        place = top()

        def check() -> None:
            assert screen.focused is pane
            assert place.startswith(top()), "a narrow pane has not room for the whole line"
            if pane.marked_line is not None and pane.size.height:
                rows = range(pane.scroll_offset.y, pane.scroll_offset.y + pane.size.height)
                assert pane.marked_line in rows, "the selection is in sight"

        await resize(pilot, check)
        assert top() == place

    await opened(screen, act)


@pytest.mark.parametrize("state", sample(["plan", "pass", "tool"], 1))
async def test_a_question_keeps_the_focus_after_a_resize(state: str) -> None:
    screen = STATES[state]()

    async def act(pilot: Pilot[None]) -> None:
        await pilot.pause()
        assert isinstance(screen.focused, ApprovalText)

        def check() -> None:
            assert isinstance(screen.focused, ApprovalText)
            assert screen.query_one(ApprovalPanel).region

        await resize(pilot, check)
        await pilot.press("a")
        await pilot.pause()
        assert [each.decision for each in screen._runner.broker.decisions] == ["approve"]  # type: ignore[union-attr]

    await opened(screen, act)


async def test_a_question_that_moves_does_not_scroll_the_step() -> None:
    screen = STATES["pass"]()
    async with on(screen).run_test(size=(120, 36)) as pilot:
        screen.tick()
        for size in ((200, 50), START):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: isinstance(screen.focused, ApprovalText))
        assert screen.query_one(StepPane).display


@pytest.mark.exhaustive
async def test_resizing_keeps_typed_words() -> None:
    screen = STATES["pass"]()

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("w", *"name the fi")

        def check() -> None:
            box = screen.query_one(FeedbackField)
            assert screen.focused is box
            assert box.text == "name the fi"
            assert box.cursor_location == (0, len(box.text))
            assert box.region

        await resize(pilot, check)
        await pilot.press(*"elds", "enter")
        await pilot.pause()
        decisions = screen._runner.broker.decisions  # type: ignore[union-attr]
        assert [(each.decision, each.feedback) for each in decisions] == [("reject", "name the fields")]

    await opened(screen, act)


@pytest.mark.parametrize("key", sample(["1", "2", "3"], 1))
async def test_resizing_keeps_a_zoomed_pane(key: str) -> None:
    screen = run_screen(long_run())

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press(key, "z")
        await pilot.pause()
        focused, zoomed = screen.focused, screen.maximized
        assert zoomed is not None

        def check() -> None:
            assert screen.focused is focused
            assert screen.maximized is zoomed

        await resize(pilot, check)
        await pilot.press("z")
        assert screen.maximized is None

    await opened(screen, act)


async def test_resizing_keeps_a_search(tmp_path: Path) -> None:
    async with searching(tmp_path, finished_run()) as there:
        pilot, screen = there.pilot, there.screen
        await pilot.resize_terminal(*START)
        await pilot.press(*"fif")
        box = screen.query_one(Input)

        def check() -> None:
            assert isinstance(pilot.app.screen, SearchScreen)
            assert (screen.focused, box.value) == (box, "fif")

        await resize(pilot, check)


async def test_resizing_keeps_the_list_filter() -> None:
    app = AeonApp(Path("runs"))
    screen = app.first_screen = BrowserScreen(Path("runs"), lambda directory: list(RUNS))
    async with app.run_test(size=START) as pilot:
        await app.workers.wait_for_complete()
        await pilot.press("slash", *"task")
        box: Any = screen.focused

        def check() -> None:
            assert screen.focused is box
            assert box.value == "task"

        await resize(pilot, check)


@pytest.mark.exhaustive
async def test_resizing_keeps_the_palette_and_its_text() -> None:
    app = on(STATES["past"]())
    async with app.run_test(size=START) as pilot:
        await pilot.press("ctrl+p", *"the")
        await pilot.pause()
        box = app.screen.query_one(Input)

        def check() -> None:
            assert isinstance(app.screen, CommandPalette)
            assert box.value == "the"

        await resize(pilot, check)


@pytest.mark.exhaustive
async def test_resizing_keeps_the_key_help_open() -> None:
    app = on(STATES["past"]())
    async with app.run_test(size=START) as pilot:
        await pilot.press("question_mark")
        screen = app.screen
        await resize(pilot, lambda: app.screen is screen or pytest.fail("it was closed"))
