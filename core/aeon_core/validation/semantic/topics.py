"""Fields of life that words belong to: what tells a step on another subject from one in other words."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from aeon_core.validation.semantic.stems import words


class Topic(NamedTuple):
    """A field and the area it lies in."""

    area: str
    name: str


_FAR: dict[str, frozenset[str]] = {
    "common": words("leisure sport culture food home rural travel nature transport"),
    "technical": words("leisure sport culture food home rural travel nature transport industry health"),
    "science": words("leisure sport culture travel home transport"),
    "health": words("technical leisure culture transport industry rural nature"),
    "business": words("leisure sport culture food nature science"),
    "industry": words("leisure sport culture food travel rural humane"),
    "transport": words("leisure sport culture food science technical"),
    "rural": words("technical culture leisure sport"),
    "food": words("technical culture sport industry transport"),
    "home": words("technical culture sport science"),
    "leisure": words("technical industry science transport"),
    "sport": words("technical culture industry rural science"),
    "culture": words("technical industry sport rural health transport"),
    "humane": words("technical industry transport home sport"),
    "travel": words("technical industry science"),
    "nature": words("technical leisure culture"),
}
"""For each area the areas that steps towards a goal in it do not come from: money and paper serve any goal."""

PASTIMES = words("leisure sport culture food")
"""The areas that work rarely touches unless it is about them."""

ON_ANYTHING = words("common business humane")
"""The areas that do not say what a goal is about: anything can be taught, translated, sold or counted."""

_BESIDE_PASTIMES = PASTIMES | words("home travel nature")

_ENDINGS = {"s": ("",), "es": ("",), "ies": ("y",), "ing": ("", "e"), "ed": ("", "e"), "ist": ("",), "ists": ("",)}
"""What stands in place of the ending of an inflected word."""

_LONGEST_ENDING = 4
_DOUBLING = ("ing", "ed", "er", "ers")
"""Endings before which a consonant is doubled: `drummer`, `swimming`."""

_STRAY = 0.5
"""The part of the words around that may be nearer: single words stray into any text."""


@lru_cache(maxsize=4096)
def topics_of(words: frozenset[str]) -> frozenset[Topic]:
    """Return the fields that the words belong to."""
    return frozenset().union(*map(_topics_of_word, words))


# Stems are too coarse here: `flow` and `flower` have one.
@lru_cache(maxsize=16384)
def _topics_of_word(word: str) -> frozenset[Topic]:
    known = _topics()
    return next((known[form] for form in _forms(word) if form in known), frozenset())


def _forms(word: str) -> Iterator[str]:
    """Yield a word and what it may be an inflection of."""
    yield word
    for length in range(1, _LONGEST_ENDING + 1):
        ending, rest = word[-length:], word[:-length]
        for instead in _ENDINGS.get(ending, ()):
            yield rest + instead
        if ending in _DOUBLING and rest[-1:] == rest[-2:-1]:
            yield rest[:-1]


def areas_of(topics: Iterable[Topic]) -> set[str]:
    """Return the areas that the fields lie in."""
    return {topic.area for topic in topics}


def pastimes_of(own: Iterable[Topic]) -> set[str]:
    """Return the areas of pastimes, where one's own fields are pastimes and what goes with them: a poem on the sea."""
    areas = areas_of(own)
    return areas & PASTIMES if areas <= _BESIDE_PASTIMES else set()


def far_from(own: Iterable[Topic], around: Mapping[str, int]) -> bool:
    """Return whether each of one's own fields is far from most of what is around, counted in words by area."""
    areas = _areas(own)
    near = sum(count for area, count in around.items() if not areas <= _FAR[area])
    return near <= _STRAY * sum(around.values())


def far_from_all(own: Iterable[Topic], others: Iterable[str]) -> bool:
    """Return whether each of one's own fields is far from each of the other areas."""
    areas = _areas(own)
    return all(areas <= _FAR[area] for area in others)


def _areas(own: Iterable[Topic]) -> set[str]:
    return pastimes_of(own) or areas_of(own)


@lru_cache(maxsize=1)
def _topics() -> dict[str, frozenset[Topic]]:
    found: dict[str, frozenset[Topic]] = {}
    # importlib.resources would be imported for this alone, which takes longer than reading the file.
    text = pkgutil.get_data(__name__, "topics.txt") or b""
    for line in text.decode("utf-8").splitlines():
        head, colon, members = line.partition(":")
        if colon and not head.startswith("#"):
            alone = frozenset({Topic(*head.split())})
            for word in members.split():
                found[word] = found[word] | alone if word in found else alone
    return found
