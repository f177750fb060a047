"""What an answer tells of the outputs: their numbers, their short texts, the gist of their sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from aeon_core.convergence.artifacts import Fact
from aeon_core.convergence.numbers import Numbers
from aeon_core.convergence.quantities import Quantity, quantities
from aeon_core.convergence.words import content_stems, denied, names

TOLD_SHARE = 0.4
"""The least share of the words of a text that an answer has in common with it where it tells it."""
_SHORT_ANSWER = re.compile(r"\s*(?:yes|no|true|false)\b", re.IGNORECASE)


class Told:
    """The part of an answer that says something. `asked` are the texts that the task is given in."""

    def __init__(self, text: str, asked: Iterable[str] = ()) -> None:
        asked = tuple(asked)
        self.text = text
        self.stems = content_stems(text)
        self._asked = frozenset[str]().union(*map(content_stems, asked))
        self._asked_numbers = {(number.kind, number.value) for line in asked for number in quantities(line)}
        self._numbers = Numbers(quantities(text))

    def number(self, quantity: Quantity) -> bool:
        """Return whether the answer states a number, rounded or not."""
        return self._numbers.state(quantity)

    def one_of(self, numbers: Sequence[Quantity]) -> bool:
        """Return whether the answer states one of the numbers; those of the task count where there are no others."""
        if not numbers or not self._numbers.all:
            return False
        return any(map(self._numbers.state, self._new(numbers) or numbers))

    def any_of(self, facts: Iterable[Fact]) -> bool:
        """Return whether the answer tells one of the facts, or there are none to tell."""
        facts = tuple(facts)
        return not facts or any(map(self._tells, facts))

    def specifics_of(self, facts: Iterable[Fact]) -> bool:
        """Return whether the answer tells every number and every name of the facts, and there are some."""
        facts = tuple(facts)
        numbers = [number for fact in facts for number in fact.quantities]
        named = [name for fact in facts if isinstance(fact.value, str) for name in names(fact.value)]
        return bool(numbers or named) and all(
            (*map(self.number, numbers), *(bool(content_stems(name) & self.stems) for name in named))
        )

    def _tells(self, fact: Fact) -> bool:
        if isinstance(fact.value, bool):
            return not fact.about or bool(fact.about & self.stems) or _SHORT_ANSWER.match(self.text) is not None
        if self.one_of(fact.quantities):
            return True
        if not isinstance(fact.value, str):
            return False
        words = content_stems(fact.value)
        if words and words.isdisjoint(self.stems):
            return False
        new = self._new(fact.quantities)
        added = words - self._asked
        if self._asked and (added or new) and added.isdisjoint(self.stems) and not denied(fact.value):
            return False
        if not self._asked and self.stems and self.stems <= words:
            return True
        if not words:
            return not fact.quantities and fact.value.lower() in self.text.lower()
        return len(words & self.stems) >= max(TOLD_SHARE * len(words), min(2, len(words)))

    def _new(self, numbers: Sequence[Quantity]) -> list[Quantity]:
        """Return the numbers that the task does not have."""
        return [number for number in numbers if (number.kind, number.value) not in self._asked_numbers]
