"""Where a screen's records come from when another process writes the run, or will, or has died over it."""

from __future__ import annotations

import shlex
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aeon_core.errors import AeonError
from aeon_core.journal.follow import Follower, FollowPosition, Standing
from aeon_core.journal.listing import Awaited
from aeon_core.journal.summary import is_being_written
from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import RunView
from aeon_tui.sources.base import Listener, RateMeter, RecordSource, failure, nobody
from aeon_tui.sources.journal import JournalSource
from aeon_tui.sources.snapshots import SnapshotStore

if TYPE_CHECKING:
    from aeon_tui.sources.catch_up import CatchUpReader

POLL_SECONDS = 0.05
"""Seconds between checks whether the file has grown, or its writer has ended."""
AWAIT_SECONDS = 0.2
"""Seconds between checks whether the run is there."""
BEHIND = 1024 * 1024
"""Unread bytes from which reading progress is shown."""
LONG = 16 * 1024 * 1024
"""Bytes from which on a journal is shown by its end first."""
AHEAD = 2_000
GONE = "the journal was deleted or moved"


class _Told(NamedTuple):
    """The run's status once the records before this have been taken."""

    standing: Standing
    notice: str = ""


class FollowedSource:
    """The records of a run of another process, read on a thread as they come; the run need not be there yet.

    A run that has ended, or whose process has, is followed on: `aeon-tui resume` in another terminal continues the
    same journal. What such a resume takes back is left out of the view that `take_view` then gives. A long journal is
    shown by its end, as it grows, until the whole has been read behind it; so is one that grows `fast`, too fast for
    its records to be taken one by one.
    """

    follows = True

    def __init__(self, awaited: Awaited, ahead: int = AHEAD, *, fast: bool = False) -> None:
        self.error: AeonError | None = None
        self.damage: list[str] = []
        self.journal: Path | None = None
        self._awaited = awaited
        self._ahead = ahead
        self._told = self._last_told = _Told("reading")
        self._follower: Follower | None = None
        self._behind: CatchUpReader | None = None
        """What reads, or has read, the beginning of a journal that is long or grew fast."""
        self._pace, self._too_fast = RateMeter(), fast
        self._say: Listener = nobody
        self._generation = 0
        self._damage_read = 0
        self._ready: deque[dict[str, Any] | RunView | _Told] = deque()
        self._closed = threading.Event()
        self._finished = threading.Event()
        threading.Thread(target=self._work, name="aeon-watch-source", daemon=True).start()

    @property
    def live(self) -> bool:
        """Whether a process was writing the run when the last record was taken."""
        return self._told.standing == "running" and not self._finished.is_set()

    @property
    def waiting(self) -> bool:
        """Whether the run is not there yet, or has not begun its journal."""
        return self._told.standing == "awaited" and not self._finished.is_set()

    @property
    def ended(self) -> bool:
        """Whether all there is has been taken, and nobody writes; a resume begins it again."""
        all_taken = not self._ready and self._told.standing in ("ended", "interrupted", "gone")
        return all_taken or (self._finished.is_set() and not self._ready)

    @property
    def notice(self) -> str:
        """What has become of the process or the file, in words; empty where all is as it should be."""
        return self._told.notice

    @property
    def reading(self) -> str:
        """What is waited for, or how far a long journal has been read."""
        follower = self._follower
        if self.waiting:
            return f"waiting for {self._awaited.words} …"
        if self._behind is not None and self._behind.reading:
            return self._behind.reading
        behind = follower is not None and follower.size - follower.offset >= BEHIND
        return f"reading {100 * follower.offset // follower.size} %" if follower is not None and behind else ""

    @property
    def snapshots(self) -> SnapshotStore | None:
        """Views of the run's past, where its journal was long or grew fast."""
        return self._behind.snapshots if self._behind is not None else None

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return the next records there are, after at most about that time, up to where a view is to be taken."""
        deadline, ready = time.perf_counter() + seconds, self._ready
        records: list[dict[str, Any]] = []
        while ready and time.perf_counter() < deadline:
            item = ready[0]
            if isinstance(item, RunView):
                break
            ready.popleft()
            if isinstance(item, _Told):
                self._told = item
            else:
                records.append(item)
        return records

    def take_view(self) -> RunView | None:
        """Return, once, the view without what a resume took back, or of another file in the journal's place."""
        ready = self._ready
        if ready and isinstance(view := ready[0], RunView):
            ready.popleft()
            return view
        return None

    def record(self, seq: int) -> dict[str, Any] | None:
        """Return a record of a long journal's beginning; else None: the view holds all there is."""
        return self._behind.record(seq) if self._behind is not None else None

    def listen(self, listener: Listener) -> bool:
        """Have it called on the reading thread."""
        self._say = listener
        return True

    def close(self) -> None:
        """Follow no more."""
        self._closed.set()

    def _work(self) -> None:
        try:
            path = self.journal = self._found()
            while path is not None and not self._closed.is_set():
                self._follow(self._follower_of(path))
        except (AeonError, OSError) as error:
            self.error = failure(self.journal, error)
        finally:
            if self._behind is not None:
                self._behind.close()
            self._finished.set()
            self._say()

    def _found(self) -> Path | None:
        """Wait until there is such a run; return its journal, None where nobody wants it any more."""
        path = self._awaited.find()
        if path is None:
            near = self._awaited.near()
            self._tell(_Told("awaited", f"no such run yet; {near_runs(near)}" if near else ""))
        while path is None and not self._closed.wait(AWAIT_SECONDS):
            path = self._awaited.find()
        return path

    def _follower_of(self, path: Path) -> Follower:
        """Return what reads the journal; where it is long, from behind what was read behind the screen."""
        shown = self._follower is not None
        place = None
        if self._too_fast or _size(path) >= LONG:
            place, shown = self._read_past(path), True
        self._generation = -1 if shown and place is None else 0
        self._damage_read = 0
        self._follower = Follower(path, place)
        return self._follower

    def _read_past(self, path: Path) -> FollowPosition | None:
        """Give the last states again and again, then the whole; return where that ends, None where it failed."""
        if self._behind is not None:
            self._behind.close()
        from aeon_tui.sources.catch_up import CatchUpReader

        self._behind = CatchUpReader(path, self._show, self._closed, fast=self._too_fast)
        self._too_fast = False
        return self._behind.read(lambda: self._tell(_Told("running" if _is_live(path) else "reading")))

    def _show(self, view: RunView) -> None:
        """Give a view that takes the place of all that waits to be taken, but for what was told."""
        self._ready = deque([*(item for item in self._ready.copy() if isinstance(item, _Told)), view])
        self._say()

    def _follow(self, follower: Follower) -> None:
        """Hand over what comes, until a long journal has to be read again."""
        try:
            while not self._closed.is_set() and self._read_on(follower):
                self._note_damage(follower)
                standing = follower.standing
                if standing != "reading":
                    self._tell(_Told(standing, said_of(standing, self._awaited.argument(follower.path))))
                self._closed.wait(self._pace.pause(POLL_SECONDS))
        finally:
            follower.close()

    def _read_on(self, follower: Follower) -> bool:
        """Hand over what has come; return False if all of a long journal has to be read again."""
        fresh: RunView | None = None
        for generation, record in follower.read():
            if self._closed.is_set():
                return False
            if generation != self._generation:
                if self._generation >= 0 and follower.size >= LONG:
                    return False
                self._generation, fresh = generation, RunView()
                self._damage_read = 0
            if self._last_told.standing == "awaited":
                self._tell(_Told("reading"))
            if fresh is not None:
                reducer.apply(fresh, record)
            else:
                self._put(record)
                if self._pace.too_fast(1):
                    self._too_fast = True
                    return False
        if fresh is not None:
            self._put(fresh)
        return True

    def _note_damage(self, follower: Follower) -> None:
        """Report what cannot be read, and nothing twice if a file is read again."""
        new = follower.damage[self._damage_read :]
        self._damage_read += len(new)
        self.damage += [problem for problem in new if problem not in self.damage]

    def _tell(self, told: _Told) -> None:
        if told != self._last_told:
            self._last_told = told
            self._put(told)

    def _put(self, item: dict[str, Any] | RunView | _Told) -> None:
        while len(self._ready) >= self._ahead and not self._closed.wait(0.02):
            pass
        self._ready.append(item)
        self._say()


def _size(path: Path) -> int:
    """Return the bytes of a file, 0 where there is none."""
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


def said_of(standing: Standing, run: str) -> str:
    """Return the notice about a run that nobody writes and that has not ended; empty for any other.

    `run` names it on the command line.
    """
    if standing == "gone":
        return GONE
    if standing == "interrupted":
        return f"the run's process has ended; continue it with `aeon-tui resume {shlex.quote(run)}`"
    return ""


def near_runs(names: list[str]) -> str:
    """Return the names of runs that may be meant, in words."""
    return f"of a similar name {'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names))}"
