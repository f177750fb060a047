"""Reading leniently what a broken reply says: an oracle that repairs are measured by, never a result (core FR-032)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import json_repair

from aeon_core.plain import MAX_DEPTH, plain

MAX_REPAIRABLE = 50_000
"""Characters of a reply that a model is asked to repair; the lenient reader takes quadratic time on degenerate ones."""

_WORD = re.compile(r"\w+")
_BRACKET = re.compile(r"[\[\]{}]")
_ESCAPED_SPACE = re.compile(r"\\[nrtu]")
_WRAPPING_DEPTH = 3


def lenient(text: str) -> Any:
    """Return what the text seems to say as plain JSON, or None where that is nothing structured."""
    if len(text) > MAX_REPAIRABLE or _depth(text) > MAX_DEPTH:
        return None
    try:
        value = plain(json_repair.loads(text))
    except (ValueError, RecursionError, IndexError, AttributeError, TypeError):
        return None
    return value if isinstance(value, (dict, list)) and value else None


def lenient_arguments(text: str) -> dict[str, Any] | None:
    """Return the arguments that a broken tool call seems to give, or None where it gives none that can be read."""
    value = lenient(text)
    if isinstance(value, dict) and isinstance(value.get("arguments"), str):
        return lenient_arguments(value["arguments"])
    arguments = value.get("arguments", value) if isinstance(value, dict) else None
    return arguments if isinstance(arguments, dict) and arguments else None


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def words(text: str) -> set[str]:
    """Return the words and numbers of a text, without case."""
    return set(_WORD.findall(_ESCAPED_SPACE.sub(" ", text).casefold())) | set(_WORD.findall(text.casefold()))


def made_of(value: Any, vocabulary: set[str]) -> bool:
    """Return whether every word of every scalar in `value` is in the vocabulary; keys and nulls do not count."""
    return all(
        set(_WORD.findall(as_text(scalar).casefold())) <= vocabulary for scalar in scalars(value) if scalar is not None
    )


def scalars(value: Any) -> Iterator[Any]:
    """Yield the scalars inside plain JSON, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from scalars(item)
    else:
        yield value


def as_text(value: Any) -> str:
    """Return a scalar as a person would write it, with single blanks between words."""
    text = value if isinstance(value, str) else json.dumps(value)
    return " ".join(text.split())


def goal_in(value: Any) -> str | None:
    """Return the goal that a broken plan states, or None."""
    for _ in range(_WRAPPING_DEPTH):
        if not isinstance(value, dict):
            return None
        goal = value.get("goal")
        if goal is not None and not isinstance(goal, (dict, list)):
            return as_text(goal) or None
        value = _only_object(value)
    return None


def steps_in(value: Any) -> list[dict[str, Any] | str] | None:
    """Return the steps that a broken plan states, each parent before its substeps, or None where it states none."""
    for _ in range(_WRAPPING_DEPTH):
        if isinstance(value, dict) and not isinstance(value.get("steps"), list):
            value = next((item for item in value.values() if _is_steps(item)), _only_object(value))
        else:
            break
    if isinstance(value, dict):
        value = value.get("steps")
    return _in_order(list(_flattened(value))) if _is_steps(value) else None


def step_id_in(step: dict[str, Any] | str) -> str | None:
    """Return the id that a step states, or None."""
    given = step.get("step_id", step.get("id")) if isinstance(step, dict) else None
    return None if given is None or isinstance(given, (dict, list)) else as_text(given) or None


def _is_steps(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) or _is_text(item) for item in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _only_object(value: dict[str, Any]) -> dict[str, Any] | None:
    inner = [item for item in value.values() if isinstance(item, dict)]
    return inner[0] if len(inner) == 1 else None


def _flattened(steps: list[Any]) -> Iterator[dict[str, Any] | str]:
    for step in steps:
        if isinstance(step, dict) and step:
            yield step
            yield from _flattened(_substeps(step))
        elif _is_text(step):
            yield step


def _substeps(step: dict[str, Any]) -> list[Any]:
    holder = step.get("subplan", step)
    if isinstance(holder, dict):
        holder = holder.get("substeps", holder.get("steps"))
    return holder if isinstance(holder, list) else []


def _in_order(steps: list[dict[str, Any] | str]) -> list[dict[str, Any] | str]:
    """Return flat steps with each parent before its substeps, as a Plan is walked."""
    ids = {step_id for step in steps if (step_id := step_id_in(step)) is not None}
    children: dict[str | None, list[int]] = {}
    for index, step in enumerate(steps):
        parent = step.get("parent") if isinstance(step, dict) else None
        name = as_text(parent) if isinstance(parent, (str, int)) else None
        children.setdefault(name if name in ids else None, []).append(index)
    order: list[int] = []
    stack = children.pop(None, [])[::-1]
    while stack:
        index = stack.pop()
        order.append(index)
        stack.extend(children.pop(step_id_in(steps[index]), [])[::-1])
    return [steps[index] for index in order + sorted(index for left in children.values() for index in left)]
