"""Suggestions while a filter is typed: completions of a term, and a hint line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.suggester import Suggester
from typing_extensions import override

from aeon_tui.screens.browser.run_filter import FILTERS, KINDS, STATUSES, TIMES

KNOWN = " ".join(f"{name}:" for name in FILTERS)
HINT = f"{KNOWN} · -status: excludes · tab completes"


@dataclass(frozen=True)
class Present:
    """What there is among the runs: it is offered first."""

    models: Sequence[str] = ()
    statuses: Sequence[str] = ()


class FilterSuggester(Suggester):
    """Completes the last term of the line."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self.present = Present()

    @override
    async def get_suggestion(self, value: str) -> str | None:
        """Return the line with its last term completed; None where there is nothing to add."""
        before, term = _last_term(value)
        sign = "-" if term.startswith("-") else ""
        options = [f"{sign}{each}" for each in offered(term.removeprefix("-"), self.present)]
        return next((before + each for each in options if each.startswith(term) and each != term), None)


def offered(term: str, present: Present) -> list[str]:
    """Return what a term that was begun may become; nothing for one that is empty or no filter."""
    name, colon, value = term.partition(":")
    if not colon or name not in FILTERS:
        return [f"{each}:" for each in FILTERS if term and not colon and each.startswith(name)]
    first, comma, last = value.rpartition(",")
    return [f"{name}:{first}{comma}{each}" for each in _values(name, last, present)]


def hint(line: str, problem: str, present: Present) -> str:
    """Return the hint under the line: what is wrong with it, a filter's possible values, or the filters."""
    if problem:
        return f"✖ {problem}"
    name, colon, value = _last_term(line)[1].removeprefix("-").partition(":")
    last = value.rpartition(",")[2]
    if not colon or name not in FILTERS or (found := _values(name, last, present)) == [last]:
        return HINT
    more = " or a date as 2026-11-01" if name in ("since", "before") else ""
    return f"{name}: {' '.join(found) or 'part of its name'}{more}"


def _values(name: str, begun: str, present: Present) -> list[str]:
    """Return the values that begin so, those that there are runs of first."""
    statuses = [*present.statuses, *(each for each in STATUSES if each not in present.statuses)]
    known = {"status": statuses, "model": present.models, "since": TIMES, "before": TIMES, "is": KINDS}
    return [each for each in known[name] if each.startswith(begun)]


def _last_term(line: str) -> tuple[str, str]:
    """Return the text before the term that is being typed, and the term."""
    at = max(line.rfind(" "), line.rfind("\t")) + 1
    return line[:at], line[at:]
