"""Steps that are too vague to be carried out (adaptive FR-036)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import (
    BLANKET_WORDS,
    DEICTIC_SUPPORT,
    EMPTY_NOUNS,
    EMPTY_PHRASES,
    EMPTY_VERBS,
    HEDGES,
    LOOSE_WORDS,
    WEAK_VERBS,
)
from aeon_core.validation.semantic.stems import stem, words
from aeon_core.validation.semantic.views import PlanView, StepView

_FIT_ANY_STEP = EMPTY_NOUNS | HEDGES | LOOSE_WORDS | EMPTY_VERBS | WEAK_VERBS
_VAGUE_FROM = 2
_CONCRETE = 4
_POINTING = words("it them this these those both each all")
"""Objects that an earlier step gives: `weigh them`."""
_RICH = 2
"""So many words of its own make even an empty verb clear, and a hedge harmless."""


def vague_steps(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step that names neither an action nor an object of its own.

    What counts: a verb that says nothing, no object but words that stand for anything, hedges. What makes a step
    concrete: arguments, substeps, numbers, quotations, names.
    """
    for step in view.pending:
        if step.step.subplan is None and not step.step.arguments and (score := _vagueness(step)) >= _VAGUE_FROM:
            yield Finding(
                "specificity",
                "high" if score > _VAGUE_FROM and not _own_words(step) else "medium",
                step.step_id,
                f"step {step.step_id!r} is vague: {clip(step.step.description)} does not say what is done to what",
                _repair(step, view),
            )


def _vagueness(step: StepView) -> int:
    said = step.said
    if not said.words:
        return _VAGUE_FROM if not said.tokens else 0
    if not all(word.isascii() for word in said.words):
        return 0  # another language: these classes of words say nothing about it
    own = _own_words(step)
    score = _of_verb(step, len(own))
    if not own:
        score += 1 + (len(said.content) <= 1 and _POINTING.isdisjoint(said.words))
    loose = not own and not LOOSE_WORDS.isdisjoint(said.stems)
    unsure = not HEDGES.isdisjoint(said.stems) or not BLANKET_WORDS.isdisjoint(said.words)
    if loose or (unsure and len(own) < _RICH):
        score += 1
    return score - (_CONCRETE if said.concrete else 0)


def _of_verb(step: StepView, own: int) -> int:
    verb = step.verb_stem
    if verb is None:
        return 0
    if verb in EMPTY_VERBS or _empty_phrase(step.said.words):
        return 2 if own < _RICH else 0
    if verb in WEAK_VERBS:
        return 1 if own or verb in DEICTIC_SUPPORT else 2
    return 1 if verb in _FIT_ANY_STEP and not own else 0


def _empty_phrase(words: list[str]) -> bool:
    return any(pair in EMPTY_PHRASES for pair in pairwise(words[:4]))


def _own_words(step: StepView) -> list[str]:
    """Return the words that belong to this step's subject: none that would fit any step."""
    words = list(step.said.content)
    if step.said.verb in words:
        words.remove(step.said.verb)
    return [word for word in words if stem(word) not in _FIT_ANY_STEP]


def _repair(step: StepView, view: PlanView) -> str:
    subject = clip(view.plan.goal)
    if step.tool is not None:
        names = ", ".join(map(repr, step.tool.properties)) or "what it needs"
        return f"Name what {step.tool.name!r} is to be given ({names}), or set the step's arguments."
    return (
        f"Rewrite the step as one action on one named thing towards {subject}, with the figures, names or files it "
        "uses and the result it gives; or split it into such steps."
    )
