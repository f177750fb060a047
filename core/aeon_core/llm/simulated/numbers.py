"""Numbers and words of a text as tokens, and numbers as text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

MAX_TOKENS = 400
_MAX_DIGITS = 300

_TOKEN = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+)"
    r"|(?P<word>[^\W\d_][\w'’-]*)"
    r"|(?P<power>\*\*)"
    r"|(?P<symbol>\S)"
)
_TIMES = re.compile(r"(?<=\d)\s*x\s*(?=-?\d)")
_SYMBOLS = {"−": "-", "–": "-", "×": "*", "·": "*", "∙": "*", "÷": "/", "∕": "/", "’": "'"}
_SPACED = str.maketrans(_SYMBOLS)

_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_ONES += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SMALL = {word: value for value, word in enumerate(_ONES)} | {word: 20 + 10 * i for i, word in enumerate(_TENS)}
_LARGE = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Token:
    """A number, a word in lower case, or a symbol, with its place in the text."""

    text: str
    number: int | float | None
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """Return the first MAX_TOKENS tokens of a text; number words are numbers."""
    lowered = _TIMES.sub(_keep_length, text.translate(_SPACED)).lower()
    if len(lowered) != len(text):
        # A few characters grow when lowered; places in the text matter more than their case.
        lowered = _TIMES.sub(_keep_length, text.translate(_SPACED))
    found: list[Token] = []
    for match in _TOKEN.finditer(lowered):
        value = _value(match.group()) if match.lastgroup == "number" else None
        found.append(Token(match.group(), value, match.start(), match.end()))
        if len(found) == MAX_TOKENS:
            break
    return _with_number_words(found)


def _keep_length(match: re.Match[str]) -> str:
    return match.group().replace("x", "*")


def _value(digits: str) -> int | float | None:
    digits = digits.replace(",", "")
    if len(digits) > _MAX_DIGITS:
        return None
    if digits.isdecimal():
        return int(digits)
    number = float(digits)
    return number if math.isfinite(number) else None


def _with_number_words(found: list[Token]) -> list[Token]:
    merged: list[Token] = []
    index = 0
    while index < len(found):
        end, value = _number_words(found, index)
        if value is None:
            merged.append(found[index])
        else:
            first, last = found[index], found[end - 1]
            merged.append(Token(first.text, value, first.start, last.end))
        index = end
    return merged


def _number_words(found: list[Token], index: int) -> tuple[int, int | None]:
    """Return the number that the words from `index` on spell and where they end, or None."""
    total, current, spelled = 0, 0, False
    start = index
    while index < len(found):
        parts = found[index].text.split("-")
        if found[index].number is None and all(part in _SMALL for part in parts):
            value = sum(_SMALL[part] for part in parts)
            if spelled and not _continues(current, value):
                break
            current += value
        elif spelled and parts == ["hundred"]:
            current *= 100
        elif spelled and parts[0] in _LARGE and len(parts) == 1:
            total, current = total + current * _LARGE[parts[0]], 0
        else:
            break
        spelled = True
        index += 1
    return (index, total + current) if spelled else (start + 1, None)


def _continues(current: int, value: int) -> bool:
    """Whether "twenty" goes on with "one", "two hundred" with "five"; "five ten" are two numbers."""
    if current % 100 == 0:
        return value < 100
    return current % 10 == 0 and current % 100 >= 20 and 0 < value < 10


def show_number(value: float) -> str:
    """Return a number as a person writes it: no trailing zeros, no rounding noise."""
    if isinstance(value, int):
        text = str(value)
        return text if len(text) <= _MAX_DIGITS else f"{text[:20]}… ({len(text)} digits)"
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return format(value, ".12g")


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
