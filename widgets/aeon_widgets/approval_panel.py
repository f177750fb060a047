"""What the run waits for: what would happen, in full, and what a person can answer."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input, Static
from typing_extensions import override

from aeon_core.budget import money
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import MAX_SHOWN, count, one_line
from aeon_widgets.text_view import Block, TextView

Answer = Literal["approve", "reject", "abort"]
GRACE_SECONDS = 0.5
"""Keys typed so soon after the question appeared were meant for something else."""
KEYS = "a approve · d reject · w reject, say why · ctrl+x abort"
"""Fits a screen of 60 columns."""
SHORT = 40
"""A value of so many characters stands beside its name; a longer one below, so that none can pass for a name."""
DIFF_LINES = 5_000
"""Longer texts are shown one after the other: comparing them would take too long."""


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

    HELP_TITLE = "Decision"
    ALLOW_MAXIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "answer('approve')", "Approve"),
        Binding("d", "answer('reject')", "Reject"),
        Binding("w", "words", "Reject, say why"),
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
        Static { dock: bottom; height: 1; padding: 0 1; color: $aeon-muted; background: $background; }
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

    def __init__(self, point: str, subject: Mapping[str, Any], digest: str) -> None:
        super().__init__()
        self.digest = digest
        self._point, self._subject = point, subject
        self._asked = time.monotonic()
        self._answered = False
        self.pane_title = title(point, subject)

    def compose(self) -> ComposeResult:
        yield ApprovalText()
        yield Input(placeholder="why not? enter sends it, esc goes back", compact=True)
        yield Static(KEYS, classes="keys", markup=False)
        yield Static(f"{self.pane_key or 'tab'} leads back here, to decide", classes="away", markup=False)

    def on_mount(self) -> None:
        text = self.query_one(ApprovalText)
        text.start(list(approval_blocks(self._point, self._subject)), follow=False)
        text.focus()
        self.ask_again()
        self.app.bell()

    def ask_again(self) -> None:
        """Count the first half second from now: only now can a person see the question."""
        self._asked = time.monotonic()

    @property
    def _takes_keys(self) -> bool:
        return not self._answered and time.monotonic() - self._asked >= GRACE_SECONDS

    def _answer(self, answer: Answer, feedback: str | None = None) -> None:
        # Once: the run may already ask the next question, of the same digest, when the next key comes.
        self._answered = True
        self.post_message(self.Decided(self.digest, answer, feedback))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now: esc is the screen's where no words are being typed."""
        if action == "no_words":
            return self.has_class("-words")
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

    def action_no_words(self) -> None:
        """Go back from the words to the question."""
        self.remove_class("-words")
        self.query_one(ApprovalText).focus()

    @on(Input.Submitted)
    def _with_words(self, event: Input.Submitted) -> None:
        event.stop()
        if self._takes_keys:
            self._answer("reject", event.value.strip() or None)


def title(point: str, subject: Mapping[str, Any]) -> str:
    """Return what is asked, in a few words."""
    if point == "tool":
        return f"May {subject.get('tool_name', 'a tool')} be called?"
    return "The next call might exceed the budget. May it be raised?" if point == "budget" else f"Decide: {point}"


def approval_blocks(point: str, subject: Mapping[str, Any]) -> Iterable[Block]:
    """Yield what a person decides about, in full. What the model says about it is cut, so that it hides nothing."""
    if point == "budget":
        yield from _money_blocks(subject)
        return
    arguments = subject.get("arguments")
    if not isinstance(arguments, dict):
        yield from _whole("", json.dumps(dict(subject), ensure_ascii=False, indent=2))
        return
    yield "muted", f"for the step: {_brief(subject.get('description', ''))}"
    if reason := subject.get("reason"):
        yield "muted", f"asked because: {_brief(reason)}"
    old, new = arguments.get("old_string"), arguments.get("new_string")
    told = isinstance(old, str) and isinstance(new, str)
    for name, value in arguments.items():
        if told and name in ("old_string", "new_string"):
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        named = one_line(name, 100)
        if len(shown) <= SHORT and "\n" not in shown:
            yield "bold", f"{named}: {shown}"
        else:
            yield "bold", f"{named}:"
            yield from _whole("", shown)
    if told:
        yield from _difference(str(old), str(new))


MODEL_SAYS = 300
"""Characters that are shown of what the model says about its call."""


def _brief(text: Any) -> str:
    shown = one_line(str(text), MODEL_SAYS)
    return f"{shown}…" if len(str(text)) > MODEL_SAYS else shown


def _whole(style: str, text: str) -> Iterable[Block]:
    """Yield a text of any length in blocks that are each shown whole, broken between lines where there are some."""
    while len(text) > MAX_SHOWN:
        end = text.rfind("\n", 1, MAX_SHOWN)
        yield style, text[: end if end > 0 else MAX_SHOWN]
        text = text[end + 1 if end > 0 else MAX_SHOWN :]
    yield style, text


_MONEY = {
    "spent_usd": "spent",
    "held_usd": "held for calls without a known cost",
    "reserved_usd": "the next call may cost up to",
    "limit_usd": "budget",
    "proposed_usd": "approve raises it to",
}


def _money_blocks(subject: Mapping[str, Any]) -> Iterable[Block]:
    if model := subject.get("model"):
        yield "muted", f"the next call: {_brief(subject.get('purpose', ''))}, to {_brief(model)}"
    for key, words in _MONEY.items():
        usd = subject.get(key)
        if isinstance(usd, int | float) and (usd or key != "held_usd"):
            yield "bold" if key == "proposed_usd" else "", f"{words:<36} {money(usd)}"
    yield "muted", "reject ends the run here, with what is done so far"


def _difference(old: str, new: str) -> Iterable[Block]:
    # Not `splitlines`: it would hide a change of the last line's end, and break lines elsewhere than the file does.
    before, after = old.split("\n"), new.split("\n")
    if not before[-1] and not after[-1]:
        del before[-1], after[-1]
    if len(before) + len(after) > DIFF_LINES:
        yield from (("failed", f"-{line}") for line in before)
        yield from (("complete", f"+{line}") for line in after)
        return
    for line in list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]:
        style = {"+": "complete", "-": "failed", "@": "muted"}.get(line[:1], "")
        yield style, line
