"""Everything that can go wrong with Amazon Bedrock, as one LLMError. The SDK's errors are known by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from aeon_core.errors import LLMError
from aeon_core.llm._endpoint import Endpoint
from aeon_core.llm.base import Usage
from aeon_core.llm.errors import (
    is_connection_refused,
    llm_error,
    one_line,
    retry_after,
    status_failure,
    too_long_failure,
    unusable,
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
        message = f"{url} cannot be reached: {detail}; {hint}"
        refused = is_connection_refused(error)
        return llm_error(message, place, True, usage=usage, unsent=True, unavailable=refused)
    if kind in _BROKEN_FRAME:
        return unusable(place, f"an event of its stream is broken: {detail}", usage)
    if kind == "ParamValidationError":
        return llm_error(f"the request is not as Converse takes it: {detail}", place, False, usage=usage)
    if _CREDENTIALS_KIND.search(kind):
        return llm_error(
            f"the AWS credentials cannot be used: {detail}; {RENEW}", place, False, exit_code=3, usage=usage
        )
    if _BROKEN_KIND.search(kind):
        return llm_error(
            f"the connection to {url} broke before the reply was whole: {detail}", place, True, usage=usage
        )
    return unusable(place, f"{kind}: {detail}", usage)


def refusal(error: Exception) -> str | None:
    """Return what the service says where it finds the request itself wrong, None for any other error."""
    response = getattr(error, "response", None)
    return _message(response) if isinstance(response, dict) and _status(response) == 400 else None


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
        message = f"{place.shown_url} refused the AWS credentials ({status}): {quoted}; {RENEW}"
        return llm_error(message, place, False, status=status, exit_code=3, usage=usage)
    if status == 403:
        hint = "allow bedrock:InvokeModel, and access to the model, for these credentials"
        return llm_error(
            f"{place.shown_url} refused access (403): {quoted}; {hint}", place, False, status=403, usage=usage
        )
    if status == 400 and _TOO_LONG.search(told):
        return too_long_failure(told, None, place, status, usage)
    if status == 400 and _UNKNOWN_MODEL.search(told):
        message = f"the model name {place.name[:60]!r} cannot be used at {place.shown_url} (400): {quoted}"
        hint = "give a model id, or an inference profile such as us.anthropic.…"
        return llm_error(f"{message}; {hint}", place, False, status=status, exit_code=3, usage=usage)
    headers = (response.get("ResponseMetadata") or {}).get("HTTPHeaders") or {}
    if code_of(response) == "ModelNotReadyException":
        message = f"the model at {place.shown_url} is not ready (429): {quoted}"
        hint = "check the access to the model in the Bedrock console, and try later"
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
