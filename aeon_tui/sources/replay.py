"""The replay of a past run at its own pace, and whether Aeon still does what was recorded."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.errors import AeonError, UsageError
from aeon_core.units import seconds_after
from aeon_tui.sources.base import ReadAheadSource, RecordSource, V

if TYPE_CHECKING:
    from aeon_core.runs.replay import Replay

PAUSE_SECONDS = 3.0
"""The longest time that a wait for a model or a person is replayed, whatever the speed."""
AT_ONCE = float("inf")
SPEEDS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, AT_ONCE)
AHEAD = 1_000
"""The number of records read ahead; the journal is never held as a whole."""
CHECKED_BYTES = 64_000_000
"""The largest journal that is checked while it is shown, since the kernel needs all of it in memory."""

Clock = Callable[[], float]


class ReplaySource(RecordSource[V]):
    """The records of a journal, each at its recorded distance from the previous one, divided by the speed.

    `clock` counts seconds. Use everything else on the screen's thread only.
    """

    def __init__(
        self, path: Path, speed: float = 1.0, clock: Clock = time.monotonic, source: RecordSource[V] | None = None
    ) -> None:
        super().__init__(path)
        self.speed = speed
        self.paused = False
        self._source: RecordSource[V] = source if source is not None else ReadAheadSource(path, ahead=AHEAD)
        self._clock = clock
        self._waiting: deque[dict[str, Any]] = deque()
        self._last_ts = ""
        self._now = clock()
        self._waited = 0.0
        """Seconds since the last record was due."""
        self._steps = 0

    @property
    def ended(self) -> bool:
        return not self._waiting and self._source.ended

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return the records that are due, within about this time."""
        self._pass_time()
        deadline = time.perf_counter() + seconds
        records: list[dict[str, Any]] = []
        while self._has_more(seconds) and time.perf_counter() < deadline and self._is_due(self._waiting[0]):
            records.append(self._waiting.popleft())
            self._last_ts = str(records[-1].get("ts", ""))
        self.error, self.damage = self._source.error, self._source.damage
        return records

    def toggle(self) -> None:
        """Pause or continue."""
        self.paused = not self.paused

    def step(self) -> None:
        """Pause, and show one more record."""
        self.paused = True
        self._steps += 1

    def faster(self) -> None:
        """Play at the next higher speed."""
        self._take_speed(next((speed for speed in SPEEDS if speed > self.speed), SPEEDS[-1]))

    def slower(self) -> None:
        """Play at the next lower speed."""
        self._take_speed(next((speed for speed in reversed(SPEEDS) if speed < self.speed), SPEEDS[0]))

    def jump_to_end(self) -> None:
        """Skip to the end."""
        self.paused = False
        self._take_speed(AT_ONCE)

    def close(self) -> None:
        self._source.close()

    def _take_speed(self, speed: float) -> None:
        self.speed, self._waited = speed, 0.0

    def _pass_time(self) -> None:
        before, self._now = self._now, self._clock()
        if not self.paused:
            self._waited += self._now - before

    def _has_more(self, seconds: float) -> bool:
        if not self._waiting:
            self._waiting.extend(self._source.take(seconds))
            if not self._waiting:
                # Do not rush through records that were read late.
                self._waited = min(self._waited, PAUSE_SECONDS)
        return bool(self._waiting)

    def _is_due(self, record: dict[str, Any]) -> bool:
        if self._steps:
            # A long text alone shows nothing.
            self._steps -= record.get("type") != "text"
            self._waited = 0.0
            return True
        if self.paused:
            return False
        wait = min(seconds_after(self._last_ts, str(record.get("ts", ""))) / self.speed, PAUSE_SECONDS)
        if self._waited < wait:
            return False
        self._waited -= wait
        return True


def speed_of(text: str) -> float | None:
    """Return the speed that a text names, a number above 0 or `max`; None if it is neither."""
    if text == "max":
        return AT_ONCE
    try:
        speed = float(text)
    except ValueError:
        return None
    return speed if 0 < speed < AT_ONCE else None


def make_sure_it_is_over(path: Path) -> None:
    """Raise UsageError if a process is still writing the run, since its replay would look cut off."""
    from aeon_core.journal.summary import is_being_written

    with contextlib.suppress(OSError):
        if is_being_written(path):
            raise UsageError(
                f"the run {path.stem!r} is still running; follow it with `aeon-tui watch`, and replay it when it has "
                "ended"
            )


def speed_words(speed: float) -> str:
    """Return a speed as `10x`, or `max`."""
    return "max" if speed == AT_ONCE else f"{speed:g}x"


class ReplayCheck:
    """Checks on a thread of its own whether the kernel still does what was recorded.

    `finding` is one line about the first difference, or why there is no answer; None if there is no difference, and
    until then. `differs_at` is the record's seq.
    """

    def __init__(self, path: Path, replay: Callable[[Path], Replay] | None = None) -> None:
        self.finding: str | None = None
        self.differs_at: int | None = None
        self._path = path
        self._replay = replay
        self._thread = threading.Thread(target=self._work, name="aeon-replay-check", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the answer; return whether it is there."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        from aeon_core.runs.replay import replay

        try:
            if self._path.stat().st_size > CHECKED_BYTES:
                self.finding = "the journal is too large to check here; use `aeon-tui replay RUN --check`"
                return
            difference = (self._replay or replay)(self._path).difference
        except AeonError as error:
            self.finding = f"not checked: {error.message}"
        except OSError as error:
            self.finding = f"not checked: the journal cannot be read: {error.strerror}"
        else:
            if difference is not None:
                self.differs_at = difference.seq
                self.finding = (
                    f"Aeon now behaves differently, starting at record {difference.seq}; `aeon-tui replay RUN --check` "
                    "shows how"
                )
