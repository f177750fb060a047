"""What the run waits for: what would happen, in full, and what a person can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from aeon_core.journal.view.model import AssessmentView
from aeon_widgets.approval_text import approval_blocks, title
from aeon_widgets.decision_panel import DecisionPanel
from aeon_widgets.key_guard import KeyGuard

Answer = Literal["approve", "reject", "replay", "accept", "abort"]
KEYS = {
    "plan": "a approve · d reject · w reject, say why · e edit · ctrl+x abort",
    "unknown": "a approve · d reject · w reject, say why · ctrl+x abort",
    "pass": "a approve · d reject · w why · e edit · r replay · c accept · ctrl+x abort",
}
"""On two lines where the screen has 60 columns."""
CALL_KEYS = "a approve · d reject · w say why · e edit · ctrl+x abort"
"""Of a call and of the budget; fits a screen of 60 columns."""


class ApprovalPanel(DecisionPanel):
    """Asks one question and sends `Decided`, once. The subject it shows is the one that the digest was made of."""

    @dataclass
    class Decided(Message):
        """A person has answered the panel's question."""

        panel: ApprovalPanel
        answer: Answer
        feedback: str | None = None

    @dataclass
    class EditWanted(Message):
        """A person wants to edit what the question is about: a plan, arguments, a budget."""

        panel: ApprovalPanel

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "answer('approve')", "Approve", id="approval.approve"),
        Binding("d", "answer('reject')", "Reject", id="approval.reject"),
        Binding("w", "words", "Reject, say why", id="approval.words"),
        Binding("e", "edit", "Edit", id="approval.edit"),
        Binding("r", "answer('replay')", "Replay the pass", id="approval.replay"),
        Binding("c", "answer('accept')", "Accept the result, and stop", id="approval.accept"),
        Binding("ctrl+x", "answer('abort')", "Abort the run", show=False, id="approval.abort"),
        Binding("escape", "no_words", "Back to the question", id="approval.back"),
    ]
    DEFAULT_CSS = "ApprovalPanel { max-height: 60%; }"

    def __init__(
        self,
        point: str,
        subject: Mapping[str, Any],
        digest: str,
        pass_number: int = 1,
        assessments: Sequence[AssessmentView] = (),
        guard: KeyGuard | None = None,
    ) -> None:
        blocks = list(approval_blocks(point, subject, pass_number, assessments))
        super().__init__(blocks, KEYS.get(point, CALL_KEYS), "why not? enter sends it, esc goes back", guard)
        self.digest = digest
        self._point = point
        self.pane_title = title(point, subject)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now: a key that the question does not take is the screen's."""
        if action == "edit":
            return self._point != "unknown"
        if (action, parameters) in (("answer", ("replay",)), ("answer", ("accept",))):
            return self._point == "pass"
        return super().check_action(action, parameters)

    def action_answer(self, answer: Answer) -> None:
        """Send the answer."""
        self.send(self.Decided(self, answer))

    def action_edit(self) -> None:
        """Ask for an editor."""
        self.send(self.EditWanted(self))

    @on(Input.Submitted)
    def _with_words(self, event: Input.Submitted) -> None:
        event.stop()
        self.send(self.Decided(self, "reject", event.value.strip() or None))
