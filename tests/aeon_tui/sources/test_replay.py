"""A past run is shown at its own pace: each record when it is due, none lost, and what differs today is said."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core import Orchestrator, RunConfig
from aeon_core.effects.replay_cursor import Difference
from aeon_core.errors import UsageError
from aeon_core.runs.replay import Replay
from aeon_tui.sources import replay
from aeon_tui.sources.replay import AT_ONCE, PAUSE_SECONDS, SPEEDS, ReplayCheck, ReplaySource, speed_of, speed_words
from tests.aeon_tui.fakes import ListSource
from tests.fakes import ScriptedModel, add, steps
from tests.waiting import PATIENCE, wait_until

SLOW = 1_000.0
"""Seconds that `take` may use: the tests' machine is no part of them."""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def recorded(*gaps: float, types: dict[int, str] | None = None) -> list[dict[str, Any]]:
    """Records so many seconds after one another."""
    at = datetime(2026, 11, 20, tzinfo=UTC)
    records = []
    for seq, gap in enumerate((0.0, *gaps)):
        at += timedelta(seconds=gap)
        records.append({"seq": seq, "ts": at.isoformat(), "type": (types or {}).get(seq, "step")})
    return records


class Player:
    """A source whose time passes as the test says."""

    def __init__(self, *gaps: float, speed: float = 1.0, types: dict[int, str] | None = None) -> None:
        self.clock = Clock()
        self.recorded_source = ListSource(recorded(*gaps, types=types))
        self.source = ReplaySource(Path("r.jsonl"), speed, self.clock, self.recorded_source)

    def after(self, seconds: float) -> list[int]:
        self.clock.now += seconds
        return [record["seq"] for record in self.source.take(SLOW)]


def test_records_are_replayed_at_their_recorded_intervals() -> None:
    player = Player(1.0, 0.5, 2.0)
    assert player.after(0) == [0]
    assert player.after(0.75) == []
    assert player.after(0.25) == [1]
    assert player.after(0.75) == [2]
    assert player.after(1.5) == []
    assert not player.source.ended
    assert player.after(0.25) == [3]
    assert player.source.ended


def test_ten_times_as_fast_is_a_tenth_of_the_time() -> None:
    player = Player(10.0, 10.0, speed=10.0)
    assert player.after(0) == [0]
    assert player.after(0.9) == []
    assert player.after(0.2) == [1]
    assert player.after(0.9) == [2]


def test_a_long_wait_is_cut_short_at_any_speed() -> None:
    player = Player(36_000.0, 36_000.0, speed=0.25)
    assert player.after(0) == [0]
    assert player.after(PAUSE_SECONDS - 0.25) == []
    assert player.after(0.25) == [1]
    player.source.faster()
    assert player.after(PAUSE_SECONDS) == [2]


def test_max_shows_everything_at_once() -> None:
    player = Player(*[3_600.0] * 50, speed=AT_ONCE)
    assert player.after(0) == list(range(51))


def test_a_pause_keeps_the_place_and_the_time_to_the_next_record() -> None:
    player = Player(1.0, 1.0)
    assert player.after(0) == [0]
    assert player.after(0.5) == []
    player.source.toggle()
    assert player.after(500) == []
    player.source.toggle()
    assert player.after(0.25) == []
    assert player.after(0.25) == [1]


def test_stepping_shows_one_record_and_skips_long_texts() -> None:
    player = Player(5.0, 5.0, 5.0, types={1: "text"})
    assert player.after(0) == [0]
    player.source.step()
    assert player.after(0) == [1, 2]
    assert player.source.paused
    assert player.after(100) == []
    player.source.step()
    player.source.step()
    assert player.after(0) == [3]
    assert player.source.ended


def test_neither_a_step_nor_a_wait_is_lost_if_there_was_no_time_left_for_its_record() -> None:
    player = Player(2.0, 2.0)
    player.source.step()
    assert player.source.take(0) == []
    assert player.after(0) == [0]
    player.source.toggle()
    player.clock.now += 2
    assert player.source.take(0) == []
    assert player.after(0) == [1]


def test_the_end_is_jumped_to_from_a_pause() -> None:
    player = Player(*[9.0] * 5)
    player.source.toggle()
    assert player.after(1) == []
    player.source.jump_to_end()
    assert player.after(0) == [0, 1, 2, 3, 4, 5]
    assert player.source.ended


def test_the_speed_changes_in_steps_within_limits() -> None:
    source = Player(speed=3.0).source
    source.faster()
    assert source.speed == 5.0
    source.slower()
    assert source.speed == 2.0
    for _ in SPEEDS:
        source.slower()
    assert source.speed == SPEEDS[0]
    for _ in SPEEDS:
        source.faster()
    assert source.speed == AT_ONCE


def test_a_slow_read_does_not_speed_up_the_replay() -> None:
    player = Player(1.0, 1.0)
    late, player.recorded_source.waiting = player.recorded_source.waiting, []
    player.recorded_source.ended = False
    assert player.after(60) == []
    player.recorded_source.waiting = [*late, *recorded(*[1.0] * 9)[3:]]
    assert len(player.after(0)) <= 1 + PAUSE_SECONDS


def test_damage_and_errors_of_the_journal_are_passed_on() -> None:
    player = Player(1.0)
    player.recorded_source.damage, player.recorded_source.error = ["line 2: broken"], UsageError("no journal")
    player.after(0)
    assert (player.source.damage, player.source.error) == (["line 2: broken"], player.recorded_source.error)
    player.source.close()
    assert player.recorded_source.closed


@pytest.mark.parametrize("stamp", ["", "yesterday", None, 5])
def test_a_record_without_a_time_is_due_at_once(stamp: Any) -> None:
    player = Player(7.0, 7.0)
    player.recorded_source.waiting[1]["ts"] = stamp
    assert player.after(0) == [0, 1, 2]


@given(
    gaps=st.lists(st.floats(0, 30), max_size=20),
    acts=st.lists(st.sampled_from(["toggle", "step", "faster", "slower", "wait"]), max_size=30),
    speed=st.sampled_from(SPEEDS),
)
def test_every_record_comes_once_in_order_for_any_keys(gaps: list[float], acts: list[str], speed: float) -> None:
    player = Player(*gaps, speed=speed)
    seen = []
    for act in acts:
        if act != "wait":
            getattr(player.source, act)()
        seen += player.after(0.4)
    player.source.jump_to_end()
    seen += player.after(0)
    assert seen == list(range(len(gaps) + 1))


def test_a_feed_reads_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    lines = [{"v": 1, "run": "r", **record} for record in recorded(0.1, 0.1)]
    lines[0]["type"] = "run_started"
    order = ("v", "seq", "ts", "run", "type")
    path.write_text("".join(json.dumps({key: line[key] for key in order}) + "\n" for line in lines))
    source = ReplaySource(path, AT_ONCE)
    seen: list[int] = []

    def ended() -> bool:
        seen.extend(record["seq"] for record in source.take(0.01))
        return source.ended

    wait_until(ended)
    assert (seen, source.error, source.journal) == ([0, 1, 2], None, path)


@pytest.mark.parametrize(
    ("text", "speed"),
    [("1", 1.0), ("0.5", 0.5), ("10", 10.0), ("max", AT_ONCE)]
    + [(text, None) for text in ("0", "-1", "inf", "nan", "fast", "", "1e999")],
)
def test_a_speed_is_a_number_above_0_or_max(text: str, speed: float | None) -> None:
    assert speed_of(text) == speed


def test_a_speed_has_a_short_name() -> None:
    assert [speed_words(speed) for speed in (0.25, 1.0, 10.0, AT_ONCE)] == ["0.25x", "1x", "10x", "max"]


def run_of_two_steps(path: Path) -> Path:
    model = ScriptedModel(plan=steps(add(5, 10), {"agent": "llm"}), reason="thought", answer="15")
    Orchestrator(model, journal=path, config=RunConfig(single_pass=True, durability="off")).run("add them")
    return path


def test_an_unchanged_run_has_no_difference(tmp_path: Path) -> None:
    check = ReplayCheck(run_of_two_steps(tmp_path / "r.jsonl"))
    assert check.wait(PATIENCE)
    assert (check.finding, check.differs_at) == (None, None)


def test_the_first_difference_is_found(tmp_path: Path) -> None:
    path = run_of_two_steps(tmp_path / "r.jsonl")
    text = path.read_text()
    path.write_text(text.replace('"step_id":"s1","status":"complete"', '"step_id":"s1","status":"failed"'))
    seq = next(json.loads(line)["seq"] for line in path.read_text().splitlines() if '"s1","status":"failed"' in line)
    check = ReplayCheck(path)
    assert check.wait(PATIENCE)
    assert check.differs_at == seq
    assert check.finding == (
        f"Aeon now behaves differently, starting at record {seq}; `aeon-tui replay RUN --check` shows how"
    )


def test_an_uncheckable_run_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsound(path: Path) -> Replay:
        raise UsageError("line 3 is broken")

    path = run_of_two_steps(tmp_path / "r.jsonl")
    for check, said in [
        (ReplayCheck(path, unsound), "not checked: line 3 is broken"),
        (ReplayCheck(tmp_path / "none.jsonl"), "not checked: the journal cannot be read: No such file or directory"),
    ]:
        assert check.wait(PATIENCE)
        assert (check.finding, check.differs_at) == (said, None)
    monkeypatch.setattr(replay, "CHECKED_BYTES", 10)
    check = ReplayCheck(path, lambda _: Replay("r", 1, None, Difference(1, "", "", "")))
    assert check.wait(PATIENCE)
    assert check.finding == "the journal is too large to check here; use `aeon-tui replay RUN --check`"
