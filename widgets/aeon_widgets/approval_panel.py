"""What the run waits for: what would happen, in full, and what a person can answer."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from aeon_core.journal.view.model import AssessmentView
from aeon_core.money import money
from aeon_widgets.decision_panel import DecisionPanel
from aeon_widgets.key_guard import KeyGuard
from aeon_widgets.review_text import pass_blocks, plan_blocks, review_title, whole
from aeon_widgets.text import one_line
from aeon_widgets.text_view import Block

REVIEWED = ("plan", "pass")
"""The points at which a person looks at what there is, rather than at what is about to be done."""
SHORT = 40
"""A value of so many characters stands beside its name; a longer one below, so that none can pass for a name."""
DIFF_LINES = 5_000
"""Longer texts are shown one after the other: comparing them would take too long."""


def title(point: str, subject: Mapping[str, Any]) -> str:
    """Return what is asked, in a few words."""
    if point in REVIEWED:
        return review_title(point, subject)
    if point == "tool":
        return f"May {subject.get('tool_name', 'a tool')} be called?"
    if point == "unknown":
        return f"{subject.get('tool_name', 'A tool')} was cut off. Call it again?"
    return "The next call might exceed the budget. Raise it?" if point == "budget" else f"Decide: {point}"


def approval_blocks(
    point: str, subject: Mapping[str, Any], pass_number: int = 1, assessments: Sequence[AssessmentView] = ()
) -> Iterable[Block]:
    """Yield what a person decides about, in full. What the model says about a call is cut, so that it hides nothing.

    A pass is shown against those that were assessed before it.
    """
    if point == "plan":
        return plan_blocks(subject, pass_number)
    if point == "pass":
        return pass_blocks(subject, pass_number, assessments)
    return _money_blocks(subject) if point == "budget" else _call_blocks(point, subject)


def _call_blocks(point: str, subject: Mapping[str, Any]) -> Iterable[Block]:
    arguments = subject.get("arguments")
    if not isinstance(arguments, dict):
        yield from whole("", json.dumps(dict(subject), ensure_ascii=False, indent=2))
        return
    if point == "unknown":
        yield from ((("medium" if line == 0 else "muted"), text) for line, text in enumerate(_UNKNOWN))
    else:
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
            yield from whole("", shown)
    if told:
        yield from _difference(str(old), str(new))


MODEL_SAYS = 300
"""Characters that are shown of what the model says about its call."""


def _brief(text: Any) -> str:
    shown = one_line(str(text), MODEL_SAYS)
    return f"{shown}…" if len(str(text)) > MODEL_SAYS else shown


_UNKNOWN = (
    "The process ended during this call: whether it took effect is unknown. Check before you decide.",
    "approve calls it again, so it may take effect twice; reject fails the step",
)


_MONEY = {
    "spent_usd": "spent",
    "held_usd": "held for calls of unknown cost",
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
    yield "muted", "edit sets another budget; reject ends the run here with what is done so far"


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
