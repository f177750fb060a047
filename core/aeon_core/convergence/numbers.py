"""Numbers by their value: which of them another number may be is found without comparing it with all of them."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from aeon_core.convergence.quantities import ROUGH, Quantity, follows

_REACH = 1.001 * ROUGH / (1 - ROUGH)
"""How far apart, as a share of one of them, two plain numbers may be that are the same: a little more than that."""


class Numbers:
    """Numbers that an artifact gives, in their order."""

    def __init__(self, numbers: Iterable[Quantity]) -> None:
        self.all = tuple(numbers)
        self._exact = {(number.kind, number.value) for number in self.all}

    def has(self, quantity: Quantity) -> bool:
        """Return whether a number is one of these, rounded or not."""
        return self._exactly(quantity) or any(quantity.same(self.all[place]) for place in self._near(quantity))

    def state(self, quantity: Quantity) -> bool:
        """Return whether one of these is a number, rounded or not."""
        return self._exactly(quantity) or any(self.all[place].same(quantity) for place in self._near(quantity))

    def places(self, quantity: Quantity) -> list[int]:
        """Return the places of those that a number is, rounded or not."""
        return sorted(place for place in self._near(quantity) if quantity.same(self.all[place]))

    def lead_to(self, quantity: Quantity) -> bool:
        """Return whether a number follows from these by one step, as `derived` tells it."""
        return quantity.kind == "number" and follows(quantity, self._values)

    def _exactly(self, quantity: Quantity) -> bool:
        return (quantity.kind, quantity.value) in self._exact

    def _near(self, quantity: Quantity) -> list[int]:
        """Return the places of all that may be the same; a percentage or grouped digits may be any number."""
        if quantity.kind != "number" or not _plain(quantity):
            return self._of_kind.get(quantity.kind, [])
        found = self._not_plain
        size = abs(quantity.value)
        for step, (sizes, places) in self._by_step.items():
            slack = max(step, quantity.step, _REACH * size) * 1.001
            first = bisect_left(sizes, size - slack)
            if first < len(sizes) and sizes[first] <= size + slack:
                found = found + places[first : bisect_right(sizes, size + slack, lo=first)]
        return found

    @cached_property
    def _values(self) -> list[float]:
        return sorted({number.value for number in self.all if number.kind == "number"})

    @cached_property
    def _of_kind(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for place, number in enumerate(self.all):
            found[number.kind].append(place)
        return found

    @cached_property
    def _not_plain(self) -> list[int]:
        return [place for place in self._of_kind.get("number", ()) if not _plain(self.all[place])]

    @cached_property
    def _by_step(self) -> dict[float, tuple[list[float], list[int]]]:
        """The plain numbers by their last digit's place: their sizes in order, and the place of each."""
        found: dict[float, list[tuple[float, int]]] = defaultdict(list)
        for place in self._of_kind.get("number", ()):
            number = self.all[place]
            if _plain(number):
                found[number.step].append((abs(number.value), place))
        return {
            step: ([size for size, _ in sizes], [place for _, place in sizes])
            for step, sizes in ((step, sorted(sizes)) for step, sizes in found.items())
        }


def _plain(number: Quantity) -> bool:
    return number.grouped is None and "%" not in number.text and math.isfinite(number.value)
