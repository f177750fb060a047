"""The plan as a tree with the status of every step; below it a row for each pass, with the calls of no step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.reactive import var
from typing_extensions import override

from aeon_core.journal.view.draft import Draft, DraftStep
from aeon_core.journal.view.formatting import score
from aeon_core.journal.view.model import (
    CallView,
    IssueView,
    RunView,
    StepView,
    open_issues,
    replacements,
    superseded,
    times_refined,
)
from aeon_widgets.call_rows import CALL_LABELS, Activity, CallRows, RowKey, call_label
from aeon_widgets.icons import FALLBACK, REFINED, REPAIRED, ROW_ICONS, SEVERITY_ICONS, UNFINISHED, WARNED, shown_status
from aeon_widgets.pane import Pane, PaneMessage, message, pane_css
from aeon_widgets.reply_text import SIGN_STYLES
from aeon_widgets.text import Piece, fit, joined, one_line
from aeon_widgets.virtual_list import RowsView

FOLD_WIDTH = 2
"""Cells at the beginning of a pass's row; a click on them unfolds or folds it."""
STATUS_WIDTH = 9
STATUS_FROM = 44
"""The width from which the status is also written next to the step."""


class PlanTree(RowsView, Pane):
    """Every step with icon, status and marks. The selection follows the run until the person moves it.

    Steps that another one replaced are folded into its row, and calls that belong to no step into that of their pass.
    """

    HELP_TITLE = "Plan"
    RECORDS: ClassVar[frozenset[str]] = frozenset(
        {"plan", "step", "llm", "supervisor", "validation", "convergence", "refinement", "phase", "run_finished"}
        | {"approval"}
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "unfold", "Unfold", show=False, id="plan.unfold"),
        Binding("left,h", "fold", "Fold", show=False, id="plan.fold"),
    ]

    item = None
    """None, so that the screen's item is copied: the answer at the end, else the selected step's output."""
    following_run: var[bool] = var(True)
    live: var[bool] = var(True)
    """Whether the run is live; if not, a step or a call that has not ended never will."""

    @message
    class Selected(PaneMessage):
        """Another row was selected, by the person or by the run's progress. `key` is None in an empty plan."""

        key: RowKey | None

    DEFAULT_CSS = pane_css("PlanTree")

    def __init__(self) -> None:
        super().__init__()
        self._view = RunView()
        self.where_empty = ("No plan yet.",)
        self._rows: list[RowKey] = []
        self._open: set[RowKey] = set()
        """The rows that are unfolded."""
        self._folds: dict[RowKey, list[RowKey]] = {}
        """The rows folded into each row."""
        self._holder: dict[RowKey, RowKey] = {}
        """The row that each folded row is folded into."""
        self._calls = CallRows(self._view)
        self._issues: dict[str, list[IssueView]] = {}
        self._refined: dict[str, int] = {}
        self._replaced: dict[str, str] = {}
        self._unreadable: frozenset[RowKey | None] = frozenset()
        self._key: RowKey | None = None
        self._draft: tuple[DraftStep, ...] = ()
        self._activity: Activity | None = None
        self.pane_title = "Plan"

    @property
    def selected(self) -> RowKey | None:
        """The selected row's content."""
        return self._key

    def calls_of(self, key: RowKey) -> list[CallView]:
        """Return every attempt of a row's calls and of their repairs."""
        return self._calls.calls_of(key)

    def calls_at(self, seq: int) -> RowKey | None:
        """Return the row of the last call made up to a record; None if there is none."""
        return self._calls.row_at(seq)

    @property
    def answers(self) -> list[RowKey]:
        """The rows of the answers, the last one first."""
        return [key for key in reversed(self._calls.after) if key.name == "answer"]

    def update_view(self, view: RunView) -> None:
        """Show the run as it is now."""
        if view is not self._calls.view:
            self._draft = ()
            self._view, self._calls = view, CallRows(view)
        self._calls.update()
        self._issues, self._refined, self._replaced = open_issues(view), times_refined(view), replacements(view)
        last = {self._calls.row_at(repair.seq): repair for repair in view.repairs if repair.step_id is None}
        self._unreadable = frozenset(key for key, repair in last.items() if repair.error is not None)
        self._folds = {RowKey("step", last): [] for last in superseded(view).values()}
        for step_id, end in superseded(view).items():
            self._folds[RowKey("step", end)].append(RowKey("step", step_id))
        self._folds |= self._calls.passes
        self._holder = {key: holder for holder, keys in self._folds.items() for key in keys}
        self._lay_out()
        self._settle_selection()
        wanted = view.wanted_steps
        done = sum(step.status == "complete" for step in wanted)
        self.pane_title = f"Plan {done}/{len(wanted)} done" if view.steps else "Plan"

    def update_draft(self, draft: Draft | None) -> None:
        """Show what a reply in progress does to the plan, as extra rows; None if there is no such reply."""
        shown = draft.steps if draft is not None else ()
        if shown != self._draft:
            self._draft = shown
            self._lay_out()
            self._stay()

    def update_activity(self, activity: Activity | None) -> None:
        """Show the call that the run waits for in its row."""
        if activity != self._activity:
            steps = {each.step_id for each in (self._activity, activity) if each is not None}
            self._activity = activity
            self._draw_changed({place for place, key in enumerate(self._rows) if _step_id(key) in steps})

    def _lay_out(self) -> None:
        """List the steps that are not replaced, then the passes, each followed by its unfolded rows."""
        steps = (RowKey("step", step_id) for step_id in self._view.steps)
        top = [*(key for key in steps if key not in self._holder), *self._calls.passes]
        rows = [row for key in top for row in (key, *(self._folds[key] if self._is_open(key) else ()))]
        # The rows of the reply in progress, by the row above them; None is the end of the plan.
        drafted: dict[RowKey | None, list[RowKey]] = {}
        for place, step in enumerate(self._draft):
            after = self._holder.get(RowKey("step", step.after), RowKey("step", step.after))
            drafted.setdefault(after if after in rows else None, []).append(RowKey("draft", str(place)))
        end = next((place for place, key in enumerate(rows) if key.kind == "pass"), len(rows))
        rows[end:end] = drafted.pop(None, [])
        self._rows = [row for key in rows for row in (key, *drafted.get(key, ()))]
        self.set_line_count(len(self._rows))

    def _stay(self) -> None:
        """Keep the selected row, or select the one that it was folded into."""
        self._key = self._in_sight(self._key)
        if self._key in self._rows:
            self.cursor = self._rows.index(self._key)

    def _is_open(self, key: RowKey) -> bool:
        return key in self._open and key in self._folds

    def _in_sight(self, key: RowKey | None) -> RowKey | None:
        """Return the row itself, or the one that it is folded into."""
        return key if key is None or key in self._rows else self._holder.get(key, key)

    def _settle_selection(self) -> None:
        wanted = self._key
        if self.following_run or wanted not in self._rows:
            wanted = self._in_sight(self._where_the_run_is())
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
        shown = (self._step_to_look_at(view.result.status, steps) if view.result is not None else None) or executed
        if shown is not None:
            return RowKey("step", shown.step_id)
        return self._rows[0] if self._rows else None

    def _step_to_look_at(self, status: str, steps: Sequence[StepView]) -> StepView | None:
        """Return the step to look at first in a run that has ended: the first failed, faulty or pending one."""
        failed = next((step for step in steps if step.status == "failed"), None)
        if failed is not None or status not in UNFINISHED:
            return failed
        at_fault = (self._view.steps.get(step_id) for step_id in self._issues)
        pending = (step for step in steps if step.status == "pending")
        return next((step for step in at_fault if step is not None and step.status != "invalid"), next(pending, None))

    def _waiting_calls(self) -> RowKey | None:
        """Return the last row of unfinished calls, else the last row of calls unless a step came after it."""
        rows = [*self._calls.before, *self._calls.after]
        unfinished = [key for key in rows if self._waits(key)]
        if unfinished:
            return unfinished[-1]
        return rows[-1] if rows and (self._calls.after or not self._view.steps) else None

    def _waits(self, key: RowKey) -> bool:
        return not self._calls.last_of(key).finished

    @property
    def subject(self) -> RowKey | None:
        """The row to show for the selected one: for a pass or a draft, that of its unfinished calls, if any."""
        key = self._key
        if key is not None and key.kind == "draft":
            return self._waiting_calls()
        folded = self._folds.get(key, []) if key is not None and key.kind == "pass" else []
        return next((each for each in reversed(folded) if self._waits(each)), key)

    def select(self, key: RowKey) -> None:
        """Select a row for the person, unfolding the one that it is folded into."""
        if key not in self._rows and key in self._holder:
            self._unfold(self._holder[key])
        if key in self._rows:
            self.move_to(self._rows.index(key))

    def _unfold(self, key: RowKey, *, unfold: bool = True) -> None:
        """Show the rows folded into a row, or fold them again; the selection stays in sight."""
        self._open = self._open | {key} if unfold else self._open - {key}
        self._lay_out()
        self._stay()
        if unfold:
            rows = Region(0, self._rows.index(key), 1, 1 + len(self._folds[key]))
            self.scroll_to_region(rows, animate=False, immediate=True, x_axis=False, force=True)
            self._show_cursor()

    def action_unfold(self) -> None:
        """Unfold the selected row; if nothing is folded into it, open it."""
        if self._key is not None and self._key in self._folds and not self._is_open(self._key):
            self._unfold(self._key)
        else:
            super().action_choose()

    def action_fold(self) -> None:
        """Fold the selected row, or the one that it is part of."""
        if self._key is not None and (self._is_open(self._key) or self._key in self._holder):
            key = self._key if self._is_open(self._key) else self._holder[self._key]
            self._unfold(key, unfold=False)
            self.move_to(self._rows.index(key))

    @override
    def action_choose(self) -> None:
        """Open the selected step or call; unfold a pass, or fold it again."""
        if self._key is not None and self._key.kind == "pass":
            self._unfold(self._key, unfold=not self._is_open(self._key))
        else:
            super().action_choose()

    def on_click(self, event: events.Click) -> None:
        offset, index = event.get_content_offset(self), self.line_at(event)
        if offset is not None and offset.x <= FOLD_WIDTH and index >= 0 and event.chain == 1:
            key = self._rows[index]
            if key.kind == "pass":
                self._unfold(key, unfold=not self._is_open(key))

    def follow_run(self) -> None:
        """Let the selection follow the running step again."""
        self.following_run = True
        self._settle_selection()

    @override
    def move_to(self, index: int) -> None:
        """Select a row for the person; the selection then no longer follows the run."""
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
        if key.kind == "pass":
            return self._pass_pieces(key, width)
        if key.kind == "draft":
            return self._draft_pieces(self._draft[int(key.name)], width)
        step = self._view.steps.get(key.name)
        return self._step_pieces(step, width) if step is not None else []

    def _draft_pieces(self, step: DraftStep, width: int) -> list[Piece]:
        """Return a step that is not part of the plan yet."""
        adds_plan = not step.after and step.sign == "+"
        indent = "  " * (min(step.depth, 5) + (not adds_plan))
        sign = ROW_ICONS["pending"] if adds_plan else step.sign
        label = joined(one_line(step.step_id, 40), one_line(step.text, 300), by=" ")
        return [
            (f" {indent}{sign} ", "muted" if adds_plan else SIGN_STYLES[step.sign]),
            (fit(label, width - len(indent) - 4), "muted italic"),
        ]

    def _pass_pieces(self, key: RowKey, width: int) -> list[Piece]:
        """Return the row of a pass: its call in progress, or else its scores or failure."""
        label = f"{call_label(key, with_pass=self._view.adaptive)} "
        keys = self._folds[key]
        waiting = next((each for each in reversed(keys) if self._waits(each)), None)
        assessed = self._view.assessment_of(key.pass_number)
        mark = f" {WARNED}" if self._unreadable & {*keys} else self._clock(waiting, width)
        room = width - cell_len(label) - len(mark) - 4
        note: Piece = ("", "")
        if waiting is not None:
            status = shown_status("running", self.live)
            note = (f"{ROW_ICONS[status]} {CALL_LABELS.get(waiting.name, one_line(waiting.name, 40))}", status)
        elif assessed is not None:
            icon, style = ("✔", "complete") if assessed.converged else ("✖", "medium")
            completeness, coherence = score(assessed.completeness_score), score(assessed.coherence_score)
            named = f"complete {completeness} coherent {coherence}"
            scores = named if cell_len(named) + 2 <= room else f"{completeness} {coherence}"
            note = (f"{icon} {'not judged' if assessed.not_judged else scores}", style)
        elif self._calls.last_of(keys[-1]).error:
            note = (f"{ROW_ICONS['failed']} failed: {call_label(keys[-1], with_pass=False)}", "failed")
        fold = "▾" if self._is_open(key) else "▸"
        # A score that is cut off would look like another one.
        fits = assessed is None or waiting is not None or cell_len(note[0]) <= room
        shown = fit(note[0] if fits else note[0][:1], room)
        return [
            (f" {fold} ", "muted"), (label, ""), (shown, note[1]),
            (" " * max(0, room - cell_len(shown)), ""), (mark, "medium" if WARNED in mark else "running"), (" ", ""),
        ]  # fmt: skip

    def _call_pieces(self, key: RowKey, width: int) -> list[Piece]:
        last = self._calls.last_of(key)
        waits = not last.finished or last.retry_in_s is not None
        status = "failed" if last.error and not waits else "complete"
        if waits:
            status = shown_status("running", self.live)
        marks: list[Piece] = [(f" {WARNED}", "medium")] if key in self._unreadable else []
        marks.append((self._clock(key, width), "running"))
        return _row(status, "  ", call_label(key, with_pass=False), marks, width, "muted")

    def _step_pieces(self, step: StepView, width: int) -> list[Piece]:
        """Return a step's row; a narrow pane does not show what it replaces."""
        key, short, place = RowKey("step", step.step_id), width < STATUS_FROM, ""
        if step.step_id in self._replaced and key not in self._holder:
            place = f" → {'' if short else 'replaced by '}{one_line(self._replaced[step.step_id], 40)} ·"
        elif step.replaces and not short:
            place = f" replaces {one_line(step.replaces, 40)} ·"
        indent = "  " * (min(step.depth, 5) + (key in self._holder))
        label = f"{one_line(step.step_id, 40)}{place} {one_line(step.description, 300)}"
        status = shown_status(step.status, self.live, self._view.asked)
        return _row(status, indent, label, self._marks(step, width), width, "muted" if status == "invalid" else "")

    def _clock(self, key: RowKey | None, width: int) -> str:
        """Return the time, and if there is room the speed, of a row's call in progress; empty if it has none."""
        activity = self._activity
        if key is None or activity is None or activity.step_id != _step_id(key):
            return ""
        if key.kind == "calls" and not self._waits(key):
            return ""
        rate = f" {activity.rate}" if activity.rate and width >= STATUS_FROM else ""
        return f" {activity.spinner} {activity.time}{rate}"

    def _marks(self, step: StepView, width: int) -> list[Piece]:
        marks: list[Piece] = [(self._clock(RowKey("step", step.step_id), width), "running")]
        if folded := len(self._folds.get(RowKey("step", step.step_id), ())):
            marks.append((f" {ROW_ICONS['invalid']}{folded}", "muted"))
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


def _step_id(key: RowKey) -> str | None:
    return key.name if key.kind == "step" else None


def _row(status: str, indent: str, label: str, marks: list[Piece], width: int, style: str) -> list[Piece]:
    word = f" {status:>{STATUS_WIDTH - 1}}" if width >= STATUS_FROM else ""
    head = f" {indent}{ROW_ICONS.get(status, '?')} "
    # One cell at the right edge stays free, so that text never touches the border.
    room = width - len(head) - sum(len(mark) for mark, _ in marks) - len(word) - 1
    shown = fit(label, room)
    from_here = room - cell_len(shown)
    return [(head, status), (shown, style), (" " * max(0, from_here), ""), *marks, (word, status), (" ", "")]
