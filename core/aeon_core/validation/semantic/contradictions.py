"""Steps that contradict one another, or what the goal rules out (adaptive FR-040)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import ACTIONS, EMPTY_NOUNS, OPPOSITES
from aeon_core.validation.semantic.phrase import Phrase, phrase
from aeon_core.validation.semantic.stems import stem, stems, words
from aeon_core.validation.semantic.views import PlanView, StepView

_RULED_OUT = re.compile(
    r"\b(?:without(?:\s+ever)?|(?:do|must|should|may|shall|can)\s*(?:not|n't|n’t)|don['’]t|never|avoid|cannot)\s+"
    r"(?P<what>[^.;:!?,]{3,120})",
    re.IGNORECASE,
)
_ANYTHING = words("any anything all every")
_AT_ONCE = stems("keep delete remove discard include exclude accept reject approve ascending descending asc desc")
"""Contraries that cannot both be done to one thing, in whatever order; starting and stopping can."""
_LEAST_OVERLAP = 0.75
_COMPARED = 50
"""How many earlier steps with a contrary word a step is compared with."""
_DIRECTIONS = stems("ascending descending asc desc increasing decreasing")
_TARGET = re.compile(r"\b(?:to|into)\s+(?P<name>[A-Z][a-z]+)\b")


@dataclass(frozen=True)
class _Ban:
    said: str
    verb: str
    objects: frozenset[str]
    blanket: bool


def ruled_out_steps(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step that does what the goal forbids."""
    bans = list(_bans(view.goal))
    for step in view.pending if bans else ():
        verb = step.verb_stem
        if verb is None or step.said.negated:
            continue
        for ban in bans:
            if _same_action(verb, ban.verb) and (ban.blanket or ban.objects & step.objects):
                yield Finding(
                    "consistency",
                    "high",
                    step.step_id,
                    f"step {step.step_id!r} does what the goal rules out ({clip(ban.said)}): "
                    f"{clip(step.step.description)}",
                    f"Remove step {step.step_id!r}, or reach its purpose in a way that keeps to {clip(ban.said)}.",
                )
                break


def off_goal_steps(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step that does the goal's own action in another direction or to another end."""
    for step in view.pending:
        if not step.objects & view.goal.stems or (found := _other_end(step, view.goal)) is None:
            continue
        said, wanted = found
        yield Finding(
            "consistency",
            "high",
            step.step_id,
            f"step {step.step_id!r} says {said!r} where the goal says {wanted!r}: {clip(step.step.description)}",
            f"Put {wanted!r} in place of {said!r} in step {step.step_id!r}.",
        )


def _other_end(step: StepView, goal: Phrase) -> tuple[str, str] | None:
    said, wanted = step.said.stems & _DIRECTIONS, goal.stems & _DIRECTIONS
    if len(said) == len(wanted) == 1 and wanted <= OPPOSITES.get(next(iter(said)), frozenset()):
        return _in_words(step.said, said), _in_words(goal, wanted)
    names, targets = set(_TARGET.findall(step.said.text)), set(_TARGET.findall(goal.text))
    if len(names) == len(targets) == 1 and step.verb_stem in goal.stems:
        (name,), (target,) = names, targets
        if target not in step.said.text and name not in goal.text:
            return name, target
    return None


def _in_words(said: Phrase, stems_of: frozenset[str]) -> str:
    return next(word for word in said.words if stem(word) in stems_of)


def contradicting_steps(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step that forbids or excludes what another step does to the same thing."""
    told = [step for step in view.steps if step.objects and step.step.status != "invalid"]
    forbidding = [step for step in told if step.said.negated]
    for step in forbidding:
        ban = next(_bans(step.said), None)
        other = next((s for s in told if ban and not s.said.negated and _does(s, ban)), None)
        if other is not None:
            yield _contradiction(step, other)
    yield from _excluding(told)


def _excluding(told: list[StepView]) -> Iterator[Finding]:
    before: dict[str, deque[StepView]] = {word: deque(maxlen=_COMPARED) for word in _AT_ONCE}
    for step in told:
        said = frozenset() if step.said.negated else step.said.stems & _AT_ONCE
        contrary = sorted({word for one in said for word in OPPOSITES.get(one, ()) if word in before})
        earlier = (other for word in contrary for other in before[word] if not said & other.said.stems)
        if (other := next((other for other in earlier if _about_the_same(step, other)), None)) is not None:
            yield _contradiction(step, other)
        for word in said:
            before[word].append(step)


def _about_the_same(one: StepView, other: StepView) -> bool:
    first, second = one.objects - _AT_ONCE, other.objects - _AT_ONCE
    together = first | second
    same = len(first & second) >= _LEAST_OVERLAP * len(together) and bool(together)
    return same and sorted(one.said.numbers) == sorted(other.said.numbers)


def _contradiction(step: StepView, other: StepView) -> Finding:
    return Finding(
        "consistency",
        "high",
        step.step_id,
        f"step {step.step_id!r} contradicts step {other.step_id!r}: {clip(step.step.description)} against "
        f"{clip(other.step.description)}",
        f"Decide which of {step.step_id!r} and {other.step_id!r} the goal needs, and remove the other.",
    )


def _bans(said: Phrase) -> Iterator[_Ban]:
    for match in _RULED_OUT.finditer(said.text):
        what = phrase(match["what"])
        if what.verb is None:
            continue
        objects = frozenset(map(stem, what.content)) - {stem(what.verb)}
        blanket = not _ANYTHING.isdisjoint(what.words) and objects <= EMPTY_NOUNS
        yield _Ban(match.group(), stem(what.verb), objects - EMPTY_NOUNS, blanket)


def _does(step: StepView, ban: _Ban) -> bool:
    return step.verb_stem is not None and _same_action(step.verb_stem, ban.verb) and ban.objects <= step.objects


def _same_action(one: str, other: str) -> bool:
    if one == other:
        return True
    shared = ACTIONS.get(one, frozenset()) & ACTIONS.get(other, frozenset())
    return bool(shared & {"delete", "send", "write", "restart"})
