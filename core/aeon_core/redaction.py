"""Keeping secrets out of the journal: key-like values are replaced before anything is recorded."""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import from_json, to_json

_SECRET = re.compile(
    r"sk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}"
    r"|AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|AIza[0-9A-Za-z_-]{35}"
    r"|(?<=Bearer )[A-Za-z0-9._~+/-]{20,}"
    r"|(?<=://)[^/\s:@]{1,100}:[^/\s@]{1,200}(?=@)"
)
_PARAMETER = re.compile(r"(?i)([?&][a-z_-]{0,40}(?:key|token|secret|signature|password)[a-z_-]{0,40}=)[^&\s\"'<>]+")
_HINT = re.compile(r"sk-|://|=|Bearer |A[KS]IA|AIza|xox|gh[pousr]_|github_pat_")

REDACTED = "[redacted]"


def redact_text(text: str) -> str:
    """Return the text with everything that looks like a key replaced."""
    if not _HINT.search(text):
        return text
    return _PARAMETER.sub(rf"\1{REDACTED}", _SECRET.sub(REDACTED, text))


def redact_json(body: bytes) -> bytes:
    """Return one JSON value, as text, with key-like values replaced in its strings."""
    value = from_json(body)
    redacted = redact(value)
    return body if redacted == value else to_json(redacted)


def redact(value: Any) -> Any:
    """Return plain JSON with key-like values replaced; the value itself is returned where there are none."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {redact_text(key): redact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact(item) for item in value]
    return value


def holds_secret(text: str) -> bool:
    """Return whether anything in the text looks like a key."""
    return redact_text(text) != text
