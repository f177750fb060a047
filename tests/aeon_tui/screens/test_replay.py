"""The replay of a past run or workflow in the app: it is marked as one, and its keys are a player's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from aeon_core.effects.replay_cursor import Difference
from aeon_core.runs.replay import Replay
from aeon_tui.app import AeonApp
from aeon_tui.screens.replay import ReplayScreen, WorkflowReplayScreen, replay_screen
from aeon_tui.sources.replay import AT_ONCE, ReplayCheck, ReplaySource
from aeon_widgets.run_header import RunHeader, WorkflowHeader
from aeon_widgets.workflow_panes import WorkflowPipeline
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.passes import converged_run
from tests.aeon_tui.recordings import Recording, finished_run
from tests.aeon_tui.workflows import completed
from tests.waiting import PATIENCE, until

Compare = Callable[..., bool]
SHOWN = 59
"""The last record of `converged_run` that is due after six seconds at tenfold speed."""
SIZES = [pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40")]


class Player:
    """The replay of a run on a screen, on a clock of the test's."""

    def __init__(self, run: Recording, speed: float = 1.0, check: ReplayCheck | None = None) -> None:
        self.now = 0.0
        self.source = ReplaySource(Path("r.jsonl"), speed, lambda: self.now, ListSource(run.records))
        self.app = AeonApp(Path("runs"))
        self.screen = ReplayScreen(self.source, check)
        self.app.first_screen = self.screen

    def after(self, seconds: float) -> int:
        """Let time pass; return the seq of the record that is shown last."""
        self.now += seconds
        self.screen.tick()
        return self.screen.view.last_seq

    @property
    def header(self) -> str:
        return self.screen.query_one(RunHeader).render().plain


@asynccontextmanager
async def playing(player: Player) -> AsyncIterator[Pilot[None]]:
    async with player.app.run_test(size=(80, 24)) as pilot:
        yield pilot


async def test_a_replay_shows_its_label_and_speed() -> None:
    player = Player(finished_run(), speed=10.0)
    async with playing(player):
        player.after(0)
        first, second = player.header.split("\n")
        assert first.endswith("▶ replaying")
        assert "REPLAY 10x" in second


async def test_keys_pause_and_step_and_change_the_speed() -> None:
    player = Player(finished_run())
    async with playing(player) as pilot:
        assert player.after(0) == 0
        assert player.after(2) == 2
        await pilot.press("space")
        assert player.after(60) == 2
        assert "‖ paused" in player.header
        await pilot.press("full_stop", "full_stop")
        assert player.after(0) == 4
        await pilot.press("plus", "equals_sign")
        player.after(0)
        assert "REPLAY 5x" in player.header
        await pilot.press("space")
        assert player.after(1) == 9
        await pilot.press("minus", "minus")
        assert player.source.speed == 1.0


async def test_end_jumps_to_the_end_and_returns_the_keys_to_the_panes() -> None:
    player = Player(finished_run())
    async with playing(player) as pilot:
        player.after(0)
        assert player.screen.chosen_run is None
        await pilot.press("end")
        assert player.after(0) == finished_run().records[-1]["seq"]
        assert player.screen.status == "completed"
        assert "REPLAY max" in player.header
        assert player.screen.chosen_run == Path("r.jsonl")
        assert player.screen.check_action("jump_to_end", ()) is False
        await pilot.press("space")
        assert not player.source.paused


async def test_a_recorded_run_without_an_end_is_interrupted_at_its_end() -> None:
    run = finished_run()
    del run.records[-1]
    player = Player(run)
    async with playing(player) as pilot:
        await pilot.press("end")
        player.after(0)
        assert player.screen.status == "interrupted"


async def test_text_typed_into_a_field_does_not_control_the_player() -> None:
    player = Player(finished_run())
    async with playing(player) as pilot:
        field = Input()
        await player.screen.mount(field)
        field.focus()
        await pilot.pause()
        await pilot.press("a", "space", "plus")
        assert field.value == "a +"
        assert (player.source.paused, player.source.speed) == (False, 1.0)


async def test_a_workflow_is_replayed_at_its_own_pace() -> None:
    records, now = completed().records, 0.0
    source = ReplaySource(Path("w.jsonl"), 1.0, lambda: now, ListSource(records))
    app, screen = AeonApp(Path("runs")), WorkflowReplayScreen(source)
    app.first_screen = screen
    async with app.run_test(size=(120, 40)) as pilot:

        def header() -> str:
            screen.tick()
            return screen.query_one(WorkflowHeader).render().plain

        assert header().split("\n")[0].endswith("▶ replaying")
        assert screen.has_class("-wide")
        assert screen.query_one(WorkflowPipeline).size.width < 50, "beside the conversation"
        now = 1.0
        assert "REPLAY 1x  agent repo-governor" in header()
        assert "00:01" in header(), "the time is that of the record"
        assert screen.chosen_run is None
        await pilot.press("space")
        now = 60.0
        assert "‖ paused" in header()
        assert screen.state.last_seq == 1
        await pilot.press("full_stop")
        screen.tick()
        assert screen.state.last_seq == 2
        await pilot.press("end")
        assert header().split("\n")[0].endswith("✔ completed")
        assert screen.chosen_run == Path("w.jsonl")
        assert screen.offers("replay")


async def test_a_transcript_without_a_journal_is_replayed_but_not_checked(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in completed().records))
    app, screen = AeonApp(tmp_path), replay_screen(path, AT_ONCE)
    app.first_screen = screen
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: screen.status == "completed")
    assert screen._check is None


@dataclass
class Differs:
    """A check that finds a difference."""

    difference = Difference(7, "step · s1 · output", '"[b]15[/b]"', '"16"')

    def __call__(self, path: Path) -> Replay:
        return Replay(path.stem, 7, None, self.difference)


async def test_the_first_difference_is_reported_on_the_screen(tmp_path: Path) -> None:
    journal = tmp_path / "r.jsonl"
    journal.touch()
    check = ReplayCheck(journal, Differs())
    assert check.wait(PATIENCE)
    player = Player(finished_run(), check=check)
    async with playing(player) as pilot:
        player.after(0)
        player.after(0)
        await until(pilot, lambda: player.app._notifications)
        (said,) = [each.message for each in player.app._notifications]
        assert said == "Aeon now behaves differently, starting at record 7; `aeon-tui replay RUN --check` shows how"
        assert "REPLAY 1x · differs from record 7 on" in player.header


@pytest.mark.parametrize("size", SIZES)
def test_replay_snapshots(snap_compare: Compare, size: tuple[int, int]) -> None:
    player = Player(converged_run(), speed=10.0)

    async def play(pilot: Pilot[None]) -> None:
        await pilot.pause()
        for _ in range(60):
            player.after(0.1)
        # On a busy machine, the time for one tick may end before all that is due is read.
        while player.after(0) < SHOWN:
            pass
        await pilot.press("space")
        player.after(0)
        await pilot.pause()

    assert snap_compare(player.app, terminal_size=size, run_before=play)
