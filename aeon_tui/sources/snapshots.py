"""A run as it was at any of its records: folded from the journal up to there, on a thread."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.errors import AeonError
from aeon_tui.sources.timeline import Move, Timeline

if TYPE_CHECKING:
    from aeon_core.journal.index import OffsetIndex, TextPlaces
    from aeon_core.journal.view.incremental import Folded, IncrementalFold
    from aeon_core.journal.view.model import RunView

SPACING = 2_000
"""Lines between two states that are kept of the whole run; as many are folded for a moment at most."""
WEIGHT = 64 * 1024 * 1024
"""Bytes that these states may take. Beyond, every second one is given up."""
NEAR = 64
"""Lines between two states that are kept near the last moment: the next one is most often beside it."""
NEARBY = 256
PIECE_SECONDS = 0.004
"""How long the thread works before it lets the screen have its turn."""
PAUSE_SECONDS = 0.001


@dataclass(frozen=True)
class Snapshot:
    """A run at one of its records."""

    view: RunView
    seq: int
    position: int
    """Which of the run's records it is, counted from 0; long texts are not counted."""
    positions: int
    """How many there are, as far as the journal was read."""


class Closed(Exception):
    """Nobody wants the moment any more."""


class SnapshotStore:
    """Makes views of a run's past, on threads. It reads what the journal holds by now.

    A view leaves large values in the journal, and `record` reads them. Once the journal has been read, the next moment
    takes some ms, however long the run is: states along the way are kept, and what two of them have in common is there
    once.
    """

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.timeline = Timeline()
        self.reading = ""
        """How far the journal has been read, in words, while that takes its time."""
        self._index: OffsetIndex | None = None
        self._working = threading.Lock()
        self._closed = threading.Event()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.timeline = Timeline()
        self._fold: IncrementalFold | None = None
        self._generation = 0
        self._read = 0
        """Lines that have been folded once."""
        self._taken_back = False
        self._states: list[Folded] = []
        self._spacing = SPACING
        self._near: deque[Folded] = deque(maxlen=2 * NEARBY // NEAR)

    def snapshot(self, base: int | None, moves: Sequence[Move]) -> Snapshot | None:
        """Return the run at the record to which the moves lead from the one at `base`; None where that is now.

        `base` is a seq, or None for now. Raises AeonError, OSError where the journal cannot be read, and Closed.
        """
        with self._working:
            self._read_on()
            timeline = self.timeline
            if not len(timeline):
                return None
            position: int | None = None if base is None else timeline.at(base)
            for move in moves:
                position = move(timeline, len(timeline) - 1 if position is None else position)
            return self._snapshot_at(position) if position is not None else None

    def at_pass_ends(self, passes: Sequence[int]) -> list[Snapshot]:
        """Return the run as each of these passes had ended; 0 is the first plan that there was, as it was made.

        Of a pass that goes on, it is the last record. Raises what `moment` does.
        """
        with self._working:
            self._read_on()
            timeline = self.timeline
            ends = [timeline.end_of_pass(number) if number else timeline.first_plan or 0 for number in passes]
            return [self._snapshot_at(position) for position in ends] if len(timeline) else []

    def record(self, seq: int) -> dict[str, Any] | None:
        """Return a record with its long texts, None where it cannot be read. May be called from any thread."""
        try:
            entry = self._pages.by_seq(seq)
        except AeonError:
            return None
        return entry.record if entry is not None else None

    def close(self) -> None:
        """Make no more moments, and release the file."""
        self._closed.set()
        if self._index is not None:
            self._index.close()

    def _read_on(self) -> None:
        """Take in what the journal has got, once more from the beginning where that is no longer what it was."""
        from aeon_core.journal.index import OffsetIndex, TextPlaces
        from aeon_core.journal.pages import Pages

        if self._index is None:
            self._index = OffsetIndex(self.journal)
            self._places = TextPlaces(self._index)
            self._pages = Pages(self._index, self._places)
        try:
            self._take_in(self._index, self._places)
            if self._taken_back or self._generation != self._index.generation:
                self._begin_anew()
                self._take_in(self._index, self._places)
        finally:
            self.reading = ""

    def _take_in(self, index: OffsetIndex, places: TextPlaces) -> None:
        from aeon_core.journal.view.incremental import IncrementalFold

        for _ in self._pieces(index.extend):
            self.reading = "reading …"
        for _ in self._pieces(places.extend):
            self.reading = "reading …"
        if self._fold is None:
            self._fold, self._generation = IncrementalFold(index, places, self._note), index.generation
        if self._read == len(index):
            return
        fold, before = self._fold, self._read
        if fold.folded < before:
            fold.go_to(self._state_before(before))
        while fold.folded < len(index):
            until = (fold.folded // self._spacing + 1) * self._spacing
            for _ in self._pieces(partial(fold.step, until=until)):
                self.reading = f"reading {100 * fold.read_to // max(1, index.indexed)} %"
            self._keep(fold)
        self._read = len(index)
        if self._read - before > SPACING:
            gc.freeze()  # going over what was read would keep a key waiting

    def _note(self, line: int, record: Mapping[str, Any]) -> None:
        """Take in a stop the first time that its line is folded."""
        if line < self._read:
            return
        self._read = line + 1
        if record["type"] == "run_resumed" and len(self.timeline):
            first = record.get("continues_at")
            # What was read before a process went on with the run may count no more.
            self._taken_back |= isinstance(first, int) and self.timeline.seq(len(self.timeline) - 1) >= first
        self.timeline.add(line, record)

    def _keep(self, fold: IncrementalFold) -> None:
        from aeon_core.journal.view.snapshots import weight

        if fold.folded % self._spacing:
            return
        self._states.append(fold.state())
        if sum(weight(state.view) for state in self._states) > WEIGHT:
            self._spacing *= 2
            self._states = [state for state in self._states if not state.line % self._spacing]

    def _snapshot_at(self, position: int) -> Snapshot:
        return Snapshot(self._view_at(position), self.timeline.seq(position), position, len(self.timeline))

    def _view_at(self, position: int) -> RunView:
        """Return the view with that stop's record folded in, and nothing after it."""
        fold, until = self._fold, self.timeline.line(position) + 1
        assert fold is not None
        nearest = self._state_before(until)
        if not nearest.line <= fold.folded <= until:
            fold.go_to(nearest)
        while fold.folded < until:
            near = until - fold.folded <= NEARBY
            aim = min(until, (fold.folded // NEAR + 1) * NEAR if near else until - NEARBY)
            for _ in self._pieces(partial(fold.step, until=aim)):
                pass
            if near and not fold.folded % NEAR:
                self._near.append(fold.state())
        return fold.state().view

    def _state_before(self, line: int) -> Folded:
        """Return the last state that is kept of the lines before one."""
        from aeon_core.journal.view.incremental import Folded
        from aeon_core.journal.view.model import RunView

        known = (state for state in (*self._states, *self._near) if state.line <= line)
        return max(known, key=lambda state: state.line, default=Folded(0, 0, RunView()))

    def _pieces(self, work: Callable[[float], bool]) -> Iterator[None]:
        """Work piece by piece until there is no more to do. Raises Closed where nobody wants it."""
        while work(PIECE_SECONDS):
            if self._closed.is_set():
                raise Closed
            yield
            time.sleep(PAUSE_SECONDS)
