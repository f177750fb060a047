"""Follow-up questions for a request that leaves open what is wanted, none for a clear one (adaptive FR-011)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aeon_core.plan.models import Plan
from aeon_core.plan.wording import Wording, wording

MAX_QUESTIONS = 5
_ENOUGH_DETAIL = 2.0
_MAX_SHOWN = 60


def follow_up_questions(task: str, plan: Plan | None = None, asked: Iterable[str] = ()) -> list[str]:
    """Return what a person should be asked about the task, the most needed first; nothing where it is clear.

    `asked` are the questions a model has; they come after those of the rules, each once. Steps of a `plan` that is
    there are asked about where they still say nothing but a vague word. At most MAX_QUESTIONS.
    """
    found = list(_about_task(task))
    if found and plan is not None:
        found += _about_steps(plan)
    found += [" ".join(question.split()) for question in asked if question.strip()]
    unique = {question.casefold(): question for question in reversed(found)}
    kept = [question for question in dict.fromkeys(found) if unique.get(question.casefold()) == question]
    return kept[:MAX_QUESTIONS]


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
        return words.detail < _ENOUGH_DETAIL
    return _unnamed_object(words) or (bool(words.vague) and words.detail < 1)


def _unnamed_object(words: Wording) -> bool:
    """Return whether all that is acted on is a kind of thing, with nothing that tells which."""
    return bool(words.generic) and not words.own and words.detail < 1


def _about_task(task: str) -> Iterator[str]:
    words = wording(task)
    if not is_vague(words):
        return
    if words.pronouns:
        yield f"What does {words.pronouns[0]!r} stand for?"
    if words.vague:
        yield f"What does {words.vague[0]!r} mean here, and how would one see that it is reached?"
    if words.thing:
        yield f"Which {words.thing[:_MAX_SHOWN]} exactly is meant, and what must it contain or do?"
    elif not words.pronouns:
        yield "What exactly is to be done, and with what?"
    if words.open_ended:
        yield "Which constraints hold: audience, technology, size, deadline or budget?"
        yield "When is the result good enough: what will it be checked against?"


def _about_steps(plan: Plan) -> Iterator[str]:
    for step in plan.walk():
        words = wording(step.description)
        if step.status == "pending" and step.arguments is None and words.vague and not words.own and is_vague(words):
            yield f"What does step {step.step_id!r} mean by {step.description[:_MAX_SHOWN]!r}?"
