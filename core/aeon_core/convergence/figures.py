"""Figures of an answer that nothing in a run contains or yields: suspicions for the judge, never a verdict."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from aeon_core.validation.result_checks import Artifacts

MAX_SUSPICIONS = 10
_MOST_NUMBERS = 2000
_MOST_PAIRS = 150
"""Known numbers that are combined in pairs."""
_MOST_CHARACTERS = 50_000
_GROUPING = re.compile(r"['’\u00a0\u202f ]")
_SMALL = 20
"""Up to here a whole number counts things that a reader can count."""
_NUMBER = re.compile(r"(?<![\w.,:/\-–])[-−]?\d+(?:[.,'’\u00a0\u202f ]\d{3})*(?:[.,]\d+)?(?![\w:/]|[.,\-–]\d)")
_SCALES = (1.0, 10.0, 60.0, 24.0, 7.0, 12.0, 100.0, 1000.0, 1024.0, 3600.0, 1e6, 1e9, 1024.0**2, 1024.0**3)
_UNITS = (1.609344, 1609.344, 0.3048, 2.54, 0.45359237)
"""Kilometres and metres in a mile, metres in a foot, centimetres in an inch, kilograms in a pound."""


def unsupported_figures(artifacts: Artifacts, requirements: Iterable[str] = ()) -> list[str]:
    """Return a sentence for each number of the answer that no output, goal or plan contains, rounds to or leads to.

    Small counts, dates and times are left out. A number follows from others by one sum, difference, product or
    quotient, a total or mean of a list, a percentage or a common change of unit.
    """
    said = list(dict.fromkeys(_in_text(artifacts.answer)))
    if not said:
        return []
    steps = [[step.description, step.arguments] for step in artifacts.plan.walk()]
    texts = (artifacts.goal, *requirements, artifacts.plan.goal, *chain.from_iterable(steps))
    sources = (*texts, dict(artifacts.results), dict(artifacts.memory))
    known = sorted({abs(number) for number in islice(chain.from_iterable(map(_numbers, sources)), _MOST_NUMBERS)})
    lonely = (text for text, readings, step in said if not _supported(readings, step, known))
    return [
        f"the answer says {text!r}, which no output contains or leads to" for text in islice(lonely, MAX_SUSPICIONS)
    ]


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        if abs(value) < 1e300:
            yield float(value)
    elif isinstance(value, str):
        for _, readings, _ in _in_text(value):
            yield from readings
        yield from map(float, re.findall(r"\d+", value[:_MOST_CHARACTERS])[:_MOST_NUMBERS])
    elif isinstance(value, Mapping):
        yield len(value)
        for item in value.values():
            yield from _numbers(item)
    elif isinstance(value, list | tuple):
        yield len(value)
        yield from _totals(value)
        for item in value:
            yield from _numbers(item)


def _totals(items: list[Any] | tuple[Any, ...]) -> Iterator[float]:
    columns: dict[Any, list[float]] = {}
    for item in items:
        for key, value in item.items() if isinstance(item, Mapping) else ((None, item),):
            if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
                columns.setdefault(key, []).append(float(value))
    for column in columns.values():
        yield sum(column)
        yield sum(column) / len(column)


def _in_text(text: str) -> Iterator[tuple[str, tuple[float, ...], float]]:
    """Yield each number of a text: as written, its possible values, and the place of its last digit."""
    for found in _NUMBER.finditer(_western(text[:_MOST_CHARACTERS])):
        digits = found[0].lstrip("-−")
        if not digits.isdigit():
            digits = _GROUPING.sub("", digits)
        if digits.isdigit():
            if (value := float(digits)) > _SMALL:
                yield found[0], (value,), 10.0 ** (len(digits) - len(digits.rstrip("0")))
        elif readings := sorted({read for point in ".," if (read := _value(digits, point)) is not None}):
            places = len(re.split("[.,]", digits)[-1])
            yield found[0], tuple(readings), 1.0 if places == 3 and len(readings) > 1 else 10.0**-places


def _value(digits: str, point: str) -> float | None:
    """Return a number's value if this is its decimal point, None if that cannot be."""
    group = "," if point == "." else "."
    whole, _, fraction = digits.partition(point)
    parts = whole.split(group)
    if point in fraction or group in fraction or not all(parts) or any(len(part) != 3 for part in parts[1:]):
        return None
    return float(f"{''.join(parts)}.{fraction or 0}")


def _western(text: str) -> str:
    """Return a text with the digits of every script as 0 to 9."""
    return text if text.isascii() else "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)


def _supported(readings: tuple[float, ...], step: float, known: list[float]) -> bool:
    return any(_led_to(value, max(step / 2, 1e-9 * value) * 1.000001, known) for value in readings)


def _led_to(value: float, near: float, known: list[float]) -> bool:
    """Return whether a number is among the known ones, sorted and without sign, or follows from one or two of them."""
    for scale in _SCALES + _UNITS:
        if _holds(known, value * scale, near * scale) or _holds(known, value / scale, near / scale):
            return True
    for by in (32, -32):
        # The sign may change between two scales of temperature.
        if _holds(known, (value + by) / 1.8, near / 1.8) or _holds(known, value * 1.8 + by, near * 1.8):
            return True
    some, share = known[-_MOST_PAIRS:], value / 100
    return any(
        _holds(some, value - one, near)
        or _holds(some, value / one, near / one)
        or _holds(some, value * one, near * one)
        or any(_holds(some, one * part, near * one / 100) for part in (share, 1 + share, 1 - share))
        for one in some
        if one
    )


def _holds(numbers: list[float], number: float, within: float) -> bool:
    """Return whether a number without its sign, give or take `within`, is in a sorted list."""
    place = bisect_left(numbers, abs(number) - within)
    return place < len(numbers) and numbers[place] <= abs(number) + within
