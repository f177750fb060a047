"""OpenAI's Chat Completions, and every server that speaks them: vLLM, llama.cpp, Ollama, LM Studio (Decision 1)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from aeon_core.llm._endpoint import Endpoint, check_timeout, find_key, find_url, host_of
from aeon_core.llm._failure import told_failure, unusable
from aeon_core.llm._openai_stream import StreamedCompletion, completion_usage
from aeon_core.llm._remote import RemoteModel, client_options
from aeon_core.llm._schema import is_strict
from aeon_core.llm._wire import (
    Deltas,
    ToolNames,
    arguments_text,
    read_arguments,
    tool_call,
    with_ids,
)
from aeon_core.llm.base import LLMRequest, LLMResponse, Message, ToolCallDict, Usage

DEFAULT_URL = "https://api.openai.com/v1"

_STOP_REASONS = {
    "stop": "end",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
_UNKNOWN = re.compile(r"unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|extra_forbidden|not permitted")
_ABOUT_SCHEMA = re.compile(r"response_format|json_schema|structured.outputs?|grammar|guided|schema")
_ABOUT_TOOLS = re.compile(r"input_schema|for function|tools?[.\[]\d")


class OpenAIModel(RemoteModel):
    """A model behind Chat Completions. The key is read from OPENAI_API_KEY; with a base URL none is needed.

    Raises UsageError for a bad base URL or time-out, ModelUnavailableError (exit 3) for a missing key.
    """

    schema_option = "response_format"

    def __init__(self, name: str, *, base_url: str | None = None, timeout: float = 120.0) -> None:
        url = find_url(base_url, "OPENAI_BASE_URL")
        variable, key = find_key(f"openai:{name}", ("OPENAI_API_KEY",), needed=url is None)
        super().__init__(Endpoint("openai", name, DEFAULT_URL, url, variable, key, check_timeout(timeout)))
        # Local servers know `max_tokens` alone and ignore what they do not know; OpenAI's newer models refuse it.
        host = host_of(url, DEFAULT_URL)
        own = host == "api.openai.com" or host.endswith((".api.openai.com", ".openai.azure.com"))
        self._limit, self._other_limit = ("max_completion_tokens", "max_tokens")[:: 1 if own else -1]

    @staticmethod
    def _maker(place: Endpoint) -> Callable[..., Any]:
        return partial(_client, place)

    @staticmethod
    def _sdk() -> Any:
        import openai

        return openai

    def _params(self, request: LLMRequest) -> dict[str, Any]:
        names = ToolNames(request.tools)
        limit = self._limit if self._has(self._limit, request) else self._other_limit
        params: dict[str, Any] = {
            "model": self._place.name,
            "messages": _messages(request, names),
            limit: request.max_tokens,
        }
        if request.tools:
            params["tools"] = [_tool(tool, names) for tool in request.tools]
        if request.schema is not None and self._has("response_format", request):
            params["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": f"aeon_{request.purpose}",
                    "schema": request.schema,
                    "strict": is_strict(request.schema),
                },
            }
        if request.on_delta is not None and self._has("stream", request):
            params["stream"] = True
            if self._has("stream_options", request):
                params["stream_options"] = {"include_usage": True}
        return params

    def _refused_option(self, told: str, params: dict[str, Any]) -> str | None:
        if "stream_options" in params and "stream_options" in told:
            return "stream_options"
        if self._limit in params and self._limit in told and _UNKNOWN.search(told):
            return self._limit
        if "response_format" in params and _ABOUT_SCHEMA.search(told) and not _ABOUT_TOOLS.search(told):
            return "response_format"
        if "stream" in params and re.search(r"\(stream\b|\bto stream\b|'stream'", told):
            return "stream"
        return None

    def _send(self, client: Any, request: LLMRequest, params: dict[str, Any]) -> LLMResponse:
        names, deltas = ToolNames(request.tools), Deltas(request.on_delta)
        if "stream" not in params:
            raw = client.chat.completions.with_raw_response.create(**params)
            reply = self._read(self._body(raw.http_response.content), names)
            deltas(reply.text)
            return reply
        with client.chat.completions.with_streaming_response.create(**params) as response:
            if self._is_stream(response.headers):
                events = response.parse(to=self._sdk().Stream[object])
                return self._read(StreamedCompletion(self._place, self._sdk()).read(events, deltas), names)
            reply = self._read(self._body(response.read()), names)
            deltas(reply.text)
            return reply

    def _read(self, body: Any, names: ToolNames) -> LLMResponse:
        if not isinstance(body, dict):
            raise unusable(self._place, f"it is JSON of type {type(body).__name__}, expected an object")
        usage = completion_usage(body.get("usage"))
        if body.get("error"):
            raise told_failure(body, self._place, usage)
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise unusable(self._place, "it has no choices with a message", usage)
        text, refusal = self._text(message.get("content"), usage), message.get("refusal")
        calls = self._calls(message.get("tool_calls"), names, usage)
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

    def _text(self, content: Any, usage: Usage | None) -> str:
        if content is None:
            return ""
        parts = [{"text": content}] if isinstance(content, str) else content
        if isinstance(parts, list) and all(isinstance(part, dict) for part in parts):
            texts = [part.get("text", "") for part in parts]
            if all(isinstance(text, str) for text in texts):
                return "".join(texts)
        raise unusable(self._place, f"its content is of type {type(content).__name__}, expected text", usage)

    def _calls(self, calls: Any, names: ToolNames, usage: Usage | None) -> list[ToolCallDict]:
        read = []
        for call in calls if isinstance(calls, list) else [calls] if calls else []:
            function = call.get("function") if isinstance(call, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            arguments = read_arguments(function.get("arguments")) if isinstance(function, dict) else None
            if not isinstance(name, str) or not name or arguments is None:
                raise unusable(self._place, "a tool call has no name, or arguments of a wrong type", usage)
            read.append(tool_call(call.get("id"), names.real(name), arguments))
        return read


def _client(place: Endpoint, watch: Callable[[Any], None]) -> Any:
    import openai

    return openai.OpenAI(**client_options(openai, place, watch))


def _messages(request: LLMRequest, names: ToolNames) -> list[dict[str, Any]]:
    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, *(_message(message, names) for message in with_ids(request.messages))]


def _message(message: Message, names: ToolNames) -> dict[str, Any]:
    content = message["content"]
    if message["role"] == "tool":
        # Chat Completions have no mark for a failed call.
        told = f"Error: {content}" if message.get("is_error") else content
        return {"role": "tool", "tool_call_id": message.get("tool_call_id", ""), "content": told}
    calls = message.get("tool_calls") if message["role"] == "assistant" else None
    if not calls:
        return {"role": message["role"], "content": content}
    return {
        "role": "assistant",
        "content": content or None,
        "tool_calls": [
            {
                "id": call.get("id", ""),
                "type": "function",
                "function": {"name": names.wire(call["name"]), "arguments": arguments_text(call["arguments"])},
            }
            for call in calls
        ],
    }


def _tool(tool: dict[str, Any], names: ToolNames) -> dict[str, Any]:
    function = {
        "name": names.wire(str(tool["name"])),
        "description": str(tool.get("description", "")),
        "parameters": tool.get("input_schema") or {"type": "object", "properties": {}},
    }
    return {"type": "function", "function": function}
