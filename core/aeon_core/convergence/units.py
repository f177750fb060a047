"""Units of measure: a right number in the wrong unit is another quantity (adaptive FR-019, FR-021)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from aeon_core.convergence.artifacts import MAX_CHARACTERS, MAX_FACTS, Artifacts, countable
from aeon_core.convergence.finding import CONTRADICTION, Finding
from aeon_core.convergence.quantities import DIGIT, Quantity, of_value, quantities

_DIMENSIONS: dict[str, dict[str, float]] = {
    "length": {
        "mm millimetre millimeter": 0.001,
        "cm centimetre centimeter": 0.01,
        "m metre meter": 1.0,
        "km kilometre kilometer": 1000.0,
        "mi mile": 1609.344,
        "ft foot feet": 0.3048,
        "inch inches": 0.0254,
        "yd yard": 0.9144,
    },
    "mass": {
        "mg milligram": 1e-6,
        "g gram gramme": 0.001,
        "kg kilogram kilo": 1.0,
        "t tonne": 1000.0,
        "lb lbs": 0.45359237,
        "oz ounce": 0.028349523,
    },
    "volume": {
        "ml millilitre milliliter": 0.001,
        "cl centilitre centiliter": 0.01,
        "l litre liter": 1.0,
        "gal gallon": 3.785411784,
        "pint": 0.473176473,
    },
    "area": {
        "m2 m² sqm square-metre square-meter": 1.0,
        "km2 km² square-kilometre square-kilometer": 1e6,
        "ha hectare": 1e4,
        "acre": 4046.8564224,
        "sqft square-foot square-feet": 0.09290304,
    },
    "time": {
        "ms millisecond": 0.001,
        "sec second": 1.0,
        "min minute": 60.0,
        "h hr hour": 3600.0,
        "day": 86400.0,
        "week": 604800.0,
        "month": 2629800.0,
        "year": 31557600.0,
    },
    "speed": {"m/s mps": 1.0, "km/h kmh kph": 1 / 3.6, "mph": 0.44704},
    "power": {"w watt": 1.0, "kw kilowatt": 1e3, "mw megawatt": 1e6},
    "energy": {"wh": 1.0, "kwh": 1e3, "mwh": 1e6, "gwh": 1e9},
    "data": {"byte": 1.0, "kb kilobyte": 1e3, "mb megabyte": 1e6, "gb gigabyte": 1e9, "tb terabyte": 1e12},
    "temperature": {"°c celsius": 1.0, "°f fahrenheit": 1.0},
    "money in euros": {"€ eur euro": 1.0},
    "money in dollars": {"$ usd dollar": 1.0},
    "money in pounds": {"£ gbp": 1.0},
    "money in francs": {"chf": 1.0},
    "money in yen": {"¥ jpy yen": 1.0},
    "share": {"% percent": 1.0},
}
_KEYS_ALONE = {"c": "°c", "f": "°f", "s": "sec", "seconds": "sec", "bytes": "byte", "pct": "%"}
"""What a unit is called at the end of a key alone, as in `temperature_c`."""
_TOLERANCE = 0.02
"""How far off, as a share, a converted number may be."""
_ROUNDED = 0.06
"""How far off, as a share, a rounded number may be."""
_MOST_NEAR = 50
_MOST_DIGITS = 15
"""Digits of a whole number that needs no further reading."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: what it measures, its common name, and how many base units it is."""

    dimension: str
    name: str
    factor: float


@dataclass(frozen=True, slots=True)
class Measure:
    """A number with its unit, None where it has none, and the step or text that it comes from."""

    source: str
    quantity: Quantity
    unit: Unit | None


def _units() -> dict[str, Unit]:
    found = {}
    for dimension, names in _DIMENSIONS.items():
        for aliases, factor in names.items():
            name = aliases.split()[0]
            for alias in aliases.replace("-", " ").split() if "-" not in aliases else aliases.split():
                for form in {alias, alias + "s"} if len(alias) > 2 else {alias}:
                    found[form.replace("-", " ")] = Unit(dimension, name, factor)
    return found


_UNITS = _units()
_NAMES = {unit.name: unit for unit in _UNITS.values()}
_SPELT = "|".join(re.escape(form) for form in sorted(_UNITS, key=lambda form: (-len(form), form)))
_MEASURED = re.compile(
    r"(?<![\w.,-])(?:(?P<symbol>[€$£¥])\s?)?(?P<number>\d[\d,’.]*\d|\d)(?P<scale>\s?(?:thousand|million|billion|bn)\b)?"
    rf"(?:[\s-]?(?P<unit>(?ai:{_SPELT}))(?![\w/²]))?",
    re.IGNORECASE,
)
_NAMED = re.compile(rf"(?<![\w/])(?ai:{_SPELT})(?![\w/²])")


def check_units(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield where the answer gives a number of an output in another unit, and no conversion explains it."""
    said = [measure for measure in measures("answer", artifacts.answer) if measure.unit is not None]
    if not said:
        return
    known = _Known(_known(artifacts))
    for measure in dict.fromkeys(said):
        same = known.near(measure.quantity)
        if not same or any(_agrees(measure, each) for each in same) or known.converts_to(measure):
            continue
        first = next((each for each in same if _mistaken(measure, each)), None)
        if first is not None and first.unit is not None:
            yield Finding(
                f"the answer says {measure.quantity.text!r}, where {first.source} is in {first.unit.name!r}",
                code="contradiction_detected",
                flag="answer",
                weight=CONTRADICTION,
            )


class _Known:
    """The measures that an answer may rest on, by their value and by what they measure."""

    def __init__(self, known: Iterable[Measure]) -> None:
        self._exact: dict[float, list[Measure]] = defaultdict(list)
        for measure in known:
            self._exact[measure.quantity.value].append(measure)
        self._values = sorted(self._exact)

    def near(self, quantity: Quantity) -> list[Measure]:
        """Return the measures with this number, or where there is none, with one that it is a rounding of."""
        exact = self._exact.get(quantity.value)
        if exact is not None:
            return exact
        return [each for each in self._within(quantity.value, _ROUNDED) if quantity.same(each.quantity)]

    def converts_to(self, said: Measure) -> bool:
        """Return whether a measure in another unit is, converted, what is said."""
        assert said.unit is not None
        units = (each for each in _NAMES.values() if each.dimension == said.unit.dimension and each != said.unit)
        return any(
            known.unit == unit
            for unit in units
            for known in self._within(_in_unit(said.quantity.value, said.unit, unit), _TOLERANCE)
        )

    def _within(self, value: float, share: float) -> Iterator[Measure]:
        slack = share * abs(value) + 1e-9
        first = bisect_left(self._values, value - slack)
        last = bisect_right(self._values, value + slack, lo=first)
        for number in self._values[first:last][:_MOST_NEAR]:
            yield from self._exact[number][:_MOST_NEAR]


def measures(source: str, text: str) -> Iterator[Measure]:
    """Yield the numbers of a text with the unit that follows them, or the currency sign before them."""
    for number, unit in _measured(text[:MAX_CHARACTERS]):
        yield Measure(source, number, unit)


@lru_cache(maxsize=4096)
def _measured(text: str) -> tuple[tuple[Quantity, Unit | None], ...]:
    found: list[tuple[Quantity, Unit | None]] = []
    if DIGIT.search(text) is None:
        return ()
    for match in _MEASURED.finditer(text):
        read = _read(match["number"], match["scale"] or "")
        if len(read) == 1 and read[0].kind == "number":
            name = match["symbol"] or match["unit"]
            told = Quantity(read[0].value, match[0].strip(), step=read[0].step, grouped=read[0].grouped)
            found.append((told, _UNITS[name.lower()] if name else None))
    return tuple(found)


def _read(number: str, scale: str) -> tuple[Quantity, ...]:
    if not scale and len(number) <= _MOST_DIGITS and number.isdecimal():
        return (Quantity(float(number), number),)
    return quantities(number + scale)


def _agrees(said: Measure, known: Measure) -> bool:
    return known.unit is None or (said.unit is not None and said.unit.name == known.unit.name)


def _mistaken(said: Measure, known: Measure) -> bool:
    """Return whether one stands for the other: one dimension, or a number that is no small count."""
    assert said.unit is not None
    assert known.unit is not None
    return said.unit.dimension == known.unit.dimension or not said.quantity.small


def _in_unit(value: float, unit: Unit, other: Unit) -> float:
    if unit.dimension == "temperature":
        return value * 1.8 + 32 if other.name == "°f" else (value - 32) / 1.8
    return value * unit.factor / other.factor


def _known(artifacts: Artifacts) -> Iterator[Measure]:
    for text in (artifacts.goal, artifacts.plan.goal):
        yield from measures("the goal", text)
    for view in artifacts.steps:
        yield from measures(f"step {view.step_id!r}", view.step.description)
        if view.step.arguments:
            yield from _of_value(f"step {view.step_id!r}", view.step.arguments, None, [MAX_FACTS])
    for step_id, view in artifacts.sources.items():
        asked = _only_unit(view.step.description) if _has_numbers(view.output) else None
        yield from _of_value(f"the result of step {step_id!r}", view.output, asked, [MAX_FACTS])
    for key, value in artifacts.memory.items():
        if key not in artifacts.by_id:
            yield from _of_value(f"memory {key!r}", {key: value}, None, [MAX_FACTS])


def _has_numbers(output: Any) -> bool:
    """Return whether an output holds a number that is no part of a text."""
    if isinstance(output, str):
        return False
    if isinstance(output, (dict, Mapping)):
        return any(map(_has_numbers, output.values()))
    return any(map(_has_numbers, output)) if isinstance(output, (list, tuple)) else countable(output)


@lru_cache(maxsize=4096)
def _only_unit(description: str) -> Unit | None:
    """Return the unit that a step's description asks for, where it names one alone."""
    named = {_UNITS[match[0].lower()] for match in _NAMED.finditer(description) if len(match[0]) > 2}
    return named.pop() if len(named) == 1 else None


def _of_value(source: str, value: Any, unit: Unit | None, left: list[int]) -> Iterator[Measure]:
    """Yield the measures in an output, at most as many as are `left`; a key may end in the unit of its number."""
    if left[0] <= 0:
        return
    if isinstance(value, str):
        left[0] -= 1
        yield from measures(source, value)
    elif isinstance(value, (dict, Mapping)):
        for key in sorted(value, key=str):
            yield from _of_value(source, value[key], _unit_of_key(str(key), unit), left)
    elif isinstance(value, (list, tuple)):
        for item in value[:MAX_FACTS]:
            yield from _of_value(source, item, unit, left)
    elif countable(value):
        left[0] -= 1
        yield Measure(source, of_value(value), unit)


def _unit_of_key(key: str, otherwise: Unit | None) -> Unit | None:
    """Return the unit that a key ends in; a key such as `result` says nothing of its own, any other has none."""
    last = key.lower().replace("-", "_").rpartition("_")[2]
    if len(key) > len(last):
        last = _KEYS_ALONE.get(last, last)
    if last in _UNITS and (len(last) > 1 or len(key) > 1):
        return _UNITS[last]
    return otherwise if key.lower() in ("result", "value", "output", "answer", "text") else None
