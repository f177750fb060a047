"""OpenAI's Chat Completions API, and every server that speaks it: vLLM, llama.cpp, Ollama, LM Studio (Decision 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from aeon_core.llm import PROVIDERS
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.llm.catalogue import takes_reasoning_effort
from aeon_core.llm.chat_completions import (
    CompletionReader,
    chat_messages,
    chat_tool,
    json_schema_format,
    with_call_in_text,
    with_tools_in_prompt,
)
from aeon_core.llm.connect import Endpoint, check_timeout, find_key, find_url
from aeon_core.llm.http import ROOM_FOR_THINKING, Option, SdkModel
from aeon_core.llm.wire import ReplyReader, ToolNames

DEFAULT_URL = "https://api.openai.com/v1"

_UNKNOWN = r"(?:unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|extra_forbidden|not permitted)"
_ABOUT_TOOLS = r"input_schema|for function|tools?[.\[]\d"
_OPTIONS = {
    **ROOM_FOR_THINKING,
    "reasoning_effort": Option(
        "reasoning_effort", "the model's default effort is used", r"reasoning.?effort|thinking|\bthink\b"
    ),
    "stream_options": Option("stream_options", "streamed replies may lack token counts", "stream_options"),
    "max_tokens": Option("max_tokens", "max_completion_tokens is sent", rf"(?s)(?=.*max_tokens).*{_UNKNOWN}"),
    "max_completion_tokens": Option(
        "max_completion_tokens", "max_tokens is sent", rf"(?s)(?=.*max_completion_tokens).*{_UNKNOWN}"
    ),
    "tool_choice": Option("tool_choice", "calls are requested in the prompt only", r"tool.choice(?! requires)"),
    "tools": Option(
        "tools",
        "they are described in the prompt",
        r"not support (?:tools|tool.call|function.call)|tool.choice requires|tool.call.parser",
    ),
    "json_schema": Option(
        "a schema in response_format",
        "JSON objects are requested, with their form in the prompt only",
        r"json_object|response.format\W{0,3}type|response.format\W{1,3}json_schema",
        _ABOUT_TOOLS,
        place="response_format",
        structured=True,
    ),
    "response_format": Option(
        "response_format",
        "replies are requested in the prompt only",
        r"response.format|json.schema|json_object|structured.outputs?|grammar|samplers|guided|schema",
        _ABOUT_TOOLS,
        structured=True,
    ),
    "stream": Option("stream", "replies are not streamed", r"\(stream\b|\bto stream\b|'stream'"),
}


class OpenAIModel(SdkModel):
    """A model on Chat Completions. The key is read from OPENAI_API_KEY; with a base URL none is needed.

    Raises UsageError for a bad base URL or timeout, ModelUnavailableError (exit 3) for a missing key.
    """

    options: ClassVar[Mapping[str, Option]] = _OPTIONS
    reader: ClassVar[type[ReplyReader]] = CompletionReader
    resource: ClassVar[str] = "chat.completions"
    _own = False
    """Whether the server is OpenAI's or Azure's."""

    def __init__(self, name: str, *, base_url: str | None = None, timeout: float = 120.0) -> None:
        url = find_url(base_url, "OPENAI_BASE_URL")
        variable, key = find_key(f"openai:{name}", PROVIDERS["openai"].keys, needed=url is None)
        super().__init__(Endpoint("openai", name, DEFAULT_URL, url, variable, key, check_timeout(timeout)))
        host = (urlsplit(url or DEFAULT_URL).hostname or "").lower()
        self._own = host == "api.openai.com" or host.endswith((".api.openai.com", ".openai.azure.com"))

    @staticmethod
    def _sdk() -> Any:
        import openai

        return openai

    def _params(self, request: LLMRequest, names: ToolNames) -> dict[str, Any]:
        if not self._has("tools", request):
            request = with_tools_in_prompt(request)
        # Local servers know only `max_tokens` and ignore other names; OpenAI's newer models refuse it.
        limit, other = ("max_completion_tokens", "max_tokens")[:: 1 if self._own else -1]
        params: dict[str, Any] = {
            "model": self._place.name,
            "messages": chat_messages(request, names),
            limit if self._has(limit, request) else other: request.max_tokens,
        }
        if request.tools:
            params["tools"] = [chat_tool(tool, names) for tool in request.tools]
            if request.forced_tool is not None and self._has("tool_choice", request):
                params["tool_choice"] = {"type": "function", "function": {"name": names.wire(request.forced_tool)}}
        if request.schema is not None and self._has("response_format", request):
            params["response_format"] = self._response_format(request, request.schema)
        if self._sends_effort(request):
            params["reasoning_effort"] = request.effort
        if request.on_delta is not None and self._has("stream", request):
            params["stream"] = True
            if self._has("stream_options", request):
                params["stream_options"] = {"include_usage": True}
        return params

    def _sends_effort(self, request: LLMRequest) -> bool:
        """Return whether to send the effort: to models known to reason, but not with tools, which some do not combine.

        Reasoning counts towards the limit of the reply, under both of its names.
        """
        known = takes_reasoning_effort(self._place.name) and self._has("reasoning_effort", request)
        return known and request.effort is not None and not request.tools

    def _response_format(self, request: LLMRequest, schema: dict[str, Any]) -> dict[str, Any]:
        if self._has("json_schema", request):
            return json_schema_format(request, schema)
        # Some servers without json_schema accept the schema here; others ignore it, but OpenAI refuses it.
        return {"type": "json_object"} if self._own else {"type": "json_object", "schema": schema}

    def _send(self, client: Any, request: LLMRequest, params: dict[str, Any], names: ToolNames) -> LLMResponse:
        reply = super()._send(client, request, params, names)
        return reply if "tools" in params else with_call_in_text(reply, request.tools)
