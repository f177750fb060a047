"""Fields of life that words belong to: what tells a step on another subject from one in other words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources
from typing import NamedTuple


class Topic(NamedTuple):
    """A field and the area it lies in."""

    area: str
    name: str


_FAR = {
    "technical": frozenset({"leisure", "culture", "practical"}),
    "exact": frozenset({"leisure", "culture", "practical"}),
    "business": frozenset({"leisure", "culture"}),
    "humane": frozenset({"leisure", "technical"}),
    "culture": frozenset({"technical", "exact"}),
    "leisure": frozenset({"technical"}),
    "practical": frozenset({"technical"}),
}
"""For each area the areas that steps towards a goal in it do not come from: money and paper serve any goal."""

PASTIMES = frozenset({"leisure", "culture"})
"""The areas that work rarely touches unless it is about them."""

_INFLECTIONS = (("s", ""), ("es", ""), ("ies", "y"), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"))

_STRAY = 0.5
"""The part of the words around that may be nearer: single words stray into any text."""


def topics_of(words: Iterable[str]) -> frozenset[Topic]:
    """Return the fields that the words belong to."""
    return frozenset(topic for word in words for topic in _topics_of_word(word))


# Stems are too coarse here: `flow` and `flower` have one.
@lru_cache(maxsize=16384)
def _topics_of_word(word: str) -> frozenset[Topic]:
    known = _topics()
    forms = [word]
    for ending, instead in _INFLECTIONS:
        if word.endswith(ending):
            forms.append(word.removesuffix(ending) + instead)
    return next((known[form] for form in forms if form in known), frozenset())


def pastimes_of(own: Iterable[Topic]) -> set[str]:
    """Return the areas of pastimes, where one's own fields are pastimes and what goes with them: a poem on the sea."""
    areas = {topic.area for topic in own}
    return areas & PASTIMES if areas <= PASTIMES | {"practical"} else set()


def far_from(own: Iterable[Topic], around: Mapping[Topic, int]) -> bool:
    """Return whether each of one's own fields is far from most of what is around, counted in words."""
    areas = pastimes_of(own) or {topic.area for topic in own}
    near = sum(count for topic, count in around.items() if not areas <= _FAR[topic.area])
    return near <= _STRAY * sum(around.values())


@lru_cache(maxsize=1)
def _topics() -> dict[str, frozenset[Topic]]:
    found: dict[str, set[Topic]] = {}
    text = resources.files(__package__).joinpath("topics.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        head, colon, words = line.partition(":")
        if colon and not head.startswith("#"):
            area, name = head.split()
            for word in words.split():
                found.setdefault(word, set()).add(Topic(area, name))
    return {word: frozenset(topics) for word, topics in found.items()}
