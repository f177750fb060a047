"""What the run waits for: what would happen, in full, and what a person can answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import Input, Static
from typing_extensions import override

from aeon_core.journal.view import AssessmentView
from aeon_widgets.answer_keys import AnswerKeys
from aeon_widgets.approval_text import approval_blocks, title
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import count
from aeon_widgets.text_view import TextView

Answer = Literal["approve", "reject", "replay", "accept", "abort"]
GRACE_SECONDS = 0.5
"""Keys typed so soon after the question appeared were meant for something else."""
KEYS = {
    "plan": "a approve · d reject · w reject, say why · e edit · ctrl+x abort",
    "unknown": "a approve · d reject · w reject, say why · ctrl+x abort",
    "pass": "a approve · d reject · w why · e edit · r replay · c accept · ctrl+x abort",
}
"""On two lines where the screen has 60 columns."""
CALL_KEYS = "a approve · d reject · w say why · e edit · ctrl+x abort"
"""Of a call and of the budget; fits a screen of 60 columns."""


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
        if isinstance(self.parent, Pane):
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
        """A person wants to edit what the question is about: a plan, arguments, a budget."""

        panel: ApprovalPanel

    HELP_TITLE = "Decision"
    ALLOW_MAXIMIZE = True
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
        yield AnswerKeys(KEYS.get(self._point, CALL_KEYS), classes="keys")
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

    def wait_on(self) -> None:
        """Take an answer again: the one that was sent came to nothing."""
        self._answered = False

    def say(self, problem: str) -> None:
        """Show above the question why what was done about it came to nothing: it is still to be answered."""
        self.wait_on()
        self.query_one(ApprovalText).start([("high", f"✖ {problem}"), *self._blocks], follow=False)

    def on_key(self, event: Key) -> None:
        """Keep what is typed in the first half second from doing anything, here or elsewhere: it was meant for what
        was there before. Only keys with ctrl go on to the app."""
        if not self._answered and not self._takes_keys and not event.key.startswith("ctrl+"):
            event.stop()
            event.prevent_default()

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
            return self._point != "unknown"
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
            # At once: the next key is a letter of the words, and no answer.
            self.screen.set_focus(self.query_one(Input))

    def action_edit(self) -> None:
        """Ask for an editor; not in the first half second."""
        if self._takes_keys:
            self._answered = True
            self.post_message(self.EditWanted(self))

    def action_no_words(self) -> None:
        """Go back from the words to the question."""
        self.remove_class("-words")
        self.query_one(ApprovalText).focus()

    @on(AnswerKeys.Clicked)
    async def _clicked(self, event: AnswerKeys.Clicked) -> None:
        event.stop()
        actions = {binding.key: binding.action for binding in self.BINDINGS if isinstance(binding, Binding)}
        await self.run_action(actions[event.key])

    @on(Input.Submitted)
    def _with_words(self, event: Input.Submitted) -> None:
        event.stop()
        if self._takes_keys:
            self._answer("reject", event.value.strip() or None)


if __name__ == "__main__":
    from aeon_widgets.demo import main

    main("approval_panel")
