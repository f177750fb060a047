"""The call that a run waits for: which one, how long, and how fast its reply comes."""

from __future__ import annotations

from typing import NamedTuple

from aeon_core.journal.view.model import RunView
from aeon_core.timing import seconds_after
from aeon_widgets.text import one_line

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_SECOND = 5


class Activity(NamedTuple):
    """A model call or a tool call that has not come back."""

    step_id: str | None
    """The step that it is for; None where it belongs to none."""
    name: str
    seconds: float
    tokens_per_second: float | None = None
    attempt: int = 1

    @property
    def spinner(self) -> str:
        """A frame of the spinner."""
        return SPINNER[int(self.seconds * _FRAMES_PER_SECOND) % len(SPINNER)]

    @property
    def time(self) -> str:
        """The whole seconds, as `4 s`."""
        return f"{int(self.seconds)} s"

    @property
    def rate(self) -> str:
        """How fast the reply comes; empty where that is not known."""
        return f"{self.tokens_per_second:.0f} tokens/s" if self.tokens_per_second is not None else ""

    def words(self, *, named: bool = True) -> str:
        """Return in words the call, unless what is beside it names it, its attempt and its speed."""
        again = f"attempt {self.attempt}" if self.attempt > 1 else ""
        call = " ".join(part for part in (self.name * named, again) if part)
        return " · ".join(part for part in (call, self.rate) if part)


def running_call(view: RunView, now: str, tokens_per_second: float | None) -> Activity | None:
    """Return the call that a live run waits for at a time; None where it waits for none."""
    step = view.steps.get(view.current_step_id or "")
    tool = step.tool_calls[-1] if step is not None and step.tool_calls else None
    if tool is not None and not tool.finished:
        return Activity(tool.step_id, one_line(tool.tool_name, 40), seconds_after(tool.started, now))
    calls = [step.calls[-1]] if step is not None and step.calls else []
    calls += view.calls.get(view.loose_calls[-1].call_id, [])[-1:] if view.loose_calls else []
    waits = max((call for call in calls if not call.finished), key=lambda call: call.seq, default=None)
    if waits is None:
        return None
    seconds = seconds_after(waits.started, now)
    return Activity(waits.step_id, one_line(waits.purpose, 30), seconds, tokens_per_second, waits.attempt)
