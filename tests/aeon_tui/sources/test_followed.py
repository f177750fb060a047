"""A run of another process on the screen: here a file that a test writes and locks, as its process would."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from aeon_core.errors import JournalError
from aeon_core.journal.listing import Awaited
from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
from aeon_tui.app import AeonApp
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sources import journal
from aeon_tui.sources.journal import POLL_SECONDS, FollowedSource, JournalSource, StatusChange, source_of
from aeon_widgets.run_header import RunHeader
from tests.aeon_tui.recordings import RUN_ID, Recording, finished_run, live_run
from tests.waiting import PATIENCE, until, wait_until

DIED = "the run's process has ended"


class Writer:
    """The process that writes a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def begin(self) -> None:
        self._fd = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def write(self, *records: dict[str, Any]) -> None:
        assert self._fd is not None
        for record in records:
            os.write(self._fd, json.dumps(record, separators=(",", ":")).encode() + b"\n")

    def die(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def resumed(last: dict[str, Any], continues_at: int) -> dict[str, Any]:
    return {**envelope(last), "type": "run_resumed", "options": {}, "continues_at": continues_at}


def approval(last: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**envelope(last), "type": "approval", "point": "tool", "pass": 1, "step_id": "s2", **fields}


def envelope(last: dict[str, Any]) -> dict[str, Any]:
    return {"v": 1, "seq": last["seq"] + 1, "ts": last["ts"], "run": RUN_ID}


class Watcher:
    """What a screen makes of a source."""

    def __init__(self, source: FollowedSource) -> None:
        self.source = source
        self.view = RunView()
        self.views_taken = 0

    def until(self, reached: Callable[[], object]) -> None:
        def reached_now() -> object:
            if (view := self.source.take_view()) is not None:
                self.view = view
                self.views_taken += 1
            for record in self.source.take(1):
                reducer.apply(self.view, record)
            return reached()

        wait_until(reached_now)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path / f"{RUN_ID}.jsonl")
    yield made
    made.die()


@pytest.fixture
def watcher(writer: Writer) -> Iterator[Watcher]:
    source = FollowedSource(Awaited(RUN_ID, writer.path.parent))
    yield Watcher(source)
    source.close()
    assert source._finished.wait(PATIENCE)


def test_a_run_is_followed_from_before_its_file_exists_to_its_end(writer: Writer, watcher: Watcher) -> None:
    watcher.until(lambda: watcher.source.waiting)
    assert watcher.source.reading == f"waiting for the run {RUN_ID!r} in {str(writer.path.parent)!r} …"
    assert (watcher.source.live, watcher.source.ended) == (False, False)
    records = finished_run().records
    writer.begin()
    writer.write(*records[:5])
    watcher.until(lambda: watcher.source.live)
    assert watcher.view == fold(records[:5])
    assert (watcher.source.waiting, watcher.source.reading, watcher.source.notice) == (False, "", "")
    writer.write(*records[5:])
    writer.die()
    watcher.until(lambda: watcher.source.ended)
    assert watcher.view == fold(records)
    assert (watcher.source.live, watcher.source.notice, watcher.source.damage) == (False, "", [])


def test_the_death_of_the_writer_is_reported_and_a_resume_continues(writer: Writer, watcher: Watcher) -> None:
    records = live_run().records
    writer.begin()
    writer.write(*records)
    writer.die()
    watcher.until(lambda: watcher.source.ended)
    assert watcher.source.notice == DIED
    writer.begin()
    watcher.until(lambda: watcher.source.live)
    assert (watcher.source.notice, watcher.source.ended) == ("", False)
    more = resumed(records[-1], continues_at=len(records))
    writer.write(more)
    watcher.until(lambda: watcher.view.last_seq == more["seq"])
    assert watcher.view == fold([*records, more])
    assert watcher.views_taken == 0


def test_superseded_lines_leave_the_view(writer: Writer, watcher: Watcher) -> None:
    records = finished_run().records
    writer.begin()
    writer.write(*records)
    writer.die()
    watcher.until(lambda: watcher.source.ended)
    assert watcher.view.result is not None
    writer.begin()
    more = resumed(records[-1], continues_at=6)
    writer.write(more)
    watcher.until(lambda: watcher.view.last_seq == more["seq"])
    assert watcher.view == fold([*records[:6], more])
    assert watcher.views_taken == 1


def test_lines_that_precede_a_pending_view_wait_for_it(writer: Writer, watcher: Watcher) -> None:
    records = finished_run().records
    more = resumed(records[-1], continues_at=6)
    asked = approval(more, state="asked")
    writer.begin()
    writer.write(*records)
    watcher.until(lambda: watcher.view.last_seq == records[-1]["seq"] and watcher.source.live)
    writer.write(more)
    wait_until(lambda: len(watcher.source._ready) == 1)
    writer.write(asked)
    wait_until(lambda: len(watcher.source._ready) == 2)
    assert watcher.source.take(1) == []
    assert watcher.source.take_view() == fold([*records[:6], more])
    assert watcher.source.take(1) == [asked]


def test_a_journal_that_is_deleted_is_reported_and_kept(writer: Writer, watcher: Watcher) -> None:
    records = live_run().records
    writer.begin()
    writer.write(*records)
    watcher.until(lambda: watcher.source.live)
    writer.path.unlink()
    watcher.until(lambda: watcher.source.notice == journal.GONE)
    assert watcher.view == fold(records)
    assert not watcher.source.live


def test_a_damaged_line_is_reported_once(writer: Writer, watcher: Watcher) -> None:
    records = finished_run().records
    writer.begin()
    writer.write(*records[:3])
    with writer.path.open("ab") as file:
        file.write(b'{"v":1\n')
    writer.write(*records[3:])
    watcher.until(lambda: watcher.view.last_seq == records[-1]["seq"])
    writer.write(resumed(records[-1], continues_at=6))
    writer.die()
    watcher.until(lambda: watcher.source.ended)
    assert watcher.views_taken == 1
    assert [problem[:15] for problem in watcher.source.damage] == ["line 4: broken "]


def test_a_file_that_is_not_a_journal_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("hello\n")
    source = FollowedSource(Awaited(path, tmp_path))
    assert source._finished.wait(PATIENCE)
    assert source.error is not None
    assert "is not a journal" in source.error.message
    assert (source.ended, source.live, source.waiting, source.reading) == (True, False, False, "")


def test_a_failing_reader_leaves_no_live_status(tmp_path: Path) -> None:
    fails = threading.Event()

    class Failing(FollowedSource):
        def _read(self) -> None:
            self._report(StatusChange("running"))
            assert fails.wait(PATIENCE)
            raise JournalError("the disk is gone")

    class FailsWhenAsked(threading.Event):
        """The reader ends between the question whether it has and what is made of the answer."""

        def is_set(self) -> bool:
            was = super().is_set()
            fails.set()
            self.wait(PATIENCE)
            return was

    source = Failing(Awaited("a-run", tmp_path))
    source._finished = FailsWhenAsked()
    wait_until(lambda: bool(source._ready))
    assert source.take(1.0) == []
    assert isinstance(source.live, bool)
    assert wait_until(lambda: source.error).message == "the disk is gone"
    assert (source.live, source.waiting, source.ended) == (False, False, True)


def test_runs_of_a_similar_name_are_reported_while_one_is_waited_for(writer: Writer) -> None:
    writer.begin()
    writer.write(*live_run().records)
    source = FollowedSource(Awaited(f"{RUN_ID[:-1]}x", writer.path.parent))
    watcher = Watcher(source)
    watcher.until(lambda: source.waiting)
    assert source.notice == f"no such run yet; of a similar name is {RUN_ID!r}"
    source.close()


def test_a_slow_screen_holds_few_records(writer: Writer) -> None:
    records = finished_run().records
    writer.begin()
    writer.write(*records)
    source = FollowedSource(Awaited(writer.path, writer.path.parent), ahead=4)
    wait_until(lambda: len(source._ready) == 4)
    threading.Event().wait(0.1)
    assert len(source._ready) == 4
    watcher = Watcher(source)
    watcher.until(lambda: watcher.view.last_seq == records[-1]["seq"])
    assert watcher.view == fold(records)
    source.close()


def test_how_far_a_long_journal_has_been_read_is_reported(writer: Writer) -> None:
    records = live_run().records
    writer.begin()
    writer.write(*records)
    padding = {**envelope(records[-1]), "type": "unknown", "padding": "x" * 2 * journal.BEHIND}
    writer.write(padding)
    source = FollowedSource(Awaited(writer.path, writer.path.parent), ahead=1)
    wait_until(lambda: source.reading)
    assert source.reading == "reading 0 %"
    watcher = Watcher(source)
    watcher.until(lambda: source.live)
    assert source.reading == ""
    source.close()


def test_a_journal_is_opened_as_a_past_one_unless_it_is_being_written(writer: Writer) -> None:
    writer.begin()
    writer.write(*finished_run().records)
    live = source_of(writer.path, writer.path.parent)
    writer.die()
    past = source_of(writer.path, writer.path.parent)
    gone = source_of(writer.path.with_name("gone.jsonl"), writer.path.parent)
    assert isinstance(live, FollowedSource)
    assert isinstance(past, JournalSource)
    assert isinstance(gone, JournalSource)
    for source in (live, past, gone):
        source.close()


@asynccontextmanager
async def watched(writer: Writer, awaited: str | None = None) -> AsyncIterator[tuple[RunScreen, Pilot[None]]]:
    app = AeonApp(writer.path.parent)
    app.open_on_watched(Awaited(awaited, writer.path.parent))
    async with app.run_test(size=(80, 24)) as pilot:
        assert isinstance(app.screen, RunScreen)
        yield app.screen, pilot


def header(screen: RunScreen) -> str:
    return screen.query_one(RunHeader).render().plain


def told(screen: RunScreen) -> list[str]:
    return [notification.message for notification in screen.app._notifications]


async def test_the_screen_follows_waiting_running_interrupted_and_resumed(writer: Writer) -> None:
    records = live_run().records
    async with watched(writer) as (screen, pilot):
        await until(pilot, lambda: screen.status == "waiting")
        assert "waiting for a run in" in header(screen)
        writer.begin()
        writer.write(*records)
        await until(pilot, lambda: screen.status == "running")
        assert screen.view == fold(records)
        writer.die()
        await until(pilot, lambda: screen.status == "interrupted")
        await until(pilot, lambda: told(screen) == [f"{DIED}; press R to resume it"])
        writer.begin()
        await until(pilot, lambda: screen.status == "running")
        await until(pilot, lambda: told(screen) == [])


async def test_an_ended_run_that_is_resumed_runs_on_the_screen_again(writer: Writer) -> None:
    records = finished_run().records
    writer.begin()
    writer.write(*records)
    async with watched(writer, RUN_ID) as (screen, pilot):
        await until(pilot, lambda: screen.status == "completed")
        writer.write(more := resumed(records[-1], continues_at=6))
        await until(pilot, lambda: screen.status == "running")
        assert screen.view == fold([*records[:6], more])


async def test_each_status_is_shown_as_it_is_written(writer: Writer) -> None:
    run = Recording()
    run.plan({"step_id": "s1", "description": "one"})
    writer.begin()
    writer.write(*run.records)
    async with watched(writer) as (screen, pilot):
        await until(pilot, lambda: "s1" in screen.view.steps)
        for status in ("running", "complete") * 3:
            run.step("s1", status)
            writer.write(run.records[-1])
            await until(pilot, lambda status=status: screen.view.steps["s1"].status == status)
    assert POLL_SECONDS <= 0.2


async def test_an_approval_of_another_process_is_shown_as_waiting(writer: Writer) -> None:
    records = live_run().records
    asked = approval(records[-1], state="asked")
    writer.begin()
    writer.write(*records, asked)
    async with watched(writer) as (screen, pilot):
        await until(pilot, lambda: screen.status == "waiting for a decision")
        assert "? waiting for a decision" in header(screen)
        writer.write(approval(asked, state="decided", decision="approve"))
        await until(pilot, lambda: screen.status == "running")


async def test_a_live_run_opened_from_the_list_is_followed(writer: Writer) -> None:
    records = finished_run().records
    writer.begin()
    writer.write(*records[:5])
    app = AeonApp(writer.path.parent)
    async with app.run_test(size=(80, 24)) as pilot:
        app.open_journal(writer.path)
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        screen = app.screen
        assert isinstance(screen, RunScreen)
        await until(pilot, lambda: screen.status == "running")
        writer.write(*records[5:])
        await until(pilot, lambda: screen.status == "completed")
