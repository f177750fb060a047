"""What the outputs say, by the words they say it with: a long answer is not compared with all of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from aeon_core.convergence.artifacts import Fact
from aeon_core.convergence.numbers import Numbers
from aeon_core.convergence.quantities import Quantity, quantities
from aeon_core.convergence.words import clauses_in, content_stems, denied, frame, opposites, own_words

_MOST_SHARING = 40
"""A word that more clauses than this have says nothing about which of them is meant."""


class Claim(NamedTuple):
    """A quantity that a step gave, and what it is the quantity of."""

    source: str
    stems: frozenset[str]
    subject: frozenset[str]
    quantity: Quantity
    keyed: bool


class Saying(NamedTuple):
    """A clause of a text that a step gave."""

    source: str
    text: str
    stems: frozenset[str]
    denied: bool


class Claims:
    """Claims by those of their stems that are `among` the ones of interest.

    `told_apart` is what tells a step from others that gave values under its keys.
    """

    def __init__(self, facts: Iterable[Fact], told_apart: Mapping[str, frozenset[str]], among: frozenset[str]) -> None:
        self.all = [claim for fact in facts for claim in _claims_of(fact, told_apart.get(fact.source, frozenset()))]
        self.numbers = Numbers(claim.quantity for claim in self.all)
        self._by_stem: dict[str, list[int]] = defaultdict(list)
        for number, claim in enumerate(self.all):
            for one in among.intersection(claim.stems | claim.subject if claim.subject else claim.stems):
                self._by_stem[one].append(number)

    def about(self, stems: frozenset[str]) -> list[Claim]:
        """Return the claims that share a word with these, in the order of the steps."""
        found = {number for one in stems for number in self._by_stem.get(one, ())[:_MOST_SHARING]}
        return [self.all[number] for number in sorted(found)]

    def of(self, quantity: Quantity) -> list[Claim]:
        """Return the claims with this number."""
        return [self.all[place] for place in self.numbers.places(quantity)]


class Sayings:
    """Clauses of texts that have a word `among` those of interest, by those of their stems that are.

    Of interest is every stem that is asked for, and its opposites.
    """

    def __init__(self, facts: Iterable[Fact], among: frozenset[str]) -> None:
        self.all = [saying for fact in facts if _speaks(fact, among) for saying in _sayings_of(fact)]
        self._by_stem: dict[tuple[str, bool], list[int]] = defaultdict(list)
        for number, saying in enumerate(self.all):
            for one in among & saying.stems:
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
    if not fact.quantities:
        return
    if not fact.sentence:
        words = content_stems(fact.value) if isinstance(fact.value, str) else frozenset[str]()
        for quantity in fact.quantities:
            yield Claim(fact.source, fact.about | words, fact.subject | told_apart, quantity, keyed=True)
    for stems, quantity in _numbered(str(fact.value)) if fact.sentence else ():
        yield Claim(fact.source, stems, frozenset(), quantity, keyed=False)


@lru_cache(maxsize=4096)
def _numbered(sentence: str) -> tuple[tuple[frozenset[str], Quantity], ...]:
    """Return the numbers of a sentence, each with the words of its clause."""
    return tuple((frame(clause), number) for clause in clauses_in(sentence) for number in quantities(clause))


def _speaks(fact: Fact, among: frozenset[str]) -> bool:
    if not isinstance(fact.value, str):
        return False
    return not (among.isdisjoint(content_stems(fact.value)) and among.isdisjoint(fact.about))


def _sayings_of(fact: Fact) -> Iterator[Saying]:
    for text, stems, denies in _clauses_said(str(fact.value), fact.sentence):
        yield Saying(fact.source, text, stems if fact.sentence else stems | fact.about, denies)


@lru_cache(maxsize=4096)
def _clauses_said(text: str, parted: bool) -> tuple[tuple[str, frozenset[str], bool], ...]:
    """Return a text and, where it is `parted`, its clauses: each with its stems, and whether it denies something."""
    whole = own_words(text)
    parts = clauses_in(whole) if parted else ()
    return tuple((part, content_stems(part), denied(part)) for part in dict.fromkeys((whole, *parts)))
