"""What a run waits for, as text: what would happen, in full."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aeon_core.journal.view.model import AssessmentView
from aeon_core.money import money
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
