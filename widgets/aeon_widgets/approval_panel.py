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

from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text_view import Block, TextView

Answer = Literal["approve", "reject", "abort"]
GRACE_SECONDS = 0.5
"""Keys typed so soon after the question appeared were meant for something else."""
KEYS = "a approve · d reject · w reject with words · ctrl+x abort the run"


class ApprovalText(TextView):
    """The question; scrolls."""

    HELP_TITLE = "Decision"


class ApprovalPanel(Pane):
    """Asks one question and sends `Decided`. The subject it shows is the one that the digest was made of."""

    @dataclass
    class Decided(Message):
        """A person has answered the question with that digest."""

        digest: str
        answer: Answer
        feedback: str | None = None

    HELP_TITLE = "Decision"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "answer('approve')", "Approve"),
        Binding("d", "answer('reject')", "Reject"),
        Binding("w", "words", "Reject with words"),
        Binding("ctrl+x", "answer('abort')", "Abort the run", show=False),
        Binding("escape", "no_words", "Back to the question", show=False),
    ]
    DEFAULT_CSS = (
        pane_css("ApprovalPanel")
        + """
    ApprovalPanel {
        height: auto; max-height: 60%; border: heavy $severity-medium; border-title-color: $severity-medium;
        &:focus-within { border: heavy $severity-medium; border-title-color: $severity-medium; }
        ApprovalText { height: auto; max-height: 100%; background: $background; }
        Input { height: 1; border: none; padding: 0 1; background: $panel; color: $aeon-text; display: none; }
        Static { height: 1; padding: 0 1; color: $aeon-muted; background: $background; }
    }
    ApprovalPanel.-words { Input { display: block; } Static { display: none; } }
    """
    )

    def __init__(self, point: str, subject: Mapping[str, Any], digest: str) -> None:
        super().__init__()
        self.digest = digest
        self._point, self._subject = point, subject
        self._asked = time.monotonic()
        self.pane_title = title(point, subject)

    def compose(self) -> ComposeResult:
        yield ApprovalText()
        yield Input(placeholder="why not? enter sends it, esc goes back")
        yield Static(KEYS, markup=False)

    def on_mount(self) -> None:
        text = self.query_one(ApprovalText)
        text.start(list(approval_blocks(self._point, self._subject)), follow=False)
        text.focus()
        self._asked = time.monotonic()
        self.app.bell()

    def action_answer(self, answer: Answer) -> None:
        """Send the answer; not in the first half second."""
        if time.monotonic() - self._asked >= GRACE_SECONDS:
            self.post_message(self.Decided(self.digest, answer))

    def action_words(self) -> None:
        """Ask for the words of a rejection."""
        self.add_class("-words")
        self.query_one(Input).focus()

    def action_no_words(self) -> None:
        """Go back from the words to the question."""
        self.remove_class("-words")
        self.query_one(ApprovalText).focus()

    @on(Input.Submitted)
    def _with_words(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Decided(self.digest, "reject", event.value.strip() or None))


def title(point: str, subject: Mapping[str, Any]) -> str:
    """Return what is asked, in a few words."""
    if point == "tool":
        return f"May {subject.get('tool_name', 'a tool')} be called?"
    return "The budget is used up. May it be raised?" if point == "budget" else f"Decide: {point}"


def approval_blocks(point: str, subject: Mapping[str, Any]) -> Iterable[Block]:
    """Yield what a person decides about, in full."""
    if point == "budget":
        for key, words in _MONEY.items():
            if isinstance(subject.get(key), int | float):
                yield "", f"{words:<34} ${subject[key]:,.4f}"
        return
    arguments = subject.get("arguments")
    if not isinstance(arguments, dict):
        yield "", json.dumps(dict(subject), ensure_ascii=False, indent=2)
        return
    yield "muted", f"for the step: {subject.get('description', '')}"
    if reason := subject.get("reason"):
        yield "muted", f"asked because: {reason}"
    old, new = arguments.get("old_string"), arguments.get("new_string")
    told = isinstance(old, str) and isinstance(new, str)
    for name, value in arguments.items():
        if told and name in ("old_string", "new_string"):
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        yield ("bold", f"{name}: {shown}") if "\n" not in shown else ("bold", f"{name}:\n{shown}")
    if told:
        yield from _difference(str(old), str(new))


_MONEY = {
    "spent_usd": "spent",
    "held_usd": "held for calls without a known cost",
    "reserved_usd": "the next call may cost up to",
    "limit_usd": "budget",
    "proposed_usd": "approve raises it to",
}


def _difference(old: str, new: str) -> Iterable[Block]:
    for line in difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "after", lineterm="", n=3):
        style = {"+": "complete", "-": "failed", "@": "muted"}.get(line[:1], "")
        yield style, line
