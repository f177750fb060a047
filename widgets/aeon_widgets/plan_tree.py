"""The plan as a tree with the status of every step, and the calls that belong to no step above and below it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Literal, NamedTuple

from rich.cells import cell_len
from textual.message import Message
from textual.reactive import var
from typing_extensions import override

from aeon_core.journal.view import CallView, RunView, StepView
from aeon_widgets.lines import Piece, RowsView
from aeon_widgets.marks import FALLBACK, REPAIRED, ROW_ICONS, WARNED, shown_status
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import fit, one_line

STATUS_WIDTH = 9
STATUS_FROM = 44
"""From this width on, the status stands beside the step as a word too."""

BEFORE_THE_PLAN = ("profile", "plan")
CALL_LABELS = {
    "profile": "judge the task",
    "plan": "make the plan",
    "judge": "evaluate",
    "refine": "refine the plan",
    "answer": "write the answer",
}


class RowKey(NamedTuple):
    """What a row stands for: a step by its id, or the calls of one purpose that belong to no step."""

    kind: Literal["step", "calls"]
    name: str


class PlanTree(RowsView, Pane):
    """Every step with icon, status and marks. The selection follows the run until the person moves it."""

    HELP_TITLE = "Plan"
    RECORDS: ClassVar[frozenset[str]] = frozenset({"plan", "step", "llm", "supervisor", "run_finished"})

    following_run: var[bool] = var(True)
    live: var[bool] = var(True)
    """Whether the run goes on: without it, a step or a call that has not come back never will."""

    @dataclass
    class Selected(Message):
        """Another row is selected, by the person or because the run went on. `key` is None in an empty plan."""

        tree: PlanTree
        key: RowKey | None

        @property
        def control(self) -> PlanTree:
            return self.tree

    DEFAULT_CSS = pane_css("PlanTree")

    def __init__(self) -> None:
        super().__init__()
        self._view = RunView()
        self._rows: list[RowKey] = []
        self._groups: dict[str, list[str]] = {}
        self._calls_seen = 0
        self._key: RowKey | None = None
        self.pane_title = "Plan"

    @property
    def selected(self) -> RowKey | None:
        """What the selected row stands for."""
        return self._key

    def calls_of(self, purpose: str) -> list[CallView]:
        """Return every attempt of the calls that belong to no step, of one purpose and the repairs that it needed."""
        return [call for call_id in self._groups.get(purpose, []) for call in self._view.calls.get(call_id, [])]

    def update_view(self, view: RunView) -> None:
        """Show the run as it is now."""
        if view is not self._view:
            self._view, self._groups, self._calls_seen = view, {}, 0
        self._group_calls()
        before = [RowKey("calls", name) for name in BEFORE_THE_PLAN if name in self._groups]
        after = [RowKey("calls", name) for name in self._groups if name not in BEFORE_THE_PLAN]
        self._rows = [*before, *(RowKey("step", step_id) for step_id in view.steps), *after]
        self.set_line_count(len(self._rows))
        self._settle_selection()
        done = sum(step.status == "complete" for step in view.steps.values())
        self.pane_title = f"Plan {done}/{len(view.steps)} done" if view.steps else "Plan"

    def _group_calls(self) -> None:
        last = next(reversed(self._groups), "plan")
        for attempts in islice(self._view.calls.values(), self._calls_seen, None):
            self._calls_seen += 1
            call = attempts[0] if attempts else None
            if call is None or call.step_id is not None:
                continue
            # A repair belongs to the reply that it repairs.
            last = last if call.purpose == "repair" else call.purpose
            self._groups.setdefault(last, []).append(call.call_id)

    def _settle_selection(self) -> None:
        wanted = self._key
        if self.following_run or wanted not in self._rows:
            wanted = self._where_the_run_is()
        if wanted is None:
            return
        self.cursor = self._rows.index(wanted)
        if wanted != self._key:
            self._key = wanted
            self.post_message(self.Selected(self, wanted))

    def _where_the_run_is(self) -> RowKey | None:
        view = self._view
        if view.current_step_id is not None and view.current_step_id in view.steps:
            return RowKey("step", view.current_step_id)
        if view.result is None and self._rows and self._rows[-1].kind == "calls":
            return self._rows[-1]
        steps = list(view.steps.values())
        failed = next((step for step in steps if step.status == "failed"), None)
        executed = next((step for step in reversed(steps) if step.status in ("complete", "running")), None)
        shown = failed if view.result is not None and failed is not None else executed
        if shown is not None:
            return RowKey("step", shown.step_id)
        return self._rows[0] if self._rows else None

    def select(self, key: RowKey) -> None:
        """Select a row as the person does."""
        if key in self._rows:
            self.move_to(self._rows.index(key))

    def follow_run(self) -> None:
        """Let the selection follow the running step again."""
        self.following_run = True
        self._settle_selection()

    @override
    def move_to(self, index: int) -> None:
        """Select a row as the person does: from now on the selection stays with the person."""
        if not self._rows:
            return
        self.following_run = False
        self.cursor = min(max(index, 0), len(self._rows) - 1)
        if self._rows[self.cursor] != self._key:
            self._key = self._rows[self.cursor]
            self.post_message(self.Selected(self, self._key))

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        key = self._rows[index]
        if key.kind == "calls":
            return self._call_pieces(key.name, width)
        step = self._view.steps.get(key.name)
        return self._step_pieces(step, width) if step is not None else []

    def _call_pieces(self, purpose: str, width: int) -> list[Piece]:
        last = self.calls_of(purpose)[-1]
        waits = not last.finished or last.retry_in_s is not None
        status = "failed" if last.error and not waits else "complete"
        if waits:
            status = shown_status("running", self.live)
        return _row(status, "", CALL_LABELS.get(purpose, one_line(purpose, 40)), "", width, "muted")

    def _step_pieces(self, step: StepView, width: int) -> list[Piece]:
        marks = ""
        if step.repaired:
            marks += f" {REPAIRED}"
        if step.mode == "fallback":
            marks += f" {FALLBACK}"
        if step.validator_errors or (step.errors and step.status != "failed"):
            marks += f" {WARNED}"
        indent = "  " * min(step.depth, 5)
        label = f"{one_line(step.step_id, 40)} {one_line(step.description, 300)}"
        status = shown_status(step.status, self.live)
        return _row(status, indent, label, marks, width, "muted" if status == "invalid" else "")


def _row(status: str, indent: str, label: str, marks: str, width: int, style: str) -> list[Piece]:
    word = f" {status:>{STATUS_WIDTH - 1}}" if width >= STATUS_FROM else ""
    head = f" {indent}{ROW_ICONS.get(status, '?')} "
    # One cell stays free at the right edge, so that text never touches the border.
    room = width - len(head) - len(marks) - len(word) - 1
    shown = fit(label, room)
    from_here = room - cell_len(shown)
    return [
        (head, status),
        (shown, style),
        (" " * max(0, from_here), ""),
        (marks, "medium"),
        (word, status),
        (" ", ""),
    ]
