"""The question that a run waits with, on its screen."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported
from textual.screen import Screen
from textual.widget import Widget

from aeon_core.effects.approval import ApprovalDecision, ApprovalRequest
from aeon_core.errors import AeonError
from aeon_core.journal.view import RunView
from aeon_tui.desk import Desk
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.approval_text import REVIEWED
from aeon_widgets.text import one_line

if TYPE_CHECKING:
    from aeon_tui.plan_reviews import PlanReviews

PANE_KEY = "6"
UNCHANGED = "the plan is as it was; nothing was decided"
NO_EDITOR = "no editor can be opened here; reject the plan and say what you want (w), or fork the run later"


class Asking:
    """Mounts the panel of a question that waits at the desk, and takes it away when it is decided."""

    def __init__(self, screen: Screen[None], desk: Desk | None) -> None:
        self._screen = screen
        self._desk = desk
        self._asked: ApprovalRequest | None = None
        self._focused_before: Widget | None = None
        self._reviews: PlanReviews | None = None

    @property
    def waits(self) -> bool:
        """Whether a question is on screen."""
        return self._asked is not None

    def show(self, view: RunView, *, before: Widget, home: Widget) -> None:
        """Show the question there is now, or none, above the widget `before`; where no other place is known, `home` is
        focused.

        `view` is the run as it is shown: a pass stands against those before it.
        """
        request = self._desk.waiting if self._desk is not None else None
        if request is not None and request.point in REVIEWED and view.asked != request.point:
            return  # what it is about is still being read
        if request is self._asked:
            return  # the request itself: the next one may ask the same, of the same digest
        screen = self._screen
        if self._asked is None:
            self._focused_before = screen.focused
        self._asked = request
        self._take_away(home if request is None else None)
        screen.set_class(request is not None, "-asking")
        if request is not None:
            if screen.maximized is not None:
                screen.minimize()
            known = list(view.assessments)
            panel = ApprovalPanel(request.point, request.subject, request.digest, request.pass_number, known)
            panel.pane_key = PANE_KEY
            screen.mount(panel, before=before)

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

    def decide(self, digest: str, decision: ApprovalDecision) -> None:
        """Answer the question with that digest, where it still waits."""
        if self._desk is not None:
            self._desk.decide(digest, decision)

    def edit(self, panel: ApprovalPanel) -> None:
        """Give the terminal to the person's editor, and answer with the plan they leave.

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
        """Return the decision with the plan that the person left in their editor, or why there is none.

        Nothing is raised: the terminal would not come back.
        """
        from aeon_tui.plan_reviews import PlanReviews

        self._reviews = self._reviews or PlanReviews()
        try:
            return self._reviews.edit(self._asked) if self._asked is not None else None, UNCHANGED
        except AeonError as error:
            return None, error.message
        except OSError as error:
            return None, f"the plan cannot be edited: {error.strerror}"

    def again(self) -> None:
        """Give a person who comes back from another screen the half second, too."""
        for panel in self._screen.query(ApprovalPanel):
            panel.ask_again()
