"""A run's screen at every size: nothing overlaps, nothing is cut without a sign, every pane is reached."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.run.layout import ALL, PANES
from aeon_tui.screens.run.screen import RunScreen
from aeon_widgets.approval_panel import ApprovalPanel, ApprovalText
from aeon_widgets.footer import KeyFooter
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import Pane
from aeon_widgets.pass_line import PassLine
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.run_header import RunHeader
from aeon_widgets.run_list import RunList
from aeon_widgets.step_pane import StepText
from tests.aeon_tui.odd_texts import problems_of
from tests.aeon_tui.scenes import RUNS
from tests.aeon_tui.states import STATES, on
from tests.sampling import sample
from tests.waiting import until

SIZES = list(product((60, 80, 120, 200), (20, 24, 40, 60)))
SOME = [(60, 20), (80, 24), (120, 40), (200, 60)]
SMALL = [(59, 19), (40, 10), (20, 5), (1, 1), (200, 6), (20, 60)]


def drawn(screen: Screen[Any]) -> list[str]:
    return [strip.text for strip in screen._compositor.render_strips()]


def parts(screen: Screen[Any]) -> Iterator[Widget]:
    """Yield the widgets that are side by side on a run's screen."""
    for kind in (RunHeader, PassLine, Pane, KeyFooter):
        yield from (widget for widget in screen.query(kind) if widget.display and widget.region)


def inside_others(widget: Widget) -> bool:
    return any(isinstance(each, Pane) for each in widget.ancestors)


async def resized(pilot: Pilot[None], size: tuple[int, int]) -> None:
    await pilot.resize_terminal(*size)
    await pilot.pause()
    if isinstance(pilot.app.screen, RunScreen):
        pilot.app.screen.tick()
    await pilot.pause()


def check_footer(screen: Screen[Any], last: str) -> None:
    footer = screen.query_one(KeyFooter)
    assert all(one.end <= other.start for one, other in pairwise(footer.keys))
    assert all(key.end <= footer.size.width for key in footer.keys)
    assert "q Quit" in last
    assert "? Help" in last


def check_rows(pane: PlanTree | RunList | LogPane) -> None:
    """Fail where a row has more to say than is drawn, and does not say so."""
    width = pane.scrollable_content_region.width
    for index in range(min(pane.line_count, 60) if width else 0):
        whole = "".join(text for text, _ in pane.pieces(index, width)).rstrip()
        shown = pane.render_line(index - pane.scroll_offset.y).text.rstrip()
        assert shown == whole or "…" in shown, shown


def test_each_pane_has_its_own_key_and_name() -> None:
    assert len(PANES) == len({pane.title for pane in ALL}) == len(ALL)


@pytest.mark.parametrize("state", sample(STATES, 1))
async def test_at_every_size_panes_do_not_overlap_and_mark_cut_text(state: str) -> None:
    screen = STATES[state]()
    async with on(screen).run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await resized(pilot, size)
            await until(pilot, lambda: all(screen.region.contains_region(each.region) for each in parts(screen)))
            assert screen.region == Region(0, 0, *size)
            shown = [widget for widget in parts(screen) if not inside_others(widget)]
            overlapping = [pair for pair in combinations(shown, 2) if pair[0].region.overlaps(pair[1].region)]
            assert overlapping == [], size
            assert all(pane.size.height >= 1 for pane in shown), size
            assert screen.max_scroll_y == 0
            assert problems_of(pilot.app) == [], size
            first, *_, last = (line.rstrip() for line in drawn(screen))
            assert first.endswith(screen.status.replace("_", " ").replace("ttl", "TTL"))
            assert screen.view.task in first or "…" in first
            check_footer(screen, last)
            check_rows(screen.query_one(PlanTree))
            check_rows(screen.query_one(LogPane))


@pytest.mark.parametrize("state", ["live", "past"])
async def test_the_open_log_leaves_every_pane_on_a_low_screen(state: str) -> None:
    screen = STATES[state]()
    async with on(screen).run_test(size=(60, 24)) as pilot:
        await pilot.press("8")
        assert screen.has_class("-log-open")
        for rows in (18, 20, 21):
            await resized(pilot, (60, rows))
            await until(pilot, lambda: all(screen.region.contains_region(each.region) for each in parts(screen)))
            assert screen.max_scroll_y == 0
            assert screen.query_one(LogPane).size.height >= 4


async def test_the_key_that_expands_the_log_zooms_it_where_it_has_one_line() -> None:
    screen = STATES["live"]()
    async with on(screen).run_test(size=(80, 14)) as pilot:
        log = screen.query_one(LogPane)
        await pilot.press("8")
        assert log.size.height == 1
        await pilot.press("enter")
        await until(pilot, lambda: log.size.height == 9)
        assert drawn(screen)[-2] == "╰" + "─" * 78 + "╯", "the frame is whole"
        await pilot.press("enter")
        await until(pilot, lambda: log.size.height == 1)
        assert screen.query_one(PlanTree).size.height >= 1


@pytest.mark.parametrize("state", ["plan", "pass", "tool"])
async def test_on_a_tiny_screen_a_question_shows_its_first_answer_until_the_focus_leaves_it(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    screen = STATES[state]()
    async with on(screen).run_test(size=(40, 12)) as pilot:
        await until(pilot, lambda: len(screen.query(ApprovalPanel)) == 1)
        first = screen.query_one(ApprovalPanel).question.choices[0]
        await until(pilot, lambda: any(f"┃ {first.key} {first.words}" in line for line in drawn(screen)))
        assert screen.max_scroll_y == 0
        await resized(pilot, (60, 5))
        await until(pilot, lambda: any(line.startswith(f" {first.key} {first.words}") for line in drawn(screen)))
        assert screen.query_one(ApprovalText).size.height == 1
        assert screen.max_scroll_y == 0
        for rows in (6, 5):
            await resized(pilot, (60, rows))
            await pilot.press("1")
            await until(pilot, lambda: screen.query_one(ApprovalPanel).region.height == 1)
            assert drawn(screen)[-1].startswith("━9 ")
            assert screen.query_one(PlanTree).region.height == rows - 3
            assert screen.query_one(PlanTree).size.height == rows - 4
            assert screen.max_scroll_y == 0
            await pilot.press("9")
        await resized(pilot, (40, 12))
        await pilot.press("1")
        await until(pilot, lambda: any("a comes back here" in line for line in drawn(screen)))
        await until(pilot, lambda: screen.query_one(PlanTree).region.height >= 3)


@pytest.fixture
def styled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of widgets to which styles were applied, in order."""
    kinds: list[str] = []
    apply = Stylesheet.apply

    def count(sheet: Stylesheet, node: DOMNode, **options: Any) -> None:
        kinds.append(type(node).__name__)
        apply(sheet, node, **options)

    monkeypatch.setattr(Stylesheet, "apply", count)
    return kinds


async def test_a_tab_restyles_only_the_panes_between_which_the_focus_moves(styled: list[str]) -> None:
    screen = STATES["live"]()
    async with on(screen).run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert isinstance(screen.focused, PlanTree)
        styled.clear()
        await pilot.press("tab")
        await until(pilot, lambda: isinstance(screen.focused, StepText) and "StepText" in styled)
    assert set(styled) <= {"PlanTree", "StepPane", "StepText", "TabBar", "ScrollBar"}


async def test_a_screen_opens_with_the_styles_of_its_size(styled: list[str]) -> None:
    screen = STATES["live"]()
    async with on(screen).run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: screen.has_class("-wide") and screen.query_one(PlanTree).region.height > 0)
        await pilot.pause()
    assert styled.count("Body") == 2  # when it is mounted, and when its screen is shown


def reached(screen: RunScreen) -> set[int]:
    """Return the numbers of the panes for which the run has anything to show."""
    kinds = {7: Outcome, 8: LogPane, 9: ApprovalPanel}
    there = {number for number, kind in kinds.items() if any(pane.display for pane in screen.query(kind))}
    return there | {1, 2, 3, 6} | ({4, 5} if screen.view.adaptive else set())


@pytest.mark.exhaustive
@pytest.mark.parametrize("state", ["live", "pass", "failed"])
async def test_at_every_size_a_number_opens_each_pane(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    screen = STATES[state]()
    async with on(screen).run_test(size=SOME[0]) as pilot:
        for size in SOME:
            await resized(pilot, size)
            for number, kind in PANES.items():
                if number in reached(screen):
                    await pilot.press(str(number))
                    pane = screen.query_one(kind)
                    assert pane.has_focus_within, (size, number)
                    assert pane.size.width > 10, (size, number)
                    assert pane.size.height >= 1, (size, number)
                    assert problems_of(pilot.app) == []


@pytest.mark.parametrize("state", sample(["starting", "live", "tool", "failed", "damaged"], 1))
async def test_a_terminal_that_is_too_small_breaks_nothing(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    screen = STATES[state]()
    async with on(screen).run_test(size=(80, 24)) as pilot:
        for size in SMALL:
            await resized(pilot, size)
            assert problems_of(pilot.app) == [], size
            assert len(drawn(screen)) == size[1]
            await pilot.press("tab", "down", "z")
            assert problems_of(pilot.app) == [], size
            await pilot.press("z")
        await resized(pilot, (80, 24))
        assert pilot.app.is_running
        assert screen.focused is not None
        assert screen.focused.region


@pytest.mark.parametrize("zoomed", [False, True])
async def test_a_question_takes_the_focus_of_the_log_it_hides(zoomed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    screen = STATES["tool"]()
    async with on(screen).run_test(size=(80, 60)) as pilot:
        await pilot.press("8", *["z"] * zoomed)
        assert screen.focused is screen.query_one(LogPane)
        await resized(pilot, (80, 24))
        assert screen.query_one(ApprovalPanel).has_focus_within
        assert screen.query_one(PlanTree).region


async def test_a_focused_step_keeps_the_focus_when_the_column_goes() -> None:
    screen = STATES["live"]()
    async with on(screen).run_test(size=(120, 40)) as pilot:
        await pilot.press("3", "2")
        await resized(pilot, (60, 20))
        assert screen.focused is not None
        assert screen.focused.region


@pytest.mark.exhaustive
async def test_the_browser_is_usable_at_every_size() -> None:
    app = AeonApp(Path("runs"))
    screen = app.first_screen = BrowserScreen(Path("runs"), lambda directory: list(RUNS))
    async with app.run_test(size=SIZES[0]) as pilot:
        await app.workers.wait_for_complete()
        for size in SIZES:
            await resized(pilot, size)
            assert problems_of(app) == [], size
            lines = drawn(screen)
            check_footer(screen, lines[-1])
            rows = screen.query_one(RunList)
            assert rows.size.height >= 3, size
            assert Region(0, 0, *size).contains_region(rows.region)
            check_rows(rows)
            assert any("task 0" in line and "running" in line for line in lines), size
        for size in SMALL:
            await resized(pilot, size)
            await pilot.press("down", "slash", "a", "escape")
            assert problems_of(app) == [], size
            assert all(cell_len(line) == size[0] for line in drawn(screen))
