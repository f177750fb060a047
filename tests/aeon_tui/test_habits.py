"""Habits of the platform: what is read stays in sight, hjkl and arrows alike, nothing needs a colour."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from aeon_tui.screens.run.screen import RunScreen
from aeon_widgets.icons import LEVELS, ROW_ICONS, RUN_STYLES, SEVERITY_ICONS
from aeon_widgets.issues import IssuesPane
from aeon_widgets.log_pane import LogPane
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.step_pane import StepText
from aeon_widgets.virtual_list import LinesView
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.passes import Passes, issue, step
from tests.aeon_tui.states import on, run_screen
from tests.sampling import sample

STATUSES = ("pending", "running", "complete", "failed", "invalid")


def growing_run() -> Passes:
    run = Passes()
    run.plan(*(step(f"s{number}", f"Name part {number}") for number in range(1, 120)))
    for number in range(1, 60):
        run.do(f"s{number}", "\n".join(f"line {line}" for line in range(200)))
    return run


def drawn(pane: LinesView) -> list[str]:
    return [pane.render_line(y).text for y in range(pane.size.height)]


async def go_on(screen: RunScreen, run: Passes, pilot: Pilot[None]) -> None:
    """Let the run do ten more steps."""
    begun = len(run.records)
    for number in range(60, 70):
        run.do(f"s{number}", "more")
    assert isinstance(screen._source, ListSource)
    screen._source.waiting += run.records[begun:]
    screen.tick()
    await pilot.pause()


@pytest.mark.parametrize("kind", [PlanTree, StepText, LogPane])
@pytest.mark.parametrize("keys", sample([("g",), ("g", "pagedown"), ("g", "ctrl+d", "k")], 1))
async def test_new_records_do_not_scroll_the_text_being_read(kind: type[LinesView], keys: tuple[str, ...]) -> None:
    run = growing_run()
    screen = run_screen(run, live=True)
    async with on(screen).run_test(size=(120, 40)) as pilot:
        screen.tick()
        await pilot.pause()
        if kind is StepText:
            await pilot.press("1", "g", "j")
        pane = screen.query_one(kind)
        pane.focus()
        await pilot.press(*keys)
        await pilot.pause()
        before, marked = drawn(pane), pane.marked_line
        await go_on(screen, run, pilot)
        assert drawn(pane) == before
        assert pane.marked_line == marked
        assert screen.view.steps["s69"].status == "complete", "the run has gone on"


@pytest.mark.parametrize("kind", sample([PlanTree, StepText, LogPane], 2))
async def test_letters_and_arrows_move_alike(kind: type[LinesView]) -> None:
    screen = run_screen(growing_run())
    async with on(screen).run_test(size=(120, 40)) as pilot:
        screen.tick()
        await pilot.pause()
        if kind is StepText:
            await pilot.press("1", "g", "j")
        pane = screen.query_one(kind)
        pane.focus()
        for letters, arrows in ((("g", "j", "j"), ("home", "down", "down")), (("ctrl+d", "k"), ("pagedown", "up"))):
            places = []
            for keys in (letters, arrows):
                await pilot.press("g", *keys)
                await pilot.pause()
                places.append((pane.scroll_offset.y, pane.marked_line))
            assert places[0] == places[1]
            assert places[0] != (0, 0)


def test_every_status_and_severity_has_a_sign_of_its_own() -> None:
    for icons in (ROW_ICONS, SEVERITY_ICONS, {level: icon for level, (icon, _) in LEVELS.items()}):
        assert len(set(icons.values())) == len(icons)
    assert all(icon.strip() for icon, _ in RUN_STYLES.values()), "its word is next to it"


@pytest.mark.parametrize("width", [60, 120])
async def test_statuses_and_severities_differ_on_a_screen_without_any_style(width: int) -> None:
    run = Passes()
    run.plan(*(step(f"s{number}", "Do it", status) for number, status in enumerate(STATUSES)))
    run.report(*(issue(None, severity) for severity in SEVERITY_ICONS))
    screen = run_screen(run, live=True)
    async with on(screen).run_test(size=(width, 40)) as pilot:
        screen.tick()
        await pilot.pause()
        plan = screen.query_one(PlanTree)
        signs = {row.split(f" s{number} ")[0].strip() for number, row in enumerate(drawn(plan)[: len(STATUSES)])}
        assert len(signs) == len(STATUSES)
        await pilot.press("5")
        await pilot.pause()
        rows = [row.split()[:2] for row in drawn(screen.query_one(IssuesPane))]
        heads = [row for row in rows if row[-1:] and row[-1] in SEVERITY_ICONS]
        assert heads == [[icon, name] for name, icon in SEVERITY_ICONS.items()]
