"""The plan as a tree with the status of every step, and the calls that belong to no step above and below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual.message import Message
from textual.reactive import var
from typing_extensions import override

from aeon_core.journal.view.model import CallView, IssueView, RunView, StepView
from aeon_core.journal.view.step_issues import open_issues, replacements, times_refined
from aeon_widgets.call_rows import CallRows, RowKey, call_label
from aeon_widgets.icons import FALLBACK, REFINED, REPAIRED, ROW_ICONS, SEVERITY_ICONS, UNFINISHED, WARNED, shown_status
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import fit, one_line
from aeon_widgets.virtual_list import Piece, RowsView

STATUS_WIDTH = 9
STATUS_FROM = 44
"""From this width on, the status stands beside the step as a word too."""


class PlanTree(RowsView, Pane):
    """Every step with icon, status and marks. The selection follows the run until the person moves it."""

    HELP_TITLE = "Plan"
    RECORDS: ClassVar[frozenset[str]] = frozenset(
        {"plan", "step", "llm", "supervisor", "validation", "refinement", "run_finished"}
    )

    item = None
    """A step is copied as what the screen has of it: the answer at the end, else the selected step's output."""
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
        self._calls = CallRows(self._view)
        self._issues: dict[str, list[IssueView]] = {}
        self._refined: dict[str, int] = {}
        self._replaced: dict[str, str] = {}
        self._unreadable: frozenset[RowKey | None] = frozenset()
        self._key: RowKey | None = None
        self.pane_title = "Plan"

    @property
    def selected(self) -> RowKey | None:
        """What the selected row stands for."""
        return self._key

    def calls_of(self, key: RowKey) -> list[CallView]:
        """Return every attempt of the calls that a row stands for, and of the repairs that they needed."""
        return self._calls.calls_of(key)

    def calls_at(self, seq: int) -> RowKey | None:
        """Return the row of the call that was made last before a record; None where none was."""
        return self._calls.row_at(seq)

    @property
    def answers(self) -> list[RowKey]:
        """The rows of the answers, the last one first."""
        return [key for key in reversed(self._calls.after) if key.name == "answer"]

    def update_view(self, view: RunView) -> None:
        """Show the run as it is now."""
        if view is not self._calls.view:
            self._view, self._calls = view, CallRows(view)
        self._calls.update()
        self._issues, self._refined, self._replaced = open_issues(view), times_refined(view), replacements(view)
        last = {self._calls.row_at(repair.seq): repair for repair in view.repairs if repair.step_id is None}
        self._unreadable = frozenset(key for key, repair in last.items() if repair.error is not None)
        steps = (RowKey("step", step_id) for step_id in view.steps)
        self._rows = [*self._calls.before, *steps, *self._calls.after]
        self.set_line_count(len(self._rows))
        self._settle_selection()
        wanted = [step for step in view.steps.values() if step.status != "invalid"]
        done = sum(step.status == "complete" for step in wanted)
        self.pane_title = f"Plan {done}/{len(wanted)} done" if view.steps else "Plan"

    def _settle_selection(self) -> None:
        wanted = self._key
        if self.following_run or wanted not in self._rows:
            wanted = self._where_the_run_is()
        if wanted is not None:
            self.cursor = self._rows.index(wanted)
        if wanted != self._key:
            self._key = wanted
            self.post_message(self.Selected(self, wanted))

    def _where_the_run_is(self) -> RowKey | None:
        view = self._view
        if view.current_step_id is not None and view.current_step_id in view.steps:
            return RowKey("step", view.current_step_id)
        waiting = self._waiting_calls()
        if view.result is None and waiting is not None:
            return waiting
        steps = list(view.steps.values())
        executed = next((step for step in reversed(steps) if step.status in ("complete", "running")), None)
        shown = (self._wanting(view.result.status, steps) if view.result is not None else None) or executed
        if shown is not None:
            return RowKey("step", shown.step_id)
        return self._rows[0] if self._rows else None

    def _wanting(self, status: str, steps: Sequence[StepView]) -> StepView | None:
        """Return the step to look at first in a run that has ended: failed, at fault, or where it stopped."""
        failed = next((step for step in steps if step.status == "failed"), None)
        if failed is not None or status not in UNFINISHED:
            return failed
        at_fault = (self._view.steps.get(step_id) for step_id in self._issues)
        pending = (step for step in steps if step.status == "pending")
        return next((step for step in at_fault if step is not None and step.status != "invalid"), next(pending, None))

    def _waiting_calls(self) -> RowKey | None:
        """Return the row that was added last, where it is of calls; where none has come back, the one that waits."""
        rows = [*self._calls.before, *self._calls.after]
        unfinished = [key for key in rows if not self._calls.last_of(key).finished]
        if unfinished:
            return unfinished[-1]
        return self._rows[-1] if self._rows and self._rows[-1].kind == "calls" else None

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
            return self._call_pieces(key, width)
        step = self._view.steps.get(key.name)
        return self._step_pieces(step, width) if step is not None else []

    def _call_pieces(self, key: RowKey, width: int) -> list[Piece]:
        last = self._calls.last_of(key)
        waits = not last.finished or last.retry_in_s is not None
        status = "failed" if last.error and not waits else "complete"
        if waits:
            status = shown_status("running", self.live)
        marks: list[Piece] = [(f" {WARNED}", "medium")] if key in self._unreadable else []
        return _row(status, "", call_label(key, with_pass=self._view.adaptive), marks, width, "muted")

    def _step_pieces(self, step: StepView, width: int) -> list[Piece]:
        indent = "  " * min(step.depth, 5)
        place = self._place(step, short=width < STATUS_FROM)
        label = f"{one_line(step.step_id, 40)}{place} {one_line(step.description, 300)}"
        status = shown_status(step.status, self.live)
        return _row(status, indent, label, self._marks(step), width, "muted" if status == "invalid" else "")

    def _place(self, step: StepView, *, short: bool) -> str:
        """Return what the step replaces, or what replaces it; one of both is enough in a narrow pane."""
        if step.step_id in self._replaced:
            return f" → {'' if short else 'replaced by '}{one_line(self._replaced[step.step_id], 40)} ·"
        return f" replaces {one_line(step.replaces, 40)} ·" if step.replaces and not short else ""

    def _marks(self, step: StepView) -> list[Piece]:
        marks: list[Piece] = []
        if step.repaired:
            marks.append((f" {REPAIRED}", "medium"))
        if step.mode == "fallback":
            marks.append((f" {FALLBACK}", "medium"))
        if step.step_id in self._refined:
            marks.append((f" {REFINED}{self._refined[step.step_id]}", "accent"))
        if issues := self._issues.get(step.step_id):
            worst = issues[0].severity if issues[0].severity in SEVERITY_ICONS else "low"
            marks.append((f" {SEVERITY_ICONS[worst]}{len(issues)}", worst))
        elif (step.validator_errors and step.step_id not in self._refined) or (step.errors and step.status != "failed"):
            marks.append((f" {WARNED}", "medium"))
        return marks


def _row(status: str, indent: str, label: str, marks: list[Piece], width: int, style: str) -> list[Piece]:
    word = f" {status:>{STATUS_WIDTH - 1}}" if width >= STATUS_FROM else ""
    head = f" {indent}{ROW_ICONS.get(status, '?')} "
    # One cell stays free at the right edge, so that text never touches the border.
    room = width - len(head) - sum(len(mark) for mark, _ in marks) - len(word) - 1
    shown = fit(label, room)
    from_here = room - cell_len(shown)
    return [
        (head, status),
        (shown, style),
        (" " * max(0, from_here), ""),
        *marks,
        (word, status),
        (" ", ""),
    ]
