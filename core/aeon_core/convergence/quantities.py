"""Numbers and dates in a text, and when two of them are the same."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from aeon_core.convergence.words import listed

_MONTHS = listed("january february march april may june july august september october november december")
_DAYS = listed("monday tuesday wednesday thursday friday saturday sunday")
CALENDAR = frozenset((*_MONTHS, *_DAYS))
"""The names of months and days: capitalised, and yet the name of nothing that an answer is about."""
_SMALL = listed("zero one two three four five six seven eight nine ten eleven twelve")
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "million": 1e6, "bn": 1e9, "b": 1e9, "billion": 1e9}


def _any(words: Iterable[str]) -> str:
    """Return a pattern for any of the words, whose letters are those of ASCII alone: `ſ` is no `s` here."""
    return f"(?ai:{'|'.join(words)})"


DIGIT = re.compile(r"\d")
_ISO_DATE = re.compile(r"(?<![\w-])(\d{4})-(\d{2})-(\d{2})(?![\d-])")
_LONG_DATE = re.compile(
    rf"\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m1>{_any(_MONTHS)})"
    rf"|(?P<m2>{_any(_MONTHS)})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b)(?:,?\s+(?P<y>\d{{4}}))?",
    re.IGNORECASE,
)
_DAY = re.compile(rf"\b({_any(_DAYS)})s?\b", re.IGNORECASE)
_CLOCK = re.compile(r"\b([01]?\d|2[0-3]):([0-5]\d)\b")
_MARKER = re.compile(r"^\s*(?:\(?\d{1,2}[.)]|[-*•])\s+", re.MULTILINE)
_NUMBER = re.compile(
    r"(?<![\w.,/#-])(?P<sign>[-−+])?(?P<currency>[$€£¥])?"
    r"(?P<digits>\d{1,3}(?:[,’\u00a0\u202f]\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}"
    r"|\d+,\d{1,2}(?![\d,])|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"(?:\s?(?P<percent>%)|\s?(?P<scale>thousand|million|billion|bn|mn|[kKMB])\b)?"
    r"(?P<unit>°?[A-Za-zµ]{1,3}\b)?(?![\w]|[./-]\d)"
)
_DECIMAL_COMMA = re.compile(r"(?:\d+|\d{1,3}(?:\.\d{3})+),(?:\d{1,2}|\d{4,})|\d{1,3}(?:\.\d{3})+,\d+")
_ONE_GROUP = re.compile(r"\d{1,3}\.\d{3}")
_WORDS = re.compile(rf"\b({_any(_SMALL[2:])})\b", re.IGNORECASE)
_ROUGHLY = re.compile(
    r"(?:\b(?:about|roughly|around|approximately|nearly|almost|over|some|circa|ca)\.?|[~≈])\s*$", re.I
)
_ROUGHLY_ENDS = frozenset("tTyYdDrReEaA.~≈")
"""What those end in."""

ROUGH = 0.06
"""How far off, as a share, a number may be that is said to be a rough one."""
_BEFORE = 20
"""Characters before a number in which a word such as `approximately` stands."""
_YEAR = 500
"""More than any month and day counts."""
_FACTORS = (1.0, 100.0, 1e3, 60.0, 3600.0, 24.0, 1024.0, 1e6, 1024.0**2, 1e9)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it stands in a text. `step` is the place of its last digit, so that a rounded value is recognised.

    `kind` is `number`, `date`, `day` or `clock`; a date is counted in days, a clock in minutes. `marked` is set where
    it has a percent or currency sign.
    """

    value: float
    text: str
    kind: str = "number"
    step: float = 1.0
    rough: bool = False
    marked: bool = False
    grouped: float | None = None
    """The number where its point parts thousands, as in 577.000, which a text alone does not tell."""

    @property
    def small(self) -> bool:
        """Whether it is a small count, as texts use them to order what they say."""
        return self.kind == "number" and not self.marked and self.value == int(self.value) and abs(self.value) <= 12

    def same(self, other: Quantity) -> bool:
        """Return whether one is the other, rounded or as a percentage of 1."""
        if self.kind != other.kind:
            return False
        if self.kind == other.kind and self.value == other.value:
            return True
        if self.kind != "number":
            short = self.kind == "date" and min(self.value, other.value) < _YEAR
            return self.value == other.value or (short and self.value % _YEAR == other.value % _YEAR)
        plain = self.grouped is None and "%" not in self.text and "%" not in other.text
        if plain and abs(abs(self.value) - abs(other.value)) > max(self.step, ROUGH * abs(other.value)):
            return False
        pairs = [(self.value, other.value), (abs(self.value), abs(other.value))]
        if self.grouped is not None and self._close(self.grouped, other.value, other, step=1000.0):
            return True
        if "%" in self.text + other.text:
            pairs += [(self.value, other.value * 100), (self.value * 100, other.value)]
        return any(self._close(one, two, other) for one, two in pairs)

    def _close(self, mine: float, its: float, other: Quantity, *, step: float | None = None) -> bool:
        step = self.step if step is None else step
        rounding = 0.5 * step if its % 1 or step != 1 or self.rough else 0.0
        slack = ROUGH * abs(its) if self.rough or other.rough else 0.0
        return abs(mine - its) <= max(rounding, slack) * (1 + 1e-9) + 1e-9 * max(1.0, abs(its))


@lru_cache(maxsize=4096, typed=True)
def of_value(value: float, key: str = "") -> Quantity:
    """Return a number of an output as a quantity; a key such as `age_million_years` says what it counts in."""
    factor = next((_SCALES[word] for word in ("thousand", "million", "billion") if word in key.lower()), 1.0)
    return Quantity(float(value) * factor, repr(value), step=_step(repr(value), factor))


@lru_cache(maxsize=4096)
def quantities(text: str) -> tuple[Quantity, ...]:
    """Return the numbers, dates, weekdays and times of a text, in no particular order.

    Left out are list markers, versions, and numbers that are a part of a name such as `s1`.
    """
    found: list[Quantity] = []
    rest = _MARKER.sub(" ", text) if "\n" in text or _MARKER.match(text) else text
    if DIGIT.search(rest) is None:
        return (*_days(rest), *_in_words(rest))
    for pattern, read, needed in ((_ISO_DATE, _iso, "-"), (_LONG_DATE, _long, _MONTHS), (_CLOCK, _clock, ":")):
        if _may_have(rest, needed):
            found += [read(match) for match in pattern.finditer(rest)]
            rest = pattern.sub(" ", rest)
    found += [number for match in _NUMBER.finditer(rest) if (number := _number(match)) is not None]
    return (*found, *_days(rest), *_in_words(rest))


def _may_have(text: str, words: Iterable[str]) -> bool:
    """Return whether one of the words may be in a text, capitalised or not: a look before a pattern is tried."""
    lower = text.lower()
    for word in words:  # noqa: SIM110  # this is where most of the time goes: any() takes twice as long
        if word in lower:
            return True
    return False


def _iso(match: re.Match[str]) -> Quantity:
    return Quantity(_ordinal(int(match[1]), int(match[2]), int(match[3])), match[0], "date")


def _long(match: re.Match[str]) -> Quantity:
    month = _MONTHS.index((match["m1"] or match["m2"]).lower()) + 1
    return Quantity(_ordinal(int(match["y"] or 0), month, int(match["d1"] or match["d2"])), match[0], "date")


def _ordinal(year: int, month: int, day: int) -> float:
    """Return a number that grows with the date; without a year it is that of the month and the day."""
    return float(year * _YEAR + month * 32 + day) if year else float(month * 32 + day)


def _clock(match: re.Match[str]) -> Quantity:
    return Quantity(float(int(match[1]) * 60 + int(match[2])), match[0], "clock")


def _days(text: str) -> list[Quantity]:
    if not _may_have(text, ("day",)):
        return []
    return [Quantity(float(_DAYS.index(match[1].lower())), match[0], "day") for match in _DAY.finditer(text)]


def _in_words(text: str) -> list[Quantity]:
    if not _may_have(text, _SMALL[2:]):
        return []
    return [Quantity(float(_SMALL.index(match[1].lower())), match[0]) for match in _WORDS.finditer(text)]


def _number(match: re.Match[str]) -> Quantity | None:
    written, scale = match["digits"], match["scale"]
    digits = _digits(written)
    factor = _SCALES[scale.lower()] if scale else 1.0
    value = float(digits) * factor * (-1.0 if match["sign"] in ("-", "−") else 1.0)
    if not math.isfinite(value):
        return None
    before = match.string[max(0, match.start() - _BEFORE) : match.start()].rstrip()
    rough = before[-1:] in _ROUGHLY_ENDS and _ROUGHLY.search(before) is not None
    marked = bool(match["percent"] or match["currency"])
    grouped = value * 1000 if "." in written and _ONE_GROUP.fullmatch(written) else None
    return Quantity(value, match[0].strip(), "number", _step(digits, factor), rough, marked, grouped)


def _digits(text: str) -> str:
    """Return a number in Python's notation; a comma stands before decimals where it cannot part thousands."""
    if text.isdecimal():
        return text
    if _DECIMAL_COMMA.fullmatch(text):
        return text.replace(".", "").replace(",", ".")
    return re.sub(r"[,’\u00a0\u202f]", "", text) if text.count(".") < 2 else text.replace(".", "")


def _step(digits: str, factor: float) -> float:
    if digits.isdecimal():
        return factor
    mantissa, _, exponent = digits.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    power = int(exponent) if exponent.lstrip("+-").isdigit() and len(exponent) < 5 else 0
    return float(factor * 10.0 ** max(-290, min(290, power - decimals)))


def derived(quantity: Quantity, known: Iterable[Quantity], *, most: int = 60) -> bool:
    """Return whether a number follows from the known ones by one sum, difference, product, ratio or change of unit.

    With more than `most` known numbers the answer is True: nothing can be said then. A date, a day or a time of day is
    never derived.
    """
    if quantity.kind != "number":
        return False
    return follows(quantity, sorted({other.value for other in known if other.kind == "number"}), most=most)


def follows(quantity: Quantity, values: Sequence[float], *, most: int = 60) -> bool:
    """Return the same of a number and the values of the known ones, each once and in their order."""
    if len(values) > most:
        return True
    exact = replace(quantity, rough=False)

    def wanted(value: float) -> bool:
        return math.isfinite(value) and exact.same(Quantity(value, quantity.text))

    if any(wanted(one * factor) or wanted(one / factor) for one in values for factor in _FACTORS):
        return True
    if len(values) > 1 and (wanted(sum(values)) or wanted(sum(values) / len(values)) or wanted(float(len(values)))):
        return True
    return any(wanted(value) for one in values for two in values for value in _combined(one, two, quantity.marked))


def in_other_degrees(quantity: Quantity, known: Iterable[Quantity]) -> bool:
    """Return whether a temperature is a known one in degrees Fahrenheit or Celsius."""
    values = [other.value for other in known if other.kind == "number"]
    slack = 0.5 * quantity.step + 1e-9
    return any(abs(quantity.value - other) <= slack for one in values for other in (one * 1.8 + 32, (one - 32) / 1.8))


def _combined(one: float, two: float, marked: bool) -> list[float]:
    found = [one + two, one - two, one * two]
    if two:
        found.append(one / two)
    if two and marked:
        found += [100 * one / two, 100 * (one - two) / two]
    return found
