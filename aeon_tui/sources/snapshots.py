"""Snapshots of a run at any of its records, folded from the journal on a thread."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aeon_core.errors import AeonError
from aeon_tui.sources.timeline import Move, Timeline, TimelineReader

if TYPE_CHECKING:
    from aeon_core.journal.index import OffsetIndex
    from aeon_core.journal.view.incremental import Folded, IncrementalFold
    from aeon_core.journal.view.model import RunView

SPACING = 2_000
"""Lines between two stored states of a run, and so the most that are folded for a snapshot."""
WEIGHT = 2_000_000
"""The most bytes of these states. Beyond it, every second one is dropped."""
SOON = 10_000
"""Lines that are folded without yielding, since nobody notices the wait."""
NEAR = 64
"""Lines between two stored states near the last snapshot, since the next one is usually adjacent."""
NEARBY = 256
PIECE_SECONDS = 0.004
"""How long the thread works before it yields to the screen."""
PAUSE_SECONDS = 0.001
TURN_SECONDS = 0.02
"""Seconds between checks whether another thread has read far enough."""

Work = Callable[[float], bool]
"""Works for about this many seconds; returns whether there is more to do."""
Pieces = Callable[[Work], Iterator[None]]
"""Does work piece by piece, and yields after each piece."""


class RunSnapshot(Struct, frozen=True):
    """A run at one of its records."""

    view: RunView
    seq: int
    position: int
    """The index of the record, from 0; long texts are not counted."""
    positions: int
    """The number of records, as far as the journal has been read."""

    @property
    def whole(self) -> bool:
        """Whether the view covers all records up to here, not only the last ones."""
        return not self.view.whole_from


class Closed(Exception):
    """The snapshot is no longer wanted."""


class _Fold:
    """A journal's timeline and stored states of the run, valid as long as the file only grows."""

    def __init__(self, index: OffsetIndex) -> None:
        from aeon_core.journal.reader import superseded_lines
        from aeon_core.journal.view.incremental import IncrementalFold

        self.index = index
        self._generation = index.generation
        self.gone = superseded_lines(index.path)
        self.reader = TimelineReader(index, self.gone)
        self.whole = IncrementalFold(index, self.reader.note)
        """Reads to the journal's end."""
        self.reading = threading.Lock()
        self.past = IncrementalFold(index)
        """Moves from one moment to another."""
        self._states: list[Folded] = []
        self._spacing = SPACING
        self._near: deque[Folded] = deque(maxlen=2 * NEARBY // NEAR)

    @property
    def timeline(self) -> Timeline:
        """The positions to stop at."""
        return self.reader.timeline

    def is_void(self) -> bool:
        """Return whether the file was replaced, or lines already read are superseded."""
        from aeon_core.journal.reader import superseded_lines

        if self._generation != self.index.generation:
            return True
        return self.reader.void and superseded_lines(self.index.path) != self.gone

    def next_state(self) -> int:
        """Return the line before which to store the next state."""
        return (self.whole.folded // self._spacing + 1) * self._spacing

    def keep(self) -> None:
        """Store the current state, if it is due."""
        if self.whole.folded % self._spacing:
            return
        state = self.whole.state()
        state.view.pack(self._states[-1].view if self._states else None)
        self._states.append(state)
        if sum(state.view.weight for state in self._states) > WEIGHT:
            self._spacing *= 2
            self._states = [state for state in self._states if not state.line % self._spacing]

    def state_before(self, line: int) -> Folded:
        """Return the last stored state before a line."""
        from aeon_core.journal.view.incremental import Folded, FrozenView
        from aeon_core.journal.view.model import RunView

        # A list, since another thread may add a state meanwhile.
        known = [state for state in [*self._states, *self._near] if state.line <= line]
        return max(known, key=lambda state: state.line, default=Folded(0, 0, FrozenView(RunView())))

    def go_to(self, until: int, pieces: Pieces) -> RunView:
        """Return the view of the lines before this one."""
        fold, nearest = self.past, self.state_before(until)
        if not nearest.line <= fold.folded <= until:
            fold.go_to(nearest)
        while fold.folded < until:
            near = until - fold.folded <= NEARBY
            aim = min(until, (fold.folded // NEAR + 1) * NEAR if near else until - NEARBY)
            for _ in pieces(partial(fold.step, until=aim)):
                pass
            if near and not fold.folded % NEAR:
                self._near.append(fold.state())
        return fold.state().view.view()


class RunSnapshotStore:
    """Builds views of a run's past, on threads, from the current journal.

    A view leaves large values in the journal, and `record` reads them. A snapshot takes some ms, however long the run:
    states are stored while the journal is read, and share what they have in common. For a
    moment not read yet, a view of its end is available immediately, and the whole once it has been read.
    """

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self._index: OffsetIndex | None = None
        self._fold: _Fold | None = None
        self._looking, self._making = threading.Lock(), threading.Lock()
        self._closed = threading.Event()
        self._nobody_waits = threading.Event()
        self._nobody_waits.set()

    def snapshot(self, base: int | None, moves: Sequence[Move]) -> RunSnapshot | None:
        """Return the run at the record to which the moves lead from `base`; None if that is now.

        `base` is a seq, or None for now. Raises AeonError, OSError if the journal cannot be read, and Closed.
        """
        self._nobody_waits.clear()
        try:
            return self._led_to(self._look(), base, moves)
        finally:
            self._nobody_waits.set()

    def _led_to(self, fold: _Fold, base: int | None, moves: Sequence[Move]) -> RunSnapshot | None:
        timeline = fold.timeline
        if not len(timeline):
            return None
        position: int | None = None if base is None else timeline.at(base)
        for move in moves:
            position = move(timeline, len(timeline) - 1 if position is None else position)
        if position is None:
            return None
        until = timeline.line(position) + 1
        if until <= max(fold.whole.folded, fold.state_before(until).line + SOON):
            self._read(fold, self._pieces, partial(_lacks, fold, until))
            return self._snapshot_at(fold, position)
        return _snapshot(fold, position, self._end_of(fold, position))

    def whole(self, seq: int, wanted: Callable[[], bool] = lambda: True) -> RunSnapshot:
        """Return the run at a record, complete, once the journal has been read that far.

        Raises what `snapshot` does; Closed also once it is no longer `wanted`.
        """
        while wanted():
            fold = self._look()
            position = fold.timeline.at(seq)
            until = fold.timeline.line(position) + 1
            if until <= fold.whole.folded:
                return self._snapshot_at(fold, position)
            self._read(fold, self._pieces, partial(_lacks, fold, until, wanted))
        raise Closed

    def at_pass_ends(self, passes: Sequence[int]) -> list[RunSnapshot]:
        """Return the run at the end of each of these passes; 0 is the first plan, as generated.

        For a pass in progress, that is the last record. Raises what `snapshot` does.
        """
        timeline = self._look().timeline
        ends = [timeline.end_of_pass(number) if number else timeline.first_plan or 0 for number in passes]
        return [self.whole(timeline.seq(position)) for position in ends] if len(timeline) else []

    @property
    def reading(self) -> str:
        """How far the journal has been read, in words; empty unless it is being read."""
        fold = self._fold
        if fold is not None and fold.reading.locked():
            return f"reading {100 * fold.whole.read_to // max(1, fold.index.indexed)} %"
        return "reading …" if self._looking.locked() else ""

    @property
    def unread(self) -> int:
        """The number of bytes not folded yet."""
        fold = self._fold
        return fold.index.size - fold.whole.read_to if fold is not None else 0

    def read_on(self, pieces: Pieces) -> IncrementalFold:
        """Read the current journal, and return its states; `pieces` may end early.

        Raises what `snapshot` does.
        """
        while True:
            fold = self._look(pieces)
            if self._read(fold, pieces, lambda: True) and fold is self._fold:
                self._do(fold.reader.extend)
                if not fold.is_void():
                    return fold.whole

    def record(self, seq: int) -> dict[str, Any] | None:
        """Return a record with its long texts, None if it cannot be read. May be called from any thread."""
        try:
            return self._index.record(seq) if self._index is not None else None
        except AeonError:
            return None

    def stop(self) -> None:
        """Stop building snapshots."""
        self._closed.set()

    def close(self) -> None:
        """Stop building snapshots, and release the file."""
        self.stop()
        if self._index is not None:
            self._index.close()

    def _look(self, pieces: Pieces | None = None) -> _Fold:
        """Index the journal's current lines; start over if the file was replaced.

        If lines are folded in `pieces`, the timeline grows with them.
        """
        from aeon_core.journal.index import OffsetIndex

        with self._looking:
            if self._index is None:
                self._index = OffsetIndex(self.journal)
            index = self._index
            for _ in (pieces or self._pieces)(index.extend):
                pass
            while True:
                fold = self._fold
                if fold is None or fold.is_void():
                    fold = self._fold = _Fold(index)
                if pieces is None:
                    self._do(fold.reader.extend)
                if not fold.is_void():
                    return fold

    def _do(self, work: Work) -> None:
        for _ in self._pieces(work):
            pass

    def _read(self, fold: _Fold, pieces: Pieces, wanted: Callable[[], bool]) -> bool:
        """Continue folding and store states; return False, after a moment, if another thread does so."""
        if not fold.reading.acquire(timeout=TURN_SECONDS):
            return False
        before = fold.whole.folded
        try:
            while fold is self._fold and fold.whole.folded < len(fold.index) and wanted():
                if self._closed.is_set():
                    raise Closed
                for _ in pieces(partial(fold.whole.step, until=fold.next_state())):
                    if not wanted():
                        break
                    if pieces != self._pieces:
                        self._nobody_waits.wait()
                fold.keep()
        finally:
            fold.reading.release()
        if fold.whole.folded - before > SPACING:
            gc.freeze()  # scanning what was read would delay keys
        return True

    def _snapshot_at(self, fold: _Fold, position: int) -> RunSnapshot:
        with self._making:
            return _snapshot(fold, position, fold.go_to(fold.timeline.line(position) + 1, self._pieces))

    def _end_of(self, fold: _Fold, position: int) -> RunView:
        """Return a view of the last records before a moment."""
        from aeon_core.journal.view.last_states import LastStates

        _, until = fold.index.span(fold.timeline.line(position))
        with LastStates(self.journal, until=until, gone=fold.gone) as end:
            end.read_on()
            return end.view()

    def _pieces(self, work: Work) -> Iterator[None]:
        """Work piece by piece until it is done. Raises Closed if it is no longer wanted."""
        while work(PIECE_SECONDS):
            if self._closed.is_set():
                raise Closed
            yield
            time.sleep(PAUSE_SECONDS)


def _lacks(fold: _Fold, until: int, wanted: Callable[[], bool] = lambda: True) -> bool:
    """Return whether lines before this one are still to be read, and wanted."""
    return fold.whole.folded < until and wanted()


def _snapshot(fold: _Fold, position: int, view: RunView) -> RunSnapshot:
    return RunSnapshot(view, fold.timeline.seq(position), position, len(fold.timeline))
