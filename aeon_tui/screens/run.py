"""One run, live or past: both are the same fold of its records (Decision 3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Static

from aeon_core.effects.approval import ApprovalDecision
from aeon_tui.feed import Feed
from aeon_tui.runner import Runner
from aeon_tui.screens.asking import Asking
from aeon_tui.screens.notices import Notices
from aeon_tui.screens.opened_step import OpenedStep
from aeon_tui.screens.run_keys import RUN_KEYS
from aeon_tui.screens.run_layout import CSS, HEIGHTS, ISSUES, PANES, WIDTHS, Body, Layout
from aeon_tui.screens.run_status import elapsed_s, first_view, is_being_read, is_live, status_of, utc_now
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.call_rows import RowKey
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.footer import KeyFooter, fit_footer
from aeon_widgets.issues import IssuesPane
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import Pane
from aeon_widgets.pass_line import PassLine
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import TABS, StepPane, StepText
from aeon_widgets.text import count, one_line
from aeon_widgets.ttl_gauge import TTLGauge

FRAMES_PER_SECOND = 20
FOLD_SECONDS = 0.015
"""The most of a frame that reading records may take, so that keys are answered in between."""

Clock = Callable[[], datetime]


class RunScreen(Screen[None]):
    """Passes, plan, selected step, TTL, convergence, issues, repairs, log, and the answer once there is one."""

    HELP_TITLE = "Run"
    ESCAPE_TO_MINIMIZE = True
    ALLOW_IN_MAXIMIZED_VIEW = "RunHeader, Footer"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    DEFAULT_CSS = CSS

    BINDINGS: ClassVar[list[BindingType]] = RUN_KEYS

    def __init__(self, feed: Feed, runner: Runner | None = None, clock: Clock = utc_now) -> None:
        super().__init__(classes="-plain")
        self.view = first_view(runner)
        self._feed = feed
        self._runner = runner
        self._clock = clock
        self._stream_version = 0
        self._notices = Notices(self, feed)
        self._damage_told = 0
        self._made = False
        self._shown_status = ""
        self._asking = Asking(self, runner.desk if runner is not None else None)
        self._layout_of_panes = Layout(self)
        self._opened = OpenedStep(self, feed, self._show_step)

    def compose(self) -> ComposeResult:
        yield RunHeader()
        yield PassLine()
        if self._runner is not None and self._runner.work.guide:
            yield Static(self._runner.work.guide, id="guide", markup=False)
        with Body(id="body"):
            yield PlanTree()
            yield StepPane()
            with Vertical(id="side"):
                yield TTLGauge()
                yield ConvergencePane()
                yield IssuesPane()
                yield RepairsPane()
        yield Outcome()
        yield LogPane()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(StepText):
            return  # the app is ending before the screen was made
        for number, kind in PANES.items():
            for pane in self.query(kind):
                pane.pane_key = str(number)
        self.query_one(PlanTree).focus()
        self._made = True
        self.tick()
        self.set_interval(1 / FRAMES_PER_SECOND, self.tick, name="fold")

    def on_resize(self) -> None:
        fit_footer(self)
        if self._made:
            self._layout_of_panes.resize(self.view)

    def on_body_resized(self) -> None:
        if self._made:
            self._layout_of_panes.resize(self.view)

    def on_pane_covered(self, event: Pane.Covered) -> None:
        """Let the person stay where they were when the screen or its column has got lower."""
        if not self._asking.waits:
            self.call_after_refresh(self.action_pane, int(event.pane.pane_key))

    def on_descendant_focus(self) -> None:
        fit_footer(self)

    def on_unmount(self) -> None:
        self._feed.close()

    @property
    def chosen_run(self) -> Path | None:
        """The journal that the keys of a run's actions go for."""
        return self._feed.journal

    @property
    def status(self) -> str:
        """The run's status as a word: the result's, or what it is doing."""
        return status_of(self.view, self._feed, self._runner)

    @property
    def _live(self) -> bool:
        return is_live(self.view, self._feed)

    @property
    def _reading(self) -> bool:
        return is_being_read(self.view, self._feed)

    def tick(self) -> None:
        """Fold what has come, and repaint the panes that it concerns."""
        if not self._made:
            return
        replaced = self._take_view()
        records = self._feed.take(FOLD_SECONDS)
        for record in records:
            self.view.apply(record)
        for problem in self._feed.damage[self._damage_told :]:
            self._damage_told += 1
            self.view.add_line("error", "damage", one_line(problem))
        if self._runner is not None and self._feed.ended and self.view.result is None:
            # Its end could not be journaled, or it had not begun.
            self.view.result = self._runner.ending()
        if replaced or self.status != self._shown_status:
            self._shown_status = self.status
            self.refresh_bindings()
            fit_footer(self)
            self._tell_terminal()
            self._repaint(frozenset())
        elif records:
            self._repaint(frozenset(str(record.get("type")) for record in records))
        elif self._runner is not None and self._runner.stream.version != self._stream_version:
            self._show_step()
        self._show_header()
        self._notices.tell()
        self._ask()

    def _take_view(self) -> bool:
        """Show a view that was folded elsewhere, where there is one; return whether there is."""
        view = self._feed.take_view()
        if view is not None:
            self.view, self._damage_told = view, 0
        return view is not None

    def _tell_terminal(self) -> None:
        """Name the terminal after the run that goes on here."""
        if self._runner is not None:
            words = self._shown_status.replace("_", " ")
            urgent = self._runner.desk.waiting is not None
            self.app.tell_terminal(  # type: ignore[attr-defined]  # the app that owns this screen
                f"aeon: {words} · {one_line(self.view.task, 60)}", urgent=urgent
            )

    def _ask(self) -> None:
        self._asking.show(self.view, before=self.query_one(LogPane), home=self.query_one(PlanTree))

    def on_screen_resume(self) -> None:
        self._asking.again()

    @on(ApprovalPanel.Decided)
    def _decided(self, event: ApprovalPanel.Decided) -> None:
        event.stop()
        self._asking.decide(event.digest, ApprovalDecision(decision=event.answer, feedback=event.feedback))

    @on(ApprovalPanel.EditWanted)
    def _edit(self, event: ApprovalPanel.EditWanted) -> None:
        event.stop()
        self._asking.edit(event.panel)

    def _repaint(self, types: frozenset[str]) -> None:
        self.set_class(self.view.result is not None, "-ended")
        self._layout_of_panes.arrange(self.view)
        live = self._live or self._reading
        self.query_one(PlanTree).live = live
        sides = (*self.query(TTLGauge), *self.query(ConvergencePane), *self.query(IssuesPane), *self.query(RepairsPane))
        for pane in (*self.query(PlanTree), *sides, *self.query(Outcome)):
            if not types or types & pane.RECORDS:
                pane.update_view(self.view)
        if not types or types & PassLine.RECORDS:
            self.query_one(PassLine).update_view(self.view, live)
        self.query_one(LogPane).update_view(self.view)
        if not types or types & StepPane.RECORDS:
            self._show_step()

    def _show_step(self) -> None:
        tree = self.query_one(PlanTree)
        key = tree.selected
        calls = tree.calls_of(key) if key is not None and key.kind == "calls" else []
        filled = self._opened.filled(self.view, key, calls)
        live = (self._live or self._reading) and self.view.asked != "unknown"
        self.query_one(StepPane).update_view(self.view, key, calls, self._streamed(key), live, filled=filled)

    def _streamed(self, key: RowKey | None) -> str:
        if self._runner is None or key is None:
            return ""
        stream = self._runner.stream
        self._stream_version = stream.version
        belongs = stream.step_id == key.name if key.kind == "step" else stream.step_id is None
        return stream.text if belongs else ""

    @property
    def note(self) -> str:
        """What is to be known of the run beside its status, for the header; mostly nothing."""
        if self._feed.reading:
            return self._feed.reading
        if self._reading:
            return f"{count(self.view.last_seq + 1, 'record')} read"
        damaged = self._damage_told + len(self.view.damage)
        return f"⚠ {count(damaged, 'problem')} in the journal" if damaged else ""

    def _show_header(self) -> None:
        with_ttl = not self.query_one(TTLGauge).display
        seconds = elapsed_s(self.view, self._clock() if self._live else None)
        self.query_one(RunHeader).update_view(self.view, self.status, seconds, self.note, with_ttl=with_ttl)

    def on_plan_tree_selected(self, event: PlanTree.Selected) -> None:
        event.stop()
        self._show_step()

    def on_rows_view_chosen(self) -> None:
        self.action_pane(2)

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
        self.action_pane(2)

    def action_pane(self, number: int) -> None:
        """Focus a pane by its number; nothing happens where the run has nothing for it."""
        if not self._layout_of_panes.has(number, self.view):
            return
        zoomed = self.maximized is not None
        if zoomed:
            self.minimize()
        self._layout_of_panes.bring(number, self.view)
        pane = self._layout_of_panes.pane(number)
        target = pane if pane.can_focus else next((child for child in pane.children if child.can_focus), pane)
        # At once: the next key typed must reach it.
        self.set_focus(target)
        if zoomed:
            self.maximize(target)

    def action_issues(self) -> None:
        """Go from the selected step to its issues, wherever in the run they were found."""
        key = self.query_one(PlanTree).selected
        if key is None or key.kind != "step" or self.query_one(IssuesPane).go_to(key.name):
            self.action_pane(ISSUES)
        else:
            self.notify(f"No issue was found in {one_line(key.name, 40)}.", markup=False)

    def action_zoom(self) -> None:
        """Give the focused pane the whole screen, or take it back."""
        if self.maximized is not None:
            self.minimize()
        elif self.focused is not None:
            self.maximize(self.focused)

    def action_follow(self) -> None:
        """Follow the run again everywhere: selection, output and log."""
        self.query_one(PlanTree).follow_run()
        self.query_one(LogPane).action_follow()
        self._show_step()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now."""
        if action == "hide_guide":
            return bool(self.query("#guide"))
        if action == "search":
            return self._feed.journal is not None
        if (action, parameters) == ("pane", (6,)):
            return self._asking.waits
        if (action, parameters) in (("issues", ()), ("pane", (7,)), ("pane", (8,)), ("tab", (4,))):
            return self.view.adaptive
        return super().check_action(action, parameters)

    def action_search(self) -> None:
        """Look for a text in all records of the run."""
        if self._feed.journal is not None:
            from aeon_tui.screens.search import SearchScreen

            self.app.push_screen(SearchScreen(self._feed, self._feed.journal))

    def action_hide_guide(self) -> None:
        """Give the guide's lines to the run."""
        self.query("#guide").remove()

    def action_back(self) -> None:
        """Hide the guide, leave a zoomed pane, or go to the list of runs."""
        if self.query("#guide"):
            self.action_hide_guide()
        elif self.maximized is not None:
            self.minimize()
        elif self._runner is not None and self._runner.running:
            self.notify("The run goes on here; q aborts it and quits.", markup=False)
        else:
            self.app.show_browser()  # type: ignore[attr-defined]  # the app that owns this screen
