"""What the outputs say, by the words they say it with: a long answer is not compared with all of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aeon_core.convergence.artifacts import Fact
from aeon_core.convergence.quantities import Quantity, quantities
from aeon_core.convergence.words import clauses_in, content_stems, denied, frame, opposites

_MOST_SHARING = 40
"""A word that more clauses than this have says nothing about which of them is meant."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A quantity that a step gave, and what it is the quantity of."""

    source: str
    stems: frozenset[str]
    subject: frozenset[str]
    quantity: Quantity
    keyed: bool


@dataclass(frozen=True, slots=True)
class Saying:
    """A clause of a text that a step gave."""

    source: str
    text: str
    stems: frozenset[str]
    denied: bool


class Numbers:
    """The numbers that an answer may rest on, exact ones found at once."""

    def __init__(self, known: Iterable[Quantity]) -> None:
        self.all = tuple(known)
        self._exact = {(number.kind, number.value) for number in self.all}

    def has(self, quantity: Quantity) -> bool:
        """Return whether a number is one of these, rounded or not."""
        exact = (quantity.kind, quantity.value) in self._exact
        return exact or any(quantity.same(number) for number in self.all)


class Claims:
    """Claims by the stems they have."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self.all = [claim for fact in facts for claim in _claims_of(fact)]
        self._by_stem: dict[str, list[int]] = defaultdict(list)
        for number, claim in enumerate(self.all):
            for one in claim.stems | claim.subject:
                self._by_stem[one].append(number)

    def about(self, stems: frozenset[str]) -> list[Claim]:
        """Return the claims that share a word with these, in the order of the steps."""
        found = {number for one in stems for number in self._by_stem.get(one, ())[:_MOST_SHARING]}
        return [self.all[number] for number in sorted(found)]

    def of(self, quantity: Quantity) -> list[Claim]:
        """Return the claims with this number."""
        return [claim for claim in self.all if quantity.same(claim.quantity)]


class Sayings:
    """Clauses by the stems they have, opposites included; only of texts that have a word `among` those of interest."""

    def __init__(self, facts: Iterable[Fact], among: frozenset[str]) -> None:
        self.all = [saying for fact in facts if _speaks(fact, among) for saying in _sayings_of(fact)]
        self._by_stem: dict[str, list[int]] = defaultdict(list)
        for number, saying in enumerate(self.all):
            for one in saying.stems:
                self._by_stem[one].append(number)

    def near(self, stems: frozenset[str]) -> Iterator[Saying]:
        """Yield the clauses that share two words with these, or one and an opposite."""
        shared: Counter[int] = Counter()
        for one in stems.union(*map(opposites, stems)):
            places = self._by_stem.get(one, ())
            if len(places) <= _MOST_SHARING:
                shared.update(places)
        for number in sorted(number for number, count in shared.items() if count >= 2):
            yield self.all[number]


def _claims_of(fact: Fact) -> Iterator[Claim]:
    if not fact.sentence:
        words = content_stems(fact.value) if isinstance(fact.value, str) else frozenset[str]()
        for quantity in fact.quantities:
            yield Claim(fact.source, fact.about | words, fact.subject, quantity, keyed=True)
    for clause in clauses_in(str(fact.value)) if fact.sentence and fact.quantities else ():
        for quantity in quantities(clause):
            yield Claim(fact.source, frame(clause), frozenset(), quantity, keyed=False)


def _speaks(fact: Fact, among: frozenset[str]) -> bool:
    return isinstance(fact.value, str) and not among.isdisjoint(content_stems(fact.value) | fact.about)


def _sayings_of(fact: Fact) -> Iterator[Saying]:
    parts = clauses_in(str(fact.value)) if fact.sentence else ()
    for text in dict.fromkeys((str(fact.value), *parts)):
        stems = content_stems(text)
        yield Saying(fact.source, text, stems if fact.sentence else stems | fact.about, denied(text))
