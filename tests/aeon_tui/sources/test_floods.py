"""Records that come too fast to be shown one by one: the last states meanwhile, and nothing lost in the end."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeon_core.journal.follow import FollowPosition
from aeon_core.journal.listing import Awaited
from aeon_core.journal.view import reducer
from aeon_core.journal.view.last_states import LastStates
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
from aeon_tui.sources import base, journal
from aeon_tui.sources.base import RecordSource
from aeon_tui.sources.journal import FollowedSource
from aeon_tui.sources.live import LiveSource
from tests.aeon_tui.recordings import RUN_ID
from tests.aeon_tui.sources.test_followed import Watcher, Writer, envelope
from tests.aeon_tui.sources.test_journal import LONG
from tests.waiting import PATIENCE, wait_until

RUNNING = LONG[:-1]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything in its turn, nothing for the time it takes; a dozen records at once are too many."""
    monkeypatch.setattr(journal, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(journal, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(journal, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(journal, "VIEW_SECONDS", 0.001)
    monkeypatch.setattr(journal, "LATE_SECONDS", 0.002)
    monkeypatch.setattr(base, "FAST", 24)


class Shown:
    """What a screen makes of a source."""

    def __init__(self, source: RecordSource) -> None:
        self.source, self.view = source, RunView()

    def frame(self) -> None:
        if (view := self.source.take_view()) is not None:
            self.view = view
        for record in self.source.take(1):
            reducer.apply(self.view, record)

    def until_ended(self) -> None:
        def ended() -> bool:
            self.frame()
            return self.source.ended

        wait_until(ended)


def lines(view: RunView) -> list[tuple[int, str]]:
    return [(line.seq, line.text) for line in view.log]


@pytest.mark.exhaustive
@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=12), st.integers(1, 40))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_interleaving_of_writing_and_showing_loses_a_record(
    hurried: None, moves: list[tuple[int, bool]], capacity: int
) -> None:
    with TemporaryDirectory() as name:
        writer = Writer(Path(name) / f"{RUN_ID}.jsonl")
        writer.begin()
        source = LiveSource(writer.path, capacity=capacity)
        shown, rest = Shown(source), list(LONG)

        def write(count: int) -> None:
            for record in rest[:count]:
                writer.write(record)
                source.put(json.dumps(record).encode())
            del rest[:count]

        for count, framed in moves:
            write(count)
            if framed:
                shown.frame()
        write(len(rest))
        writer.die()
        source.finish()
        shown.until_ended()
        source.close()
        assert lines(shown.view) == lines(fold(LONG))
        assert shown.view.last_seq == LONG[-1]["seq"]
        assert shown.view.steps.keys() == fold(LONG).steps.keys()
        assert shown.view.result == fold(LONG).result


def test_a_watched_run_that_writes_too_fast_is_shown_by_its_last_states_then_whole(
    hurried: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = threading.Event()
    held = journal.JournalSource._read_all

    def when_let(source: journal.JournalSource, states: LastStates) -> FollowPosition | None:
        reading.wait(PATIENCE)
        return held(source, states)

    monkeypatch.setattr(journal.JournalSource, "_read_all", when_let)
    writer = Writer(tmp_path / f"{RUN_ID}.jsonl")
    writer.begin()
    writer.write(*RUNNING)
    watcher = Watcher(FollowedSource(Awaited(writer.path, tmp_path)))
    watcher.until(lambda: watcher.view.last_seq == RUNNING[-1]["seq"])
    assert watcher.view.whole_from > 0
    whole = fold(RUNNING)
    assert {key: step.status for key, step in watcher.view.steps.items()} == {
        key: step.status for key, step in whole.steps.items()
    }
    assert (watcher.view.ttl_spent, watcher.view.status) == (whole.ttl_spent, "running")
    reading.set()
    watcher.until(lambda: watcher.view.whole_from == 0 and watcher.source.live)
    new: dict[str, Any] = {**envelope(RUNNING[-1]), "type": "step", "pass": 1, "step_id": "s3", "status": "failed"}
    writer.write(new)
    watcher.until(lambda: watcher.view.last_seq == new["seq"])
    assert lines(watcher.view) == lines(fold([*RUNNING, new]))
    writer.die()
    watcher.source.close()
    wait_until(watcher.source._finished.is_set)


def test_the_whole_is_not_read_while_the_journal_grows_too_fast(
    hurried: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calm = tmp_path / "r.jsonl", threading.Event()
    path.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in RUNNING))

    def pace(source: FollowedSource, now: float, lines: int) -> None:
        source._seen.append((now, lines))
        source._fast = not calm.is_set()

    monkeypatch.setattr(FollowedSource, "_note_pace", pace)
    watcher = Watcher(FollowedSource(Awaited(path, tmp_path), fast=True))
    watcher.until(lambda: watcher.view.last_seq == RUNNING[-1]["seq"])
    assert watcher.source.reading == "too fast to show in full"
    assert (watcher.view.whole_from > 0, watcher.source.record(0)) == (True, None)
    calm.set()
    watcher.until(lambda: watcher.view.whole_from == 0)
    assert lines(watcher.view) == lines(fold(RUNNING))
    watcher.source.close()


def test_a_pace_is_too_fast_above_a_record_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(base.time, "monotonic", lambda: now[0])
    measured = base.RateMeter()
    limit = int(base.FAST * base.WINDOW_SECONDS)
    assert not measured.too_fast(limit)
    assert measured.too_fast(1)
    now[0] += base.WINDOW_SECONDS * 1.1
    assert not measured.too_fast(limit)
    assert measured.pause(0.05) == 0.05
    now[0] += base.QUIET_SECONDS * 1.1
    assert not measured.too_fast(0)
    assert measured.pause(0.04) == pytest.approx(0.12)
