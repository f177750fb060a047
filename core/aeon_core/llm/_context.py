"""Recognizing a request that does not fit the model: every provider says it in words of its own."""

from __future__ import annotations

import re
from typing import Any

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
REMEDY = "shorten the task or the results it carries, or choose a model with a larger context"


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
    return f"{needed} tokens where {limit} fit, {needed - limit} too many"


def _error_of(body: Any) -> dict[str, Any]:
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _found(pattern: re.Pattern[str], told: str) -> int | None:
    match = pattern.search(told.replace(",", ""))
    digits = next((group for group in match.groups() if group), "") if match else ""
    return int(digits) if 0 < len(digits) <= 12 else None
