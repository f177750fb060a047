"""Anthropic's Messages API (Decision 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from aeon_core.llm import PROVIDERS
from aeon_core.llm.base import LLMRequest, Message
from aeon_core.llm.catalogue import claude_thinking, takes_claude_effort
from aeon_core.llm.connect import Endpoint, check_timeout, find_key, find_url
from aeon_core.llm.errors import reported_failure
from aeon_core.llm.http import ROOM_FOR_THINKING, RequestOption, SdkModel
from aeon_core.llm.wire import ReplyReader, ToolNames, closed_schema, input_object, turns


class MessageReader(ReplyReader):
    """Reads a message, or a stream of its events."""

    stop_reasons: ClassVar[Mapping[str, str]] = {
        "end_turn": "end",
        "stop_sequence": "end",
        "max_tokens": "max_tokens",
        "model_context_window_exceeded": "max_tokens",
        "tool_use": "tool_use",
        "refusal": "refusal",
    }
    token_names: ClassVar[Mapping[str, str]] = {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "cache_read_tokens": "cache_read_input_tokens",
        "cache_write_tokens": "cache_creation_input_tokens",
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._counts: dict[str, Any] = {}
        self._others: set[int] = set()
        """The blocks that are neither text nor a call of one of our tools, such as calls of the server's own tools."""

    def _take_document(self, body: Any) -> None:
        self._begin(body)
        if body.get("error"):
            raise reported_failure(body, self._endpoint, self._usage)
        for index, block in enumerate(body["content"]):
            self._take_block(index, block)
        self._end(body.get("stop_reason"))
        self._count(body.get("usage"))

    def _take_event(self, event: Any) -> None:
        kind = event.get("type")
        if kind == "error":
            raise reported_failure(event, self._endpoint, self._usage)
        if kind == "message_start":
            self._begin(event["message"])
        elif kind == "content_block_start":
            block = event["content_block"]
            # Some servers start a text block without a text.
            self._take_block(event["index"], {**block, "text": block.get("text") or ""})
        elif kind == "content_block_delta":
            self._take_delta(event["index"], event["delta"])
        elif kind == "message_delta":
            self._end(event["delta"].get("stop_reason"))
            self._count(event.get("usage"))

    def _begin(self, message: Any) -> None:
        self._count(message.get("usage"))
        self._model = message["model"] if isinstance(message.get("model"), str) else None

    def _take_block(self, index: int, block: Any) -> None:
        if block.get("type") == "text":
            self._add_text(block["text"], index)
        elif block.get("type") == "tool_use":
            self._begin_call(index, block.get("id"), block.get("name"), block.get("input"))
        else:
            self._others.add(index)

    def _take_delta(self, index: int, delta: Any) -> None:
        if delta.get("type") == "text_delta":
            self._add_text(delta["text"], index)
        elif delta.get("type") == "input_json_delta" and index not in self._others:
            self._add_arguments(index, delta["partial_json"])

    def _count(self, usage: Any) -> None:
        # The counts are cumulative; an event omits those that have not changed, or has zeros for them.
        if isinstance(usage, dict):
            self._counts.update({key: value for key, value in usage.items() if value or key not in self._counts})
        # Before its end, a reply of which nothing has been counted has cost its input at least.
        so_far = {"output_tokens": 0} if self._stop is None else {}
        self._usage = self.tokens({**so_far, **self._counts})


DEFAULT_URL = "https://api.anthropic.com"

_ABOUT_TOOLS = r"input_schema|tools\.\d"
_OPTIONS = {
    **ROOM_FOR_THINKING,
    "tool_choice": RequestOption("tool_choice", "calls are requested in the prompt only", r"tool_?choice"),
    "thinking": RequestOption("thinking", "requests are sent without it", "thinking"),
    "output_config": RequestOption(
        "output_config",
        "replies are requested in the prompt only",
        r"output_config|output_format|structured.outputs?|json_schema|(?<!input_)schema|grammar",
        rf"{_ABOUT_TOOLS}|\beffort\b",
        place="output_config.format",
        structured=True,
    ),
    "effort": RequestOption(
        "output_config.effort", "the model's default effort is used", r"\beffort\b|output_config", _ABOUT_TOOLS
    ),
}


class AnthropicModel(SdkModel):
    """A model behind the Messages API. The key is read from ANTHROPIC_API_KEY, then ANTHROPIC_AUTH_TOKEN.

    Raises UsageError for a bad base URL or time-out, ModelUnavailableError (exit 3) for a missing key.
    """

    options: ClassVar[Mapping[str, RequestOption]] = _OPTIONS
    reader: ClassVar[type[ReplyReader]] = MessageReader
    resource: ClassVar[str] = "messages"

    def __init__(self, name: str, *, base_url: str | None = None, timeout: float = 120.0) -> None:
        url = find_url(base_url, "ANTHROPIC_BASE_URL")
        variable, key = find_key(f"anthropic:{name}", PROVIDERS["anthropic"].keys)
        client: dict[str, Any] = {"auth_token": key, "api_key": None} if variable == "ANTHROPIC_AUTH_TOKEN" else {}
        if url is not None:
            # The SDK adds /v1, with which the addresses of other providers end, and the query.
            client["base_url"] = urlsplit(url)._replace(query="").geturl().rstrip("/").removesuffix("/v1")
        endpoint = Endpoint("anthropic", name, DEFAULT_URL, url, variable, key, check_timeout(timeout))
        super().__init__(endpoint, open_telemetry=False, **client)

    @staticmethod
    def _sdk() -> Any:
        import anthropic

        return anthropic

    def _params(self, request: LLMRequest, names: ToolNames) -> dict[str, Any]:
        params: dict[str, Any] = {
            "model": self._endpoint.name,
            "max_tokens": request.max_tokens,
            "messages": turns(request.messages, lambda message: _blocks(message, names)),
        }
        if request.system:
            params["system"] = request.system
        if request.tools:
            params["tools"] = [_tool(tool, names) for tool in request.tools]
            if request.forced_tool is not None and self._has("tool_choice", request):
                params["tool_choice"] = {"type": "tool", "name": names.wire(request.forced_tool)}
        if self._has("thinking", request) and (thinking := claude_thinking(self._endpoint.name, request)) is not None:
            params["thinking"] = thinking
        if config := self._output_config(request):
            params["output_config"] = config
        if self._is_streamed(request):
            params["stream"] = True
        return params

    def _output_config(self, request: LLMRequest) -> dict[str, Any]:
        config: dict[str, Any] = {}
        if self._has("output_config", request) and (schema := self._schema(request.schema)) is not None:
            config["format"] = {"type": "json_schema", "schema": {"title": f"aeon_{request.purpose}", **schema}}
        if request.effort is not None and self._has("effort", request) and takes_claude_effort(self._endpoint.name):
            config["effort"] = request.effort
        return config

    def _schema(self, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the schema in the form that the API accepts; None if there is none, and only the prompt can ask."""
        closed = closed_schema(schema)
        if closed is None:
            return None
        try:
            transformed: dict[str, Any] = self._sdk().transform_schema(closed)
        except (ValueError, AssertionError, TypeError, AttributeError):
            return None
        return transformed


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
        name, arguments = names.wire(call["name"]), input_object(call["arguments"])
        blocks.append({"type": "tool_use", "id": call.get("id", ""), "name": name, "input": arguments})
    return blocks


def _tool(tool: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    schema = tool.get("input_schema") or {"type": "object", "properties": {}}
    return {
        "name": names.wire(str(tool["name"])),
        "description": str(tool.get("description", "")),
        "input_schema": {**schema, "type": "object"},
    }
