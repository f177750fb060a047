from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.view.model import RunView
from aeon_tui.sources import base
from aeon_tui.sources.base import ReadAheadSource
from aeon_tui.sources.live import LiveSource
from tests.aeon_tui.recordings import finished_run
from tests.waiting import PATIENCE, wait_until

RECORDS = finished_run().records


def line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def reader(records: list[dict[str, Any]], problems: tuple[str, ...] = ()) -> base.Reader:
    def read(path: Path, damage: list[str]) -> Iterator[dict[str, Any]]:
        damage.extend(problems)
        yield from records

    return read


def drain(source: ReadAheadSource | LiveSource, count: int) -> list[dict[str, Any]]:
    """Take until that many records have come; the reading thread needs a moment."""
    taken: list[dict[str, Any]] = []

    def enough() -> bool:
        taken.extend(source.take(1))
        return len(taken) >= count

    wait_until(enough)
    return taken


def test_live_records_keep_their_order() -> None:
    source = LiveSource(Path("unused"))
    for record in RECORDS:
        source.put(line(record))
    assert source.take(1) == RECORDS
    assert source.take(1) == []


def test_listeners_are_notified_of_each_line_and_the_end() -> None:
    source, told = LiveSource(Path("unused")), []
    assert source.listen(lambda: told.append(len(told)))
    for record in RECORDS[:3]:
        source.put(line(record))
    assert len(told) == 3
    source.finish()
    assert len(told) == 4


def test_listeners_are_notified_of_a_followed_journal() -> None:
    followed, told = Followed([]), []
    source = LiveSource(Path("unused"), capacity=1, follow=lambda path: followed)
    source.listen(lambda: told.append(""))
    for record in RECORDS[:2]:
        source.put(line(record))
    source.take(1)
    told.clear()
    source.put(line(RECORDS[2]))
    assert told == []  # the journal has it
    followed.listener()
    assert told == [""]


def test_a_live_feed_ends_with_the_last_line_of_a_finished_run() -> None:
    source = LiveSource(Path("unused"))
    source.put(line(RECORDS[0]))
    assert (source.live, source.ended) == (True, False)
    source.finish()
    assert (source.live, source.ended) == (True, False)
    source.take(1)
    assert (source.live, source.ended) == (False, True)


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
    listener: base.Listener = base.nobody

    def listen(self, listener: base.Listener) -> bool:
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
    source = LiveSource(Path("unused"), capacity=5, follow=lambda path: followed)
    for record in RECORDS[:5]:
        source.put(line(record))
    assert source.take(1) == RECORDS[:5]
    for record in RECORDS[5:11]:
        source.put(line(record))
    assert source.take_view() is None
    assert source.take(1) == []
    assert source.take_view() is view
    assert source.take(1) == [RECORDS[-1]]
    assert (source.reading, source.damage, source.record(3)) == ("reading 7 %", ["line 3: no JSON"], RECORDS[3])
    assert source.notice == ""
    source.close()
    assert followed.closed


def test_when_lines_come_too_fast_the_journal_is_followed_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "FAST", 20)
    source = LiveSource(Path("unused"), follow=lambda path: Followed([]))
    for record in RECORDS[:10]:
        source.put(line(record))
    assert source.take(1) == RECORDS[:10]
    source.put(line(RECORDS[10]))
    assert source.take(1) == []
    assert source.reading == "reading 7 %"


def test_a_followed_feed_ends_after_kernel_and_journal() -> None:
    followed = Followed([])
    source = LiveSource(Path("unused"), capacity=1, follow=lambda path: followed)
    for record in RECORDS[:2]:
        source.put(line(record))
    source.take(1)
    followed.ended = True
    assert (source.live, source.ended) == (True, False)
    source.finish()
    assert (source.live, source.ended) == (False, True)
    followed.ended, followed.waiting = False, True  # there is no such file
    assert source.ended


def test_put_never_waits_for_take() -> None:
    source = LiveSource(Path("unused"), capacity=10, follow=lambda path: Followed([]))
    for seq in range(1_000):
        source.put(line({"seq": seq}))
    assert source.take(1) == []
    source.put(line({"seq": 1_000}))
    assert len(source._lines) == 0


def test_take_returns_after_its_timeout() -> None:
    source = LiveSource(Path("unused"))
    source.put(line(RECORDS[0]))
    assert source.take(0) == []
    assert source.take(1) == RECORDS[:1]


def test_a_journal_is_delivered_with_its_damage() -> None:
    source = ReadAheadSource(Path("unused"), read=reader(RECORDS, ("line 3: no JSON",)), ahead=4)
    assert drain(source, len(RECORDS)) == RECORDS
    assert source._finished.wait(PATIENCE)
    assert source.damage == ["line 3: no JSON"]
    assert source.ended
    assert source.error is None


def test_a_journal_can_be_read_from_a_record_on() -> None:
    source = ReadAheadSource(Path("unused"), after=9, read=reader(RECORDS))
    assert drain(source, len(RECORDS) - 10) == RECORDS[10:]


def test_a_file_that_is_not_a_journal_is_a_feed_error() -> None:
    def read(path: Path, damage: list[str]) -> Iterator[dict[str, Any]]:
        raise UsageError("'x' is no journal")
        yield {}

    source = ReadAheadSource(Path("unused"), read=read)
    assert source._finished.wait(PATIENCE)
    assert source.error is not None
    assert source.error.message == "'x' is no journal"
    assert source.take(1) == []


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    source = ReadAheadSource(tmp_path / "gone.jsonl")
    assert source._finished.wait(PATIENCE)
    assert source.error is not None
    assert "gone.jsonl" in source.error.message


def test_closing_ends_the_reading_thread() -> None:
    endless = ({"seq": seq} for seq in iter(int, 1))
    source = ReadAheadSource(Path("unused"), read=lambda path, damage: endless, ahead=1)
    source.close()
    assert source._finished.wait(PATIENCE)
