"""Where in a run's past a screen is, and the way there. Moments are made on a thread; the screen never waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.screen import Screen

from aeon_core.errors import AeonError
from aeon_core.journal.view.model import RunView
from aeon_tui.screens.latest_worker import LatestWorker
from aeon_tui.sources.base import failure
from aeon_tui.sources.snapshots import Closed, Snapshot, SnapshotStore
from aeon_tui.sources.timeline import Move, to_seq
from aeon_widgets.run_header import RunPosition


@dataclass(frozen=True)
class _Way:
    """Moves from a record, or from now, to a moment that is yet to be made."""

    base: int | None
    moves: tuple[Move, ...]
    paused: bool = False


class TimeTravelController:
    """Leads a screen to moments of a run's past. `has_come` is called whenever another one is to be shown.

    A move requested during another starts from that one's target; only the last position is shown.
    """

    def __init__(
        self, screen: Screen[None], has_come: Callable[[], None], kept: Callable[[], SnapshotStore | None]
    ) -> None:
        self._screen, self._has_come, self._kept = screen, has_come, kept
        self._making = LatestWorker(screen, "moments")
        self._snapshots: SnapshotStore | None = None
        self._own: SnapshotStore | None = None
        """What this made, and closes."""
        self._way: _Way | None = None
        self.snapshot: Snapshot | None = None
        """What is shown; None where that is now."""
        self.paused = False
        """Whether it was the person who stopped here, rather than one who went back."""

    @property
    def away(self) -> bool:
        """Whether the screen shows the past, or is about to."""
        return self.snapshot is not None or self._way is not None

    @property
    def holding(self) -> bool:
        """Whether nothing may move until the moment at which the person paused is there."""
        return self._way is not None and self._way.paused

    @property
    def reading(self) -> str:
        """How far the journal has been read for a moment, in words; empty where that takes no time."""
        awaited = self._way is not None or (self.snapshot is not None and not self.snapshot.whole)
        return self._snapshots.reading if awaited and self._snapshots is not None else ""

    def go(self, journal: Path, move: Move) -> None:
        """Go by a move from where the screen is, or is about to be."""
        way = self._way or _Way(self.snapshot.seq if self.snapshot is not None else None, ())
        self._set_out(journal, _Way(way.base, (*way.moves, move)))

    def pause(self, journal: Path, seq: int) -> None:
        """Stay at the record with that seq."""
        self._set_out(journal, _Way(None, (to_seq(seq),), paused=True))

    def to_now(self) -> None:
        """Return to how the run is now."""
        self._way = None
        self._making.drop()
        self._arrive(None, paused=False)

    def snapshots(self, journal: Path) -> SnapshotStore:
        """Return what makes moments of a journal: what the screen's source reads, or a reader of its own."""
        kept = self._kept()
        if kept is not None:
            self._close_own()
        elif self._own is None or self._own.journal != journal:
            self._close_own()
            self._own = SnapshotStore(journal)
        self._snapshots = kept or self._own
        assert self._snapshots is not None
        return self._snapshots

    def record(self, seq: int) -> Mapping[str, Any] | None:
        """Return a record of the past in full. Reads the file."""
        return self._snapshots.record(seq) if self._snapshots is not None else None

    def close(self) -> None:
        """Make no more moments, and release the journal."""
        self._way = None
        self._close_own()

    def _close_own(self) -> None:
        if self._own is not None:
            self._own.close()
            self._own = None

    def _set_out(self, journal: Path, way: _Way) -> None:
        self._way = way
        snapshots = self.snapshots(journal)
        self._making.submit(lambda: self._make_wanted(snapshots))

    def _make_wanted(self, snapshots: SnapshotStore) -> Callable[[], None]:
        way = self._way
        return self._make(snapshots, way) if way is not None else lambda: None

    def _make(self, snapshots: SnapshotStore, way: _Way) -> Callable[[], None]:
        try:
            snapshot = snapshots.snapshot(way.base, way.moves)
        except Closed:
            return lambda: None
        except (AeonError, OSError) as error:
            message = failure(snapshots.journal, error).message
            return lambda: self._fail(way, message)
        return lambda: self._take(way, snapshot)

    def _take(self, way: _Way, snapshot: Snapshot | None) -> None:
        wanted = self._way
        if way is wanted:
            self._way = None
            self._arrive(snapshot, paused=way.paused)
        elif wanted is not None and snapshot is not None and wanted.moves[: len(way.moves)] == way.moves != ():
            # A key is held down: what is made meanwhile is shown, and the rest of the way begins there.
            self._way = _Way(snapshot.seq, wanted.moves[len(way.moves) :])
            self._arrive(snapshot, paused=False)

    def _fail(self, way: _Way, message: str) -> None:
        if way is self._way:
            self._way = None
            self._screen.notify(message, severity="error", markup=False)
            self._has_come()

    def _arrive(self, snapshot: Snapshot | None, *, paused: bool) -> None:
        self.snapshot, self.paused = snapshot, paused and snapshot is not None
        self._has_come()
        if snapshot is not None and not snapshot.whole and self._snapshots is not None:
            snapshots = self._snapshots
            self._making.submit(lambda: self._make_whole(snapshots, snapshot))

    def _make_whole(self, snapshots: SnapshotStore, end: Snapshot) -> Callable[[], None]:
        """Wait until all that is known of a shown moment has been read, as long as it is shown."""
        try:
            whole = snapshots.whole(end.seq, lambda: self.snapshot is end and self._way is None)
        except (Closed, AeonError, OSError):
            return lambda: None
        return lambda: self._take_whole(end, whole)

    def _take_whole(self, end: Snapshot, whole: Snapshot) -> None:
        if self.snapshot is end:
            self.snapshot = whole
            self._has_come()


def shown_moment(travel: TimeTravelController, now: RunView, *, asked: bool) -> RunPosition | None:
    """Return the marker of the moment that is shown, None for now."""
    snapshot = travel.snapshot
    if snapshot is None:
        return None
    phase = snapshot.view.phases[-1] if snapshot.view.phases else None
    return RunPosition(
        pass_number=phase.pass_number if phase is not None else 0,
        passes=max((phase.pass_number for phase in (*now.phases, *snapshot.view.phases)), default=0),
        phase=phase.phase if phase is not None and not phase.finished else "",
        record=snapshot.seq,
        last=max(snapshot.seq, now.last_seq),
        ts=snapshot.view.last_ts,
        paused=travel.paused,
        asked=asked,
    )
