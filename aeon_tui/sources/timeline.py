"""The timeline of a run's past: its records, and the ends of its passes and phases."""

from __future__ import annotations

import re
import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aeon_core.journal.values import int_of, str_of

if TYPE_CHECKING:
    from aeon_core.journal.index import OffsetIndex

_ENVELOPE = re.compile(
    rb'\{"v":1,"seq":(\d{1,18}),"ts":"[^"\\]{1,40}","run":"[^"\\]{1,200}","type":"(\w{1,40})"'
    rb'(?:,"pass_number":(\d{1,9}),)?'
)
_PARSED = (b"phase", b"run_started", b"run_resumed")
"""Types of records that must be parsed beyond their envelope."""


class PhasePositions(Struct):
    """One phase of a pass. Places are indices of stops; `end` is None while it runs."""

    pass_number: int
    phase: str
    begin: int
    end: int | None = None

    def is_of(self, number: int, phase: str) -> bool:
        """Return whether it is a phase of that name in that pass."""
        return (self.pass_number, self.phase) == (number, phase)


class Timeline:
    """The records to stop at, in order, numbered from 0. A long text alone shows nothing."""

    def __init__(self) -> None:
        self._lines = array("I")
        self._seqs = array("Q")
        self.phases: list[PhasePositions] = []
        self.pass_ends: list[tuple[int, int]] = []
        """Each ended pass, with the stop of its end."""
        self.first_plan: int | None = None
        """The stop at which the first plan was generated."""

    def __len__(self) -> int:
        return len(self._seqs)

    def add(self, line: int, record: Mapping[str, Any]) -> None:
        """Add the record of a line that is not superseded."""
        kind = record.get("type")
        if kind == "text":
            return
        self._lines.append(line)
        self._seqs.append(record["seq"])
        if self.first_plan is None and (kind == "plan" or record.get("parent")):
            self.first_plan = len(self) - 1
        if kind == "phase":
            self._add_phase(record)
        elif kind == "pass":
            self.pass_ends.append((int_of(record.get("pass_number"), len(self.pass_ends) + 1), len(self) - 1))

    def _add_phase(self, record: Mapping[str, Any]) -> None:
        number, name = int_of(record.get("pass")), str_of(record.get("phase"))
        finished = record.get("state") == "finished"
        last = self.phases[-1] if self.phases else None
        if not finished or last is None or not last.is_of(number, name):
            last = PhasePositions(number, name, len(self) - 1)
            self.phases.append(last)
        if finished:
            last.end = len(self) - 1

    def line(self, position: int) -> int:
        """Return the number of a stop's line in the journal."""
        return self._lines[position]

    def seq(self, position: int) -> int:
        """Return the seq of a stop's record."""
        return self._seqs[position]

    def at(self, seq: int) -> int:
        """Return the stop of a record, else the previous stop, else the first."""
        return max(0, bisect_right(self._seqs, seq) - 1)

    def end_of_pass(self, number: int) -> int:
        """Return the stop at which a pass ended, or the last record of a pass cut short."""
        known = next((position for ended, position in reversed(self.pass_ends) if ended == number), None)
        if known is not None:
            return known
        later = [phase.begin for phase in self.phases if phase.pass_number > number]
        return max(0, later[0] - 1) if later else len(self) - 1

    def end_of_phase(self, number: int, phase: str) -> int | None:
        """Return the stop at which the last phase of this name in a pass ended, or its last record if it was cut short.

        None if there is no such phase.
        """
        index = next((at for at in range(len(self.phases) - 1, -1, -1) if self.phases[at].is_of(number, phase)), None)
        if index is None or self.phases[index].end is not None:
            return self.phases[index].end if index is not None else None
        return max(0, self.phases[index + 1].begin - 1) if index + 1 < len(self.phases) else len(self) - 1


class TimelineReader:
    """Adds the lines of an index to `timeline`, mostly without parsing them, or as another thread reads them.

    `void` means that a process has since continued the run from an earlier record, so what was added is superseded.
    """

    def __init__(self, index: OffsetIndex, gone: list[range]) -> None:
        self.timeline = Timeline()
        self.void = False
        self._index, self._gone = index, gone
        self._next = 0
        self._reading = threading.Lock()

    def note(self, number: int, record: dict[str, Any]) -> None:
        """Add a line that was read elsewhere, if it is the next one."""
        with self._reading:
            if number == self._next:
                self._next += 1
                self._add(number, record)

    def extend(self, max_seconds: float) -> bool:
        """Read for about this long, at least one block; return whether there is more to read."""
        deadline = time.perf_counter() + max_seconds
        while self._next < len(self._index):
            with self._reading:
                self._read_block()
            if time.perf_counter() >= deadline:
                break
        return self._next < len(self._index)

    def _read_block(self) -> None:
        index, first = self._index, self._next
        if first == len(index):
            return
        start = index.span(first)[0]
        self._next, block = index.block(first, len(index))
        for number in range(first, self._next):
            begin, end = index.span(number)
            self._read(number, block, begin - start, end - start)

    def _read(self, number: int, block: bytes, begin: int, end: int) -> None:
        match = _ENVELOPE.match(block, begin, min(end, len(block)))
        if match is None or match[2] in _PARSED or (match[2] == b"pass" and match[3] is None):
            record = self._index.parsed(number)
        else:
            record = {"seq": int(match[1]), "type": match[2].decode()}
            if match[3] is not None:
                record["pass_number"] = int(match[3])
        if record is not None:
            self._add(number, record)

    def _add(self, number: int, record: dict[str, Any]) -> None:
        if self._gone and any(record["seq"] in span for span in self._gone):
            return
        timeline, first = self.timeline, record.get("continues_at")
        if record["type"] == "run_resumed" and len(timeline) and isinstance(first, int):
            self.void |= timeline.seq(len(timeline) - 1) >= first
        timeline.add(number, record)


Move = Callable[[Timeline, int], int | None]
"""A move from one stop to another; None is now."""


def by_records(count: int) -> Move:
    """Go forward by this many records, or back if it is negative. After the last one comes now."""

    def move(timeline: Timeline, position: int) -> int | None:
        return _or_now(timeline, position + count)

    return move


def back_a_pass(timeline: Timeline, position: int) -> int | None:
    """Go to the previous end of a pass; before the first, to the beginning."""
    place = bisect_left(timeline.pass_ends, position, key=lambda ended: ended[1])
    return timeline.pass_ends[place - 1][1] if place else 0


def on_a_pass(timeline: Timeline, position: int) -> int | None:
    """Go to the next end of a pass; after the last, to now."""
    place = bisect_right(timeline.pass_ends, position, key=lambda ended: ended[1])
    return timeline.pass_ends[place][1] if place < len(timeline.pass_ends) else None


def to_pass(number: int) -> Move:
    """Go to the end of a pass; for the pass in progress, that is now."""
    return lambda timeline, _: _or_now(timeline, timeline.end_of_pass(number))


def to_phase(number: int, phase: str) -> Move:
    """Go to the end of a phase of a pass."""

    def move(timeline: Timeline, _: int) -> int | None:
        end = timeline.end_of_phase(number, phase)
        return _or_now(timeline, end) if end is not None else None

    return move


def to_share(share: float) -> Move:
    """Go to a fraction of the way from the first record, 0, to now, 1."""
    return lambda timeline, _: _or_now(timeline, round(share * (len(timeline) - 1)))


def to_seq(seq: int) -> Move:
    """Go to a record, even the last."""
    return lambda timeline, _: timeline.at(seq)


def _or_now(timeline: Timeline, position: int) -> int | None:
    return max(0, position) if position < len(timeline) - 1 else None
