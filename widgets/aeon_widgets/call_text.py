"""What a person decides about a call, or about money, as text: all of it, so that nothing hides behind a name."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aeon_core.journal.values import dict_of, str_of
from aeon_core.money import money
from aeon_widgets.call_rows import CALL_LABELS
from aeon_widgets.text import MAX_SHOWN, one_line
from aeon_widgets.text_view import Block

SHORT = 40
"""A value up to this many characters is next to its name; a longer one is below, so that none can pass for a name."""
CUT_AT = "… ["
"""Begins the line of a diff that says where it was cut."""
_SAID_BY_DIFF = ("file_path", "old_string", "new_string", "replace_all", "diff", "content")
DIFF_LINES = 5_000
"""Longer texts are shown one after the other: comparing them would take too long."""
SHELL = "code bash"
"""The style of a command."""
MODEL_SAYS = 300
"""Characters that are shown of what the model says about its call: it hides nothing of the call itself."""
Subject = Mapping[str, Any]


def call_title(subject: Subject) -> str:
    """Return in a question what a call would do: `Edit notes.md?`, `Run this command?`, else `Call send_mail?`."""
    name, arguments = str_of(subject.get("tool_name")), dict_of(subject.get("arguments")) or {}
    path, url = str_of(arguments.get("file_path")), str_of(arguments.get("url"))
    if name in ("Edit", "Write") and path:
        return f"{name} {one_line(path, 120)}?"
    if name == "Bash" and str_of(arguments.get("command")):
        return "Run this command?"
    if name.lower().rpartition("__")[2] in ("fetch", "webfetch") and url:
        return f"Fetch {one_line(url, 120)}?"
    return f"Call {one_line(name or 'a tool', 120)}?"


def call_blocks(point: str, subject: Subject) -> Iterator[Block]:
    """Yield a call as it would be made, after why it is asked about."""
    arguments = subject.get("arguments")
    if not isinstance(arguments, dict):
        yield from whole("", json.dumps(dict(subject), ensure_ascii=False, indent=2))
        return
    if point == "unknown":
        yield "medium", "The process ended during this call: it may have taken effect. Check before you decide."
    name = one_line(str_of(subject.get("tool_name")), 120)
    if name != "Bash" and name not in call_title(subject):
        yield "muted", f"tool: {name}"
    if description := subject.get("description"):
        yield "muted", f"for the step: {_brief(description)}"
    if reason := subject.get("reason"):
        yield "muted", f"asked because: {_brief(reason)}"
    why_not = str_of((dict_of(subject.get("proposal")) or {}).get("why_not"))
    if why_not and why_not != reason:
        yield "muted", f"no rule can always allow it: {_brief(why_not)}"
    preview = dict_of(subject.get("preview")) or {}
    if problem := str_of(preview.get("problem")):
        yield "high", f"✖ the call would fail: {_brief(problem)}"
    if not (diff := str_of(preview.get("diff"))):
        yield from argument_blocks(arguments)
        return
    # What the diff says in full is not said again.
    said = () if any(line.startswith(CUT_AT) for line in diff.split("\n")) else _SAID_BY_DIFF
    yield from argument_blocks({name: value for name, value in arguments.items() if name not in said})
    path = one_line(str_of(arguments.get("file_path")), 200)
    yield from whole(f"diff {path}", diff)


def argument_blocks(arguments: Mapping[str, Any]) -> Iterator[Block]:
    """Yield each argument with its name, and two texts of which one replaces the other as their difference."""
    old, new = arguments.get("old_string"), arguments.get("new_string")
    compared = isinstance(old, str) and isinstance(new, str)
    for name, value in _flat(arguments):
        if compared and name in ("old_string", "new_string"):
            continue
        named = one_line(name, 100)
        if len(value) <= SHORT and "\n" not in value and name != "command":
            yield "bold", f"{named}: {value}"
        else:
            yield "bold", f"{named}:"
            yield from whole(SHELL if name == "command" else "", value)
    if compared:
        yield from _difference(str(old), str(new))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values as text; what an object holds under its name and a dot."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{name}.")
        else:
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _brief(text: Any) -> str:
    shown = one_line(str(text), MODEL_SAYS)
    return f"{shown}…" if len(str(text)) > MODEL_SAYS else shown


_MONEY = {
    "spent_usd": "spent",
    "held_usd": "reserved for calls of unknown cost",
    "reserved_usd": "the next call may cost up to",
    "limit_usd": "budget",
}
_MONEY_WIDTH = max(map(len, _MONEY.values()))


def budget_blocks(subject: Subject) -> Iterator[Block]:
    """Yield what was spent, and what the next call may cost."""
    if model := subject.get("model"):
        purpose = str_of(subject.get("purpose"))
        yield "muted", f"the next call asks {_brief(model)} to {CALL_LABELS.get(purpose, _brief(purpose))}"
    for key, words in _MONEY.items():
        usd = subject.get(key)
        if isinstance(usd, int | float) and (usd or key != "held_usd"):
            yield "", f"{words:<{_MONEY_WIDTH}} {money(usd)}"


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


def whole(style: str, text: str) -> Iterator[Block]:
    """Yield a text of any length in blocks that are each shown whole, broken between lines where there are some."""
    while len(text) > MAX_SHOWN:
        end = text.rfind("\n", 1, MAX_SHOWN)
        yield style, text[: end if end > 0 else MAX_SHOWN]
        text = text[end + 1 if end > 0 else MAX_SHOWN :]
    yield style, text
