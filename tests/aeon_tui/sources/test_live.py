from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.view.model import RunView
from aeon_tui.sources import live as feed_module
from aeon_tui.sources import rate_meter
from aeon_tui.sources.live import JournalFeed, LiveFeed
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


def test_who_listens_is_told_of_each_line_and_of_the_end() -> None:
    feed, told = LiveFeed(Path("unused")), []
    assert feed.listen(lambda: told.append(len(told)))
    for record in RECORDS[:3]:
        feed.put(line(record))
    assert len(told) == 3
    feed.finish()
    assert len(told) == 4


def test_who_listens_is_told_by_what_follows_the_journal_too() -> None:
    followed, told = Followed([]), []
    feed = LiveFeed(Path("unused"), capacity=1, follow=lambda path: followed)
    feed.listen(lambda: told.append(""))
    for record in RECORDS[:2]:
        feed.put(line(record))
    feed.take(1)
    told.clear()
    feed.put(line(RECORDS[2]))
    assert told == []  # the journal has it
    followed.listener()
    assert told == [""]


def test_a_live_feed_ends_when_the_last_of_a_finished_run_is_taken() -> None:
    feed = LiveFeed(Path("unused"))
    feed.put(line(RECORDS[0]))
    assert (feed.live, feed.ended) == (True, False)
    feed.finish()
    assert (feed.live, feed.ended) == (True, False)
    feed.take(1)
    assert (feed.live, feed.ended) == (False, True)


@dataclass
class Followed:
    """A journal that is followed, in place of its file."""

    views: list[RunView]
    ended: bool = False
    waiting: bool = False
    live: bool = True
    error: AeonError | None = None
    damage: list[str] = field(default_factory=lambda: ["line 3: no JSON"])
    journal: Path | None = None
    notice: str = "the journal was deleted"
    reading: str = "reading 7 %"
    closed: bool = False
    listener: feed_module.Listener = feed_module.nobody

    def listen(self, listener: feed_module.Listener) -> bool:
        self.listener = listener
        return True

    def take(self, seconds: float) -> list[dict[str, Any]]:
        return [RECORDS[-1]]

    def take_view(self) -> RunView | None:
        return self.views.pop() if self.views else None

    def record(self, seq: int) -> dict[str, Any] | None:
        return RECORDS[seq]

    def close(self) -> None:
        self.closed = True


def test_when_lines_overflow_the_journal_is_followed_instead() -> None:
    followed = Followed([view := RunView()])
    feed = LiveFeed(Path("unused"), capacity=5, follow=lambda path: followed)
    for record in RECORDS[:5]:
        feed.put(line(record))
    assert feed.take(1) == RECORDS[:5]
    for record in RECORDS[5:11]:
        feed.put(line(record))
    assert feed.take_view() is None
    assert feed.take(1) == []
    assert feed.take_view() is view
    assert feed.take(1) == [RECORDS[-1]]
    assert (feed.reading, feed.damage, feed.record(3)) == ("reading 7 %", ["line 3: no JSON"], RECORDS[3])
    assert feed.notice == ""
    feed.close()
    assert followed.closed


def test_when_lines_come_too_fast_the_journal_is_followed_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_meter, "FAST", 20)
    feed = LiveFeed(Path("unused"), follow=lambda path: Followed([]))
    for record in RECORDS[:10]:
        feed.put(line(record))
    assert feed.take(1) == RECORDS[:10]
    feed.put(line(RECORDS[10]))
    assert feed.take(1) == []
    assert feed.reading == "reading 7 %"


def test_a_feed_whose_journal_is_followed_ends_when_the_kernel_and_the_journal_have() -> None:
    followed = Followed([])
    feed = LiveFeed(Path("unused"), capacity=1, follow=lambda path: followed)
    for record in RECORDS[:2]:
        feed.put(line(record))
    feed.take(1)
    followed.ended = True
    assert (feed.live, feed.ended) == (True, False)
    feed.finish()
    assert (feed.live, feed.ended) == (False, True)
    followed.ended, followed.waiting = False, True  # there is no such file
    assert feed.ended


def test_putting_never_waits_for_taking() -> None:
    feed = LiveFeed(Path("unused"), capacity=10, follow=lambda path: Followed([]))
    for seq in range(1_000):
        feed.put(line({"seq": seq}))
    assert feed.take(1) == []
    feed.put(line({"seq": 1_000}))
    assert len(feed._lines) == 0


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
