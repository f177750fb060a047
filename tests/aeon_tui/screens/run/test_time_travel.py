"""Time travel in the run's screen: by keys and by mouse, in past runs and in live ones."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
from aeon_tui.app import AeonApp
from aeon_tui.commands import step_commands
from aeon_tui.screens.run.screen import RunScreen
from aeon_widgets.call_rows import RowKey
from aeon_widgets.convergence import ConvergencePane, convergence_parts
from aeon_widgets.issues import IssuesPane
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import Pane
from aeon_widgets.pass_line import PassLine, Place, Scrubber
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.reply_text import VerdictBlocks
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import StepPane, StepText
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.passes import converged_run
from tests.aeon_tui.recordings import START


class Traveller:
    """A run's screen whose journal holds all records; the screen has some of them."""

    def __init__(self, app: AeonApp, screen: RunScreen, source: ListSource, pilot: Pilot[None]) -> None:
        self.app, self.screen, self.source, self.pilot = app, screen, source, pilot

    async def settle(self) -> None:
        await self.pilot.pause()
        await self.app.workers.wait_for_complete()
        self.screen.tick()
        await self.pilot.pause()
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    @property
    def seq(self) -> int | None:
        """The record that is shown, None where it is now."""
        snapshot = self.screen.travel.snapshot
        return snapshot.seq if snapshot is not None else None

    @property
    def line(self) -> str:
        header = self.screen.query_one(RunHeader)
        return header._moment(header.size.width) if header._position is not None else ""

    @property
    def text(self) -> str:
        return self.screen.query_one(StepText).text


@asynccontextmanager
async def travelling(
    path: Path, records: list[dict[str, Any]], *, had: int | None = None, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[Traveller]:
    """Open the screen on a journal of these records; with `had`, the run continues after so many of them."""
    write(path, records[:had])
    app, source = AeonApp(path.parent), ListSource(records[:had], live=had is not None)
    source.journal = path
    screen = RunScreen(source, clock=lambda: START + timedelta(seconds=100))
    app.first_screen = screen
    async with app.run_test(size=size) as pilot:
        traveller = Traveller(app, screen, source, pilot)
        await traveller.settle()
        yield traveller


def write(path: Path, records: list[dict[str, Any]]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in records)


def seqs(records: list[dict[str, Any]], kind: str) -> list[int]:
    return [record["seq"] for record in records if record["type"] == kind]


RECORDS = converged_run().records
FIRST_END, SECOND_END = seqs(RECORDS, "pass")
LAST = RECORDS[-1]["seq"]


def then(seq: int) -> RunView:
    return fold(RECORDS[: seq + 1])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "20261120-093000-a1b2c3.jsonl"


async def test_keys_step_through_passes_and_records(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        assert (run.seq, run.line) == (None, "")
        walk = []
        for key in ("[", "[", "]", "{", "{", "}", "[", "[", "[", "]"):
            await run.press(key)
            walk.append(run.seq)
        first, second = FIRST_END, SECOND_END
        assert walk == [second, first, second, second - 1, second - 2, second - 1, first, 0, 0, first]
        await run.press("]", "]")
        assert (run.seq, run.line) == (None, ""), "behind the last pass it is now"


async def test_the_palette_lists_the_steps_of_the_moment_that_is_shown(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        await run.press("[", "[")
        steps = {command.name.split()[3]: command for command in step_commands(run.screen)}
        statuses = {name: command.help.split()[0] for name, command in steps.items()}
        assert statuses == {name: step.status for name, step in then(FIRST_END).steps.items()}
        steps[last := list(steps)[-1]].act()
        await run.settle()
        assert run.screen.query_one(PlanTree).selected == RowKey("step", last)
        assert run.seq == FIRST_END


async def test_every_way_back_returns_to_now(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        for key in ("escape", "end", "f"):
            await run.press("[", "[")
            assert run.seq == FIRST_END, key
            await run.press(key)
            assert run.seq is None, key
            assert run.screen.shown_view is run.screen.view, key
            assert run.app.screen is run.screen, "only the next Escape leads to the list of runs"


async def test_end_returns_from_every_pane_and_g_goes_to_the_end_of_its_text(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        for pane in ("1", "2", "8"):
            await run.press("[", "[", pane, "G")
            assert run.seq == FIRST_END, pane
            await run.press("end")
            assert run.seq is None, pane


async def test_a_log_scrolled_back_explains_what_end_does(path: Path) -> None:
    async with travelling(path, RECORDS, size=(80, 24)) as run:
        log = run.screen.query_one(LogPane)
        await run.press("8", "k", "[")
        assert log.border_subtitle == "paused · End returns to now"
        await run.press("end")
        assert run.seq is None
        assert str(log.border_subtitle).endswith("End follows")
        await run.press("end")
        assert log.following


async def test_every_pane_shows_the_moment(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        for seq in range(3, LAST, 4):
            run.screen.show_moment(seq)
            await run.settle()
            view, screen = then(seq), run.screen
            assert list(screen.query_one(PlanTree)._view.steps) == list(view.steps)
            assert [step.status for step in screen.shown_view.steps.values()] == [
                step.status for step in view.steps.values()
            ]
            assert screen.query_one(ConvergencePane).text.split() == _words(convergence_parts(view))
            assert screen.query_one(IssuesPane).pane_title.startswith(f"Issues {len(view.issues)}")
            told = bool(view.result or view.follow_up_questions)
            assert ("had not ended" in screen.query_one(Outcome).text) is not told
            assert screen.query_one(LogPane)._log == view.log
            assert screen.query_one(RepairsPane).line_count == len(view.repairs)
            header = screen.query_one(RunHeader).render().plain
            assert header.split("\n")[1].endswith(f"{seq // 60:02d}:{seq % 60:02d}"), "the time is that of the record"
            assert f"record {seq} of {LAST}" in run.line


def _words(parts: Any) -> list[str]:
    blocks = [block for part in parts for block in (part.blocks if isinstance(part, VerdictBlocks) else [part])]
    return " ".join(text for _, text in blocks).split()


async def test_the_mark_names_the_moment_and_how_to_return(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        await run.press("[", "[")
        time = START.astimezone() + timedelta(seconds=FIRST_END)
        told = f" ◀ pass 1 of 2 · as of {time:%H:%M} · record {FIRST_END} of {LAST} "
        assert run.screen.query_one(RunHeader).render().plain.splitlines()[1].startswith(told)
        assert run.screen.active_bindings["escape"].binding.description == "Now"
        assert await run.pilot.click(RunHeader)
        await run.settle()
        assert (run.seq, run.line) == (None, "")


async def test_a_past_moment_fits_a_screen_that_becomes_very_low(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        await run.press("{")
        assert run.screen.query_one(Outcome).region.height > 2
        await run.pilot.resize_terminal(60, 10)
        await run.settle()
        assert run.screen.max_scroll_y == 0
        assert [run.screen.query_one(kind).region.height for kind in (Outcome, LogPane)] == [2, 2]


async def test_a_later_moment_is_offered_only_in_the_past(path: Path) -> None:
    keys = ("right_square_bracket", "right_curly_bracket")
    async with travelling(path, RECORDS) as run:
        assert not run.screen.active_bindings.keys() & keys
        await run.press("{")
        assert run.screen.active_bindings.keys() >= set(keys)
        await run.press("end")
        assert not run.screen.active_bindings.keys() & keys


@pytest.mark.exhaustive
async def test_a_click_on_the_timeline_goes_to_that_pass_or_phase(path: Path) -> None:
    phases = {
        (each["pass"], each["phase"]): each["seq"]
        for each in RECORDS
        if each["type"] == "phase" and each["state"] == "finished"
    }
    async with travelling(path, RECORDS, size=(200, 50)) as run:
        line, left, clicked = run.screen.query_one(PassLine), 0, []
        for part in line._parts():
            if part.place is not None and part.place not in clicked:
                await run.press("escape") if run.seq is not None else None
                await run.pilot.click(PassLine, offset=(left + 1, 0))
                await run.settle()
                place = part.place
                expected = phases[place] if place.phase else (FIRST_END, SECOND_END)[place.pass_number - 1]
                assert run.seq == expected, place
                clicked.append(place)
            left += len(part.text)
        assert Place(1, "execute") in clicked
        assert Place(2) in clicked


async def test_the_timeline_shows_all_passes_and_the_position(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        await run.press("[", "[")
        parts = run.screen.query_one(PassLine)._parts()
        marked = [part.text for part in parts if part.text.startswith("◆")]
        assert len(marked) == 1
        assert {part.place.pass_number for part in parts if part.place} == {1, 2}


async def test_the_scrubber_is_clicked_and_dragged(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        scrubber = run.screen.query_one(Scrubber)
        assert (scrubber.region.right, scrubber.share) == (120, 1.0)
        await run.pilot.click(Scrubber, offset=(0, 0))
        await run.settle()
        assert run.seq == LAST - 1
        await run.pilot.mouse_down(Scrubber, offset=(1, 0))
        await run.settle()
        assert (run.seq, scrubber.share) == (0, 0.0)
        await run.pilot.hover(Scrubber, offset=(12, 0))
        await run.settle()
        assert run.seq is not None
        assert abs(run.seq - LAST * 11 / 21) <= 1
        await run.pilot.mouse_up(Scrubber, offset=(12, 0))
        assert run.screen.selections == {}, "its line is not text"
        await run.pilot.hover(Scrubber, offset=(3, 0))
        await run.settle()
        assert abs(run.seq - LAST * 11 / 21) <= 1, "the button is up"


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (140, 45)])
async def test_time_travel_moves_no_pane(path: Path, size: tuple[int, int]) -> None:
    async with travelling(path, RECORDS, size=size) as run:
        before = panes_of(run.screen)
        for keys in (["["], ["["], ["{"], ["["]):
            await run.press(*keys)
            assert panes_of(run.screen) == before
            assert " ◀ " in (header := run.screen.query_one(RunHeader).render().plain)
            assert "SIMULATED" in header
        assert bool(run.screen.query_one(Scrubber).region) is (size[0] >= 110)
        await run.press("end")
        assert panes_of(run.screen) == before


def panes_of(screen: RunScreen) -> dict[str, object]:
    """Return where each pane that is on screen is; of those in the column at the side, that they are."""
    side = screen.query_one("#side")
    shown = [pane for pane in screen.query(Pane) if pane.region]
    return {type(pane).__name__: pane.parent is side or pane.region for pane in shown}


async def test_a_run_continues_while_a_past_moment_is_shown(path: Path) -> None:
    async with travelling(path, RECORDS, had=FIRST_END + 3) as run:
        await run.press("[")
        assert run.seq == FIRST_END
        shown = run.screen.query_one(PlanTree)._view
        write(path, RECORDS[FIRST_END + 3 :])
        run.source.waiting += RECORDS[FIRST_END + 3 :]
        await run.settle()
        assert run.seq == FIRST_END
        assert run.screen.query_one(PlanTree)._view is shown, "nothing moves under the reader"
        assert run.screen.view == fold(RECORDS), "and nothing is lost"
        assert f"record {FIRST_END} of {LAST}" in run.line
        await run.press("]")
        assert run.seq == SECOND_END
        await run.press("escape")
        assert run.screen.query_one(PlanTree)._view is run.screen.view


async def test_space_pauses_and_continues(path: Path) -> None:
    had = FIRST_END + 3
    async with travelling(path, RECORDS, had=had) as run:
        await run.press("space")
        assert run.seq == had - 1
        assert run.line.startswith(" ‖ paused · ")
        assert "0 records since" in run.line
        write(path, RECORDS[had : had + 5])
        run.source.waiting += RECORDS[had : had + 5]
        await run.settle()
        assert run.seq == had - 1
        assert "5 records since" in run.line
        await run.press("space")
        assert (run.seq, run.screen.shown_view.last_seq) == (None, had + 4)


async def test_keys_pressed_while_a_moment_loads_add_up(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        for _ in range(12):
            run.screen.action_record_moment(-1)
        await run.settle()
        assert run.seq == LAST - 12


async def test_a_run_without_a_journal_has_no_past(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        run.source.journal = None
        await run.press("[", "{", "space", "d")
        assert (run.seq, run.line) == (None, "")


async def test_an_unreadable_past_is_reported_and_changes_nothing(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        path.unlink()
        await run.press("[")
        assert (run.seq, run.line) == (None, "")
        assert [f"{path}" in note.message for note in run.app._notifications] == [True]


async def test_elided_values_of_a_step_are_read_for_the_moment(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        await run.press("[", "1", "G", "p")
        assert run.screen.query_one(StepPane).tab == 1
        assert "Aeon judge" in run.text
        assert "Being read" not in run.text


async def test_two_passes_are_compared_and_others_chosen(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        await run.press("d")
        assert run.screen.query_one(StepPane).tab == 4
        assert run.text.startswith("━━ Plan · end of pass 1 → end of pass 2")
        await run.press("(")
        assert run.text.startswith("━━ Plan · the first plan → end of pass 2")
        await run.press("<")
        assert run.text.startswith("━━ Plan · the first plan → end of pass 1")
        refined = [each for each in RECORDS if each["type"] == "refinement" and each["pass"] == 1 and each["accepted"]]
        assert refined
        assert all(each["action"]["reason"] in " ".join(run.text.split()) for each in refined)
        await run.press("d")
        assert not run.text.startswith("━━ Plan")


async def test_the_compared_passes_follow_the_moment(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        await run.press("d", "[", "[")
        assert run.text.startswith("━━ Plan · the first plan → end of pass 1")
        await run.press("escape")
        assert run.text.startswith("━━ Plan · end of pass 1 → end of pass 2")


async def test_a_run_is_opened_at_a_record(path: Path) -> None:
    async with travelling(path, RECORDS[:1], had=None) as run:
        write(path, RECORDS[1:])
        run.screen.show_moment(7)
        await run.settle()
        await run.settle()
        assert run.seq == 7


@pytest.mark.exhaustive
async def test_a_held_key_shows_moments_on_the_way(path: Path) -> None:
    async with travelling(path, RECORDS) as run:
        await run.press("{")
        shown = set()
        for _ in range(30):
            run.screen.action_record_moment(-1)
            await run.pilot.pause(0.01)
            shown.add(run.seq)
        await run.settle()
        assert run.seq == LAST - 31
        assert len(shown) > 2
