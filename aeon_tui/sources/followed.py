"""The source of a run that another process writes, will write, or died writing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import override

from aeon_core.journal.follow import Follower, FollowStatus
from aeon_core.journal.listing import Awaited
from aeon_core.journal.summary import is_being_written
from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import RunView
from aeon_core.paths import run_command
from aeon_tui.sources.base import Projection, RateMeter, RecordSource, V
from aeon_tui.sources.journal import JournalSource, StatusChange
from aeon_tui.sources.snapshots import SnapshotStore

if TYPE_CHECKING:
    from aeon_core.journal.view.last_states import LastStates

POLL_SECONDS = 0.05
"""Seconds between checks whether the file has grown, or its writer has ended."""
AWAIT_SECONDS = 0.2
"""Seconds between checks whether the run exists."""
BEHIND = 1024 * 1024
"""Unread bytes from which reading progress is shown."""
LONG = 16 * 1024 * 1024
"""The size from which a journal's end is shown first."""
AHEAD = 2_000
GONE = "the journal was deleted or moved"
RUN = Projection(RunView, reducer.apply, shows_ends=True)


class FollowedSource(JournalSource[V]):
    """The records of a run of another process, read on a thread as they arrive; the run need not exist yet.

    Following continues after the run or its process has ended: `aeon-tui resume` in another terminal continues the
    same journal. What such a resume supersedes is left out of the view that `take_view` then returns. A long journal is
    shown by its end, as it grows, until the whole has been read in the background; so is one that grows too `fast` for
    its records to be folded one by one. `record` reads what such a view leaves in the journal.
    """

    follows = True

    def __init__(
        self, awaited: Awaited, ahead: int = AHEAD, *, fast: bool = False, projection: Projection[V] | None = None
    ) -> None:
        self._awaited, self._ahead = awaited, ahead
        self._projection = projection if projection is not None else cast("Projection[V]", RUN)
        self._last_change = StatusChange("reading")
        self._follower: Follower | None = None
        self._pace, self._too_fast = RateMeter(), fast
        self._generation = 0
        self._damage_read = 0
        super().__init__(None)

    @property
    def ended(self) -> bool:
        """Whether all records have been taken and nobody writes; a resume restarts it."""
        over = self._change.status in ("ended", "interrupted", "gone") or self._finished.is_set()
        return over and not self._ready

    @property
    @override
    def gone(self) -> bool:
        return self._change.status == "gone"

    @property
    def reading(self) -> str:
        """What the source waits for, or how far a long journal has been read."""
        if self.waiting:
            return f"waiting for {self._awaited.words} …"
        if words := super().reading:
            return words
        follower = self._follower
        behind = follower is not None and follower.size - follower.offset >= BEHIND
        return f"reading {100 * follower.offset // follower.size} %" if follower is not None and behind else ""

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return the next records within about this time, up to the point where a view is ready."""
        deadline, ready = time.perf_counter() + seconds, self._ready
        records: list[dict[str, Any]] = []
        while ready and time.perf_counter() < deadline:
            item = ready[0]
            if isinstance(item, StatusChange):
                self._change, self.notice = item, item.notice
            elif isinstance(item, dict):
                records.append(item)
            else:
                break
            ready.popleft()
        return records

    def _read(self) -> None:
        path = self.journal = self._found()
        while path is not None and not self._closed.is_set():
            self._follow(self._follower_of(path))

    def _found(self) -> Path | None:
        """Wait until the run exists; return its journal, or None once the source is closed."""
        path = self._awaited.find()
        if path is None:
            near = self._awaited.near()
            self._report(StatusChange("awaited", f"no such run yet; {near_runs(near)}" if near else ""))
        while path is None and not self._closed.wait(AWAIT_SECONDS):
            path = self._awaited.find()
        return path

    def _follower_of(self, path: Path) -> Follower:
        """Return the reader of the journal; for a long one, from where the view of the whole ends."""
        shown = self._follower is not None or self._too_fast
        place = None
        if self._projection.shows_ends and (self._too_fast or _size(path) >= LONG):
            self.snapshots = self.snapshots or SnapshotStore(path)
            self._fast, self._too_fast = self._too_fast, False
            place, shown = self._read_whole(path), True
        self._generation = -1 if shown and place is None else 0
        self._damage_read = 0
        self._follower = Follower(path, place)
        return self._follower

    def _look(self, states: LastStates) -> None:
        super()._look(states)
        if self.journal is not None:
            self._report(StatusChange("running" if _is_live(self.journal) else "reading"))

    def _follow(self, follower: Follower) -> None:
        """Forward records until a long journal must be read again."""
        try:
            while not self._closed.is_set() and self._read_on(follower):
                self._note_damage(follower)
                status = follower.status
                if status != "reading":
                    self._report(StatusChange(status, notice_of(status, follower.path)))
                self._closed.wait(self._pace.pause(POLL_SECONDS))
        finally:
            follower.close()

    def _read_on(self, follower: Follower) -> bool:
        """Forward new records; return False if all of a long journal must be read again."""
        fresh: V | None = None
        for generation, record in follower.read():
            if self._closed.is_set():
                return False
            if generation != self._generation:
                if self._generation >= 0 and follower.size >= LONG and self._projection.shows_ends:
                    return False
                self._generation, fresh = generation, self._projection.new()
                self._damage_read = 0
            if self._last_change.status == "awaited":
                self._report(StatusChange("reading"))
            if fresh is not None:
                self._projection.apply(fresh, record)
            else:
                self._hand_over(record)
                if self._pace.too_fast(1) and self._projection.shows_ends:
                    self._too_fast = True
                    return False
        if fresh is not None:
            self._hand_over(fresh)
        return True

    def _note_damage(self, follower: Follower) -> None:
        """Report unreadable lines, none twice if a file is read again."""
        new = follower.damage[self._damage_read :]
        self._damage_read += len(new)
        self.damage += [problem for problem in new if problem not in self.damage]

    def _report(self, change: StatusChange) -> None:
        if change != self._last_change:
            self._last_change = change
            self._hand_over(change)

    def _hand_over(self, item: dict[str, Any] | V | StatusChange) -> None:
        while len(self._ready) >= self._ahead and not self._closed.wait(0.02):
            pass
        self._ready.append(item)
        self._notify()


def _size(path: Path) -> int:
    """Return the size of a file in bytes, 0 if it does not exist."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def _is_live(path: Path) -> bool:
    try:
        return is_being_written(path)
    except OSError:
        return False


def source_of(path: Path, runs_dir: Path) -> RecordSource:
    """Return the source of a journal: that of a past run, unless a process writes it. Looks at the file."""
    if _is_live(path):
        return FollowedSource(Awaited(path, runs_dir))
    past = JournalSource(path)
    past.wait()
    return past


def notice_of(status: FollowStatus, journal: Path) -> str:
    """Return the notice about a run that nobody writes and that has not ended; empty for any other."""
    if status == "gone":
        return GONE
    if status == "interrupted":
        return f"the run's process has ended; continue it with {run_command('resume', journal)}"
    return ""


def near_runs(names: list[str]) -> str:
    """Return the ids of similar runs, in words."""
    return f"of a similar name {'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names))}"
