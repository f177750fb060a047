"""What the answer claims against what the steps gave: another number or date for the same thing (FR-021)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain

from aeon_core.convergence.artifacts import Artifacts, Fact
from aeon_core.convergence.finding import CONTRADICTION, DOUBTFUL, Finding, first_of
from aeon_core.convergence.known import Claim, Claims
from aeon_core.convergence.numbers import Numbers
from aeon_core.convergence.quantities import Quantity, in_other_degrees, quantities
from aeon_core.convergence.words import clauses, clauses_in, frame, sentences, share

_MOST_FINDINGS = 20
_DERIVING = re.compile(
    r"%|\b(?:differ\w*|increase\w*|decrease\w*|grew|growth|rose|fell|average|mean|per|ratio|total\w*|sum|combined|times"
    r"|share|more|less|fewer|margin|remaining|left|together|altogether|twice|half|double|change\w*|saving\w*)\b",
    re.IGNORECASE,
)

_DEGREES = re.compile(r"°|\b(?:fahrenheit|celsius)\b", re.IGNORECASE)


def check_claims(artifacts: Artifacts) -> list[Finding]:
    """Return the claims of the answer that the outputs contradict, and the numbers that nothing supports."""
    return first_of(chain(_wrong_numbers(artifacts), _against_itself(artifacts.answer)), _MOST_FINDINGS)


def _wrong_numbers(artifacts: Artifacts) -> Iterator[Finding]:
    lines = [(sentence, clause) for sentence in sentences(artifacts.answer) for clause in clauses_in(sentence)]
    said = [(quantity, sentence, clause) for sentence, clause in lines for quantity in quantities(clause)]
    if not said:
        return
    facts = (fact for found in artifacts.facts.values() for fact in found)
    given = Claims(facts, artifacts.told_apart, frozenset().union(*(frame(text) for pair in lines for text in pair)))
    known, untold = Numbers(artifacts.known), _untold_bare_numbers(artifacts)
    told = quantities(artifacts.answer)
    for quantity, sentence, clause in said:
        if known.has(quantity):
            claim = _swapped(quantity, clause, given)
            yield from () if claim is None else [_contradiction(quantity, claim)]
            continue
        claim = _contradicted(quantity, clause, sentence, given) or _another_day(quantity, told, given)
        if claim is not None:
            yield _contradiction(quantity, claim)
        else:
            yield from _unsupported(quantity, sentence, untold, known)


def _contradiction(quantity: Quantity, claim: Claim) -> Finding:
    return Finding(
        f"the answer says {quantity.text!r} where step {claim.source!r} gave {claim.quantity.text!r}",
        code="contradiction_detected",
        flag="answer",
        weight=CONTRADICTION,
    )


def _contradicted(quantity: Quantity, clause: str, sentence: str, given: Claims) -> Claim | None:
    """Return the claim of an output about the same thing, where its number is another one and the sentence omits it."""
    if _DERIVING.search(sentence) and given.numbers.lead_to(quantity):
        return None
    said, stems = quantities(sentence), frame(clause)
    whole = frame(sentence) if len(said) == 1 else stems
    for claim in given.about(whole):
        other = claim.quantity
        if other.kind != quantity.kind or any(number.same(other) for number in said):
            continue
        if _same_thing(claim, stems) or _same_thing(claim, whole):
            return claim
    return None


def _another_day(quantity: Quantity, told: tuple[Quantity, ...], given: Claims) -> Claim | None:
    """Return a date, day or time that a step gave, where the answer tells none of those but an unknown one."""
    if quantity.kind == "number":
        return None
    same_kind = [claim for claim in given.all if claim.quantity.kind == quantity.kind]
    if any(number.same(claim.quantity) for number in told for claim in same_kind):
        return None
    return next(iter(same_kind), None)


def _same_thing(claim: Claim, stems: frozenset[str]) -> bool:
    common = claim.stems & stems
    if claim.keyed:
        return bool(claim.stems) and common == claim.stems
    return len(common) >= 2 and len(common) >= 0.5 * min(len(claim.stems), len(stems))


def _swapped(quantity: Quantity, clause: str, given: Claims) -> Claim | None:
    """Return the claim that the clause is about, where the number is right for something else that it is not about."""
    if len(quantities(clause)) != 1 or quantity.small:
        return None
    stems = frame(clause)
    others = [claim for claim in given.about(stems) if not quantity.same(claim.quantity)]
    own = given.of(quantity) if others else []
    if not own:
        return None
    supports = frozenset[str]().union(*(claim.stems | claim.subject for claim in own))
    for claim in others:
        if claim.quantity.kind != quantity.kind:
            continue
        distinctive = ((claim.subject or claim.stems) & stems) - supports
        if distinctive and not (supports - claim.stems - claim.subject) & stems and _same_sort(claim, own, stems):
            return claim
    return None


def _same_sort(claim: Claim, own: list[Claim], stems: frozenset[str]) -> bool:
    """Return whether two numbers could be taken for each other: of one source, under one key, or called by the key."""
    return any(claim.source == other.source or (claim.keyed and claim.stems == other.stems) for other in own) or (
        claim.keyed and not claim.subject and claim.stems <= stems
    )


def _untold_bare_numbers(artifacts: Artifacts) -> list[Fact]:
    """Return the bare final results that the answer does not state."""
    said = Numbers(quantities(artifacts.answer))
    bare = [
        fact
        for step_id in sorted(artifacts.final_ids)
        for fact in artifacts.facts[step_id]
        if fact.quantities and not fact.about and len(fact.text.split(maxsplit=2)) <= 2
    ]
    times = Counter(fact.source for fact in bare)
    return [fact for fact in bare if times[fact.source] == 1 and not said.state(fact.quantities[0])]


def _unsupported(quantity: Quantity, sentence: str, untold: list[Fact], known: Numbers) -> Iterator[Finding]:
    for fact in untold:
        if fact.quantities[0].kind == quantity.kind:
            yield Finding(
                f"the answer says {quantity.text!r} where step {fact.source!r} gave {fact.text!r}",
                code="contradiction_detected",
                flag="answer",
                weight=CONTRADICTION,
            )
            return
    if quantity.small or quantity.kind != "number" or known.lead_to(quantity):
        return
    if _DEGREES.search(sentence) and in_other_degrees(quantity, known.all):
        return
    yield Finding(
        f"the answer says {quantity.text!r} ({sentence[:80]!r}), which no step gave", flag="answer", weight=DOUBTFUL
    )


def _against_itself(answer: str) -> Iterator[Finding]:
    """Yield where two clauses of one frame give different numbers."""
    seen: dict[str, list[tuple[frozenset[str], Quantity]]] = defaultdict(list)
    for clause in clauses(answer)[:200]:
        numbers = quantities(clause)
        if len(numbers) != 1 or len(frame(clause)) < 2:
            continue
        words, number = frame(clause), numbers[0]
        for others, other in seen[number.kind]:
            if share(words, others) >= 0.8 and not (number.same(other) or other.same(number)):
                yield Finding(
                    f"the answer contradicts itself: {other.text!r} and {number.text!r} for the same thing",
                    code="contradiction_detected",
                    weight=CONTRADICTION,
                )
        seen[number.kind].append((words, number))
