"""The panes of a run: what is shown in them, and how one gets from one to the other. It does nothing to the run."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar, Protocol, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.step_issues import open_issues
from aeon_tui.screens.pane_screen import PaneScreen
from aeon_tui.screens.run.keys import RUN_KEYS
from aeon_tui.screens.run.layout import (
    HEIGHTS,
    ISSUES,
    LOG,
    PANE_KEYS,
    PANES,
    SIDE,
    STEP,
    WIDTHS,
    Body,
    Layout,
    rail_lines,
)
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.call_rows import RowKey
from aeon_widgets.footer import KeyFooter
from aeon_widgets.issues import IssuesPane
from aeon_widgets.key_names import key_of
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import Pane, RailLine
from aeon_widgets.pass_line import PassLine, Scrubber
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import TABS, StepPane, StepText
from aeon_widgets.text import one_line


def problems_of(view: RunView, tree: PlanTree) -> list[RowKey]:
    """Return the rows that need a look: failed steps first, then calls without a reply, then steps with open issues."""
    issues = open_issues(view)
    failed = [RowKey("step", each.step_id) for each in view.steps.values() if each.status == "failed"]
    unanswered = [
        row
        for attempts in view.calls.values()
        if attempts[-1].step_id is None and attempts[-1].error is not None
        if (row := tree.calls_at(attempts[-1].seq)) is not None
    ]
    doubtful = [
        RowKey("step", each.step_id)
        for each in view.steps.values()
        if each.validator_errors or issues.get(each.step_id)
    ]
    return list(dict.fromkeys([*failed, *unanswered, *doubtful]))


def next_problem(problems: list[RowKey], selected: RowKey | None, by: int) -> RowKey | None:
    """Return the problem after the selected row, or with -1 the one before, in a circle; None where there is none."""
    if not problems:
        return None
    if selected not in problems:
        return problems[0 if by > 0 else -1]
    return problems[(problems.index(selected) + by) % len(problems)]


class ViewPane(Protocol):
    """A pane that is given the whole run, and what records change it."""

    RECORDS: ClassVar[frozenset[str]]

    def update_view(self, view: RunView) -> None: ...


class RunPanes(PaneScreen):
    """Passes, plan, selected step, TTL, convergence, issues, repairs, log, and the answer once there is one.

    A subclass says what is shown: `shown_view`, and `show_step` for the step pane.
    """

    PANES = PANES
    ALLOW_IN_MAXIMIZED_VIEW = "RunHeader, KeyFooter"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    BINDINGS: ClassVar[list[BindingType]] = [*RUN_KEYS, *PANE_KEYS]

    guide = ""
    """Said above the panes until it is hidden."""

    def __init__(self) -> None:
        super().__init__(classes="-plain")
        self.layout_of_panes = Layout(self)

    @property
    @abstractmethod
    def shown_view(self) -> RunView:
        """The run as the panes show it."""

    @property
    def asks(self) -> bool:
        """Whether a question to the person is on screen."""
        return False

    @property
    @abstractmethod
    def view_now(self) -> RunView:
        """The run as it is now: which panes there are goes by it, whatever moment they show."""

    @abstractmethod
    def show_step(self) -> None:
        """Show the selected row in the step pane."""

    def compose(self) -> ComposeResult:
        yield RunHeader()
        with Horizontal(id="timeline"):
            yield PassLine()
            yield Scrubber()
        if self.guide:
            approve, back = key_of(self, "approval.approve", ApprovalPanel), key_of(self, "run.back")
            yield Static(self.guide.format(approve=approve, back=back), id="guide", markup=False)
        with Body(id="body"):
            yield PlanTree()
            with Vertical(id="middle"):
                yield StepPane()
            with Vertical(id="side"):
                lines = rail_lines()
                for number, pane in SIDE.items():
                    yield from lines[number]
                    yield pane.kind()
        yield Outcome()
        yield LogPane()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(StepText):
            return  # the app is ending before the screen was made
        self.begin_panes()

    def on_resize(self) -> None:
        self.on_body_resized()

    def on_body_resized(self) -> None:
        if self.made:
            self.layout_of_panes.resize(self.view_now, self.shown_view)

    def has_pane(self, number: int) -> bool:
        """Return whether the run has anything for a pane, whether or not it is on screen."""
        return self.layout_of_panes.has(number, self.view_now)

    def bring(self, number: int) -> None:
        """Let a pane have its turn where there is not room for all."""
        self.layout_of_panes.bring(number, self.view_now, self.shown_view)

    def repaint(self, types: frozenset[str], *, goes_on: bool) -> None:
        """Show the view in the panes that records of these types concern; in all of them where none is named."""
        view = self.shown_view
        self.layout_of_panes.arrange(self.view_now, view)
        self.query_one(Outcome).later = view is not self.view_now and self.view_now.result is not None
        self.query_one(PlanTree).live = goes_on
        for pane in self._view_panes:
            if not types or types & pane.RECORDS:
                pane.update_view(view)
        self.query_one(LogPane).update_view(view)
        if not types or types & StepPane.RECORDS:
            self.show_step()

    @cached_property
    def _view_panes(self) -> tuple[ViewPane, ...]:
        """The panes that show the view, once they are there: looking for them takes longer than filling them."""
        kinds: tuple[type[Pane], ...] = (PlanTree, *(pane.kind for pane in SIDE.values()), Outcome)
        return tuple(cast(ViewPane, self.query_one(kind)) for kind in kinds)

    def on_plan_tree_selected(self, event: PlanTree.Selected) -> None:
        event.stop()
        self.show_step()

    def on_rows_view_chosen(self) -> None:
        self.action_pane(STEP)

    def on_rail_line_chosen(self, event: RailLine.Chosen) -> None:
        self.action_pane(event.number)

    def on_log_pane_opened(self) -> None:
        self.bring(LOG)

    def on_repairs_pane_opened(self, event: RepairsPane.Opened) -> None:
        tree, repair = self.query_one(PlanTree), event.repair
        key = RowKey("step", repair.step_id) if repair.step_id is not None else tree.calls_at(repair.seq)
        if key is not None:
            tree.select(key)
        self.action_tab(TABS.index("Repairs"))

    def on_issues_pane_opened(self, event: IssuesPane.Opened) -> None:
        if event.issue.step_id is not None:
            self.query_one(PlanTree).select(RowKey("step", event.issue.step_id))
        self.action_tab(TABS.index("Changes"))

    def on_ttlgauge_opened(self) -> None:
        self.query_one(PlanTree).select(RowKey("calls", "profile"))
        self.action_tab(TABS.index("Output"))

    def action_tab(self, index: int) -> None:
        """Open a tab of the step pane."""
        self.query_one(StepPane).tab = index
        self.action_pane(STEP)

    def action_open_tab(self, index: int) -> None:
        """Open a tab of the step pane; where it is the one that is read, the output again."""
        pane = self.query_one(StepPane)
        self.action_tab(0 if pane.tab == index and pane.has_focus_within else index)

    def action_problem(self, by: int) -> None:
        """Go to the next thing that went wrong, or with -1 to the one before: its output says why."""
        tree = self.query_one(PlanTree)
        problems = problems_of(self.shown_view, tree)
        row = next_problem(problems, tree.selected, by)
        if row is None:
            self.notify("Nothing went wrong here.", markup=False)
        else:
            tree.select(row)
            self.action_tab(0)

    def action_issues(self) -> None:
        """Go from the selected step to its issues, wherever in the run they were found."""
        key = self.query_one(PlanTree).selected
        if key is None or key.kind != "step" or self.query_one(IssuesPane).go_to(key.name):
            self.action_pane(ISSUES)
        else:
            self.notify(f"No issue was found in {one_line(key.name, 40)}.", markup=False)
