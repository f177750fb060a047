"""A past journal of any size: its end is there at once, the rest is read behind the screen (Decision 5)."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.errors import AeonError
from aeon_tui.sources.base import Listener, failure, nobody
from aeon_tui.sources.snapshots import Closed, SnapshotStore

if TYPE_CHECKING:
    from aeon_core.journal.follow import FollowPosition
    from aeon_core.journal.view.model import RunView

PIECE_SECONDS = 0.004
"""How long the thread works before it lets the screen have its turn."""
PAUSE_SECONDS = 0.001
OPENING_SECONDS = 0.2
FIRST_SECONDS = 0.5
"""How long the screen has to itself when it has taken the view of the end: it is being drawn for the first time."""
LEFT = 128 * 1024
"""Bytes that may have come by the time the whole was read."""
FREEZE_SECONDS = 0.25
"""How often what was read is taken out of the collector's sight: going over it would keep a key waiting."""


class JournalSource:
    """Gives two views of a journal that nobody writes: first of its end, then of the whole.

    The whole leaves large values in the journal, and `record` reads them: what it holds for 400,000 records is about
    90 MB, index and places included, whatever the bytes of the file. A short journal is whole at once.
    """

    def __init__(self, path: Path) -> None:
        self.error: AeonError | None = None
        self.damage: list[str] = []
        """Empty: the views hold what cannot be read."""
        self.live = self.follows = False
        self.notice = ""
        self.waiting = False
        self.journal = path
        self.snapshots = SnapshotStore(path)
        """Views of the run's past: what is read for the whole is read for them."""
        self.place: FollowPosition | None = None
        """Where the view of a long journal ends, once it is there."""
        self._say: Listener = nobody
        self._views: deque[RunView] = deque()
        self._reads_all = False
        self._first = threading.Event()
        self._taken = threading.Event()
        self._closed = threading.Event()
        self._may_read = threading.Event()
        self._may_read.set()
        self._finished = threading.Event()
        threading.Thread(target=self._work, name="aeon-past-source", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether the view of the whole has been taken."""
        return self._finished.is_set() and not self._views

    @property
    def reading(self) -> str:
        """How far the whole has been read, in words; empty where it is there."""
        reads = self._reads_all and not self._finished.is_set()
        return (self.snapshots.reading or "reading 0 %") if reads else ""

    def wait(self, seconds: float = OPENING_SECONDS) -> None:
        """Wait until the view of the end is there, at most so long: a screen that opens then is drawn once."""
        self._first.wait(seconds)

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return no records: they are folded here."""
        del seconds
        return []

    def take_view(self) -> RunView | None:
        """Return the view of the end, then that of the whole, each once."""
        if not self._views:
            return None
        self._taken.set()
        return self._views.popleft()

    def pause(self, paused: bool) -> None:
        """Pause or continue reading."""
        if paused:
            self._may_read.clear()
        else:
            self._may_read.set()

    def record(self, seq: int) -> dict[str, Any] | None:
        """Return a record with its long texts, None where it cannot be read."""
        return self.snapshots.record(seq)

    def listen(self, listener: Listener) -> bool:
        """Have it called on the reading thread."""
        self._say = listener
        return True

    def close(self) -> None:
        """Read no more, and release the file."""
        self._closed.set()
        self._taken.set()
        self._may_read.set()
        self.snapshots.stop()
        if self._finished.is_set():
            self.snapshots.close()

    def _work(self) -> None:
        try:
            self._reads_all = not self._show_end()
            if self._reads_all:
                self._read_all()
        except Closed:
            pass
        except (AeonError, OSError) as error:
            self.error = failure(self.journal, error)
        finally:
            self._first.set()
            self._finished.set()
            self._say()
            if self._closed.is_set():
                self.snapshots.close()

    def _show_end(self) -> bool:
        """Give the view of the journal's end; return whether that is the whole."""
        view, whole = tail_view(self.journal)
        self._views.append(view)
        self._say()
        self._first.set()
        return whole

    def _read_all(self) -> None:
        self._taken.wait()
        self._closed.wait(FIRST_SECONDS)
        grown, read_to = True, 0
        while grown and not self._closed.is_set():
            whole = self.snapshots.read_on(self._pieces)
            # What came meanwhile may be as much again: only a little of it is left to those who follow the journal.
            grown, read_to = whole.read_to > read_to and self.snapshots.unread > LEFT, whole.read_to
        if not self._closed.is_set():
            self.place = whole.place
            self._views.append(whole.give())
            self._say()

    def _pieces(self, work: Callable[[float], bool]) -> Iterator[None]:
        """Work piece by piece until there is no more to do, or nobody wants it."""
        froze = time.perf_counter()
        while not self._closed.is_set() and work(PIECE_SECONDS):
            yield
            self._may_read.wait()
            if time.perf_counter() - froze > FREEZE_SECONDS:
                gc.freeze()
                froze = time.perf_counter()
            time.sleep(PAUSE_SECONDS)
        gc.freeze()


def tail_view(path: Path) -> tuple[RunView, bool]:
    """Return the view of a journal's end, and whether that is the whole. Raises AeonError, OSError."""
    from aeon_core.journal.view.last_states import LastStates

    with LastStates(path) as end:
        end.read_on()
        return (whole_view(path), True) if end.whole else (end.view(), False)


def whole_view(path: Path) -> RunView:
    """Return the view of a short journal, with what cannot be read of it by line number. Raises AeonError, OSError."""
    from aeon_core.journal.reader import read_records
    from aeon_core.journal.view.reducer import fold

    damage: list[str] = []
    view = fold(read_records(path, plans=False, damage=damage))
    for problem in damage:
        view.add_problem(problem)
    return view
