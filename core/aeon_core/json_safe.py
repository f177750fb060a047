"""Converts foreign values to plain JSON (Decision 2 of the design: the kernel sees only plain outcomes)."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

MAX_DEPTH = 100
"""The deepest nesting of an outside value; a deeper one is refused rather than cut."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)

_SMALL_BITS = 64
_TOO_LARGE = 10**4300
"""Python's JSON parser refuses to read an integer of more than 4,300 digits."""


class NotJsonSafeError(ValueError):
    """A value that cannot be written as JSON."""


def clean_text(text: str) -> str:
    """Return the text with lone surrogates replaced by U+FFFD, so that it can be written as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def json_safe(value: Any) -> Any:
    """Return a deep copy of `value` as plain JSON: tuples and sets become lists, keys strings, NaN and infinities null.

    Raises NotJsonSafeError for what has no JSON form, for cycles, and for nesting deeper than MAX_DEPTH.
    """
    if type(value) is dict and _is_flat(value):
        return dict(value)
    try:
        text = _ENCODER.encode(value)
        text.encode("utf-8")
        copy = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return _slowly(value, 0)
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(copy)
    return copy


def has_non_finite(value: Any) -> bool:
    """Return whether a value that `json_safe` accepts contains NaN or an infinity."""
    if isinstance(value, dict):
        return any(map(has_non_finite, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(map(has_non_finite, value))
    return isinstance(value, float) and not math.isfinite(value)


def _is_flat(value: dict[Any, Any]) -> bool:
    """Return whether a shallow copy is enough, as for most arguments and results."""
    for key, item in value.items():
        kind = type(item)
        if type(key) is not str or not key.isascii():
            return False
        if kind is str:
            plain = item.isascii()
        elif kind is int:
            plain = item.bit_length() < _SMALL_BITS
        else:
            plain = kind is bool or item is None or (kind is float and math.isfinite(item))
        if not plain:
            return False
    return True


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise NotJsonSafeError(f"nested deeper than {MAX_DEPTH} levels")


def _slowly(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise NotJsonSafeError(f"nested deeper than {MAX_DEPTH} levels, or contains itself")
    if isinstance(value, int) and abs(value) >= _TOO_LARGE:
        raise NotJsonSafeError(f"an integer of {value.bit_length()} bits is too large for JSON")
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_key(key): _slowly(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_slowly(item, depth + 1) for item in value]
    if isinstance(value, (set, frozenset)):
        return [_slowly(item, depth + 1) for item in sorted(value, key=repr)]
    raise NotJsonSafeError(f"{type(value).__name__} has no JSON form")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return clean_text(key)
    if key is None or isinstance(key, (bool, int, float)):
        return str(json.dumps(key))
    raise NotJsonSafeError(f"a key of type {type(key).__name__} has no JSON form")


def parse_json(text: str | bytes, *, unique_keys: bool = False) -> Any:
    """Return the JSON value in `text` as plain JSON; NaN and infinities are refused, lone surrogates replaced.

    With `unique_keys`, an object with a duplicate key is refused too: parsing would drop one of the values. Raises
    ValueError with the place and the reason.
    """
    pairs = _unique if unique_keys else None
    try:
        value = json.loads(
            text, parse_constant=no_constant, parse_float=_finite, parse_int=_whole, object_pairs_hook=pairs
        )
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    _check_depth(value)
    # The parsed value is plain JSON except for lone surrogates, which only an escape can contain.
    return value if isinstance(text, str) and "\\u" not in text and clean_text(text) is text else json_safe(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:60]!r} occurs twice in one object")
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise ValueError(f"a number of {len(digits):,} characters is too long; quote it if it is text") from None


def no_constant(name: str) -> Any:
    """Refuse NaN and Infinity, as the `parse_constant` of `json.loads`. Raises ValueError."""
    raise ValueError(f"{name} is not JSON")
