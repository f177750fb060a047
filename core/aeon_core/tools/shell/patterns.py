"""The pattern of the rule that is proposed for a command: no wider than a person expects who reads it."""

from __future__ import annotations

import re

from aeon_core.errors import ToolError
from aeon_core.tools.base import exact_pattern
from aeon_core.tools.shell.commands import SINKS, read
from aeon_core.tools.shell.programs import GIT_RECORDS, ONLY_READ

_COMPOUND = re.compile(r"\s*(?:(?:for|while|until|if|time)\b|[!({])")


def rule_pattern(text: str) -> str:
    """Return the pattern for a command line. Raises ToolError where it is not one plain command, with the reason."""
    line = read(text)
    if line.doubt is not None or line.unread:
        raise ToolError(line.doubt or "what the line runs is unknown")
    if len(line.commands) != 1 or _COMPOUND.match(text):
        raise ToolError("it is a compound command")
    command = line.commands[0]
    if command.stdin is not None or any(redirect.target not in SINKS for redirect in command.redirects):
        raise ToolError("it redirects input or output")
    if command.assignments or not command.words:
        raise ToolError("it sets a variable")
    first, second = (*command.words[:2], "")[:2]
    if first in ONLY_READ:
        return f"{first} *"
    if first == "git" and second in GIT_RECORDS:
        return f"git {second} *"
    if not all(command.literal):
        raise ToolError("the values of its variables and patterns may change")
    return exact_pattern(command.text)
