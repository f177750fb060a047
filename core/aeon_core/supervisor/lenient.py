"""Reading leniently what a broken reply says: an oracle that repairs are measured by, never a result (core FR-032)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import json_repair

from aeon_core.plain import MAX_DEPTH, parse_json, plain

MAX_REPAIRABLE = 50_000
"""Characters of a reply that a model is asked to repair; the lenient reader takes quadratic time on degenerate ones."""

_BRACKET = re.compile(r"[\[\]{}]")
_WRAPPING_DEPTH = 3
_ARGUMENTS = frozenset({"args", "arg", "params", "param", "parameters", "input", "inputs", "kwargs", "payload"})
_ARGUMENTS |= {"toolinput", "toolargs", "toolarguments", "toolparams", "actioninput", "functionargs"}
_NAMES_A_TOOL = frozenset({"tool_name", "name", "tool", "type", "id"})
_HOLDS_A_CALL = ("function", "tool_call", "function_call", "call", "tool_calls", "value")
_ALIKE = 0.8
_NO_TOOL = frozenset({"", "none", "null", "nil", "llm", "n/a", "na", "n-a", "-", "no tool"})
_PARENTS = ("parent", "parent_id", "parent_step_id")
_STEP_KEYS = frozenset({"description", "tool", "agent", "arguments", "depends_on", "step_id", "id"})
_ID_KEYS = ("step_id", "id")


def lenient(text: str) -> Any:
    """Return what the text seems to say as plain JSON, or None where that is nothing structured."""
    if len(text) > MAX_REPAIRABLE or _depth(text) > MAX_DEPTH:
        return None
    try:
        value = plain(json_repair.loads(text))
    except (ValueError, RecursionError, IndexError, AttributeError, TypeError):
        return None
    return value if isinstance(value, (dict, list)) and value else None


def lenient_arguments(text: str, tool: str) -> dict[str, Any] | None:
    """Return the arguments that a broken tool call seems to give, or None where it gives none that can be read."""
    return arguments_of_call(lenient(text), tool) or None


def arguments_of_call(value: Any, tool: str) -> dict[str, Any] | None:
    """Return the arguments that a tool call of any shape gives, or None where it gives none that can be read."""
    for _ in range(_WRAPPING_DEPTH):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, dict):
            return None
        if (given := stated_arguments(value)) is not None:
            given = as_json(given)
            return given if isinstance(given, dict) else None
        rest = {key: item for key, item in value.items() if key.casefold() not in _NAMES_A_TOOL}
        inner = next((item for key in _HOLDS_A_CALL if isinstance(item := value.get(key), (dict, list))), None)
        inner = inner if inner is not None or len(rest) > 1 else rest.get(tool)
        if inner is None:
            return rest
        value = inner
    return None


def stated_arguments(value: dict[str, Any]) -> Any:
    """Return what a step or a call gives as its arguments, under whatever name, or None."""
    for key in ("arguments", "arguments_json"):
        if value.get(key) is not None:
            return value[key]
    for key, item in value.items():
        name = "".join(filter(str.isalpha, key.casefold()))
        known = name in _ARGUMENTS or difflib.SequenceMatcher(None, name[:40], "arguments").ratio() > _ALIKE
        if known and isinstance(item, (dict, str)) and item:
            return item
    inner = next((item for key in ("tool", *_HOLDS_A_CALL) if isinstance(item := value.get(key), dict)), None)
    return stated_arguments(inner) if inner is not None else None


def as_json(given: Any) -> Any:
    """Return the object that a text holds as JSON, else the value itself."""
    if isinstance(given, str):
        try:
            return parse_json(given)
        except ValueError:
            return lenient(given) if given.lstrip()[:1] == "{" else given
    return given


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


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


@dataclass(frozen=True, slots=True)
class Stated:
    """A step that a broken plan states, with the place of its parent among the steps where that is known."""

    fields: dict[str, Any]
    parent: int | None = None
    certain: bool = True
    """Whether the parent (or that there is none) can be told."""


def steps_in(value: Any) -> list[Stated] | None:
    """Return the steps that a broken plan states, each parent before its substeps, or None where it states none."""
    for _ in range(_WRAPPING_DEPTH):
        if isinstance(value, dict) and _listed(value.get("steps")) is None:
            value = next((item for item in value.values() if _is_steps(item)), _only_object(value))
        else:
            break
    steps = _listed(value.get("steps")) if isinstance(value, dict) else value
    return _in_order(list(_flattened(steps, None, []))) if _is_steps(steps) else None


def step_id_in(step: dict[str, Any]) -> str | None:
    """Return the id that a step states, or None."""
    given = next((step[key] for key in _ID_KEYS if step.get(key) is not None), None)
    return None if given is None or isinstance(given, (dict, list)) else as_text(given) or None


def tool_in(given: Any) -> str | None:
    """Return the tool that a step states, or None; words that say there is none are none."""
    if isinstance(given, dict):
        given = next((given[key] for key in ("name", "tool_name", "tool") if isinstance(given.get(key), str)), None)
    return None if not isinstance(given, str) or means_none(given) else as_text(given)


def means_none(text: str) -> bool:
    """Return whether a model says by this that there is nothing: no tool, no parent."""
    return text.strip().casefold() in _NO_TOOL


def _listed(steps: Any) -> list[Any] | None:
    """Return steps as an array: a single step is one, an object of steps has their ids as its keys."""
    if isinstance(steps, list):
        return steps
    if not isinstance(steps, dict) or not steps:
        return None
    if _STEP_KEYS & set(steps):
        return [steps]
    if not all(isinstance(item, dict) or _is_text(item) for item in steps.values()):
        return None
    fields = {key: item if isinstance(item, dict) else {"description": item} for key, item in steps.items()}
    return [item if step_id_in(item) else {"step_id": key, **item} for key, item in fields.items()]


def _is_steps(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) or _is_text(item) for item in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _only_object(value: dict[str, Any]) -> dict[str, Any] | None:
    inner = [item for item in value.values() if isinstance(item, dict)]
    return inner[0] if len(inner) == 1 else None


def _flattened(steps: Any, parent: int | None, found: list[Stated]) -> list[Stated]:
    """Add the steps of an array and their substeps to those found so far, and return them."""
    for step in steps:
        if isinstance(step, dict) and step:
            found.append(Stated(step, parent))
            place = len(found) - 1
            _flattened(_substeps(step), place, found)
        elif _is_text(step):
            found.append(Stated({"description": step}, parent))
    return found


def _substeps(step: dict[str, Any]) -> list[Any]:
    holder = step.get("subplan", step)
    if isinstance(holder, dict):
        holder = holder.get("substeps", holder.get("steps"))
    return _listed(holder) or []


def _in_order(steps: list[Stated]) -> list[Stated]:
    """Return flat steps with each parent before its substeps, as a Plan is walked."""
    places: dict[str, int] = {}
    for index, step in enumerate(steps):
        if (step_id := step_id_in(step.fields)) is not None:
            places.setdefault(step_id, index)
    parents = [_parent(step, places) for step in steps]
    children: dict[int | None, list[int]] = {}
    for index, (parent, _) in enumerate(parents):
        children.setdefault(parent, []).append(index)
    order: list[int] = []
    stack = children.pop(None, [])[::-1]
    while stack:
        index = stack.pop()
        order.append(index)
        stack.extend(children.pop(index, [])[::-1])
    cyclic = sorted(index for left in children.values() for index in left)
    moved = {old: new for new, old in enumerate(order)}
    listed = []
    for index in order + cyclic:
        parent, certain = parents[index]
        known = index in moved and (parent is None or parent in moved)
        listed.append(Stated(steps[index].fields, moved.get(parent) if parent is not None else None, certain and known))
    return listed


def _parent(step: Stated, places: dict[str, int]) -> tuple[int | None, bool]:
    """Return the place of a step's parent, and whether it can be told."""
    if step.parent is not None:
        return step.parent, True
    given = next((step.fields[key] for key in _PARENTS if step.fields.get(key) is not None), None)
    if given is None or (isinstance(given, str) and (means_none(given) or given.strip().casefold() == "root")):
        return None, True
    place = places.get(as_text(given)) if isinstance(given, (str, int)) else None
    return place, place is not None
