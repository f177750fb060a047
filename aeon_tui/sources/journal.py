"""The sources that read a journal of any size: of a past run, and of one that another process writes, or died writing.

The end is shown immediately, the whole read in the background (Decision 5).
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_core.journal.follow import Follower, FollowStatus
from aeon_core.journal.listing import Awaited
from aeon_core.journal.summary import is_being_written
from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import RunView
from aeon_tui.sources.base import (
    FAST,
    WINDOW_SECONDS,
    Listener,
    Projection,
    RateMeter,
    RecordSource,
    V,
    failure,
    nobody,
)
from aeon_tui.sources.run_index import lacks_journal
from aeon_tui.sources.snapshots import PAUSE_SECONDS, PIECE_SECONDS, Closed, RunSnapshotStore, Work

if TYPE_CHECKING:
    from aeon_core.journal.follow import FollowPosition
    from aeon_core.journal.view.last_states import LastStates

OPENING_SECONDS = 0.2
FIRST_SECONDS = 0.5
"""How long the thread pauses after the screen has taken the view of the end, for the first paint."""
TURN_SECONDS = 0.02
LEFT = 128 * 1024
"""Bytes that may have been added while the whole was read."""
FREEZE_SECONDS = 0.25
"""Records between freezes of the garbage collector: scanning what was read would delay keys."""
RECENT = 100
"""Consecutive lines in a view of a growing journal's end."""
WITHIN = 16 * 1024 * 1024
"""Bytes at the end of such a journal that are searched first."""
CALM = 3_000
"""Records per second below which the whole is read."""
VIEW_SECONDS = 0.08
"""The least seconds between refreshes of the view of the end."""
LATE_SECONDS = 0.12
"""The most seconds between them, whatever the cost."""
VIEW_SHARE = 0.15
"""The share of a core that building these views may take until then."""
POLL_SECONDS = 0.05
"""Seconds between checks whether the file has grown, or its writer has ended."""
AWAIT_SECONDS = 0.2
"""Seconds between checks whether the run exists."""
BEHIND = 1024 * 1024
"""Unread bytes from which reading progress is shown."""
LONG = 16 * 1024 * 1024
"""The size in bytes from which a journal's end is shown first, and is all that is compared with another run's."""
AHEAD = 2_000
GONE = "the journal was deleted or moved"
RUN = Projection(RunView, reducer.apply, shows_ends=True)


class StatusChange(NamedTuple):
    """The run's status once the records before this have been taken."""

    status: FollowStatus
    notice: str = ""


class JournalSource(RecordSource[V]):
    """Provides two views of a journal that nobody writes: first of its end, then of the whole.

    The whole leaves large values in the journal, and `record` reads them: for 400,000 records it takes about
    90 MB, index included, whatever the size of the file. A short journal is read whole immediately.
    """

    follows = False
    notice = ""
    snapshots: RunSnapshotStore | None = None
    """Views of the run's past, which share what is read for the whole."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path)
        if path is not None:
            self.snapshots = RunSnapshotStore(path)
        self._notify: Listener = nobody
        self._ready: deque[Any] = deque()
        """Records, views and changes of status, in order."""
        self._change = StatusChange("reading")
        """The last view taken."""
        self._reads_whole = False
        self._fast = False
        """Whether the journal grows too fast to read the whole."""
        self._seen: deque[tuple[float, int]] = deque()
        """Times, and the number of lines seen by then."""
        self._due = 0.0
        """When to refresh the view of its end."""
        self._first, self._taken = threading.Event(), threading.Event()
        self._closed, self._finished = threading.Event(), threading.Event()
        threading.Thread(target=self._work, name="aeon-journal-source", daemon=True).start()

    @property
    def live(self) -> bool:
        return self._is_now("running")

    @property
    def waiting(self) -> bool:
        return self._is_now("awaited")

    def _is_now(self, status: FollowStatus) -> bool:
        # The taking thread sets the change, the reading thread the end: neither overwrites the other.
        return self._change.status == status and not self._finished.is_set()

    @property
    def ended(self) -> bool:
        """Whether the view of the whole has been taken."""
        return self._finished.is_set() and not self._ready

    @property
    def reading(self) -> str:
        """How much of the whole has been read, in words; empty once it is complete."""
        if not self._reads_whole or self.snapshots is None:
            return ""
        return "too fast to show in full" if self._fast else self.snapshots.reading or "reading 0 %"

    def wait(self, seconds: float = OPENING_SECONDS) -> None:
        """Wait for the view of the end, at most this long, so that a new screen is drawn once."""
        self._first.wait(seconds)

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return no records, since they are folded here."""
        del seconds
        return []

    def take_view(self) -> V | None:
        if self._ready and not isinstance(self._ready[0], (dict, StatusChange)):
            self._taken.set()
            return cast("V", self._ready.popleft())
        return None

    def record(self, seq: int) -> dict[str, Any] | None:
        return self.snapshots.record(seq) if self.snapshots is not None else None

    def listen(self, listener: Listener) -> bool:
        """Call the listener on the reading thread."""
        self._notify = listener
        return True

    def close(self) -> None:
        """Stop reading, and release the file."""
        self._closed.set()
        self._taken.set()
        if self.snapshots is not None:
            self.snapshots.stop()
            if self._finished.is_set():
                self.snapshots.close()

    def _work(self) -> None:
        try:
            self._read()
        except Closed:
            pass
        except (AeonError, OSError) as error:
            self.error = failure(self.journal, error)
        finally:
            self._reads_whole = False
            self._first.set()
            self._finished.set()
            self._notify()
            if self._closed.is_set() and self.snapshots is not None:
                self.snapshots.close()

    def _read(self) -> None:
        assert self.journal is not None
        self._read_whole(self.journal)

    def _show(self, view: RunView) -> None:
        """Provide a view that replaces everything not yet taken, except for the run's status."""
        self._ready = deque([*(item for item in self._ready.copy() if isinstance(item, StatusChange)), view])
        self._notify()

    def _read_whole(self, path: Path) -> FollowPosition | None:
        """Show the end (as it grows, if the journal is followed), then the whole; return where that ends.

        None if it is short and should be read from the beginning, or the source is closed.
        """
        from aeon_core.journal.view.last_states import LastStates

        self._seen.clear()
        with LastStates(path, recent=RECENT, within=WITHIN) if self.follows else LastStates(path) as states:
            states.read_on()
            if states.whole:
                self._show(whole_view(path))
                return None
            self._reads_whole = True
            self._look(states)
            self._first.set()
            drawn = float("inf")
            while not self._closed.is_set() and time.monotonic() < drawn:
                if self._taken.wait(TURN_SECONDS):
                    drawn = min(drawn, time.monotonic() + FIRST_SECONDS)
                    self._closed.wait(min(TURN_SECONDS, FIRST_SECONDS))
                self._keep_up(states)
            return self._read_all(states)

    def _read_all(self, states: LastStates) -> FollowPosition | None:
        """Show the whole; return where it ends."""
        assert self.snapshots is not None
        grown, read_to = True, 0
        while grown and not self._closed.is_set():
            whole = self.snapshots.read_on(partial(self._pieces, states))
            # As much may have been added meanwhile: leave only a little of it to the follower.
            grown, read_to = whole.read_to > read_to and self.snapshots.unread > LEFT, whole.read_to
        if self._closed.is_set():
            return None
        self._reads_whole = False
        place = whole.place
        self._show(whole.give())
        return place

    def _pieces(self, states: LastStates, work: Work) -> Iterator[None]:
        """Work piece by piece until it is done, or the source is closed."""
        froze = time.perf_counter()
        while not self._closed.is_set() and work(PIECE_SECONDS):
            yield
            self._keep_up(states)
            if time.perf_counter() - froze > FREEZE_SECONDS:
                gc.freeze()
                froze = time.perf_counter()
            time.sleep(PAUSE_SECONDS)
        gc.freeze()

    def _keep_up(self, states: LastStates) -> None:
        """Refresh the view of a growing journal's end while it grows too fast."""
        while self.follows and not self._closed.is_set():
            wait = self._due - time.monotonic()
            if wait > 0 and not self._fast:
                return
            self._closed.wait(max(wait, 0.0))
            self._look(states)

    def _look(self, states: LastStates) -> None:
        """Show the last states if they are new, and measure how fast the journal grows."""
        began, used = time.monotonic(), time.thread_time()
        new = states.read_on()
        lines = self._seen[-1][1] + new if self._seen else 0
        self._note_pace(time.monotonic(), lines)
        if new or len(self._seen) == 1:
            self._show(states.view())
        apart = min(max(VIEW_SECONDS, (time.thread_time() - used) / VIEW_SHARE), LATE_SECONDS)
        self._due = max(began + apart, time.monotonic() + apart / 4)

    def _note_pace(self, now: float, lines: int) -> None:
        self._seen.append((now, lines))
        while len(self._seen) > 2 and now - self._seen[1][0] >= WINDOW_SECONDS:
            self._seen.popleft()
        then, before = self._seen[0]
        if now - then >= WINDOW_SECONDS:
            self._fast = (lines - before) / (now - then) > (CALM if self._fast else FAST)


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
            self.snapshots = self.snapshots or RunSnapshotStore(path)
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


def tail_view(path: Path) -> tuple[RunView, bool]:
    """Return the view of a journal's end, and whether that is the whole. Raises AeonError, OSError."""
    from aeon_core.journal.view.last_states import LastStates

    with LastStates(path) as end:
        end.read_on()
        return (whole_view(path), True) if end.whole else (end.view(), False)


def whole_view(path: Path) -> RunView:
    """Return the view of a short journal, with unreadable lines by number. Raises AeonError, OSError."""
    from aeon_core.journal.reader import read_records

    damage: list[str] = []
    view = reducer.fold(read_records(path, damage=damage))
    for problem in damage:
        view.add_problem(problem)
    return view


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
        if lacks_journal(journal):
            return "the workflow's process has ended; its transcript has no journal, so it can only be shown"
        return "the run's process has ended"
    return ""


def near_runs(names: list[str]) -> str:
    """Return the ids of similar runs, in words."""
    return f"of a similar name {'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names))}"
