"""A long journal that another process continues: its end at once, then all of it, then what is new."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.journal.listing import Awaited
from aeon_core.journal.view.incremental import IncrementalFold
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
from aeon_tui.sources import journal
from aeon_tui.sources.journal import FollowedSource
from aeon_tui.sources.snapshots import Closed, Pieces, RunSnapshotStore
from tests.aeon_tui.recordings import RUN_ID
from tests.aeon_tui.sources.test_followed import Watcher, Writer, envelope, resumed
from tests.aeon_tui.sources.test_journal import LONG
from tests.waiting import PATIENCE, wait_until

SHA = "ab" * 32
TEXT = {"type": "text", "sha256": SHA, "text": "a long text"}
RUNNING = LONG[:-1]


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    monkeypatch.setattr(journal, "LONG", 1_000)
    made = Writer(tmp_path / f"{RUN_ID}.jsonl")
    made.begin()
    yield made
    made.die()


@pytest.fixture
def watcher(writer: Writer) -> Iterator[Watcher]:
    writer.write(*RUNNING)
    source = FollowedSource(Awaited(writer.path, writer.path.parent))
    yield Watcher(source)
    source.close()
    assert source._finished.wait(PATIENCE)


def step(last: dict[str, Any], output: Any) -> dict[str, Any]:
    return {**envelope(last), "type": "step", "pass": 1, "step_id": "s3", "status": "complete", "output": output}


def lines(view: RunView) -> list[tuple[int, str]]:
    return [(line.seq, line.text) for line in view.log]


def test_the_full_view_replaces_the_end_and_continues(writer: Writer, watcher: Watcher) -> None:
    watcher.until(lambda: watcher.views_taken == 1)
    assert watcher.view.whole_from > 0
    watcher.until(lambda: watcher.views_taken == 2 and watcher.source.live)
    assert watcher.view.whole_from == 0
    assert lines(watcher.view) == lines(fold(RUNNING))
    new = step(RUNNING[-1], {"text": "new"})
    writer.write(new)
    watcher.until(lambda: watcher.view.last_seq == new["seq"])
    assert watcher.view.steps["s3"].output == {"text": "new"}
    assert lines(watcher.view) == lines(fold([*RUNNING, new]))
    assert (watcher.source.damage, watcher.views_taken) == ([], 2)


def test_values_left_in_the_journal_can_be_read(watcher: Watcher) -> None:
    watcher.until(lambda: watcher.views_taken == 2)
    assert watcher.source.record(9) == RUNNING[9]


def test_new_records_resolve_texts_from_the_beginning(writer: Writer) -> None:
    text = {**envelope(RUNNING[-1]), **TEXT}
    writer.write(*RUNNING, text)
    watcher = Watcher(FollowedSource(Awaited(writer.path, writer.path.parent)))
    watcher.until(lambda: watcher.views_taken == 2 and watcher.source.live)
    writer.write(new := step(text, {"text": {"$text": SHA}}))
    watcher.until(lambda: watcher.view.last_seq == new["seq"])
    assert watcher.view.steps["s3"].output == {"text": "a long text"}
    assert watcher.source.damage == []
    watcher.source.close()


def test_superseded_lines_leave_a_long_view_too(writer: Writer, watcher: Watcher) -> None:
    watcher.until(lambda: watcher.views_taken == 2)
    finish = LONG[-1]
    writer.write(finish)
    watcher.until(lambda: watcher.view.result is not None)
    writer.write(more := resumed(finish, continues_at=finish["seq"]))
    watcher.until(lambda: watcher.view.last_seq == more["seq"] and watcher.view.whole_from == 0)
    assert watcher.view.result is None
    assert lines(watcher.view) == lines(fold([*RUNNING, more]))
    writer.write(new := step(more, {"text": "new"}))
    watcher.until(lambda: watcher.view.last_seq == new["seq"] and watcher.source.live)
    assert lines(watcher.view) == lines(fold([*RUNNING, more, new]))


def test_the_growing_end_is_shown_until_all_is_read(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(store: RunSnapshotStore, pieces: Pieces) -> IncrementalFold:
        for _ in pieces(lambda seconds: True):
            pass
        raise Closed

    monkeypatch.setattr(RunSnapshotStore, "read_on", endless)
    writer.write(*RUNNING)
    watcher = Watcher(FollowedSource(Awaited(writer.path, writer.path.parent)))
    watcher.until(lambda: watcher.views_taken == 1 and watcher.source.live)
    assert watcher.source.reading == "reading 0 %"
    writer.write(new := step(RUNNING[-1], {"text": "new"}))
    watcher.until(lambda: watcher.view.last_seq == new["seq"])
    assert watcher.view.steps["s3"].output == {"text": "new"}
    assert watcher.view.whole_from > 0
    watcher.source.close()
    wait_until(watcher.source._finished.is_set)


def test_a_long_journal_that_fits_a_first_view_is_followed_from_its_beginning(writer: Writer) -> None:
    few = RUNNING[:20]
    writer.write(*few)
    watcher = Watcher(FollowedSource(Awaited(writer.path, writer.path.parent)))
    watcher.until(lambda: watcher.views_taken == 2 and watcher.source.live)
    writer.write(new := step(few[-1], {"text": "new"}))
    watcher.until(lambda: watcher.view.last_seq == new["seq"])
    assert watcher.view == fold([*few, new])
    watcher.source.close()


def test_a_dead_writer_is_reported_when_all_is_read(writer: Writer, watcher: Watcher) -> None:
    writer.die()
    watcher.until(lambda: watcher.source.ended)
    assert watcher.source.notice.startswith("the run's process has ended")
