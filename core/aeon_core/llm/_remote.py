"""What the adapters of remote providers share: one request a call, options given up where a server refuses them."""

from __future__ import annotations

import logging
import weakref
from abc import abstractmethod
from typing import Any, ClassVar

from aeon_core.errors import AeonError, LLMError
from aeon_core.llm._connection import Connection, Watch
from aeon_core.llm._endpoint import Endpoint
from aeon_core.llm._failure import failure, one_line, said, unusable
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.plain import NotPlainError, parse_json, plain

logger = logging.getLogger("aeon")

_REFUSED = (400, 422)


class RemoteModel(LLMAdapter):
    """An adapter over a provider's SDK. A subclass says how its request looks, is sent and its reply read."""

    schema_option: ClassVar[str]
    """The option that asks for structured output."""

    def __init__(self, place: Endpoint) -> None:
        self._place = place
        self.model = place.model
        self._given_up: set[tuple[str, str]] = set()
        self._connection = Connection(self._maker(place))
        self._released = weakref.finalize(self, self._connection.close)

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply to one request. Raises LLMError (core FR-048), retryable or not.

        One HTTP request a call; another one only where the server refuses an option that it does not know, which is
        then left out for the adapter's life.
        """
        closings = self._connection.closings
        try:
            return self._ask(request)
        except AeonError as error:
            if not self._was_cut(closings) or not isinstance(error, LLMError):
                raise
        except ImportError as error:
            raise LLMError(f"{self.model}: a package is missing: {error}; install Aeon again", exit_code=3) from None
        except Exception as error:
            if not self._was_cut(closings):
                # The SDK's own message may hold what ours leaves out, so it is not chained.
                raise failure(error, self._sdk(), self._place) from None
        raise LLMError(f"{self.model}: the call was cut, since the adapter was closed")

    def close(self) -> None:
        """Release connections and cut a request in flight; called from any thread. A later call connects anew."""
        self._connection.close()

    def _was_cut(self, closings: int) -> bool:
        return self._connection.closings != closings

    def _ask(self, request: LLMRequest) -> LLMResponse:
        client = self._client()
        while True:
            params = self._built(request)
            try:
                return self._send(client, request, params)
            except Exception as error:
                if not self._gives_up(error, request, params):
                    raise

    def _client(self) -> Any:
        try:
            return self._connection.client()
        except ImportError:
            raise
        except Exception as error:
            why = one_line(f"{type(error).__name__}: {error}", self._place)[:200]
            raise LLMError(f"{self.model}: the connection cannot be set up: {why}") from None

    def _built(self, request: LLMRequest) -> dict[str, Any]:
        try:
            params: dict[str, Any] = plain(self._params(request))
        except (NotPlainError, LookupError, TypeError, AttributeError) as error:
            why = one_line(f"{type(error).__name__}: {error}", self._place)[:200]
            raise LLMError(f"{self.model}: the request cannot be written as JSON: {why}") from None
        return params

    def _gives_up(self, error: Exception, request: LLMRequest, params: dict[str, Any]) -> bool:
        """Return whether the server refused an option that the request can do without, and remember it."""
        if getattr(error, "status_code", None) not in _REFUSED:
            return False
        told = said(getattr(error, "body", None) or str(error)).lower()
        option = self._refused_option(told, params)
        if option is None:
            return False
        # What is wrong with one schema, or beside tools, says nothing about the other requests.
        about_one = "invalid schema" in told or "complex" in told or bool(request.tools)
        special = about_one and option == self.schema_option
        self._given_up.add((option, request.purpose if special else ""))
        where = f" for {request.purpose!r}" if special else ""
        logger.warning(
            "%s: %s does not take %s%s, going on without: %s",
            self.model,
            self._place.shown_url,
            option,
            where,
            one_line(told, self._place)[:200],
        )
        return True

    def _has(self, option: str, request: LLMRequest) -> bool:
        """Return whether the server was not yet seen to refuse the option."""
        return not self._given_up & {(option, ""), (option, request.purpose)}

    def _body(self, content: bytes) -> Any:
        """Return a reply's body as plain JSON. Raises LLMError, retryable, for what is none."""
        try:
            return parse_json(content)
        except ValueError as error:
            page = content.lstrip()[:1] == b"<"
            why = "it is an HTML page; is the base URL right?" if page else f"it is no JSON ({error})"
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

    @abstractmethod
    def _params(self, request: LLMRequest) -> dict[str, Any]:
        """Return the request's body."""

    @abstractmethod
    def _send(self, client: Any, request: LLMRequest, params: dict[str, Any]) -> LLMResponse:
        """Send the request once and return the reply."""

    @abstractmethod
    def _refused_option(self, told: str, params: dict[str, Any]) -> str | None:
        """Return the option among `params` that a refusal is about, None where it is about something else."""


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
