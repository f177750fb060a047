"""The rule that is proposed to a person who always wants to allow calls like the one they are asked about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from aeon_core.errors import ToolError, UsageError
from aeon_core.policy import Policy, PolicyRules
from aeon_core.tools.base import Tool

MAX_RULE = 200
"""Characters of a rule; a longer one is neither proposed nor taken: nobody reads what it allows."""
_ARGUMENT = re.compile(r"(\w+)=")
_FORM = re.compile(r"(?P<tool>[^()\s]+)(?:\((?P<pattern>.*)\))?")


def propose_rule(
    policy: Policy, tool: Tool, arguments: Mapping[str, Any], *, substitutes: str | None, objection: str | None
) -> dict[str, Any]:
    """Return the proposal of a `Verdict`: a rule that lets this policy allow the call, or why none does."""
    own, parts = tool.verdict(dict(arguments)), tool.parts(dict(arguments))
    if own is not None:
        return {"why_not": own.reason}
    if parts is None:
        return {"why_not": "the effect of the call is unknown"}
    if len(parts) != 1:
        return {"why_not": "the call does several things"}
    names = list(tool.input_schema.get("properties", {}))
    try:
        pattern = tool.rule_pattern(dict(arguments))
    except ToolError as error:
        return {"why_not": error.message}
    if pattern is not None and (named := _ARGUMENT.match(pattern)) and named[1] in names:
        pattern = f"{names[0]}={pattern}"
    rule = tool.name if pattern is None else f"{tool.name}({pattern})"
    if len(rule) > MAX_RULE or not rule.isprintable():
        return {"why_not": "the call is too long for a rule"}
    verdict = policy.with_rule(rule).verdict(tool, arguments, substitutes=substitutes, objection=objection)
    if verdict.answer != "allow":
        return {"why_not": verdict.reason}
    about = parts[0].get(names[0]) if names else None
    return {"rule": rule, **({"about": about} if isinstance(about, str) and len(about) <= MAX_RULE else {})}


def rule_problem(rule: str, tool_name: str, about: str | None, names: Sequence[str] = ()) -> str | None:
    """Return what is wrong with a rule that a person wants for a call, None where nothing is: one line.

    `about` is the text of the proposal that the rule is held against, `names` are those of the tool's arguments.
    """
    text = rule.strip()
    form = _FORM.fullmatch(text)
    if form is None:
        return "a rule has the form TOOL, TOOL(GLOB) or TOOL(ARGUMENT=GLOB)"
    if len(text) > MAX_RULE:
        return f"the rule is too long; use at most {MAX_RULE} characters"
    try:
        PolicyRules(allow=(text,))
    except (UsageError, ValueError):
        return f"{text!r} is not a rule"
    if any(sign in form["tool"] for sign in "*?[") or form["tool"] != tool_name:
        return f"the rule must begin with {tool_name}: it is saved for calls like this one"
    pattern = form["pattern"]
    if pattern is None or about is None:
        return None
    if (named := _ARGUMENT.match(pattern)) and named[1] in names:
        if named[1] != names[0]:
            return None
        pattern = pattern[named.end() :]
    if fnmatchcase(about, pattern) or (pattern.endswith(" *") and fnmatchcase(about, pattern.removesuffix(" *"))):
        return None
    return f"the rule does not fit this call: {about}"
