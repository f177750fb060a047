"""Whether an answer says anything that the task did not say already (adaptive FR-018)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from aeon_core.convergence.artifacts import Artifacts
from aeon_core.convergence.quantities import quantities
from aeon_core.convergence.words import GOOD, content_stems, listed, sentences, stem, stem_sequence

_QUOTED = re.compile(r"[\"“][^\"“”]*[\"”]|`[^`]*`")
_CHOICE = re.compile(r"\b(?:or|which|whether)\b", re.IGNORECASE)
_OPEN = frozenset(
    stem(word)
    for word in listed(
        "explain describe design write draft plan outline summarize summarise compare propose discuss analyze analyse "
        "evaluate develop compose create prepare review argue explore sketch document brainstorm"
    )
)
_DONE = GOOD | frozenset(stem(word) for word in listed("done ready yes sure okay finish all set"))
_RUN = 2.5
"""How many words on average an answer repeats in a row where it copies the task."""
_COVERED = 0.6
_LONG_RESULT = 8
"""New words of a result from which on an answer of a word or two leaves it out."""
_FEW = 3


def says_nothing_new(artifacts: Artifacts, said: str) -> str | None:
    """Return what is wrong with an answer that only repeats the task or the plan, or says no more than `done`.

    A report that something was done repeats the task in other words: it is an answer where a tool did it.
    """
    if _verbatim(artifacts, said):
        return "the answer only repeats the task or the plan"
    acted = any(artifacts.sources[step_id].step.tool is not None for step_id in artifacts.final_ids)
    if not acted and _copied(artifacts, said):
        return "the answer says nothing that the task or the plan did not say"
    if _too_little(artifacts, said):
        return "the answer is too short to answer an open task"
    return None


def asks_for_a_choice(goal: str) -> bool:
    """Return whether a goal names what may be answered: `which is better, A or B`, `whether C`."""
    return _CHOICE.search(goal) is not None


def _verbatim(artifacts: Artifacts, said: str) -> bool:
    whole = _words(said)
    if len(whole) < _FEW:
        return False
    asked = {_words(text) for text in artifacts.asked}
    asked |= {_words(line) for text in (artifacts.goal, artifacts.plan.goal) for line in sentences(text)}
    return whole in asked or all(words in asked for line in sentences(said) if (words := _words(line)))


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.casefold()))


def _copied(artifacts: Artifacts, said: str) -> bool:
    told = stem_sequence(said)
    if len(told) < _FEW or not frozenset[str]().union(*map(content_stems, artifacts.asked)).issuperset(told):
        return False
    texts = [stem_sequence(_QUOTED.sub(" ", text)) for text in artifacts.asked]
    if not frozenset[str]().union(*texts).issuperset(told):
        return False
    numbers = {(number.kind, number.value) for text in artifacts.asked for number in quantities(text)}
    if any((number.kind, number.value) not in numbers for number in quantities(said)):
        return False
    covered = max(len(frozenset(text) & frozenset(told)) / len(frozenset(text)) for text in texts if text)
    least = 1.0 if asks_for_a_choice(artifacts.goal) else _COVERED
    return covered >= least and len(told) / _runs(told, texts) >= _RUN


def _runs(told: Sequence[str], texts: Sequence[Sequence[str]]) -> int:
    """Return out of how many runs of words of the texts a sequence is made, the longest run taken at each word."""
    count, place = 0, 0
    while place < len(told):
        place += max((_run(told, place, text, at) for text in texts for at in _places(text, told[place])), default=1)
        count += 1
    return count


def _places(text: Sequence[str], word: str) -> list[int]:
    return [number for number, other in enumerate(text) if other == word]


def _run(told: Sequence[str], place: int, text: Sequence[str], at: int) -> int:
    length = 0
    for one, other in zip(told[place:], text[at:], strict=False):
        if one != other:
            break
        length += 1
    return length


def _too_little(artifacts: Artifacts, said: str) -> bool:
    verb = next(iter(stem_sequence(artifacts.goal)), "")
    if verb not in _OPEN or quantities(said):
        return False
    stems = content_stems(said)
    if not stems - _DONE:
        return True
    if len(stems) >= _FEW:
        return False
    known = frozenset[str]().union(*map(content_stems, artifacts.asked))
    given = frozenset[str]().union(
        *(content_stems(str(fact.value)) for step_id in artifacts.final_ids for fact in artifacts.facts[step_id])
    )
    return len(given - known) >= _LONG_RESULT or stems <= known
