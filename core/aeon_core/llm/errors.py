"""Errors of providers as LLMErrors, in one line without keys, and the rule for which calls are made again."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from email.utils import mktime_tz, parsedate_tz
from itertools import count
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urljoin, urlsplit

from aeon_core.errors import LLMError
from aeon_core.escape import escape_controls
from aeon_core.json_safe import clean_text, parse_json
from aeon_core.llm.base import LLMResponse, Usage
from aeon_core.llm.connect import PLACEHOLDER_KEY, Endpoint
from aeon_core.redaction import REDACTED, redact_text

if TYPE_CHECKING:
    from tenacity import RetryCallState


MAX_ATTEMPTS = 3
"""The number of attempts, including the first."""

UNAVAILABLE_SECONDS = 30.0
"""How long to wait for a server that refuses connections or answers 503, since it may be starting."""

MAX_WAIT = 60.0
"""The longest wait before an attempt in seconds, whatever a provider asks for."""


def attempts(
    call: Callable[[], LLMResponse],
    *,
    on_retry: Callable[[LLMError, float], None],
    sleep: Callable[[float], None] = time.sleep,
    max_attempts: int = MAX_ATTEMPTS,
) -> LLMResponse:
    """Return the result of `call()` (core FR-048).

    Only a retryable LLMError is tried again; one with `unavailable` in its context even beyond
    `max_attempts`, until the waits add up to 30 s. Before each wait, `on_retry(error, seconds)` is called with the
    failure and the wait: 1 s, then twice as long each time, at least the provider's `retry_after`, at most 60 s,
    without jitter, so that a run is deterministic. Raises the last LLMError, any other error of `call` at once, and
    ValueError for fewer than one attempt.
    """
    if max_attempts < 1:
        raise ValueError(f"max_attempts must be at least 1, got {max_attempts!r}")
    try:
        return call()
    except LLMError as error:
        if not error.retryable:
            raise
        first = error
    # Imported only after a failure, since it loads asyncio and most runs retry nothing.
    from tenacity import Retrying, retry_if_exception, wait_exponential

    backoff = wait_exponential(multiplier=1, exp_base=2, max=MAX_WAIT)
    numbers = count(1)

    def attempt() -> LLMResponse:
        if next(numbers) == 1:
            raise first
        return call()

    retrying = Retrying(
        # It counts the waits, not elapsed time, so that a replay makes the same attempts.
        stop=lambda state: (
            state.attempt_number >= max_attempts
            and (not _error(state).context.get("unavailable") or state.idle_for >= UNAVAILABLE_SECONDS)
        ),
        wait=lambda state: _wait(_error(state), backoff(state)),
        retry=retry_if_exception(lambda error: isinstance(error, LLMError) and error.retryable),
        before_sleep=lambda state: on_retry(_error(state), state.upcoming_sleep),
        sleep=sleep,
        reraise=True,
    )
    return retrying(attempt)


def _error(state: RetryCallState) -> LLMError:
    """Return the LLMError of the last attempt; nothing else is retried."""
    return cast("LLMError", state.outcome and state.outcome.exception())


def _wait(error: LLMError, backoff: float) -> float:
    requested = error.retry_after
    # A caller's own adapter may set anything here, even NaN; then only the backoff counts.
    floor = requested if isinstance(requested, (int, float)) and requested > 0 else 0.0
    return float(min(max(backoff, floor), MAX_WAIT))


MAX_MESSAGE = 500
"""Enough for the longest names, addresses and quotes, so that what to do, at the end, is not cut off."""
_MAX_QUOTED = 140
_MAX_QUOTED_OF_LENGTH = 100
_READ_AT_MOST = 20_000
_MAX_CAUSES = 10

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|request_too_large"
    r"|maximum (?:context|model|prompt) length|exceeds? (?:the )?(?:available )?context|exceeds? context limit"
    r"|exceeded (?:max context length|model token limit)|context window exceeds limit|prompt exceeds max length"
    r"|range of input length should be"
    r"|exceeds? the model's context window|(?:prompt|input) is too long|too long for (?:the )?requested model"
    r"|(?:greater|longer) than the (?:model's )?context length|with (?:a )?context length of only"
    r"|input tokens? (?:count .{0,99})?exceeds?|too many (?:input tokens|tokens: total)"
    r"|`inputs` (?:tokens \+|must have less than)",
    re.IGNORECASE,
)
_TOO_LONG_STATUSES = (None, 400, 413, 422, 500)
_ABOUT_REPLY = re.compile(
    r"max_?(?:\w+_)?tokens|maximum tokens|in the completion|(?:completion|output) tokens", re.IGNORECASE
)
REMEDY = "shorten the task or its results, or use a model with a larger context"

# Names of the exceptions that the SDKs and the libraries below them raise.
_TIMED_OUT = re.compile(r"(?:Read|Write|Pool|API)?Timeout(?:Error)?")
_UNREACHED = re.compile(
    r"Connect(?:Timeout|Error)|EndpointConnection|NewConnection|ProxyConnection|ProxyError|InvalidProx"
    r"|UnsupportedProtocol|InvalidURL|SSLError"
)
"""Errors before anything was sent, so that nothing can have been charged."""
_CERTIFICATE = (
    ("mismatch", "use a host name that its certificate is for"),
    ("expired", "renew its certificate, or set this machine's clock"),
    ("not yet valid", "set this machine's clock"),
)
_NO_BUNDLE = re.compile(r"\[Errno 2\]|\[X509: NO_CERTIFICATE")
_PROXY_ANSWER = re.compile(r"(?:Tunnel connection failed: )?(\d{3}) ")
_PROXY_LOGIN = "write a user and password into the proxy's address"
_BROKEN = re.compile(r"Connection|Protocol|Incomplete|HTTPClient|ResponseStreaming|Broken|Read|Write|Close|Network")
_PAGE = "an HTML page"
_PYTHON_OBJECT = re.compile(r"<?[\w.]+(?: object at 0x\w+>|\([^)]*\)): ")

_RETRYABLE_4XX = (408, 409, 424, 425, 429)
_REFUSED = (400, 422)
_UNAVAILABLE = 503
_NO_USABLE_MODEL = (401, 402, 403, 404)
_MEANING = {
    **dict.fromkeys(
        (
            *("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"),
            *("budget_exceeded", "exceeded_current_quota_error"),
        ),
        402,
    ),
    **dict.fromkeys(
        (
            *("model_not_found", "invalid_model", "unknown_model", "model_not_available", "invalid_model_id"),
            "model_decommissioned",
        ),
        404,
    ),
    **dict.fromkeys(
        (
            *("invalid_api_key", "authentication_error", "auth_error", "api_key_invalid", "token_not_found_in_db"),
            "no_db_connection",  # of LiteLLM without a database, for any key but its own
        ),
        401,
    ),
    # The model failed: Groq refuses a call or an object that it wrote.
    **dict.fromkeys(("tool_use_failed", "json_validate_failed"), 424),
}
"""The status that a word in an error's fields stands for."""
_NO_MODEL = re.compile(
    r"invalid model\b|not a valid model\b|unknown model\b|model (?:does )?not (?:exist|found)"
    r"|no 'model_name' with this string"
)
_NO_CREDIT = re.compile(r"credit balance is too low|insufficient balance|used all available credits")
_NOT_THERE = re.compile(r"does not exist|not found|not available")
_NO_KEY = re.compile(
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


def is_too_long(status: int | None, message: str, body: Any = None) -> bool:
    """Return whether an error says that the request is too long, by its status 413, its type, or its message."""
    if status not in _TOO_LONG_STATUSES:
        return False
    return status == 413 or bool(_TOO_LONG.search(f"{message} {_error_in(body).get('type', '')}"))


def is_about_reply(message: str) -> bool:
    """Return whether an error is about the length of the reply."""
    return bool(_ABOUT_REPLY.search(message))


def status_failure(
    status: int,
    body: Any,
    endpoint: Endpoint,
    headers: Mapping[str, str] | None = None,
    usage: Usage | None = None,
    *,
    meaning: int | None = None,
) -> LLMError:
    """Return the LLMError for an HTTP status of 300 or more; 408, 409, 424, 425, 429 and 5xx are retryable (FR-048).

    `meaning` is the status that the error stands for, if known to differ. An error that means there is no usable
    model (bad key, unknown model, no credit) ends a run with exit 3. A request that is too long for the model is not
    retryable, and the error's context has `context_too_long`.
    """
    url, message = endpoint.shown_url, message_in(body)
    if status < 400 and (target := (headers or {}).get("location")):
        return _redirect_failure(status, target, endpoint)
    if meaning is None and is_too_long(status, message, body):
        return _too_long_failure(message, endpoint, status, usage)
    meaning = meaning or _meaning(status, body, message, endpoint.name)
    what = {
        401: f"{url} rejected the {endpoint.credentials} ({status})",
        402: f"{url} has no credit left for the key in {endpoint.key_variable} ({status})",
        403: f"{url} refused access ({status})",
        404: f"the model name {endpoint.name[:60]!r} is unknown at {url} ({status})",
        407: f"the proxy {_proxy_for(endpoint) or 'in between'} requires a user and password ({status})",
        429: f"{url} limits the rate of requests ({status})",
    }.get(meaning, f"{url} {'failed' if status >= 500 or meaning == 424 else 'refused the request'} ({status})")
    advice = {
        401: f"set a valid key in {endpoint.key_variable}",
        402: "add credit there, or use another model",
        403: f"check what the key in {endpoint.key_variable} can access",
        404: f"check the name{_about_base_url(endpoint)}",
        407: _PROXY_LOGIN,
        **endpoint.advice,
    }.get(meaning)
    if message == _PAGE and meaning in (401, 403):
        advice = f"{_proxy_for(endpoint) or 'a firewall or proxy'} may have sent it"
    quoted = f": {one_line(message, endpoint)[:_MAX_QUOTED]}" if message else ""
    retryable = 500 <= meaning < 600 or meaning in _RETRYABLE_4XX
    context: dict[str, Any] = {"exit_code": 3} if meaning in _NO_USABLE_MODEL else {}
    if status == _UNAVAILABLE:
        context["unavailable"] = True
    wait = retry_after(headers, body) if retryable else None
    whole = f"{what}{quoted}{f'; {advice}' if advice else ''}"
    return llm_error(whole, endpoint, retryable, wait, status, usage, **context)


def _about_base_url(endpoint: Endpoint) -> str:
    if not endpoint.url:
        return ""
    is_bare = endpoint.provider == "openai" and not urlsplit(endpoint.url).path.strip("/")
    return f" and the base URL{', which ends with /v1 at most servers' if is_bare else ''}"


def _redirect_failure(status: int, target: str, endpoint: Endpoint) -> LLMError:
    what = f"{endpoint.shown_url} redirects to {_shown(target, endpoint)} ({status}), and redirects are not followed"
    return llm_error(f"{what}; if you trust that server, set its base URL", endpoint, False, status=status)


def _shown(address: str, endpoint: Endpoint) -> str:
    """Return an address that may be relative to the endpoint's, without its credentials."""
    try:
        return replace(endpoint, url=urljoin(endpoint.url or endpoint.default_url, address)).shown_url
    except ValueError:
        return "an address that cannot be read"


def _meaning(status: int, body: Any, message: str, model: str) -> int:
    """Return the status that a refusal stands for: proxies answer 400 to an unknown model or key, and 429 to no credit.

    The body's fields decide; without any, the phrases that Anthropic, LiteLLM, OpenRouter, DeepSeek and xAI use with a
    400 or 422.
    """
    words = (place.get(key) for place in _places(body) for key in ("code", "type", "reason"))
    named = {_MEANING.get(word.lower()) for word in words if isinstance(word, str)}
    if 402 in named:
        return 402
    lowered = message.lower()
    if status == 404 and lowered.startswith(("no endpoints found that", "no endpoints found matching")):
        return 400  # OpenRouter knows the model, but no provider of it may or can do what is requested
    if status in (403, 429) and _NO_CREDIT.search(lowered):
        return 402
    if status not in _REFUSED:
        return status
    if 404 in named or _error_in(body).get("param") == "model":
        return 404
    for known in (401, 424):
        if known in named:
            return known
    if _NO_MODEL.search(lowered) or (model.lower() in lowered and _NOT_THERE.search(lowered)):
        return 404
    if _NO_CREDIT.search(lowered):
        return 402
    return 401 if _NO_KEY.search(lowered) else status


def _single(body: Any) -> Any:
    # Gemini puts its errors into a list.
    return body[0] if isinstance(body, list) and body else body


def _error_in(body: Any) -> dict[str, Any]:
    body = _single(body)
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else body if isinstance(body, dict) else {}


def _places(body: Any) -> list[dict[str, Any]]:
    """Return the error in a body, and Google's details of it."""
    error = _error_in(body)
    details = error.get("details")
    return [error, *(each for each in details if isinstance(each, dict))] if isinstance(details, list) else [error]


def _too_long_failure(message: str, endpoint: Endpoint, status: int | None, usage: Usage | None) -> LLMError:
    quoted = one_line(message, endpoint)[:_MAX_QUOTED_OF_LENGTH]
    code = f" ({status})" if status is not None else ""
    what = f"the request is too long for the model at {endpoint.shown_url}{code}{': ' if quoted else ''}{quoted}"
    remedy = REMEDY.replace(", or", ", lower max_tokens, or") if is_about_reply(message) else REMEDY
    return llm_error(f"{what}; {remedy}", endpoint, False, status=status, usage=usage, context_too_long=True)


def reported_failure(body: Any, endpoint: Endpoint, usage: Usage | None = None) -> LLMError:
    """Return the LLMError for an error sent in place of a reply: in a stream, or with the status 200."""
    message = message_in(body)
    if (status := _reported_status(body)) is not None:
        return status_failure(status, body, endpoint, usage=usage)
    if is_too_long(None, message, body):
        return _too_long_failure(message, endpoint, None, usage)
    quoted = one_line(message, endpoint)[:_MAX_QUOTED]
    return llm_error(f"{endpoint.shown_url} sent an error instead of a reply: {quoted}", endpoint, True, usage=usage)


def _reported_status(body: Any) -> int | None:
    error = _error_in(body)
    for key in ("code", "status", "status_code"):
        code = error.get(key)
        if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
            code = int(code)
        if isinstance(code, int) and 400 <= code < 600:
            return code
    known = (_STATUS_OF_TYPE.get(word) for key in ("code", "type") if isinstance(word := error.get(key), str))
    return next((status for status in known if status is not None), None)


def transport_failure(error: Exception, endpoint: Endpoint, usage: Usage | None = None, reason: str = "") -> LLMError:
    """Return the LLMError for what an SDK or the library below it raised without an error from the server.

    `reason` defaults to the error's own message, without the names of Python objects.
    """
    kind, url = type(error).__name__, endpoint.shown_url
    detail = one_line(reason or reason_of(error), endpoint)[:_MAX_QUOTED]
    if _TIMED_OUT.fullmatch(kind):
        what = f"no answer from {url} within {endpoint.timeout:g} s; a slow model may need a longer timeout"
        return llm_error(what, endpoint, True, usage=usage)
    if (why := unreached(error, endpoint, detail)) is not None:
        refused = is_connection_refused(error)
        return llm_error(why, endpoint, True, usage=usage, unsent=True, unavailable=refused)
    if _BROKEN.search(kind):
        what = f"the connection to {url} broke before the reply was complete: {detail}"
        return llm_error(what, endpoint, True, usage=usage)
    if isinstance(error, ValueError):
        return unusable(endpoint, f"a part of it is not JSON ({detail})", usage)
    return unusable(endpoint, f"{kind}: {detail}", usage)


def unreached(error: Exception, endpoint: Endpoint, detail: str) -> str | None:
    """Return that the endpoint cannot be reached, why, and what to do; None if it was reached."""
    if not _UNREACHED.search(type(error).__name__):
        return None
    url = endpoint.shown_url
    advice = "is the server running, and is the base URL right?" if endpoint.url else endpoint.unreached
    variable = "AWS_CA_BUNDLE" if endpoint.provider == "bedrock" else "SSL_CERT_FILE"
    if "CERTIFICATE_VERIFY_FAILED" in detail:
        trusted = f"if you trust its certificate, set {variable} to a file with the issuer's"
        advice = next((what for words, what in _CERTIFICATE if words in detail), trusted)
    elif _NO_BUNDLE.search(detail):
        advice = f"{variable} must name a file with certificates"
    elif (proxy := _proxy_for(endpoint)) is not None:
        url, advice = f"{url} through the proxy {proxy}", "is the proxy running, and is its address right?"
        if proxy.startswith("socks") and endpoint.provider == "bedrock":
            advice = "Amazon Bedrock needs an HTTP proxy"
        elif (answer := _PROXY_ANSWER.match(detail)) is not None:
            advice = _PROXY_LOGIN if answer[1] == "407" else "does the proxy allow this address?"
        elif url.startswith("http:"):
            advice = "is the proxy running, or should NO_PROXY name this host?"
    return f"cannot reach {url}: {detail}; {advice}"


def _proxy_for(endpoint: Endpoint) -> str | None:
    """Return the address of the proxy that requests go through, without its credentials; None if there is none."""
    from urllib.request import getproxies, proxy_bypass

    target, proxies = urlsplit(endpoint.url or endpoint.default_url), getproxies()
    # botocore does not read ALL_PROXY.
    proxy = proxies.get(target.scheme) or (None if endpoint.provider == "bedrock" else proxies.get("all"))
    if not proxy or proxy_bypass(target.netloc.rpartition("@")[2]):
        return None
    scheme, _, rest = proxy.rpartition("://")
    # A password may hold any character, so that its end is the last "@".
    return _shown(f"{scheme or 'http'}://{rest.rpartition('@')[2]}", endpoint)


def reason_of(error: BaseException) -> str:
    """Return the message of an error's cause, or its own, without the names of Python objects."""
    inner = getattr(error, "kwargs", {}).get("error") or error
    parts = getattr(inner, "args", ())
    cause = parts[-1] if parts and isinstance(parts[-1], Exception) else inner
    return _PYTHON_OBJECT.sub("", str(cause) or type(cause).__name__)


def is_connection_refused(error: BaseException) -> bool | None:
    """Return True if nothing listens at the address, as while a server starts, else None."""
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None or isinstance(cause, ConnectionRefusedError):
            break
        inner = getattr(cause, "kwargs", {}).get("error")
        cause = inner if isinstance(inner, BaseException) else cause.__cause__ or cause.__context__
    return True if isinstance(cause, ConnectionRefusedError) else None


def unusable(endpoint: Endpoint, why: str, usage: Usage | None = None) -> LLMError:
    """Return the retryable LLMError for a reply that cannot be used; `usage` is what it cost, if known."""
    return llm_error(
        f"cannot use the reply of {endpoint.shown_url}: {one_line(why, endpoint)}", endpoint, True, usage=usage
    )


def parse_body(content: bytes, endpoint: Endpoint) -> Any:
    """Return a reply's body as plain JSON. Raises a retryable LLMError if it is not JSON."""
    try:
        return parse_json(content)
    except ValueError as error:
        page = content.lstrip()[:1] == b"<"
        why = "it is an HTML page; is the base URL right?" if page else f"it is not JSON ({error})"
        raise unusable(endpoint, why if content.strip() else "it is empty") from None


def llm_error(
    message: str,
    endpoint: Endpoint,
    retryable: bool,
    wait: float | None = None,
    status: int | None = None,
    usage: Usage | None = None,
    **context: Any,
) -> LLMError:
    """Return an LLMError whose message names the model, on one line, without a key, and of bounded length."""
    text = one_line(f"{endpoint.model[:80]}: {message}", endpoint)
    text = text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
    return LLMError(text, retryable, wait, status_code=status, usage=usage, **context)


def one_line(text: str, endpoint: Endpoint) -> str:
    """Return foreign text for a message: on one line, without the key and control characters."""
    text = clean_text(text)[:_READ_AT_MOST]
    if len(endpoint.key) >= 6 and endpoint.key != PLACEHOLDER_KEY:
        text = text.replace(endpoint.key, REDACTED)
    return escape_controls(" ".join(redact_text(text).split()))


def message_in(body: Any) -> str:
    """Return the message in an error's body, with the parameter and the code that it names."""
    body = _single(body)
    if isinstance(body, (bytes, str)):
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        return _PAGE if text.lstrip()[:1] == "<" else text[:_READ_AT_MOST]
    if not isinstance(body, dict):
        return ""
    given = body.get("error") or body.get("errors")
    # Others send true, a number or null there, and the message beside it.
    error = given if isinstance(given, dict) else body
    message = given if isinstance(given, str | list) else error.get("message") or error.get("detail")
    if isinstance(message, dict):
        message = message.get("error") or message.get("detail")
    if isinstance(message, list):
        message = "; ".join(_field_error(item) for item in message[:5])
    if not message:
        return str(error)[:_READ_AT_MOST] if any(error.values()) else ""
    metadata = error.get("metadata")
    # OpenRouter has the provider's own message there.
    if isinstance(metadata, dict) and isinstance(raw := metadata.get("raw"), str):
        message = f"{message}: {raw}"
    named = [str(error[key])[:80] for key in ("param", "code") if isinstance(error.get(key), (str, int))]
    return f"{message} ({', '.join(named)})"[:_READ_AT_MOST] if named else str(message)[:_READ_AT_MOST]


def _field_error(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)[:200]
    place = item.get("loc")
    where = ".".join(str(part) for part in place[:10]) if isinstance(place, list) else ""
    message = str(item.get("msg") or item.get("message") or "")[:200]
    return f"{where}: {message}" if where else message


def retry_after(headers: Mapping[str, str] | None, body: Any = None) -> float | None:
    """Return the wait that headers or an error's body ask for, in seconds, 0…60.

    Headers give milliseconds, seconds or an HTTP date; Google's errors give seconds, such as `27s`.
    """
    headers = headers or {}
    delays = (place.get("retryDelay") for place in _places(body))
    text = headers.get("retry-after") or next((each.rstrip("s") for each in delays if isinstance(each, str)), None)
    seconds = _number(headers.get("retry-after-ms"), 0.001)
    seconds = _number(text) if seconds is None else seconds
    try:
        date = parsedate_tz(text) if text and seconds is None else None
        seconds = mktime_tz(date) - time.time() if date is not None else seconds
    except (ValueError, OverflowError, TypeError):
        return None
    return None if seconds is None else min(max(seconds, 0.0), MAX_WAIT)


def _number(text: str | None, unit: float = 1.0) -> float | None:
    """Return the number in a header, the largest if it was sent more than once; None if it has no number."""
    try:
        number = max(map(float, text.split(","))) if text else math.nan
    except ValueError:
        return None
    return None if math.isnan(number) else number * unit
