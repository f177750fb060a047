"""Converse as an adapter: one request a call, structured output where the service has it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from aeon_core.errors import AeonError, LLMError, ModelUnavailableError
from aeon_core.json_safe import NotJsonSafeError, json_safe
from aeon_core.llm._bedrock_failure import bedrock_failure, refusal, scrubbed
from aeon_core.llm._context import is_about_reply, is_too_long
from aeon_core.llm._converse_stream import StreamedConverse
from aeon_core.llm._endpoint import PLACEHOLDER_KEY, Endpoint
from aeon_core.llm._thinking import claude_thinking
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.llm.converse import ConverseTools, converse_params, output_config, read_reply, unreadable
from aeon_core.llm.errors import one_line, unusable
from aeon_core.llm.wire import Deltas, ToolNames

logger = logging.getLogger("aeon")

_STREAM_TYPE = "application/vnd.amazon.eventstream"
_ABOUT_SCHEMA = re.compile(
    r"output_?config|output_?format|text_?format|structured.?outputs?|json_?schema|(?<!input)(?<!input_)schema"
)
_ABOUT_ONE = re.compile(r"invalid (?:json.)?schema|complex|grammar|unsupported schema|conversion failed")
_ABOUT_TOOLS = re.compile(r"tool_?config|input_?schema|tools\.\d")
_ABOUT_THINKING = re.compile(r"thinking|additional_?model_?request_?fields")
_ABOUT_CHOICE = re.compile(r"tool_?choice")
_SCHEMA, _THINKING, _ROOM, _CHOICE = "outputConfig", "thinking", "maxTokens with room for thinking", "toolChoice"
_INSTEAD = {
    _SCHEMA: "replies are asked for by the prompt alone",
    _THINKING: "replies are asked for without it",
    _CHOICE: "calls are asked for by the prompt alone",
    _ROOM: "the configured max_tokens are sent",
}
"""What is done where the service refuses what a request can do without."""


class ConverseClient(Protocol):
    """What connects to the service, and can be cut."""

    closings: int
    timeout: float
    endpoint_url: str | None

    def connect(self) -> Any:
        """Return the boto3 client. Raises ModelUnavailableError."""

    def close(self) -> None:
        """Cut what is in flight."""

    def secrets(self) -> tuple[str, ...]:
        """Return what the last requests were authorized with."""

    def take_body(self) -> bytes | None:
        """Return the body of the last reply on this thread, once."""


class ConverseModel(LLMAdapter):
    """A model behind Converse, over a client that knows where it is and who asks."""

    def __init__(self, name: str, client: ConverseClient) -> None:
        self.name = name
        self.model = f"bedrock:{name}"
        self._client = client
        self._given_up: set[tuple[str, str]] = set()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply to one request. Raises LLMError (core FR-048), retryable or not.

        One HTTP request a call; another one only where the service refuses what the request can do without (structured
        output, thinking, room for it), which is then left out for the adapter's life, or for the purpose alone whose
        schema or length is refused. The reply's notices say so.
        """
        closings = self._client.closings
        place = self._place(self._client.endpoint_url or "https://bedrock-runtime.amazonaws.com")
        try:
            client = self._client.connect()
            place = self._place(client.meta.endpoint_url)
            if self._client.closings == closings:
                return self._ask(client, place, request)
        except ModelUnavailableError as error:
            if self._client.closings == closings:
                raise LLMError(f"{self.model}: {error.message}", exit_code=error.exit_code) from None
        except AeonError as error:
            if self._client.closings == closings or not isinstance(error, LLMError):
                raise
        except Exception as error:
            if self._client.closings == closings:
                # The SDK's own message may hold what ours leaves out, so it is not chained.
                raise bedrock_failure(error, place, self._client.secrets()) from None
        raise LLMError(f"{self.model}: the call was cut, since the adapter was closed")

    def check(self) -> None:
        """Find region and credentials, and take on the role. Raises ModelUnavailableError (exit 3)."""
        self._client.connect()

    def close(self) -> None:
        """Release connections and cut a request in flight; called from any thread. A later call connects anew."""
        self._client.close()

    def _place(self, url: str) -> Endpoint:
        timeout, given = self._client.timeout, self._client.endpoint_url
        return Endpoint("bedrock", self.name, url, given, "AWS_PROFILE", PLACEHOLDER_KEY, timeout)

    def _ask(self, client: Any, place: Endpoint, request: LLMRequest) -> LLMResponse:
        notices: list[str] = []
        while True:
            params, names = self._built(client, request)
            try:
                reply = self._send(client, place, request, params, names)
                return reply.model_copy(update={"notices": notices}) if notices else reply
            except Exception as error:
                notice = self._gives_up(error, place, request, params)
                if notice is None:
                    raise
                notices.append(notice)

    def _built(self, client: Any, request: LLMRequest) -> tuple[dict[str, Any], ToolNames]:
        """Return the call's parameters, and the tools' names as they are in them."""
        if request.thinking_tokens and not self._has(_ROOM, request):
            request = replace(request, max_tokens=request.max_tokens - request.thinking_tokens)
        try:
            tools = ConverseTools(request)
            params: dict[str, Any] = json_safe(converse_params(self.name, request, tools))
            if request.forced_tool is not None and self._has(_CHOICE, request):
                params["toolConfig"] = tools.config(request.forced_tool)
            if self._takes_schema(client, request) and (config := output_config(request)) is not None:
                params["outputConfig"] = config
            if self._has(_THINKING, request) and (thinking := claude_thinking(self.name, request)) is not None:
                params["additionalModelRequestFields"] = {"thinking": thinking}
        except (NotJsonSafeError, LookupError, TypeError, AttributeError) as error:
            why = f"{type(error).__name__}: {error}"
            raise LLMError(f"{self.model}: the request cannot be written as JSON: {why[:200]}") from None
        return params, tools.names

    def _takes_schema(self, client: Any, request: LLMRequest) -> bool:
        """Return whether the SDK's model of the service has structured output, and it was not refused yet."""
        operation = client.meta.service_model.operation_model("Converse")
        return _SCHEMA in operation.input_shape.members and self._has(_SCHEMA, request)

    def _has(self, option: str, request: LLMRequest) -> bool:
        """Return whether the service was not yet seen to refuse the option."""
        return not self._given_up & {(option, ""), (option, request.purpose)}

    def _send(
        self, client: Any, place: Endpoint, request: LLMRequest, params: dict[str, Any], names: ToolNames
    ) -> LLMResponse:
        if request.on_delta is None:
            return read_reply(self._whole(client.converse, place, params), place, names)
        started = self._whole(client.converse_stream, place, params, "stream")
        kind = str(started["ResponseMetadata"]["HTTPHeaders"].get("content-type", _STREAM_TYPE))
        try:
            if _STREAM_TYPE not in kind:
                raise unusable(place, f"it is {kind[:60]!r}, expected {_STREAM_TYPE!r}; is the base URL right?")
            streamed = StreamedConverse(
                place, lambda error, usage: bedrock_failure(error, place, self._client.secrets(), usage)
            )
            reply = streamed.read(started["stream"], Deltas(request.on_delta))
        finally:
            started["stream"].close()
        return read_reply(reply, place, names)

    def _whole(self, call: Callable[..., Any], place: Endpoint, params: dict[str, Any], key: str = "output") -> Any:
        """Return the reply. Raises what the SDK raises, and LLMError, with the usage, for one that it cannot read."""
        self._client.take_body()
        try:
            reply = call(**params)
        except Exception as error:
            body = self._client.take_body()
            if body is None or hasattr(error, "response"):
                raise
            raise unreadable(body, place) from None
        body = self._client.take_body()
        if key not in reply:
            raise unreadable(body or b"", place)
        return reply

    def _gives_up(self, error: Exception, place: Endpoint, request: LLMRequest, params: dict[str, Any]) -> str | None:
        """Return the notice where the service refused what the request can do without, and remember it."""
        told = refusal(error)
        refused = self._refused(told.lower(), request, params) if told is not None else None
        if told is None or refused is None:
            return None
        option, purpose = refused
        self._given_up.add(refused)
        notice = one_line(
            f"{self.model[:80]}: {place.shown_url} does not take {option}{f' for {purpose!r}' if purpose else ''}; "
            f"{_INSTEAD[option]} from now on",
            place,
        )
        logger.warning("%s: %s", notice, one_line(scrubbed(told, self._client.secrets()), place)[:200])
        return notice

    def _refused(self, told: str, request: LLMRequest, params: dict[str, Any]) -> tuple[str, str] | None:
        """Return what a refusal is about, and the purpose that it is about alone; None where it is another's."""
        too_long = is_too_long(400, told)
        if "toolChoice" in params.get("toolConfig", {}) and _ABOUT_CHOICE.search(told):
            return _CHOICE, ""
        if "additionalModelRequestFields" in params and _ABOUT_THINKING.search(told) and not too_long:
            return _THINKING, ""
        # What is wrong with one schema, or beside tools, or too long, says nothing about the other requests.
        if _SCHEMA in params and _ABOUT_SCHEMA.search(told) and not _ABOUT_TOOLS.search(told) and not too_long:
            return _SCHEMA, request.purpose if _ABOUT_ONE.search(told) or request.tools else ""
        if request.thinking_tokens and self._has(_ROOM, request) and is_about_reply(told):
            return _ROOM, request.purpose if too_long else ""
        return None
