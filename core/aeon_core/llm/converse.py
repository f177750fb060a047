"""Converse, the request and reply format of Amazon Bedrock: what goes out and what comes back."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from aeon_core.errors import AeonError, LLMError, ModelUnavailableError
from aeon_core.json_safe import NotJsonSafeError, json_safe, parse_json
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, Message, ToolCallDict, Usage
from aeon_core.llm.catalogue import claude_thinking, takes_cache_points
from aeon_core.llm.connect import PLACEHOLDER_KEY, Endpoint
from aeon_core.llm.errors import (
    is_about_reply,
    is_connection_refused,
    is_too_long,
    llm_error,
    one_line,
    retry_after,
    status_failure,
    too_long_failure,
    unusable,
)
from aeon_core.llm.wire import (
    Deltas,
    StreamedReply,
    ToolNames,
    closed_schema,
    read_arguments,
    read_usage,
    tool_call,
    turns,
)
from aeon_core.redaction import REDACTED

RENEW = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run `aws sso login`"
"""What to do where credentials are missing or refused."""

_MAX_SAID = 140
_STATUS = {
    "ValidationException": 400,
    "AccessDeniedException": 403,
    "ResourceNotFoundException": 404,
    "ModelTimeoutException": 408,
    "ModelErrorException": 424,
    "ModelStreamErrorException": 424,
    "ThrottlingException": 429,
    "TooManyRequestsException": 429,
    "ModelNotReadyException": 429,
    "InternalServerException": 500,
    "ServiceUnavailableException": 503,
}
_BAD_CREDENTIALS = re.compile(
    r"UnrecognizedClient|ExpiredToken|RequestExpired|InvalidSignature|SignatureDoesNotMatch|IncompleteSignature"
    r"|InvalidClientTokenId|InvalidAccessKeyId|MissingAuthenticationToken|AuthFailure"
)
_TOO_LONG = re.compile(r"too many input tokens|exceeds? the (?:model's )?context window", re.IGNORECASE)
_UNKNOWN_MODEL = re.compile(r"model identifier is invalid|on-demand throughput", re.IGNORECASE)
_CREDENTIALS_KIND = re.compile(r"Credential|Token|SSO|Login|Profile|MFA")
_UNREACHABLE_KIND = re.compile(r"EndpointConnection|ConnectTimeout|ProxyConnection|SSLError|NewConnection|InvalidProxy")
_BROKEN_KIND = re.compile(r"Connection|Protocol|Incomplete|HTTPClient|ResponseStreaming|Broken|SSL")
_BROKEN_FRAME = ("ChecksumMismatch", "InvalidHeadersLength", "InvalidPayloadLength", "DuplicateHeader", "ParserError")
# What a refused signature is answered with quotes the request's headers, the session token among them.
_QUOTED_REQUEST = re.compile(r"(?is)the canonical string for this request.*")
_SIGNED = re.compile(r"(?i)((?:x-amz-security-token|signature|credential)['\"]?\s*[:=]\s*)[^\s,'\"]+")
_OBJECT = re.compile(r"<?[\w.]+(?: object at 0x\w+>|\([^)]*\)): ")


def scrubbed(text: str, secrets: Iterable[str] = ()) -> str:
    """Return foreign text without the secrets, and without what a request's signature is made of."""
    for secret in secrets:
        if len(secret) >= 6:
            text = text.replace(secret, REDACTED)
    return _SIGNED.sub(rf"\1{REDACTED}", _QUOTED_REQUEST.sub("…", text))


def bedrock_failure(
    error: Exception, place: Endpoint, secrets: Iterable[str] = (), usage: Usage | None = None
) -> LLMError:
    """Return the LLMError for whatever the SDK or the library below it raised; `usage` is what came before it."""
    if isinstance(error, LLMError):
        return error
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return _told_failure(response, place, secrets, usage)
    kind, url = type(error).__name__, place.shown_url
    detail = one_line(scrubbed(reason(error), secrets), place)[:_MAX_SAID]
    if kind in ("ReadTimeoutError", "TimeoutError"):
        return llm_error(f"no answer from {url} within {place.timeout:g} s", place, True, usage=usage)
    if _UNREACHABLE_KIND.search(kind):
        hint = "check the network, the region" + (" and the base URL" if place.url else "")
        message = f"cannot reach {url}: {detail}; {hint}"
        refused = is_connection_refused(error)
        return llm_error(message, place, True, usage=usage, unsent=True, unavailable=refused)
    if kind in _BROKEN_FRAME:
        return unusable(place, f"an event of its stream is broken: {detail}", usage)
    if kind == "ParamValidationError":
        return llm_error(f"Converse rejected the form of the request: {detail}", place, False, usage=usage)
    if _CREDENTIALS_KIND.search(kind):
        return llm_error(f"cannot use the AWS credentials: {detail}; {RENEW}", place, False, exit_code=3, usage=usage)
    if _BROKEN_KIND.search(kind):
        return llm_error(
            f"the connection to {url} broke before the reply was complete: {detail}", place, True, usage=usage
        )
    return unusable(place, f"{kind}: {detail}", usage)


def refusal(error: Exception) -> str | None:
    """Return what the service says where it finds the request itself wrong, None for any other error."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return None
    told = _message(response)
    # A model without a cache is no bad request to the service, but one that is not allowed.
    return told if _status(response) == 400 or _ABOUT_CACHE.search(told.lower()) else None


def reason(error: Exception) -> str:
    """Return why: what an SDK's error was raised from where it says so, without the names of Python's objects."""
    inner = getattr(error, "kwargs", {}).get("error") or error
    parts = getattr(inner, "args", ())
    cause = parts[-1] if parts and isinstance(parts[-1], Exception) else inner
    return _OBJECT.sub("", str(cause) or type(cause).__name__)


def code_of(response: dict[str, Any]) -> str:
    """Return the error's code as the service's documentation writes it; in a stream it begins in lower case."""
    code = str((response.get("Error") or {}).get("Code") or "")
    return code[:1].upper() + code[1:]


def _told_failure(response: dict[str, Any], place: Endpoint, secrets: Iterable[str], usage: Usage | None) -> LLMError:
    status, code = _status(response), code_of(response)
    told = scrubbed(_message(response), secrets)
    quoted = one_line(f"{code[:60]}: {told}", place)[:_MAX_SAID]
    if _BAD_CREDENTIALS.search(code) or status == 401:
        message = f"{place.shown_url} rejected the AWS credentials ({status}): {quoted}; {RENEW}"
        return llm_error(message, place, False, status=status, exit_code=3, usage=usage)
    if status == 403:
        hint = "allow bedrock:InvokeModel, and access to the model, for these credentials"
        return llm_error(
            f"{place.shown_url} refused access (403): {quoted}; {hint}", place, False, status=403, usage=usage
        )
    if status == 400 and _TOO_LONG.search(told):
        return too_long_failure(told, None, place, status, usage)
    if status == 400 and _UNKNOWN_MODEL.search(told):
        message = f"the model name {place.name[:60]!r} is not valid at {place.shown_url} (400): {quoted}"
        hint = "use a model id, or an inference profile such as us.anthropic.…"
        return llm_error(f"{message}; {hint}", place, False, status=status, exit_code=3, usage=usage)
    headers = (response.get("ResponseMetadata") or {}).get("HTTPHeaders") or {}
    if code_of(response) == "ModelNotReadyException":
        message = f"the model at {place.shown_url} is not ready (429): {quoted}"
        hint = "check access to the model in the Bedrock console, or try later"
        return llm_error(f"{message}; {hint}", place, True, retry_after(headers), status=status, usage=usage)
    if status == 424:
        message = f"the model at {place.shown_url} failed (424): {quoted}"
        return llm_error(message, place, True, retry_after(headers), status=status, usage=usage)
    return status_failure(status, told, place, headers, usage)


def _status(response: dict[str, Any]) -> int:
    known = _STATUS.get(code_of(response))
    given = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode")
    return known or (given if isinstance(given, int) else 500)


def _message(response: dict[str, Any]) -> str:
    return str((response.get("Error") or {}).get("Message") or "")


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
        self.names: ToolNames = ToolNames(self._tools)

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


def mark_cached(params: dict[str, Any]) -> None:
    """Have the service cache the prompt up to the end of the system prompt, and of the last two turns of the user.

    The turn before the last is where the request before this one ended: what was written there is read here. Tools
    come before the system prompt.
    """
    asked = [turn["content"] for turn in params["messages"] if turn["role"] == "user"]
    for blocks in (params.get("system", []), *asked[-2:]):
        if blocks:
            blocks.append({_CACHE: {"type": "default"}})


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
        why = "it is an HTML page; is the base URL right?" if page else f"it is not JSON ({error})"
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


Failure = Callable[[Exception, Usage | None], LLMError]
"""Makes the LLMError for what the SDK raised and the usage that came before it."""


class StreamedConverse(StreamedReply):
    """The parts that have come so far."""

    def __init__(self, place: Endpoint, failure: Failure) -> None:
        super().__init__(place)
        self._failure = failure
        self._texts: dict[int, list[str]] = {}
        self._uses: dict[int, dict[str, Any]] = {}
        self._usage: Any = None

    def _whole(self) -> dict[str, Any]:
        indexes = sorted(self._texts.keys() | self._uses.keys())
        content = [self._block(index) for index in indexes]
        return {"output": {"message": {"content": content}}, "stopReason": self._stop, "usage": self._usage}

    def _take(self, event: Any, deltas: Deltas) -> None:
        if not isinstance(event, dict):
            raise self._unusable(f"an event is of type {type(event).__name__}, expected an object")
        if (begun := event.get("contentBlockStart")) is not None:
            self._begin(self._index(begun), begun, deltas)
        elif (part := event.get("contentBlockDelta")) is not None:
            self._add(self._index(part), part, deltas)
        elif (end := event.get("messageStop")) is not None:
            stop = end.get("stopReason") if isinstance(end, dict) else None
            self._stop = stop if isinstance(stop, str) and stop else self._stop
        elif isinstance(told := event.get("metadata"), dict):
            self._usage = told.get("usage", self._usage)

    def _begin(self, index: int, begun: dict[str, Any], deltas: Deltas) -> None:
        start = begun.get("start")
        use = start.get("toolUse") if isinstance(start, dict) else None
        if isinstance(use, dict):
            self._uses[index] = use
            self._texts[index] = []
            deltas.begin_call(use.get("name"))

    def _add(self, index: int, part: dict[str, Any], deltas: Deltas) -> None:
        delta = part.get("delta")
        if not isinstance(delta, dict):
            raise self._unusable("an event's delta is no object")
        use = delta.get("toolUse")
        text = use.get("input") if isinstance(use, dict) else delta.get("text")
        if "toolUse" not in delta and "text" not in delta:
            return
        if not isinstance(text, str) or ("toolUse" in delta) != (index in self._uses):
            raise self._unusable("an event's delta has no text, or no block that it belongs to")
        self._texts.setdefault(index, []).append(text)
        if "text" in delta:
            deltas(text)
        else:
            deltas.add_arguments(self._uses[index].get("name"), text)

    def _block(self, index: int) -> dict[str, Any]:
        text = "".join(self._texts[index])
        return {"toolUse": {**self._uses[index], "input": text}} if index in self._uses else {"text": text}

    def _index(self, part: Any) -> int:
        index = part.get("contentBlockIndex") if isinstance(part, dict) else None
        if not isinstance(index, int):
            raise self._unusable("an event has no number of the block that it belongs to")
        return index

    def _tokens(self) -> Usage | None:
        return converse_usage(self._usage)

    def _failed(self, error: Exception) -> LLMError:
        return self._failure(error, self._tokens())


logger: logging.Logger = logging.getLogger("aeon")

_STREAM_TYPE = "application/vnd.amazon.eventstream"
_ABOUT_SCHEMA = re.compile(
    r"output_?config|output_?format|text_?format|structured.?outputs?|json_?schema|(?<!input)(?<!input_)schema"
)
_ABOUT_ONE = re.compile(r"invalid (?:json.)?schema|complex|grammar|unsupported schema|conversion failed")
_ABOUT_TOOLS = re.compile(r"tool_?config|input_?schema|tools\.\d")
_ABOUT_THINKING = re.compile(r"thinking|additional_?model_?request_?fields")
_ABOUT_CHOICE = re.compile(r"tool_?choice")
_ABOUT_CACHE = re.compile(r"cache_?point|prompt.caching")
_SCHEMA, _THINKING, _ROOM, _CHOICE = "outputConfig", "thinking", "maxTokens with room for thinking", "toolChoice"
_CACHE, _TEMPERATURE = "cachePoint", "temperature"
_INSTEAD = {
    _SCHEMA: "replies are requested in the prompt only",
    _THINKING: "requests are sent without it",
    _CHOICE: "calls are requested in the prompt only",
    _ROOM: "the configured max_tokens are sent",
    _CACHE: "prompts are not cached",
    _TEMPERATURE: "requests are sent without it",
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

    def __init__(self, name: str, client: ConverseClient, temperature: float | None = None) -> None:
        self.name = name
        self.model: str = f"bedrock:{name}"
        self._client = client
        self._temperature = temperature
        self._given_up: set[tuple[str, str]] = set()

    def sibling(self, name: str | None = None, temperature: float | None = None) -> ConverseModel:
        """Return another model, or this one at another temperature, over the same connection: closing one closes it."""
        return ConverseModel(name or self.name, self._client, temperature)

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
        raise LLMError(f"{self.model}: the call was interrupted because the adapter was closed")

    def check(self) -> None:
        """Find region and credentials, and take on the role. Raises ModelUnavailableError (exit 3)."""
        self._client.connect()

    def close(self) -> None:
        """Release connections and cut a request in flight; called from any thread. A later call connects again."""
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
            if self._temperature is not None and self._has(_TEMPERATURE, request):
                params["inferenceConfig"][_TEMPERATURE] = self._temperature
            if request.cache_prefix and takes_cache_points(self.name) and self._has(_CACHE, request):
                mark_cached(params)
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
            reply = streamed.read(started["stream"], Deltas(request, names))
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
            f"{self.model[:80]}: {place.shown_url} does not support "
            f"{option}{f' for {purpose!r}' if purpose else ''}; {_INSTEAD[option]} from now on",
            place,
        )
        logger.warning("%s: %s", notice, one_line(scrubbed(told, self._client.secrets()), place)[:200])
        return notice

    def _refused(self, told: str, request: LLMRequest, params: dict[str, Any]) -> tuple[str, str] | None:
        """Return what a refusal is about, and the purpose that it is about alone; None where it is another's."""
        too_long = is_too_long(400, told)
        if request.cache_prefix and self._has(_CACHE, request) and _ABOUT_CACHE.search(told):
            return _CACHE, ""
        if _TEMPERATURE in params["inferenceConfig"] and _TEMPERATURE in told:
            return _TEMPERATURE, ""
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
