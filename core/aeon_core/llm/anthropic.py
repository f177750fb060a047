"""Anthropic's Messages (Decision 1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMRequest, LLMResponse, Message, Usage
from aeon_core.llm.catalogue import claude_thinking, takes_claude_effort
from aeon_core.llm.connect import Endpoint, check_timeout, find_key, find_url
from aeon_core.llm.errors import failure, told_failure, unusable
from aeon_core.llm.http import ROOM_FOR_THINKING, Option, RemoteModel, client_options
from aeon_core.llm.wire import (
    Deltas,
    StreamedReply,
    ToolNames,
    closed_schema,
    read_arguments,
    read_usage,
    tool_call,
    turns,
    with_cache,
)

_WRITTEN, _READ = "cache_creation_input_tokens", "cache_read_input_tokens"
_PARTS = {"text_delta": "text", "input_json_delta": "partial_json"}


def message_usage(usage: Any) -> Usage | None:
    """Return the tokens of a message, those written to and read from the provider's cache among its input."""
    tokens = read_usage(usage, ("input_tokens", _WRITTEN, _READ), ("output_tokens",))
    if not isinstance(usage, dict):
        return tokens
    return with_cache(tokens, read=usage.get(_READ), written=usage.get(_WRITTEN))


class StreamedMessage(StreamedReply):
    """The parts that have come so far."""

    def __init__(self, place: Endpoint, sdk: Any) -> None:
        super().__init__(place)
        self._sdk = sdk
        self._blocks: dict[Any, dict[str, Any]] = {}
        self._parts: dict[Any, list[str]] = {}
        self._usage: dict[str, Any] = {}
        self._model: Any = None

    def _whole(self) -> dict[str, Any]:
        content = [self._block(index, block) for index, block in self._blocks.items()]
        return {"model": self._model, "usage": self._usage, "content": content, "stop_reason": self._stop}

    def _take(self, event: Any, deltas: Deltas) -> None:
        if not isinstance(event, dict):
            raise self._unusable(f"an event is JSON of type {type(event).__name__}, expected an object")
        kind, index = event.get("type"), event.get("index", 0)
        if kind == "error":
            raise told_failure(event, self._place, message_usage(self._usage))
        if kind == "message_start":
            message = self._object(event, "message")
            self._model = message.get("model")
            self._count(message.get("usage"))
        elif kind == "content_block_start":
            self._blocks[self._index(index)] = block = self._object(event, "content_block")
            self._parts[index] = []
            deltas(block.get("text"))
            if block.get("type") == "tool_use":
                deltas.begin_call(block.get("name"))
        elif kind == "content_block_delta":
            self._add(self._index(index), self._object(event, "delta"), deltas)
        elif kind == "message_delta":
            stop = self._object(event, "delta").get("stop_reason")
            self._stop = stop if isinstance(stop, str) and stop else self._stop
            self._count(event.get("usage"))

    def _add(self, index: int, delta: dict[str, Any], deltas: Deltas) -> None:
        kind = delta.get("type")
        key = _PARTS.get(kind) if isinstance(kind, str) else None
        if key is None:
            return
        text = delta.get(key)
        if not isinstance(text, str) or index not in self._blocks:
            raise self._unusable("an event's delta has no text, or no block that it belongs to")
        self._parts[index].append(text)
        if key == "text":
            deltas(text)
        else:
            deltas.add_arguments(self._blocks[index].get("name"), text)

    def _block(self, index: Any, block: dict[str, Any]) -> dict[str, Any]:
        text = "".join(self._parts[index])
        if block.get("type") == "text":
            begun = block.get("text")
            return {**block, "text": (begun if isinstance(begun, str) else "") + text}
        return {**block, "input": text} if text and block.get("type") == "tool_use" else block

    def _count(self, usage: Any) -> None:
        # The counts are cumulative, and an event leaves out what has not changed.
        if isinstance(usage, dict):
            self._usage.update({key: value for key, value in usage.items() if value is not None})

    def _object(self, event: dict[str, Any], key: str) -> dict[str, Any]:
        value = event.get(key)
        if not isinstance(value, dict):
            raise self._unusable(f"an event's {key} is of type {type(value).__name__}, expected an object")
        return value

    def _index(self, index: Any) -> int:
        if not isinstance(index, int):
            raise self._unusable(f"an event's index is of type {type(index).__name__}, expected a number")
        return index

    def _tokens(self) -> Usage | None:
        return message_usage(self._usage)

    def _failed(self, error: Exception) -> LLMError:
        return failure(error, self._sdk, self._place, self._tokens())


DEFAULT_URL = "https://api.anthropic.com"

_STOP_REASONS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "tool_use": "tool_use",
    "refusal": "refusal",
}
_ABOUT_SCHEMA = re.compile(r"output_config|output_format|structured.outputs?|json_schema|(?<!input_)schema")
_ABOUT_TOOLS = re.compile(r"input_schema|tools\.\d")
_ABOUT_CHOICE = re.compile(r"tool_?choice")
_ABOUT_EFFORT = re.compile(r"\beffort\b")
_OPTIONS = {
    **ROOM_FOR_THINKING,
    "tool_choice": Option("tool_choice", "calls are requested in the prompt only"),
    "thinking": Option("thinking", "requests are sent without it"),
    "effort": Option("output_config.effort", "the model's default effort is used"),
    "output_config": Option("output_config", "replies are requested in the prompt only", structured=True),
}


class AnthropicModel(RemoteModel):
    """A model behind the Messages API. The key is read from ANTHROPIC_API_KEY, then ANTHROPIC_AUTH_TOKEN.

    Raises UsageError for a bad base URL or time-out, ModelUnavailableError (exit 3) for a missing key.
    """

    options: ClassVar[Mapping[str, Option]] = _OPTIONS

    def __init__(self, name: str, *, base_url: str | None = None, timeout: float = 120.0) -> None:
        url = find_url(base_url, "ANTHROPIC_BASE_URL")
        variable, key = find_key(f"anthropic:{name}", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"))
        super().__init__(Endpoint("anthropic", name, DEFAULT_URL, url, variable, key, check_timeout(timeout)))

    @staticmethod
    def _maker(place: Endpoint) -> Callable[..., Any]:
        return partial(_client, place)

    @staticmethod
    def _sdk() -> Any:
        import anthropic

        return anthropic

    @staticmethod
    def _usage(usage: Any) -> Usage | None:
        return message_usage(usage)

    def _params(self, request: LLMRequest) -> dict[str, Any]:
        names = ToolNames(request.tools)
        params: dict[str, Any] = {
            "model": self._place.name,
            "max_tokens": request.max_tokens,
            "messages": turns(request.messages, lambda message: _blocks(message, names)),
        }
        if request.system:
            params["system"] = request.system
        if request.tools:
            params["tools"] = [_tool(tool, names) for tool in request.tools]
            if request.forced_tool is not None and self._has("tool_choice", request):
                params["tool_choice"] = {"type": "tool", "name": names.wire(request.forced_tool)}
        if self._has("thinking", request) and (thinking := claude_thinking(self._place.name, request)) is not None:
            params["thinking"] = thinking
        if config := self._output_config(request):
            params["output_config"] = config
        if request.on_delta is not None:
            params["stream"] = True
        return params

    def _output_config(self, request: LLMRequest) -> dict[str, Any]:
        config: dict[str, Any] = {}
        if self._has("output_config", request) and (schema := self._schema(request.schema)) is not None:
            config["format"] = {"type": "json_schema", "schema": schema}
        if request.effort is not None and self._has("effort", request) and takes_claude_effort(self._place.name):
            config["effort"] = request.effort
        return config

    def _schema(self, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the schema as the API takes it; None where it takes none, and the prompt alone must do."""
        closed = closed_schema(schema)
        if closed is None:
            return None
        try:
            transformed: dict[str, Any] = self._sdk().transform_schema(closed)
        except (ValueError, AssertionError, TypeError, AttributeError):
            return None
        return transformed

    def _refused_option(self, told: str, params: dict[str, Any]) -> str | None:
        config = params.get("output_config", {})
        if "tool_choice" in params and _ABOUT_CHOICE.search(told):
            return "tool_choice"
        if "thinking" in params and "thinking" in told:
            return "thinking"
        if "effort" in config and _ABOUT_EFFORT.search(told):
            return "effort"
        if _ABOUT_TOOLS.search(told) or not _ABOUT_SCHEMA.search(told):
            return None
        return "output_config" if "format" in config else "effort" if "effort" in config else None

    def _send(self, client: Any, request: LLMRequest, params: dict[str, Any]) -> LLMResponse:
        names = ToolNames(request.tools)
        deltas = Deltas(request, names)
        if "stream" not in params:
            raw = client.messages.with_raw_response.create(**params)
            return self._read(self._body(raw.http_response.content), names)
        with client.messages.with_streaming_response.create(**params) as response:
            if self._is_stream(response.headers):
                events = response.parse(to=self._sdk().Stream[object])
                return self._read(StreamedMessage(self._place, self._sdk()).read(events, deltas), names)
            reply = self._read(self._body(response.read()), names)
            deltas(reply.text)
            return reply

    def _read(self, body: Any, names: ToolNames) -> LLMResponse:
        if not isinstance(body, dict):
            raise unusable(self._place, f"it is JSON of type {type(body).__name__}, expected an object")
        usage = message_usage(body.get("usage"))
        if body.get("error"):
            raise told_failure(body, self._place, usage)
        blocks, stop, model = body.get("content"), body.get("stop_reason"), body.get("model")
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise unusable(self._place, "it has no list of content blocks", usage)
        texts = [block.get("text") for block in blocks if block.get("type") == "text"]
        calls = []
        for block in blocks:
            if block.get("type") == "tool_use":
                name, arguments = block.get("name"), read_arguments(block.get("input"))
                if not isinstance(name, str) or not name or arguments is None:
                    raise unusable(self._place, "it has a tool use without a name or with a wrong input", usage)
                calls.append(tool_call(block.get("id"), names.real(name), arguments))
        if not all(isinstance(text, str) for text in texts):
            raise unusable(self._place, "a block's text is no text", usage)
        return LLMResponse(
            text="".join(text for text in texts if isinstance(text, str)),
            tool_calls=calls,
            usage=usage,
            stop_reason=_STOP_REASONS.get(stop, stop) if isinstance(stop, str) else None,
            model=model if isinstance(model, str) else None,
        )


def _client(place: Endpoint, watch: Callable[[Any], None]) -> Any:
    import anthropic

    options = client_options(anthropic, place, watch)
    if place.key_variable == "ANTHROPIC_AUTH_TOKEN":
        options["auth_token"] = options.pop("api_key")
    return anthropic.Anthropic(**options, open_telemetry=False)


def _blocks(message: Message, names: ToolNames) -> list[dict[str, Any]]:
    content = message["content"]
    if message["role"] == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.get("tool_call_id", "")}
        if content:
            result["content"] = content
        return [{**result, "is_error": True} if message.get("is_error") else result]
    # The API refuses blank text.
    blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if content.strip() else []
    for call in message.get("tool_calls", []) if message["role"] == "assistant" else []:
        arguments = read_arguments(call["arguments"])
        blocks.append(
            {
                "type": "tool_use",
                "id": call.get("id", ""),
                "name": names.wire(call["name"]),
                # What was no object comes back as the text it was, under a key of its own.
                "input": arguments if isinstance(arguments, dict) else {"text": arguments},
            }
        )
    return blocks


def _tool(tool: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    schema = tool.get("input_schema") or {"type": "object", "properties": {}}
    return {
        "name": names.wire(str(tool["name"])),
        "description": str(tool.get("description", "")),
        "input_schema": {**schema, "type": "object"},
    }
