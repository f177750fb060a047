"""The question that a workflow of this process waits with, on its screen."""

from __future__ import annotations

from textual.screen import Screen
from textual.widget import Widget

from aeon_tui.screens.panel_controller import PanelController
from aeon_tui.screens.workflow.questions import question_of
from aeon_tui.sessions.workflow_broker import PendingQuestion, QuestionAnswer, WorkflowBroker
from aeon_widgets.key_guard import KeyGuard
from aeon_widgets.workflow_panel import WorkflowPanel


class WorkflowApprovalController(PanelController[WorkflowPanel]):
    """Mounts the panel of what waits at the broker, and takes it away when it is answered."""

    def __init__(self, screen: Screen[None], broker: WorkflowBroker | None, guard: KeyGuard | None = None) -> None:
        super().__init__(screen, guard)
        self._broker = broker
        self._asked: PendingQuestion | None = None

    def show(self, agent: str, *, before: Widget, home: Widget) -> bool:
        """Show the question there is now, or none, above the widget `before`; return whether it is a new one.

        `agent` is the one that works. Where no other place is known, `home` is focused.
        """
        asked = self._broker.waiting if self._broker is not None else None
        if asked is self._asked:
            return False
        self._asked = asked
        panel = WorkflowPanel(question_of(asked, agent), self._guard) if asked is not None else None
        self.put(panel, before=before, home=home)
        self._screen.set_class(asked is not None and asked.kind == "gate", "-asking-gate")
        return asked is not None

    def answer(self, number: int, choice: str, words: str | None) -> None:
        """Answer the question of that number, where it still waits."""
        if self._broker is not None:
            self._broker.answer(number, QuestionAnswer(choice, words))
