"""Time travel on a run's screen: the record shown, and how passes changed the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from textual.screen import Screen

from aeon_core.errors import AeonError
from aeon_core.journal.view.model import RunView
from aeon_tui.platform.background_tasks import LatestWorker
from aeon_tui.sources.base import failure
from aeon_tui.sources.snapshots import Closed, RunSnapshot, RunSnapshotStore
from aeon_tui.sources.timeline import Move, to_seq
from aeon_widgets.keys import key_of
from aeon_widgets.plan_difference import difference_blocks
from aeon_widgets.run_header import RunPosition
from aeon_widgets.text import Block

FIRST_PLAN = 0
READING: list[Block] = [("muted", "Reading the journal …")]


class Passes(Protocol):
    """What this needs from the screen that shows the run."""

    view: RunView

    @property
    def shown_view(self) -> RunView:
        """The run at the moment shown."""

    @property
    def journal(self) -> Path | None:
        """The source of the plans."""


class PlanChanges:
    """The plan's difference between two passes. It follows the moment shown until the user chooses passes.

    `on_change` is called when it has changed.
    """

    def __init__(
        self, screen: Screen[None], of: Passes, travel: TimeTravelController, on_change: Callable[[], None]
    ) -> None:
        self._of, self._travel, self._on_change = of, travel, on_change
        self._screen = screen
        self._reading = LatestWorker(screen, "plan_changes")
        self._chosen: tuple[int, int] | None = None
        self._asked: tuple[int, int] | None = None
        self._blocks = READING
        self.shown = False
        """Whether it is shown in the step pane instead of the step's own changes."""

    @property
    def blocks(self) -> Sequence[Block] | None:
        """What to show; None if it is hidden."""
        return self._blocks if self.shown else None

    @property
    def passes(self) -> list[int]:
        """The passes to choose from; the first is the original plan."""
        return [FIRST_PLAN, *sorted({phase.pass_number for phase in self._of.view.phases})]

    @property
    def pair(self) -> tuple[int, int]:
        """The passes being compared."""
        passes = self.passes
        if self._chosen is not None and set(self._chosen) <= set(passes):
            return self._chosen
        phases = self._of.shown_view.phases
        last = phases[-1].pass_number if phases else passes[-1]
        return passes[max(0, passes.index(last) - 1)], last

    @property
    def _keys(self) -> str:
        """What the keys do while it is shown."""
        names = ("from_earlier", "from_later", "to_earlier", "to_later", "differences")
        first, later, to, to_later, back = (key_of(self._screen, f"run.{name}") for name in names)
        return f"{first} {later} from another pass · {to} {to_later} to another pass · {back} back to the step"

    def show(self, shown: bool) -> None:
        """Show it, or the step's own changes again."""
        self.shown = shown
        self.update()
        self._on_change()

    def move(self, first: int = 0, last: int = 0) -> None:
        """Move one or both sides of the comparison by some passes."""
        passes, (one, other) = self.passes, self.pair

        def moved(number: int, by: int) -> int:
            return passes[min(max(passes.index(number) + by, 0), len(passes) - 1)]

        self._chosen = (moved(one, first), moved(other, last))
        self.update()

    def update(self) -> None:
        """Read the plans, if they are shown."""
        journal = self._of.journal
        if not self.shown or journal is None:
            return
        pair, snapshots = self.pair, self._travel.snapshots(journal)
        named = (self._name(pair[0]), self._name(pair[1]))
        if pair != self._asked:
            self._asked, self._blocks = pair, READING
        self._reading.submit(lambda: self._read(snapshots, pair, named))

    def _name(self, number: int) -> str:
        if number == FIRST_PLAN:
            return "the first plan"
        running = number == self.passes[-1] and self._of.view.passes < number and self._of.view.result is None
        return f"pass {number}, so far" if running else f"end of pass {number}"

    def _read(self, snapshots: RunSnapshotStore, pair: tuple[int, int], named: tuple[str, str]) -> Callable[[], None]:
        try:
            found = snapshots.at_pass_ends(pair)
        except Closed:
            return lambda: None
        except (AeonError, OSError) as error:
            problem: list[Block] = [("high", f"✖ {failure(snapshots.journal, error).message}")]
            return lambda: self._apply(problem)
        blocks = difference_blocks(found[0].view, found[1].view, named, self._keys) if found else READING
        return lambda: self._apply(blocks)

    def _apply(self, blocks: list[Block]) -> None:
        self._blocks = blocks
        self._on_change()


class _Way(NamedTuple):
    """Moves from a record, or from now, to another moment."""

    base: int | None
    moves: tuple[Move, ...]
    paused: bool = False


class TimeTravelController:
    """Moves a screen through a run's past. `on_change` is called whenever another moment is to be shown.

    A move during another one starts at that one's target; only the last position is shown.
    """

    def __init__(
        self, screen: Screen[None], on_change: Callable[[], None], kept: Callable[[], RunSnapshotStore | None]
    ) -> None:
        self._screen, self._on_change, self._kept = screen, on_change, kept
        self._making = LatestWorker(screen, "moments")
        self._snapshots: RunSnapshotStore | None = None
        self._own: RunSnapshotStore | None = None
        """The snapshots that this opened, and closes."""
        self._way: _Way | None = None
        self.snapshot: RunSnapshot | None = None
        """The moment shown; None for now."""
        self.paused = False
        """Whether the user paused here, rather than travelled here."""

    @property
    def away(self) -> bool:
        """Whether the screen shows the past, or will."""
        return self.snapshot is not None or self._way is not None

    @property
    def holding(self) -> bool:
        """Whether nothing may move until the paused moment is available."""
        return self._way is not None and self._way.paused

    @property
    def reading(self) -> str:
        """How much of the journal has been read for a moment, in words; empty if nothing needs reading."""
        awaited = self._way is not None or (self.snapshot is not None and not self.snapshot.whole)
        return self._snapshots.reading if awaited and self._snapshots is not None else ""

    def go(self, journal: Path, move: Move) -> None:
        """Make a move from the current moment, or from the one being read."""
        way = self._way or _Way(self.snapshot.seq if self.snapshot is not None else None, ())
        self._set_out(journal, _Way(way.base, (*way.moves, move)))

    def pause(self, journal: Path, seq: int) -> None:
        """Stay at the record with this seq."""
        self._set_out(journal, _Way(None, (to_seq(seq),), paused=True))

    def to_now(self) -> None:
        """Return to now."""
        self._way = None
        self._making.drop()
        self._arrive(None, paused=False)

    def snapshots(self, journal: Path) -> RunSnapshotStore:
        """Return the snapshots of a journal: those of the screen's source, or new ones."""
        kept = self._kept()
        if kept is not None:
            self._close_own()
        elif self._own is None or self._own.journal != journal:
            self._close_own()
            self._own = RunSnapshotStore(journal)
        self._snapshots = kept or self._own
        assert self._snapshots is not None
        return self._snapshots

    def record(self, seq: int) -> Mapping[str, Any] | None:
        """Return a past record with its long texts. Reads the file."""
        return self._snapshots.record(seq) if self._snapshots is not None else None

    def close(self) -> None:
        """Stop, and release the journal."""
        self._way = None
        self._close_own()

    def _close_own(self) -> None:
        if self._own is not None:
            self._own.close()
            self._own = None

    def _set_out(self, journal: Path, way: _Way) -> None:
        self._way = way
        snapshots = self.snapshots(journal)
        self._making.submit(lambda: self._make(snapshots, self._way))

    def _make(self, snapshots: RunSnapshotStore, way: _Way | None) -> Callable[[], None]:
        if way is None:
            return lambda: None
        try:
            snapshot = snapshots.snapshot(way.base, way.moves)
        except Closed:
            return lambda: None
        except (AeonError, OSError) as error:
            message = failure(snapshots.journal, error).message
            return lambda: self._fail(way, message)
        return lambda: self._apply(way, snapshot)

    def _apply(self, way: _Way, snapshot: RunSnapshot | None) -> None:
        wanted = self._way
        if way is wanted:
            self._way = None
            self._arrive(snapshot, paused=way.paused)
        elif wanted is not None and snapshot is not None and wanted.moves[: len(way.moves)] == way.moves != ():
            # A key is held down: show the moment reached meanwhile, and continue from there.
            self._way = _Way(snapshot.seq, wanted.moves[len(way.moves) :])
            self._arrive(snapshot, paused=False)

    def _fail(self, way: _Way, message: str) -> None:
        if way is self._way:
            self._way = None
            self._screen.notify(message, severity="error", markup=False)
            self._on_change()

    def _arrive(self, snapshot: RunSnapshot | None, *, paused: bool) -> None:
        self.snapshot, self.paused = snapshot, paused and snapshot is not None
        self._on_change()
        if snapshot is not None and not snapshot.whole and self._snapshots is not None:
            snapshots = self._snapshots
            self._making.submit(lambda: self._make_whole(snapshots, snapshot))

    def _make_whole(self, snapshots: RunSnapshotStore, end: RunSnapshot) -> Callable[[], None]:
        """Wait until all that is known about a shown moment has been read, while it is shown."""
        try:
            whole = snapshots.whole(end.seq, lambda: self.snapshot is end and self._way is None)
        except (Closed, AeonError, OSError):
            return lambda: None
        return lambda: self._apply_whole(end, whole)

    def _apply_whole(self, end: RunSnapshot, whole: RunSnapshot) -> None:
        if self.snapshot is end:
            self.snapshot = whole
            self._on_change()


def shown_moment(travel: TimeTravelController, now: RunView, *, asked: bool) -> RunPosition | None:
    """Return the marker of the moment shown, None for now."""
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
