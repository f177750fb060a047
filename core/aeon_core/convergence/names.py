"""Names in the answer: unknown ones, and known ones in the place of another (adaptive FR-020, FR-021)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from aeon_core.convergence.artifacts import Artifacts, Fact
from aeon_core.convergence.finding import CONTRADICTION, Finding
from aeon_core.convergence.quantities import CALENDAR
from aeon_core.convergence.references import codes
from aeon_core.convergence.words import clauses, content_stems, frame, names, sentences, share

_SAME_SENTENCE = 0.6
_FIRST = re.compile(r"\b(?:winner|best|worst|most|least|largest|(?:[a-z]{2,}(?:[^aeiou\W]|i)est))\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:-\d+)*")


def check_names(artifacts: Artifacts) -> list[Finding]:
    """Return where the answer puts another name in the place of the one that a step gave."""
    return [*_unknown_names(artifacts), *_exchanged_names(artifacts), *_other_firsts(artifacts)]


def _unknown_names(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield where the answer puts a name that no artifact knows in the place of the one that a step gave."""
    named = {clause: found for clause in clauses(artifacts.answer) if (found := names(clause))}
    if not named:
        return
    known = _known_words(artifacts)
    told = content_stems(artifacts.answer)
    for clause, found in named.items():
        strange = sorted(name for name in found if not content_stems(name) & known)
        if not strange:
            continue
        for fact in _texts(artifacts):
            own = names(str(fact.value))
            if any(content_stems(name) & told for name in own) or not own:
                continue
            about = content_stems(str(fact.value)) if fact.sentence else fact.about
            common = about & content_stems(clause)
            alone = not fact.about and not fact.sentence and fact.source in artifacts.final_ids
            if alone or (fact.about and common == fact.about and not fact.sentence) or len(common) >= 2:
                yield _finding(strange[0], fact)
                break


def _exchanged_names(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield sentences that are those of a final output, but for a name that belongs to something else."""
    given = [(fact, named) for fact in _texts(artifacts) if (named := _named(str(fact.value)))]
    if len(given) < 2:
        return
    known = frozenset[str]().union(*(named for _, named in given))
    told = frozenset(_words(artifacts.answer))
    final = [(fact, named) for fact, named in given if fact.source in artifacts.final_ids and not named & told]
    for sentence in sentences(artifacts.answer) if final else ():
        present = known & frozenset(_words(sentence))
        rest = _rest(sentence, present)
        if not present or len(rest) < 2:
            continue
        for fact, named in final:
            alike = share(rest, _rest(str(fact.value), named))
            if alike >= _SAME_SENTENCE and not any(
                others & present and share(rest, _rest(str(other.value), others)) >= alike for other, others in given
            ):
                yield _finding(sorted(present)[0], fact)
                break


def _other_firsts(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield where the answer gives to one name what a final output gives to another: the fastest, the winner."""
    lines = [(line, firsts) for line in clauses(artifacts.answer) if (firsts := _firsts(line))]
    if not lines:
        return
    texts = [artifacts.goal, *(view.step.description for view in artifacts.steps)]
    known = frozenset[str]().union(*map(_named, texts), *(_named(str(fact.value)) for fact in _texts(artifacts)))
    given = [
        (fact, firsts, frozenset(_words(str(fact.value))) & known)
        for fact in _texts(artifacts)
        if fact.source in artifacts.final_ids and (firsts := _firsts(str(fact.value)))
    ]
    for line, firsts in lines:
        present = frozenset(_words(line)) & known
        same = [(fact, named) for fact, those, named in given if those & firsts and named]
        if len(present) == 1 and same and not any(named & present for _, named in same):
            yield _finding(sorted(present)[0], same[0][0])


@lru_cache(maxsize=4096)
def _firsts(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _FIRST.findall(text))


def _finding(name: str, fact: Fact) -> Finding:
    return Finding(
        f"the answer names {name!r} where step {fact.source!r} gave {fact.text[:60]!r}",
        code="contradiction_detected",
        flag="answer",
        weight=CONTRADICTION,
    )


@lru_cache(maxsize=4096)
def _named(text: str) -> frozenset[str]:
    return (names(text) | {code.lower() for code in codes(text)}) - CALENDAR


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text) if word[:1].isupper()]


def _rest(text: str, left_out: frozenset[str]) -> frozenset[str]:
    """Return what a sentence is about, without names."""
    return frame(text).difference(*(frame(name) for name in left_out))


def _known_words(artifacts: Artifacts) -> frozenset[str]:
    texts = [artifacts.goal, artifacts.plan.goal, *(view.step.description for view in artifacts.steps)]
    known = set[str]().union(*map(content_stems, texts))
    for facts in (*artifacts.facts.values(), artifacts.memory_facts):
        for fact in facts:
            known.update(content_stems(fact.text), fact.about, fact.subject)
    return frozenset(known)


def _texts(artifacts: Artifacts) -> Iterator[Fact]:
    for facts in artifacts.facts.values():
        yield from (fact for fact in facts if isinstance(fact.value, str))
