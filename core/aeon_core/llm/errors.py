"""Everything that can go wrong with a provider, as one LLMError: one line, no key, worth another attempt or not."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import Any

from aeon_core.errors import LLMError
from aeon_core.escape import escape_controls
from aeon_core.json_safe import clean_text
from aeon_core.llm.base import Usage
from aeon_core.llm.connect import PLACEHOLDER_KEY, Endpoint
from aeon_core.llm.retry import MAX_WAIT
from aeon_core.redaction import REDACTED, redact_text

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|request_too_large"
    r"|maximum (?:context|model) length|exceeds? (?:the )?(?:available )?context|exceeds? context limit"
    r"|(?:prompt|input) is too long|too long for (?:the )?requested model"
    r"|greater than the context length|with (?:a )?context length of only"
    r"|input tokens? (?:count .*)?exceeds?",
    re.IGNORECASE,
)
_NEEDED = re.compile(
    r"resulted in (\d+)|requested (?:tokens \()?(\d+)|too long: (\d+)|request \((\d+) tokens|the first (\d+) tokens"
    r"|n_keep: (\d+)|input length \((\d+)|prompt \(length (\d+)|token count \((\d+)",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"maximum (?:context|model) length (?:is |of |\()(\d+)|> (\d+) maximum|context size \((\d+)"
    r"|context length of only (\d+)|n_ctx: (\d+)|context window of (\d+)|configured limit of (\d+)"
    r"|maximum number of tokens allowed \((\d+)",
    re.IGNORECASE,
)
_ABOUT_REPLY = re.compile(
    r"max_?(?:\w+_)?tokens|maximum tokens|in the completion|(?:completion|output) tokens", re.IGNORECASE
)
_STATUSES = (None, 400, 413, 422, 500)
REMEDY = "shorten the task or its results, or use a model with a larger context"


def is_too_long(status: int | None, told: str, body: Any = None) -> bool:
    """Return whether an error says that the request does not fit: by its status 413, its code, or its words."""
    if status not in _STATUSES:
        return False
    return status == 413 or bool(_TOO_LONG.search(f"{told} {_error_of(body).get('type', '')}"))


def is_about_reply(told: str) -> bool:
    """Return whether an error speaks of how long the reply may be."""
    return bool(_ABOUT_REPLY.search(told))


def by_how_much(told: str, body: Any = None) -> str:
    """Return by how many tokens the request is too long, empty where that was not told."""
    error = _error_of(body)
    needed = _count(error.get("n_prompt_tokens")) or _found(_NEEDED, told)
    limit = _count(error.get("n_ctx")) or _found(_LIMIT, told)
    if not needed or not limit or needed <= limit:
        return ""
    return f"{needed} tokens, but only {limit} fit: {needed - limit} too many"


def _error_of(body: Any) -> dict[str, Any]:
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _found(pattern: re.Pattern[str], told: str) -> int | None:
    match = pattern.search(told.replace(",", ""))
    digits = next((group for group in match.groups() if group), "") if match else ""
    return int(digits) if 0 < len(digits) <= 12 else None


MAX_MESSAGE = 300
_MAX_SAID = 140
_MAX_SAID_OF_LENGTH = 100
_READ_AT_MOST = 20_000
_MAX_CAUSES = 10

_NEVER_REACHED = ("ConnectTimeout", "ConnectError", "UnsupportedProtocol", "InvalidURL", "ProxyError")
"""Kinds of failure before which nothing was sent, so that nothing can have been charged."""
_RETRYABLE_4XX = (408, 409, 425, 429)
_REFUSED = (400, 422)
_UNAVAILABLE = 503
_NO_USABLE_MODEL = (401, 402, 403, 404)
_NO_CREDIT = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error", "budget_exceeded"}
)
_NO_MODEL = frozenset({"model_not_found", "invalid_model", "unknown_model", "model_not_available", "invalid_model_id"})
_NO_KEY = frozenset(
    {"invalid_api_key", "authentication_error", "auth_error", "api_key_invalid", "token_not_found_in_db"}
)
_SAYS_NO_MODEL = re.compile(
    r"invalid model\b|not a valid model\b|unknown model\b|model (?:does )?not (?:exist|found)"
    r"|no 'model_name' with this string"
)
_SAYS_NOT_THERE = re.compile(r"does not exist|not found|not available")
_SAYS_NO_KEY = re.compile(
    r"(?:incorrect|invalid|expired|missing|no) api.?key|api.?key (?:is )?(?:not valid|invalid|expired|missing)"
)
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def failure(error: Exception, sdk: Any, place: Endpoint, usage: Usage | None = None) -> LLMError:
    """Return the LLMError for whatever the SDK or the library below it raised; `usage` is what came before it."""
    if isinstance(error, LLMError):
        return error
    if isinstance(error, sdk.APIStatusError) and error.status_code >= 400:
        return status_failure(error.status_code, error.body or error.message, place, error.response.headers, usage)
    if isinstance(error, sdk.APIError) and error.body is not None:
        return told_failure(error.body, place, usage)
    return _transport_failure(error, sdk, place, usage)


def status_failure(
    status: int, body: Any, place: Endpoint, headers: Mapping[str, str] | None = None, usage: Usage | None = None
) -> LLMError:
    """Return the LLMError for an HTTP status of 400 or more. Retryable are 408, 409, 425, 429 and 5xx (core FR-048).

    What says that there is no usable model (the key, the model's name, the credit) ends a run with exit 3.
    A request that does not fit the model is never retryable: the error's context says `context_too_long`.
    """
    url, told = place.shown_url, said(body)
    if is_too_long(status, told, body):
        return too_long_failure(told, body, place, status, usage)
    meant = _meant(status, body, told, place.name)
    what = {
        401: f"{url} rejected the key ({status})",
        402: f"{url} has no credit left for the key in {place.key_variable} ({status})",
        403: f"{url} refused access ({status})",
        404: f"the model name {place.name[:60]!r} is unknown at {url} ({status})",
        429: f"{url} limits the rate of requests ({status})",
    }.get(meant, f"{url} {'failed' if status >= 500 else 'refused the request'} ({status})")
    hint = {
        401: f"; set a valid key in {place.key_variable}",
        402: "; add credit there, or use another model",
        403: f"; check what the key in {place.key_variable} can access",
        404: "; check the name" + (" and the base URL" if place.url else ""),
    }.get(meant, "")
    quoted = f": {one_line(told, place)[:_MAX_SAID]}" if told else ""
    retryable = meant >= 500 or meant in _RETRYABLE_4XX
    context: dict[str, Any] = {"exit_code": 3} if meant in _NO_USABLE_MODEL else {}
    if status == _UNAVAILABLE:
        context["unavailable"] = True
    wait = retry_after(headers) if retryable else None
    return llm_error(f"{what}{quoted}{hint}", place, retryable, wait, status, usage, **context)


def _meant(status: int, body: Any, told: str, model: str) -> int:
    """Return the status that a refusal means: proxies answer 400 for an unknown model or key, and 429 without credit.

    The body's own fields decide; for a 400 without any, the words that LiteLLM, OpenRouter, DeepSeek and xAI use.
    """
    named = _fields(body)
    if named & _NO_CREDIT:
        return 402
    if status not in _REFUSED:
        return status
    if named & _NO_MODEL or (isinstance(body, dict) and _inner(body).get("param") == "model"):
        return 404
    if named & _NO_KEY:
        return 401
    said_so = told.lower()
    if _SAYS_NO_MODEL.search(said_so) or (model.lower() in said_so and _SAYS_NOT_THERE.search(said_so)):
        return 404
    return 401 if _SAYS_NO_KEY.search(said_so) else status


def _fields(body: Any) -> set[str]:
    """Return what an error's body says in its fields `code`, `type` and `reason`, in lower case."""
    found = body[0] if isinstance(body, list) and body else body
    inner = _inner(found) if isinstance(found, dict) else {}
    details = inner.get("details")
    places = [inner, *(details if isinstance(details, list) else [])]
    told = (place.get(key) for place in places if isinstance(place, dict) for key in ("code", "type", "reason"))
    return {word.lower() for word in told if isinstance(word, str)}


def _inner(body: dict[str, Any]) -> dict[str, Any]:
    inner = body.get("error", body)
    return inner if isinstance(inner, dict) else body


def too_long_failure(
    told: str, body: Any, place: Endpoint, status: int | None = None, usage: Usage | None = None
) -> LLMError:
    """Return the LLMError for a request that does not fit the model: what is too long, by how much, what to do."""
    detail = by_how_much(told, body) or one_line(told, place)[:_MAX_SAID_OF_LENGTH]
    code = f" ({status})" if status is not None else ""
    message = f"the request is too long for the model at {place.shown_url}{code}{': ' if detail else ''}{detail}"
    return llm_error(f"{message}; {REMEDY}", place, False, status=status, usage=usage, context_too_long=True)


def told_failure(body: Any, place: Endpoint, usage: Usage | None = None) -> LLMError:
    """Return the LLMError for an error that came where a reply should: in a stream, or under the status 200."""
    if (status := _told_status(body)) is not None:
        return status_failure(status, body, place, usage=usage)
    if is_too_long(None, said(body), body):
        return too_long_failure(said(body), body, place, usage=usage)
    told = one_line(said(body), place)[:_MAX_SAID]
    return llm_error(f"{place.shown_url} sent an error instead of a reply: {told}", place, True, usage=usage)


def unusable(place: Endpoint, why: str, usage: Usage | None = None) -> LLMError:
    """Return the LLMError for a reply that is none. Its usage, where known, is in the error's context."""
    return llm_error(f"cannot use the reply of {place.shown_url}: {one_line(why, place)}", place, True, usage=usage)


def said(body: Any) -> str:
    """Return what an error's body says: its message, with the parameter and the code it names."""
    if isinstance(body, (bytes, str)):
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        return "an HTML page" if text.lstrip()[:1] == "<" else text[:_READ_AT_MOST]
    if not isinstance(body, dict):
        return ""
    inner = body.get("error", body)
    if not isinstance(inner, dict):
        return str(inner)[:_READ_AT_MOST]
    message = inner.get("message") or inner.get("detail") or ""
    if isinstance(message, list):
        message = "; ".join(_field_error(item) for item in message[:5])
    named = [str(inner[key])[:80] for key in ("param", "code") if isinstance(inner.get(key), (str, int))]
    return f"{message} ({', '.join(named)})"[:_READ_AT_MOST] if named else str(message)[:_READ_AT_MOST]


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Return the wait a provider asks for in seconds, 0…60: given in milliseconds, seconds, or as an HTTP date."""
    milliseconds = _number((headers or {}).get("retry-after-ms"))
    if milliseconds is not None:
        return _capped(milliseconds / 1000)
    text = (headers or {}).get("retry-after")
    seconds = _number(text)
    if seconds is not None:
        return _capped(seconds)
    try:
        date = parsedate_tz(text) if text else None
        return _capped(mktime_tz(date) - time.time()) if date is not None else None
    except (ValueError, OverflowError, TypeError):
        return None


def one_line(text: str, place: Endpoint) -> str:
    """Return foreign text fit for a message: no key, no control characters, on one line."""
    text = clean_text(text)[:_READ_AT_MOST]
    if len(place.key) >= 6 and place.key != PLACEHOLDER_KEY:
        text = text.replace(place.key, REDACTED)
    return escape_controls(" ".join(redact_text(text).split()))


def _transport_failure(error: Exception, sdk: Any, place: Endpoint, usage: Usage | None) -> LLMError:
    cause = error.__cause__ if isinstance(error, sdk.APIConnectionError) and error.__cause__ else error
    kind, url = type(cause).__name__, place.shown_url
    detail = one_line(str(cause) or kind, place)[:_MAX_SAID]
    if kind == "ConnectTimeout":
        message = f"cannot reach {url}: it did not answer in time; is the base URL right?"
    elif isinstance(error, sdk.APITimeoutError) or "Timeout" in kind:
        message = f"no answer from {url} within {place.timeout:g} s"
    elif kind in _NEVER_REACHED:
        message = f"cannot reach {url}: {detail}; is the server running, and is the base URL right?"
    elif isinstance(error, sdk.APIConnectionError) or re.search(r"Read|Write|Protocol|Closed|Network", kind):
        message = f"the connection to {url} broke before the reply was complete: {detail}"
    else:
        message = f"cannot use the reply of {url}: {kind}: {detail}"
    unsent = True if kind in _NEVER_REACHED else None
    return llm_error(message, place, True, usage=usage, unsent=unsent, unavailable=is_connection_refused(error))


def is_connection_refused(error: BaseException) -> bool | None:
    """Return True where nothing listens at the address: a server that is starting does so too; else None."""
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None or isinstance(cause, ConnectionRefusedError):
            break
        inner = getattr(cause, "kwargs", {}).get("error")
        cause = inner if isinstance(inner, BaseException) else cause.__cause__ or cause.__context__
    return True if isinstance(cause, ConnectionRefusedError) else None


def llm_error(
    message: str,
    place: Endpoint,
    retryable: bool,
    wait: float | None = None,
    status: int | None = None,
    usage: Usage | None = None,
    **context: Any,
) -> LLMError:
    """Return an LLMError whose message names the model, on one line, without a key, and of bounded length."""
    text = one_line(f"{place.model[:80]}: {message}", place)
    text = text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
    return LLMError(text, retryable, wait, status_code=status, usage=usage, **context)


def _told_status(body: Any) -> int | None:
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        return None
    for key in ("code", "status", "status_code"):
        code = inner.get(key)
        if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
            code = int(code)
        if isinstance(code, int) and 400 <= code < 600:
            return code
    known = (_STATUS_OF_TYPE.get(word) for key in ("code", "type") if isinstance(word := inner.get(key), str))
    return next((status for status in known if status is not None), None)


def _field_error(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)[:200]
    place = item.get("loc")
    where = ".".join(str(part) for part in place[:10]) if isinstance(place, list) else ""
    return f"{where}: {str(item.get('msg', ''))[:200]}"


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text else None
    except ValueError:
        return None
    return None if number is None or math.isnan(number) else number


def _capped(seconds: float) -> float:
    return min(max(seconds, 0.0), MAX_WAIT)
