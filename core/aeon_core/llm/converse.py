"""Converse, the request and reply format of Amazon Bedrock: what goes out and what comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aeon_core.errors import LLMError
from aeon_core.json_safe import NotJsonSafeError, json_safe, parse_json
from aeon_core.llm._endpoint import Endpoint
from aeon_core.llm.base import LLMRequest, LLMResponse, Message, ToolCallDict, Usage
from aeon_core.llm.errors import unusable
from aeon_core.llm.strict_schema import closed_schema
from aeon_core.llm.wire import ToolNames, read_arguments, read_usage, tool_call, turns

_STOP_REASONS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "tool_use": "tool_use",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
}
_INPUTS = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
_BOUNDS = {
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"),
    *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
}


class ConverseTools:
    """The tools of one request. Converse refuses a conversation with tool uses beside which no tool is declared."""

    def __init__(self, request: LLMRequest) -> None:
        self._tools = request.tools or _used_tools(request.messages)
        self.names = ToolNames(self._tools)

    def config(self, forced: str | None = None) -> dict[str, Any] | None:
        """Return the `toolConfig`, with the tool that has to be called; None where no tools are declared."""
        if not self._tools:
            return None
        choice = {"toolChoice": {"tool": {"name": self.names.wire(forced)}}} if forced is not None else {}
        return {"tools": [_tool(tool, self.names) for tool in self._tools], **choice}


def converse_params(model_id: str, request: LLMRequest, tools: ConverseTools) -> dict[str, Any]:
    """Return the parameters of a `converse` call, but for the structured output."""
    params: dict[str, Any] = {
        "modelId": model_id,
        "messages": turns(request.messages, lambda message: _blocks(message, tools.names)),
        "inferenceConfig": {"maxTokens": request.max_tokens},
    }
    if request.system.strip():
        params["system"] = [{"text": request.system}]
    if (config := tools.config()) is not None:
        params["toolConfig"] = config
    return params


def output_config(request: LLMRequest) -> dict[str, Any] | None:
    """Return the `outputConfig` that asks for the request's schema; None where it cannot be said there."""
    closed = closed_schema(request.schema)
    if closed is None:
        return None
    definition = {"name": f"aeon_{request.purpose}", "schema": json.dumps(_unbounded(closed), ensure_ascii=False)}
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}


def converse_usage(usage: Any) -> Usage | None:
    """Return the tokens of a reply, those read from and written to the cache among its input."""
    counted = read_usage(usage, _INPUTS, ("outputTokens",))
    if counted is not None:
        if read := _tokens(usage, "cacheReadInputTokens"):
            counted["cache_read_tokens"] = read
        if written := _tokens(usage, "cacheWriteInputTokens"):
            counted["cache_write_tokens"] = written
    return counted


def read_reply(reply: dict[str, Any], place: Endpoint, names: ToolNames) -> LLMResponse:
    """Return the reply to a `converse` call. Raises LLMError, retryable, with the usage, for one that is none."""
    usage = converse_usage(reply.get("usage"))
    try:
        output, stop = json_safe(reply.get("output")), reply.get("stopReason")
    except NotJsonSafeError as error:
        raise unusable(place, f"its message cannot be written as JSON: {error}", usage) from None
    message = output.get("message") if isinstance(output, dict) else None
    blocks = message.get("content") if isinstance(message, dict) else None
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise unusable(place, "it has no list of content blocks", usage)
    texts = [block["text"] for block in blocks if "text" in block]
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    if not all(isinstance(text, str) for text in texts):
        raise unusable(place, "a block's text is no text", usage)
    if not all(isinstance(use, dict) and isinstance(use.get("name"), str) and use["name"] for use in uses):
        raise unusable(place, "it has a tool use without a name", usage)
    return LLMResponse(
        text="".join(texts),
        tool_calls=[_call(use, names) for use in uses],
        usage=usage,
        stop_reason=_STOP_REASONS.get(stop, stop) if isinstance(stop, str) else None,
    )


def unreadable(body: bytes, place: Endpoint) -> LLMError:
    """Return the error for a body in which the SDK found no reply: it raises nothing for a cut or an empty one."""
    try:
        document = parse_json(body)
    except ValueError as error:
        page = body.lstrip()[:1] == b"<"
        why = "it is an HTML page; is the base URL right?" if page else f"it is no JSON ({error})"
        return unusable(place, why if body.strip() else "it is empty")
    usage = converse_usage(document.get("usage")) if isinstance(document, dict) else None
    return unusable(place, "it has no message of content blocks", usage)


def _tokens(usage: Any, name: str) -> int:
    counted = read_usage(usage, (name,), ())
    return counted["input_tokens"] if counted else 0


def _call(use: dict[str, Any], names: ToolNames) -> ToolCallDict:
    given = use.get("input")
    arguments = read_arguments(given)
    text = json.dumps(given, ensure_ascii=False) if arguments is None else arguments
    return tool_call(use.get("toolUseId"), names.real(use["name"]), text)


def _blocks(message: Message, names: ToolNames) -> list[dict[str, Any]]:
    content = message["content"]
    if message["role"] == "tool":
        # Blank text is refused, and so is a result without content.
        result: dict[str, Any] = {"content": [{"text": content if content.strip() else "(no output)"}]}
        status = {"status": "error"} if message.get("is_error") else {}
        return [{"toolResult": {"toolUseId": message.get("tool_call_id", ""), **result, **status}}]
    blocks: list[dict[str, Any]] = [{"text": content}] if content.strip() else []
    for call in message.get("tool_calls", []) if message["role"] == "assistant" else []:
        arguments = read_arguments(call["arguments"])
        # What was no object comes back as the text it was, under a key of its own.
        given = arguments if isinstance(arguments, dict) else {"text": arguments}
        blocks.append({"toolUse": {"toolUseId": call.get("id", ""), "name": names.wire(call["name"]), "input": given}})
    return blocks


def _used_tools(messages: list[Message]) -> list[dict[str, Any]]:
    used = (call["name"] for message in messages for call in message.get("tool_calls", []))
    return [{"name": name} for name in dict.fromkeys(used)]


def _tool(tool: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    schema = tool.get("input_schema") or {"properties": {}}
    spec = {"name": names.wire(str(tool["name"])), "inputSchema": {"json": {**schema, "type": "object"}}}
    description = str(tool.get("description", ""))
    return {"toolSpec": {**spec, "description": description} if description.strip() else spec}


def _unbounded(node: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with its objects closed and the bounds, which Converse refuses, said in the description."""
    bounds = {key: value for key, value in node.items() if key in _BOUNDS}
    schema = {key: _unbounded_child(key, value) for key, value in node.items() if key not in bounds}
    if "oneOf" in schema:
        schema.setdefault("anyOf", schema.pop("oneOf"))
    if "properties" in schema:
        schema["additionalProperties"] = False
    if bounds:
        told = json.dumps(bounds, ensure_ascii=False)
        schema["description"] = f"{schema['description']} {told}" if schema.get("description") else told
    return schema


def _unbounded_child(key: str, value: Any) -> Any:
    if key in ("properties", "$defs"):
        return {name: _unbounded(child) for name, child in value.items()}
    if key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
        return [_unbounded(child) for child in value]
    return _unbounded(value) if key == "items" and isinstance(value, dict) else value
