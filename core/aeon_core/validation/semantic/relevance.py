"""Steps that serve no part of the goal (adaptive FR-037).

Words alone cannot tell a step in other words from a step on another subject. So two things must come together: the step
shares no word, name or number with the goal or another step, and either it is at home in fields of life that are far
from theirs, or it stands outside a chain of dependencies that holds all other steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import (
    DEICTIC_SUPPORT,
    EMPTY_NOUNS,
    EMPTY_VERBS,
    HEDGES,
    LOOSE_WORDS,
    WEAK_VERBS,
)
from aeon_core.validation.semantic.stems import alike, stems
from aeon_core.validation.semantic.topics import PASTIMES, far_from, pastimes_of, topics_of
from aeon_core.validation.semantic.views import PlanView, StepView

_COMMON = EMPTY_NOUNS | EMPTY_VERBS | HEDGES | LOOSE_WORDS
_LIGHT_VERBS = WEAK_VERBS | DEICTIC_SUPPORT | stems("write make find choose pick")
_LEAST_STEPS = 3
_COHESIVE = 0.5
"""The part of the other steps that must share a word with the goal or each other where the goal's field is unknown."""
_GOAL_WEIGHT = 3
"""How many words of a step one word of the goal counts for."""


def unrelated_steps(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step that has nothing to do with the goal or the other steps."""
    if len(view.steps) < _LEAST_STEPS:
        return
    surroundings = _Surroundings(view)
    for step in view.pending:
        if surroundings.foreign(step):
            yield Finding(
                "relevance",
                "medium",
                step.step_id,
                f"step {step.step_id!r} serves no part of the goal: {clip(step.step.description)} has nothing in "
                f"common with {clip(view.plan.goal)} or with the other steps",
                f"Remove step {step.step_id!r}, or say in its description what it contributes to the goal.",
            )


class _Surroundings:
    """What the goal and the steps of a plan have in common."""

    def __init__(self, view: PlanView) -> None:
        self._goal = frozenset(word for word in view.goal.stems if word not in _COMMON)
        self._goal_names = {name for kind in view.goal.names.values() for name in kind} | view.goal.proper
        self._goal_numbers = set(view.goal.numbers)
        self._subjects = {step.step_id: _subject(step) for step in view.steps}
        self._shared = Counter(word for subject in self._subjects.values() for word in subject)
        self._names = Counter(name for step in view.steps for name in _names(step))
        self._topics = {step.step_id: topics_of(step.said.plain_words) for step in view.steps}
        self._with_topics = sum(map(bool, self._topics.values()))
        self._around = Counter(topic for topics in self._topics.values() for topic in topics)
        for word in view.goal.plain_words:
            self._around.update(dict.fromkeys(topics_of([word]), _GOAL_WEIGHT))
        self._islands = _islands(view)
        self._goal_topics = topics_of(view.goal.plain_words)
        related = sum(self._relates(step, self._subjects[step.step_id]) for step in view.steps)
        self._cohesion = related / (len(view.steps) - 1)

    def foreign(self, step: StepView) -> bool:
        """Return whether the step is about something else than all the rest."""
        subject = self._subjects[step.step_id]
        if not subject or self._relates(step, subject) or not all(word.isascii() for word in step.said.words):
            return False
        own = self._topics[step.step_id]
        around = self._around - Counter(own)
        if not own.isdisjoint(around):
            return False
        if own and (self._goal_topics or self._told(step) >= _LEAST_STEPS):
            return far_from(own, around)
        if own and self._cohesion >= _COHESIVE and pastimes_of(own):
            return all(topic.area not in PASTIMES for topic in around)
        return step.step_id in self._islands and step.verb_stem not in _LIGHT_VERBS

    def _told(self, step: StepView) -> int:
        """Return how many other steps have a field."""
        return self._with_topics - bool(self._topics[step.step_id])

    def _relates(self, step: StepView, subject: frozenset[str]) -> bool:
        if any(self._shared[word] > 1 for word in subject):
            return True
        if any(alike(word, wanted) for word in subject for wanted in self._goal):
            return True
        names = _names(step)
        if not names.isdisjoint(self._goal_names) or any(self._names[name] > 1 for name in names):
            return True
        return not self._goal_numbers.isdisjoint(step.said.numbers)


def _islands(view: PlanView) -> set[str]:
    """Return the step that needs none and is needed by none, where all others (three at least) hang together."""
    linked: set[str] = set()
    for step in view.steps:
        for needed in step.step.depends_on or ():
            linked |= {step.step_id, needed}
    alone = {step.step_id for step in view.steps} - linked
    return alone if len(alone) == 1 and len(view.steps) > _LEAST_STEPS else set()


def _subject(step: StepView) -> frozenset[str]:
    """Return the stems that say what the step is about; a verb that fits any goal is none of them."""
    words = step.said.stems | step.argument_stems
    light = {step.verb_stem} if step.verb_stem in _LIGHT_VERBS else set()
    return frozenset(word for word in words - light if word not in _COMMON)


def _names(step: StepView) -> set[str]:
    return {name for kind in step.said.names.values() for name in kind} | step.said.proper
