"""Words of a text as stems, its clauses, and which way a clause points (affirmed or denied, good or bad)."""

from __future__ import annotations

import re
from functools import lru_cache


def listed(words: str) -> list[str]:
    """Return the words of a list that is written as one text."""
    return words.split()


_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|;\s+|\s[–—]\s+")
_CLAUSE_END = re.compile(
    r"(?<!\d),\s+|(?<=\d),\s+(?!(?:19|20)\d{2}\b)|:\s+|\s(?:and|but|while|whereas|although|however|yet)\s+",
    re.IGNORECASE,
)

_STOP = frozenset(
    listed(
        """
        a an the this that these those of in on at to for from by with without into onto over under per as is are
        was were be been being am do does did done has have had having it its he she they them their his her our we
        you your i me my us and or but nor so if then than when while where which who whom whose what how why there
        here will would shall should can could may might must also all any both each every some such only just very
        more most other another same not no none never up out about between within during through after before
        because since until one please using use used via
        """
    )
)
_GENERIC = frozenset(
    listed(
        """
        result value output text answer data response content body item list number field info detail summary
        message name id key type kind unit note total step task goal thing way
        """
    )
)
_DENIAL = frozenset(listed("not no never none neither nor cannot without nothing nobody fails lacks lacking"))
_OPPOSITES = (
    ("open", "close"),
    ("enable", "disable"),
    ("pass", "fail"),
    ("success", "failure"),
    ("succeed", "fail"),
    ("true", "false"),
    ("yes", "no"),
    ("up", "down"),
    ("online", "offline"),
    ("increase", "decrease"),
    ("rise", "fall"),
    ("grow", "shrink"),
    ("high", "low"),
    ("present", "absent"),
    ("accept", "reject"),
    ("approve", "reject"),
    ("allow", "deny"),
    ("full", "empty"),
    ("early", "late"),
    ("safe", "dangerous"),
    ("positive", "negative"),
    ("active", "inactive"),
    ("valid", "broken"),
    ("healthy", "degraded"),
)
_PREFIXES = ("un", "in", "im", "dis", "non", "ir", "il")
_SHORTEST = 3
"""Letters of the shortest stem that a prefix turns into its opposite."""


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return the stem of a lower-case word by a few suffix rules: plural, -ing, -ed, -ly, -ion and the like."""
    if word.endswith(("ss", "us", "is")):
        return word
    for suffix, least, instead in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= least:
            return _bare(word[: len(word) - len(suffix)] + instead)
    return _bare(word)


_SUFFIXES = (
    ("'s", 2, ""),
    ("’s", 2, ""),
    ("ications", 3, "y"),
    ("ication", 3, "y"),
    ("ations", 3, ""),
    ("ation", 3, ""),
    ("ments", 4, ""),
    ("ment", 4, ""),
    ("ings", 3, ""),
    ("ing", 3, ""),
    ("ions", 4, ""),
    ("ion", 4, ""),
    ("ies", 2, "y"),
    ("ied", 2, "y"),
    ("sses", 2, "ss"),
    ("ches", 2, "ch"),
    ("xes", 2, "x"),
    ("ed", 3, ""),
    ("ly", 3, ""),
    ("es", 3, "e"),
    ("s", 3, ""),
)


def _bare(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@lru_cache(maxsize=8192)
def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning; `snake_case` and `camelCase` count as words apart."""
    return frozenset([stem(lower) for word, lower in _words(text) if lower not in _STOP and len(word) > 1])


@lru_cache(maxsize=4096)
def stem_sequence(text: str) -> tuple[str, ...]:
    """Return the stems of the words that carry meaning, in their order."""
    return tuple([stem(lower) for word, lower in _words(text) if lower not in _STOP and len(word) > 1])


def _words(text: str) -> list[tuple[str, str]]:
    """Return the words of a text as they stand and in lower case."""
    spaced = text.replace("_", " ")
    if not spaced.islower():
        spaced = _CAMEL.sub(" ", spaced)
    return [(word, word.lower()) for word in _WORD.findall(spaced)]


_QUOTATION = re.compile(r"[\"“][^\"“”]*[\"”]")


def own_words(text: str) -> str:
    """Return a text without what it quotes of others; a text that is nothing but a quotation is its own."""
    if not text or not ('"' in text or "“" in text):
        return text
    rest = _QUOTATION.sub(" ", text)
    return rest if len(content_stems(rest)) >= 2 else text


_GENERIC_STEMS = frozenset(map(stem, _GENERIC))


def specific(stems: frozenset[str]) -> frozenset[str]:
    """Return the stems that tell one thing from another: `result` and its like do not."""
    return stems - _GENERIC_STEMS


def subject(description: str) -> frozenset[str]:
    """Return what a step is about: its description without the verb that it begins with."""
    return specific(content_stems(description.partition(" ")[2]))


@lru_cache(maxsize=4096)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences and lines of a text."""
    return tuple(part.strip() for part in _SENTENCE_END.split(text) if part.strip())


def clauses(text: str) -> tuple[str, ...]:
    """Return the clauses of a text: its sentences, cut at commas, colons and conjunctions."""
    return tuple(part for line in sentences(text) for part in clauses_in(line))


@lru_cache(maxsize=4096)
def clauses_in(sentence: str) -> tuple[str, ...]:
    """Return the clauses of one sentence."""
    return tuple(part.strip() for part in _CLAUSE_END.split(sentence) if part.strip())


_POLES = {stem(word): (number, side) for number, pair in enumerate(_OPPOSITES) for side, word in enumerate(pair)}
_POLES |= {stem("failure"): (3, 1), stem("failed"): (2, 1), stem("passed"): (2, 0), stem("fell"): (10, 1)}
_AT_POLE = {place: frozenset(one for one, other in _POLES.items() if other == place) for place in set(_POLES.values())}


@lru_cache(maxsize=4096)
def denied(text: str) -> bool:
    """Return whether a clause denies what it says: an odd number of denials."""
    words = [word.lower().replace("’", "'") for word in _WORD.findall(text)]
    return len([word for word in words if word in _DENIAL or word.endswith("n't")]) % 2 == 1


@lru_cache(maxsize=4096)
def denied_stems(text: str) -> frozenset[str]:
    """Return what the denials of a clause deny: the next word that carries meaning after each."""
    found = []
    waiting = False
    for word in _WORD.findall(text):
        plain = word.lower().replace("’", "'")
        if plain in _DENIAL or plain.endswith("n't"):
            waiting = True
        elif waiting and plain not in _STOP:
            found.append(stem(plain))
            waiting = False
    return frozenset(found)


def denies(text: str, stems: frozenset[str]) -> bool:
    """Return whether what a clause denies is among these stems, or its opposite; True where it denies nothing."""
    about = denied_stems(text)
    return not about or any(one in stems or opposites(one) & stems for one in about)


@lru_cache(maxsize=4096)
def opposites(one: str) -> frozenset[str]:
    """Return the stems that are opposite to one: of a known pair, or one is the other with un-, in-, dis- before it."""
    number, side = _POLES.get(one, (-1, 0))
    prefixed = {prefix + one for prefix in _PREFIXES}
    bare = {one.removeprefix(prefix) for prefix in _PREFIXES if one.startswith(prefix) and len(one) > len(prefix) + 2}
    return _AT_POLE.get((number, 1 - side), frozenset()) | prefixed | bare


@lru_cache(maxsize=4096)
def _opposing(one: str) -> frozenset[str]:
    """Return the same without what is too short to be told from another word, or at the same side of a known pair."""
    short = {prefix + one for prefix in _PREFIXES} if len(one) < _SHORTEST else set()
    return opposites(one) - short - _AT_POLE.get(_POLES.get(one, (-1, 0)), frozenset())


def has_opposite(one: str, others: frozenset[str]) -> bool:
    """Return whether one of the others is the opposite of a stem."""
    return not _opposing(one).isdisjoint(others)


def turned(one: frozenset[str], other: frozenset[str]) -> int:
    """Return how many pairs of opposites two sets of stems have, one of which each set has alone."""
    rest = other - one
    return sum(len(opposing & rest) for left in one - other if not (opposing := _opposing(left)).isdisjoint(rest))


BAD = frozenset(
    stem(word)
    for word in listed(
        "fail failed failure error broken unsuccessful exception crash crashed incomplete aborted denied refused "
        "timeout rejected missing skipped unable unreachable unavailable invalid problem issue"
    )
)
GOOD = frozenset(
    stem(word)
    for word in listed("succeed success successful successfully passed ok fine complete completed works working green")
)


@lru_cache(maxsize=4096)
def claims_success(text: str) -> bool:
    """Return whether a clause says that something went well."""
    stems = content_stems(text)
    return bool(stems & GOOD) != denied(text) if stems & GOOD and not stems & BAD else _all_well(text)


_WELL = re.compile(r"\b(?:no|without|zero|0)\s+(?:\w+\s+)?(?:errors?|failures?|problems?|issues?)\b", re.IGNORECASE)


def _all_well(text: str) -> bool:
    return _WELL.search(text) is not None


@lru_cache(maxsize=4096)
def admits_failure(text: str) -> bool:
    """Return whether a clause says that something went wrong, or was not done."""
    if _all_well(text):
        return False
    stems = content_stems(text)
    if stems & BAD:
        return not denied(text) or bool(stems & {stem("unable"), stem("missing")})
    return denied(text)


_CAPITALISED = re.compile(r"(?<![.!?:\n])(?<=\s)[\"'“(]?([A-Z][^\W\d_]{2,})")


@lru_cache(maxsize=4096)
def names(text: str) -> frozenset[str]:
    """Return the words of a text that are written as names: capitalised, and not because a sentence begins."""
    words = text.split()
    found = {match[1].lower() for match in _CAPITALISED.finditer(text)}
    if len(words) <= 3:
        found |= {word.strip("\"'“”().,!?:;").lower() for word in words if word[:1].isupper() and len(word) > 2}
    return frozenset(found - _STOP)


@lru_cache(maxsize=4096)
def frame(text: str) -> frozenset[str]:
    """Return what a clause is about, single letters included: two clauses of one frame speak of the same thing."""
    return frozenset(
        [stem(lower) for word, lower in _words(text) if lower not in _STOP or (len(word) == 1 and word != "a")]
    )


def share(one: frozenset[str], other: frozenset[str]) -> float:
    """Return how much two sets have in common, 0…1: the common part of both together."""
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0
