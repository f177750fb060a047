"""The model calls that belong to no step, as rows of the plan; and the call that a run waits for."""

from __future__ import annotations

from bisect import bisect_right
from typing import Literal, NamedTuple

from aeon_core.journal.view.model import CallView, RunView
from aeon_core.units import seconds_after
from aeon_widgets.text import joined, one_line

_BEFORE_THE_PLAN = ("profile", "plan")
CALL_LABELS = {
    "profile": "assess the task",
    "plan": "make the plan",
    "review": "review the plan",
    "judge": "evaluate",
    "refine": "refine the plan",
    "answer": "write the answer",
}


class RowKey(NamedTuple):
    """What a row shows: a step, calls of one purpose that belong to no step, all such calls of a pass, or a draft."""

    kind: Literal["step", "calls", "pass", "draft"]
    name: str
    pass_number: int = 0
    """The pass whose result the calls judge, answer from or refine; 0 for those before a step runs."""


def call_label(key: RowKey, *, with_pass: bool) -> str:
    """Return what the calls of a row are for, in words."""
    if key.kind == "pass":
        return f"pass {key.pass_number}" if with_pass else "plan and answer"
    label = CALL_LABELS.get(key.name, one_line(key.name, 40))
    return f"pass {key.pass_number} · {label}" if with_pass and key.pass_number else label


class CallRows:
    """Groups a run's calls by pass and purpose as they arrive. A repair belongs to the reply that it repairs."""

    def __init__(self, view: RunView) -> None:
        self.view = view
        self._groups: dict[RowKey, list[str]] = {}
        self._seqs: list[int] = []
        self._rows: list[RowKey] = []
        """The row of the call made at each of those seqs."""
        self._seen = 0
        self._last = RowKey("calls", "plan")

    @property
    def before(self) -> list[RowKey]:
        """The rows above the plan."""
        return [key for key in self._groups if not key.pass_number]

    @property
    def after(self) -> list[RowKey]:
        """The rows below the plan, pass by pass."""
        return [key for key in self._groups if key.pass_number]

    @property
    def passes(self) -> dict[RowKey, list[RowKey]]:
        """The rows of each pass, by the row that they are folded into; before a step runs, that is the first pass's."""
        found: dict[RowKey, list[RowKey]] = {}
        for key in [*self.before, *self.after]:
            found.setdefault(RowKey("pass", "", max(1, key.pass_number)), []).append(key)
        return found

    def update(self) -> None:
        """Add the calls made since the last update."""
        new = self.view.loose_calls[self._seen :]
        self._seen += len(new)
        for call in new:
            if call.purpose != "repair":
                # A plan that is reviewed or refined before any later call has not run yet.
                has_run = call.purpose not in ("review", "refine") or bool(self.after)
                early = call.purpose in _BEFORE_THE_PLAN or not has_run
                self._last = RowKey("calls", call.purpose, 0 if early else max(1, call.pass_number))
            self._groups.setdefault(self._last, []).append(call.call_id)
            self._seqs.append(call.seq)
            self._rows.append(self._last)

    def calls_of(self, key: RowKey) -> list[CallView]:
        """Return every attempt of a row's calls and of their repairs."""
        keys = self.passes.get(key, []) if key.kind == "pass" else [key]
        ids = [call_id for each in keys for call_id in self._groups.get(each, [])]
        return [call for call_id in ids for call in self.view.calls.get(call_id, [])]

    def last_of(self, key: RowKey) -> CallView:
        """Return the last attempt of a row's last call."""
        return self.view.calls[self._groups[key][-1]][-1]

    def row_at(self, seq: int) -> RowKey | None:
        """Return the row of the last call made up to a record; None if there is none."""
        made = bisect_right(self._seqs, seq)
        return self._rows[made - 1] if made else None


SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_SECOND = 5


class Activity(NamedTuple):
    """A model call or a tool call in progress."""

    step_id: str | None
    """The step that the call belongs to, if any."""
    name: str
    seconds: float
    tokens_per_second: float | None = None
    attempt: int = 1

    @property
    def spinner(self) -> str:
        """The current frame of the spinner."""
        return SPINNER[int(self.seconds * _FRAMES_PER_SECOND) % len(SPINNER)]

    @property
    def time(self) -> str:
        """The whole seconds, as `4 s`."""
        return f"{int(self.seconds)} s"

    @property
    def rate(self) -> str:
        """The speed of the reply; empty if it is not known."""
        return f"{self.tokens_per_second:.0f} tokens/s" if self.tokens_per_second is not None else ""

    def words(self, *, named: bool = True) -> str:
        """Return in words the call's attempt and speed, after its name unless `named` is false."""
        again = f"attempt {self.attempt}" if self.attempt > 1 else ""
        return joined(joined(self.name * named, again, by=" "), self.rate)


def running_call(view: RunView, now: str, tokens_per_second: float | None) -> Activity | None:
    """Return the call that a live run waits for at the time `now`; None if it waits for none."""
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
