"""What a repair may change in a model's reply: its form, not its content (core FR-030 to FR-032).

The functions return why a repaired value is refused, None if it is not.
"""

from __future__ import annotations

import difflib
from typing import Any

from aeon_core.loose_json import text_refusal
from aeon_core.plan.forms import plan_rows
from aeon_core.plan.parsing import shown
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.schema import Schema, coerced, is_blank, letters, properties

_NEAR = 0.75


def same(one: Any, other: Any) -> bool:
    """Return whether two plain values are equal: numbers by value, text apart from whitespace; true is not 1."""
    if isinstance(one, str) and isinstance(other, str):
        return one.split() == other.split()
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return isinstance(one, bool) is isinstance(other, bool) and one == other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one is None and other is None


def value_refusal(original: Any, repaired: Any, path: str = "", *, adds_tools: bool = True) -> str | None:
    """Return why a value is refused: it must keep the original's content; only with `adds_tools` may it add a tool."""
    if is_blank(original) or same(original, repaired):
        return None
    if isinstance(original, dict) and isinstance(repaired, dict):
        if not adds_tools and is_blank(original.get("tool")) and not is_blank(tool := repaired.get("tool")):
            return f"{path}.tool was added, {shown(tool)}; a repair chooses no tool here".lstrip(".")
        parts = [(f"{path}.{key}".lstrip("."), item, repaired.get(key)) for key, item in original.items()]
    elif isinstance(original, list) and isinstance(repaired, list) and len(original) == len(repaired):
        parts = [(f"{path}[{n}]", *pair) for n, pair in enumerate(zip(original, repaired, strict=True))]
    else:
        return f"{path or 'the value'} was changed from {shown(original)} to {shown(repaired)}; a repair keeps it"
    return next(filter(None, (value_refusal(was, now, name, adds_tools=adds_tools) for name, was, now in parts)), None)


def plan_refusal(original: Any, repaired: Any, tools: ToolRegistry) -> str | None:
    """Return why a plan is refused, given both in normal form: goal, ids, order, count and all values must stay."""
    if reason := value_refusal(original.get("goal"), repaired.get("goal"), "goal"):
        return reason
    before, after = plan_rows(original), plan_rows(repaired)
    if len(before) != len(after):
        return f"the plan has {len(after)} steps, the original {len(before)}; a repair adds and drops none"
    ids = [str(row.get("id")) for row in before]
    for place, (was, now) in enumerate(zip(before, after, strict=True)):
        path = f"steps[{place}]"
        if "parent" not in was and "parent" in now:
            return f"{path}.parent was added; a repair keeps the order of the steps"
        for name, value in was.items():
            # A duplicate id, or a parent that is not a step, has to change.
            unsound = (name == "id" and ids.count(str(value)) > 1) or (name == "parent" and str(value) not in ids)
            unknown = name == "tool" and value not in tools and now.get("tool") in tools
            if name == "arguments":
                reason = _arguments_refusal(value, now, tools)
            elif not unsound and not unknown:
                reason = value_refusal(value, now.get(name), f"{path}.{name}")
            if reason:
                return reason
        if "tool" in now and now["tool"] != was.get("tool") and (now["tool"] not in tools or was.get("agent") == "llm"):
            return f"{path}.tool was changed to {shown(now['tool'])}; a repair keeps what is there"
    # If ids were missing, the new ones must be those that other steps refer to.
    needed = {str(name) for row in before if "None" in ids for name in row.get("depends_on", ())}
    missing = sorted((needed | set(ids)) - {"None"} - {str(row.get("id")) for row in after})
    return f"the id {missing[0]!r} was dropped; a repair keeps it" if missing else None


def _arguments_refusal(was: Any, row: dict[str, Any], tools: ToolRegistry) -> str | None:
    now = row.get("arguments")
    if row.get("tool") not in tools or not isinstance(now, dict):
        return value_refusal(was, now, "arguments")
    if isinstance(was, str):
        return text_refusal(was, now, cut=False, name=str)
    return call_refusal(was if isinstance(was, dict) else {"": was}, now, tools.input_schema(row["tool"]))


def call_refusal(original: dict[str, Any], repaired: dict[str, Any], schema: Schema) -> str | None:
    """Return why repaired arguments that fit the schema are refused.

    A value must stay under its name, or take that of a missing argument; a new argument must be required.
    """
    known, was = properties(schema.schema), coerced(original, schema.schema, drop=False)
    for key, value in was.items():
        if is_blank(value) and (value is None or schema.errors({**repaired, key: value})):
            continue
        if key in known and key not in repaired:
            return f"the argument {key!r} was dropped; a repair keeps it"
        if key in repaired and not same(value, repaired[key]):
            return value_refusal(value, repaired[key], key) or f"the argument {key!r} was changed; a repair keeps it"
    loose = [(key, value) for key in was if key not in known and key not in repaired for value in _items(was[key])]
    order = [*known, *(key for key in repaired if key not in known)]
    last = -1
    for key in [key for key in order if key in repaired and key not in was]:
        value = repaired[key]
        places = [place for place, (_, item) in enumerate(loose) if same(coerced(item, known.get(key, {})), value)]
        alike = [place for place, (old, _) in enumerate(loose) if named_alike(old, key)]
        if alike and not set(alike) & set(places):
            return f"the argument {key!r} has another value than {loose[alike[0]][0]!r} had; a repair keeps it"
        likely = [*(place for place in places if place in alike), *places]
        place = next((place for place in likely if loose[place][0] is not None), None)
        if place is not None:
            if place < last and place not in alike:
                return f"the argument {key!r} took the value of another one"
            last = max(last, place)
            loose[place] = (None, None)
        elif not _may_be_new(key, value, loose, repaired, schema, known):
            return f"the argument {key!r} was added, though the original has another value or nothing asks for it"
    return None


def named_alike(one: str | None, other: str) -> bool:
    """Return whether one key abbreviates, spells out or misspells the other."""
    a, b = letters(one or ""), letters(other)
    near = a.startswith(b) or b.startswith(a) or difflib.SequenceMatcher(None, a, b).ratio() >= _NEAR
    return bool(a and b) and near


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) and not any(isinstance(item, (list, dict)) for item in value) else [value]


def _may_be_new(
    key: str, value: Any, loose: list[tuple[Any, Any]], repaired: dict[str, Any], schema: Schema, known: dict[str, Any]
) -> bool:
    if value is None or ("default" in known.get(key, {}) and same(known[key]["default"], value)):
        return True
    without = {name: item for name, item in repaired.items() if name != key}
    if not schema.errors(without):
        return False
    others = [coerced(item, known.get(key, {})) for name, item in loose if name is not None and not is_blank(item)]
    return not any(not schema.errors({**repaired, key: item}) for item in others)
