"""The mark that says that a screen does not show how a run is now, but how it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from aeon_core.timing import local_time
from aeon_widgets.text import count, fit, one_line


@dataclass(frozen=True)
class RunPosition:
    """A moment of a run's past, as it is told to a person."""

    pass_number: int
    """0 before the first pass."""
    phase: str
    record: int
    last: int
    """The last record that there is by now; both are numbered as in the journal."""
    ts: str
    paused: bool = False
    asked: bool = False
    """Whether the run waits for the person meanwhile."""


class PositionLine(Widget):
    """`◀ PAST MOMENT · pass 2 · execute · record 41 of 120 · 09:30:41 · Esc: now`. A click returns to now."""

    DEFAULT_CSS = """
    PositionLine {
        height: 1; padding: 0 1; display: none;
        background: $severity-medium; color: $background; text-style: bold;
        &.-there { display: block; }
    }
    """

    @dataclass
    class Left(Message):
        """The person wants to see how the run is now."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: RunPosition | None = None
        self._reading = ""

    def update_moment(self, shown: RunPosition | None, reading: str = "") -> None:
        """Say which moment is shown, None where it is now; `reading` is how far another one is being looked for."""
        if (shown, reading) != (self._shown, self._reading):
            self._shown, self._reading = shown, reading
            self.set_class(shown is not None or bool(reading), "-there")
            self.refresh()

    def render(self) -> Content:
        width = self.size.width
        text = ""
        for text in self._texts():
            if cell_len(text) <= width:
                break
        return Content(fit(text, width))

    def _texts(self) -> Iterator[str]:
        """Yield what is to be said, in fewer and fewer words."""
        if self._reading or self._shown is None:
            yield f"… to a past moment: {self._reading} · Esc: stay"
            yield f"… {self._reading} · Esc: stay"
            return
        shown = self._shown
        head = "‖ PAUSED" if shown.paused else "◀ PAST MOMENT"
        place = [f"pass {shown.pass_number}" if shown.pass_number else "before the first pass"]
        phase = [one_line(shown.phase, 20)] if shown.phase else []
        time = [local_time(shown.ts, "%H:%M:%S")] if shown.ts else []
        asked = ["the run waits for you"] if shown.asked else []
        new = [f"{count(shown.last - shown.record, 'record')} since"] if shown.paused else []
        record, short = f"record {shown.record:,} of {shown.last:,}", f"{shown.record:,}/{shown.last:,}"
        keys = "space resumes" if shown.paused else "Esc or End returns to now"
        brief = "space: resume" if shown.paused else "Esc: now"
        ways = "[ ] passes · { } records"
        yield " · ".join([head, *place, *phase, record, *time, *new, *asked, ways, keys])
        yield " · ".join([head, *place, *phase, record, *time, *new, *asked, keys])
        yield " · ".join([head, *place, *phase, record, *time, *new, *asked, brief])
        yield " · ".join([head, *place, record, *(asked or [*time, *new]), brief])
        yield " · ".join([head, *place, short, *(asked or new), brief])
        yield " · ".join([head, short, brief])
        yield " · ".join([head, brief])

    def on_click(self) -> None:
        self.post_message(self.Left())
