"""Rounding: how many decimals a description asks for, and a number shown with them."""

from __future__ import annotations

import re

from aeon_core.llm.simulated.numbers import show_number
from aeon_core.llm.simulated.parsing import MAX_CLAUSE

_ROUND = re.compile(
    r"round(?:ed)?\b(?:\s+(?:it|that|off|the result(?: of [\w.-]*\w)?))*\s+to\s+(?:the\s+)?(?:nearest\s+)?"
    r"(?:(?P<count>\d|one|two|three|four|five|six)\s+(?:decimals?|digits?)(?:\s+(?:places?|points?))?"
    r"|(?P<whole>integer|whole(?:\s+number)?|number))[\s.!?]*$",
    re.IGNORECASE,
)
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six")


def decimals_asked(description: str) -> int | None:
    """Return the decimals that a description wants a number rounded to, 0 for a whole one; None where it wants none."""
    match = _ROUND.match(description[:MAX_CLAUSE].strip())
    if match is None:
        return None
    if match["whole"]:
        return 0
    count = match["count"].lower()
    return _COUNTS.index(count) if count in _COUNTS else int(count)


def rounded(number: float, decimals: int) -> str:
    """Return a number rounded to so many decimals, as it is written."""
    return show_number(round(number, decimals)) if decimals else show_number(round(number))
