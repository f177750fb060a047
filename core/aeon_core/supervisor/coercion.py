"""The other forms of a value that say the same: what a repair may make of it without a further reason (core FR-032)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from aeon_core.plain import parse_json
from aeon_core.supervisor.words import numbers, tokens

_MAX_NESTED = 3
_MAX_NUMBER = 100
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def equal(one: Any, other: Any) -> bool:
    """Return whether two plain values are the same; numbers by their value, true is not 1."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return isinstance(one, bool) is isinstance(other, bool) and one == other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(equal(left, right) for left, right in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def coercions(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the value in every form that loses nothing: out of or into a list, as number, flag, text or JSON."""
    yield value
    if depth >= _MAX_NESTED:
        return
    if isinstance(value, str):
        yield from _of_text(value, depth)
    elif isinstance(value, bool):
        yield from (str(value).lower(), int(value))
    elif isinstance(value, (int, float)):
        yield from _of_number(value)
    elif isinstance(value, list):
        yield from _of_list(value, depth)
    elif isinstance(value, dict) and len(value) == 1:
        yield from coercions(next(iter(value.values())), depth + 1)
    if value is not None and not isinstance(value, list):
        for form in [value] if isinstance(value, dict) else [value, *_numbers_in(value)]:
            yield [form]


def _of_text(text: str, depth: int) -> Iterator[Any]:
    bare = text.strip()
    yield bare
    if bare.casefold() in _TRUTHS:
        yield _TRUTHS[bare.casefold()]
    yield from _numbers_in(text)
    if bare[:1] in ("{", "["):
        with suppress(ValueError):
            yield from coercions(parse_json(bare), depth + 1)
    elif "," in bare or ";" in bare:
        parts = [part.strip() for part in bare.replace(";", ",").split(",")]
        yield parts
        yield [next(_numbers_in(part), part) for part in parts]


def _numbers_in(value: Any) -> Iterator[Any]:
    """Yield the one number that a text gives, in digits or in words."""
    if not isinstance(value, str) or len(value) > _MAX_NUMBER:
        return
    found = numbers(value)
    digits = [token for token in tokens(value) if token in found and token.lstrip("-")[:1].isdecimal()]
    if len(digits) == 1 or (not digits and len(found) == 1):
        (number,) = digits or found
        parsed = json.loads(number)
        yield parsed
        if "%" in value:
            with suppress(OverflowError):
                yield parsed / 100


def _of_number(value: float) -> Iterator[Any]:
    text = json.dumps(value)
    yield text
    if isinstance(value, float) and value.is_integer():
        yield int(value)
        yield str(int(value))
    if value in (0, 1):
        yield bool(value)


def _of_list(values: list[Any], depth: int) -> Iterator[Any]:
    if len(values) == 1:
        yield from coercions(values[0], depth + 1)
    if len(values) > 1 and all(isinstance(item, str) for item in values):
        yield from (separator.join(values) for separator in (", ", ",", " ", "\n", "; "))
