"""One run, live or past: both are the same fold of its records (Decision 3)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static, TextArea

from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import RunView, open_issues
from aeon_core.units import count, seconds_after
from aeon_tui.messages import CompareRuns
from aeon_tui.screens.context import PAST_RUN_KEYS, context_of
from aeon_tui.screens.pane_screen import FOLD_SECONDS, Clock, PaneScreen, Place, utc_now
from aeon_tui.screens.run import layout
from aeon_tui.screens.run.approval_controller import ApprovalController
from aeon_tui.screens.run.record_readers import QuoteFinder, ReplyStream, StepDetailReader
from aeon_tui.screens.run.status import first_view, is_being_read, is_live, offers, status_of, status_then
from aeon_tui.screens.run.time_travel import PlanChanges, TimeTravelController, shown_moment
from aeon_tui.sessions.approval_broker import ApprovalSource
from aeon_tui.sources.base import RecordSource
from aeon_tui.sources.timeline import Move, back_a_pass, by_records, on_a_pass, to_pass, to_phase, to_seq, to_share
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.call_rows import RowKey, running_call
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.footer import KeyFooter
from aeon_widgets.issues import IssuesPane
from aeon_widgets.keys import KeyGuard, key_of
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import Item, Pane, RailLine
from aeon_widgets.pass_line import PassLine, Scrubber
from aeon_widgets.pass_line import Place as PassPlace
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import TABS, StepPane, StepText
from aeon_widgets.text import one_line
from aeon_widgets.ttl_gauge import TTLGauge

if TYPE_CHECKING:
    from aeon_tui.screens.run.search import StepPlace
    from aeon_tui.sessions.runner import Runner


_LEAVES, _COMPARES = ("now", "leave_past"), ("earlier_pass", "later_pass")
_TRAVELS = (*_LEAVES, *_COMPARES, "pass_moment", "record_moment", "pause_here", "changes_of_plan")
_OF_PASSES = (("issues", ()), ("pane", (layout.CONVERGENCE,)), ("pane", (layout.ISSUES,)))
"""Actions that need a run with passes."""
_LATER = (("pass_moment", (1,)), ("record_moment", (1,)))
"""Actions that need a past moment: nothing is later than now."""


def problems_of(view: RunView, tree: PlanTree) -> list[RowKey]:
    """Return the rows that need attention: failed steps, then calls without a reply, then steps with open issues."""
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


class ViewPane(Protocol):
    """A pane that shows the whole run, and the records that change it."""

    RECORDS: ClassVar[frozenset[str]]

    def update_view(self, view: RunView) -> None: ...


class RunScreen(PaneScreen):
    """Folds a run's records as they arrive, and shows the run as it is now or at a past moment.

    The run continues, and is folded, in the background. Its questions are shown immediately, whatever moment is
    shown, and every decision concerns the run as it is now.
    """

    HELP_TITLE = "Run"
    DEFAULT_CSS = layout.CSS
    PANES = layout.PANES
    ALLOW_IN_MAXIMIZED_VIEW = "RunHeader, KeyFooter"
    HORIZONTAL_BREAKPOINTS = layout.WIDTHS
    VERTICAL_BREAKPOINTS = layout.HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("z", "zoom", "Zoom", id="run.zoom"),
        Binding("f", "follow", "Follow", id="run.follow"),
        Binding("p", "open_tab(1)", "Prompt", show=False, id="run.prompt"),
        Binding("t", "open_tab(2)", "Tool call", show=False, id="run.tool_call"),
        Binding("i", "issues", "Issues of the step", show=False, id="run.issues_of_step"),
        Binding("space", "pause_here", "Pause", id="run.pause"),
        Binding("left_square_bracket", "pass_moment(-1)", "Earlier pass", show=False, id="run.pass_back"),
        Binding("right_square_bracket", "pass_moment(1)", "Later pass", show=False, id="run.pass_on"),
        Binding("left_curly_bracket", "record_moment(-1)", "Earlier record", show=False, id="run.record_back"),
        Binding("right_curly_bracket", "record_moment(1)", "Later record", show=False, id="run.record_on"),
        # This comes before the panes' own key: in the past, End means the end of the run.
        Binding("end", "now", "Return to now", show=False, priority=True, id="run.now"),
        Binding("d", "changes_of_plan", "Differences of passes", show=False, id="run.differences"),
        Binding("left_parenthesis", "earlier_pass(-1)", "Compare from earlier", show=False, id="run.from_earlier"),
        Binding("right_parenthesis", "earlier_pass(1)", "Compare from later", show=False, id="run.from_later"),
        Binding("less_than_sign", "later_pass(-1)", "Compare to earlier", show=False, id="run.to_earlier"),
        Binding("greater_than_sign", "later_pass(1)", "Compare to later", show=False, id="run.to_later"),
        Binding("n", "problem(1)", "Next problem", show=False, id="run.next_problem"),
        Binding("N", "problem(-1)", "Previous problem", show=False, id="run.previous_problem"),
        Binding("slash", "search", "Search in the run", show=False, id="run.search"),
        *PAST_RUN_KEYS,
        Binding("C", "app.compare", "Compare", show=False, tooltip="With another run", id="run.compare"),
        Binding("X", "abort", "End here", show=False, tooltip="Asks first", id="run.abort_anywhere"),
        Binding("H", "lineage", "Lineage", show=False, tooltip="Its parent and its forks, as a tree", id="run.lineage"),
        Binding("v", "beside_parent", "Side by side", show=False, tooltip="With its parent", id="run.beside"),
        Binding("escape", "leave_past", "Now", id="run.leave_past"),
        Binding("escape", "back", "Runs", id="run.back"),
        *layout.PANE_KEYS,
    ]
    asking: ApprovalController

    def __init__(
        self,
        source: RecordSource,
        runner: Runner | None = None,
        clock: Clock = utc_now,
        broker: ApprovalSource | None = None,
        guard: KeyGuard | None = None,
    ) -> None:
        super().__init__(source, runner, clock, broker, classes="-plain")
        self.view = first_view(runner)
        """The run as it is now."""
        self.layout_of_panes = layout.Layout(self)
        self.travel = TimeTravelController(self, self._snapshot_changed, lambda: self._source.snapshots)
        self.changes = PlanChanges(self, self, self.travel, self.show_step)
        self._first: int | None = None
        """The record to show first."""
        self.guide = runner.job.guide if runner is not None else ""
        self._reply = ReplyStream(runner.stream if runner is not None else None)
        self._damage_reported = 0
        self.asking = ApprovalController(self, self._broker, self._place_of_question, guard)
        self._opened = StepDetailReader(self, self.show_step)
        self._quotes = QuoteFinder(self, self._show_quote, lambda text: self.notify(text, markup=False))

    def compose(self) -> ComposeResult:
        yield RunHeader()
        with Horizontal(id="timeline"):
            yield PassLine()
            yield Scrubber()
        if self.guide:
            approve, back = key_of(self, "approval.approve", ApprovalPanel), key_of(self, "run.back")
            yield Static(self.guide.format(approve=approve, back=back), id="guide", markup=False)
        with layout.Body(id="body"):
            yield PlanTree()
            with Vertical(id="middle"):
                yield StepPane()
            with Vertical(id="side"):
                lines = layout.rail_lines()
                for number, pane in layout.SIDE.items():
                    yield from lines[number]
                    yield pane.kind()
        yield Outcome()
        yield LogPane()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(StepText):
            return  # the app ends before the screen is composed
        self.begin_panes()

    def on_unmount(self) -> None:
        self.travel.close()

    @property
    def shown_view(self) -> RunView:
        """The run at the moment shown, which is now unless the user travels in time."""
        return self.travel.snapshot.view if self.travel.snapshot is not None else self.view

    @property
    def journal(self) -> Path | None:
        """The run's journal; None if it has none yet."""
        return self._source.journal if self.view.last_seq >= 0 else None

    @property
    def item(self) -> Item | None:
        """The answer if there is one, else the output of the selected step."""
        has_answer = self.view.result is not None and self.view.result.answer
        if not self.made:
            return None
        return self.query_one(Outcome).item if has_answer else self.query_one(StepPane).item

    @property
    def shown_task(self) -> str:
        return self.view.task

    def offers(self, action: str) -> bool:
        """Return whether an action applies to the run as it is now."""
        return offers(action, self.view, live=self.in_progress)

    @property
    def fork_start(self) -> int | None:
        """The pass that a fork of the shown moment starts with; None if that is now."""
        snapshot = self.travel.snapshot
        return snapshot.view.passes + 1 if snapshot is not None else None

    @property
    def status(self) -> str:
        """The run's status as a word: that of its result, or its current activity."""
        return status_of(self.view, self._source, self._runner)

    @property
    def in_progress(self) -> bool:
        """Whether the run is live, here or in another process, or is still being read."""
        return is_live(self.view, self._source) or is_being_read(self.view, self._source)

    def note_record(self, record: dict[str, Any]) -> None:
        """Fold in a record written after the end of the run; a source that follows the journal delivers it itself."""
        if self.made and self._source.ended and not self._source.follows:
            reducer.apply(self.view, record)
            self._show(frozenset({str(record["type"])}))

    def _fold(self) -> bool:
        """Fold and show new records; return whether there were any."""
        if not self.made:
            return False
        if replaced := (view := self._source.take_view()) is not None:
            self.view, self._damage_reported = view, 0  # it was folded elsewhere
        records = self._source.take(FOLD_SECONDS)
        for record in records:
            reducer.apply(self.view, record)
        for problem in self._source.damage[self._damage_reported :]:
            self._damage_reported += 1
            self.view.add_line("error", "damage", one_line(problem))
        if self._runner is not None and self._source.ended and self.view.result is None:
            # Its end could not be journaled, or it never began.
            ending = self._runner.ending()
            self.view.result = reducer.result_of(ending.model_dump(mode="json")) if ending is not None else None
        rebuilt = self._status_changed() or replaced
        if rebuilt:
            self._show(frozenset())
        elif records:
            self._show(frozenset(str(record.get("type")) for record in records))
        streamed = self._reply.is_new and not self.travel.away
        if streamed:
            self._show_reply()
        return bool(records) or rebuilt or streamed

    def _show_reply(self) -> None:
        """Show the reply in progress in the tree, beside the requirements, and as a step."""
        self._reply.read()
        self.query_one(PlanTree).update_draft(self._reply.draft)
        self.query_one(ConvergencePane).update_draft(self._reply.draft)
        self.show_step()

    def show_rest(self) -> None:
        """Show what changes without records: the time, notices and pending approvals."""
        if self.made:
            super().show_rest()
            self.show_header()
            if self.asking.show(self.view, home=self.query_one(PlanTree)):
                self._update_terminal(urgent=True)
            self.show_time()
            activity = None
            if self.travel.snapshot is None and is_live(self.view, self._source):
                activity = running_call(self.view, self._clock().isoformat(), self._reply.tokens_per_second)
            self.query_one(PlanTree).update_activity(activity)
            self.query_one(StepPane).update_activity(activity)

    def report_error(self, message: str) -> None:
        self.view.add_line("error", "journal", one_line(message))
        self.query_one(LogPane).update_view(self.shown_view)
        super().report_error(message)

    def _show(self, types: frozenset[str]) -> None:
        """Show the run as it is now; in the past, update only the list of passes."""
        if not types or types & PassLine.RECORDS:
            self.show_passes()
            self.changes.update()
            self.refresh_bindings()  # once a pass has ended, the run can be forked
        if self.travel.snapshot is None and not self.travel.holding:
            self.repaint(types, in_progress=self.in_progress)

    def _place_of_question(self) -> Place:
        """Return the place of a question: above the log, or beside the plan if there is room."""
        if self.size.width >= layout.BESIDE:
            return self.query_one("#middle"), self.query_one(StepPane)
        return self, self.query_one(LogPane)

    def repaint(self, types: frozenset[str], *, in_progress: bool) -> None:
        """Show the view in the panes that records of these types concern; in all panes if none is named."""
        view = self.shown_view
        self.layout_of_panes.arrange(self.view, view)
        self.query_one(Outcome).later = view is not self.view and self.view.result is not None
        self.query_one(PlanTree).live = in_progress
        for pane in self._view_panes:
            if not types or types & pane.RECORDS:
                pane.update_view(view)
        log = self.query_one(LogPane)
        log.in_past = self.travel.away
        log.update_view(view)
        if not types or types & StepPane.RECORDS:
            self.show_step()

    @cached_property
    def _view_panes(self) -> tuple[ViewPane, ...]:
        """The panes that show the view, cached once composed: a query takes longer than an update."""
        kinds: tuple[type[Pane], ...] = (PlanTree, *(pane.kind for pane in layout.SIDE.values()), Outcome)
        return tuple(cast(ViewPane, self.query_one(kind)) for kind in kinds)

    def on_resize(self) -> None:
        """Fit the panes, and move the question to its place."""
        self.on_body_resized()
        if self.made:
            self.asking.arrange()

    def on_body_resized(self) -> None:
        if self.made:
            self.layout_of_panes.resize(self.view, self.shown_view)

    def watch_maximized(self) -> None:
        """Give a zoomed pane the whole height, and afterwards its share of it again."""
        self.on_body_resized()

    def has_pane(self, number: int) -> bool:
        return self.layout_of_panes.has(number, self.view)

    def bring(self, number: int) -> None:
        self.layout_of_panes.bring(number, self.view, self.shown_view)

    def show_time(self) -> None:
        """Show the position of the current view in the run's records."""
        travel = self.travel
        if self._first is not None and self.journal is not None:
            first, self._first = self._first, None
            if self.in_progress or first != self.view.last_seq:
                self._go(to_seq(first))
        shown = shown_moment(travel, self.view, asked=self.asking.waits)
        self.query_one(RunHeader).update_moment(shown, travel.reading)
        scrubber = self.query_one(Scrubber)
        scrubber.set_class(self.journal is not None, "-there")
        snapshot = travel.snapshot
        scrubber.share = snapshot.position / max(1, snapshot.positions - 1) if snapshot is not None else 1.0

    def show_passes(self) -> None:
        """Show the passes so far, and the moment shown."""
        here = None
        if self.travel.snapshot is not None:
            last = self.shown_view.phases[-1:]
            here = PassPlace(last[0].pass_number, last[0].phase) if last else PassPlace(0)
        self.query_one(PassLine).update_view(self.view, self.in_progress, here)

    def _snapshot_changed(self) -> None:
        """Show another moment in all panes."""
        if not self.made:
            return
        self.repaint(frozenset(), in_progress=self.in_progress or self.travel.snapshot is not None)
        self.changes.update()
        self.show_passes()
        self.show_time()
        self.show_header()
        self.refresh_bindings()

    def show_moment(self, seq: int) -> None:
        """Show the run as of the record with this seq, once that has been read.

        The last record of an ended run means now.
        """
        self._first = seq

    def _go(self, move: Move) -> None:
        if self.journal is not None:
            self.travel.go(self.journal, move)

    def action_pass_moment(self, by: int) -> None:
        """Go to the previous (-1) or next (1) end of a pass."""
        self._go(back_a_pass if by < 0 else on_a_pass)

    def action_record_moment(self, by: int) -> None:
        """Go back or forward by this many records."""
        self._go(by_records(by))

    def action_pause_here(self) -> None:
        """Pause the view while the run continues, or return to now."""
        if self.travel.away:
            self.action_now()
        elif self.journal is not None:
            self.travel.pause(self.journal, self.view.last_seq)

    def action_now(self) -> None:
        self.travel.to_now()

    def action_leave_past(self) -> None:
        """Return to now, wherever the focus is."""
        self.action_now()

    def action_changes_of_plan(self) -> None:
        """Show how two passes changed the plan, or the selected step's own changes again."""
        self.changes.show(not self.changes.shown)
        self._open_tab(TABS.index("Changes"))

    def action_tab(self, index: int) -> None:
        """Open a tab of the step pane."""
        self.changes.show(False)
        self._open_tab(index)

    def _open_tab(self, index: int) -> None:
        self.query_one(StepPane).tab = index
        self.action_pane(layout.STEP)

    def action_earlier_pass(self, by: int) -> None:
        """Change the first pass of the comparison."""
        self.changes.move(first=by)

    def action_later_pass(self, by: int) -> None:
        """Change the second pass of the comparison."""
        self.changes.move(last=by)

    def on_pass_line_chosen(self, event: PassLine.Chosen) -> None:
        place = event.place
        self._go(to_phase(*place) if place.phase else to_pass(place.pass_number))

    def on_scrubber_stepped(self, event: Scrubber.Stepped) -> None:
        self.action_record_moment(event.by)

    def on_scrubber_moved(self, event: Scrubber.Moved) -> None:
        self._go(to_share(event.share))

    def on_run_header_past_left(self) -> None:
        self.action_now()

    def on_plan_tree_selected(self, event: PlanTree.Selected) -> None:
        event.stop()
        self.show_step()

    def on_rows_view_chosen(self) -> None:
        self.action_pane(layout.STEP)

    def on_rail_line_chosen(self, event: RailLine.Chosen) -> None:
        self.action_pane(event.number)

    def on_log_pane_opened(self) -> None:
        """Show more of the log, or less; zoom it where the other panes leave it no room."""
        if self.maximized is not None or self.has_class("-tiny"):
            self.action_zoom()
        else:
            self.bring(layout.LOG)

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

    def action_open_tab(self, index: int) -> None:
        """Open a tab of the step pane, or the output if that tab is open."""
        pane = self.query_one(StepPane)
        self.action_tab(0 if pane.tab == index and pane.has_focus_within else index)

    def action_problem(self, by: int) -> None:
        """Go to the next problem, or with -1 to the previous one, wrapping around; the output shows the cause."""
        tree = self.query_one(PlanTree)
        problems = problems_of(self.shown_view, tree)
        if not problems:
            self.notify("No problems found.", markup=False)
            return
        first = 0 if by > 0 else -1
        place = problems.index(tree.selected) + by if tree.selected in problems else first
        tree.select(problems[place % len(problems)])
        self.action_tab(0)

    def action_issues(self) -> None:
        """Go to the issues of the selected step, in whichever pass they were found."""
        key = self.query_one(PlanTree).selected
        if key is None or key.kind != "step" or self.query_one(IssuesPane).go_to(key.name):
            self.action_pane(layout.ISSUES)
        else:
            self.notify(f"No issues found in {one_line(key.name, 40)}.", markup=False)

    @on(ApprovalPanel.Answered)
    def _answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        self.asking.answered(event)

    @on(ConvergencePane.Opened)
    def _find_quote(self, event: ConvergencePane.Opened) -> None:
        event.stop()
        record_of = self.travel.record if self.travel.snapshot is not None else self._source.record
        self._quotes.find(event.verdict, self.shown_view, self.query_one(PlanTree), record_of)

    def _show_quote(self, key: RowKey, quote: str, tab: int = 0) -> None:
        """Show words of the run in their place, such as the judge's quote."""
        self.query_one(PlanTree).select(key)
        self.query_one(StepPane).show_quote(key, tab, quote)
        self.action_tab(tab)
        self.show_step()

    def show_step(self) -> None:
        """Show the selected row in the step pane."""
        if not self.made:
            return
        tree, view = self.query_one(PlanTree), self.shown_view
        key = tree.subject
        calls = tree.calls_of(key) if key is not None and key.kind != "step" else []
        past = self.travel.snapshot is not None
        filled = self._opened.filled(view, key, calls, self.travel.record if past else self._source.record)
        live = (past or self.in_progress) and view.asked != "unknown"
        streamed = [] if past else self._reply.blocks(key, view)
        pane = self.query_one(StepPane)
        pane.update_view(view, key, calls, streamed, live, filled=filled, instead=self.changes.blocks)

    @property
    def note(self) -> str:
        """An addition to the status in the header; usually empty."""
        if self._source.gone:
            return "⚠ journal deleted or moved"
        if self._source.reading:
            return self._source.reading
        if is_being_read(self.view, self._source):
            return f"{count(self.view.last_seq + 1, 'record')} read"
        damaged = self._damage_reported + len(self.view.damage)
        if damaged:
            return f"⚠ {count(damaged, 'problem')} in the journal"
        return "not judged" if (last := self.shown_view.assessment) is not None and last.not_judged else ""

    def show_header(self) -> None:
        """Show status, cost and time at the moment shown."""
        with_ttl = not self.query_one(TTLGauge).display and not self.has_class("-wide")
        view, snapshot = self.shown_view, self.travel.snapshot
        live = snapshot is None and is_live(self.view, self._source)
        status = self.status if snapshot is None or snapshot.seq == self.view.last_seq else status_then(view)
        seconds = seconds_after(view.started, self._clock().isoformat() if live else view.last_ts)
        self.query_one(RunHeader).update_view(view, status, seconds, self.note, with_ttl=with_ttl)

    def action_follow(self) -> None:
        """Return to now, and follow the run again everywhere: selection, output and log."""
        if self.travel.away:
            self.action_now()
        self.query_one(PlanTree).follow_run()
        self.query_one(LogPane).action_follow()
        self.show_step()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in _TRAVELS and self.journal is None:
            return False
        if action in _LEAVES:
            return self.travel.away and not (action == "now" and isinstance(self.focused, Input | TextArea))
        if (action, parameters) in _LATER:
            return self.travel.away
        if action == "pause_here":
            return self.travel.paused or self.in_progress
        if action in _COMPARES:
            return self.changes.shown
        if action == "changes_of_plan" or (action, parameters) in _OF_PASSES:
            return self.view.adaptive
        if action in ("lineage", "beside_parent"):
            return self.journal is not None and (action == "lineage" or bool(self.view.parent))
        if action == "search":
            return self._source.journal is not None
        if action == "back":
            return not self.travel.away
        return super().check_action(action, parameters)

    def action_search(self) -> None:
        """Look for a text in all records of the run."""
        if self._source.journal is not None:
            from aeon_tui.screens.run.search import SearchScreen

            self.app.push_screen(SearchScreen(self._source, self._source.journal, self.shown_view), self._show_match)

    def _show_match(self, place: StepPlace | None) -> None:
        if place is not None:
            self._show_quote(RowKey("step", place.step_id), place.words, place.tab)

    def action_beside_parent(self) -> None:
        """Compare the run with its parent."""
        if self.journal is not None:
            parent = self.journal.parent / f"{Path(self.view.parent).name}{self.journal.suffix}"
            self.app.post_message(CompareRuns(parent, self.journal))

    def action_lineage(self) -> None:
        """Show the run's parent and its forks."""
        if self.journal is not None:
            from aeon_tui.screens.fork import LineageScreen

            self.app.push_screen(LineageScreen(self.journal, context_of(self).listed_runs, self._clock))

    def action_back(self) -> None:
        """Leave a zoomed pane, hide the guide, or go to the list of runs while the run continues."""
        guide = [each for each in self.query("#guide") if each.display]
        if self.maximized is None and guide:
            guide[0].remove()
        else:
            super().action_back()
