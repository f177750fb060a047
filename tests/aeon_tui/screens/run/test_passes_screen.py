"""The run screen on runs that go round in passes: what it adds, where it leads, and that plain runs have none of it."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.geometry import Region

from aeon_tui.screens.run.layout import PANES, SIDE
from aeon_widgets.call_rows import RowKey
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.issues import IssuesPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pass_line import PassLine
from aeon_widgets.ttl_gauge import TTLGauge
from tests.aeon_tui.passes import (
    QUESTION,
    REASON,
    REVISED,
    Passes,
    converged_run,
    first_pass,
    given_up_run,
    hostile_passes,
    many_passes,
    second_pass,
)
from tests.aeon_tui.recordings import finished_run
from tests.aeon_tui.screens.run.test_screen import Shown, row, shown

SIZES = [pytest.param((60, 20), id="60"), pytest.param((80, 24), id="80"), pytest.param((120, 40), id="120")]
SIZES += [pytest.param((120, 24), id="low"), pytest.param((200, 50), id="200")]


def rows(run: Shown, width: int = 100) -> list[str]:
    return [" ".join(row(run.tree, index, width).split()) for index in range(run.tree.line_count)]


def line(run: Shown) -> str:
    return run.screen.query_one(PassLine).render().plain


def lower_border(run: Shown, number: int) -> str:
    subtitle = run.screen.query_one(PANES[number])._border_subtitle
    return subtitle.plain if subtitle is not None else ""


async def test_the_tree_has_the_steps_that_count_and_a_row_for_each_pass() -> None:
    async with shown(first_pass(), live=True) as run:
        assert rows(run) == [
            "✔ s1 Name the parts ·1 complete",
            "✔ s2 Describe each part in three sentences ✎1 complete",
            "✔ s3 Put the parts together ✖1 complete",
            "▸ pass 1 ✖ complete 0.40 coherent 0.60",
        ]
        await run.go_on(second_pass().records[len(first_pass().records) :])
        assert rows(run) == [
            "✔ s1 Name the parts ·1 complete",
            "✔ s2 Describe each part in three sentences ✎1 complete",
            "▶ s3-r1 replaces s3 · Work out the parts and put them together ⊘1 ✎1 running",
            "▶ s3.1 Work out the resources ⠴ 49 s running",
            "○ s3.2 Work out the error replies pending",
            "▸ pass 1 ✖ complete 0.40 coherent 0.60",
        ]
        assert row(run.tree, 3, 60).startswith("   ▶ s3.1"), "a substep is indented"
        assert run.tree.pane_title == "Plan 2/5 done", "a step that was replaced is not waited for"
        assert run.tree.selected == RowKey("step", "s3.1")


async def test_a_folded_row_is_unfolded_by_keys_mouse_and_links() -> None:
    async with shown(second_pass(), live=True) as run:
        folded = rows(run)
        run.tree.select(RowKey("step", "s3"))
        assert rows(run)[2:4] == [folded[2], "⊘ s3 Put the parts together invalid"]
        await run.press("1", "left")
        assert rows(run) == folded
        assert run.tree.selected == RowKey("step", "s3-r1")
        await run.press("right", "left", "end", "enter")
        assert rows(run)[-7:] == [
            "▾ pass 1 ✖ complete 0.40 coherent 0.60",
            "✔ assess the task complete",
            "✔ make the plan complete",
            "✔ refine the plan complete",
            "✔ write the answer complete",
            "✔ evaluate complete",
            "✔ refine the plan complete",
        ]
        assert run.tree.selected == RowKey("pass", "", 1)
        assert run.text.text.splitlines()[0].startswith("not converged")
        assert "✔ evaluate · 1 model call" in run.text.text
        await run.press("enter")
        assert rows(run) == folded
        await run.pilot.click(run.tree, offset=(2, len(folded)))
        assert len(rows(run)) == len(folded) + 6
        run.tree.select(RowKey("calls", "judge", 1))
        await run.press("1", "left")
        assert (rows(run), run.tree.selected) == (folded, RowKey("pass", "", 1))


@pytest.mark.parametrize("key", ["enter", "right", "click"])
async def test_what_a_row_unfolds_is_in_sight(key: str) -> None:
    async with shown(converged_run(), size=(60, 20)) as run:
        tree = run.tree
        await run.press("1", "end")
        last = tree.line_count - 1
        assert tree.scroll_offset.y + tree.size.height == last + 1, "the last pass is in the last line"
        if key == "click":
            await run.pilot.click(tree, offset=(2, tree.size.height))
        else:
            await run.press(key)
        in_sight = range(tree.scroll_offset.y, tree.scroll_offset.y + tree.size.height)
        assert tree.line_count > last + 1
        assert last in in_sight
        assert last + 1 in in_sight


async def test_the_pass_line_has_phases_scores_and_what_runs_now() -> None:
    async with shown(second_pass(), live=True) as run:
        assert line(run) == "1 plan ─ execute ─ evaluate ─ refine ✖ complete 0.40 coherent 0.60   2 ▶ execute"
        await run.go_on(converged_run().records[len(second_pass().records) :])
        assert line(run).startswith("1 plan ─ execute ─ evaluate ─ refine ✖ 0.40 0.60   2 execute ─ evaluate ✔ ")
        assert line(run).endswith("✔ complete 1.00 coherent 0.95")
    async with shown(second_pass()) as run:
        assert line(run).endswith("2 ◼ execute"), "nothing of an interrupted run is running"


@pytest.mark.parametrize(("width", "start"), [(200, "1 ✖ 0.50"), (80, "… 8 ✖"), (30, "… 12 ▶"), (9, "… 12 ▶ e…")])
async def test_many_passes_stay_on_one_line_that_ends_with_the_last(width: int, start: str) -> None:
    async with shown(many_passes(), size=(width + 2, 24), live=True) as run:
        assert line(run).startswith(start)
        assert line(run).endswith("execute" if width > 9 else "e…")
        assert cell_len(line(run)) <= width


async def test_the_convergence_pane_shows_trend_flags_and_reasons() -> None:
    async with shown(first_pass(), live=True) as run:
        pane = run.screen.query_one(ConvergencePane)
        assert pane.pane_title == "Convergence · pass 1: not yet"
        assert pane.text.splitlines()[:3] == [
            "✖ complete ▃ 0.40",
            "✖ coherent ▅ 0.60",
            "◐ The answer names the resources",
        ]
        assert "✖ the goal is not covered," in pane.text.splitlines()
        assert "✔ plan ✔ step ✖ answer ✔ memory\ndisagreeing: answer\n" in pane.text
        await run.go_on(converged_run().records[len(first_pass().records) :])
        assert pane.text.splitlines()[0] == "✔ complete ▃█ 1.00 +0.60"
        assert "✔ complete, coherent, consistent" in pane.text.splitlines()


async def test_an_issue_leads_to_its_step_and_the_step_back_to_its_issues() -> None:
    async with shown(first_pass(), live=True) as run:
        await run.press("5", "enter")
        assert run.tree.selected == RowKey("step", "s3")
        assert (run.step.tab, run.screen.focused) == (4, run.text)
        assert run.text.text.startswith("━━ ✖ high · specificity · s3 · pass 1\n")
        assert "→ Split the step, one for each part." in run.text.text
        await run.press("1", "up", "up", "i")
        issues = run.screen.query_one(IssuesPane)
        assert run.tree.selected == RowKey("step", "s1")
        assert (run.screen.focused, issues.cursor) == (issues, 4)


async def test_a_step_finds_its_earlier_issue_despite_filters() -> None:
    async with shown(converged_run()) as run:
        issues = run.screen.query_one(IssuesPane)
        assert issues.pane_title == "Issues 0 · pass 2 (4 in all)"
        run.tree.select(RowKey("step", "s2"))
        await run.press("i")
        assert (issues.pane_title, issues.cursor) == ("Issues 4 · all passes", 6)
        await run.press("v")
        assert issues.pane_title == "Issues 1 of 4 · high · all passes"
        await run.press("1", "i")
        assert issues.pane_title == "Issues 4 · all passes"
        run.tree.select(RowKey("step", "s3.2"))
        await run.press("1", "i")
        assert run.screen.focused is run.tree
        assert [note.message for note in run.app._notifications] == ["No issues found in s3.2."]


async def test_issue_filters_are_shown_in_the_title() -> None:
    async with shown(first_pass(), live=True) as run:
        issues = run.screen.query_one(IssuesPane)
        titles = []
        for key in ("5", "v", "v", "v", "v", "V", "v", "V", "V", "V", "I"):
            await run.press(key)
            titles.append(issues.pane_title)
        assert titles == [
            "Issues 3 · pass 1 (4 in all)",
            "Issues 1 of 3 · high · pass 1 (4 in all)",
            "Issues 1 of 3 · medium · pass 1 (4 in all)",
            "Issues 1 of 3 · low · pass 1 (4 in all)",
            "Issues 3 · pass 1 (4 in all)",
            "Issues 1 of 3 · do/say mismatch · pass 1 (4 in all)",
            "Issues 0 of 3 · high · do/say mismatch · pass 1 (4 in all)",
            "Issues 0 of 3 · high · relevance · pass 1 (4 in all)",
            "Issues 1 of 3 · high · specificity · pass 1 (4 in all)",
            "Issues 1 of 3 · high · pass 1 (4 in all)",
            "Issues 1 of 4 · high · all passes",
        ]
        shown_keys = {binding.binding.key for binding in run.screen.active_bindings.values() if binding.binding.show}
        assert {"v", "V", "I"} <= shown_keys


async def test_the_changes_of_a_step_show_before_and_after_or_why_not() -> None:
    async with shown(second_pass(), live=True) as run:
        run.tree.select(RowKey("step", "s2"))
        await run.press("2", "left")
        text = run.text.text
        assert "━━ ✔ change s2, accepted · pass 1" in text
        assert 'description "Do it" → "Describe each part' in " ".join(text.split())
        run.tree.select(RowKey("step", "s1"))
        await run.pilot.pause()
        assert "━━ ✖ change s1, refused · pass 1" in run.text.text
        assert "why not: still vague" in run.text.text
        run.tree.select(RowKey("step", "s3.1"))
        await run.pilot.pause()
        assert "change s3, accepted" not in run.text.text.splitlines()[0]
        run.tree.select(RowKey("step", "s3-r1"))
        await run.pilot.pause()
        assert run.text.text.splitlines()[0] == "It replaces s3, which is invalid."


async def test_calls_between_passes_show_their_outcome_before_the_reply() -> None:
    async with shown(second_pass(), live=True) as run:
        run.tree.select(RowKey("calls", "judge", 1))
        await run.pilot.pause()
        assert run.step.pane_title == "Pass 1 · evaluate"
        assert run.text.text.startswith("━━ ✖ high · specificity · s3 · pass 1\n")
        assert run.text.text.endswith("\nEvaluate\n"), "data is no text for a person"
        run.tree.select(RowKey("calls", "refine", 0))
        await run.pilot.pause()
        assert "s2, accepted" in run.text.text
        assert "s1, refused" not in run.text.text
        run.tree.select(RowKey("calls", "refine", 1))
        await run.pilot.pause()
        assert "s1, refused" in run.text.text
        assert "s2, accepted" not in run.text.text


async def test_a_reply_is_followed_and_then_replaced_by_its_outcome() -> None:
    run_of = first_pass()
    run_of.ask("refine")
    async with shown(run_of, live=True) as run:
        assert run.tree.selected == RowKey("pass", "", 1)
        assert run.text.following
        seen = len(run_of.records)
        run_of.answer("refine", "[]\n" * 99)
        run_of.refine("s3")
        await run.go_on(run_of.records[seen:])
        assert (run.text.following, run.text.scroll_offset.y) == (False, 0)
        assert "\n✔ change s3: " in run.text.text


async def test_the_ttl_pane_has_the_profile_and_leads_to_the_reason_of_every_version() -> None:
    async with shown(second_pass(), live=True) as run:
        gauge = run.screen.query_one(TTLGauge)
        lines = [text.strip() for text in gauge.render().plain.split("\n")]
        assert lines[2:4] == ["10 spent · 50 of 50 allocated", "deep · sufficiency low · v2"]
        await run.press("3", "enter")
        assert run.tree.selected == RowKey("calls", "profile")
        told = " ".join(run.text.text.split())
        assert told.startswith(f"━━ profile 2 · from pass 2 on · deep reasoning · 40 cycles why: {REVISED}")
        assert f"━━ profile 1 · from pass 1 on · deep reasoning · 30 cycles why: {REASON}" in told
        assert "information sufficiency: low" in told


async def test_open_questions_appear_during_the_run_and_stay_with_the_answer() -> None:
    async with shown(first_pass(), live=True) as run:
        outcome = run.screen.query_one(Outcome)
        assert (outcome.display, outcome.pane_title, outcome.text) == (True, "For you", f"? {QUESTION}")
        await run.press("7")
        assert run.screen.focused is outcome
        await run.go_on(converged_run().records[len(first_pass().records) :])
        assert outcome.pane_title == "Answer · 1 open question"
        assert outcome.text.splitlines()[-1] == f"? {QUESTION}"


async def test_an_unconverged_run_shows_why_and_what_needs_a_person() -> None:
    low = "the goal is not covered, completeness is 0.40 of 0.80"
    low += "; the parts are inconsistent, coherence is 0.60 of 0.80"
    async with shown(given_up_run(), size=(200, 50)) as run:
        assert run.screen.query_one(Outcome).text.splitlines() == [
            "✖ The run ended without an accepted result.",
            f"why: {low}; another pass would change nothing",
            "Not finished.",
            "⚠ s3 needs a person: refined 3 times",
            f"? {QUESTION}",
        ]


async def test_a_plain_run_shows_no_passes() -> None:
    async with shown(finished_run()) as run:
        for kind in (PassLine, ConvergencePane, IssuesPane):
            assert not run.screen.query_one(kind).display
        await run.press("5", "4", "i")
        assert run.screen.focused is run.tree
        assert run.step.query_one("TabBar").labels == ("Output", "Prompt", "Tool call", "Repairs")
        assert "pass 1" not in "".join(rows(run))
        await run.press("2", "left")
        assert run.step.tab == 3


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", SIZES)
async def test_every_pane_is_reached_by_its_number_at_every_size(size: tuple[int, int]) -> None:
    run_of = converged_run()
    run_of.repair({"text": "{"}, {"text": "{}"}, "s1", "json_repair")
    async with shown(run_of, size=size) as run:
        screen = Region(0, 0, *size)
        for number in range(1, 9):
            await run.press(str(number))
            pane = run.screen.query_one(PANES[number])
            assert pane.has_focus_within or pane.has_focus
            assert screen.contains_region(pane.region)
            assert pane.region.height >= 3
            assert pane.region.width >= 20
        assert run.tree.size.height >= 3


async def test_on_a_small_screen_the_lower_border_names_the_other_panes() -> None:
    async with shown(first_pass(), size=(80, 24), live=True) as run:
        assert lower_border(run, 2) == "3 TTL · 4 Convergence · 5 Issues 3"
        await run.press("4")
        assert not run.step.display
        assert lower_border(run, 4) == "2 Step · 3 TTL · 5 Issues 3"
        assert "TTL" in run.header[1]
        await run.press("3")
        assert "TTL" not in run.header[1]
        await run.press("5", "enter")
        assert run.step.display
        assert not run.screen.query_one(IssuesPane).display
        await run.pilot.resize_terminal(120, 40)
        await run.pilot.pause()
        await run.press("2")
        run.screen.query_one(IssuesPane).focus()
        await run.pilot.resize_terminal(80, 24)
        await run.pilot.pause()
        assert run.screen.focused is run.screen.query_one(IssuesPane), "what a person works in stays on screen"
        await run.press("enter")
        assert run.tree.selected == RowKey("step", "s3")
        await run.pilot.resize_terminal(120, 40)
        await run.pilot.pause()
        for pane in SIDE.values():
            assert run.screen.query_one(pane.kind).display
        assert lower_border(run, 2) == ""


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", SIZES)
async def test_hostile_text_stays_text_everywhere(size: tuple[int, int]) -> None:
    async with shown(hostile_passes(), size=size) as run:
        assert run.screen.view.damage == []
        for key in ("g", "c", "o", "1", "j", "j", "c", "5", "s", "y", "a", "enter", "i", "4", "end", "3", "enter", "7"):
            await run.press(key)
            for strip in run.screen._compositor.render_strips():
                assert not {"\x1b", "\x00", "\x07", "\u202e"} & set(strip.text)
                strip.text.encode()
        assert run.app.is_running
        assert "[@click=app.quit]quit[/]" in run.screen.query_one(Outcome).text


async def test_the_keys_of_issues_fit_eighty_columns() -> None:
    async with shown(first_pass(), size=(80, 24), live=True) as run:
        await run.press("5")
        await run.pilot.pause()
        footer = run.screen._compositor.render_strips()[-1].text
        for key in ("v Severity", "V Type", "I All passes", "q Quit", "? Help"):
            assert key in footer


async def test_a_new_run_shows_that_no_pass_was_assessed_yet() -> None:
    async with shown(Passes(), live=True) as run:
        assert line(run) == "no pass has started"
        assert run.screen.query_one(ConvergencePane).text == "No pass assessed yet."
        await run.press("3", "enter")
        assert run.screen.focused is run.screen.query_one(TTLGauge), "without a profile there is no reason to show"
