"""A source for a journal of any size: its end is shown immediately, the whole read in the background (Decision 5)."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from aeon_core.errors import AeonError
from aeon_core.journal.view.model import RunView
from aeon_tui.sources.base import FAST, WINDOW_SECONDS, Listener, RecordSource, V, failure, nobody
from aeon_tui.sources.snapshots import Closed, SnapshotStore, Work

if TYPE_CHECKING:
    from aeon_core.journal.follow import FollowPosition, FollowStatus
    from aeon_core.journal.view.last_states import LastStates

PIECE_SECONDS = 0.004
"""How long the thread works before it yields to the screen."""
PAUSE_SECONDS = 0.001
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
    snapshots: SnapshotStore | None = None
    """Views of the run's past, which share what is read for the whole."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path)
        if path is not None:
            self.snapshots = SnapshotStore(path)
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


def tail_view(path: Path) -> tuple[RunView, bool]:
    """Return the view of a journal's end, and whether that is the whole. Raises AeonError, OSError."""
    from aeon_core.journal.view.last_states import LastStates

    with LastStates(path) as end:
        end.read_on()
        return (whole_view(path), True) if end.whole else (end.view(), False)


def whole_view(path: Path) -> RunView:
    """Return the view of a short journal, with unreadable lines by number. Raises AeonError, OSError."""
    from aeon_core.journal.reader import read_records
    from aeon_core.journal.view.reducer import fold

    damage: list[str] = []
    view = fold(read_records(path, damage=damage))
    for problem in damage:
        view.add_problem(problem)
    return view
