"""The run screen of a run in passes at sizes that have not room for everything, and what it opens on."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.geometry import Region

from aeon_core.config.schema import RunConfig
from aeon_tui.screens.run.layout import PANES, SIDE
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.run_jobs import NewRunJob
from aeon_tui.sessions.runner import Runner
from aeon_widgets.approval_panel import ApprovalPanel, ApprovalText
from aeon_widgets.call_rows import RowKey
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.issues import IssuesPane
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import Pane, RailLine
from aeon_widgets.pass_line import PassLine
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.step_pane import StepPane
from aeon_widgets.ttl_gauge import TTLGauge
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.passes import Passes, converged_run, first_pass, given_up_run, second_pass, step
from tests.aeon_tui.recordings import finished_run
from tests.aeon_tui.screens.run.test_layouts import drawn
from tests.aeon_tui.screens.run.test_passes_screen import rows
from tests.aeon_tui.screens.run.test_screen import Shown, shown
from tests.aeon_tui.states import STATES, on
from tests.sampling import sample
from tests.waiting import until

KINDS = [pane.kind for pane in SIDE.values()]


def beside(run: Shown) -> list[str]:
    """The panes of the third column that are on screen as a whole."""
    panes = (run.screen.query_one(kind) for kind in KINDS)
    column = run.screen.query_one("#side").region
    there = [pane for pane in panes if pane.display]
    assert all(column.contains_region(pane.region) for pane in there)
    return [type(pane).__name__ for pane in there]


def footer(run: Shown) -> str:
    return run.screen._compositor.render_strips()[-1].text.rstrip()


def repaired(run: Passes) -> Passes:
    run.repair({"text": "{"}, {"text": "{}"}, "s1", "json_repair")
    return run


def expired_run() -> Passes:
    run = Passes()
    run.phase("execute")
    run.plan(*(step(name, "Name the parts") for name in ("s1", "s2", "s3")))
    run.do("s1", "parts")
    run.finish("ttl_expired")
    return run


def told(run: Shown) -> list[str]:
    """The lines of the rail: of the panes that are not open."""
    column = run.screen.query_one("#side").region
    lines = [line for line in run.screen.query(RailLine) if line.display]
    assert all(column.contains_region(line.region) for line in lines), [(column, line.region) for line in lines]
    return [" ".join(line.render().plain.split()) for line in lines]


async def test_at_any_size_each_pane_is_open_or_a_line_that_opens() -> None:
    async with shown(repaired(given_up_run()), size=(110, 24)) as run:
        for size in ((110, 24), (120, 33), (140, 45), (200, 60)):
            await run.pilot.resize_terminal(*size)
            await run.pilot.pause()
            run.screen.tick()
            await run.pilot.pause()
            names = {line.split()[0] for line in told(run)} - {"Cost"}
            assert len(beside(run)) + len(names) == len(SIDE), size
            for number, pane in SIDE.items():
                await run.press(str(number))
                await run.pilot.pause()
                assert pane.kind.__name__ in beside(run), size


async def test_a_low_column_summarizes_its_other_panes_in_a_line_each() -> None:
    async with shown(given_up_run(), size=(110, 24)) as run:
        assert beside(run) == ["ConvergencePane"]
        assert told(run) == [
            "3 TTL █████ 50 of 50 left",
            "Cost $0.00 (simulated)",
            "5 Issues ✖1 ⚠1 ·1",
            "6 Repairs none",
        ]
        await run.press("5")
        assert beside(run) == ["TTLGauge", "IssuesPane"]
        assert told(run) == ["4 Convergence ✖ 1 of 3 requirements", "6 Repairs none"]
        await run.pilot.click(next(line for line in run.screen.query(RailLine) if line.number == 4))
        await until(run.pilot, lambda: run.screen.query_one(ConvergencePane).has_focus)
        assert beside(run) == ["ConvergencePane"]


async def test_all_panes_of_the_card_are_open_at_140_by_45_live_and_while_a_question_waits() -> None:
    for state in ("live", "pass"):
        screen = STATES[state]()
        async with on(screen).run_test(size=(140, 45)) as pilot:
            await until(pilot, lambda screen=screen: screen.query_one(LogPane).region.height)
            await pilot.pause()
            whole = Region(0, 0, 140, 45)
            for kind in (PlanTree, StepPane, *KINDS, LogPane, *([ApprovalPanel] if state == "pass" else [])):
                pane = screen.query_one(kind)
                assert whole.contains_region(pane.region), (state, kind)
                assert pane.region.height >= 3, (state, kind)


async def test_the_log_has_three_rows_until_its_number_or_enter_opens_it() -> None:
    async with shown(given_up_run(), size=(120, 40)) as run:
        log = run.screen.query_one(LogPane)
        assert log.size.height == 3
        heights = []
        for key in ("8", "8", "enter", "1", "8", "z", "z"):
            await run.press(key)
            await run.pilot.pause()
            heights.append(log.size.height)
        opened = heights[0]
        assert opened > 10
        assert heights[:5] == [opened, 3, opened, opened, opened]
        assert heights[5] > opened
        assert heights[6] == opened


async def test_the_column_makes_room_when_the_run_ends() -> None:
    first, whole = first_pass(), given_up_run()
    async with shown(first, size=(120, 33), live=True) as run:
        before = beside(run)
        await run.go_on(whole.records[len(first.records) :])
        await run.pilot.pause()
        assert len(beside(run)) < len(before)
        assert len(told(run)) > 1


@pytest.mark.parametrize(
    ("height", "shown_lines"),
    [
        (
            20,
            ["34 of 40 cycles left", "16 spent · 40 of 50 allocated", "deep · sufficiency low", "$0.00 (simulated)"],
        ),
        (18, ["34 of 40 cycles left", "16 spent", "deep", "$0.00 (simulated) · 10 calls", "last: ", "tokens "]),
    ],
)
async def test_a_low_ttl_pane_shows_the_most_important_first(height: int, shown_lines: list[str]) -> None:
    run_of = second_pass()
    run_of.add("ttl", limit=50, allocated=40, spent=16, remaining=34, reason="x", usage={}, cost_usd=0.0)
    async with shown(run_of, size=(80, height), live=True) as run:
        await run.press("3")
        await run.pilot.pause()
        gauge = run.screen.query_one(TTLGauge)
        told = gauge.render().plain.split("\n")
        assert len(told) <= gauge.size.height
        assert all(any(part in line for line in told) for part in shown_lines)


@pytest.mark.exhaustive
async def test_the_footer_always_shows_help_and_quit() -> None:
    wide = ("tab Next", "z Zoom", "f Follow", "esc Runs", "ctrl+p Palette")
    async with shown(given_up_run(), size=(40, 20)) as run:
        for pane in ("1", "8", "5", "4", "3"):
            for width in (40, 48, 60, 72, 80):
                await run.pilot.resize_terminal(width, 20)
                await run.press(pane)
                await until(run.pilot, lambda width=width: len(footer(run)) <= width and "q Quit" in footer(run))
                assert "? Help" in footer(run)
            await run.pilot.resize_terminal(120, 20)
            await until(run.pilot, lambda: all(key in footer(run) for key in wide))


async def test_a_narrow_footer_prefers_keys_of_the_focused_pane() -> None:
    async with shown(given_up_run(), size=(60, 20)) as run:
        await run.press("5")
        await run.pilot.pause()
        assert footer(run) == "⏎ Open v Severity V Type I All passes esc Runs q Quit ? Help"


@pytest.mark.parametrize("width", sample([20, 30, 40, 50], 1))
async def test_the_narrowest_screen_labels_simulated_runs(width: int) -> None:
    for run_of in (second_pass(), finished_run()):
        async with shown(run_of, size=(width, 20), live=True) as run:
            assert run.header[1].startswith("SIMULATED")


async def test_the_guide_leaves_room_for_every_pane_on_a_small_screen() -> None:
    runner = Runner(NewRunJob("design it", RunConfig(), guide="Simulated model. " * 9), Path("runs/r.jsonl"))
    async with shown(Passes(), size=(60, 20), live=True) as run:
        screen = RunScreen(ListSource(first_pass().records, live=True), runner)
        await run.app.push_screen(screen)
        screen.tick()
        await run.pilot.pause()
        assert screen.max_scroll_y == 0
        assert screen.query_one(Outcome).display
        await run.press("escape")
        await run.pilot.pause()
        assert screen.query_one(LogPane).outer_size.height == 3


async def test_the_guide_is_one_line_on_a_low_screen_and_absent_on_the_lowest() -> None:
    runner = Runner(NewRunJob("design it", RunConfig(), guide="Simulated model. " * 9), Path("runs/r.jsonl"))
    async with shown(Passes(), size=(60, 20), live=True) as run:
        screen = RunScreen(ListSource(first_pass().records, live=True), runner)
        await run.app.push_screen(screen)
        screen.tick()
        for rows, lines in [(18, 3), (17, 1), (13, 1), (12, 0), (10, 0)]:
            await run.pilot.resize_terminal(60, rows)
            await until(run.pilot, lambda lines=lines: screen.query_one("#guide").region.height == lines)
            assert screen.max_scroll_y == 0
            guide = [line for line in drawn(screen) if "Simulated model." in line]
            assert len(guide) == lines
            assert lines != 1 or guide[0].rstrip().endswith("…")


@pytest.mark.parametrize("kind", sample([TTLGauge, ConvergencePane, IssuesPane], 1))
async def test_the_focused_pane_keeps_the_focus_as_the_screen_shrinks(kind: type[Pane]) -> None:
    first, whole = first_pass(), given_up_run()
    async with shown(first, size=(120, 40), live=True) as run:
        pane = run.screen.query_one(kind)
        pane.focus()
        await run.go_on(whole.records[len(first.records) :])
        for size in [(60, 20), (120, 36), (80, 24), (200, 50), (120, 30), (120, 36)]:
            await run.pilot.resize_terminal(*size)
            await run.pilot.pause()
            assert run.screen.focused is pane


async def test_a_very_low_screen_shows_every_pane_without_scrolling_as_a_whole() -> None:
    async with shown(given_up_run(), size=(60, 15)) as run:
        await run.pilot.press("8")
        for rows in range(15, 9, -1):
            await run.pilot.resize_terminal(60, rows)
            await run.pilot.pause()
            assert run.screen.max_scroll_y == 0
            for kind in (LogPane, Outcome):
                assert Region(0, 0, 60, rows).contains_region(run.screen.query_one(kind).region)
                assert run.screen.query_one(kind).size.height >= 1
            assert run.tree.size.height >= 1


async def test_a_long_question_on_a_low_screen_keeps_its_last_row_in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ApprovalText, "get_content_height", lambda *_: 99)
    screen = STATES["pass"]()
    async with on(screen).run_test(size=(80, 24)) as pilot:
        for width, height in [(60, 14), (100, 15), (60, 18), (80, 19), (120, 18), (80, 21), (80, 24), (80, 29)]:
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            assert screen.max_scroll_y == 0, (width, height)
            assert screen.query_one(ApprovalPanel).region.bottom < height, (width, height)


async def test_a_new_run_shows_its_task_and_pass_panes_at_once() -> None:
    for single_pass in (False, True):
        runner = Runner(NewRunJob("design it", RunConfig(single_pass=single_pass)), Path("runs/r.jsonl"))
        async with shown(Passes(), live=True) as run:
            screen = RunScreen(ListSource([], live=True), runner)
            await run.app.push_screen(screen)
            await run.pilot.pause()
            assert screen.query_one(PassLine).display is not single_pass
            assert screen.query_one(ConvergencePane).display is not single_pass
            assert screen.view.task == "design it"


async def test_an_abandoned_run_opens_on_the_step_at_fault() -> None:
    async with shown(given_up_run()) as run:
        assert run.tree.selected == RowKey("step", "s3"), "it has the issue of the highest severity"
        assert run.step.pane_title.startswith("Step s3")
    async with shown(converged_run()) as run:
        assert run.tree.selected == RowKey("step", "s3.2"), "the last one executed"


async def test_an_expired_run_opens_where_it_stopped() -> None:
    async with shown(expired_run()) as run:
        assert run.tree.selected == RowKey("step", "s2")


async def test_a_failed_step_comes_before_an_issue() -> None:
    run_of = first_pass()
    run_of.step("s2", "failed", errors=["boom"])
    run_of.finish("not_converged")
    async with shown(run_of) as run:
        assert run.tree.selected == RowKey("step", "s2")


async def test_an_issue_of_a_refined_step_is_marked_and_leaves_the_tree() -> None:
    async with shown(first_pass(), size=(200, 50), live=True) as run:
        issues = run.screen.query_one(IssuesPane)
        assert "✖1" in rows(run)[2]
        assert "refined" not in "".join(text for text, _ in issues.pieces(0, 60))
        await run.go_on(second_pass().records[len(first_pass().records) :])
        assert "✖1" not in "".join(rows(run))
        assert "".join(text for text, _ in issues.pieces(0, 60)).startswith(" ✖ high s3 specificity ✎ refined")
        assert "·1" in rows(run)[0], "a refused refinement answers nothing"


async def test_an_empty_issues_pane_explains_why() -> None:
    async with shown(Passes(), live=True) as run:
        issues = run.screen.query_one(IssuesPane)
        assert issues.render_line(0).text.strip() == "Not validated yet."
        await run.go_on(converged_run().records[1:])
        assert issues.render_line(0).text.strip() == "No issues found."
        assert issues.render_line(1).text.strip() == "Press I for those of all passes."
        await run.press("5", "I", "v", "v", "V")
        assert issues.line_count == 0
        assert issues.render_line(0).text.strip() == "No issues match the filter."


async def test_an_unreadable_reply_is_marked_and_opens_its_repairs() -> None:
    run_of = first_pass()
    run_of.called("refine", "{")
    for attempt in (1, 2):
        refused = {"attempt_number": attempt, "method": "llm", "error": {"message": "no"}}
        run_of.add("supervisor", action_type="json_repair", **refused)
    run_of.repair({"text": "{"}, {"text": "{}"}, "s1", "json_repair")
    async with shown(run_of, live=True) as run:
        assert rows(run)[-1] == "▸ pass 1 ✖ complete 0.40 coherent 0.60 ⚠"
        await run.press("G", "right")
        assert rows(run)[-1] == "✔ refine the plan ⚠ complete"
        assert "⚠" not in rows(run)[6], "the first refinement was readable"
        await run.press("G", "t", "right")
        assert run.text.text.count("refinement JSON not repaired") == 2
        run.tree.select(RowKey("calls", "refine"))
        await run.press("2")
        assert run.text.text == "No repairs."


@pytest.mark.exhaustive
async def test_panes_are_drawn_completely_while_resizing_a_live_run() -> None:
    later = given_up_run().records[len(first_pass().records) :]
    sizes = [(60, 20), (300, 10), (40, 12), (120, 36), (20, 6)]
    async with shown(first_pass(), size=(120, 40), live=True) as run:
        for record, size in zip(later, sizes, strict=False):
            run.source.waiting.append(record)
            await run.pilot.resize_terminal(*size)
            run.screen.tick()
            await run.press("4", "z", "7", "z")
        assert run.app.is_running
        assert all(run.screen.query(PANES[number]) for number in (1, 2, 3, 4, 5, 7, 8))
