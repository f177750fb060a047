"""Amazon Bedrock, through its Converse API and boto3: the client, requests, replies and errors (Decision 1)."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shlex
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

from aeon_core.errors import AeonError, LLMError, ModelUnavailableError
from aeon_core.installation import missing_extra, versions
from aeon_core.llm.base import LLMRequest, LLMResponse, Message, Usage
from aeon_core.llm.catalogue import claude_thinking, takes_cache_points
from aeon_core.llm.connect import PLACEHOLDER_KEY, Endpoint, check_timeout, find_url
from aeon_core.llm.errors import (
    llm_error,
    one_line,
    parse_body,
    reason_of,
    status_failure,
    transport_failure,
    unreached,
    unusable,
)
from aeon_core.llm.http import ROOM_FOR_THINKING, ClientConnection, Refusal, RemoteModel, RequestOption, Sockets
from aeon_core.llm.wire import ReplyReader, ToolNames, closed_schema, input_object, map_schema, parted, turns
from aeon_core.redaction import REDACTED

logger: logging.Logger = logging.getLogger("aeon")

_RENEW = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run `aws sso login`"
"""What to do if credentials are missing or refused."""

_SERVICE = "bedrock-runtime"
_API_KEY = "AWS_BEARER_TOKEN_BEDROCK"
_NO_CREDENTIALS = f"no AWS credentials for Amazon Bedrock: {_RENEW}"
_CONTAINER = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
_BY_NETWORK = ("container-role", "iam-role", "custom-process")
_BY_PROFILE = ("credential_process", "credential_source")
_LOGINS = {"sso_account_id": "aws sso login", "sso_role_name": "aws sso login", "login_session": "aws login"}
"""The command that logs in, by a profile's key."""
_AWS = "https://amazonaws.com"
_UNREACHED = "check the network and the region"
_METADATA = "metadata_service_timeout"
_METADATA_TIMEOUT = 0.5
_MAX_CONNECT = 10.0


class BedrockClient(ClientConnection):
    """All use of boto3: session, profile, role, region, endpoint, and the sockets of calls in flight.

    The region is `region`, else AWS_REGION, AWS_DEFAULT_REGION or the profile's; credentials come from boto3's chain
    (environment, `profile` or AWS_PROFILE, single sign-on, container, instance) or the API key in
    AWS_BEARER_TOKEN_BEDROCK; with `role_arn` they are exchanged for that role's, which are renewed before they expire.
    `timeout` is the longest silence in seconds. Raises UsageError for a bad endpoint URL or timeout.

    `connect()` finds the credentials and assumes the role; no call is billed. It raises ModelUnavailableError (exit 3;
    system2 REQ-093), which names what is missing: the package, region, credentials, or right to assume the role.
    """

    def __init__(
        self,
        *,
        region: str | None = None,
        profile: str | None = None,
        role_arn: str | None = None,
        endpoint_url: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        super().__init__(self._make_boto3_client)
        self._region = region
        self._profile = profile
        self._role_arn = role_arn
        self.endpoint_url: str | None = find_url(endpoint_url, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
        self.timeout: float = check_timeout(timeout)
        self.secrets: deque[str] = deque(maxlen=16)
        """The secrets that authorized the last requests, to keep them out of messages."""
        self._received = threading.local()

    @property
    def region(self) -> str | None:
        """The region that requests go to; None if nothing names one."""
        region: str | None = self._session().get_config_variable("region")
        return region

    @cached_property
    def renewal(self) -> str:
        """What to do if the credentials are refused."""
        if self._has_key():
            return f"set a valid key in {_API_KEY}"
        with contextlib.suppress(Exception):
            for name, profile in _profiles(self._session()):
                command = next((command for key, command in _LOGINS.items() if key in profile), None)
                if command is not None:
                    return f"run `{command} --profile {shlex.quote(name)}`"
        return _RENEW

    def missing(self) -> str | None:
        """Return in one line what is missing, None if nothing is. Makes no network call.

        So it does not see the role of an EC2 instance, and does not know whether credentials will be accepted.
        """
        try:
            _check_package()
            session = self._session()
            self._check(session)
            if not self._has_key():
                if not _has_credentials(session):
                    return _NO_CREDENTIALS
                _check_login(session)
        except ModelUnavailableError as error:
            return error.message
        except Exception as error:
            return self._unusable(error).message
        return None

    def take_body(self) -> bytes:
        """Return the raw body of the last reply on this thread, once; empty if there was none."""
        body = getattr(self._received, "body", None)
        self._received.body = None
        return body if isinstance(body, bytes) else b""

    def _make_boto3_client(self, sockets: Sockets) -> Any:
        _check_package()
        try:
            session = self._session()
            self._check(session)
            if not self._has_key():
                credentials = session.get_credentials()
                if credentials is None:
                    raise ModelUnavailableError(_NO_CREDENTIALS)
                credentials.get_frozen_credentials()
                session = self._in_role(credentials, sockets) if self._role_arn else session
            import boto3

            client = boto3.Session(botocore_session=session).client(_SERVICE, endpoint_url=self.endpoint_url)
            self._check_address(client.meta.endpoint_url)
        except AeonError:
            raise
        except Exception as error:
            raise self._unusable(error) from None
        client.meta.events.register(f"before-send.{_SERVICE}", self._remember_sent)
        client.meta.events.register(f"before-parse.{_SERVICE}", self._remember_received)
        return watched(client, sockets)

    def _session(self) -> Any:
        import botocore.config
        import botocore.configprovider
        import botocore.session

        session = botocore.session.Session(profile=self._profile)
        region = self._region or os.environ.get("AWS_REGION") or session.get_config_variable("region")
        session.set_config_variable("region", region)
        if not os.environ.get("AWS_METADATA_SERVICE_TIMEOUT") and not session.get_scoped_config().get(_METADATA):
            # Outside AWS nothing answers there, and two lookups of a second each would stall a laptop. The session's
            # variable holds whole seconds only.
            wait = botocore.configprovider.ConstantProvider(_METADATA_TIMEOUT)
            session.get_component("config_store").set_config_provider(_METADATA, wait)
        options: dict[str, Any] = {
            "connect_timeout": min(self.timeout, _MAX_CONNECT),
            "read_timeout": self.timeout,
            "retries": {"total_max_attempts": 1},
            "user_agent_extra": f"aeon/{versions()['aeon']}",
        }
        if self._role_arn:
            # Otherwise an API key in the environment would take precedence over the requested role.
            options["signature_version"] = "v4"
        session.set_default_client_config(botocore.config.Config(**options))
        return session

    def _check(self, session: Any) -> None:
        if not session.get_config_variable("region"):
            raise ModelUnavailableError("no AWS region for Amazon Bedrock: set AWS_REGION, such as us-east-1")
        self._check_address(self.endpoint_url or "")
        # botocore would ask for the code on the terminal, which may belong to the app or not exist.
        if not self._has_key() and any({"role_arn", "mfa_serial"} <= found.keys() for _, found in _profiles(session)):
            raise ModelUnavailableError(
                "the AWS profile asks for an MFA code, which cannot be entered here; "
                "export the credentials of a session that has one, or use a profile with `aws sso login`"
            )

    def _check_address(self, url: str) -> None:
        if self._has_key() and url.startswith("http:"):
            raise ModelUnavailableError(
                f"the key in {_API_KEY} is only sent to https addresses; for another address unset it, and {_RENEW}"
            )

    def _has_key(self) -> bool:
        """Return whether an API key replaces credentials; a requested role takes precedence."""
        return bool(os.environ.get(_API_KEY)) and not self._role_arn

    def _in_role(self, source: Any, sockets: Sockets) -> Any:
        """Return a session with the role's credentials, which it renews before they expire."""
        from botocore import credentials as aws

        sts = self._session()

        def create(*args: Any, **options: Any) -> Any:
            return watched(sts.create_client(*args, **options), sockets)

        fetcher = aws.AssumeRoleCredentialFetcher(
            create, source, self._role_arn, extra_args={"RoleSessionName": "aeon"}
        )
        assumed = aws.DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
        assumed.get_frozen_credentials()
        session = self._session()
        session.register_component("credential_provider", SimpleNamespace(load_credentials=lambda: assumed))
        return session

    def _unusable(self, error: Exception) -> ModelUnavailableError:
        service_error = _read_error(error)
        why = reason_of(error) if service_error is None else f"{service_error.code}: {service_error.message}"
        if isinstance(error, json.JSONDecodeError):
            why = "the credential_process of the AWS profile did not print JSON"
        what = f"cannot assume the role {self._role_arn!r}" if self._role_arn else "cannot use Amazon Bedrock"
        # The services of roles and of single sign-on have addresses of their own.
        url, key = getattr(error, "kwargs", {}).get("endpoint_url"), os.environ.get(_API_KEY) or PLACEHOLDER_KEY
        endpoint = Endpoint("bedrock", "", str(url or _AWS), None, _API_KEY, key, unreached=_UNREACHED)
        detail = one_line(scrubbed(why), endpoint)[:160]
        return ModelUnavailableError(
            f"{what}: {unreached(error, endpoint, detail) or f'{detail}; {_remedy(why, self.renewal)}'}"
        )

    def _remember_sent(self, request: Any, **_: Any) -> None:
        for name in ("Authorization", "X-Amz-Security-Token"):
            value = request.headers.get(name)
            text = value.decode("latin-1") if isinstance(value, bytes) else str(value or "")
            # The secret is at the end of the header: `Bearer …`, or `AWS4-HMAC-SHA256 …, Signature=…`.
            secret = re.split(r"Bearer |Signature=", text)[-1].strip()
            if secret and secret not in self.secrets:
                self.secrets.append(secret)

    def _remember_received(self, response_dict: dict[str, Any], **_: Any) -> None:
        self._received.body = response_dict.get("body")


def watched(client: Any, sockets: Sockets) -> Any:
    """Return the boto3 client after having its future connections added to the sockets."""
    try:
        pools = client._endpoint.http_session._pool_classes_by_scheme
        pools.update({scheme: _watched_pool(pool, sockets) for scheme, pool in pools.items()})
    except AttributeError as error:
        # The pools are botocore's internals; without them calls work, but only their timeout can end them.
        logger.warning("bedrock: a call in flight cannot be interrupted with this botocore: %s", error)
    return client


def _watched_pool(pool: Any, sockets: Sockets) -> Any:
    base = pool.ConnectionCls

    def connect(connection: Any) -> None:
        base.connect(connection)
        # With TLS inside TLS, as behind some proxies, the socket is wrapped twice.
        sockets.add(getattr(connection.sock, "socket", connection.sock))

    return type(pool.__name__, (pool,), {"ConnectionCls": type(base.__name__, (base,), {"connect": connect})})


def _check_package() -> None:
    if find_spec("boto3") is None:
        raise ModelUnavailableError(missing_extra("Amazon Bedrock", "bedrock").message)


def _profiles(session: Any) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the profiles that the credentials come from, with their names: one with a role leads to another."""
    if session.instance_variables().get("profile") is None and os.environ.get("AWS_ACCESS_KEY_ID"):
        return
    profiles, name = dict(session.full_config["profiles"]), session.profile or "default"
    while (profile := profiles.pop(name, None)) is not None:
        yield name, profile
        name = profile.get("source_profile") if "role_arn" in profile else None


def _has_credentials(session: Any) -> bool:
    """Return whether the chain finds credentials, or names a source for them, without a network call or process."""
    profile = session.get_scoped_config()
    if any(os.environ.get(name) for name in _CONTAINER) or any(profile.get(key) for key in _BY_PROFILE):
        return True
    resolver = session.get_component("credential_provider")
    for method in _BY_NETWORK:
        resolver.remove(method)
    return resolver.load_credentials() is not None


def _check_login(session: Any) -> None:
    """Raise botocore's error if the credentials need a login with single sign-on that was never made."""
    from botocore.utils import JSONFileCache, SSOTokenLoader

    for _, profile in _profiles(session):
        if "sso_account_id" in profile:
            name, logins = profile.get("sso_session"), session.full_config.get("sso_sessions", {})
            known = SSOTokenLoader(JSONFileCache(str(Path("~/.aws/sso/cache").expanduser())))
            known(logins.get(name, profile).get("sso_start_url", ""), session_name=name)


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
_ADVICE = {
    403: "allow bedrock:InvokeModel, and access to the model, for these credentials",
    404: "use a model id, or an inference profile such as us.anthropic.…",
}
_BAD_CREDENTIALS = re.compile(
    r"UnrecognizedClient|ExpiredToken|RequestExpired|InvalidSignature|SignatureDoesNotMatch|IncompleteSignature"
    r"|InvalidClientTokenId|InvalidAccessKeyId|MissingAuthenticationToken|AuthFailure"
)
_BY_MESSAGE = {"make sure your API Key is valid": 401, "Bearer Token has expired": 401, "use case details": 403}
"""What a refusal with these words means: Bedrock's code is AccessDeniedException, or that of an unknown model."""
_WRONG_TIME = re.compile(r"Signature (?:expired|not yet current)|RequestExpired|TimeTooSkewed")
_UNKNOWN_MODEL = re.compile(r"model identifier is invalid|on-demand throughput", re.IGNORECASE)
_CREDENTIALS_KIND = re.compile(r"Credential|Token|SSO|Login|Profile|MFA")
# The answer to a bad signature quotes the request's headers, including the session token.
_QUOTED_REQUEST = re.compile(r"(?is)the canonical string for this request.*")
_SIGNED = re.compile(r"(?i)((?:x-amz-security-token|signature|credential)['\"]?\s*[:=]\s*)[^\s,'\"]+")


def _remedy(refusal: str, renewal: str) -> str:
    return "set this machine's clock" if _WRONG_TIME.search(refusal) else renewal


def scrubbed(text: str, secrets: Iterable[str] = ()) -> str:
    """Return foreign text without the secrets, and without the parts of a request's signature."""
    for secret in secrets:
        if len(secret) >= 6:
            text = text.replace(secret, REDACTED)
    return _SIGNED.sub(rf"\1{REDACTED}", _QUOTED_REQUEST.sub("…", text))


class _ServiceError(NamedTuple):
    """An error from the service: its status, its code as written in the documentation, and its message."""

    status: int
    code: str
    message: str


def _read_error(error: Exception) -> _ServiceError | None:
    """Return the error from the service, None if the SDK raised something else."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return None
    details = response.get("Error") or {}
    # In a stream the code begins with a lower-case letter.
    code = str(details.get("Code") or "")
    code = code[:1].upper() + code[1:]
    given = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode")
    status = _STATUS.get(code) or (given if isinstance(given, int) else 500)
    return _ServiceError(status, code, str(details.get("Message") or ""))


def bedrock_failure(
    error: Exception, endpoint: Endpoint, secrets: Iterable[str] = (), usage: Usage | None = None
) -> LLMError:
    """Return the LLMError for whatever the SDK or the library below it raised; `usage` was received before it."""
    if isinstance(error, LLMError):
        return error
    if (service_error := _read_error(error)) is not None:
        message = scrubbed(service_error.message, secrets)
        if service_error.code == "ModelNotReadyException":
            message += "; if this lasts, check the access to the model in the Bedrock console"
        meaning = 401 if _BAD_CREDENTIALS.search(service_error.code) else None
        advice = {**endpoint.advice, 401: _remedy(f"{service_error.code} {message}", endpoint.advice.get(401, _RENEW))}
        if service_error.status == 400 and _UNKNOWN_MODEL.search(message):
            meaning = 404
        for refused, code in _BY_MESSAGE.items():
            if refused in message:
                meaning = code
        if not str(getattr(error, "operation_name", "Converse")).startswith("Converse"):
            advice[403] = advice[401]  # It comes from a service that renews credentials.
        headers = (getattr(error, "response", {}).get("ResponseMetadata") or {}).get("HTTPHeaders")
        # If the service gave no code, it is just the status again.
        text = ": ".join(
            part for part in ("" if service_error.code.isdigit() else service_error.code[:60], message) if part
        )
        endpoint = replace(endpoint, advice=advice)
        return status_failure(service_error.status, text, endpoint, headers, usage, meaning=meaning)
    kind, reason = type(error).__name__, scrubbed(reason_of(error), secrets)
    detail = one_line(reason, endpoint)[:140]
    if reason.startswith("Invalid header value"):
        # It quotes the header, which holds the session's token or the key.
        what = "the AWS credentials contain a character that they cannot have, such as a line break; set them again"
        return llm_error(what, endpoint, False, exit_code=3, usage=usage)
    if kind == "ParamValidationError":
        return llm_error(f"Converse rejected the form of the request: {detail}", endpoint, False, usage=usage)
    if _CREDENTIALS_KIND.search(kind):
        what = f"cannot use the AWS credentials: {detail}; {endpoint.advice.get(401, _RENEW)}"
        return llm_error(what, endpoint, False, exit_code=3, usage=usage)
    return transport_failure(error, endpoint, usage, reason)


_BOUNDS = {
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"),
    *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
}


def converse_params(model_id: str, request: LLMRequest, names: ToolNames) -> dict[str, Any]:
    """Return the parameters of a `converse` call, except for options that a server may refuse."""
    params: dict[str, Any] = {
        "modelId": model_id,
        "messages": turns(request.messages, lambda message: _blocks(message, names, model_id)),
        "inferenceConfig": {"maxTokens": request.max_tokens},
    }
    if request.system.strip():
        params["system"] = [{"text": request.system}]
    if tools := declared_tools(request):
        params["toolConfig"] = {"tools": [_tool(tool, names) for tool in tools]}
    return params


def declared_tools(request: LLMRequest) -> list[dict[str, Any]]:
    """Return a request's tools, else those that its conversation uses, without which Converse refuses it."""
    used = (call["name"] for message in request.messages for call in message.get("tool_calls", []))
    return request.tools or [{"name": name} for name in dict.fromkeys(used)]


def mark_cached(params: dict[str, Any]) -> None:
    """Have the service cache the prompt up to the end of the system prompt and of the user's last two turns.

    The previous request ended at the user's second-to-last turn, so its cache is read there. Tools come before the
    system prompt.
    """
    asked = [turn["content"] for turn in params["messages"] if turn["role"] == "user"]
    for blocks in (params.get("system", []), *asked[-2:]):
        if blocks:
            blocks.append({"cachePoint": {"type": "default"}})


def output_config(request: LLMRequest) -> dict[str, Any] | None:
    """Return the `outputConfig` that asks for the request's schema; None if it cannot express the schema."""
    closed = closed_schema(request.schema)
    if closed is None:
        return None
    definition = {"name": f"aeon_{request.purpose}", "schema": json.dumps(_unbounded(closed), ensure_ascii=False)}
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}


def _blocks(message: Message, names: ToolNames, model_id: str) -> list[dict[str, Any]]:
    content = message["content"]
    if message["role"] == "tool":
        # The service refuses blank text, and results without content.
        result: dict[str, Any] = {"content": [{"text": content if content.strip() else "(no output)"}]}
        # Not every model takes a status, so others than Claude get one only where it says more than the default.
        if message.get("is_error") or "claude" in model_id:
            result["status"] = "error" if message.get("is_error") else "success"
        return [{"toolResult": {"toolUseId": message.get("tool_call_id", ""), **result}}]
    blocks: list[dict[str, Any]] = [{"text": content}] if content.strip() else []
    for call in message.get("tool_calls", []) if message["role"] == "assistant" else []:
        use = {"toolUseId": call.get("id", ""), "name": names.wire(call["name"])}
        blocks.append({"toolUse": {**use, "input": input_object(call["arguments"])}})
    return blocks


def _tool(tool: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    schema = tool.get("input_schema") or {"properties": {}}
    spec = {"name": names.wire(str(tool["name"])), "inputSchema": {"json": {**schema, "type": "object"}}}
    description = str(tool.get("description", ""))
    return {"toolSpec": {**spec, "description": description} if description.strip() else spec}


def _unbounded(node: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with its objects closed, and with the bounds, which Converse refuses, in the description."""
    bounds = {key: value for key, value in node.items() if key in _BOUNDS}
    schema = map_schema({key: value for key, value in node.items() if key not in bounds}, _unbounded)
    if "oneOf" in schema:
        schema.setdefault("anyOf", schema.pop("oneOf"))
    if "properties" in schema:
        schema["additionalProperties"] = False
    if bounds:
        limits = json.dumps(bounds, ensure_ascii=False)
        schema["description"] = f"{schema['description']} {limits}" if schema.get("description") else limits
    return schema


class ConverseReader(ReplyReader):
    """Reads a reply to `converse`, or the events of `converse_stream`."""

    stop_reasons: ClassVar[Mapping[str, str]] = {
        "end_turn": "end",
        "stop_sequence": "end",
        "max_tokens": "max_tokens",
        "model_context_window_exceeded": "max_tokens",
        "tool_use": "tool_use",
        "guardrail_intervened": "refusal",
        "content_filtered": "refusal",
    }
    token_names: ClassVar[Mapping[str, str]] = {
        "input_tokens": "inputTokens",
        "output_tokens": "outputTokens",
        "cache_read_tokens": "cacheReadInputTokens",
        "cache_write_tokens": "cacheWriteInputTokens",
    }

    def _take_document(self, body: Any) -> None:
        self._usage = self.tokens(body.get("usage"))
        for index, block in enumerate(body["output"]["message"]["content"]):
            # A proxy may write null for the other kinds of block.
            if (text := block.get("text")) is not None:
                self._add_text(text, index)
            if (use := block.get("toolUse")) is not None:
                self._begin_call(index, use.get("toolUseId"), use.get("name"), use.get("input"))
        self._end(body.get("stopReason"))

    def _take_event(self, event: Any) -> None:
        if (begun := event.get("contentBlockStart")) is not None:
            if (use := (begun.get("start") or {}).get("toolUse")) is not None:
                self._begin_call(begun["contentBlockIndex"], use.get("toolUseId"), use.get("name"))
        elif (part := event.get("contentBlockDelta")) is not None:
            index, delta = part["contentBlockIndex"], part["delta"]
            if (use := delta.get("toolUse")) is not None:
                self._add_arguments(index, use["input"])
            elif "text" in delta:
                self._add_text(delta["text"], index)
        elif (end := event.get("messageStop")) is not None:
            self._end(end.get("stopReason"))
        elif (metadata := event.get("metadata")) is not None:
            self._usage = self.tokens(metadata.get("usage")) or self._usage


_STREAM_TYPE = "application/vnd.amazon.eventstream"
_ABOUT_CACHE = r"cache_?point|prompt.caching"
_OPTIONS = {
    **ROOM_FOR_THINKING,
    "cachePoint": RequestOption("cachePoint", "prompts are not cached", _ABOUT_CACHE, place="messages"),
    "temperature": RequestOption(
        "temperature", "requests are sent without it", "temperature", place="inferenceConfig.temperature"
    ),
    "user_after_tool": RequestOption(
        "a message of the user after a tool's result",
        "a reply is put between them",
        "tool result blocks cannot be provided in the same turn",
        place="messages",
    ),
    "stream": RequestOption(
        "a stream with tools",
        "replies to requests with tools are not streamed",
        "tool use in streaming mode",
        place="toolConfig",
    ),
    "toolChoice": RequestOption(
        "toolChoice", "calls are requested in the prompt only", r"tool_?choice", place="toolConfig.toolChoice"
    ),
    "thinking": RequestOption(
        "thinking",
        "requests are sent without it",
        r"thinking|additional_?model_?request_?fields",
        place="additionalModelRequestFields",
    ),
    "outputConfig": RequestOption(
        "outputConfig",
        "replies are requested in the prompt only",
        r"output_?config|output_?format|text_?format|structured.?outputs?|json_?schema|(?<!input)(?<!input_)schema"
        r"|grammar",
        r"tool_?config|input_?schema|tools\.\d",
        structured=True,
    ),
}


class BedrockModel(RemoteModel):
    """A model on Converse. `name` is a model's id, an inference profile such as `us.anthropic.…`, or an ARN.

    `base_url` replaces the service's address. A given `client` is used with its own options, and closing the model
    closes it. Raises UsageError for a bad base URL or timeout, ModelUnavailableError (exit 3) for a missing package.
    """

    options: ClassVar[Mapping[str, RequestOption]] = _OPTIONS

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        timeout: float = 120.0,
        client: BedrockClient | None = None,
        region: str | None = None,
        profile: str | None = None,
        role_arn: str | None = None,
        temperature: float | None = None,
    ) -> None:
        _check_package()
        self.name = name
        self._aws: BedrockClient = client or BedrockClient(
            region=region, profile=profile, role_arn=role_arn, endpoint_url=base_url, timeout=timeout
        )
        self._temperature = temperature
        super().__init__(self._endpoint_at("https://bedrock-runtime.amazonaws.com"), self._aws)

    def sibling(self, name: str | None = None, temperature: float | None = None) -> BedrockModel:
        """Return another model, or this one at another temperature, on the same connection; closing one closes both."""
        return BedrockModel(name or self.name, client=self._aws, temperature=temperature)

    def check(self) -> None:
        """Find the region and credentials, and assume the role. Raises ModelUnavailableError (exit 3)."""
        self._aws.connect()

    def _endpoint_at(self, url: str, renewal: str = _RENEW) -> Endpoint:
        given, timeout = self._aws.endpoint_url, self._aws.timeout
        return Endpoint(
            "bedrock", self.name, url, given, "AWS_PROFILE", PLACEHOLDER_KEY, timeout, "AWS credentials",
            {**_ADVICE, 401: renewal}, _UNREACHED,
        )  # fmt: skip

    def _client(self) -> Any:
        client = super()._client()
        self._endpoint = self._endpoint_at(client.meta.endpoint_url, self._aws.renewal)
        return client

    def _tool_names(self, request: LLMRequest) -> ToolNames:
        return ToolNames(declared_tools(request))

    def _params(self, request: LLMRequest, names: ToolNames) -> dict[str, Any]:
        if not self._has("user_after_tool", request):
            request = replace(request, messages=parted(request.messages))
        params = converse_params(self.name, request, names)
        if request.forced_tool is not None and self._has("toolChoice", request):
            params["toolConfig"]["toolChoice"] = {"tool": {"name": names.wire(request.forced_tool)}}
        if self._has("outputConfig", request) and (config := output_config(request)) is not None:
            params["outputConfig"] = config
        if self._has("thinking", request) and (thinking := claude_thinking(self.name, request)) is not None:
            params["additionalModelRequestFields"] = {"thinking": thinking}
        if self._temperature is not None and self._has("temperature", request):
            params["inferenceConfig"]["temperature"] = self._temperature
        if request.cache_prefix and takes_cache_points(self.name) and self._has("cachePoint", request):
            mark_cached(params)
        return params

    def _send(self, client: Any, request: LLMRequest, params: dict[str, Any], names: ToolNames) -> LLMResponse:
        reader = ConverseReader(self._endpoint, request, names, self._failure)
        if request.on_delta is None or ("toolConfig" in params and not self._has("stream", request)):
            return reader.document(self._document(client, params))
        started = client.converse_stream(**params)
        kind = str(started["ResponseMetadata"]["HTTPHeaders"].get("content-type", _STREAM_TYPE))
        with contextlib.closing(started["stream"]) as events:
            if _STREAM_TYPE not in kind:
                why = f"it is {kind[:60]!r}, expected {_STREAM_TYPE!r}; is the base URL right?"
                raise unusable(self._endpoint, why)
            # Redacted thinking is bytes, which have no JSON form.
            thought = "reasoningContent"
            return reader.stream(
                event
                for event in self._connection.until_closed(events)
                if thought not in event.get("contentBlockDelta", {}).get("delta", {})
            )

    def _document(self, client: Any, params: dict[str, Any]) -> Any:
        """Return the raw reply, because botocore hides what it cannot parse, including the tokens used."""
        self._aws.take_body()
        try:
            client.converse(**params)
        except Exception as error:
            body = self._aws.take_body()
            if not body or hasattr(error, "response"):
                raise
            return parse_body(body, self._endpoint)
        return parse_body(self._aws.take_body(), self._endpoint)

    def _failure(self, error: Exception, usage: Usage | None) -> LLMError:
        return bedrock_failure(error, self._endpoint, self._aws.secrets, usage)

    def _refusal(self, error: Exception) -> Refusal | None:
        if (service_error := _read_error(error)) is None:
            return None
        message = scrubbed(service_error.message, self._aws.secrets).lower()
        # The service answers a cache point for a model without a cache with another status than 400.
        return Refusal(400 if re.search(_ABOUT_CACHE, message) else service_error.status, message)
