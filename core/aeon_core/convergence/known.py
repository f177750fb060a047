"""What the outputs say, by the words they say it with: a long answer is not compared with all of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from aeon_core.convergence.artifacts import Fact
from aeon_core.convergence.quantities import Quantity, quantities
from aeon_core.convergence.words import clauses_in, content_stems, denied, frame, opposites, own_words

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
    """Claims by the stems they have. `told_apart` is what tells a step from others that gave values under its keys."""

    def __init__(self, facts: Iterable[Fact], told_apart: Mapping[str, frozenset[str]]) -> None:
        self.all = [claim for fact in facts for claim in _claims_of(fact, told_apart.get(fact.source, frozenset()))]
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
        self._by_stem: dict[tuple[str, bool], list[int]] = defaultdict(list)
        for number, saying in enumerate(self.all):
            for one in saying.stems:
                self._by_stem[one, saying.denied].append(number)
        self._stems = frozenset(one for one, _ in self._by_stem)
        self._turned: dict[str, frozenset[str]] = {}

    def against(self, stems: frozenset[str], denied: bool) -> list[Saying]:
        """Return the clauses that may be against one with these stems: of the other sense, or with an opposite."""
        turned = frozenset[str]().union(*map(self._opposites, stems))
        senses = (True, False) if any((one, denied) in self._by_stem for one in turned - stems) else (not denied,)
        return self._near(stems | turned, senses)

    def near(self, stems: frozenset[str]) -> list[Saying]:
        """Return the clauses that share two words with these."""
        return self._near(stems, (True, False))

    def _opposites(self, one: str) -> frozenset[str]:
        if one not in self._turned:
            self._turned[one] = opposites(one) & self._stems
        return self._turned[one]

    def _near(self, stems: frozenset[str], senses: tuple[bool, ...]) -> list[Saying]:
        shared: Counter[int] = Counter()
        for one in stems:
            for sense in senses:
                places = self._by_stem.get((one, sense), ())
                if places and len(places) <= _MOST_SHARING:
                    shared.update(places)
        return [self.all[number] for number in sorted(number for number, count in shared.items() if count >= 2)]


def _claims_of(fact: Fact, told_apart: frozenset[str]) -> Iterator[Claim]:
    if not fact.sentence:
        words = content_stems(fact.value) if isinstance(fact.value, str) else frozenset[str]()
        for quantity in fact.quantities:
            yield Claim(fact.source, fact.about | words, fact.subject | told_apart, quantity, keyed=True)
    for clause in clauses_in(str(fact.value)) if fact.sentence and fact.quantities else ():
        for quantity in quantities(clause):
            yield Claim(fact.source, frame(clause), frozenset(), quantity, keyed=False)


def _speaks(fact: Fact, among: frozenset[str]) -> bool:
    return isinstance(fact.value, str) and not among.isdisjoint(content_stems(fact.value) | fact.about)


def _sayings_of(fact: Fact) -> Iterator[Saying]:
    whole = own_words(str(fact.value))
    parts = clauses_in(whole) if fact.sentence else ()
    for text in dict.fromkeys((whole, *parts)):
        stems = content_stems(text)
        yield Saying(fact.source, text, stems if fact.sentence else stems | fact.about, denied(text))
