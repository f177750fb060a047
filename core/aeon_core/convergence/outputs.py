"""Outputs that contradict one another (adaptive FR-019, FR-021)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, combinations
from typing import NamedTuple

from aeon_core.convergence.artifacts import Artifacts, Fact
from aeon_core.convergence.finding import CONTRADICTION, Finding, first_of
from aeon_core.convergence.quantities import Quantity, quantities
from aeon_core.convergence.verdicts import opposite
from aeon_core.convergence.words import (
    clauses_in,
    content_stems,
    denied,
    denies,
    frame,
    listed,
    share,
    stem,
    subject,
    turned,
)

_MOST_SHARING = 8
"""Facts that share a word beyond this many are told apart by others; all pairs of them would be too many."""
_MOST_FINDINGS = 20
_ALIKE = 0.6
_OF_ONE_FRAME = 0.7
_CHANGES = frozenset(
    stem(word)
    for word in listed(
        "before after updated update new old filtered filter remaining previous next original final clean deduplicate "
        "convert converted second restart increase reduce remove apply fix optimize optimise migrate deploy again"
    )
)


def check_outputs(artifacts: Artifacts) -> list[Finding]:
    """Return the pairs of outputs that say different things of the same thing."""
    return first_of(chain(_different_values(artifacts), _different_sentences(artifacts)), _MOST_FINDINGS)


def _different_values(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield single values under one key of two steps that are after the same thing."""
    by_key: dict[frozenset[str], list[Fact]] = defaultdict(list)
    for facts in artifacts.facts.values():
        keyed = [fact for fact in facts if fact.about and not fact.sentence]
        times = Counter(fact.about for fact in keyed)
        for fact in keyed:
            if times[fact.about] == 1:
                by_key[fact.about].append(fact)
    for facts_of_key in by_key.values():
        if len(facts_of_key) > _MOST_SHARING:
            continue
        for one, other in combinations(facts_of_key, 2):
            if _comparable(one.source, other.source, artifacts) and one.subject == other.subject and differ(one, other):
                yield _finding(one.source, one.text, other.source, other.text)


def differ(one: Fact, other: Fact) -> bool:
    """Return whether two values cannot both be right: other numbers, other truth, or texts with nothing in common."""
    if isinstance(one.value, bool) or isinstance(other.value, bool):
        return isinstance(one.value, bool) and isinstance(other.value, bool) and one.value != other.value
    if one.quantities and other.quantities:
        return not any(a.same(b) or b.same(a) for a in one.quantities for b in other.quantities)
    if isinstance(one.value, str) and isinstance(other.value, str):
        left, right = content_stems(one.value), content_stems(other.value)
        if not left or not right:
            return False
        return not left & right or opposite(left, right, denied(one.value), denied(other.value))
    return False


def _comparable(one: str, other: str, artifacts: Artifacts) -> bool:
    """Return whether two steps are after the same thing: alike in words and arguments, neither builds on the other."""
    first, second = artifacts.by_id[one].step, artifacts.by_id[other].step
    if one == other or one in (second.depends_on or ()) or other in (first.depends_on or ()):
        return False
    if (first.arguments or {}) != (second.arguments or {}) and first.tool == second.tool and first.tool is not None:
        return False
    left, right = subject(first.description), subject(second.description)
    if not left or not right or (left | right) & _CHANGES:
        return False
    return _apart(first.description, second.description) and len(left & right) >= _ALIKE * min(len(left), len(right))


def _apart(one: str, other: str) -> bool:
    """Return whether the numbers and single letters in two descriptions are the same, so that they may be compared."""
    numbers = [{number.value for number in quantities(text)} for text in (one, other)]
    return _letters(frame(one)) == _letters(frame(other)) and numbers[0] == numbers[1]


class _Part(NamedTuple):
    """A clause or a sentence of an output, which is true or false by itself."""

    text: str
    quantities: tuple[Quantity, ...]
    words: frozenset[str]
    stems: frozenset[str]


def _different_sentences(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield sentences of two outputs that have one frame, and another number or the opposite sense."""
    said = [
        (fact.source, part)
        for facts in artifacts.facts.values()
        for fact in facts
        if isinstance(fact.value, str) and not fact.about
        for part in _parts(fact.value, fact.sentence)
    ]
    sharing: dict[str, list[int]] = defaultdict(list)
    for number, (_, part) in enumerate(said):
        for word in part.words:
            sharing[word].append(number)
    telling = [numbers for numbers in sharing.values() if 1 < len(numbers) <= _MOST_SHARING]
    later: dict[int, set[int]] = defaultdict(set)
    for numbers in telling:
        for place, number in enumerate(numbers[:-1], 1):
            later[number].update(numbers[place:])
    for left, (source, one) in enumerate(said):
        for right in sorted(later.get(left, ())):
            other_source, other = said[right]
            if source != other_source and _at_odds(one, other) and not _builds_on(source, other_source, artifacts):
                yield _finding(source, one.text, other_source, other.text)


@lru_cache(maxsize=4096)
def _parts(text: str, parted: bool) -> tuple[_Part, ...]:
    """Return the clauses of a text that is `parted`, or what it says as a whole; without those of a single word."""
    clauses = clauses_in(text) if parted else ()
    parts = clauses if len(clauses) > 1 else (text,)
    said = (_Part(part, quantities(part), frame(part), content_stems(part)) for part in parts)
    return tuple(part for part in said if len(part.stems) >= 2)


def _builds_on(one: str, other: str, artifacts: Artifacts) -> bool:
    step = artifacts.by_id[other].step
    return one in (step.depends_on or ()) and bool(content_stems(step.description) & _CHANGES)


def _at_odds(one: _Part, other: _Part) -> bool:
    if len(one.quantities) == len(other.quantities) == 1 and _of_one_frame(one.words, other.words):
        left, right = one.quantities[0], other.quantities[0]
        return left.kind == right.kind and not (left.same(right) or right.same(left))
    if one.quantities or other.quantities:
        return False
    if share(one.stems, other.stems) < _OF_ONE_FRAME and not turned(one.stems, other.stems):
        return False
    if _letters(one.words) != _letters(other.words):
        return False
    if not denies(one.text, other.stems) or not denies(other.text, one.stems):
        return False
    return opposite(one.stems, other.stems, denied(one.text), denied(other.text))


def _of_one_frame(one: frozenset[str], other: frozenset[str]) -> bool:
    return share(one, other) >= _OF_ONE_FRAME and len(one & other) >= 2


def _letters(words: frozenset[str]) -> set[str]:
    return {word for word in words if len(word) == 1}


def _finding(one: str, said: str, other: str, contrary: str) -> Finding:
    return Finding(
        f"steps {one!r} and {other!r} contradict each other: {said[:60]!r} and {contrary[:60]!r}",
        code="contradiction_detected",
        flag="step",
        weight=CONTRADICTION,
    )
