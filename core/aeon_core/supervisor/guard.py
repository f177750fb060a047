"""Why a repair is refused: it may correct, but add no tools, steps or meaning (core FR-032, FR-066, FR-070).

Every function returns one line that says what the repair must not do, or None where it may be taken.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from aeon_core.plan.fields import shown
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.supervisor.lenient import as_text, goal_in, made_of, scalars, step_id_in, steps_in, words

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry

_MAX_DIFFERENCES = 200
_Path = tuple[str | int, ...]


def step_refusal(original: PlanStep, repaired: PlanStep, tools: Collection[str], registry: ToolRegistry) -> str | None:
    """Return why the repair of a missing-tool step is refused: only tool, agent and unfitting arguments may differ."""
    for name in ("step_id", "description", "depends_on", "replaces", "subplan"):
        if getattr(original, name) != getattr(repaired, name):
            return f"{name} of step {original.step_id!r} was changed; a repair keeps it"
    if repaired.tool is None or repaired.tool not in tools:
        return f"the repaired step names {shown(repaired.tool)} as its tool, not one of the tools it may use"
    if same(original.arguments, repaired.arguments):
        return None
    schema = registry.input_schema(repaired.tool)
    if original.arguments is not None and not schema.errors(original.arguments):
        return f"the arguments of step {original.step_id!r} fit the tool {repaired.tool!r} and were changed"
    if repaired.arguments is not None and (errors := schema.errors(repaired.arguments)):
        return f"the arguments do not fit the tool {repaired.tool!r}: {'; '.join(errors)}"
    return None


def call_refusal(
    original: dict[str, Any] | None, repaired: dict[str, Any], tool: str, registry: ToolRegistry, *, source: str = ""
) -> str | None:
    """Return why repaired, valid arguments are refused: what was valid stays, nothing appears that is not needed.

    Where the original arguments cannot be read at all, every value must be made of words of `source` (the reply and
    the step's description) or of the tool's schema.
    """
    schema = registry.input_schema(tool)
    if original is None:
        vocabulary = words(source) | words(json.dumps(schema.schema, ensure_ascii=False))
        if made_of(repaired, vocabulary):
            return None
        return "the arguments hold values that neither the reply nor the step names"
    declared = schema.schema.get("properties")
    misnamed = [key for key in original if key not in repaired and isinstance(declared, dict) and key not in declared]
    for path in islice(_differences(original, repaired), _MAX_DIFFERENCES):
        known, was = _at(original, path)
        if len(path) == 1 and path[0] in misnamed:
            continue
        there, now = _at(repaired, path)
        if not known and any(same(original[key], now) for key in misnamed):
            continue
        if not schema.errors(_with(repaired, path, was, known)):
            return _call_reason(path, known, there, was)
    return None


def plan_refusal(original: Any, text: str, repaired: Plan, registry: ToolRegistry, *, certain: bool) -> str | None:
    """Return why the repair of a plan is refused.

    `original` is what could be read of the reply `text`: with certainty, or leniently. Goal, count, ids, order,
    descriptions, registered tools and arguments stay as far as they were read; missing required fields may be added.
    """
    check = _PlanCheck(text, registry, certain)
    goal = goal_in(original)
    if goal is not None and not check.says_the_same(goal, repaired.goal):
        return f"the goal was changed to {shown(repaired.goal)}; a repair keeps {shown(goal)}"
    given, steps = steps_in(original), list(repaired.walk())
    if given is None:
        return next(filter(None, (check.of_prose(step) for step in steps)), None)
    if len(given) != len(steps):
        return f"the plan has {len(steps)} steps, the original {len(given)}; a repair adds and drops none"
    return next(filter(None, (check.step(was, step) for was, step in zip(given, steps, strict=True))), None)


class _PlanCheck:
    """Compares the steps of a repaired plan with the original ones, in order."""

    def __init__(self, text: str, registry: ToolRegistry, certain: bool) -> None:
        self._text = text
        self._words = words(text)
        self._letters = _letters(text)
        self._registry = registry
        self._certain = certain
        self._ids: set[str] = set()

    def says_the_same(self, was: str, now: str) -> bool:
        """Return whether a text was kept; where the original was read leniently, up to misplaced quotes."""
        if was == as_text(now):
            return True
        if self._certain:
            return False
        before, after = _letters(was), _letters(now)
        overread = any(mark in was for mark in "\"'{}[]\n")
        return after in self._letters and bool(after) and (before in after or (overread and after in before))

    def of_prose(self, step: PlanStep) -> str | None:
        """Return why a step made of plain text is refused."""
        if not made_of(step.description, self._words):
            return f"the description of step {step.step_id!r} holds words that are not in the original"
        return self._tool(step.step_id, {}, step) or self._arguments(step.step_id, None, step)

    def step(self, was: dict[str, Any] | str, now: PlanStep) -> str | None:
        """Return why a step is refused that stands where `was` stood."""
        if isinstance(was, str):
            was = {"description": was}
        return self._id(was, now) or self._description(was, now) or self._work(was, now)

    def _id(self, was: dict[str, Any], now: PlanStep) -> str | None:
        step_id = step_id_in(was)
        if step_id is None or step_id in self._ids:
            return None
        self._ids.add(step_id)
        if step_id == as_text(now.step_id):
            return None
        return f"the id {shown(step_id)} was changed to {shown(now.step_id)}; a repair keeps ids and their order"

    def _description(self, was: dict[str, Any], now: PlanStep) -> str | None:
        given = was.get("description")
        if given is None or isinstance(given, (dict, list)) or not as_text(given):
            if self._certain or made_of(now.description, self._words):
                return None
            return f"the description of step {now.step_id!r} cannot be read and was made up"
        if self.says_the_same(as_text(given), now.description):
            return None
        return f"the description of step {now.step_id!r} was changed; a repair keeps it"

    def _work(self, was: dict[str, Any], now: PlanStep) -> str | None:
        if was.get("agent") == "llm" and now.agent != "llm":
            return f"the agent of step {now.step_id!r} was removed; a repair keeps it"
        needed = was.get("depends_on")
        readable = isinstance(needed, list) and all(isinstance(item, (str, int)) for item in needed)
        if readable and list(map(as_text, needed or ())) != list(map(as_text, now.depends_on or ())):
            return f"depends_on of step {now.step_id!r} was changed; a repair keeps it"
        return self._tool(now.step_id, was, now) or self._arguments(now.step_id, _arguments(was), now)

    def _tool(self, step_id: str, was: dict[str, Any], now: PlanStep) -> str | None:
        given = was.get("tool")
        given = as_text(given) if isinstance(given, str) else None
        if now.tool == given or (not given and now.tool is None):
            return None
        tool = now.tool or ""
        registered = self._registry.get(tool) is not None
        if given and self._registry.get(given) is not None:
            return f"the tool of step {step_id!r} was changed; a repair keeps {shown(given)}"
        if given:
            return None if registered else f"step {step_id!r} got {shown(now.tool)}, which is no registered tool"
        named = any(tool == scalar for scalar in scalars(was)) or isinstance(was.get("tool"), dict)
        if registered and (named or (not self._certain and tool in self._text)):
            return None
        return f"step {step_id!r} got the tool {shown(now.tool)}, which the original does not name"

    def _arguments(self, step_id: str, given: Any, now: PlanStep) -> str | None:
        if now.arguments is None:
            return f"the arguments of step {step_id!r} were dropped" if given else None
        if same(given, now.arguments):
            return None
        readable = isinstance(given, dict)
        if made_of(now.arguments, self._words) and (not readable or not self._certain):
            return None
        change = "changed" if readable else "made up"
        return f"the arguments of step {step_id!r} were {change}; a repair keeps what is there"


def same(one: Any, other: Any) -> bool:
    """Return whether two plain values are the same JSON: 1 and true are not, the order of keys does not count."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _arguments(step: dict[str, Any]) -> Any:
    given = step.get("arguments")
    if given is None:
        given = step.get("arguments_json")
    if isinstance(given, str):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return given
    return given


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _differences(one: Any, other: Any, path: _Path = ()) -> Iterator[_Path]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            if key in one and key in other:
                yield from _differences(one[key], other[key], (*path, key))
            else:
                yield (*path, key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, (*path, index))
    elif not same(one, other):
        yield path


def _at(value: Any, path: _Path) -> tuple[bool, Any]:
    for part in path:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return False, None
    return True, value


def _with(value: dict[str, Any], path: _Path, item: Any, present: bool) -> dict[str, Any]:
    """Return a copy of `value` with the item at `path`, or with nothing there."""
    changed = copy.deepcopy(value)
    holder: Any = changed
    for part in path[:-1]:
        holder = holder[part]
    if present:
        holder[path[-1]] = item
    else:
        del holder[path[-1]]
    return changed


def _call_reason(path: _Path, known: bool, there: bool, was: Any) -> str:
    place = ".".join(map(str, path))
    if not known:
        return f"the argument {place!r} was added, though nothing asks for it"
    return f"the argument {place!r} was valid as {shown(was)} and was {'changed' if there else 'dropped'}"
