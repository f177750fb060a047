"""Reading the tool call out of a reply: native tool use, or text in the contract's form (core FR-024, FR-025)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.llm.base import LLMResponse, ToolCallDict
from aeon_core.plain import clean_text, plain
from aeon_core.plan.fields import shown
from aeon_core.prompts.sections import to_line
from aeon_core.reasoning import without_thinking
from aeon_core.supervisor.lenient import arguments_of_call
from aeon_core.supervisor.replies import as_object, read_arguments, read_call, read_json

_BRACKET = re.compile(r"[\[\]{}]")
_MAX_SENTENCE = 200


@dataclass(slots=True)
class CallRead:
    """A tool call as far as it could be read. Without problems `arguments` are there, not yet validated."""

    original: dict[str, Any]
    text: str
    arguments: dict[str, Any] | None = None
    local: bool = False
    """Whether it took a local repair to read it."""
    unparseable: bool = False
    problems: list[str] = field(default_factory=list)


def call_in(response: LLMResponse, tool: str) -> CallRead:
    """Return the call of `tool` in a reply; native tool use wins over text beside it."""
    return _native_call(response.tool_calls, tool) if response.tool_calls else _call_in_text(response.text, tool)


def _native_call(calls: list[ToolCallDict], tool: str) -> CallRead:
    matching = [call for call in calls if call["name"] == tool]
    if len(matching) != 1:
        names = ", ".join(shown(call["name"]) for call in calls[:5])
        original = {"tool_calls": plain(calls)}
        problem = f"expected exactly one call of {tool!r}, the tool of the step, got {len(matching)} among {names}"
        known = arguments_of_call(plain(calls), tool) if len(calls) == 1 else None
        return CallRead(original, to_line(original), known, problems=[problem])
    original = {"tool_name": tool, "arguments": plain(matching[0]["arguments"])}
    call = CallRead(original, to_line(original))
    try:
        call.arguments, call.local = read_arguments(original["arguments"])
    except ValueError as error:
        call.unparseable = True
        call.problems = [f"arguments: {error}"]
    return call


def _call_in_text(text: str, tool: str) -> CallRead:
    text = without_thinking(clean_text(text))
    call = CallRead({"text": text}, text)
    if text.strip() and not _BRACKET.search(text):
        call.unparseable = True
        call.problems = [f"the model made no call: {' '.join(text[:_MAX_SENTENCE].split())}"]
        return call
    try:
        value, call.local = read_json(text)
    except ValueError as error:
        call.unparseable = True
        call.problems = [str(error)]
        return call
    if not call.local:
        call.original = as_object(value)
    try:
        call.arguments = read_call(value, tool)
    except ValidationError as error:
        call.problems = error.context["problems"]
        call.arguments = arguments_of_call(value, tool)
    return call
