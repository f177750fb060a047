"""The answer against what the steps gave (adaptive FR-041): other figures, claims, steps and tools than there are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aeon_core.validation.report import IssueType, Severity
from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import EMPTY_NOUNS
from aeon_core.validation.semantic.phrase import Phrase, phrase, phrase_words
from aeon_core.validation.semantic.stems import alike, stem, stems, words
from aeon_core.validation.semantic.views import PlanView

_SUCCESS = re.compile(
    r"\b(?:all|every|each)\b[^.]{0,40}\b(?:steps?|tasks?|calls?|tools?|parts?)\b[^.]{0,30}\b(?:succe\w+|complet\w+|worked|passed|fine)"
    r"|\b(?:successfully|without (?:any )?(?:errors?|failures?|problems?)|no (?:errors?|failures?|problems?))\b",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"\b(?:fail\w*|errors?|could ?n[o']t|cannot|can't|unable|missing|not (?:run|available|possible|complete\w*)|"
    r"did ?n[o']t|impossible|unknown|incomplete)\b",
    re.IGNORECASE,
)
_STEP = re.compile(r"\bstep\s+#?(\d{1,4})\b", re.IGNORECASE)
_NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?"
_LINK = r"\s+(?:\w+\s+){0,2}?(?:is|was|are|were|equals?|of|=|comes to|amounts to)\s*:?\s*|\s*[:=]\s*"
_NOT = words("not no never isn't wasn't aren't without false invalid")
_FITS_ANY_VALUE = EMPTY_NOUNS | stems("value number text answer message")
_MAX_FACTS = 200
_MAX_NAME_WORDS = 3


def answer_findings(
    view: PlanView,
    results: Mapping[str, Any],
    failures: Mapping[str, Sequence[str]],
    answer: str | None,
    memory: Mapping[str, Any],
) -> list[Finding]:
    """Return what the answer says that plan, results, failures and memory contradict."""
    if answer is None:
        return []
    said = phrase(answer)
    if not said.tokens:
        return [_finding("relevance", "high", "the answer is empty", "Answer the goal from the results of the steps.")]
    facts = list(_facts(results))[:_MAX_FACTS]
    found = [
        *_claims(said, failures),
        *_unknown_steps(said, view),
        *_labelled(said, facts + list(_facts(memory))[:_MAX_FACTS]),
    ]
    if not found:
        found += _last_result(said, view, results, memory)
    if not found:
        found += _beside_the_point(said, view, facts)
    return found


def _finding(kind: IssueType, severity: Severity, what: str, repair: str) -> Finding:
    return Finding(kind, severity, None, what, repair, artifact="answer")


def _claims(said: Phrase, failures: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    admits = _FAILURE.search(_SUCCESS.sub(" ", said.text)) is not None
    if failures and not admits and _SUCCESS.search(said.text):
        names = ", ".join(map(repr, list(failures)[:5]))
        what = f"the answer claims success, and these steps failed: {names}"
        yield _finding("consistency", "high", what, f"Say in the answer that {names} failed and what is missing.")


def _unknown_steps(said: Phrase, view: PlanView) -> Iterator[Finding]:
    for number in dict.fromkeys(_STEP.findall(said.text)):
        if int(number) > len(view.steps) and not any(step_id.endswith(number) for step_id in view.by_id):
            what = f"the answer refers to step {number}, and the plan has {len(view.steps)} steps"
            yield _finding("hallucination", "medium", what, "Refer to the steps that the plan has, or leave it out.")


def _labelled(said: Phrase, facts: list[tuple[str, Any]]) -> Iterator[Finding]:
    """Find `the total is 40` where a result says `total: 42`; and `valid` where it says `valid: false`."""
    values: dict[str, list[Any]] = {}
    for name, value in facts:
        values.setdefault(name, []).append(value)
    lower = said.text.lower()
    for name, held in values.items():
        words = " ".join(phrase_words(name))
        if len(words) < 3 or words not in lower or stem(words) in _FITS_ANY_VALUE:
            continue
        stated = _stated(words, lower) if all(map(_is_number, held)) else None
        if stated is not None and not any(_rounds_to(value, stated) for value in held):
            expected = " or ".join(f"{value:.12g}" for value in held)
            what = f"the answer gives {words} as {stated}, and the results say {expected}"
            yield _finding("consistency", "high", what, f"Put {expected} in the answer.")
        elif len(held) == 1 and isinstance(held[0], bool) and _denies(words, said, held[0]):
            what = f"the answer says the contrary of the result {words}: {str(held[0]).lower()}"
            yield _finding("consistency", "high", what, f"Correct what the answer says of {words}.")


def _stated(words: str, text: str) -> str | None:
    found = re.findall(rf"\b{re.escape(words)}(?:{_LINK})[^\w\s]?({_NUMBER})", text)
    return found[0] if len(set(found)) == 1 else None


def _denies(words: str, said: Phrase, value: bool) -> bool:
    sentence = next((part for part in re.split(r"[.;!?]\s", said.text.lower()) if words in part), "")
    if not re.search(rf"\b(?:is|are|was|were)\s+(?:not\s+)?(?:\w+\s+)?{re.escape(words)}\b", sentence):
        return False
    return value is not _NOT.isdisjoint(sentence.split())


def _last_result(
    said: Phrase, view: PlanView, results: Mapping[str, Any], memory: Mapping[str, Any]
) -> Iterator[Finding]:
    """Find an answer that gives another figure, or another name, than the one the last step came to."""
    last = next((step.step_id for step in reversed(view.steps) if step.step_id in results), None)
    values = [value for _, value in _facts({last: results[last]})] if last is not None else []
    if len(values) != 1:
        return
    given = f"Give what step {last!r} came to"
    if (figure := _sole_number(values[0])) is not None:
        stated = [token.text for token in said.tokens if token.kind == "number"]
        if not stated or any(_rounds_to(figure, number) for number in stated):
            return
        known, texts = _told(view, results, memory)
        seen = [*(value for value in known if _is_number(value)), *(n for text in texts for n in phrase(text).numbers)]
        seen += [value for step in view.steps for value in step.values if _is_number(value)]
        other = [number for number in stated if not any(_rounds_to(value, number) for value in seen)]
        if other:
            what = f"the answer says {other[0]}, and step {last!r} came to {figure:.12g}"
            yield _finding("consistency", "high", what, f"{given}, {figure:.12g}.")
    elif isinstance(values[0], str) and _is_a_name(values[0]) and values[0].lower() not in said.text.lower():
        everything = " ".join(_told(view, results, memory)[1]).lower()
        other = sorted(name for name in said.proper if name not in everything)
        if other:
            what = f"the answer names {other[0]!r}, and step {last!r} came to {values[0]!r}"
            yield _finding("consistency", "high", what, f"{given}, {values[0]!r}.")


def _told(view: PlanView, results: Mapping[str, Any], memory: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    """Return the values in results and memory, and every text that the answer may rest on."""
    known = [value for _, value in [*_facts(results), *_facts(memory)]]
    texts = [view.goal.text, *(step.step.description for step in view.steps), *(v for v in known if isinstance(v, str))]
    return known, texts


def _beside_the_point(said: Phrase, view: PlanView, facts: list[tuple[str, Any]]) -> Iterator[Finding]:
    """Find an answer that has no word and no number in common with goal, steps and results."""
    words = said.stems - EMPTY_NOUNS
    if len(words) < 3 or not all(word.isascii() for word in said.words):
        return
    around = set(view.goal.stems).union(*(step.said.stems for step in view.steps))
    if not words.isdisjoint(around):
        return
    numbers = set(view.goal.numbers)
    for name, value in facts:
        around |= phrase(f"{name} {value}").stems
        numbers |= {float(value)} if _is_number(value) else set(phrase(str(value)).numbers)
    if numbers.isdisjoint(said.numbers) and not any(alike(word, other) for word in words for other in around):
        what = f"the answer has nothing in common with the goal or the results: {clip(said.text)}"
        yield _finding("relevance", "high", what, f"Answer the goal {clip(view.plan.goal)} from the results.")


def _facts(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the scalars at any depth with the key next above them."""
    stack: list[tuple[str, Any]] = list(reversed(list(values.items())))
    left = _MAX_FACTS * 10
    while stack and left:
        name, value = stack.pop()
        left -= 1
        if isinstance(value, Mapping):
            stack.extend(reversed([(str(key), inner) for key, inner in value.items()]))
        elif isinstance(value, (list, tuple)):
            stack.extend((name, inner) for inner in reversed(value))
        elif value is not None:
            yield name, value


def _sole_number(value: Any) -> float | None:
    if _is_number(value):
        return float(value)
    numbers = phrase(value).numbers if isinstance(value, str) else []
    return numbers[0] if len(numbers) == 1 else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rounds_to(value: float, written: str) -> bool:
    """Return whether a value is what is written, rounded as it is written; also as a percentage or in thousands."""
    digits = re.sub(r"[,\s%]", "", written).replace("−", "-")
    try:
        stated = float(digits)
    except ValueError:
        return False
    half = 0.5 * 10 ** -len(digits.partition(".")[2]) + 1e-9
    return any(abs(abs(value) * factor - abs(stated)) <= half for factor in (1, 100, 0.01, 0.001, 1e-6))


def _is_a_name(text: str) -> bool:
    words = text.split()
    return 0 < len(words) <= _MAX_NAME_WORDS and all(word[0].isupper() for word in words)
