"""Reading a Chat Completion, from whatever server or library wrote it."""

from __future__ import annotations

from typing import Any

from aeon_core.llm._endpoint import Endpoint
from aeon_core.llm._openai_stream import completion_usage
from aeon_core.llm.base import LLMResponse, ToolCallDict, Usage
from aeon_core.llm.errors import told_failure, unusable
from aeon_core.llm.wire import ToolNames, read_arguments, tool_call

_STOP_REASONS = {
    "stop": "end",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


def read_completion(body: Any, place: Endpoint, names: ToolNames) -> LLMResponse:
    """Return the reply in a completion. Raises LLMError for an error in its place, and for one of a wrong shape."""
    if not isinstance(body, dict):
        raise unusable(place, f"it is JSON of type {type(body).__name__}, expected an object")
    usage = completion_usage(body.get("usage"))
    if body.get("error"):
        raise told_failure(body, place, usage)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise unusable(place, "it has no choices with a message", usage)
    text, refusal = _text(message.get("content"), place, usage), message.get("refusal")
    calls = _calls(message.get("tool_calls"), names, place, usage)
    stop = choice.get("finish_reason")
    reason = _STOP_REASONS.get(stop, stop) if isinstance(stop, str) else None
    if isinstance(refusal, str) and refusal:
        text, reason = text or refusal, "refusal"
    elif calls and reason in (None, "end"):
        reason = "tool_use"
    model = body.get("model")
    return LLMResponse(
        text=text,
        tool_calls=calls,
        usage=usage,
        stop_reason=reason,
        model=model if isinstance(model, str) else None,
    )


def _text(content: Any, place: Endpoint, usage: Usage | None) -> str:
    if content is None:
        return ""
    parts = [{"text": content}] if isinstance(content, str) else content
    if isinstance(parts, list) and all(isinstance(part, dict) for part in parts):
        texts = [part.get("text", "") for part in parts]
        if all(isinstance(text, str) for text in texts):
            return "".join(texts)
    raise unusable(place, f"its content is of type {type(content).__name__}, expected text", usage)


def _calls(calls: Any, names: ToolNames, place: Endpoint, usage: Usage | None) -> list[ToolCallDict]:
    read = []
    for call in calls if isinstance(calls, list) else [calls] if calls else []:
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        arguments = read_arguments(function.get("arguments")) if isinstance(function, dict) else None
        if not isinstance(name, str) or not name or arguments is None:
            raise unusable(place, "a tool call has no name, or arguments of a wrong type", usage)
        read.append(tool_call(call.get("id"), names.real(name), arguments))
    return read
