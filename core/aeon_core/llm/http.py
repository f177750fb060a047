"""What the adapters of remote providers share: one request a call, options given up where a server refuses them."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from aeon_core.errors import AeonError, LLMError
from aeon_core.json_safe import NotJsonSafeError, json_safe, parse_json
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon_core.llm.connect import Endpoint
from aeon_core.llm.errors import failure, is_about_reply, is_too_long, one_line, said, unusable
from aeon_core.llm.wire import added

Watch = Callable[[Any], None]
"""A hook for the HTTP client's requests, so that the connection learns of its sockets."""


class Connection:
    """The client, made when it is first needed and again after `close()`, and the sockets below it."""

    def __init__(self, make: Callable[[Watch], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._client: Any = None
        self._sockets: list[socket.socket] = []
        self.closings: int = 0
        """How often `close()` was called: a call that sees it grow was cut."""

    def client(self) -> Any:
        """Return the client. Raises what the SDK raises when it cannot be made, and where it was closed meanwhile.

        Making it may import an SDK, which takes a second: `close()` does not wait for that.
        """
        with self._making:
            with self._lock:
                if self._client is not None:
                    return self._client
                closings = self.closings
            made = self._make(self._watch)
            with self._lock:
                if closings == self.closings:
                    self._client = made
                    return made
        made.close()
        raise ConnectionAbortedError("the adapter was closed while it connected")

    def close(self) -> None:
        """Cut what is in flight and release the client; from any thread, any number of times."""
        with self._lock:
            self.closings += 1
            client, self._client = self._client, None
            sockets, self._sockets = self._sockets, []
        for opened in sockets:
            # The plain socket's method: the TLS one would wait for, or spoil, the read that is to be woken.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(opened, socket.SHUT_RDWR)
        if client is not None:
            client.close()

    def _watch(self, request: Any) -> None:
        request.extensions["trace"] = self._traced

    def _traced(self, event: str, info: dict[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            opened = info["return_value"].get_extra_info("socket")
            if isinstance(opened, socket.socket):
                with self._lock:
                    self._sockets = [known for known in self._sockets if known.fileno() >= 0]
                    self._sockets.append(opened)


logger: logging.Logger = logging.getLogger("aeon")

_REFUSED = (400, 422)
_BROKEN = (500, 501)
_ABOUT_ONE = re.compile(
    r"invalid (?:json.)?schema|complex|grammar|samplers|conversion failed|features? (?:that are )?not supported"
    r"|unimplemented|unsupported schema"
)


@dataclass(frozen=True)
class Option:
    """Something that a request can do without."""

    sent_as: str
    """The parameter of the request."""

    instead: str
    """What is done where it is refused."""

    what: str = ""
    """What is refused, where that is less than the parameter."""

    structured: bool = False
    """Whether it asks for structured output: then a refusal may be about one schema alone."""


_ROOM = "room"
ROOM_FOR_THINKING = {_ROOM: Option("max_tokens with room for thinking", "the configured max_tokens are sent")}
"""What every server may refuse: its model writes no reply of that length, or has no space for it."""


class RemoteModel(LLMAdapter):
    """An adapter over a provider's SDK. A subclass says how its request looks, is sent and its reply read."""

    options: ClassVar[Mapping[str, Option]]
    """What is given up where a server refuses it."""

    def __init__(self, place: Endpoint) -> None:
        self._place = place
        self.model: str = place.model
        self.base_url: str | None = place.url
        self._given_up: set[tuple[str, str]] = set()
        self._notices: dict[str, str] = {}
        self._connection = Connection(self._maker(place))
        self._released = weakref.finalize(self, self._connection.close)

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply to one request. Raises LLMError (core FR-048), retryable or not.

        One HTTP request a call; another one only where the server refuses an option that the request can do without,
        which is then left out for the adapter's life; the next reply's `notices` say so, once.
        """
        closings = self._connection.closings
        try:
            return self._ask(request)
        except LLMError:
            if not self._was_cut(closings):
                raise
        except ImportError as error:
            raise LLMError(f"{self.model}: a package is missing: {error}; reinstall Aeon", exit_code=3) from None
        raise LLMError(f"{self.model}: the call was interrupted because the adapter was closed")

    def close(self) -> None:
        """Release connections and cut a request in flight; called from any thread. A later call connects again."""
        self._connection.close()

    def _was_cut(self, closings: int) -> bool:
        return self._connection.closings != closings

    def _ask(self, request: LLMRequest) -> LLMResponse:
        client, spent = self._client(), None
        while True:
            params = self._built(request)
            try:
                reply = self._send(client, request, params)
            except (ImportError, AeonError) as error:
                if not isinstance(error, LLMError):
                    raise
                spent = added(spent, cast("Usage | None", error.usage))
                if not self._gives_up(error, request, params):
                    error.usage = cast("dict[str, int] | None", spent)
                    raise
            except Exception as error:
                spent = added(spent, self._told_usage(error))
                if not self._gives_up(error, request, params):
                    # The SDK's own message may hold what ours leaves out, so it is not chained.
                    raise failure(error, self._sdk(), self._place, spent) from None
            else:
                notices, self._notices = list(self._notices.values()), {}
                return reply.model_copy(update={"usage": added(spent, reply.usage), "notices": notices})

    def _client(self) -> Any:
        try:
            return self._connection.client()
        except ImportError:
            raise
        except Exception as error:
            why = one_line(f"{type(error).__name__}: {error}", self._place)[:200]
            raise LLMError(f"{self.model}: cannot set up the connection: {why}") from None

    def _built(self, request: LLMRequest) -> dict[str, Any]:
        try:
            params: dict[str, Any] = json_safe(self._params(self._roomed(request)))
        except (NotJsonSafeError, LookupError, TypeError, AttributeError) as error:
            why = one_line(f"{type(error).__name__}: {error}", self._place)[:200]
            raise LLMError(f"{self.model}: the request cannot be written as JSON: {why}") from None
        return params

    def _roomed(self, request: LLMRequest) -> LLMRequest:
        """Return the request with the `max_tokens` that the server was not yet seen to refuse."""
        if request.thinking_tokens and not self._has(_ROOM, request):
            return replace(request, max_tokens=request.max_tokens - request.thinking_tokens)
        return request

    def _gives_up(self, error: Exception, request: LLMRequest, params: dict[str, Any]) -> bool:
        """Return whether the server refused an option that the request can do without, and remember it."""
        status, body = getattr(error, "status_code", None), getattr(error, "body", None)
        told = said(body or str(error)).lower()
        if status not in (*_REFUSED, *_BROKEN):
            return False
        too_long = is_too_long(status, told, body)
        name = None if too_long else self._refused_option(told, params)
        if name is None and request.thinking_tokens and self._has(_ROOM, request) and is_about_reply(told):
            name = _ROOM
        if name is None or (status in _BROKEN and not self.options[name].structured):
            return False
        # What is wrong with one schema, or beside tools, or too long, says nothing about the other requests.
        special = self.options[name].structured and bool(_ABOUT_ONE.search(told) or request.tools)
        self._give_up(name, request.purpose if special or too_long else "", told)
        return True

    def _give_up(self, name: str, purpose: str, told: str) -> None:
        self._given_up.add((name, purpose))
        option = self.options[name]
        notice = one_line(
            f"{self.model[:80]}: {self._place.shown_url} does not support "
            f"{option.what or option.sent_as}{f' for {purpose!r}' if purpose else ''}; {option.instead} from now on",
            self._place,
        )
        self._notices[f"{option.sent_as} {purpose}"] = notice
        logger.warning("%s: %s", notice, one_line(told, self._place)[:200])

    def _told_usage(self, error: Exception) -> Usage | None:
        """Return the token counts in an HTTP error, None if it has none."""
        response = getattr(error, "response", None)
        try:
            body = parse_json(response.content) if response is not None else None
        except (ValueError, RuntimeError):  # no JSON; or never read
            return None
        return self._usage(body.get("usage")) if isinstance(body, dict) else None

    def _has(self, option: str, request: LLMRequest) -> bool:
        """Return whether the server was not yet seen to refuse the option."""
        return not self._given_up & {(option, ""), (option, request.purpose)}

    def _body(self, content: bytes) -> Any:
        """Return a reply's body as plain JSON. Raises LLMError, retryable, for what is none."""
        try:
            return parse_json(content)
        except ValueError as error:
            page = content.lstrip()[:1] == b"<"
            why = "it is an HTML page; is the base URL right?" if page else f"it is not JSON ({error})"
            raise unusable(self._place, why if content.strip() else "it is empty") from None

    @staticmethod
    def _is_stream(headers: Any) -> bool:
        """Return whether a streamed reply is one: some servers answer with a whole document, or a page."""
        kind = str(headers.get("content-type", "")).lower()
        return "json" not in kind and "html" not in kind

    @staticmethod
    @abstractmethod
    def _maker(place: Endpoint) -> Any:
        """Return a function that makes the SDK's client; it must not hold the adapter."""

    @staticmethod
    @abstractmethod
    def _sdk() -> Any:
        """Return the SDK's module."""

    @staticmethod
    @abstractmethod
    def _usage(usage: Any) -> Usage | None:
        """Return the tokens of a reply's `usage`, None where there are none."""

    @abstractmethod
    def _params(self, request: LLMRequest) -> dict[str, Any]:
        """Return the request's body."""

    @abstractmethod
    def _send(self, client: Any, request: LLMRequest, params: dict[str, Any]) -> LLMResponse:
        """Send the request once and return the reply."""

    @abstractmethod
    def _refused_option(self, told: str, params: dict[str, Any]) -> str | None:
        """Return the name of the option among `params` that a refusal is about, None where it is another's."""


def client_options(sdk: Any, place: Endpoint, watch: Watch) -> dict[str, Any]:
    """Return what both SDKs' clients are made with: no retries of their own, a short wait for the connection."""
    timeout = sdk.Timeout(place.timeout, connect=min(place.timeout, 10.0))
    return {
        "api_key": place.key,
        "base_url": place.url,
        "timeout": timeout,
        "max_retries": 0,
        "http_client": sdk.DefaultHttpxClient(event_hooks={"request": [watch]}, timeout=timeout),
    }
