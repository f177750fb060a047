"""What the run waits for: what would happen, in full, and what a person can answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input, Static
from typing_extensions import override

from aeon_core.journal.view import AssessmentView
from aeon_widgets.approval_text import REVIEWED, approval_blocks, title
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import count
from aeon_widgets.text_view import TextView

Answer = Literal["approve", "reject", "replay", "accept", "abort"]
GRACE_SECONDS = 0.5
"""Keys typed so soon after the question appeared were meant for something else."""
KEYS = {
    "plan": "a approve · d reject · w reject, say why · e edit · ctrl+x abort",
    "pass": "a approve · d reject · w why · e edit · r replay · c accept · ctrl+x abort",
}
"""On two lines where the screen has 60 columns."""
CALL_KEYS = "a approve · d reject · w reject, say why · ctrl+x abort"
"""Of every other question; fits a screen of 60 columns."""


class ApprovalText(TextView):
    """The question; scrolls. Its panel says how much more there is below."""

    HELP_TITLE = "Decision"

    @override
    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._say_what_is_left()

    @override
    def set_line_count(self, count: int) -> None:
        super().set_line_count(count)
        self._say_what_is_left()

    @override
    def on_resize(self) -> None:
        super().on_resize()
        self._say_what_is_left()

    def _say_what_is_left(self) -> None:
        left = self.line_count - self.scroll_offset.y - self.size.height
        if isinstance(self.parent, ApprovalPanel):
            self.parent.border_subtitle = f"↓ {count(left, 'more line')}" if left > 0 and self.size.height else ""


class ApprovalPanel(Pane):
    """Asks one question and sends `Decided`, once. The subject it shows is the one that the digest was made of."""

    @dataclass
    class Decided(Message):
        """A person has answered the question with that digest."""

        digest: str
        answer: Answer
        feedback: str | None = None

    @dataclass
    class EditWanted(Message):
        """A person wants to edit the plan that the question is about."""

        panel: ApprovalPanel

    HELP_TITLE = "Decision"
    ALLOW_MAXIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "answer('approve')", "Approve"),
        Binding("d", "answer('reject')", "Reject"),
        Binding("w", "words", "Reject, say why"),
        Binding("e", "edit", "Edit the plan"),
        Binding("r", "answer('replay')", "Replay the pass"),
        Binding("c", "answer('accept')", "Accept the result, and stop"),
        Binding("ctrl+x", "answer('abort')", "Abort the run", show=False),
        Binding("escape", "no_words", "Back to the question"),
    ]
    DEFAULT_CSS = (
        pane_css("ApprovalPanel")
        + """
    ApprovalPanel {
        height: auto; max-height: 60%; border: round $severity-medium; border-title-color: $severity-medium;
        &:focus-within { border: heavy $severity-medium; border-title-color: $severity-medium; }
        ApprovalText { height: auto; max-height: 100%; background: $background; }
        Input { dock: bottom; background: $panel; color: $aeon-text; margin: 0 1; display: none; }
        Static { dock: bottom; height: auto; max-height: 2; padding: 0 1; color: $aeon-muted; background: $background; }
        .keys { display: none; }
        &:focus-within .keys { display: block; }
        &:focus-within .away { display: none; }
    }
    ApprovalPanel.-words {
        Input { display: block; }
        .keys, &:focus-within .keys, .away { display: none; }
    }
    """
    )

    def __init__(
        self,
        point: str,
        subject: Mapping[str, Any],
        digest: str,
        pass_number: int = 1,
        assessments: Sequence[AssessmentView] = (),
    ) -> None:
        super().__init__()
        self.digest = digest
        self._point = point
        self._blocks = list(approval_blocks(point, subject, pass_number, assessments))
        self._asked = time.monotonic()
        self._answered = False
        self.pane_title = title(point, subject)

    def compose(self) -> ComposeResult:
        yield ApprovalText()
        yield Input(placeholder="why not? enter sends it, esc goes back", compact=True)
        yield Static(KEYS.get(self._point, CALL_KEYS), classes="keys", markup=False)
        yield Static(f"{self.pane_key or 'tab'} leads back here, to decide", classes="away", markup=False)

    def on_mount(self) -> None:
        text = self.query_one(ApprovalText)
        text.start(self._blocks, follow=False)
        text.focus()
        self.ask_again()
        self.app.bell()

    def ask_again(self) -> None:
        """Count the first half second from now: only now can a person see the question."""
        self._asked = time.monotonic()

    def say(self, problem: str) -> None:
        """Show above the question why what was done about it came to nothing: it is still to be answered."""
        self._answered = False
        self.query_one(ApprovalText).start([("high", f"✖ {problem}"), *self._blocks], follow=False)

    @property
    def _takes_keys(self) -> bool:
        return not self._answered and time.monotonic() - self._asked >= GRACE_SECONDS

    def _answer(self, answer: Answer, feedback: str | None = None) -> None:
        # Once: the run may already ask the next question, of the same digest, when the next key comes.
        self._answered = True
        self.post_message(self.Decided(self.digest, answer, feedback))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now: a key that the question does not take is the screen's."""
        if action == "no_words":
            return self.has_class("-words")
        if action == "edit":
            return self._point in REVIEWED
        if (action, parameters) in (("answer", ("replay",)), ("answer", ("accept",))):
            return self._point == "pass"
        return super().check_action(action, parameters)

    def action_answer(self, answer: Answer) -> None:
        """Send the answer; not in the first half second."""
        if self._takes_keys:
            self._answer(answer)

    def action_words(self) -> None:
        """Ask for the words of a rejection; not in the first half second."""
        if self._takes_keys:
            self.add_class("-words")
            self.query_one(Input).focus()

    def action_edit(self) -> None:
        """Ask for the plan to be opened in an editor; not in the first half second."""
        if self._takes_keys:
            self._answered = True
            self.post_message(self.EditWanted(self))

    def action_no_words(self) -> None:
        """Go back from the words to the question."""
        self.remove_class("-words")
        self.query_one(ApprovalText).focus()

    @on(Input.Submitted)
    def _with_words(self, event: Input.Submitted) -> None:
        event.stop()
        if self._takes_keys:
            self._answer("reject", event.value.strip() or None)
