"""Values of records, read leniently: a value of an unexpected type counts as absent."""

from __future__ import annotations

import json
from typing import Any

from aeon_core.escape import escape_controls

ENVELOPE = ("v", "seq", "ts", "run", "type")
"""The keys at the beginning of every line."""


def str_of(value: Any) -> str:
    """Return a text, empty if it is not one."""
    return value if isinstance(value, str) else ""


def id_of(value: Any) -> str | None:
    """Return a non-empty text, else None."""
    return value if isinstance(value, str) and value else None


def int_of(value: Any, default: int = 0) -> int:
    """Return a whole number, else the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def number_of(value: Any) -> float | None:
    """Return a number, else None."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def dict_of(value: Any) -> dict[str, Any] | None:
    """Return an object, else None."""
    return value if isinstance(value, dict) else None


def dicts_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strs_of(value: Any) -> list[str]:
    """Return the texts of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def counts_of(value: Any) -> dict[str, int]:
    """Return the numbers of an object by their keys."""
    return {key: item for key, item in (dict_of(value) or {}).items() if number_of(item) is not None}


LIMIT = 200
"""Characters of one value that a line shows."""
_encode = json.JSONEncoder(ensure_ascii=False).encode


def brief(value: Any, limit: int = LIMIT) -> str:
    """Return any JSON value on one line: text as it is, `{"text": …}` as its text, everything else as JSON."""
    if isinstance(value, str) and len(value) <= limit and value.isascii() and value.isidentifier():
        return value  # Most values of a log are names, which need no shortening or escaping.
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("text"), str):
        value = value["text"]
    if not isinstance(value, str):
        try:
            value = _encode(value)
        except (RecursionError, TypeError, ValueError):
            value = "(cannot be shown)"
    # Twice the limit leaves room for runs of white space, and keeps 5 MB out of the work below.
    line = " ".join(value[: 2 * limit].split())
    clipped = line[:limit] + "…" if len(line) > limit or len(value) > 2 * limit else line
    return escape_controls(clipped)


def at_pass(number: int | None) -> str:
    """Return where a fork starts, for example ` at pass 2`, as in `fork --pass 2`; empty if that is not recorded."""
    return f" at pass {number}" if number else ""
