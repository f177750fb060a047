"""What adapters of remote providers share: one request per call, and dropping options that a server refuses."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from operator import attrgetter
from typing import Any, ClassVar, cast
from urllib.parse import parse_qsl, urlsplit

from aeon_core.errors import AeonError, LLMError, ModelUnavailableError
from aeon_core.json_safe import NotJsonSafeError, json_safe, parse_json
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon_core.llm.connect import Endpoint
from aeon_core.llm.errors import (
    is_about_reply,
    is_too_long,
    message_in,
    one_line,
    parse_body,
    reported_failure,
    status_failure,
    transport_failure,
)
from aeon_core.llm.wire import ReplyReader, ToolNames, added

logger: logging.Logger = logging.getLogger("aeon")


class Sockets:
    """The sockets of one client. Once cut, later ones are cut at once too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._cut = False

    def add(self, opened: Any) -> None:
        """Add a socket; ignore anything else."""
        if not isinstance(opened, socket.socket):
            return
        with self._lock:
            self._open.add(opened)
            too_late = self._cut
        if too_late:
            _shut(opened)

    def cut(self) -> None:
        """Shut down every connection; may be called from any thread."""
        with self._lock:
            self._cut = True
            known = list(self._open)
        for opened in known:
            _shut(opened)


def _shut(opened: socket.socket) -> None:
    # The plain socket's method, since the TLS one would wait for, or break, the read that must be woken.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(opened, socket.SHUT_RDWR)


class ClientConnection:
    """A client, made when first needed and again after `close()`, and its sockets. A forked process makes its own."""

    def __init__(self, make: Callable[[Sockets], Any]) -> None:
        self._make = make
        self._begin()
        self.closings: int = 0
        """How often `close()` was called; a call during which this grows was cut off."""
        _connections.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._client: Any = None
        self._sockets = Sockets()

    def leave_to_parent(self) -> None:
        """Forget the client after a fork: over its connections, each process would get the replies of the other."""
        _inherited.append(self._client)
        self._begin()

    def connect(self) -> Any:
        """Return the client. Raises what making it raises, and ModelUnavailableError if it is closed meanwhile.

        Making it may import an SDK, which takes a second; `close()` does not wait for that.
        """
        with self._making:
            with self._lock:
                if self._client is not None:
                    return self._client
                sockets = self._sockets
            client = self._make(sockets)
            with self._lock:
                if sockets is self._sockets:
                    self._client = client
                    return client
        client.close()
        raise ModelUnavailableError("the connection was closed while it was made")

    def until_closed(self, events: Iterable[Any]) -> Iterator[Any]:
        """Return a stream's events up to the next `close()`, without those that wait in a buffer then."""
        closings = self.closings
        return takewhile(lambda _: self.closings == closings, events)

    def close(self) -> None:
        """Cut off calls in flight and release the client; may be called from any thread, any number of times."""
        with self._lock:
            self.closings += 1
            client, self._client = self._client, None
            sockets, self._sockets = self._sockets, Sockets()
        sockets.cut()
        if client is not None:
            client.close()


_connections: weakref.WeakSet[ClientConnection] = weakref.WeakSet()
_inherited: list[Any] = []
"""Clients of a parent process; releasing one could wait for a lock that a thread of the parent held."""


def _leave_to_parent() -> None:
    for connection in list(_connections):
        connection.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)

_REFUSED = (400, 422)
_BROKEN = (500, 501)
_ABOUT_ONE = re.compile(
    r"invalid (?:json.)?schema|complex|grammar|samplers|conversion failed|features? (?:that are )?not supported"
    r"|unimplemented|unsupported schema"
)


@dataclass(frozen=True)
class RequestOption:
    """An optional part of a request, which is dropped if the server refuses it."""

    name: str
    """Its name in a notice, usually the request's parameter."""

    instead: str
    """What happens instead if it is refused, for the notice."""

    words: str | None = None
    """A pattern for the refusal's message in lower case; None if it is recognised in another way."""

    unless: str | None = None
    """A pattern for the refusal of something else."""

    place: str = ""
    """Its keys in the request, joined by dots, if that is not the name."""

    structured: bool = False
    """Whether it asks for structured output; a refusal may then be about one schema only."""


_ROOM = "room"
ROOM_FOR_THINKING = {_ROOM: RequestOption("max_tokens with room for thinking", "the configured max_tokens are sent")}
"""An option that every server may refuse, because its model cannot write a reply of that length."""


@dataclass(frozen=True)
class Refusal:
    """An error from the server: its status, its message in lower case, and its body."""

    status: int
    message: str
    body: Any = None


class RemoteModel(LLMAdapter):
    """An adapter over a provider's SDK. A subclass builds and sends the request, and reads the reply."""

    options: ClassVar[Mapping[str, RequestOption]]
    """What is dropped if a server refuses it."""

    def __init__(self, endpoint: Endpoint, connection: ClientConnection) -> None:
        self._endpoint = endpoint
        self.model: str = endpoint.model
        self.base_url: str | None = endpoint.url
        self._given_up: set[tuple[str, str]] = set()
        self._notices: dict[str, str] = {}
        self._connection = connection

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply to one request. Raises LLMError (core FR-048), retryable or not.

        Sends one HTTP request, and another only if the server refuses an option: that is then left out for the
        adapter's life, and the `notices` of the next reply say so once.
        """
        closings = self._connection.closings
        try:
            client = self._client()
            if self._connection.closings == closings:
                return self._ask(client, request)
        except LLMError:
            if self._connection.closings == closings:
                raise
        except ImportError as error:
            missing = f"{error}; reinstall Aeon"
            if "socksio" in str(error):
                missing = "socksio, which a SOCKS proxy needs; install it next to Aeon, or set an HTTP proxy"
            raise LLMError(f"{self.model}: a package is missing: {missing}", exit_code=3) from None
        raise LLMError(f"{self.model}: the call was interrupted because the adapter was closed")

    def close(self) -> None:
        """Release connections and cut off a request in flight, from any thread. A later call connects again."""
        self._connection.close()

    def _ask(self, client: Any, request: LLMRequest) -> LLMResponse:
        spent: Usage | None = None
        while True:
            params, names = self._built(request)
            try:
                reply = self._send(client, request, params, names)
            except ImportError:
                raise
            except Exception as error:
                if isinstance(error, AeonError) and not isinstance(error, LLMError):
                    raise
                failed = self._failure(error, None)
                spent = added(spent, cast("Usage | None", failed.usage))
                if not self._gives_up(self._refusal(error), request, params):
                    failed.usage = cast("dict[str, int] | None", spent)
                    # Not chained, since the SDK's own message may contain what ours leaves out.
                    raise failed from None
            else:
                notices, self._notices = list(self._notices.values()), {}
                return reply.model_copy(update={"usage": added(spent, reply.usage), "notices": notices})

    def _client(self) -> Any:
        try:
            return self._connection.connect()
        except ImportError:
            raise
        except AeonError as error:
            raise LLMError(f"{self.model}: {error.message}", exit_code=error.exit_code) from None
        except Exception as error:
            why = one_line(f"{type(error).__name__}: {error}", self._endpoint)[:200]
            if isinstance(error, (OSError, ValueError)):
                why += "; check the variables for certificates and proxies, such as SSL_CERT_FILE and HTTPS_PROXY"
            raise LLMError(f"{self.model}: cannot set up the connection: {why}") from None

    def _built(self, request: LLMRequest) -> tuple[dict[str, Any], ToolNames]:
        """Return the request's body and its tools' names, without room for thinking if the server refused that."""
        if request.thinking_tokens and not self._has(_ROOM, request):
            request = replace(request, max_tokens=request.max_tokens - request.thinking_tokens)
        try:
            names = self._tool_names(request)
            params: dict[str, Any] = json_safe(self._params(request, names))
        except (NotJsonSafeError, LookupError, TypeError, AttributeError) as error:
            why = one_line(f"{type(error).__name__}: {error}", self._endpoint)[:200]
            raise LLMError(f"{self.model}: the request cannot be written as JSON: {why}") from None
        return params, names

    def _gives_up(self, refusal: Refusal | None, request: LLMRequest, params: dict[str, Any]) -> bool:
        """Return whether the server refused an option; if so, drop that from now on."""
        if refusal is None or refusal.status not in (*_REFUSED, *_BROKEN):
            return False
        message = refusal.message
        too_long = is_too_long(refusal.status, message, refusal.body)
        name = None if too_long else self._refused_option(message, request, params)
        if name is None and request.thinking_tokens and self._has(_ROOM, request) and is_about_reply(message):
            name = _ROOM
        if name is None or (refusal.status in _BROKEN and not self.options[name].structured):
            return False
        # A refusal because of one schema, of tools, or of length does not apply to other purposes.
        option = self.options[name]
        special = option.structured and bool(_ABOUT_ONE.search(message) or request.tools)
        purpose = request.purpose if special or too_long else ""
        self._given_up.add((name, purpose))
        what = f"{option.name}{f' for {purpose!r}' if purpose else ''}; {option.instead} from now on"
        notice = one_line(f"{self.model[:80]}: {self._endpoint.shown_url} does not support {what}", self._endpoint)
        self._notices[f"{option.place or option.name} {purpose}"] = notice
        logger.warning("%s: %s", notice, one_line(message, self._endpoint)[:200])
        return True

    def _refused_option(self, message: str, request: LLMRequest, params: dict[str, Any]) -> str | None:
        """Return the name of the option among `params` that a refusal is about, None if it is about none."""
        for name, option in self.options.items():
            if option.words is None or not self._has(name, request):
                continue
            value: Any = params
            for key in (option.place or option.name).split("."):
                value = value.get(key) if isinstance(value, dict) else None
            other = option.unless is not None and re.search(option.unless, message)
            if value is not None and not other and re.search(option.words, message):
                return name
        return None

    def _has(self, option: str, request: LLMRequest) -> bool:
        """Return whether the server has not refused the option so far."""
        return not self._given_up & {(option, ""), (option, request.purpose)}

    def _tool_names(self, request: LLMRequest) -> ToolNames:
        return ToolNames(request.tools)

    @abstractmethod
    def _params(self, request: LLMRequest, names: ToolNames) -> dict[str, Any]:
        """Return the request's body."""

    @abstractmethod
    def _send(self, client: Any, request: LLMRequest, params: dict[str, Any], names: ToolNames) -> LLMResponse:
        """Send the request once and return the reply."""

    @abstractmethod
    def _failure(self, error: Exception, usage: Usage | None) -> LLMError:
        """Return the LLMError for whatever the SDK or the library below it raised; `usage` was received before it."""

    @abstractmethod
    def _refusal(self, error: Exception) -> Refusal | None:
        """Return the error from the server, None if the SDK raised something else."""


_EVENTS = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")


class SdkModel(RemoteModel):
    """An adapter over the SDK of Anthropic or OpenAI, which have the same interface.

    Replies are read from the raw body or the parsed events of a stream, because the SDKs' own models accept a
    stream without an end, and complete the JSON of arguments that were cut off.
    """

    reader: ClassVar[type[ReplyReader]]
    resource: ClassVar[str]
    """The client's resource whose `create` asks the model."""

    def __init__(self, endpoint: Endpoint, make: Callable[[Sockets], Any] | None = None, **options: Any) -> None:
        """`make` returns the client; the default makes the SDK's, with `options` in addition to the usual ones."""
        # Functions of the class, since a finalizer must not hold the adapter.
        super().__init__(endpoint, ClientConnection(make or partial(make_client, type(self)._sdk, endpoint, options)))
        self._released = weakref.finalize(self, self._connection.close)

    def _send(self, client: Any, request: LLMRequest, params: dict[str, Any], names: ToolNames) -> LLMResponse:
        reader = self.reader(self._endpoint, request, names, self._failure)
        messages = attrgetter(self.resource)(client)
        if "stream" not in params:
            try:
                raw = messages.with_raw_response.create(**params)
            except self._sdk().APITimeoutError:
                # In a stream, the timeout applies to silence, so that a slow model can finish.
                self._given_up.add(("whole", ""))
                raise
            return reader.document(parse_body(raw.http_response.content, self._endpoint))
        with messages.with_streaming_response.create(**params) as response:
            # Some servers answer with a JSON document or an HTML page, and not all of these say so.
            kind = str(response.headers.get("content-type", "")).lower()
            undeclared = "event-stream" not in kind and "content-length" in response.headers
            if "json" in kind or "html" in kind or (undeclared and not _EVENTS.match(response.read())):
                return reader.document(parse_body(response.read(), self._endpoint))
            stream = response.parse(to=self._sdk().Stream[object])
            # Relays send events without data while the model is silent, at which the SDKs fail. Others begin with a
            # byte order mark, for which the SDKs would drop the first event.
            if (decode := getattr(getattr(stream, "_decoder", None), "decode", None)) is not None:
                stream._decoder.decode = lambda line: (
                    event if (event := decode(line.removeprefix("\ufeff"))) and event.data.strip() else None
                )
            return reader.stream(self._connection.until_closed(stream))

    def _is_streamed(self, request: LLMRequest) -> bool:
        return request.on_delta is not None or not self._has("whole", request)

    def _failure(self, error: Exception, usage: Usage | None) -> LLMError:
        sdk, endpoint = self._sdk(), self._endpoint
        usage = usage or self._reported_usage(error)
        if isinstance(error, LLMError):
            return error
        if isinstance(error, sdk.APIStatusError) and error.status_code >= 300:
            return status_failure(error.status_code, self._body(error), endpoint, error.response.headers, usage)
        if isinstance(error, sdk.APIError) and error.body is not None:
            return reported_failure(error.body, endpoint, usage)
        cause = error.__cause__ if isinstance(error, sdk.APIConnectionError) else None
        return transport_failure(cause if isinstance(cause, Exception) else error, endpoint, usage)

    def _refusal(self, error: Exception) -> Refusal | None:
        status, body = getattr(error, "status_code", None), self._body(error)
        return None if status is None else Refusal(status, message_in(body or str(error)).lower(), body)

    def _reported_usage(self, error: Exception) -> Usage | None:
        """Return the token counts in the body of an HTTP error, None if there are none."""
        body = self._document(error)
        return self.reader.tokens(body.get("usage")) if isinstance(body, dict) else None

    def _body(self, error: Exception) -> Any:
        """Return the body of an HTTP error. OpenAI's SDK returns only what is under `error`, which may be `true`."""
        body = getattr(error, "body", None)
        return body if isinstance(body, dict | list | str) else self._document(error)

    @staticmethod
    def _document(error: Exception) -> Any:
        response = getattr(error, "response", None)
        try:
            return parse_json(response.content) if response is not None else None
        except (ValueError, RuntimeError):  # not JSON, or not read
            return None

    @staticmethod
    @abstractmethod
    def _sdk() -> Any:
        """Return the SDK's module."""


def make_client(
    load: Callable[[], Any], endpoint: Endpoint, options: Mapping[str, Any], sockets: Sockets, transport: Any = None
) -> Any:
    """Return the SDK's client, without retries and with at most ten seconds for connecting."""
    sdk = load()

    def trace(event: str, info: dict[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")):
            sockets.add(info["return_value"].get_extra_info("socket"))

    def watch(request: Any) -> None:
        request.extensions["trace"] = trace

    timeout = sdk.Timeout(endpoint.timeout, connect=min(endpoint.timeout, 10.0))
    # A redirect would take the prompt to a server that nobody chose.
    http = sdk.DefaultHttpxClient(
        event_hooks={"request": [watch]}, timeout=timeout, transport=transport, follow_redirects=False
    )
    address = urlsplit(endpoint.url or "")
    given = {
        "api_key": endpoint.key,
        # The SDKs would put the path of a request after the query.
        "base_url": address._replace(query="").geturl() or None,
        "default_query": dict(parse_qsl(address.query, keep_blank_values=True)),
        "timeout": timeout,
        "max_retries": 0,
        "http_client": http,
    }
    return sdk.Client(**{**given, **options})
