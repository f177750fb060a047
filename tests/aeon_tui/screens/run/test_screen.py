from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual import events
from textual.pilot import Pilot

from aeon_core.config.schema import RunConfig
from aeon_core.entities import RunResult, TTLState
from aeon_core.errors import JournalError, UsageError
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.keys import KeyColumns
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.run_jobs import GUIDE, NewRunJob
from aeon_tui.sessions.runner import Runner
from aeon_widgets.call_rows import RowKey
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import StepPane, StepText
from aeon_widgets.ttl_gauge import TTLGauge
from tests.aeon_tui.fakes import ListSource, build_scripted
from tests.aeon_tui.recordings import HOSTILE, START, Recording, failed_run, finished_run, hostile_run, live_run
from tests.sampling import sample
from tests.waiting import PATIENCE, until


class Shown:
    """A run screen under test."""

    def __init__(self, app: AeonApp, screen: RunScreen, source: ListSource, pilot: Pilot[None]) -> None:
        self.app, self.screen, self.source, self.pilot = app, screen, source, pilot
        self.tree, self.log = screen.query_one(PlanTree), screen.query_one(LogPane)
        self.step, self.text = screen.query_one(StepPane), screen.query_one(StepText)

    async def go_on(self, records: list[dict[str, Any]]) -> None:
        self.source.waiting += records
        self.screen.tick()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def header(self) -> list[str]:
        return self.screen.query_one(RunHeader).render().plain.split("\n")


@asynccontextmanager
async def shown(run: Recording, size: tuple[int, int] = (120, 40), live: bool = False) -> AsyncIterator[Shown]:
    app = AeonApp(Path("unused"))
    source = ListSource(run.records, live)
    screen = RunScreen(source, clock=lambda: START + timedelta(seconds=100))
    app.first_screen = screen
    async with app.run_test(size=size) as pilot:
        screen.tick()
        await pilot.pause()
        yield Shown(app, screen, source, pilot)


def row(tree: PlanTree, index: int, width: int = 60) -> str:
    return "".join(text for text, _ in tree.pieces(index, width))


async def test_every_step_shows_its_status_as_icon_and_word() -> None:
    async with shown(live_run(), live=True) as run:
        rows = [row(run.tree, index) for index in range(run.tree.line_count)]
    assert [" ".join(line.split()) for line in rows] == [
        "✔ s1 add 5 and 10 complete",
        "✔ s2 repeat the sum ✎ complete",
        "▶ s3 say it nicely, in one friendly sente… ⠋ 76 s running",
        "○ s4 check the sentence pending",
        "▸ plan and answer",
    ]
    assert {len(line) for line in rows} == {60}


async def test_the_header_names_task_model_status_time_and_ttl() -> None:
    async with shown(live_run(), live=True) as run:
        first, second = run.header
        assert " ".join(first.split()) == "aeon add 5 and 10, and say it nicely ▶ running"
        assert second.startswith("SIMULATED  simulated:default  pass 1 · execute")
        assert second.endswith("  01:40")
        assert "TTL" not in second, "the TTL pane has it"
        assert len(second) == 118
        await run.go_on(finished_run().records[len(live_run().records) :])
        assert run.header[0].endswith("✔ completed")
        assert run.header[1].endswith("  00:36"), "the time stops at the last record"


async def test_a_real_model_is_not_labelled_simulated() -> None:
    run_on_a_real_model = Recording(model="openai:gpt")
    async with shown(run_on_a_real_model, live=True) as run:
        assert "SIMULATED" not in run.header[1]
        assert run.header[1].startswith("openai:gpt")


async def test_the_label_simulated_survives_a_narrow_screen() -> None:
    async with shown(live_run(), size=(60, 20), live=True) as run:
        assert run.header[1].startswith("SIMULATED  simulated:default")
        assert run.header[1].endswith("48/50 left  01:40")


async def test_a_run_without_an_end_that_nobody_writes_is_interrupted() -> None:
    async with shown(live_run()) as run:
        assert run.header[0].endswith("… interrupted")
        assert run.header[1].endswith("00:24")


async def test_a_past_run_is_being_read_until_its_feed_has_ended() -> None:
    records = finished_run().records
    async with shown(Recording()) as run:
        run.source.ended = False
        await run.go_on(records[:20])
        assert run.header[0].endswith("reading …")
        assert "20 records read" in run.header[1]
        assert not any("ended before this was done" in line for line in run.text.text.splitlines())
        run.source.ended = True
        await run.go_on([])
        assert run.header[0].endswith("… interrupted")
        assert "records read" not in run.header[1]


async def test_a_file_without_readable_records_is_not_running() -> None:
    nothing = Recording()
    nothing.records.clear()
    async with shown(nothing) as run:
        run.source.error = UsageError("no journal")
        run.screen.tick()
        assert run.screen.status == "unreadable"


class Journalless:
    """A kernel whose journal cannot be written: it ends without a word, or does not even begin."""

    def __init__(self, status: str) -> None:
        self.status = status

    def close(self) -> None:
        """Holds nothing open."""

    def run(self) -> RunResult:
        if self.status == "unstarted":
            raise JournalError("the runs directory is full")
        return RunResult(
            run_id="r1",
            status="failed",
            error={"error_type": "JournalError", "message": "no space left on device"},
            ttl=TTLState(limit=1, allocated=1, spent=0, remaining=1),
            model="simulated:default",
            simulated=True,
        )

    def abort(self) -> None:
        """Nothing runs."""


@pytest.mark.parametrize(
    ("status", "message"),
    [("unstarted", "✖ the runs directory is full"), ("unjournaled", "✖ no space left on device")],
)
async def test_a_run_whose_end_is_not_journaled_is_shown_as_failed(status: str, message: str) -> None:
    start = NewRunJob("add", RunConfig(model="simulated:default"))
    runner = Runner(start, Path("r1.jsonl"), lambda *_: Journalless(status))
    app = AeonApp(Path("unused"), runner)
    async with app.run_test(size=(80, 24)) as pilot:
        assert runner.wait(PATIENCE)
        await pilot.pause()
        assert isinstance(app.screen, RunScreen)
        app.screen.tick()
        await pilot.pause()
        assert app.screen.query_one(RunHeader).render().plain.split("\n")[0].endswith("✖ failed")
        outcome = app.screen.query_one(Outcome)
        assert (outcome.display, outcome.pane_title, outcome.text) == (True, "Error", message)


async def test_one_escape_leaves_a_demo_whose_question_hides_its_guide() -> None:
    runner = Runner(NewRunJob("t", RunConfig(), guide=GUIDE), Path("r1.jsonl"), build_scripted(live_run().records))
    app = AeonApp(Path("unused"), runner)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.add_class("-asking")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        runner.abort()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_demo_explains_what_to_watch_until_hidden(size: tuple[int, int]) -> None:
    runner = Runner(NewRunJob("t", RunConfig(), guide=GUIDE), Path("r1.jsonl"), build_scripted(live_run().records))
    app = AeonApp(Path("unused"), runner)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        guide = app.screen.query_one("#guide")
        assert (guide.region.y, guide.region.height) == (2, 2)
        text = " ".join(" ".join(strip.text.split()) for strip in app.screen._compositor.render_strips()[2:4])
        assert text == GUIDE.format(approve="a", back="esc")
        await pilot.press("z", "escape")
        await pilot.pause()
        assert app.screen.maximized is None
        await pilot.press("escape")
        await pilot.pause()
        assert not app.screen.query("#guide")
        assert app.screen.query_one(PlanTree).region.y == 2
        runner.abort()


async def test_other_runs_have_no_guide_and_no_key_for_it() -> None:
    async with shown(finished_run()) as run:
        assert not run.screen.query("#guide")
        assert "x" not in run.screen.active_bindings


async def test_the_selection_follows_the_running_step_until_the_person_moves() -> None:
    async with shown(live_run(), live=True) as run:
        rest = finished_run().records[len(live_run().records) :]
        assert run.tree.selected == RowKey("step", "s3")
        await run.go_on(rest[:3])
        assert run.tree.selected == RowKey("step", "s4")
        await run.press("k", "k", "up")
        assert run.tree.selected == RowKey("step", "s1")
        assert "add 5 and 10" in run.text.text
        await run.go_on(rest[3:])
        assert run.tree.selected == RowKey("step", "s1")
        await run.press("f")
        assert run.tree.selected == RowKey("step", "s4")


async def test_a_failed_run_opens_on_the_step_that_failed() -> None:
    async with shown(failed_run()) as run:
        assert run.tree.selected == RowKey("step", "s3")
        assert "✖ the model answered 503 three times; try again later" in " ".join(run.text.text.split())
        outcome = run.screen.query_one(Outcome)
        assert (outcome.display, outcome.pane_title) == (True, "Error")
        assert outcome.text == "✖ the model answered 503 three times; try again later"


async def test_the_answer_appears_when_the_run_ends() -> None:
    async with shown(live_run(), live=True) as run:
        outcome = run.screen.query_one(Outcome)
        assert not outcome.display
        await run.go_on(finished_run().records[len(live_run().records) :])
        assert outcome.display
        assert outcome.text == "Five and ten make fifteen. Both the sum and the sentence were checked."
        await run.press("7")
        assert run.screen.focused is outcome


async def test_the_tabs_of_a_step_show_prompt_tool_call_and_repairs() -> None:
    async with shown(finished_run()) as run:
        await run.press("g", "j", "t")
        assert run.text.text.splitlines()[:3] == ["━━ echo · pure · 2 ms", "arguments", "{"]
        assert '  "text": "15"' in run.text.text.splitlines()
        await run.press("right")
        assert [line for line in run.text.text.splitlines() if "tool" in line] == [
            '  "tool": "shout"',
            '  "tool": "echo"',
        ]
        await run.press("p")
        assert "Aeon repair" in run.text.text
        assert "Do it." in run.text.text
        await run.press("p")
        told = " ".join(run.text.text.split())
        assert told.startswith("repeat the sum tool echo · ✎ repaired by the supervisor · 1 model call · 1 tool call")
        await run.press("left")
        assert run.step.tab == 3
        await run.press("l", "right")
        assert run.step.tab == 1


async def test_calls_outside_any_step_are_shown() -> None:
    async with shown(finished_run()) as run:
        await run.press("end", "p")
        assert "Aeon plan" in run.text.text
        await run.press("p", "1", "enter", "end")
        assert run.tree.selected == RowKey("calls", "answer", 1)
        assert "Five and ten make fifteen." in run.text.text


async def test_a_repair_leads_to_its_step() -> None:
    async with shown(finished_run()) as run:
        await run.press("6", "enter")
        assert run.tree.selected == RowKey("step", "s2")
        assert (run.step.tab, run.screen.focused) == (3, run.text)


async def test_the_log_follows_until_scrolled_and_end_resumes() -> None:
    busy = Recording()
    for number in range(100):
        busy.add("memory", key=f"k{number}", value=number)
    async with shown(busy, size=(80, 24), live=True) as run:
        assert run.log.scroll_offset.y == run.log.max_scroll_y > 0
        await run.press("8", "pageup", "k")
        place = run.log.scroll_offset.y
        assert place < run.log.max_scroll_y
        assert run.log.border_subtitle
        for number in range(20):
            busy.add("memory", key=f"more{number}", value=number)
        await run.go_on(busy.records[-20:])
        assert run.log.scroll_offset.y == place
        await run.press("end")
        assert run.log.scroll_offset.y == run.log.max_scroll_y
        assert not run.log.border_subtitle
        busy.add("memory", key="last", value=1)
        await run.go_on(busy.records[-1:])
        assert run.log.scroll_offset.y == run.log.max_scroll_y


async def test_the_mouse_wheel_ends_following_and_resumes_it_at_the_end() -> None:
    busy = Recording()
    for number in range(100):
        busy.add("memory", key=f"k{number}", value=number)

    def wheel(kind: type[events.MouseEvent], log: LogPane) -> events.MouseEvent:
        return kind(log, 5, 2, 0, 0, 0, False, False, False)

    async with shown(busy, live=True) as run:
        run.log.post_message(wheel(events.MouseScrollUp, run.log))
        await run.pilot.pause()
        assert not run.log.following
        for _ in range(3):
            run.log.post_message(wheel(events.MouseScrollDown, run.log))
        await run.pilot.pause()
        assert run.log.following


def log_lines(log: LogPane) -> list[str]:
    top = log.scroll_offset.y
    return ["".join(text for text, _ in log.pieces(top + row, 80)) for row in range(log.size.height)]


async def test_a_paused_log_keeps_its_lines_while_any_number_comes_and_then_continues_below_them() -> None:
    flood = Recording()
    for number in range(30):
        flood.add("memory", key=f"k{number}", value=number)
    async with shown(flood, size=(80, 24), live=True) as run:
        await run.press("8", "k")
        read = log_lines(run.log)
        for number in range(300):
            flood.add("memory", key=f"more{number}", value=number)
        await run.go_on(flood.records[-300:])
        assert run.log.border_subtitle == "paused · 300 new · End follows"
        await run.press("j")
        assert log_lines(run.log)[:-1] == read[1:]
        await run.press("j")
        assert "more0 = 0" in log_lines(run.log)[-1], "the next line, not the last one"
        assert not run.log.following
        read = log_lines(run.log)
        for number in range(6_000):
            flood.add("memory", key=f"most{number}", value=number)
        await run.go_on(flood.records[-6_000:])
        assert log_lines(run.log) == read
        await run.press("end")
        assert "most5999" in log_lines(run.log)[-1]
        assert not run.log.border_subtitle


async def test_dropped_log_lines_are_counted() -> None:
    flood = Recording()
    for number in range(5_600):
        flood.add("memory", key=f"k{number}", value=number)
    async with shown(flood, size=(80, 24), live=True) as run:
        dropped = run.screen.view.log_count - len(run.screen.view.log)
        assert dropped > 0
        assert "k5599 = 5599" in log_lines(run.log)[-1]
        await run.press("8", "home")
        first, second = log_lines(run.log)[:2]
        assert first == f" … {dropped:,} earlier lines, in the journal"
        assert run.screen.view.log[0].text in second


async def test_dropping_old_log_lines_does_not_scroll_the_text_being_read() -> None:
    flood = Recording()
    for number in range(5_400):
        flood.add("memory", key=f"k{number}", value=number)
    async with shown(flood, size=(80, 24), live=True) as run:
        run.log.following = False
        run.log.scroll_to(y=3_000, animate=False, immediate=True, force=True)
        read = "".join(text for text, _ in run.log.pieces(3_000, 80))
        for number in range(200):
            flood.add("memory", key=f"more{number}", value=number)
        await run.go_on(flood.records[-200:])
        assert run.screen.view.log[0].seq > 0
        assert "".join(text for text, _ in run.log.pieces(run.log.scroll_offset.y, 80)) == read


async def test_panes_are_reached_by_number_by_tab_and_by_mouse() -> None:
    async with shown(finished_run()) as run:
        assert run.screen.focused is run.tree
        await run.press("2")
        assert run.screen.focused is run.text
        await run.press("8")
        assert run.screen.focused is run.log
        await run.press("shift+tab")
        assert run.screen.focused is run.screen.query_one(Outcome)
        await run.pilot.click(PlanTree, offset=(5, 1))
        assert run.screen.focused is run.tree
        assert run.tree.selected == RowKey("step", "s1")


async def test_a_click_on_a_tab_opens_it() -> None:
    async with shown(finished_run()) as run:
        await run.pilot.click("TabBar", offset=(13, 0))
        await run.pilot.pause()
        assert run.step.tab == 1


async def test_zoom_toggles_a_pane_to_the_whole_screen() -> None:
    async with shown(finished_run(), size=(80, 24)) as run:
        await run.press("8", "z")
        assert run.screen.maximized is run.log
        assert run.log.size.height >= 18
        await run.press("2")
        assert run.screen.maximized is run.step
        await run.press("z")
        assert run.screen.maximized is None
        assert run.screen.focused is run.text


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 60)])
async def test_every_pane_fits_every_screen(size: tuple[int, int]) -> None:
    async with shown(finished_run(), size=size) as run:
        width, height = size
        for kind in (RunHeader, PlanTree, StepPane, LogPane, Outcome, RepairsPane, TTLGauge):
            pane = run.screen.query_one(kind)
            if pane.display and pane.region.area:
                assert pane.region.right <= width
                assert pane.region.bottom <= height - 1
        assert run.tree.size.height >= 3
        assert run.text.size.height >= 3
        assert run.text.size.width >= 30
        assert run.log.size.height >= 1


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (121, 40)])
async def test_wrapped_text_leaves_room_for_the_scroll_bar(size: tuple[int, int]) -> None:
    async with shown(hostile_run(), size=size) as run:
        for view in (run.text, run.screen.query_one(Outcome)):
            room = view.scrollable_content_region.width
            lines = view.text.split("\n")
            assert room - 20 <= max(cell_len(line) for line in lines) <= room
    async with shown(finished_run(), size=size) as run:
        outcome = run.screen.query_one(Outcome)
        assert outcome.size.height == len(outcome.text.split("\n"))


async def test_resizing_keeps_the_selected_step_in_sight() -> None:
    long = Recording()
    long.plan(*[{"step_id": f"s{n}", "description": "x", "agent": "llm"} for n in range(100)])
    long.step("s60", "running")
    async with shown(long, size=(120, 50), live=True) as run:
        await run.pilot.resize_terminal(80, 24)
        await run.pilot.pause()
        top = run.tree.scroll_offset.y
        assert top <= run.tree.cursor < top + run.tree.size.height


@pytest.mark.usefixtures("drawn_frames")
async def test_only_visible_ones_of_two_thousand_steps_are_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = Recording()
    huge.plan(*[{"step_id": f"s{n}", "description": f"step {n}", "agent": "llm"} for n in range(2_000)])
    rendered: set[int] = set()
    pieces = PlanTree.pieces
    monkeypatch.setattr(
        PlanTree, "pieces", lambda self, index, width: rendered.add(index) or pieces(self, index, width)
    )
    async with shown(huge, live=True) as run:
        assert run.tree.line_count == 2_000
        await run.press("end")
        assert run.tree.selected == RowKey("step", "s1999")
        assert len(rendered) < 200


@pytest.mark.parametrize("size", sample([(80, 24), (60, 20), (120, 40)]))
async def test_hostile_text_is_shown_as_plain_text(size: tuple[int, int]) -> None:
    async with shown(hostile_run(), size=size) as run:
        assert run.screen.view.damage == []
        await run.press(
            "g", "j", "p", "t", "right", "left", "z", "z", "question_mark", "escape", "8", "home", "7", "end"
        )
        assert "[@click=app.quit]quit[/]" in run.screen.query_one(Outcome).text
        assert "[bold]B[/]" in run.header[0]
        screenshot = run.app.export_screenshot()
        for strip in run.screen._compositor.render_strips():
            assert not {"\x1b", "\x00", "\x07", "\u202e"} & set(strip.text)
            strip.text.encode()
        assert run.app.is_running
        assert "bold]B[" in screenshot


async def test_markup_in_a_title_is_not_interpreted() -> None:
    nasty = Recording()
    nasty.plan({"step_id": "[red]x[/red]", "description": HOSTILE, "agent": "llm"})
    async with shown(nasty, live=True) as run:
        assert run.step._border_title is not None
        assert run.step._border_title.plain.startswith("2 Step [red]x[/red] ·")


async def test_a_waiting_call_shows_what_has_streamed_so_far() -> None:
    async with shown(live_run(), live=True) as run:
        assert run.text.text.splitlines()[-1] == "Waiting for the model …"


async def test_a_call_that_was_cut_off_is_not_shown_as_running() -> None:
    aborted = Recording()
    aborted.phase("plan")
    aborted.ask("plan")
    aborted.finish("aborted", error={"error_type": "RunAborted", "message": "aborted in a model call"})
    async with shown(aborted) as run:
        assert row(run.tree, 0).split() == ["▸", "plan", "and", "answer", "◼", "make", "the", "plan"]
        assert run.text.text.splitlines()[-1] == "The run ended before this was done."
        outcome = run.screen.query_one(Outcome)
        assert (outcome.pane_title, outcome.text) == ("Aborted", "◼ aborted in a model call")


async def test_a_step_left_running_is_shown_as_stopped_after_the_run() -> None:
    run_of = live_run()
    async with shown(run_of, live=True) as run:
        assert row(run.tree, 2).split()[0] == "▶"
        run_of.finish("aborted")
        await run.go_on(run_of.records[-1:])
        assert (row(run.tree, 2).split()[0], row(run.tree, 2).split()[-1]) == ("◼", "stopped")
        assert run.step.pane_title == "Step s3 · ◼ stopped"
    async with shown(live_run()) as run:
        assert run.step.pane_title == "Step s3 · ◼ stopped"


async def test_the_ttl_pane_shows_cycles_left_and_spent_and_the_last_ones_use() -> None:
    async with shown(finished_run()) as run:
        lines = run.screen.query_one(TTLGauge).render().plain.split("\n")
        assert [line.strip() for line in lines[1:4]] == ["46 of 50 cycles left", "4 spent", "last: the answer"]


async def test_a_refused_repair_does_not_look_like_a_failed_plan() -> None:
    refused = live_run()
    refused.add(
        "supervisor", action_type="plan_repair", attempt_number=2, method="llm", step_id="s3", error={"message": "no"}
    )
    async with shown(refused, live=True) as run:
        pane = run.screen.query_one(RepairsPane)
        assert "".join(text for text, _ in pane.pieces(1, 60)) == " ✖ s3 step not repaired · 2 of 2, by the model"


async def test_a_live_run_turns_interrupted_when_its_writer_dies() -> None:
    async with shown(live_run(), live=True) as run:
        run.source.live = False
        run.screen.tick()
        await run.pilot.pause()
        assert run.header[0].endswith("… interrupted")
        assert run.text.text.splitlines()[-1] == "The run ended before this was done."


async def test_a_key_typed_right_after_a_pane_number_reaches_that_pane() -> None:
    async with shown(finished_run()) as run:
        run.screen.action_pane(6)
        assert run.screen.focused is run.screen.query_one(RepairsPane)


async def test_damage_is_reported_in_header_and_log() -> None:
    async with shown(live_run()) as run:
        run.source.damage.append("line 7: not JSON")
        run.screen.tick()
        assert "⚠ 1 problem in the journal" in run.header[1]
        assert run.screen.view.log[-1].text == "line 7: not JSON"
        run.screen.tick()
        assert "⚠ 1 problem in the journal " in run.header[1]


async def test_a_file_that_is_not_a_journal_is_reported_once() -> None:
    async with shown(Recording()) as run:
        run.source.error = UsageError("'[bold]x' is no journal")
        run.screen.tick()
        run.screen.tick()
        await run.pilot.pause()
        assert [note.message for note in run.app._notifications] == ["'[bold]x' is no journal"]
        assert all(not note.markup for note in run.app._notifications)
        assert run.screen.view.log[-1].text == "'[bold]x' is no journal", "it stays when the notice has gone"


async def test_the_key_help_lists_one_action_a_line_and_filters_by_typing() -> None:
    async with shown(finished_run(), size=(120, 40)) as run:
        await run.press("8", "question_mark")
        help_screen = run.app.screen
        keys = help_screen.query_one(KeyColumns)
        for row in (
            "z Zoom",
            "ctrl+q  q Quit",
            "↑  k Up",
            "8 Go to Log",
            "ctrl+p Command palette",
            "✎ repaired by the supervisor",
        ):
            assert row in keys.text.split("\n")
        assert "Scroll" not in keys.text
        head = "".join(text for text, _ in keys.pieces(0, keys.size.width))
        assert (head.split()[0], len(keys._columns)) == ("Log", 3)
        await run.press(*"zoom")
        assert keys.text == "z Zoom"
        await run.press("escape")
        assert "z Zoom" in keys.text
        await run.press("slash", *"everywhere quit")
        assert keys.text == "ctrl+c Copy, or quit\nctrl+q  q Quit"
        await run.press("escape", "escape")
        assert run.app.screen is run.screen


async def test_leaving_the_screen_closes_its_feed() -> None:
    async with shown(finished_run()) as run:
        source = ListSource(live_run().records)
        await run.app.push_screen(RunScreen(source))
        await run.press("8", "escape")
        assert isinstance(run.app.screen, BrowserScreen)
        assert source.closed


async def test_other_themes_work_on_the_same_screen() -> None:
    async with shown(finished_run()) as run:
        for theme in ("aeon-light", "textual-dark", "textual-light", "nord", "ansi-dark"):
            run.app.theme = theme
            await run.pilot.pause()
            assert "completed" in run.app.export_screenshot(), theme


async def test_no_color_removes_colours_and_keeps_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with shown(finished_run()) as run:
        assert run.app.no_color
        colours = {
            segment.style.color.triplet
            for strip in run.screen._compositor.render_strips()
            for segment in strip.apply_filter(run.app._filters[-1], run.app.styles.background)
            if segment.style is not None and segment.style.color is not None
        }
    assert all(colour is None or colour.red == colour.green == colour.blue for colour in colours)
