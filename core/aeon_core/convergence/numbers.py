"""Numbers by their value: which of them another number may be is found without comparing it with all of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from aeon_core.convergence.quantities import ROUGH, Quantity, follows

_REACH = ROUGH / (1 - ROUGH)
"""How far apart, as a share of one of them, two numbers may be that are the same, where one of them is a rough one."""
_WIDER = 1.001
_AT_LEAST = 2e-9
"""By what factor, and by what share of a number, the range is wider in which the same numbers are looked for."""
_GROUP = 1000.0
"""The place of the last digit of a number whose point parts thousands."""
_LARGEST = 1e300
"""A number beyond this is compared with all: a hundred times as much may be no number."""


class Numbers:
    """Numbers that an artifact gives, in their order."""

    def __init__(self, numbers: Iterable[Quantity]) -> None:
        self.all = tuple(numbers)

    def has(self, quantity: Quantity) -> bool:
        """Return whether a number is one of these, rounded or not."""
        if (quantity.kind, quantity.value) in self._exact:
            return True
        near = self._near(quantity)
        return bool(near) and any(quantity.same(self.all[place]) for place in near)

    def state(self, quantity: Quantity) -> bool:
        """Return whether one of these is a number, rounded or not."""
        if (quantity.kind, quantity.value) in self._exact:
            return True
        near = self._near(quantity)
        return bool(near) and any(self.all[place].same(quantity) for place in near)

    def places(self, quantity: Quantity) -> list[int]:
        """Return the places of those that a number is, rounded or not."""
        return sorted({place for place in self._near(quantity) if quantity.same(self.all[place])})

    def lead_to(self, quantity: Quantity) -> bool:
        """Return whether a number follows from these by one step, as `derived` tells it."""
        return quantity.kind == "number" and follows(quantity, self._values)

    def _near(self, quantity: Quantity) -> list[int]:
        """Return the places of all that may be the same, some of them more than once."""
        if quantity.kind != "number" or not abs(quantity.value) < _LARGEST:
            return self._of_kind.get(quantity.kind, [])
        found = self._beyond
        for size, its_step in _readings(quantity):
            roughly, exactly = _REACH * size, _AT_LEAST * max(1.0, size)
            for step, rough, sizes, places in self._by_step:
                slack = 0.5 * (step if step > its_step else its_step)
                if (rough or quantity.rough) and roughly > slack:
                    slack = roughly
                slack = slack * _WIDER + exactly
                first = bisect_left(sizes, size - slack)
                if first < len(sizes) and sizes[first] <= size + slack:
                    found = found + places[first : bisect_right(sizes, size + slack, lo=first)]
        return found

    @cached_property
    def _exact(self) -> frozenset[tuple[str, float]]:
        return frozenset([(number.kind, number.value) for number in self.all])

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
    def _beyond(self) -> list[int]:
        return [place for place in self._of_kind.get("number", ()) if not abs(self.all[place].value) < _LARGEST]

    @cached_property
    def _by_step(self) -> list[tuple[float, bool, list[float], list[int]]]:
        """The readings of the numbers by the place of their last digit and by roughness: sizes in order, places."""
        found: dict[tuple[float, bool], list[tuple[float, int]]] = defaultdict(list)
        for place in self._of_kind.get("number", ()):
            number = self.all[place]
            for size, step in _readings(number):
                found[step, number.rough].append((size, place))
        return [
            (step, rough, [size for size, _ in sizes], [place for _, place in sizes])
            for (step, rough), sizes in ((kept, sorted(sizes)) for kept, sizes in found.items())
        ]


def _readings(number: Quantity) -> Sequence[tuple[float, float]]:
    """Return the sizes that a number may be read as, each with its last digit's place.

    A percentage is one of 1 or of 100, and so is what it stands for; a point may part thousands.
    """
    size, step = abs(number.value), number.step
    grouped = () if number.grouped is None else ((abs(number.grouped), _GROUP),)
    if "%" in number.text:
        return ((size, step), (size * 100, step), (size / 100, step), *grouped)
    return ((size, step), *grouped) if grouped else ((size, step),)
