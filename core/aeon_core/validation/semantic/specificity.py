"""Steps that are too vague to be carried out (adaptive FR-036)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import (
    BLANKET_WORDS,
    DEICTIC_SUPPORT,
    EMPTY_NOUNS,
    EMPTY_PHRASES,
    EMPTY_VERBS,
    HEDGES,
    HOLLOW_ENDS,
    HOLLOW_HEADS,
    LOOSE_WORDS,
    WEAK_VERBS,
)
from aeon_core.validation.semantic.phrase import Phrase
from aeon_core.validation.semantic.stems import stem, words
from aeon_core.validation.semantic.views import PlanView, StepView

_FIT_ANY_STEP = EMPTY_NOUNS | HEDGES | LOOSE_WORDS | EMPTY_VERBS | WEAK_VERBS
_VAGUE_FROM = 2
_POINTING = words("it them this these those both each all")
"""Objects that an earlier step gives: `weigh them`."""
_SO_TO_SPEAK = re.compile(
    r"\b(?:the next level|(?:com|pull|tie|bring|put)\w* (?:\w+ ){0,3}together|up to (?:scratch|standard|par|speed)"
    r"|(?:in|into) (?:good |better )?(?:shape|order)|up and running"
    r"|look\w* (?:right|good|nice|great|better|fine|ok))\b",
    re.IGNORECASE,
)
"""Outcomes that anything may be given."""

_AT_WILL = re.compile(
    r"^(?:please |just )*do (?:the |all |any )?(?:usual|rest|needful|necessary|whatever|everything)\b", re.IGNORECASE
)
"""An action that is left to the reader, whatever stands behind it."""

_RICH = 2
"""So many words of its own make even an empty verb clear, and a hedge harmless."""


def vague_steps(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step that names neither an action nor an object of its own.

    What counts: a verb that says nothing, no object but words that stand for anything, hedges. What makes a step
    concrete: arguments, substeps, numbers, quotations, names.
    """
    for step in view.pending:
        if step.step.subplan is None and not step.step.arguments and (score := _vagueness(step.said)) >= _VAGUE_FROM:
            yield Finding(
                "specificity",
                "high" if score > _VAGUE_FROM and not _own_words(step.said) else "medium",
                step.step_id,
                f"step {step.step_id!r} is vague: {clip(step.step.description)} does not say what is done to what",
                _repair(step, view),
            )


# A plan is looked at in every pass, and few of its descriptions change from one to the next.
@lru_cache(maxsize=4096)
def _vagueness(said: Phrase) -> int:
    if not said.words:
        return _VAGUE_FROM if not said.tokens else 0
    if not all(word.isascii() for word in said.words):
        return 0  # another language: these classes of words say nothing about it
    if said.concrete:
        return 0
    own = _own_words(said)
    score = max(_of_verb(said, len(own)), _VAGUE_FROM if _AT_WILL.search(said.text) else 0)
    if not own:
        score += 1 + (len(said.content) <= 1 and _POINTING.isdisjoint(said.words))
    loose = not own and not LOOSE_WORDS.isdisjoint(said.stems)
    unsure = not HEDGES.isdisjoint(said.stems) or not BLANKET_WORDS.isdisjoint(said.words)
    if loose or (len(own) < _RICH and (unsure or _SO_TO_SPEAK.search(said.text))):
        score += 1
    return score


def _of_verb(said: Phrase, own: int) -> int:
    verb = said.verb_stem
    if verb is None:
        return 0
    if _says_nothing(said):
        return 2 if own < _RICH else 0
    if verb in WEAK_VERBS:
        return 1 if own or verb in DEICTIC_SUPPORT else 2
    return 1 if verb in _FIT_ANY_STEP and not own else 0


def _says_nothing(said: Phrase) -> bool:
    return said.verb_stem in EMPTY_VERBS or any(pair in EMPTY_PHRASES for pair in pairwise(said.words[:4]))


def _own_words(said: Phrase) -> list[str]:
    """Return the words that belong to this step's subject: none that would fit any step."""
    left_out = {word for match in _SO_TO_SPEAK.findall(said.text) for word in match.lower().split()}
    hollow = HOLLOW_HEADS | HOLLOW_ENDS if _says_nothing(said) else HOLLOW_HEADS
    for before, word in pairwise(said.content):
        if word in hollow:
            left_out |= {before, word}
    words = [word for word in said.content if word not in left_out]
    if said.verb in words:
        words.remove(said.verb)
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
