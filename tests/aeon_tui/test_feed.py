from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_tui import feed as feed_module
from aeon_tui.feed import JournalFeed, LiveFeed
from tests.aeon_tui.recordings import finished_run

RECORDS = finished_run().records


def line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def reader(records: list[dict[str, Any]], problems: tuple[str, ...] = ()) -> feed_module.Reader:
    def read(path: Path, damage: list[str]) -> Iterator[dict[str, Any]]:
        damage.extend(problems)
        yield from records

    return read


def drain(feed: JournalFeed | LiveFeed, count: int) -> list[dict[str, Any]]:
    """Take until that many records have come; the reading thread needs a moment."""
    taken: list[dict[str, Any]] = []
    moment = threading.Event()
    for _ in range(500):
        taken += feed.take(1)
        if len(taken) >= count:
            break
        moment.wait(0.01)
    return taken


def test_live_records_come_out_as_they_went_in() -> None:
    feed = LiveFeed(Path("unused"))
    for record in RECORDS:
        feed.put(line(record))
    assert feed.take(1) == RECORDS
    assert feed.take(1) == []


def test_a_live_feed_ends_when_the_last_of_a_finished_run_is_taken() -> None:
    feed = LiveFeed(Path("unused"))
    feed.put(line(RECORDS[0]))
    assert (feed.live, feed.ended) == (True, False)
    feed.finish()
    assert (feed.live, feed.ended) == (True, False)
    feed.take(1)
    assert (feed.live, feed.ended) == (False, True)


def test_what_overflows_is_read_from_the_journal_once_and_in_order() -> None:
    feed = LiveFeed(Path("unused"), capacity=5, read=reader(RECORDS[:-2]))
    feed.put(line(RECORDS[0]))
    assert feed.take(1) == RECORDS[:1]
    for record in RECORDS[1:]:
        feed.put(line(record))
    assert drain(feed, len(RECORDS) - 1) == RECORDS[1:]


def test_an_overflow_that_the_journal_cannot_fill_does_not_stop_the_feed() -> None:
    feed = LiveFeed(Path("unused"), capacity=2, read=reader([]))
    for record in RECORDS:
        feed.put(line(record))
    assert drain(feed, 2) == RECORDS[-2:]


def test_putting_never_waits_for_taking() -> None:
    feed = LiveFeed(Path("unused"), capacity=10, read=reader([]))
    for seq in range(1_000):
        feed.put(line({"seq": seq}))
    assert drain(feed, 10)[-1] == {"seq": 999}


def test_a_take_ends_when_its_time_is_up() -> None:
    feed = LiveFeed(Path("unused"))
    feed.put(line(RECORDS[0]))
    assert feed.take(0) == []
    assert feed.take(1) == RECORDS[:1]


def test_a_journal_is_handed_over_whole_with_what_is_wrong_with_it() -> None:
    feed = JournalFeed(Path("unused"), read=reader(RECORDS, ("line 3: no JSON",)), ahead=4)
    assert drain(feed, len(RECORDS)) == RECORDS
    feed._finished.wait(5)
    assert feed.damage == ["line 3: no JSON"]
    assert feed.ended
    assert feed.error is None


def test_a_journal_can_be_read_on_from_a_record() -> None:
    feed = JournalFeed(Path("unused"), after=9, read=reader(RECORDS))
    assert drain(feed, len(RECORDS) - 10) == RECORDS[10:]


def test_a_file_that_is_no_journal_is_an_error_of_the_feed() -> None:
    def read(path: Path, damage: list[str]) -> Iterator[dict[str, Any]]:
        raise UsageError("'x' is no journal")
        yield {}

    feed = JournalFeed(Path("unused"), read=read)
    assert feed._finished.wait(5)
    assert feed.error is not None
    assert feed.error.message == "'x' is no journal"
    assert feed.take(1) == []


def test_a_file_that_is_gone_is_an_error_that_names_it(tmp_path: Path) -> None:
    feed = JournalFeed(tmp_path / "gone.jsonl")
    assert feed._finished.wait(5)
    assert feed.error is not None
    assert "gone.jsonl" in feed.error.message


def test_closing_ends_the_reading_thread() -> None:
    endless = ({"seq": seq} for seq in iter(int, 1))
    feed = JournalFeed(Path("unused"), read=lambda path, damage: endless, ahead=1)
    feed.close()
    assert feed._finished.wait(5)
