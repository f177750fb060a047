"""The question that a workflow of this process waits with, on its screen."""

from __future__ import annotations

from textual.screen import Screen
from textual.widget import Widget

from aeon_tui.workflow_desk import Answer, Asked, WorkflowDesk
from aeon_tui.workflow_questions import question_of
from aeon_widgets.workflow_panel import WorkflowPanel

PANE_KEY = "6"


class WorkflowAsking:
    """Mounts the panel of what waits at the desk, and takes it away when it is answered."""

    def __init__(self, screen: Screen[None], desk: WorkflowDesk | None) -> None:
        self._screen, self._desk = screen, desk
        self._asked: Asked | None = None
        self._focused_before: Widget | None = None

    @property
    def waits(self) -> bool:
        """Whether a question is on screen."""
        return self._asked is not None

    def show(self, agent: str, *, before: Widget, home: Widget) -> bool:
        """Show the question there is now, or none, above the widget `before`; return whether it is a new one.

        `agent` is the one that works. Where no other place is known, `home` is focused.
        """
        asked = self._desk.waiting if self._desk is not None else None
        if asked is self._asked:
            return False
        screen = self._screen
        if self._asked is None:
            self._focused_before = screen.focused
        self._asked = asked
        self._take_away(home if asked is None else None)
        screen.set_class(asked is not None, "-asking")
        screen.set_class(asked is not None and asked.kind == "gate", "-asking-gate")
        if asked is not None:
            if screen.maximized is not None:
                screen.minimize()
            panel = WorkflowPanel(question_of(asked, agent))
            panel.pane_key = PANE_KEY
            screen.mount(panel, before=before)
        return asked is not None

    def _take_away(self, home: Widget | None) -> None:
        """Remove the answered question; the focus goes back to where it was, unless a person has moved it since."""
        for panel in self._screen.query(WorkflowPanel):
            if self._screen.maximized is panel:
                self._screen.minimize()
            if home is not None and panel.has_focus_within:
                before = self._focused_before
                back = before if before is not None and before.is_attached and before.focusable else None
                self._screen.set_focus(back or home)
            panel.remove()

    def answer(self, number: int, choice: str, words: str | None) -> None:
        """Answer the question of that number, where it still waits."""
        if self._desk is not None:
            self._desk.answer(number, Answer(choice, words))

    def again(self) -> None:
        """Give a person who comes back from another screen the half second, too."""
        for panel in self._screen.query(WorkflowPanel):
            panel.ask_again()
