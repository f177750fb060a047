"""Normalizes the forms in which models write a plan, without making anything up (Decision 4)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from aeon_core.json_safe import parse_json
from aeon_core.loose_json import values_in
from aeon_core.tools.schema import is_blank, letters

Tools = Mapping[str, Collection[str]]
"""The arguments of each registered tool, by its name."""

_PLAN_KEYS = {
    "goal": ("objective", "aim", "plangoal", "goaldescription"),
    "steps": ("plansteps", "steplist", "tasks", "actions", "stages", "plan"),
}
_STEP_KEYS = {
    "id": ("stepid", "step", "stepnumber", "stepno", "number", "index", "no", "nr", "key"),
    "description": (
        *("desc", "action", "task", "stepdescription", "instruction", "instructions", "summary", "details", "detail"),
        *("title", "name", "text", "content", "what"),
    ),
    "tool": ("toolname", "function", "functionname", "toolcall", "call"),
    "arguments": (
        *("argumentsjson", "args", "arg", "params", "param", "parameters", "inputs", "input", "kwargs", "payload"),
        *("toolinput", "toolargs", "toolarguments", "toolparams", "toolparameters", "actioninput"),
    ),
    "depends_on": ("dependson", "dependencies", "dependency", "depends", "deps", "requires", "prerequisites", "after"),
    "parent": ("parentid", "parentstep", "parentstepid"),
    "agent": ("executor", "actor", "assignee"),
    "subplan": ("substeps", "subtasks", "children", "steps"),
    "replaces": (),
    "status": ("state",),
    "errors": ("error",),
}
_SUBPLAN_KEYS = {"substeps": ("steps", "children"), "subplan_goal": ("goal",), "created_by": (), "depth_level": ()}
_NULLS = frozenset({"", "none", "null", "nil", "n/a", "na", "-", "undefined"})
_SMALLEST_ALIKE = 3
_ALIKE = 0.8
_MAX_WRAPPED = 4


def canonical(key: str) -> str:
    """Return the plan's name for a step's key, or the key's letters if it is not a step's."""
    plain_key = letters(key)
    return next((name for name, others in _STEP_KEYS.items() if plain_key in (letters(name), *others)), plain_key)


def normal_plan(value: Any, tools: Tools | None = None) -> tuple[Any, list[str]]:
    """Return the plan with normal names and types, and the keys that were dropped; everything else is unchanged.

    Wrappers, one-item lists and JSON written as text are unwrapped; keys are renamed, ids become text, a single id
    becomes a list, an agent without a tool becomes `llm`. What means nothing in a plan that has not run, such as
    statuses, is dropped.
    """
    dropped: list[str] = []
    found = _unwrapped(value)
    if not isinstance(found, dict):
        return found, dropped
    lists = [key for key in found if _is_steps(_as_value(found[key]))]
    if len(lists) == 1 and "steps" not in found:
        found = {"steps" if key == lists[0] else key: item for key, item in found.items()}
    plan = _keys(found, _PLAN_KEYS, dropped, "")
    steps = _as_list(plan.get("steps"))
    if isinstance(steps, list):
        plan["steps"] = [_step(step, tools or {}, dropped, f"steps[{n}]", 1) for n, step in enumerate(steps)]
        _number(plan["steps"])
    if isinstance(plan.get("goal"), (dict, list)) and len(plan["goal"]) == 1:
        (plan["goal"],) = plan["goal"].values() if isinstance(plan["goal"], dict) else plan["goal"]
    return in_sequence({key: plan[key] for key in ("goal", "steps") if not is_blank(plan.get(key))}), dropped


def in_sequence(value: Any) -> Any:
    """Return a flat plan in which a step that depends on its `parent` follows that step and is no part of it.

    A part ends before what it is part of, so it cannot need the result; small models take `parent` for the step before.
    Nor does a step need its own result.
    """
    steps = value.get("steps") if isinstance(value, dict) else None
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        return value
    parents: dict[str, Any] = {}
    made = []
    for step in steps:
        parent, needs = step.get("parent"), step.get("depends_on")
        while isinstance(parent, str) and parent in parents and isinstance(needs, list) and parent in needs:
            parent = parents[parent]
        step_id, changed = step.get("id"), {} if parent == step.get("parent") else {"parent": parent}
        if isinstance(needs, list) and step_id in needs:
            changed["depends_on"] = [needed for needed in needs if needed != step_id]
        made.append({**step, **changed})
        if isinstance(step_id, str):
            parents[step_id] = parent
    return value if made == steps else {**value, "steps": made}


def plan_rows(value: Any) -> list[dict[str, Any]]:
    """Return the steps of a normalized plan, each parent before its substeps, with its `parent`."""
    return list(_rows(value.get("steps"), None)) if isinstance(value, dict) else []


def _rows(steps: Any, parent: str | None) -> Iterator[dict[str, Any]]:
    for step in steps if isinstance(steps, list) else ():
        row = dict(step) if isinstance(step, dict) else {"description": step}
        subplan = row.pop("subplan", None)
        row["id"] = row.pop("step_id", row.get("id"))
        row.setdefault("parent", parent)
        yield {key: item for key, item in row.items() if not is_blank(item)}
        yield from _rows(subplan.get("substeps") if isinstance(subplan, dict) else None, row["id"])


def _unwrapped(value: Any) -> Any:
    """Return the object that has the steps, unwrapped from one-item lists, text, enclosing objects or a tool call."""
    around: dict[str, Any] = {}
    for _ in range(_MAX_WRAPPED):
        value = _as_value(value)
        if isinstance(value, list) and len(value) == 1 and not _is_step(value[0]):
            value = value[0]
        elif isinstance(value, list):
            return {**around, "steps": value} if any(map(_is_step, value)) else value
        elif isinstance(value, dict) and _has_steps(value):
            return {**around, **value} if "goal" not in value else value
        elif isinstance(value, dict):
            inner = [item for item in map(_as_value, value.values()) if _leads_to_steps(item)]
            if len(inner) != 1:
                break
            around |= {key: value[key] for key in value if letters(key) == "goal"}
            value = inner[0]
        else:
            break
    return value


def _as_value(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            return parse_json(value, unique_keys=True)
    return value


def _is_step(value: Any) -> bool:
    return isinstance(value, dict) and "description" in {canonical(key) for key in value} and not _has_steps(value)


def _has_steps(value: dict[str, Any]) -> bool:
    return any(letters(key) == "steps" or _is_steps(_as_value(value[key])) for key in value)


def _is_steps(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_step, value))


def _leads_to_steps(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict) or depth > _MAX_WRAPPED:
        return False
    return _has_steps(value) or any(_leads_to_steps(_as_value(item), depth + 1) for item in value.values())


def _keys(given: dict[str, Any], known: Mapping[str, tuple[str, ...]], dropped: list[str], path: str) -> dict[str, Any]:
    """Return an object with its keys renamed. Of several that mean the same, the one with the right name is kept."""
    best: dict[str, tuple[int, list[str]]] = {}
    for key in given:
        if (match := _match(key, known)) is not None:
            name, rank = match
            if name not in best or rank < best[name][0]:
                best[name] = (rank, [key])
            elif rank == best[name][0]:
                best[name][1].append(key)
    # Two aliases with different values: it is unknown which is meant.
    best_names = {
        keys[0]: name for name, (_, keys) in best.items() if all(given[key] == given[keys[0]] for key in keys)
    }
    dropped += [f"{path}.{key}".lstrip(".") for key in given if key not in best_names]
    return {best_names[key]: item for key, item in given.items() if key in best_names}


def _match(key: str, known: Mapping[str, tuple[str, ...]]) -> tuple[str, int] | None:
    if key in known:
        return key, 0
    plain_key = letters(key)
    for name in known:
        if plain_key == letters(name) or plain_key == letters(f"step_{name}"):
            return name, 1
    for name, others in known.items():
        if plain_key in others:
            return name, 2
    near = difflib.get_close_matches(plain_key, map(letters, known), n=1, cutoff=_ALIKE)
    if near and len(plain_key) >= _SMALLEST_ALIKE:
        return next(name for name in known if letters(name) == near[0]), 100
    return None


def _as_list(steps: Any) -> Any:
    """Return steps as a list, from a single step or from an object with their ids as keys."""
    steps = _as_value(steps)
    if isinstance(steps, list) and len(steps) == 1 and isinstance(steps[0], list):
        return steps[0]
    if not isinstance(steps, dict) or _is_step(steps):
        return [steps] if isinstance(steps, dict) else steps
    if not all(isinstance(step, (dict, str)) for step in steps.values()):
        return steps
    listed = ({"description": step} if isinstance(step, str) else step for step in steps.values())
    return [
        step if {"id", "step_id"} & step.keys() else {"id": key, **step}
        for key, step in zip(steps, listed, strict=True)
    ]


def _step(given: Any, tools: Tools, dropped: list[str], path: str, depth: int) -> Any:
    if isinstance(given, str):
        return {"description": given}
    if not isinstance(given, dict):
        return given
    left_out: list[str] = []
    names = [key for key in given if isinstance(given[key], str) and given[key] in tools]
    if len(names) == 1 and canonical(names[0]) == "description" and not any(canonical(key) == "tool" for key in given):
        given = {"tool" if key == names[0] else key: item for key, item in given.items()}
    step = _keys(given, _STEP_KEYS, left_out, path)
    _name_tool(step, tools)
    spread = [name.rpartition(".")[2] for name in left_out]
    if spread and "arguments" not in step and set(spread) <= set(tools.get(str(step.get("tool")), ())):
        step["arguments"], left_out = {name: given[name] for name in spread}, []
    dropped += left_out
    for name in ("id", "parent", "replaces", "description"):
        step[name] = _id(step.get(name))
    if isinstance(description := step.get("description"), list) and len(description) == 1:
        step["description"] = description[0]
    step["depends_on"] = _ids(step.get("depends_on"))
    step["arguments"] = loose_arguments(step.get("arguments"))
    if step.get("status", "pending") != "pending" or not is_blank(step.get("errors")):
        dropped.append(f"{path}.status")
    step |= {"status": None, "errors": None, "subplan": _subplan(step, tools, dropped, path, depth)}
    return {key: item for key, item in step.items() if not is_blank(item)}


def _name_tool(step: dict[str, Any], tools: Tools) -> None:
    """Normalize tool and agent: a call becomes its tool and arguments, a word for "none" becomes null."""
    tool = step.get("tool")
    if isinstance(tool, list) and len(tool) <= 1:
        tool = tool[0] if tool else None
    if isinstance(tool, dict):
        call = _keys(tool, {"name": ("tool", "toolname", "function"), "arguments": _STEP_KEYS["arguments"]}, [], "")
        tool = call.get("name", tool)
        if is_blank(step.get("arguments")) and "arguments" in call:
            step["arguments"] = call["arguments"]
    agent = step.get("agent")
    if isinstance(tool, str):
        if tool.strip().casefold() == "llm":
            tool, agent = None, "llm"
        elif tool.strip().casefold() in _NULLS:
            tool = None
        else:
            tool = tool.strip()
    if isinstance(agent, str) and tool is None and agent in tools:
        tool, agent = agent, None
    is_empty = is_blank(agent) or (isinstance(agent, str) and agent.strip().casefold() in _NULLS) or agent is False
    # There is only one agent; next to a tool, any other word for it means that the tool runs the step.
    is_llm = isinstance(agent, str) and agent.strip().casefold() == "llm"
    step["tool"] = tool
    step["agent"] = None if is_empty or (tool is not None and not is_llm) else "llm"


def _id(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return json.dumps(value)
    return None if isinstance(value, str) and value.strip().casefold() in _NULLS else value


def _ids(value: Any) -> Any:
    value = _as_value(value)
    if isinstance(value, (str, int, dict)):
        value = [part.strip() for part in value.split(",")] if isinstance(value, str) else [value]
    if not isinstance(value, list):
        return value
    ids = [_id(next(iter(item.values()))) if isinstance(item, dict) and len(item) == 1 else _id(item) for item in value]
    return [item for item in ids if item is not None]


_SIGNS = " \t\r\n\"'{}[],"


def loose_arguments(value: Any) -> Any:
    """Return the arguments in a value: their object, also from text that is nearly JSON, else the value itself."""
    value = _as_value(value)
    if isinstance(value, str) and len(found := list(values_in(value))) == 1:
        # Such as {'text': 'Hello'}, or an object and the quote and brackets that should have ended its string.
        start, end, made = found[0]
        value = made if isinstance(made, dict) and not (value[:start] + value[end:]).strip(_SIGNS) else value
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and "value" not in value[0]:
        return value[0]
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        pairs = [(item.get("name", item.get("key")), item.get("value")) for item in value if "value" in item]
        if len(pairs) == len(value) and all(isinstance(name, str) for name, _ in pairs):
            return dict(pairs)
    return None if isinstance(value, str) and value.strip().casefold() in _NULLS else value


def _subplan(step: dict[str, Any], tools: Tools, dropped: list[str], path: str, depth: int) -> Any:
    subplan = _as_value(step.get("subplan"))
    if isinstance(subplan, list):
        subplan = {"substeps": subplan}
    if not isinstance(subplan, dict) or not subplan:
        return subplan
    made = _keys(subplan, {**_SUBPLAN_KEYS, "parent_step_id": ()}, dropped, f"{path}.subplan")
    substeps = _as_list(made.get("substeps"))
    if not isinstance(substeps, list) or not substeps:
        return None if is_blank(substeps) else made
    inner = f"{path}.subplan.substeps"
    made["substeps"] = [_step(part, tools, dropped, f"{inner}[{n}]", depth + 1) for n, part in enumerate(substeps)]
    goal = made.get("subplan_goal")
    made |= {"parent_step_id": step.get("id"), "depth_level": depth}
    made["subplan_goal"] = goal if isinstance(goal, str) and goal.strip() else step.get("description")
    return made


def _fill_ids(steps: list[Any]) -> None:
    """Give a step without an id the only one that fits its neighbours: s2 between s1 and s3."""
    if not all(isinstance(step, dict) and "subplan" not in step for step in steps):
        return
    given = [(number, step["id"]) for number, step in enumerate(steps, 1) if isinstance(step.get("id"), str)]
    stems = {name.removesuffix(str(number)) for number, name in given if name.endswith(str(number))}
    if len(given) > 1 and len(stems) == 1 and all(name == f"{next(iter(stems))}{number}" for number, name in given):
        for number, step in enumerate(steps, 1):
            step.setdefault("id", f"{next(iter(stems))}{number}")


def _number(steps: list[Any]) -> None:
    """Give the steps the id key of their form, and ids that others refer to."""
    nested = any(isinstance(step, dict) and "subplan" in step for step in steps)
    _fill_ids(steps)
    ids = {row["id"] for row in plan_rows({"steps": steps}) if isinstance(row.get("id"), str)}
    numbers = {"".join(filter(str.isdigit, name)): name for name in sorted(ids)}
    stack = list(steps)
    while stack:
        step = stack.pop()
        if not isinstance(step, dict):
            continue
        for name in ("depends_on", "parent"):
            listed = step.get(name)
            if isinstance(listed, list) and all(isinstance(item, str) for item in listed):
                step[name] = [item if item in ids else numbers.get(item, item) for item in listed]
            elif isinstance(listed, str) and listed not in ids:
                step[name] = numbers.get(listed, listed)
        if nested and "id" in step:
            step["step_id"] = step.pop("id")
        if isinstance(subplan := step.get("subplan"), dict) and isinstance(subplan.get("substeps"), list):
            stack += subplan["substeps"]


def step_row(value: Any) -> tuple[dict[str, Any], int]:
    """Return the single step in a reply, whatever surrounds it, as a row of a plan, and the number of steps."""
    for _ in range(_MAX_WRAPPED):
        inner = [item for item in value.values() if isinstance(item, dict)] if isinstance(value, dict) else []
        if len(inner) != 1 or "tool" in value or "description" in {canonical(key) for key in value}:
            break
        value = inner[0]
    if isinstance(value, dict) and not _has_steps(value):
        value = {"goal": "repair", "steps": [value]}
    rows = plan_rows(normal_plan(value)[0])
    return (rows[0] if rows else {}), len(rows)
