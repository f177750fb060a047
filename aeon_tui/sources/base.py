"""The interface of sources, from which screens get records. Sources are drained, never waited for."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from typing_extensions import TypeVar

from aeon_core.errors import AeonError

if TYPE_CHECKING:
    from aeon_core.journal.view.model import RunView
    from aeon_tui.sources.snapshots import RunSnapshotStore

Records = Iterator[dict[str, Any]]
Listener = Callable[[], object]
"""Called on any thread; must not block."""
Reader = Callable[[Path, list[str]], Records]
"""Yields the records of a journal, and appends problems to the list."""
V = TypeVar("V", default="RunView")
"""The view into which records are folded."""


class Projection(NamedTuple, Generic[V]):
    """How a journal's records become a screen's view."""

    new: Callable[[], V]
    """Creates the view before the first record."""
    apply: Callable[[V, dict[str, Any]], object]
    shows_ends: bool = False
    """Whether a view of a journal's end can be built, which is shown first for a long or fast-growing one."""


class RecordSource(Generic[V]):
    """Records of one run or workflow, in order, or views folded elsewhere. By default, only records.

    The screen drains it and never waits for it.
    """

    def __init__(self, journal: Path | None = None) -> None:
        self.error: AeonError | None = None
        """Why nothing more can be read."""
        self.damage: list[str] = []
        """Unreadable lines, with their numbers."""
        self.journal = journal
        """The file with the records; None if there is none."""

    @property
    def notice(self) -> str:
        """A notice about the process that writes the run, or about its file; usually empty."""
        return ""

    @property
    def gone(self) -> bool:
        """Whether the journal was deleted or moved."""
        return False

    @property
    def waiting(self) -> bool:
        """Whether the run does not exist yet."""
        return False

    @property
    def reading(self) -> str:
        """What the source waits for or reads, in words; empty if nothing, or if the records show it."""
        return ""

    @property
    def live(self) -> bool:
        """Whether a process is writing the run."""
        return False

    @property
    def ended(self) -> bool:
        """Whether all records have been taken and no more will come."""
        return True

    @property
    def follows(self) -> bool:
        """Whether records written to the journal from now on will arrive."""
        return False

    @property
    def snapshots(self) -> RunSnapshotStore | None:
        """Views of the run's past, if the source reads the whole journal anyway."""
        return None

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return the next records within about this time."""
        raise NotImplementedError

    def take_view(self) -> V | None:
        """Return once a view that replaces the folded one; later records continue it."""
        return None

    def record(self, seq: int) -> dict[str, Any] | None:  # noqa: ARG002  # for those whose views hold all there is
        """Return a record with the parts that the view leaves in the journal. Reads the file."""
        return None

    def listen(self, listener: Listener) -> bool:  # noqa: ARG002  # for those that have to be polled
        """Call the listener whenever there may be news; return False if the source has to be polled."""
        return False

    def close(self) -> None:
        """Stop reading."""


def failure(journal: Path | None, error: AeonError | OSError) -> AeonError:
    """Return why a journal cannot be read further."""
    from aeon_core.journal.reader import unreadable

    return unreadable(journal, error) if isinstance(error, OSError) else error


def read_journal(path: Path, damage: list[str]) -> Records:
    """Yield a journal's records with their long texts."""
    from aeon_core.journal.reader import read_records

    return read_records(path, damage=damage)


class ReadAheadSource(RecordSource[V]):
    """The records of a journal file after one `seq`, read on a thread as fast as they are taken."""

    def __init__(self, path: Path, after: int = -1, read: Reader = read_journal, *, ahead: int = 2_000) -> None:
        super().__init__(path)
        self._path = path
        self._after, self._read = after, read
        self._ready: queue.Queue[dict[str, Any]] = queue.Queue(ahead)
        self._closed = threading.Event()
        self._finished = threading.Event()
        threading.Thread(target=self._work, name="aeon-journal-source", daemon=True).start()

    @property
    def ended(self) -> bool:
        return self._finished.is_set() and self._ready.empty()

    def take(self, seconds: float) -> list[dict[str, Any]]:
        deadline = time.perf_counter() + seconds
        records: list[dict[str, Any]] = []
        while time.perf_counter() < deadline:
            try:
                records.append(self._ready.get_nowait())
            except queue.Empty:
                break
        return records

    def close(self) -> None:
        self._closed.set()

    def _work(self) -> None:
        try:
            self._read_all()
        except (AeonError, OSError) as error:
            self.error = failure(self.journal, error)
        finally:
            self._finished.set()

    def _read_all(self) -> None:
        damage: list[str] = []
        for record in self._read(self._path, damage):
            if self._closed.is_set():
                return
            if record["seq"] > self._after:
                self._hand_over(record)
        self.damage = damage

    def _hand_over(self, record: dict[str, Any]) -> None:
        while not self._closed.is_set():
            try:
                self._ready.put(record, timeout=0.2)
                return
            except queue.Full:
                continue


def nobody() -> None:
    """No listener yet."""


FAST = 4_000
"""Records per second from which only the last states are shown, since folding all would delay keys."""
WINDOW_SECONDS = 0.5
QUIET_SECONDS = 2.0


class RateMeter:
    """Measures whether records arrive too fast to be folded one by one, and how soon to poll again."""

    def __init__(self) -> None:
        self._since = 0.0
        self._count = 0
        self._last = 0.0

    def too_fast(self, count: int) -> bool:
        """Count new records; return whether there were too many lately."""
        now = time.monotonic()
        if now - self._since > WINDOW_SECONDS:
            self._since, self._count = now, 0
        self._count += count
        self._last = now if count else self._last
        return self._count > FAST * WINDOW_SECONDS

    def pause(self, seconds: float) -> float:
        """Return the seconds until the next poll: these, or three times as many without news."""
        return 3 * seconds if time.monotonic() - self._last > QUIET_SECONDS else seconds
