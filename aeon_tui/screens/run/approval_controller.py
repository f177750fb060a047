"""The question that a run waits with, on its screen."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from textual.app import SuspendNotSupported
from textual.screen import Screen
from textual.widget import Widget

from aeon_core.errors import AeonError
from aeon_core.journal.view.model import RunView
from aeon_tui.screens.dialogs import ConfirmDialog
from aeon_tui.screens.panel_controller import TOO_LATE, PanelController, Place
from aeon_tui.sessions.approval_broker import ApprovalSource
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.key_guard import KeyGuard
from aeon_widgets.run_question import REVIEWED, run_question
from aeon_widgets.text import one_line

if TYPE_CHECKING:
    from aeon_core.approvals.pending import ApprovalDecision, ApprovalRequest
    from aeon_core.journal.records import Decision
    from aeon_tui.sessions.approval_edits import ApprovalEdits
    from aeon_tui.sessions.runner import Runner
    from aeon_tui.sources.base import RecordSource

NO_EDITOR = "no editor can be opened here; reject it with a reason (w), or fork the run later"


def broker_of(source: RecordSource, runner: Runner | None) -> ApprovalSource | None:
    """Return where the questions of a run wait for the person at the screen; None where nobody runs it.

    That of another process is closed by whoever asked for it.
    """
    if runner is not None:
        return runner.broker
    from aeon_tui.sources.followed import FollowedSource

    if not isinstance(source, FollowedSource):
        return None
    from aeon_tui.sessions.remote_approval_broker import RemoteApprovalBroker

    return RemoteApprovalBroker(source)


class ApprovalController(PanelController):
    """Mounts the panel of a question that waits at the broker, and takes it away when it is decided."""

    def __init__(
        self,
        screen: Screen[None],
        broker: ApprovalSource | None,
        place: Callable[[], Place],
        guard: KeyGuard | None = None,
    ) -> None:
        super().__init__(screen, place, guard)
        self._broker = broker
        self._asked: ApprovalRequest | None = None
        self._edits: ApprovalEdits | None = None
        self._tools: list[dict[str, Any]] = []

    def show(self, view: RunView, *, home: Widget) -> bool:
        """Show the question there is now, or none; return whether it is a new one.

        Where no other place is known, `home` is focused. `view` is the run as it is now: a pass stands against those
        before it.
        """
        if self._broker is not None and (news := self._broker.pop_notice()):
            self._screen.notify(news, markup=False)
        request = self._broker.waiting if self._broker is not None else None
        if request is not None and request.point in REVIEWED and view.asked != request.point:
            return False  # what it is about is still being read
        if request is self._asked:
            return False  # the request itself: the next one may ask the same, of the same digest
        self._asked, self._tools = request, view.tools
        question = None
        if request is not None:
            question = run_question(request.point, request.subject, request.pass_number, list(view.assessments))
        self.put(question, home=home)
        return request is not None

    def answered(self, event: ApprovalPanel.Answered) -> None:
        """Do what a person has chosen: open an editor, ask once more before an abort, or answer the question."""
        if event.answer == "edit":
            self.edit(event.panel)
        elif event.answer == "abort":
            self.abort(event.panel)
        else:
            self.answer(event.panel, cast("Decision", event.answer), event.words)

    def answer(self, panel: ApprovalPanel, answer: Decision, feedback: str | None = None) -> None:
        """Answer a panel's question, where it still waits."""
        from aeon_core.approvals.pending import ApprovalDecision

        self.decide(panel, ApprovalDecision(decision=answer, feedback=feedback))

    def decide(self, panel: ApprovalPanel, decision: ApprovalDecision) -> None:
        """Do the same with a decision that holds what was edited. The next question may have the same digest."""
        broker, asked = self._broker, self._asked
        waits = broker is not None and asked is not None and panel is self._panel and broker.waiting is asked
        decided = waits and broker is not None and asked is not None and broker.decide(asked.digest, decision)
        if not decided and decision.decision == "edit":
            self._screen.notify(TOO_LATE, severity="warning", markup=False)

    def abort(self, panel: ApprovalPanel) -> None:
        """Abort the run where that is answered with yes; else the question waits on."""

        def answered(yes: bool | None) -> None:
            if yes:
                panel.answered = True
                self.answer(panel, "abort")

        # The dialog gets the keys now; the first one after it may be for the question again.
        panel.wait_on()
        lines = ["What it has done is kept. Resume it later with R: it asks this again."]
        self._screen.app.push_screen(ConfirmDialog("End the run here?", lines, "End it"), answered)

    def edit(self, panel: ApprovalPanel) -> None:
        """Give the terminal to the person's editor, and answer with what they leave.

        Where there is none, the panel says why. The screen stands still meanwhile; the run waits.
        """
        decision, problem = None, NO_EDITOR
        with contextlib.suppress(SuspendNotSupported), self._screen.app.suspend():
            decision, problem = self._edited()
        if decision is not None:
            self.decide(panel, decision)
        else:
            panel.say(one_line(problem))
        self._guard.arm()

    def _edited(self) -> tuple[ApprovalDecision | None, str]:
        """Return the decision with what the person left in their editor, or why there is none.

        Nothing is raised: the terminal would not come back.
        """
        from aeon_tui.sessions.approval_edits import UNCHANGED, ApprovalEdits

        self._edits = self._edits or ApprovalEdits(self._tools)
        try:
            return self._edits.edit(self._asked) if self._asked is not None else None, UNCHANGED
        except AeonError as error:
            return None, error.message
        except OSError as error:
            return None, f"cannot edit it: {error.strerror}"
