"""Units and dates that a description names, against those in the arguments (adaptive FR-038)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aeon_core.validation.semantic.phrase import phrase_words
from aeon_core.validation.semantic.stems import stem
from aeon_core.validation.semantic.views import StepView

_FROM_TO = re.compile(r"\b([a-z]{4,})\s+(?:in)?to\s+([a-z]{4,})\b")
_LEAST_LETTERS = 4
"""What is shorter may be an abbreviation: `km`, `lb`."""
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = rf"(?P<{{}}>(?ai:{'|'.join(_MONTHS)}))"
"""In the letters of ASCII alone: `ſ` is no `s` here."""
_SAID_DATE = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH.format('month')}"
    rf"|{_MONTH.format('month_first')}\s+(?P<day_last>\d{{1,2}})(?:st|nd|rd|th)?)\b",
    re.IGNORECASE,
)
_ISO_DATE = re.compile(r"^\d{4}-(\d\d)-(\d\d)(?:[T ]|$)")

Difference = tuple[str, str, str]
"""What is said, what is given, and the repair."""


def other_units(step: StepView) -> Difference | None:
    """Return a difference where a call converts between two units and the description names two others."""
    given = {name: value for name, value in (step.step.arguments or {}).items() if isinstance(value, str)}
    source = next((name for name in given if name.startswith("from_")), None)
    target = next((name for name in given if name == f"to_{(source or '').removeprefix('from_')}"), None)
    said = _FROM_TO.search(step.said.text)
    if source is None or target is None or said is None:
        return None
    words = [word for name in (source, target) for word in phrase_words(given[name])]
    if len(words) != 2 or any(len(word) < _LEAST_LETTERS or stem(word) in step.said.stems for word in words):
        return None
    one, other = said.groups()
    return (
        f"{one!r} to {other!r}",
        f"{given[source]!r} to {given[target]!r}",
        f"Set arguments.{source} and arguments.{target} to {one!r} and {other!r}",
    )


def other_date(step: StepView) -> Difference | None:
    """Return a difference where the only date in the arguments is another day of the year than the one said."""
    said = set(_said_days(step.said.text))
    given = {text: (int(match[1]), int(match[2])) for text in step.texts if (match := _ISO_DATE.match(text))}
    if len(said) != 1 or len(given) != 1 or said == set(given.values()):
        return None
    month, day = next(iter(said))
    written = f"{day} {_MONTHS[month - 1].capitalize()}"
    return repr(written), repr(next(iter(given))), f"Put {written} in the arguments"


def _said_days(text: str) -> Iterator[tuple[int, int]]:
    for match in _SAID_DATE.finditer(text):
        month = (match["month"] or match["month_first"]).lower()
        yield _MONTHS.index(month) + 1, int(match["day"] or match["day_last"])
