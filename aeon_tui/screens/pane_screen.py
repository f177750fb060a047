"""The screen of a run or workflow: numbered panes, each focused by a key or filling the screen, and its question."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key, Paste
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input

from aeon_core.journal.view.formatting import words
from aeon_tui.messages import ShowRuns, TitleTerminal
from aeon_tui.screens.item_actions import SelectableScreen
from aeon_tui.screens.refresh import ASKING_RATE, CLOCK_RATE, NONE, OWN_RATE, RefreshScheduler
from aeon_tui.sessions.approval_broker import ApprovalSource, remote_broker
from aeon_tui.sources.base import RecordSource
from aeon_widgets.approval_panel import DECIDE_ID, ApprovalPanel
from aeon_widgets.keys import TOO_SOON, KeyGuard, key_of
from aeon_widgets.pane import Pane
from aeon_widgets.run_question import ApprovalQuestion
from aeon_widgets.text import one_line

if TYPE_CHECKING:
    from aeon_core.approvals import ApprovalDecision, ApprovalRequest
    from aeon_core.errors import AeonError
    from aeon_core.journal.records import AllowedRule
    from aeon_tui.sessions.runner import AnyRunner

APPROVAL = 9
"""The pane of the question."""
TOO_LATE = "The question is no longer open; your text was not used."
SENT = "The decision was sent; the run's process has not taken it yet."
SENT_SECONDS = 1.0
"""How long a run's process may take to accept a decision before a notice says that it was sent."""

Place = tuple[Widget, Widget]
"""The panel's parent, and the sibling before which it is mounted."""


class PanelController:
    """Shows one question at a time on a screen, and guards the screen's keys while one is new or has just been decided.

    The questions are those that wait at the broker. `place` returns where the panel goes at the screen's size.
    """

    def __init__(
        self,
        screen: Screen[None],
        broker: ApprovalSource | None,
        place: Callable[[], Place],
        guard: KeyGuard | None = None,
    ) -> None:
        self._screen = screen
        self._broker = broker
        self._asked: ApprovalRequest | None = None
        self._place = place
        self._panel: ApprovalPanel | None = None
        self._guard = guard if guard is not None else KeyGuard()
        self._focused_before: Widget | None = None
        self._is_unseen = False
        """Whether the question arrived while another screen was on top."""
        self._is_behind_a_screen = False
        """Whether the screen on top is more than a dialog."""

    @property
    def waits(self) -> bool:
        """Whether a question is on screen."""
        return self._panel is not None

    @property
    def is_focused(self) -> bool:
        """Whether keys go to the question."""
        return self._panel is not None and self._panel.has_focus_within

    @property
    def feedback(self) -> str:
        """The text in the question's field that has not been sent."""
        return self._panel.feedback if self._panel is not None else ""

    def waiting(self) -> ApprovalRequest | None:
        """Return the current question; notify the user, once, of a decision made elsewhere."""
        if self._broker is None:
            return None
        if news := self._broker.pop_notice():
            self._screen.notify(news, markup=False)
        return self._broker.waiting

    def decide(self, panel: ApprovalPanel, decision: ApprovalDecision) -> bool:
        """Answer a panel's question if it still waits; the next one may have the same digest."""
        broker, asked = self._broker, self._asked
        if broker is None or asked is None or panel is not self._panel or broker.waiting is not asked:
            return False
        decided = broker.decide(asked.digest, decision)
        if decided:
            self._screen.set_timer(SENT_SECONDS, lambda: self._say_sent(asked))
        return decided

    def _say_sent(self, asked: ApprovalRequest) -> None:
        if self._asked is asked and self._panel is not None and self._panel.answered:
            self._screen.notify(SENT, markup=False)

    def ask_for_rule(self, panel: ApprovalPanel, arguments: Sequence[str], root: Path) -> None:
        """Ask for the rule that allows calls like this one, and approve the call with it.

        The tool may have `arguments` that the call lacks; `root` is the project whose configuration can keep the rule.
        """
        from aeon_core.approvals import ApprovalDecision
        from aeon_tui.screens.dialogs import RuleDialog

        def given(rule: AllowedRule | None) -> None:
            self._guard.arm()
            if rule is None:
                return
            panel.answered = True
            self.decide(panel, ApprovalDecision(decision="approve", allow=rule))
            if rule.scope != "run":
                self._screen.notify(f"Saved: {rule.rule}. The settings list it; remove it there.", markup=False)

        panel.reopen()
        if self._asked is not None:
            self._screen.app.push_screen(RuleDialog(self._asked.subject, arguments, root), given)

    def show_question(self, question: ApprovalQuestion | None, *, home: Widget) -> None:
        """Replace the question with another one, or with none.

        If nothing else had the focus before, `home` gets it.
        """
        panel = ApprovalPanel(question, self._guard) if question is not None else None
        screen, last, self._panel = self._screen, self._panel, panel
        if last is None:
            self._focused_before = screen.focused
        elif not last.answered:
            # It was decided elsewhere, or its process has ended: the keys being typed were meant for it.
            self._guard.arm()
            if last.feedback:
                screen.notify(TOO_LATE, severity="warning", markup=False)
        if last is not None:
            self._remove(last, home if panel is None else None)
        screen.set_class(panel is not None, "-asking")
        if panel is not None:
            if screen.maximized is not None:
                screen.minimize()
            self._is_unseen = screen.app.screen is not screen
            self._mount(panel)

    def _mount(self, panel: ApprovalPanel) -> None:
        parent, before = self._place()
        panel.pane_key = str(APPROVAL)
        parent.mount(panel, before=before)

    def arrange(self) -> None:
        """Move the question to its place at the screen's size, keeping what was typed."""
        last = self._panel
        if last is None or not last.is_attached or last.parent is self._place()[0] or self._screen.maximized is last:
            return
        self._panel = last.copy()
        self._mount(self._panel)
        if last.has_focus_within:
            # Otherwise its removal would focus another pane until the copy is there.
            self._screen.set_focus(None)
        last.remove()

    def _remove(self, panel: ApprovalPanel, home: Widget | None) -> None:
        """Remove the decided question; the focus returns to where it was, unless the user has moved it since."""
        if self._screen.maximized is panel:
            self._screen.minimize()
        if home is not None and panel.has_focus_within:
            before = self._focused_before
            back = before if before is not None and before.is_attached and before.focusable else None
            self._screen.set_focus(back or home)
        panel.remove()

    def admits(self, event: Key | Paste) -> bool:
        """Return whether a key or a paste reaches the focus; otherwise it is ignored."""
        if self._panel is not None and self._panel.is_attached:
            return self._panel.admits(event)
        if isinstance(event, Paste) or self._guard.admits(event.key, event.time, harmless=event.key == "escape"):
            return True
        self._screen.notify(TOO_SOON, markup=False)
        return False

    def opens_field(self, key: str) -> bool:
        """Return whether a key opens the question's text field."""
        return self._panel is not None and self._panel.is_attached and self._panel.opens_field(key)

    def cover(self) -> None:
        """Record what covers the screen now."""
        on_top = next(reversed(self._screen.app.screen_stack), self._screen)
        self._is_behind_a_screen = on_top is not self._screen and not isinstance(on_top, ModalScreen)

    def uncover(self) -> None:
        """Restart the first half second when the user returns from another screen; a dialog hides nothing."""
        if self._is_unseen or self._is_behind_a_screen:
            self._guard.arm()
        self._is_unseen = self._is_behind_a_screen = False


FOLD_SECONDS = 0.015
"""The share of a frame that reading records may take, so that keys are handled in between."""
NOTICE_SECONDS = 30
WAITING = "waiting for a decision"
WAITING_HERE = "waiting for you"
"""For a run or workflow of this process."""
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current time, UTC."""
    return datetime.now(UTC)


class PaneScreen(SelectableScreen[None]):
    """Shows a run or workflow in panes as its records arrive, with its status, problems and questions.

    A subclass folds and shows the records; it names the panes, knows which have content, and makes room for one.
    """

    ESCAPE_TO_MINIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        # Before the panes' own keys: a waiting question comes first.
        Binding("a", "focus_question", "Decide", priority=True, tooltip="Go to what waits for you", id=DECIDE_ID),
        Binding("tab", "app.focus_next", "Next", show=True, id="pane.next"),
        Binding("shift+tab", "app.focus_previous", "Previous pane", show=False, id="pane.previous"),
    ]
    PANES: ClassVar[dict[int, type[Pane]]]
    """The panes by key; the first gets the focus at the start."""
    RESUME_ID = "run.resume"
    """The id of the key that continues what has ended."""
    WHAT = "run"

    asking: PanelController
    """Shows the question."""

    def __init__(
        self,
        source: RecordSource[Any],
        runner: AnyRunner | None,
        clock: Clock,
        broker: ApprovalSource | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(classes=classes)
        self._source, self._runner, self._clock = source, runner, clock
        self._broker = broker or (runner.broker if runner is not None else remote_broker(source))
        self._frames = RefreshScheduler(self, self._fold, self.show_rest, self._slow_rate)
        self._composed = False
        self._shown_status = ""
        self._ran = False
        """Whether this app ran it when its keys were last looked up."""
        self._error_reported = False
        self._notice_reported = ""

    @property
    def made(self) -> bool:
        """Whether the panes are composed, and not being removed."""
        return self._composed and self.is_running

    @property
    @abstractmethod
    def shown_task(self) -> str:
        """The task of the run or workflow."""

    @property
    @abstractmethod
    def status(self) -> str:
        """Its status in a few words: that of its result, or its current activity."""

    @property
    @abstractmethod
    def in_progress(self) -> bool:
        """Whether it is live, here or in another process."""

    @property
    def error(self) -> AeonError | None:
        """Why there is nothing more to read."""
        return self._source.error

    @abstractmethod
    def offers(self, action: str) -> bool:
        """Return whether `resume`, `replay`, `fork` or `label` applies to it as it is now."""

    @property
    def chosen_run(self) -> Path | None:
        """The journal that the keys of a run's actions apply to."""
        return self._source.journal if not self._source.gone else None

    @property
    def would_lose_feedback(self) -> bool:
        """Whether feedback was typed and leaving drops it: only the screen of a run of this process is kept."""
        return self._runner is None and bool(self.asking.feedback)

    @abstractmethod
    def _fold(self) -> bool:
        """Fold and show new records; return whether there were any."""

    def tick(self) -> None:
        """Fold new records, and show what has changed."""
        self._fold()
        self.show_rest()

    def show_rest(self) -> None:
        """Show what changes without records: notices, and in subclasses the time and the question."""
        if self._ran != (ran := self._runner is not None and self._runner.running):
            self._ran = ran
            self.refresh_bindings()
        self._notify_of_source()

    def _notify_of_source(self) -> None:
        """Report once why there is nothing more to read, and what happened to the process or file."""
        error, notice = self.error, self._source.notice
        if error is not None and not self._error_reported:
            self._error_reported = True
            self.report_error(one_line(error.message, 2_000))
        if notice != self._notice_reported:
            # The earlier notice no longer applies.
            self.app.clear_notifications()
            self._notice_reported = notice
            self.refresh_bindings()  # nothing can be done with a deleted run
            if notice:
                if self.status == "interrupted" and self.chosen_run is not None and self.offers("resume"):
                    notice = f"{notice}; press {key_of(self, self.RESUME_ID)} to resume it"
                self.notify(notice, severity="warning", timeout=NOTICE_SECONDS, markup=False)

    def report_error(self, message: str) -> None:
        """Report why there is nothing more to read."""
        self.notify(message, severity="error", timeout=NOTICE_SECONDS, markup=False)

    def _slow_rate(self) -> int:
        if self._source.reading:
            return ASKING_RATE
        if self._runner is not None and self._runner.running:
            return OWN_RATE  # the source does not report a reply in progress or an abort
        return CLOCK_RATE if self.in_progress else NONE

    def _status_changed(self) -> bool:
        """Return whether the status is new; if so, update the keys and the terminal."""
        if self.status == self._shown_status:
            return False
        self._shown_status = self.status
        self.refresh_bindings()
        self._update_terminal()
        return True

    def _update_terminal(self, *, urgent: bool = False) -> None:
        """Show the live run or workflow, of this process or another, in the terminal's title; a question is urgent.

        The app does this for its own that are not on screen.
        """
        if self._broker is not None and (self._runner is None or self.is_active):
            # A question may arrive before the record that makes it the status.
            asked = WAITING if self._runner is None else WAITING_HERE
            status_text = asked if urgent else words(self._shown_status)
            self.app.post_message(TitleTerminal(f"aeon: {status_text} · {one_line(self.shown_task, 60)}", urgent))

    def on_screen_resume(self) -> None:
        self.asking.uncover()
        self._frames.resume()
        self._update_terminal()

    def on_unmount(self) -> None:
        self._source.close()
        if self._broker is not None and self._runner is None:
            self._broker.close()

    def admits(self, event: Key | Paste) -> bool:
        """Return whether a key or a paste is accepted; a new question accepts none."""
        return self.asking.admits(event)

    def on_screen_suspend(self) -> None:
        self.asking.cover()

    @abstractmethod
    def bring(self, number: int) -> None:
        """Make room for a pane that may be hidden."""

    def has_pane(self, number: int) -> bool:
        """Return whether a pane has content, even if it is not on screen."""
        return bool(self.query(self.PANES[number]))

    @property
    def home(self) -> int:
        """The pane that has the focus by default: the question if there is one, else the first."""
        return APPROVAL if self.query(self.PANES[APPROVAL]) else next(iter(self.PANES))

    def begin_panes(self) -> None:
        """Number the panes, focus the first, and start."""
        # Textual sets these only after the first layout, and would apply all styles a second time.
        width, height = self.app.size
        for extent, steps in ((width, self.HORIZONTAL_BREAKPOINTS), (height, self.VERTICAL_BREAKPOINTS)):
            self.add_class(*self._get_breakpoint_classes(extent, steps or []), update=False)
        numbers = {kind: str(number) for number, kind in self.PANES.items()}
        for pane in self.walk_children(Pane):
            pane.pane_key = numbers[type(pane)]
        self.query_one(self.PANES[self.home]).focus()
        self._composed = True
        self.tick()
        self._frames.begin(self._source)

    def action_pane(self, number: int) -> None:
        """Focus a pane by its number, if it has content."""
        if not self.has_pane(number):
            return
        zoomed = self.maximized is not None
        if zoomed:
            self.minimize()
        self.bring(number)
        target = self.query_one(self.PANES[number]).home
        # Immediately: the next key must reach it.
        self.set_focus(target)
        if zoomed:
            self.maximize(target)

    def action_focus_question(self) -> None:
        """Focus the question, if there is one."""
        self.action_pane(APPROVAL)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action has an effect now: in a question its key is an answer, in a field a letter."""
        if action == "focus_question":
            return self.asking.waits and not self.asking.is_focused and not isinstance(self.focused, Input)
        if (action, parameters) == ("pane", (APPROVAL,)):
            return self.asking.waits
        if action == "abort":
            return self._runner is not None and self._runner.running
        return super().check_action(action, parameters)

    def action_abort(self) -> None:
        """End the run or workflow after asking; it can be continued."""
        from aeon_tui.screens.dialogs import ConfirmDialog

        lines = [f"All work so far is kept; {key_of(self, self.RESUME_ID)} resumes it later."]
        dialog = ConfirmDialog(f"End the {self.WHAT} here?", lines, "End it")
        self.app.push_screen(dialog, lambda yes: self._abort() if yes else None)

    def _abort(self) -> None:
        if self._runner is not None:
            self._runner.abort()

    def action_zoom(self) -> None:
        """Zoom the focused pane, or restore it."""
        if self.maximized is not None:
            self.minimize()
        elif self.focused is not None:
            self.maximize(self.focused)

    def action_back(self) -> None:
        """Leave a zoomed pane, or go to the list of runs while the run or workflow continues."""
        if self.maximized is not None:
            self.minimize()
        elif self.would_lose_feedback:
            from aeon_tui.screens.editor import ask_to_discard

            ask_to_discard(self, lambda: self.app.post_message(ShowRuns()))
        else:
            self.app.post_message(ShowRuns())

    def on_pane_covered(self, event: Pane.Covered) -> None:
        """Keep the scroll position when the screen or its column gets lower."""
        if self.home != APPROVAL:
            self.call_after_refresh(self.action_pane, int(event.pane.pane_key))

    def on_descendant_blur(self) -> None:
        """Move the focus of a hidden pane to `home`, so that no key is lost."""
        if self.focused is None and self.made and self.app.app_focus:
            self.call_after_refresh(self._refocus)

    def _refocus(self) -> None:
        if self.focused is None and self.is_attached:
            self.minimize()
            self.action_pane(self.home)
