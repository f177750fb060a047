"""Follow-up questions for a request that leaves open what is wanted, none for a clear one (adaptive FR-011)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from aeon_core.plan.models import Plan
from aeon_core.plan.phrasing import questions_about
from aeon_core.plan.wording import Wording, listed, wording

MAX_QUESTIONS = 5
_ENOUGH_DETAIL = 2.0
_TOPIC_IS_ENOUGH = listed("""
    greeting haiku joke jokes limerick motto poem poems rhyme riddle riddles slogan song sonnet story tagline verse
""")
"""Small texts of which a request has said enough when it says what they are about."""
_MAX_SHOWN = 60
_ASKED = re.compile(r"\b(?:who|whom|whose|when|where|why|how)\b")
_DETERMINERS = ("a", "an", "some", "the")
"""What begins a request that names only the thing: a landing page."""


def follow_up_questions(task: str, plan: Plan | None = None, asked: Iterable[str] = ()) -> list[str]:
    """Return what a person should be asked about the task, the most needed first; nothing where it is clear.

    `asked` are the questions a model has; they come after those of the rules. Steps of a `plan` that are still to run
    are asked about where they say nothing but a vague word. Of questions with the same words of meaning the first is
    kept. At most MAX_QUESTIONS.
    """
    found = [*_about_task(task), *(_about_steps(plan) if plan is not None else ())]
    found += (" ".join(question.split()) for question in asked if question.strip())
    unique: dict[object, str] = {}
    for question in found:
        unique.setdefault(_meaning(question), question)
    return list(unique.values())[:MAX_QUESTIONS]


def _meaning(question: str) -> object:
    """Return what two questions that ask for the same have in common: their words of meaning, and when, where, who…"""
    words = wording(question)
    if not words.content or words.literals:
        return question.casefold()
    asked = (word.replace("whom", "who") for word in _ASKED.findall(question.lower()))
    return frozenset(word.rstrip("s") for word in (*words.content, *words.pronouns, *asked))


def is_vague(words: Wording) -> bool:
    """Return whether a request leaves open what is to come out of it (adaptive FR-012)."""
    if not words.content and not words.literals and not words.names:
        return True
    if words.literals and words.detail >= _ENOUGH_DETAIL:
        return False
    if words.pronouns and words.detail < _ENOUGH_DETAIL:
        return True
    if words.question:
        return bool(words.vague) and words.detail < 1
    if words.open_ended:
        return words.detail < (1 if _TOPIC_IS_ENOUGH.intersection(words.content) else _ENOUGH_DETAIL)
    if words.verb in _DETERMINERS and words.detail < 1:
        return True
    return _unnamed_object(words) or (bool(words.vague) and words.detail < 1)


def _unnamed_object(words: Wording) -> bool:
    """Return whether all that is acted on is a kind of thing, with nothing that tells which."""
    return bool(words.generic) and not words.own and words.detail < 1


def _about_task(task: str) -> Iterator[str]:
    words = wording(task)
    if is_vague(words):
        yield from questions_about(task, words)


def _about_steps(plan: Plan) -> Iterator[str]:
    for step in plan.walk():
        words = wording(step.description)
        opaque = step.status == "pending" and step.arguments is None and step.subplan is None
        if opaque and words.vague and not words.own and is_vague(words):
            yield f"What does step {step.step_id!r} mean by {step.description[:_MAX_SHOWN]!r}?"
