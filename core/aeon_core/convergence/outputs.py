"""Outputs that contradict one another (adaptive FR-019, FR-021)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from aeon_core.convergence.artifacts import Artifacts, Fact
from aeon_core.convergence.finding import CONTRADICTION, Finding
from aeon_core.convergence.quantities import quantities
from aeon_core.convergence.verdicts import opposite
from aeon_core.convergence.words import (
    clauses_in,
    content_stems,
    denied,
    denies,
    frame,
    listed,
    opposed,
    share,
    stem,
    subject,
)

_MOST_SHARING = 8
"""Facts that share a word beyond this many are told apart by others; all pairs of them would be too many."""
_MOST_FINDINGS = 20
_ALIKE = 0.6
_CHANGES = frozenset(
    stem(word)
    for word in listed(
        "before after updated update new old filtered filter remaining previous next original final clean deduplicate "
        "convert converted second restart increase reduce remove apply fix optimize optimise migrate deploy again"
    )
)


def check_outputs(artifacts: Artifacts) -> list[Finding]:
    """Return the pairs of outputs that say different things of the same thing."""
    findings = [*_different_values(artifacts), *_different_sentences(artifacts)]
    return list(dict.fromkeys(findings))[:_MOST_FINDINGS]


def _different_values(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield single values under one key of two steps that are after the same thing."""
    by_key: dict[frozenset[str], list[Fact]] = defaultdict(list)
    for facts in artifacts.facts.values():
        keyed = [fact for fact in facts if fact.about and not fact.sentence]
        for fact in keyed:
            if sum(other.about == fact.about for other in keyed) == 1:
                by_key[fact.about].append(fact)
    for facts_of_key in by_key.values():
        if len(facts_of_key) > _MOST_SHARING:
            continue
        for one, other in combinations(facts_of_key, 2):
            if _comparable(one.source, other.source, artifacts) and one.subject == other.subject and differ(one, other):
                yield _finding(one, other)


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
    letters = [{word for word in frame(text) if len(word) == 1} for text in (one, other)]
    numbers = [{number.value for number in quantities(text)} for text in (one, other)]
    return letters[0] == letters[1] and numbers[0] == numbers[1]


def _different_sentences(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield sentences of two outputs that have one frame, and another number or the opposite sense."""
    said = [
        (part, frame(str(part.value)))
        for facts in artifacts.facts.values()
        for fact in facts
        if isinstance(fact.value, str) and not fact.about
        for part in _parts(fact)
        if len(content_stems(str(part.value))) >= 2
    ]
    sharing: dict[str, list[int]] = defaultdict(list)
    for number, (_, words) in enumerate(said):
        for word in words:
            sharing[word].append(number)
    pairs = {
        pair for numbers in sharing.values() if 1 < len(numbers) <= _MOST_SHARING for pair in combinations(numbers, 2)
    }
    for left, right in sorted(pairs):
        (one, words), (other, others) = said[left], said[right]
        if one.source == other.source or _builds_on(one.source, other.source, artifacts):
            continue
        if _at_odds(one, words, other, others):
            yield _finding(one, other)


def _parts(fact: Fact) -> Iterator[Fact]:
    """Yield the clauses of a sentence, each of which is true or false by itself, or the sentence where it is one."""
    parts = clauses_in(str(fact.value)) if fact.sentence else ()
    if len(parts) < 2:
        yield fact
    for text in parts if len(parts) > 1 else ():
        yield replace(fact, value=text, quantities=quantities(text))


def _builds_on(one: str, other: str, artifacts: Artifacts) -> bool:
    description = content_stems(artifacts.by_id[other].step.description)
    return one in (artifacts.by_id[other].step.depends_on or ()) and bool(description & _CHANGES)


def _at_odds(one: Fact, words: frozenset[str], other: Fact, others: frozenset[str]) -> bool:
    if len(one.quantities) == len(other.quantities) == 1 and share(words, others) >= 0.7 and len(words & others) >= 2:
        left, right = one.quantities[0], other.quantities[0]
        return left.kind == right.kind and not (left.same(right) or right.same(left))
    if one.quantities or other.quantities:
        return False
    letters = [{word for word in each if len(word) == 1} for each in (words, others)]
    if letters[0] != letters[1]:
        return False
    left_stems, right_stems = content_stems(str(one.value)), content_stems(str(other.value))
    turned = any(opposed(a, b) for a in left_stems - right_stems for b in right_stems - left_stems)
    if not turned and share(left_stems, right_stems) < 0.7:
        return False
    if not denies(str(one.value), right_stems) or not denies(str(other.value), left_stems):
        return False
    return opposite(left_stems, right_stems, denied(str(one.value)), denied(str(other.value)))


def _finding(one: Fact, other: Fact) -> Finding:
    return Finding(
        f"steps {one.source!r} and {other.source!r} contradict each other: {one.text[:60]!r} and {other.text[:60]!r}",
        code="contradiction_detected",
        flag="step",
        weight=CONTRADICTION,
    )
