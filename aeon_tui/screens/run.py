"""One run, live or past: both are the same fold of its records (Decision 3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static

from aeon_core.effects.approval import ApprovalDecision, ApprovalRequest
from aeon_core.journal.view import RunView
from aeon_tui.feed import Feed
from aeon_tui.runner import Runner
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.footer import fit_footer
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import Pane
from aeon_widgets.plan_tree import PlanTree, RowKey
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import TABS, StepPane, StepText
from aeon_widgets.text import count, one_line
from aeon_widgets.ttl_gauge import TTLGauge

WIDTHS = [(0, "-narrow"), (72, "-normal"), (110, "-wide")]
HEIGHTS = [(0, "-low"), (30, "-tall"), (45, "-very-tall")]
"""From how many columns and rows on which layout is taken."""
FRAMES_PER_SECOND = 20
FOLD_SECONDS = 0.015
"""The most of a frame that reading records may take, so that keys are answered in between."""

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current time, UTC."""
    return datetime.now(UTC)


class RunScreen(Screen[None]):
    """Plan, selected step, repairs, TTL, log, and the answer once there is one."""

    HELP_TITLE = "Run"
    ESCAPE_TO_MINIMIZE = True
    ALLOW_IN_MAXIMIZED_VIEW = "RunHeader, Footer"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    DEFAULT_CSS = """
    RunScreen {
        background: $background;
        #body { layout: grid; height: 1fr; min-height: 6; grid-gutter: 0; background: $background; }
        #side { height: 100%; width: 100%; background: $background; }
        RepairsPane { height: auto; max-height: 5; }
        Outcome { max-height: 7; }
        #guide { height: auto; max-height: 3; padding: 0 1; background: $panel; color: $aeon-accent; }
    }
    RunScreen.-tall { LogPane { height: 9; } Outcome { max-height: 11; } RepairsPane { max-height: 7; } }
    RunScreen.-very-tall { LogPane { height: 14; } Outcome { max-height: 18; } RepairsPane { max-height: 12; } }
    RunScreen.-low LogPane { height: 6; }
    RunScreen.-low.-ended LogPane { height: 5; }
    RunScreen.-narrow {
        #body { grid-size: 2 1; grid-columns: 2fr 3fr; }
        #side { display: none; }
        LogPane { height: 5; }
        Outcome { max-height: 5; }
    }
    RunScreen.-normal {
        #body { grid-size: 2 2; grid-columns: 2fr 3fr; grid-rows: 1fr auto; }
        #side { height: auto; }
        StepPane { row-span: 2; }
        TTLGauge { display: none; }
    }
    RunScreen.-no-repairs RepairsPane { display: none; }
    RunScreen.-normal.-no-repairs {
        #body { grid-size: 2 1; grid-rows: 1fr; }
        #side { display: none; }
        StepPane { row-span: 1; }
    }
    RunScreen.-wide {
        #body { grid-size: 3 1; grid-columns: 6fr 9fr 32; }
        RepairsPane { height: 1fr; max-height: 100%; }
    }
    RunScreen.-asking {
        Outcome { display: none; }
        &.-low LogPane { display: none; }
        &.-low #guide { display: none; }
    }
    RunScreen .-maximized { height: 1fr !important; max-height: 100% !important; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.focus_next", "Next", show=True),
        Binding("shift+tab", "app.focus_previous", "Previous pane", show=False),
        Binding("z", "zoom", "Zoom"),
        Binding("f", "follow", "Follow"),
        Binding("o", "tab(0)", "Output", show=False),
        Binding("p", "tab(1)", "Prompt", show=False),
        Binding("t", "tab(2)", "Tool call", show=False),
        Binding("r", "tab(3)", "Repairs of the step", show=False),
        Binding("1", "pane(1)", "Plan", show=False),
        Binding("2", "pane(2)", "Step", show=False),
        Binding("3", "pane(3)", "Log", show=False),
        Binding("4", "pane(4)", "Repairs", show=False),
        Binding("5", "pane(5)", "Answer", show=False),
        Binding("6", "pane(6)", "Decision", show=False),
        Binding("x", "hide_guide", "Hide the guide", show=False),
        Binding("escape", "back", "Runs"),
    ]

    def __init__(self, feed: Feed, runner: Runner | None = None, clock: Clock = utc_now) -> None:
        super().__init__(classes="-no-repairs")
        self.view = RunView()
        self._feed = feed
        self._runner = runner
        self._clock = clock
        self._stream_version = 0
        self._failed_to_read = False
        self._damage_told = 0
        self._made = False
        self._shown_status = ""
        self._asked: ApprovalRequest | None = None
        self._focused_before: Widget | None = None

    def compose(self) -> ComposeResult:
        yield RunHeader()
        if self._runner is not None and self._runner.start_run.guide:
            yield Static(self._runner.start_run.guide, id="guide", markup=False)
        with Container(id="body"):
            yield PlanTree()
            yield StepPane()
            with Vertical(id="side"):
                yield TTLGauge()
                yield RepairsPane()
        yield Outcome()
        yield LogPane()
        yield Footer()

    def on_mount(self) -> None:
        if not self.query(StepText):
            return  # the app is ending before the screen was made
        for number in range(1, 6):
            self._pane(number).pane_key = str(number)
        self.query_one(PlanTree).focus()
        self._repaint(frozenset())
        self._made = True
        self.set_interval(1 / FRAMES_PER_SECOND, self.tick, name="fold")

    def on_resize(self) -> None:
        fit_footer(self)

    def on_unmount(self) -> None:
        self._feed.close()

    @property
    def status(self) -> str:
        """The run's status as a word: the result's, or what it is doing."""
        if self.view.result is not None:
            return str(self.view.result.status)
        if self._runner is not None and self._runner.aborting:
            return "aborting"
        if self._runner is not None and self._runner.desk.waiting is not None:
            return "waiting for you"
        if self._live:
            return "running"
        if self._reading:
            return "reading …"
        return "unreadable" if self._feed.error is not None and self.view.last_seq < 0 else "interrupted"

    @property
    def _live(self) -> bool:
        return self._feed.live and self.view.result is None

    @property
    def _reading(self) -> bool:
        return not self._feed.live and not self._feed.ended and self.view.result is None

    def tick(self) -> None:
        """Fold what has come, and repaint the panes that it concerns."""
        if not self._made:
            return
        records = self._feed.take(FOLD_SECONDS)
        for record in records:
            self.view.apply(record)
        for problem in self._feed.damage[self._damage_told :]:
            self._damage_told += 1
            self.view.add_line("error", "damage", one_line(problem))
        if self._runner is not None and self._feed.ended and self.view.result is None:
            # Its end could not be journaled, or it had not begun.
            self.view.result = self._runner.ending()
        if self.status != self._shown_status:
            self._shown_status = self.status
            self._tell_terminal()
            self._repaint(frozenset())
        elif records:
            self._repaint(frozenset(str(record.get("type")) for record in records))
        elif self._runner is not None and self._runner.stream.version != self._stream_version:
            self._show_step()
        self._show_header()
        self._say_what_went_wrong()
        self._ask()

    def _tell_terminal(self) -> None:
        """Name the terminal after the run that goes on here."""
        if self._runner is not None:
            words = self._shown_status.replace("_", " ")
            urgent = self._runner.desk.waiting is not None
            self.app.tell_terminal(  # type: ignore[attr-defined]  # the app that owns this screen
                f"aeon: {words} · {one_line(self.view.task, 60)}", urgent=urgent
            )

    def _ask(self) -> None:
        """Show the question that the run waits with, and take away one that was decided."""
        request = self._runner.desk.waiting if self._runner is not None else None
        if request is self._asked:
            return  # the request itself: the next one may ask the same, of the same digest
        if self._asked is None:
            self._focused_before = self.focused
        self._asked = request
        self._take_panel_away(last=request is None)
        self.set_class(request is not None, "-asking")
        if request is not None:
            if self.maximized is not None:
                self.minimize()
            panel = ApprovalPanel(request.point, request.subject, request.digest)
            panel.pane_key = "6"
            self.mount(panel, before=self.query_one(LogPane))

    def _take_panel_away(self, last: bool) -> None:
        """Remove the decided question; the focus goes back to where it was, unless a person has moved it since."""
        for panel in self.query(ApprovalPanel):
            if self.maximized is panel:
                self.minimize()
            if last and panel.has_focus_within:
                before = self._focused_before
                back = before if before is not None and before.is_attached and before.focusable else None
                self.set_focus(back or self.query_one(PlanTree))
            panel.remove()

    def on_screen_resume(self) -> None:
        """Give a person who comes back from another screen the half second, too."""
        for panel in self.query(ApprovalPanel):
            panel.ask_again()

    @on(ApprovalPanel.Decided)
    def _decided(self, event: ApprovalPanel.Decided) -> None:
        event.stop()
        if self._runner is not None:
            self._runner.desk.decide(event.digest, ApprovalDecision(decision=event.answer, feedback=event.feedback))

    def _repaint(self, types: frozenset[str]) -> None:
        self.set_class(not self.view.repairs, "-no-repairs")
        self.set_class(self.view.result is not None, "-ended")
        self.query_one(PlanTree).live = self._live or self._reading
        for pane in (*self.query(PlanTree), *self.query(TTLGauge), *self.query(RepairsPane), *self.query(Outcome)):
            if not types or types & pane.RECORDS:
                pane.update_view(self.view)
        self.query_one(LogPane).update_view(self.view)
        if not types or types & StepPane.RECORDS:
            self._show_step()

    def _show_step(self) -> None:
        tree = self.query_one(PlanTree)
        key = tree.selected
        calls = tree.calls_of(key.name) if key is not None and key.kind == "calls" else []
        self.query_one(StepPane).update_view(self.view, key, calls, self._streamed(key), self._live or self._reading)

    def _streamed(self, key: RowKey | None) -> str:
        if self._runner is None or key is None:
            return ""
        stream = self._runner.stream
        self._stream_version = stream.version
        belongs = stream.step_id == key.name if key.kind == "step" else stream.step_id is None
        return stream.text if belongs else ""

    def _show_header(self) -> None:
        damaged = self._damage_told + len(self.view.damage)
        note = f"⚠ {count(damaged, 'problem')} in the journal" if damaged else ""
        if self._reading:
            note = f"{count(self.view.last_seq + 1, 'record')} read"
        self.query_one(RunHeader).update_view(self.view, self.status, self._elapsed_s(), note)

    def _elapsed_s(self) -> float:
        """Seconds since the start: by the clock while the run goes on here, else by the last record."""
        started, last = _time(self.view.started), _time(self.view.last_ts)
        if started is None or last is None:
            return 0.0
        now = self._clock() if self._live else last
        return (now - started).total_seconds()

    def _say_what_went_wrong(self) -> None:
        error = self._feed.error
        if error is not None and not self._failed_to_read:
            self._failed_to_read = True
            self.notify(error.message, severity="error", timeout=30, markup=False)

    def _pane(self, number: int) -> Pane:
        kinds: tuple[type[Pane], ...] = (PlanTree, StepPane, LogPane, RepairsPane, Outcome, ApprovalPanel)
        return self.query_one(kinds[number - 1])

    def on_plan_tree_selected(self, event: PlanTree.Selected) -> None:
        event.stop()
        self._show_step()

    def on_rows_view_chosen(self) -> None:
        self.action_pane(2)

    def on_repairs_pane_opened(self, event: RepairsPane.Opened) -> None:
        tree = self.query_one(PlanTree)
        step_id = event.repair.step_id
        tree.select(RowKey("step", step_id) if step_id is not None else RowKey("calls", "plan"))
        self.action_tab(TABS.index("Repairs"))

    def action_tab(self, index: int) -> None:
        """Open a tab of the step pane."""
        self.query_one(StepPane).tab = index
        self.action_pane(2)

    def action_pane(self, number: int) -> None:
        """Focus a pane by its number; nothing happens where it is not on screen."""
        pane = self._pane(number)
        if not pane.display:
            return
        zoomed = self.maximized is not None
        if zoomed:
            self.minimize()
        target = pane if pane.can_focus else next((child for child in pane.children if child.can_focus), pane)
        # At once: the next key typed must reach it.
        self.set_focus(target)
        if zoomed:
            self.maximize(target)

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
        if (action, parameters) == ("pane", (6,)):
            return self._asked is not None
        return super().check_action(action, parameters)

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


def _time(stamp: str) -> datetime | None:
    try:
        return datetime.fromisoformat(stamp)
    except ValueError:
        return None
