"""Converse as an adapter: one request a call, structured output where the service has it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, Protocol

from aeon_core.errors import AeonError, LLMError, ModelUnavailableError
from aeon_core.llm._bedrock_failure import bedrock_failure, refusal, scrubbed
from aeon_core.llm._converse import ConverseTools, converse_params, output_config, read_reply, unreadable
from aeon_core.llm._converse_stream import StreamedConverse
from aeon_core.llm._endpoint import PLACEHOLDER_KEY, Endpoint
from aeon_core.llm._failure import one_line, unusable
from aeon_core.llm._wire import Deltas, ToolNames
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.plain import NotPlainError, plain

logger = logging.getLogger("aeon")

_STREAM_TYPE = "application/vnd.amazon.eventstream"
_ABOUT_SCHEMA = re.compile(
    r"output_?config|output_?format|text_?format|structured.?outputs?|json_?schema|(?<!input)(?<!input_)schema"
)
_ABOUT_ONE = re.compile(r"invalid (?:json.)?schema|complex|grammar|unsupported schema|conversion failed")
_ABOUT_TOOLS = re.compile(r"tool_?config|input_?schema|tools\.\d")


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
        self._without_schema: set[str] = set()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply to one request. Raises LLMError (core FR-048), retryable or not.

        One HTTP request a call; another one only where the service refuses structured output, which is then left out
        for the adapter's life, or for the purpose whose schema is refused. The reply's notices say so.
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
                notice = self._given_up(error, place, request, params)
                if notice is None:
                    raise
                notices.append(notice)

    def _built(self, client: Any, request: LLMRequest) -> tuple[dict[str, Any], ToolNames]:
        """Return the call's parameters, and the tools' names as they are in them."""
        try:
            tools = ConverseTools(request)
            params: dict[str, Any] = plain(converse_params(self.name, request, tools))
            if self._takes_schema(client, request) and (config := output_config(request)) is not None:
                params["outputConfig"] = config
        except (NotPlainError, LookupError, TypeError, AttributeError) as error:
            why = f"{type(error).__name__}: {error}"
            raise LLMError(f"{self.model}: the request cannot be written as JSON: {why[:200]}") from None
        return params, tools.names

    def _takes_schema(self, client: Any, request: LLMRequest) -> bool:
        """Return whether the SDK's model of the service has structured output, and it was not refused yet."""
        operation = client.meta.service_model.operation_model("Converse")
        return "outputConfig" in operation.input_shape.members and not self._without_schema & {"", request.purpose}

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

    def _given_up(self, error: Exception, place: Endpoint, request: LLMRequest, params: dict[str, Any]) -> str | None:
        """Return the notice where the service refused what the request can do without, and remember it."""
        told = refusal(error)
        if told is None or "outputConfig" not in params:
            return None
        lowered = told.lower()
        if not _ABOUT_SCHEMA.search(lowered) or _ABOUT_TOOLS.search(lowered):
            return None
        # What is wrong with one schema, or beside tools, says nothing about the other requests.
        about_one = bool(_ABOUT_ONE.search(lowered) or request.tools)
        self._without_schema.add(request.purpose if about_one else "")
        where = f" for {request.purpose!r}" if about_one else ""
        notice = one_line(
            f"{self.model[:80]}: {place.shown_url} does not take outputConfig{where}; "
            "replies are asked for by the prompt alone from now on",
            place,
        )
        logger.warning("%s: %s", notice, one_line(scrubbed(told, self._client.secrets()), place)[:200])
        return notice
