"""Which moment of a run's past is shown, in words for the header."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aeon_core.timing import local_time
from aeon_widgets.text import count, one_line


@dataclass(frozen=True)
class RunPosition:
    """A moment of a run's past."""

    pass_number: int
    """0 before the first pass."""
    passes: int
    """How many passes there are by now."""
    phase: str
    """The phase that was running; empty at the end of a pass."""
    record: int
    last: int
    """The last record that there is by now; both are numbered as in the journal."""
    ts: str
    paused: bool = False
    asked: bool = False
    """Whether the run waits for the person meanwhile."""

    def texts(self) -> Iterator[str]:
        """Yield what the header says of it, in fewer and fewer words."""
        head = "‖ paused · " if self.paused else "◀ "
        place = f"pass {self.pass_number} of {self.passes}" if self.pass_number else "before pass 1"
        phase = f" · {one_line(self.phase, 20)}" if self.phase else ""
        time = f" · as of {local_time(self.ts, '%H:%M')}" if self.ts else ""
        record, short = f" · record {self.record:,} of {self.last:,}", f" · {self.record:,}/{self.last:,}"
        new = f" · {count(self.last - self.record, 'record')} since" if self.paused else ""
        asked = " · the run waits for you" if self.asked else ""
        yield f"{head}{place}{phase}{time}{record}{new}{asked}"
        yield f"{head}{place}{phase}{time}{short}{asked}"
        yield f"{head}{place}{time}{asked}"
        yield f"{head}{place}{time}"
        yield f"{head}{place}"
