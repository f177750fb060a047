"""Why the repair of a step or a tool call is refused: it may correct, but add no meaning (core FR-032, FR-066, FR-070).

Every function returns one line that says what the repair must not do, or None where it may be taken.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from aeon_core.plan.fields import shown
from aeon_core.plan.models import PlanStep
from aeon_core.supervisor.coercion import coercions, equal
from aeon_core.supervisor.declared import choices_at, defaults_at, properties_at
from aeon_core.supervisor.evidence import Evidence, acts_otherwise, leaves, named_alike, near_choices

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry

_MAX_DIFFERENCES = 200
_Path = tuple[str | int, ...]


def step_refusal(
    original: PlanStep, repaired: PlanStep, tools: Collection[str], registry: ToolRegistry, *, goal: str = ""
) -> str | None:
    """Return why the repair of a missing-tool step is refused: only tool, agent and unfitting arguments may differ.

    Arguments of a step that had some keep what they say; those of a step without may be taken from its description.
    """
    for name in ("step_id", "description", "depends_on", "replaces", "subplan"):
        if getattr(original, name) != getattr(repaired, name):
            return f"{name} of step {original.step_id!r} was changed; a repair keeps it"
    tool = repaired.tool
    if tool is None or tool not in tools:
        return f"the repaired step names {shown(tool)} as its tool, not one of the tools it may use"
    pure = getattr(registry.get(tool), "effect", None) == "pure"
    if not pure and acts_otherwise(tool, original.description, original.tool or ""):
        return f"the tool {tool!r} does something else than step {original.step_id!r} says"
    if equal(original.arguments, repaired.arguments):
        return None
    if original.arguments is None:
        return new_arguments_refusal(repaired, registry, goal=goal)
    schema = registry.input_schema(tool)
    if repaired.arguments is None:
        return f"the arguments of step {original.step_id!r} were dropped"
    if not schema.errors(original.arguments):
        return f"the arguments of step {original.step_id!r} fit the tool {tool!r} and were changed"
    if errors := schema.errors(repaired.arguments):
        return f"the arguments do not fit the tool {tool!r}: {'; '.join(errors)}"
    evidence = Evidence(original.description, goal)
    return call_refusal(original.arguments, repaired.arguments, tool, registry, evidence)


def new_arguments_refusal(step: PlanStep, registry: ToolRegistry, *, goal: str = "") -> str | None:
    """Return why the arguments of a step that had none are not taken: they fit its tool, and its texts name them."""
    if step.arguments is None or step.tool is None:
        return None
    if errors := registry.input_schema(step.tool).errors(step.arguments):
        return f"the arguments do not fit the tool {step.tool!r}: {'; '.join(errors)}"
    return call_refusal(None, step.arguments, step.tool, registry, Evidence(step.description, goal))


def call_refusal(
    original: dict[str, Any] | None,
    repaired: dict[str, Any],
    tool: str,
    registry: ToolRegistry,
    evidence: Evidence,
) -> str | None:
    """Return why repaired, valid arguments are refused.

    What was valid stays, and nothing appears that is not needed. A value in place of an invalid or misnamed one says
    the same in another form; where it has no such form, and where nothing was there, the value is one that the
    evidence names, or a default. Of unreadable arguments (None) the evidence names every value.
    """
    return _CallCheck(original, repaired, tool, registry, evidence).refusal()


class _CallCheck:
    def __init__(
        self,
        original: dict[str, Any] | None,
        repaired: dict[str, Any],
        tool: str,
        registry: ToolRegistry,
        evidence: Evidence,
    ) -> None:
        self._original = original
        self._repaired = repaired
        self._schema = registry.input_schema(tool)
        self._root = self._schema.schema
        self._evidence = evidence

    def refusal(self) -> str | None:
        if self._original is None:
            unsaid = (path for path, value in leaves(self._repaired) if path and not self._said(path, value))
            return next(map(_made_up, unsaid), None)
        renamed, crossed = self._renamed(self._original)
        if crossed:
            return f"the argument {crossed!r} took the value of another one"
        differences = list(islice(_differences(self._original, self._repaired), _MAX_DIFFERENCES + 1))
        if len(differences) > _MAX_DIFFERENCES:
            return "the arguments were changed in too many places to compare them"
        return next(filter(None, (self._difference(self._original, path, renamed) for path in differences)), None)

    def _difference(self, original: dict[str, Any], path: _Path, renamed: dict[str, str]) -> str | None:
        if len(path) == 1 and path[0] in renamed.values():
            return None
        known, was = _at(original, path)
        there, now = _at(self._repaired, path)
        if len(path) == 1 and path[0] in renamed:
            return None if self._stands_for(path, original[renamed[str(path[0])]], now) else _made_up(path)
        if not known and self._is_default(path, now):
            return None
        if self._fits(path, was, known):
            return _call_reason(path, known, there, was)
        if not there:
            return self._dropped(path, was)
        says = self._stands_for(path, was, now) if known else self._said(path, now)
        return None if says else _made_up(path)

    def _fits(self, path: _Path, item: Any, present: bool = True) -> bool:
        return not self._schema.errors(_with(self._repaired, path, item, present))

    def _is_default(self, path: _Path, value: Any) -> bool:
        return value is None or any(equal(value, default) for default in defaults_at(self._root, path))

    def _dropped(self, path: _Path, was: Any) -> str | None:
        if was is None:
            return None
        if any(self._fits(path, form) for form in coercions(was)):
            return f"the argument {_place(path)!r} was dropped, though {shown(was)} can be kept"
        *parent, key = path
        holder = _at(self._repaired, tuple(parent))[1]
        free = [name for name in properties_at(self._root, tuple(parent)) if isinstance(holder, dict)]
        alike = [name for name in free if name != key and name not in holder and named_alike(str(key), name)]
        return f"the argument {_place(path)!r} was dropped; it may mean {alike[0]!r}" if alike else None

    def _stands_for(self, path: _Path, was: Any, now: Any) -> bool:
        """Return whether a value says what the one in its place said that did not fit."""
        if was is None:
            return self._said(path, now)
        fitting = [form for form in coercions(was) if self._fits(path, form)]
        if fitting:
            return any(equal(form, now) for form in fitting)
        if now is None:
            return True
        if isinstance(was, list) and isinstance(now, list):
            return self._items_stand_for(path, was, now)
        choices = choices_at(self._root, path)
        bare = was[0] if isinstance(was, list) and len(was) == 1 else was
        if now in choices and isinstance(bare, str) and (near := near_choices(bare, choices)):
            return now in near
        return self._said(path, now)

    def _items_stand_for(self, path: _Path, was: list[Any], now: list[Any]) -> bool:
        """Return whether every item comes from one of the original, in their order, or is named elsewhere."""
        place = 0
        for index, item in enumerate(now):
            found = (at for at in range(place, len(was)) if any(equal(form, item) for form in coercions(was[at])))
            at = next(found, None)
            if at is not None:
                place = at + 1
            elif not self._said((*path, index), item):
                return False
        return True

    def _said(self, path: _Path, value: Any) -> bool:
        """Return whether the evidence, or the schema where there is no choice, gives every value in `value`."""
        return all(self._leaf_said((*path, *inner), leaf) for inner, leaf in leaves(value))

    def _leaf_said(self, path: _Path, value: Any) -> bool:
        if value in ({}, []) or self._is_default(path, value):
            return True
        choices = choices_at(self._root, path)
        if value in choices and (len(choices) == 1 or isinstance(value, str)):
            return len(choices) == 1 or value in self._evidence.names(choices)
        key = next((part for part in reversed(path) if isinstance(part, str)), "")
        return self._evidence.supports(value, key)

    def _renamed(self, original: dict[str, Any]) -> tuple[dict[str, str], str | None]:
        """Return which new key has the value of which misnamed one, and a key whose value is another one's."""
        declared = properties_at(self._root)
        gone = [key for key in original if key not in self._repaired and key not in declared]
        new = [key for key in [*declared, *self._repaired] if key in self._repaired and key not in original]
        new = list(dict.fromkeys(new))
        renamed: dict[str, str] = {}
        for key in new:
            alike = next((old for old in gone if old not in renamed.values() and named_alike(old, key)), None)
            if alike is not None:
                renamed[key] = alike
        rest = [old for old in gone if old not in renamed.values()]
        orders = [self._values(original, order) for order in (rest, sorted(rest))]
        moved = [key for key in new if key not in renamed and any(self._moved(value, key) for _, value in orders[0])]
        for order in orders:
            pairs = self._in_order(moved, order)
            if len(pairs) == len(moved) or len(moved) > len(order):
                return renamed | pairs, None
        return renamed, moved[-1]

    def _values(self, original: dict[str, Any], keys: list[str]) -> list[tuple[str, Any]]:
        return [(key, value) for key in keys for _, value in leaves(original[key]) if value is not None]

    def _moved(self, value: Any, key: str) -> bool:
        return any(equal(form, self._repaired[key]) for form in coercions(value))

    def _in_order(self, moved: list[str], order: list[tuple[str, Any]]) -> dict[str, str]:
        pairs: dict[str, str] = {}
        place = 0
        for key in moved:
            at = next((at for at in range(place, len(order)) if self._moved(order[at][1], key)), None)
            if at is not None:
                pairs[key] = order[at][0]
                place = at + 1
        return pairs


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
    elif not equal(one, other):
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


def _place(path: _Path) -> str:
    return ".".join(map(str, path))


def _made_up(path: _Path) -> str:
    return f"the argument {_place(path)!r} has a value that neither the original nor the step names"


def _call_reason(path: _Path, known: bool, there: bool, was: Any) -> str:
    if not known:
        return f"the argument {_place(path)!r} was added, though nothing asks for it"
    return f"the argument {_place(path)!r} was valid as {shown(was)} and was {'changed' if there else 'dropped'}"
