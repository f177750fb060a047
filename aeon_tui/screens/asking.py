"""The question that a run waits with, on its screen."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported
from textual.screen import Screen
from textual.widget import Widget

from aeon_core.errors import AeonError
from aeon_core.journal.view import RunView
from aeon_tui.desk import Decides
from aeon_tui.screens.confirm import ConfirmDialog
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.approval_text import REVIEWED
from aeon_widgets.text import one_line

if TYPE_CHECKING:
    from aeon_core.effects.approval import ApprovalDecision, ApprovalRequest
    from aeon_core.journal.records import Decision
    from aeon_tui.edits import Edits
    from aeon_tui.feed import Feed
    from aeon_tui.runner import Runner

PANE_KEY = "6"
NO_EDITOR = "no editor can be opened here; reject it and say what you want (w), or fork the run later"
TOO_LATE = "It was decided elsewhere meanwhile; what you wrote was not used."


def desk_of(feed: Feed, runner: Runner | None) -> Decides | None:
    """Return where the questions of a run wait for the person at the screen; None where nobody runs it.

    That of another process is closed by whoever asked for it.
    """
    if runner is not None:
        return runner.desk
    from aeon_tui.watching import WatchFeed

    if not isinstance(feed, WatchFeed):
        return None
    from aeon_tui.remote_desk import RemoteDesk

    return RemoteDesk(feed)


class Asking:
    """Mounts the panel of a question that waits at the desk, and takes it away when it is decided."""

    def __init__(self, screen: Screen[None], desk: Decides | None) -> None:
        self._screen = screen
        self._desk = desk
        self._asked: ApprovalRequest | None = None
        self._focused_before: Widget | None = None
        self._edits: Edits | None = None
        self._tools: list[dict[str, Any]] = []

    @property
    def waits(self) -> bool:
        """Whether a question is on screen."""
        return self._asked is not None

    def show(self, view: RunView, *, before: Widget, home: Widget) -> bool:
        """Show the question there is now, or none, above the widget `before`; return whether it is a new one.

        Where no other place is known, `home` is focused. `view` is the run as it is now: a pass stands against those
        before it.
        """
        if self._desk is not None and (news := self._desk.news()):
            self._screen.notify(news, markup=False)
        request = self._desk.waiting if self._desk is not None else None
        if request is not None and request.point in REVIEWED and view.asked != request.point:
            return False  # what it is about is still being read
        if request is self._asked:
            return False  # the request itself: the next one may ask the same, of the same digest
        screen = self._screen
        if self._asked is None:
            self._focused_before = screen.focused
        self._asked, self._tools = request, view.tools
        self._take_away(home if request is None else None)
        screen.set_class(request is not None, "-asking")
        if request is not None:
            if screen.maximized is not None:
                screen.minimize()
            known = list(view.assessments)
            panel = ApprovalPanel(request.point, request.subject, request.digest, request.pass_number, known)
            panel.pane_key = PANE_KEY
            screen.mount(panel, before=before)
        return request is not None

    def _take_away(self, home: Widget | None) -> None:
        """Remove the decided question; the focus goes back to where it was, unless a person has moved it since."""
        for panel in self._screen.query(ApprovalPanel):
            if self._screen.maximized is panel:
                self._screen.minimize()
            if home is not None and panel.has_focus_within:
                before = self._focused_before
                back = before if before is not None and before.is_attached and before.focusable else None
                self._screen.set_focus(back or home)
            panel.remove()

    def answer(self, digest: str, answer: Decision, feedback: str | None = None) -> None:
        """Answer the question with that digest, where it still waits."""
        from aeon_core.effects.approval import ApprovalDecision

        self.decide(digest, ApprovalDecision(decision=answer, feedback=feedback))

    def decide(self, digest: str, decision: ApprovalDecision) -> None:
        """Do the same with a decision that holds what was edited; one that comes too late is said to."""
        if self._desk is not None and not self._desk.decide(digest, decision) and decision.decision == "edit":
            self._screen.notify(TOO_LATE, severity="warning", markup=False)

    def abort(self, digest: str) -> None:
        """Abort the run where that is answered with yes; else the question with that digest waits on."""

        def answered(yes: bool | None) -> None:
            if yes:
                self.answer(digest, "abort")
                return
            for panel in self._screen.query(ApprovalPanel):
                if panel.digest == digest:
                    panel.wait_on()

        lines = ["What it has done is kept; resume (R) goes on with it later."]
        self._screen.app.push_screen(ConfirmDialog("Abort the run?", lines, "Abort"), answered)

    def edit(self, panel: ApprovalPanel) -> None:
        """Give the terminal to the person's editor, and answer with what they leave.

        Where there is none, the panel says why. The screen stands still meanwhile; the run waits.
        """
        decision, problem = None, NO_EDITOR
        with contextlib.suppress(SuspendNotSupported), self._screen.app.suspend():
            decision, problem = self._edited()
        if decision is not None:
            self.decide(panel.digest, decision)
        else:
            panel.say(one_line(problem))
        self.again()

    def _edited(self) -> tuple[ApprovalDecision | None, str]:
        """Return the decision with what the person left in their editor, or why there is none.

        Nothing is raised: the terminal would not come back.
        """
        from aeon_tui.edits import UNCHANGED, Edits

        self._edits = self._edits or Edits(self._tools)
        try:
            return self._edits.edit(self._asked) if self._asked is not None else None, UNCHANGED
        except AeonError as error:
            return None, error.message
        except OSError as error:
            return None, f"it cannot be edited: {error.strerror}"

    def again(self) -> None:
        """Give a person who comes back from another screen the half second, too."""
        for panel in self._screen.query(ApprovalPanel):
            panel.ask_again()
