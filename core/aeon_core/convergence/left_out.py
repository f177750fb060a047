"""What an answer leaves out of a list that it otherwise tells: a name of the goal, an entry of a result (FR-018)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from aeon_core.convergence.artifacts import Artifacts, countable
from aeon_core.convergence.quantities import of_value
from aeon_core.convergence.telling import Told
from aeon_core.convergence.words import content_stems, sentences, specific, stem

_WORD = r"(?!(?:and|whether|how|what|why|who|where|when|which|if|then)\b)[\w'’-]+"
_LIST = re.compile(rf"(?:{_WORD}(?:\s{_WORD}){{0,2}},\s+)+(?:{_WORD}(?:\s{_WORD}){{0,2}},?\s+)?and\s+{_WORD}")
_PARTED = re.compile(r",\s+(?:and\s+)?|\s+and\s+")
_EACH = re.compile(r"\b(?:each|every|all)\b", re.IGNORECASE)
_LEAST_ENTRIES = 3
_LONGEST = 2000
"""Characters of one sentence of a goal in which lists are looked for."""
_LEAST_TOLD = 0.5


def left_out(artifacts: Artifacts, told: Told) -> list[str]:
    """Return a line for each member of a list that the answer leaves out while it tells half of the list or more."""
    lines = [
        f"the answer leaves out {name!r}, which the goal names"
        for sentence in sentences(artifacts.goal)
        for names in _lists(sentence)
        for name in _untold(names, artifacts, told)
    ]
    if _EACH.search(artifacts.goal):
        needed = {other for view in artifacts.sources.values() for other in view.step.depends_on or ()}
        lines += [
            f"the answer leaves out {name!r} of the result of step {step_id!r}"
            for step_id, view in artifacts.sources.items()
            if step_id not in needed
            for name in _untold_entries(view.output, told)
        ]
    return list(dict.fromkeys(lines))


def _lists(sentence: str) -> Iterator[list[str]]:
    """Yield the members of each list of three or more: its first one may have words before it that are not its own."""
    for match in _LIST.finditer(sentence[:_LONGEST]):
        members = [part.strip() for part in _PARTED.split(match[0]) if part.strip()]
        if len(members) >= _LEAST_ENTRIES:
            yield [members[0].split()[-1], *(member for member in members[1:])]


def _untold(members: list[str], artifacts: Artifacts, told: Told) -> list[str]:
    """Return the members without a word in the answer that a result speaks of, or that have a step of their own."""
    stems = {member: content_stems(member) for member in members}
    if not all(stems.values()):
        return []
    if any(_begins(view.step.description) in map(_begins, members) for view in artifacts.sources.values()):
        return []  # things to do, each of which has its step
    missing = [member for member in members if not stems[member] & told.stems]
    if not missing or len(missing) > (1 - _LEAST_TOLD) * len(members):
        return []
    others = frozenset[str]().union(*stems.values())
    return [member for member in missing if _known_of(stems[member], others, artifacts)]


def _begins(text: str) -> str:
    return stem(text.split()[0].lower())


def _known_of(member: frozenset[str], others: frozenset[str], artifacts: Artifacts) -> bool:
    for step_id, view in artifacts.sources.items():
        described = content_stems(view.step.description) & others
        if described and described <= member:
            return True
        if any(member <= (content_stems(str(fact.value)) | fact.about) for fact in artifacts.facts[step_id]):
            return True
    return False


def _untold_entries(output: Any, told: Told) -> list[str]:
    """Return the keys of a table of numbers that the answer does not name, nor tells the number of."""
    if not isinstance(output, Mapping) or len(output) < _LEAST_ENTRIES:
        return []
    if not all(map(countable, output.values())):
        return []
    untold = [
        str(key)
        for key, value in output.items()
        if not specific(content_stems(str(key))) & told.stems and not told.number(of_value(value))
    ]
    return untold if len(untold) <= (1 - _LEAST_TOLD) * len(output) else []
