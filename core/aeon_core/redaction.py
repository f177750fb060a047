"""Keeping secrets out of the journal: key-like values are replaced before anything is recorded."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from pydantic_core import from_json, to_json

REDACTED = "[redacted]"

_KEYS = re.compile(
    r"sk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"
    r"|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}|glpat-[A-Za-z0-9_-]{20,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}"
    r"|AIza[0-9A-Za-z_-]{35}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|[srp]k_(?:live|test)_[A-Za-z0-9]{16,}|(?:hf|npm|gsk)_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{50,}"
    r"|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}|ABSK[A-Za-z0-9+/]{60,}={0,2}"
    r"|eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
    r"|Bearer [A-Za-z0-9._~+/-]{20,}"
)
_KEY_HINTS = (
    "sk-", "AKIA", "ASIA", "AIza", "Bearer ", "eyJ", "xox", "xapp-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
    "github_pat_", "glpat-", "ya29.", "k_live_", "k_test_", "hf_", "npm_", "gsk_", "pypi-", "SG.", "ABSK",
)  # fmt: skip
_URL = re.compile(r"(?<=://)[^/\s:@]{0,100}:[^/\s@]{1,200}(?=@)|(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{20,}")
_PARAMETER = re.compile(r"(?i)([?&][a-z_-]{0,40}(?:key|token|secret|signature|password)[a-z_-]{0,40}=)[^&\s\"'<>]+")

_PEM_HINT = "PRIVATE KEY"
_PEM_NAME = r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
# What is cut off has no end; then only lines with a long run of base64 belong to it.
_PEM = re.compile(
    rf"(-----BEGIN {_PEM_NAME})(?:(?:[^-]|-(?!----)){{1,20000}}(?=-----END {_PEM_NAME})"
    r"|(?:\s*[^\n]{0,60}?[A-Za-z0-9+/]{40,}={0,2})+(?:\s*[^\nA-Za-z]{0,20}[A-Za-z0-9+/]{1,60}={0,2}\s*\Z)?)"
)

_STRONG_NAME = (
    r"passw(?:or)?d|passphrase"
    r"|(?:api|secret|access|private|account|auth|encryption|signing|master)[ _-]?key(?:_base)?"
    r"|(?:client|app|shared|webhook|jwt)[_-]?secret|(?:auth|access|refresh|session|bot|bearer)[_-]?token"
    r"|(?<=[_-])pwd|(?-i:(?<=[A-Z]_)PASS)|(?<![a-z])pass(?==)"
)
_WEAK_NAME = r"(?<![a-z])(?:secret|token|credentials?)|(?<=_)(?:secret|token)"
_NAME_HINT = re.compile(
    r"(?:passw(?:or)?d|passphrase|key(?:_base)?|secret|token|credentials?|pwd|pass|authorization)"
    r"\\{0,3}[\"']?[ \t]{0,4}[=:]"
)
_NAMED = re.compile(
    rf"(?i)(?P<name>(?P<strong>{_STRONG_NAME})|{_WEAK_NAME})"
    r"(?P<separator>\\{0,3}[\"']?[ \t]{0,4}(?:=>|:=|=(?!=)|:(?!:))[ \t]{0,4})"
    r"(?:\\{0,3}(?P<quote>[\"'])(?P<quoted>[^\"'\s\\]{4,500})(?=\\{0,3}(?P=quote))"
    r"|(?P<plain>[^\s\"'<>&,;(){}\[\]\\$|`]{4,500})(?P<next>[(\[.,)]?))"
)
_KEY = re.compile(rf"(?i)(?:[\w.-]*?)(?P<name>(?P<strong>{_STRONG_NAME})|{_WEAK_NAME})")
_HEADER = re.compile(
    r"(?i)(authorization\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?"
    r"(?:basic|bearer|token|apikey|negotiate)[ \t]{1,4})"
    r"[A-Za-z0-9._~+/=-]{6,}"
)
_MAX_KEY = 80

_PLACEHOLDER = re.compile(
    r"(?i)[$<{%*].*|[x*.•-]{1,7}|\W+|your[_-].*|\[redacted.*"
    r"|none|null|nil|undefined|true|false|yes|no|string|str|text|bytes|bool(?:ean)?|int(?:eger)?|number|object|any"
    r"|optional|required|password|passwd|secret|token|hidden|missing|invalid|empty|changed?|unset"
    r"|(?-i:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)|[a-z_]\w*(?:\.[a-z_]\w*)+(?:\(\))?"
)
_LETTER_AND_DIGIT = re.compile(r"(?=.{0,500}[A-Za-z])(?=.{0,500}[0-9])")
_LONG = 16
_SHORTEST = 6
_SHORTEST_KEY = 15
"""Of those that are told by their form alone."""


def redact_text(text: str) -> str:
    """Return the text with everything that looks like a key replaced.

    That is what has a known form (keys of well-known services, JSON Web Tokens, private key blocks, passwords in URLs),
    and what stands behind a name such as `password=` or `api_key:` and looks like a value rather than code or prose.
    """
    if len(text) < _SHORTEST:
        return text
    if len(text) >= _SHORTEST_KEY and any(hint in text for hint in _KEY_HINTS):
        text = _KEYS.sub(_without_key, text)
    if "://" in text or "hooks." in text:
        text = _URL.sub(REDACTED, text)
    if _PEM_HINT in text:
        text = _PEM.sub(rf"\1{REDACTED}", text)
    if "=" in text or ":" in text:
        text = _without_named(text)
    return text


def redact_json(body: bytes) -> bytes:
    """Return one JSON value, as text, with key-like values replaced in its strings."""
    value = from_json(body)
    redacted = redact(value)
    return body if redacted == value else to_json(redacted)


def redact(value: Any) -> Any:
    """Return plain JSON with key-like values replaced; the value itself is returned where there are none.

    The value of a member is judged by the member's name, too: `{"password": "…"}` is replaced.
    """
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {redact_text(key): _redact_member(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact(item) for item in value]
    return value


def holds_secret(text: str) -> bool:
    """Return whether anything in the text looks like a key."""
    return redact_text(text) != text


def _redact_member(key: str, item: Any) -> Any:
    if isinstance(item, str) and len(key) <= _MAX_KEY and (strength := _strength(key)):
        whole = not any(char.isspace() for char in item)
        if whole and _is_secret(item, strong=strength == "strong"):
            return REDACTED
    return redact(item)


@lru_cache(maxsize=2048)
def _strength(key: str) -> str | None:
    found = _KEY.fullmatch(key)
    return found and ("strong" if found["strong"] else "weak")


def _without_key(found: re.Match[str]) -> str:
    before = found.string[found.start() - 1 : found.start()]
    if before.isascii() and before.isalnum():
        return found[0]  # the end of a longer word, such as `task-…`
    return f"Bearer {REDACTED}" if found[0].startswith("Bearer ") else REDACTED


def _without_named(text: str) -> str:
    if "=" in text:
        text = _PARAMETER.sub(rf"\1{REDACTED}", text)
    if _NAME_HINT.search(text.lower()):
        text = _NAMED.sub(_without_value, _HEADER.sub(rf"\1{REDACTED}", text))
    return text


def _without_value(found: re.Match[str]) -> str:
    value = found["quoted"] or found["plain"]
    strong = bool(found["strong"])
    if not (_is_secret(value, strong=strong) if found["quoted"] else _is_plain_secret(found, value)):
        return found[0]
    whole, start = found[0], found.start()
    at = found.start("quoted" if found["quoted"] else "plain") - start
    return whole[:at] + REDACTED + whole[at + len(value) :]


def _is_plain_secret(found: re.Match[str], value: str) -> bool:
    """Return whether a value without quotes is one: behind `PASSWORD=` anything is, elsewhere no code and no prose."""
    if found["next"] in ("(", "[") or not _is_secret(value, strong=bool(found["strong"])):
        return False
    if _LETTER_AND_DIGIT.match(value):
        return len(value) >= _SHORTEST
    if found["separator"] != "=":
        return False
    return found["name"].isupper() or (len(value) >= _SHORTEST and not found["next"])


def _is_secret(value: str, *, strong: bool) -> bool:
    if len(value) < 4 or len(value) > 500 or _PLACEHOLDER.fullmatch(value):
        return False
    return strong or (len(value) >= _LONG and bool(_LETTER_AND_DIGIT.match(value)))
