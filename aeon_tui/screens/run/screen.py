"""One run, live or past: both are the same fold of its records (Decision 3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import on
from textual.screen import Screen

from aeon_core.journal.view import reducer
from aeon_core.journal.view.formatting import words
from aeon_tui.messages import CompareRuns, TitleTerminal
from aeon_tui.screens.context import context_of
from aeon_tui.screens.panel_controller import Place
from aeon_tui.screens.run.approval_controller import ApprovalController, broker_of
from aeon_tui.screens.run.layout import BESIDE, CONVERGENCE, CSS, ISSUES
from aeon_tui.screens.run.record_readers import QuoteFinder, ReplyStream, StepDetailReader
from aeon_tui.screens.run.refresh import ASKING_RATE, CLOCK_RATE, NONE, OWN_RATE, RefreshScheduler
from aeon_tui.screens.run.status import (
    WAITING,
    WAITING_HERE,
    elapsed_s,
    first_view,
    is_being_read,
    is_live,
    offers,
    status_of,
    status_then,
    utc_now,
)
from aeon_tui.screens.run.time_travel import TimeTravel
from aeon_tui.sessions.approval_broker import ApprovalSource
from aeon_tui.sessions.runner import Runner
from aeon_tui.sources.base import RecordSource
from aeon_tui.sources.snapshots import SnapshotStore
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.call_rows import RowKey, running_call
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.key_guard import KeyGuard
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import Item
from aeon_widgets.pass_line import PassLine
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import StepPane
from aeon_widgets.text import count, one_line
from aeon_widgets.ttl_gauge import TTLGauge

if TYPE_CHECKING:
    from aeon_tui.screens.run.search import StepPlace


SECONDS = 30


class Notices:
    """Says why a source can read no more, and what has become of the process that writes the run, or of its file."""

    def __init__(self, screen: Screen[None], source: RecordSource) -> None:
        self._screen, self._source = screen, source
        self._error_told = False
        self._told = ""

    def tell(self) -> None:
        """Notify of what is new."""
        error, notice = self._source.error, self._source.notice
        if error is not None and not self._error_told:
            self._error_told = True
            self._screen.notify(error.message, severity="error", timeout=SECONDS, markup=False)
        if notice != self._told:
            # What was told before holds no more.
            self._screen.app.clear_notifications()
            self._told = notice
            if notice:
                self._screen.notify(notice, severity="warning", timeout=SECONDS, markup=False)


FOLD_SECONDS = 0.015
"""The most of a frame that reading records may take, so that keys are answered in between."""

Clock = Callable[[], datetime]


class RunScreen(TimeTravel):
    """Folds a run's records as they come, and shows it as it is now or at a moment of its past.

    What the run asks is shown at once, whatever moment that is.
    """

    HELP_TITLE = "Run"
    DEFAULT_CSS = CSS
    _asking: ApprovalController

    def __init__(
        self,
        source: RecordSource,
        runner: Runner | None = None,
        clock: Clock = utc_now,
        broker: ApprovalSource | None = None,
        guard: KeyGuard | None = None,
    ) -> None:
        super().__init__(first_view(runner))
        self._source = source
        self._runner = runner
        self._clock = clock
        self.guide = runner.job.guide if runner is not None else ""
        self._frames = RefreshScheduler(self, self._fold, self.show_rest, self._slow_rate)
        self._reply = ReplyStream(runner.stream if runner is not None else None)
        self._notices = Notices(self, source)
        self._damage_told = 0
        self._shown_status = ""
        self._ran = False
        """Whether this app worked on the run when its keys were last looked up."""
        self._broker = broker if broker is not None else broker_of(source, runner)
        self._asking = ApprovalController(self, self._broker, self._place_of_question, guard)
        self._opened = StepDetailReader(self, self.show_step)
        self._quotes = QuoteFinder(self, self._show_quote, lambda told: self.notify(told, markup=False))

    def begin(self) -> None:
        """Show what there is, and from now on what comes."""
        self.tick()
        self._frames.begin(self._source)

    def on_unmount(self) -> None:
        self._frames.close()
        self._source.close()
        if self._broker is not None and self._runner is None:
            self._broker.close()

    @property
    def journal(self) -> Path | None:
        """The run's journal; None where it has none yet."""
        return self._source.journal if self.view.last_seq >= 0 else None

    @property
    def kept_snapshots(self) -> SnapshotStore | None:
        """Views of the past that the records' source has anyway."""
        return self._source.snapshots

    @property
    def item(self) -> Item | None:
        """The answer once there is one, else what the selected step gave."""
        has_answer = self.view.result is not None and self.view.result.answer
        if not self.made:
            return None
        return self.query_one(Outcome).item if has_answer else self.query_one(StepPane).item

    @property
    def chosen_run(self) -> Path | None:
        """The journal that the keys of a run's actions go for."""
        return self._source.journal

    def offers(self, action: str) -> bool:
        """Return whether something can be done with the run as it is now."""
        return offers(action, self.view, live=self.goes_on)

    @property
    def fork_start(self) -> int | None:
        """The pass that a fork of the shown moment starts with; None where that is now."""
        snapshot = self.travel.snapshot
        return snapshot.view.passes + 1 if snapshot is not None else None

    @property
    def asks(self) -> bool:
        """Whether a question to the person is on screen."""
        return self._asking.waits

    @property
    def status(self) -> str:
        """The run's status as a word: the result's, or what it is doing."""
        return status_of(self.view, self._source, self._runner)

    @property
    def goes_on(self) -> bool:
        """Whether the run is live, here or in another process, or is still being read."""
        return is_live(self.view, self._source) or is_being_read(self.view, self._source)

    def note_record(self, record: dict[str, Any]) -> None:
        """Fold in a record that was written behind the end of the run; a source that follows brings it itself."""
        if self.made and self._source.ended and not self._source.follows:
            reducer.apply(self.view, record)
            self._show(frozenset({str(record["type"])}))

    def tick(self) -> None:
        """Fold what has come, and repaint the panes that it concerns."""
        self._fold()
        self.show_rest()

    def _slow_rate(self) -> int:
        if self._source.reading:
            return ASKING_RATE
        if self._runner is not None and self._runner.running:
            return OWN_RATE  # a reply that is being written, and an abort, are not told by the source
        return CLOCK_RATE if self.goes_on else NONE

    def _fold(self) -> bool:
        """Fold and show what has come; return whether anything has."""
        if not self.made:
            return False
        replaced = self._take_view()
        records = self._source.take(FOLD_SECONDS)
        for record in records:
            reducer.apply(self.view, record)
        for problem in self._source.damage[self._damage_told :]:
            self._damage_told += 1
            self.view.add_line("error", "damage", one_line(problem))
        if self._runner is not None and self._source.ended and self.view.result is None:
            # Its end could not be journaled, or it had not begun.
            ending = self._runner.ending()
            self.view.result = reducer.result_of(ending.model_dump(mode="json")) if ending is not None else None
        changed = bool(records) or replaced or self.status != self._shown_status
        if self.status != self._shown_status:
            self._shown_status = self.status
            self.refresh_bindings()
            self._tell_terminal()
            self._show(frozenset())
        elif replaced:
            self._show(frozenset())
        elif records:
            self._show(frozenset(str(record.get("type")) for record in records))
        streamed = self._reply.is_new and not self.travel.away
        if streamed:
            self._show_reply()
        return changed or streamed

    def _show_reply(self) -> None:
        """Show what a reply in progress becomes, in the tree, beside the requirements, and as a step."""
        self._reply.read()
        self.query_one(PlanTree).update_draft(self._reply.draft)
        self.query_one(ConvergencePane).update_draft(self._reply.draft)
        self.show_step()

    def show_rest(self) -> None:
        """Show what changes without records: the time, notices and pending approvals."""
        if self.made:
            if self._ran != (ran := self._runner is not None and self._runner.running):
                self._ran = ran
                self.refresh_bindings()
            self.show_header()
            self._notices.tell()
            self._ask()
            self.show_time()
            self._show_activity()

    def _show_activity(self) -> None:
        """Show which call the run waits for, and for how long."""
        activity = None
        if self.travel.snapshot is None and is_live(self.view, self._source):
            activity = running_call(self.view, self._clock().isoformat(), self._reply.tokens_per_second)
        self.query_one(PlanTree).update_activity(activity)
        self.query_one(StepPane).update_activity(activity)

    def _take_view(self) -> bool:
        """Show a view that was folded elsewhere, where there is one; return whether there is."""
        view = self._source.take_view()
        if view is not None:
            self.view, self._damage_told = view, 0
        return view is not None

    def _show(self, types: frozenset[str]) -> None:
        """Show how the run is now; where a moment of its past is shown, only which passes there are."""
        if not types or types & PassLine.RECORDS:
            self.show_passes()
            self.changes.update()
            self.refresh_bindings()  # with the first pass that has ended, the run can be forked
        if self.travel.snapshot is None and not self.travel.holding:
            self.repaint(types, goes_on=self.goes_on)

    def _tell_terminal(self, *, urgent: bool = False) -> None:
        """Put the live run, here or in another process, in the terminal's title; a question is urgent.

        The app does so for a run of its own that is not on screen.
        """
        if self._broker is not None and (self._runner is None or self.is_active):
            # A question may be there before the record that makes it the status.
            asked = WAITING if self._runner is None else WAITING_HERE
            told = asked if urgent else words(self._shown_status)
            self.app.post_message(TitleTerminal(f"aeon: {told} · {one_line(self.view.task, 60)}", urgent))

    def _ask(self) -> None:
        if self._asking.show(self.view, home=self.query_one(PlanTree)):
            self._tell_terminal(urgent=True)

    def _place_of_question(self) -> Place:
        """Return where a question is: above the log, or beside the plan where there is room."""
        if self.size.width >= BESIDE:
            return self.query_one("#middle"), self.query_one(StepPane)
        return self, self.query_one(LogPane)

    def on_resize(self) -> None:
        """Fit the panes, and move the question to its place."""
        super().on_resize()
        if self.made:
            self._asking.arrange()

    def on_screen_resume(self) -> None:
        self._asking.uncover()
        self._frames.resume()
        self._tell_terminal()

    @on(ApprovalPanel.Answered)
    def _answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        self._asking.answered(event)

    @on(ConvergencePane.Opened)
    def _find_quote(self, event: ConvergencePane.Opened) -> None:
        event.stop()
        record_of = self.travel.record if self.travel.snapshot is not None else self._source.record
        self._quotes.find(event.verdict, self.shown_view, self.query_one(PlanTree), record_of)

    def _show_quote(self, key: RowKey, quote: str) -> None:
        """Show the words that the judge quotes where they are."""
        self.query_one(PlanTree).select(key)
        self.query_one(StepPane).show_quote(key, quote)
        self.action_pane(2)
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
        live = (past or self.goes_on) and view.asked != "unknown"
        streamed = [] if past else self._reply.blocks(key, view)
        pane = self.query_one(StepPane)
        pane.update_view(view, key, calls, streamed, live, filled=filled, instead=self.changes.blocks)

    @property
    def note(self) -> str:
        """What the header says about the run in addition to its status; mostly nothing."""
        if self._source.reading:
            return self._source.reading
        if is_being_read(self.view, self._source):
            return f"{count(self.view.last_seq + 1, 'record')} read"
        damaged = self._damage_told + len(self.view.damage)
        if damaged:
            return f"⚠ {count(damaged, 'problem')} in the journal"
        return "not judged" if (last := self.shown_view.assessment) is not None and last.not_judged else ""

    def show_header(self) -> None:
        """Show status, cost and time of the moment that is shown."""
        with_ttl = not self.query_one(TTLGauge).display and not self.has_class("-wide")
        view, snapshot = self.shown_view, self.travel.snapshot
        live = snapshot is None and is_live(self.view, self._source)
        status = self.status if snapshot is None else status_then(view)
        seconds = elapsed_s(view, self._clock() if live else None)
        self.query_one(RunHeader).update_view(view, status, seconds, self.note, with_ttl=with_ttl)

    def action_follow(self) -> None:
        """Return to now, and follow the run again everywhere: selection, output and log."""
        if self.travel.away:
            self.action_now()
        self.query_one(PlanTree).follow_run()
        self.query_one(LogPane).action_follow()
        self.show_step()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now."""
        if action == "search":
            return self._source.journal is not None
        if action == "lineage":
            return self.journal is not None
        if action == "beside_parent":
            return self.journal is not None and bool(self.view.parent)
        if (action, parameters) in (("issues", ()), ("pane", (CONVERGENCE,)), ("pane", (ISSUES,))):
            return self.view.adaptive
        return super().check_action(action, parameters)

    def action_search(self) -> None:
        """Look for a text in all records of the run."""
        if self._source.journal is not None:
            from aeon_tui.screens.run.search import SearchScreen

            self.app.push_screen(SearchScreen(self._source, self._source.journal, self.shown_view), self._show_match)

    def _show_match(self, place: StepPlace | None) -> None:
        if place is not None:
            self.query_one(PlanTree).select(RowKey("step", place.step_id))
            self.action_tab(place.tab)
            self.show_step()

    def action_beside_parent(self) -> None:
        """Show the run beside the one it was forked from."""
        if self.journal is not None:
            parent = self.journal.with_name(f"{self.view.parent}{self.journal.suffix}")
            self.app.post_message(CompareRuns(parent, self.journal))

    def action_lineage(self) -> None:
        """Show what the run was forked from, and what was forked from it."""
        if self.journal is not None:
            from aeon_tui.screens.lineage import LineageScreen

            self.app.push_screen(LineageScreen(self.journal, context_of(self).listed_runs, self._clock))

    def action_back(self) -> None:
        """Leave a zoomed pane, hide the guide, or go to the list of runs: the run continues."""
        guide = [each for each in self.query("#guide") if each.display]
        if self.maximized is None and guide:
            guide[0].remove()
        else:
            super().action_back()
