"""What earlier steps gave, as text and as numbers, and finding the one that a step refers to."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from aeon_core.json_safe import clean_text
from aeon_core.llm.simulated.arithmetic import Ref
from aeon_core.llm.simulated.numbers import is_number, show_number
from aeon_core.llm.simulated.prompt import Prompt, StepOutcome

_SAID = re.compile(r"(?:\bis|=|:)\s*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w])", re.IGNORECASE)
_ANY = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])", re.IGNORECASE)
_VALUE_KEYS = ("result", "value", "answer", "total", "sum")
_TEXT_KEYS = ("text", "content", "result", "value", "output", "answer")
_MAX_READ = 4000


class MissingResultError(Exception):
    """A step needs a result that is not there; the message is a sentence that says why."""


def earlier(prompt: Prompt, ref: Ref) -> StepOutcome:
    """Return the outcome a reference means: the named step's, else that of the last step this one depends on.

    Raises MissingResultError where there is none, or where that step failed.
    """
    step_id = ref.step_id or _last_dependency(prompt) or (prompt.results[-1].step_id if prompt.results else None)
    if step_id is None:
        raise MissingResultError("There is no earlier result to build on.")
    found = prompt.outcome(step_id)
    if found is None:
        raise MissingResultError(f"The result of {step_id} is missing: it has not run.")
    if found.failed:
        raise MissingResultError(f"The result of {step_id} is missing, because {step_id} failed: {found.errors[0]}")
    return found


def _last_dependency(prompt: Prompt) -> str | None:
    needed = prompt.step.get("depends_on")
    names = [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
    return names[-1] if names else None


def number_resolver(prompt: Prompt) -> Callable[[Ref], float]:
    """Return what turns a reference into the number it means. It raises MissingResultError."""

    def resolve(ref: Ref) -> float:
        found = earlier(prompt, ref)
        number = number_of(found)
        if number is None:
            raise MissingResultError(f"The result of {found.step_id} is no number: {clip(text_of(found), 80)}")
        return number

    return resolve


def number_of(outcome: StepOutcome) -> float | None:
    """Return the number that a step gave: a tool's value, or the last one that a text states."""
    output = outcome.output
    if isinstance(output, dict):
        values = [output[key] for key in _VALUE_KEYS if key in output] + list(output.values())
        for value in values:
            if is_number(value):
                return float(value) if isinstance(value, float) else int(value)
    if is_number(output):
        return float(output) if isinstance(output, float) else int(output)
    return _number_in(text_of(outcome)[:_MAX_READ])


def _number_in(text: str) -> float | None:
    said = _SAID.findall(text) or _ANY.findall(text)
    if not said:
        return None
    digits = said[-1]
    number = int(digits) if digits.lstrip("-").isdecimal() else float(digits)
    return number if isinstance(number, int) or math.isfinite(number) else None


def text_of(outcome: StepOutcome) -> str:
    """Return a step's output as a person reads it."""
    if outcome.clipped is not None:
        return _beginning(outcome.clipped)
    return text_of_value(outcome.output)


def _beginning(clipped: str) -> str:
    """Return what can be read of an output that was cut: the beginning of its text, else of its JSON."""
    opening = '{"text": "'
    if clipped.startswith(opening):
        # A cut escape sequence is up to six characters long.
        for end in range(len(clipped), max(len(opening), len(clipped) - 6), -1):
            try:
                text = json.loads(clipped[len(opening) - 1 : end] + '"')
                return clean_text(text) + "…"
            except ValueError:
                continue
    return f"{clipped}…"


def text_of_value(value: Any) -> str:
    """Return a value as a person reads it: the text or number of a simple object, other ones as JSON."""
    if isinstance(value, dict):
        keys = [key for key in _TEXT_KEYS if key in value] or list(value)[:1]
        if len(value) == 1 or (keys and isinstance(value[keys[0]], str)):
            return text_of_value(value[keys[0]])
    if isinstance(value, str):
        return value
    if is_number(value):
        return show_number(value)
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


def clip(text: str, length: int) -> str:
    """Return the text on one line, cut where it is longer."""
    text = " ".join(text[: 2 * length + 100].split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
