"""Reducing English words to stems, so that `multiplies` and `multiplication` count as one word."""

from __future__ import annotations

from functools import lru_cache


def words(text: str) -> frozenset[str]:
    """Return a class of words that is written as a text."""
    return frozenset(text.split())


_SUFFIXES = words(
    """ications ication izations isations ization isation ations ators ating ation ized ised izes ises ator ated ates
    izing ising ments ment iness ness able ings ions ical ing ion ied ies ily ize ise ate ers ors ed er or es is ly al
    s e y"""
)
"""The longest that fits is taken."""

_LONGEST = max(map(len, _SUFFIXES))

_DOUBLING = ("ing", "ings", "ed", "er", "ers")
_AGENTS = ("er", "ers", "or", "ors")
_SHORTEST = 3
LEAST_ALIKE = 5
"""Letters that two stems must share to be of one family."""

_VOWELS = frozenset("aeiouy")

_IRREGULAR = {
    "written": "writ",
    "wrote": "writ",
    "sent": "send",
    "found": "find",
    "built": "build",
    "made": "mak",
    "making": "mak",
    "kept": "keep",
    "bought": "buy",
    "sold": "sell",
    "paid": "pay",
    "drawn": "draw",
    "drew": "draw",
    "ran": "run",
    "subtotal": "total",
    "division": "divid",
    "divisor": "divid",
    "comparison": "compar",
    "men": "man",
    "women": "woman",
    "children": "child",
    "people": "person",
    "news": "news",
}


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; a word of three letters or fewer, or with a digit, is its own."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= _SHORTEST or not word.isalpha():
        return word
    if word.endswith("ss"):
        return word
    if word.endswith("ply"):
        return word[:-1]
    for length in range(min(_LONGEST, len(word) - _SHORTEST), 0, -1):
        suffix = word[-length:]
        if suffix in _SUFFIXES:
            rest = word[:-length]
            shortest = _SHORTEST + 1 if suffix in _AGENTS else _SHORTEST
            if len(rest) >= shortest and not _VOWELS.isdisjoint(rest):
                return _finished(rest, suffix)
    return _finished(word, "")


def _finished(rest: str, suffix: str) -> str:
    if suffix in _DOUBLING and len(rest) > _SHORTEST and rest[-1] == rest[-2] and rest[-1] not in "lsz":
        rest = rest[:-1]
    return f"{rest[:-1]}s" if rest.endswith("z") else rest


def alike(first: str, second: str) -> bool:
    """Return whether two stems are of one family: the same, or one begins with the other of five letters or more."""
    if first == second:
        return True
    short, long = sorted((first, second), key=len)
    return len(short) >= LEAST_ALIKE and long.startswith(short)


def stems(text: str) -> frozenset[str]:
    """Return the stems of a class of words that is written as a text."""
    return frozenset(map(stem, text.split()))
