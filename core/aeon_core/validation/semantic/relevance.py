"""Steps that serve no part of the goal (adaptive FR-037).

Words alone cannot tell a step in other words from a step on another subject. So several things must come together: the
step shares no word, name or number with the goal or another step, neither builds on a step nor is built on, points back
to nothing, and is at home in fields of life that are far from theirs. That a step merely stands outside of what hangs
together says too little: in sound plans it is as often a preparation that nobody wrote down as needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import (
    DEICTIC_SUPPORT,
    EMPTY_NOUNS,
    EMPTY_VERBS,
    HEDGES,
    LOOSE_WORDS,
    WEAK_VERBS,
)
from aeon_core.validation.semantic.stems import LEAST_ALIKE, stems, words
from aeon_core.validation.semantic.topics import (
    ON_ANYTHING,
    Topic,
    areas_of,
    far_from,
    far_from_all,
    pastimes_of,
    topics_of,
)
from aeon_core.validation.semantic.views import PlanView, StepView

_COMMON = EMPTY_NOUNS | EMPTY_VERBS | HEDGES | LOOSE_WORDS
_LIGHT_VERBS = WEAK_VERBS | DEICTIC_SUPPORT | stems("write make find choose pick")
_BACK = words("it them this these those its their both each again")
"""Words that stand for something named before."""
_LEAST_STEPS = 3
_COHESIVE = 0.67
"""The part of the other steps that must be seen to belong together before one can be seen not to."""
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
        self._goal_begins = {word[:end] for word in self._goal for end in range(LEAST_ALIKE, len(word))}
        self._goal_names = view.goal.exact_names | view.goal.proper
        self._goal_numbers = set(view.goal.numbers)
        self._subjects = {step.step_id: _subject(step) for step in view.steps}
        self._shared = _repeated(chain.from_iterable(self._subjects.values()))
        self._names = _repeated(name for step in view.steps for name in _names(step))
        self._topics = {step.step_id: topics_of(step.said.plain_words) for step in view.steps}
        self._with_topics = sum(map(bool, self._topics.values()))
        self._around = Counter(topic for topics in self._topics.values() for topic in topics)
        for word in view.goal.plain_words:
            self._around.update(dict.fromkeys(topics_of(frozenset({word})), _GOAL_WEIGHT))
        self._linked = _linked(view)
        self._goal_areas = {topic.area for topic in topics_of(view.goal.plain_words)}
        if self._goal_areas <= ON_ANYTHING:
            self._goal_areas = set()
        self._areas: dict[str, int] = {}
        for topic, count in self._around.items():
            self._areas[topic.area] = self._areas.get(topic.area, 0) + count
        self._related = {step.step_id for step in view.steps if self._relates(step, self._subjects[step.step_id])}
        self._at_home = (
            self._related
            | self._linked
            | {step_id for step_id, topics in self._topics.items() if not self._goal_areas.isdisjoint(areas_of(topics))}
        )

    def foreign(self, step: StepView) -> bool:
        """Return whether the step is about something else than all the rest."""
        if step.step_id in self._related or step.step_id in self._linked or not self._subjects[step.step_id]:
            return False
        others = len(self._at_home) - (step.step_id in self._at_home)
        if others < _COHESIVE * (len(self._topics) - 1):
            return False
        if not _BACK.isdisjoint(step.said.words) or not all(word.isascii() for word in step.said.words):
            return False
        return self._from_afar(step) or self._left_out(step)

    def _from_afar(self, step: StepView) -> bool:
        """Return whether the step's fields of life are far from those of the goal and of the other steps."""
        own = self._topics[step.step_id]
        if not own or any(self._around[topic] > 1 for topic in own) or not self._plain(step):
            return False
        around = self._areas_around(own)
        if self._goal_areas:
            return far_from_all(own, self._goal_areas) and far_from(own, around)
        return (self._told(step) >= _LEAST_STEPS or bool(pastimes_of(own))) and far_from_all(own, around)

    def _left_out(self, step: StepView) -> bool:
        """Return whether all others hang together, and none of them is anywhere near what this step is about."""
        if len(self._topics) - len(self._linked) != 1 or len(self._topics) <= _LEAST_STEPS:
            return False
        own = self._topics[step.step_id]
        around = self._areas_around(own)
        return bool(own and around) and self._plain(step) and far_from_all(own, around)

    def _areas_around(self, own: frozenset[Topic]) -> dict[str, int]:
        """Return how many words of the goal and of the other steps lie in each area."""
        around = dict(self._areas)
        for topic in own:
            around[topic.area] -= 1
        return {area: count for area, count in around.items() if count > 0}

    def _plain(self, step: StepView) -> bool:
        """Return whether the fields of a step leave no doubt: of a pastime one word does, else more must go with it."""
        return bool(pastimes_of(self._topics[step.step_id])) or len(step.objects) > 1

    def _told(self, step: StepView) -> int:
        """Return how many other steps have a field."""
        return self._with_topics - bool(self._topics[step.step_id])

    def _like_the_goal(self, word: str) -> bool:
        """Return whether a stem and one of the goal's are alike: one begins with the other."""
        return word in self._goal_begins or any(word[:end] in self._goal for end in range(LEAST_ALIKE, len(word)))

    def _relates(self, step: StepView, subject: frozenset[str]) -> bool:
        if not subject.isdisjoint(self._shared):
            return True
        if not subject.isdisjoint(self._goal) or any(map(self._like_the_goal, subject)):
            return True
        names = _names(step)
        if not names.isdisjoint(self._goal_names) or not names.isdisjoint(self._names):
            return True
        return not self._goal_numbers.isdisjoint(step.said.numbers)


def _linked(view: PlanView) -> set[str]:
    """Return the steps that depend on another one, or that another one depends on."""
    linked: set[str] = set()
    for step in view.steps:
        known = [needed for needed in step.step.depends_on or () if needed in view.by_id]
        if known:
            linked |= {step.step_id, *known}
    return linked


def _repeated(words: Iterable[str]) -> set[str]:
    return {word for word, count in Counter(words).items() if count > 1}


def _subject(step: StepView) -> frozenset[str]:
    """Return the stems that say what the step is about; a verb that fits any goal is none of them."""
    said = (step.said.stems | step.argument_stems) - _COMMON
    return said - {step.verb_stem} if step.verb_stem in _LIGHT_VERBS else said


def _names(step: StepView) -> set[str]:
    return step.said.proper | step.said.exact_names if step.said.names else step.said.proper
