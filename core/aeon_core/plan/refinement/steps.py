"""Reading the steps that a refinement brings: any form a plan may have, sound, declarative, with ids of their own."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.json_safe import MAX_DEPTH, NotJsonSafeError, json_safe
from aeon_core.plan.parsing import FLAT_FIELDS, STEP_FIELDS, arguments_in, dump_plan, parse_plan, shown
from aeon_core.plan.refinement.tree import Node, Tree, fresh_id, substeps, subtree

CREATED_BY = "recursive_planner"
_ONE_STEP = ("step", "new_step", "replacement", "replaced_by", "replacing_step")
_MANY_STEPS = ("steps", "substeps", "new_steps")
_STEP_KEYS = frozenset((*STEP_FIELDS, *FLAT_FIELDS))
_DEFINITION = ("description", "tool", "agent", "arguments", "arguments_json", "depends_on")
_FOREIGN = ("after", "before", "parent_step_id", "subplan_goal", "depth_level", "created_by", "goal")
_READ = frozenset((*_ONE_STEP, *_MANY_STEPS, *_STEP_KEYS, *_FOREIGN, "text"))


class TooDeep(Exception):
    """A fragment nests deeper than a plan may."""


class Unusable(Exception):
    """Changes that say nothing that can be done; the message says why."""


def steps_of(changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the steps that changes hold, as they are written; none where there are none. Raises Unusable."""
    for key in _MANY_STEPS:
        if changes.get(key) is not None:
            return _objects(changes[key], key)
    for key in _ONE_STEP:
        if isinstance(changes.get(key), dict):
            return [changes[key]]
    subplan = changes.get("subplan")
    if isinstance(subplan, dict) and "description" not in changes:
        return steps_of(subplan)
    if subplan is not None and "description" not in changes:
        return _objects(subplan, "subplan")
    if "description" in changes or (set(changes) & _STEP_KEYS and not set(changes) & {"text"}):
        return [{key: value for key, value in changes.items() if key not in _FOREIGN}]
    return []


def _objects(value: Any, key: str) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Unusable(f"changes.{key}: expected an array of steps, got {shown(value)}")
    return value


def new_steps(raw: list[dict[str, Any]], tree: Tree, *, prefix: str, nesting: int, depth: int) -> list[Node]:
    """Return steps for the tree out of what a model wrote, nested or flat, `depth` subplans deep; all pending.

    A missing id is made of `prefix`, a taken one gets a number; dependencies inside the fragment follow. Raises
    Unusable where a step is not sound, TooDeep beyond `nesting` levels.
    """
    inside = {step_id for step in raw if (step_id := stated_id(step)) is not None}
    counter = itertools.count(1)
    steps = [_completed(_without_outer_parent(step, inside), prefix, counter, 0) for step in raw]
    if any("subplan" in step for step in steps):
        steps = [_nested_form(step) for step in steps]
    if depth + _nesting(steps) > nesting:
        raise TooDeep
    if not steps:
        raise Unusable("changes: expected at least one step")
    try:
        nodes: list[Node] = dump_plan(parse_plan({"goal": "fragment", "steps": steps}))["steps"]
    except ValidationError as error:
        raise Unusable(str(error.context["problems"][0])) from None
    if depth + max(map(_height, nodes)) > nesting:
        raise TooDeep
    _own_ids(nodes, tree)
    for node in nodes:
        for each in subtree(node):
            each.pop("replaces", None)
            each.pop("errors", None)
            if "subplan" in each:
                each["subplan"]["created_by"] = CREATED_BY
    return nodes


def subplan_of(step_id: str, goal: str, nodes: list[Node]) -> dict[str, Any]:
    """Return the subplan of a step, as this planner makes it; its depth_level follows from its place."""
    return {"parent_step_id": step_id, "subplan_goal": goal, "substeps": nodes, "created_by": CREATED_BY}


def ignored_in(changes: Mapping[str, Any]) -> list[str]:
    """Return the keys of changes that say nothing of a step or of its place, and that nothing reads."""
    return [key for key in changes if key not in _READ]


def stated_id(step: Mapping[str, Any]) -> str | None:
    """Return the id that a step is written with, or None."""
    given = step["step_id"] if step.get("step_id") is not None else step.get("id")
    return given if isinstance(given, str) and given.strip() else None


def _without_outer_parent(step: dict[str, Any], inside: set[str]) -> dict[str, Any]:
    parent = step.get("parent")
    if "parent" not in step or (isinstance(parent, str) and parent in inside):
        return step
    return {**step, "parent": None}


def _nested_form(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step under the names of PlanStep, as a fragment that holds subplans takes it."""
    if "id" not in step or "step_id" in step or "parent" in step:
        return step
    return {"step_id": step["id"], **{key: value for key, value in step.items() if key != "id"}}


def _completed(step: dict[str, Any], prefix: str, counter: Iterator[int], depth: int) -> dict[str, Any]:
    """Return a step with what a model may leave out: its id, and what a subplan says of its place."""
    if depth > MAX_DEPTH:
        raise TooDeep
    made = {key: value for key, value in step.items() if value is not None}
    if isinstance(arguments := arguments_in(made.get("arguments_json")), dict) and "arguments" not in made:
        del made["arguments_json"]
        made["arguments"] = arguments
    if stated_id(made) is None:
        made.pop("id", None)
        made["step_id"] = f"{prefix}.{next(counter)}"
    subplan = made.get("subplan")
    if isinstance(subplan, list):
        subplan = {"substeps": subplan}
    if isinstance(subplan, dict):
        children = subplan.get("substeps", subplan.get("steps"))
        listed = children if isinstance(children, list) else []
        made["subplan"] = {
            "parent_step_id": stated_id(made),
            "subplan_goal": subplan.get("subplan_goal", made.get("description")),
            "substeps": [
                _nested_form(_completed(child, prefix, counter, depth + 1)) if isinstance(child, dict) else child
                for child in listed
            ],
        }
    return made


def _nesting(steps: list[Any]) -> int:
    """Return how many subplans steps are deep, nested or flat, as they are written."""
    parents = {stated_id(step): step.get("parent") for step in steps if step.get("parent") is not None}
    return max([_nested(steps), *(_above(step_id, parents) for step_id in parents)])


def _above(step_id: Any, parents: Mapping[Any, Any]) -> int:
    count = 0
    while isinstance(step_id, str) and step_id in parents and count <= len(parents):
        step_id, count = parents[step_id], count + 1
    return count if count <= len(parents) else 0


def _nested(steps: list[Any]) -> int:
    depth, level = 0, steps
    while True:
        level = [
            child
            for step in level
            if isinstance(step, dict) and isinstance(step.get("subplan"), dict)
            for child in step["subplan"]["substeps"]
        ]
        if not level:
            return depth
        depth += 1


def _height(node: Node) -> int:
    return 1 + max(map(_height, substeps(node))) if substeps(node) else 0


def _own_ids(nodes: list[Node], tree: Tree) -> None:
    taken = tree.ids()
    renamed: dict[str, str] = {}
    everything = [each for node in nodes for each in subtree(node)]
    reserved = taken | {each["step_id"] for each in everything}
    for each in everything:
        if each["step_id"] in taken:
            renamed[each["step_id"]] = fresh_id(each["step_id"], reserved)
            reserved.add(renamed[each["step_id"]])
    for each in everything:
        each["step_id"] = renamed.get(each["step_id"], each["step_id"])
        if "subplan" in each:
            each["subplan"]["parent_step_id"] = each["step_id"]
        if "depends_on" in each:
            each["depends_on"] = [renamed.get(needed, needed) for needed in each["depends_on"]]


def rewritten(node: Node, changes: Mapping[str, Any]) -> Node:
    """Return a copy of a step with the definition that changes give it; what they leave out or give as null stays.

    A tool given takes the place of the agent and the other way round; arguments of another tool go with it. The
    step_id stays. Raises Unusable.
    """
    given = {key: value for key, value in changes.items() if value is not None}
    if isinstance(given.get("text"), str) and "description" not in given:
        given["description"] = given.pop("text")
    _refuse_what_stays(node, given)
    definition = {key: given[key] for key in _DEFINITION if key in given}
    if not definition:
        raise Unusable(
            f"changes: expected a new description, tool, agent, arguments or depends_on, got {shown(changes)}"
        )
    if "arguments_json" in definition:
        definition["arguments"] = arguments = arguments_in(definition.pop("arguments_json"))
        if not isinstance(arguments, dict):
            raise Unusable("changes.arguments_json: expected a JSON object written as a string")
    made = {key: value for key, value in copy.deepcopy(node).items() if key not in ("subplan", "errors")}
    if definition.get("tool", made.get("tool")) != made.get("tool") or (
        "agent" in definition and "tool" not in definition
    ):
        made.pop("arguments", None)
    if "tool" in definition:
        made.pop("agent", None)
    elif "agent" in definition:
        made.pop("tool", None)
    made |= definition
    return _sound(made, node)


def _refuse_what_stays(node: Node, given: Mapping[str, Any]) -> None:
    unknown = [key for key in given if key not in _STEP_KEYS and key not in _FOREIGN]
    if unknown:
        raise Unusable(f"changes: unknown key {shown(unknown[0])}, expected the fields of a step")
    if (step_id := stated_id(given)) is not None and step_id != node["step_id"]:
        raise Unusable(f"changes.step_id: expected {shown(node['step_id'])}, ids stay; got {shown(step_id)}")
    if given.get("status", "pending") != "pending":
        raise Unusable(f"changes.status: expected 'pending', got {shown(given['status'])}")


def _sound(made: Node, node: Node) -> Node:
    """Return the step as a plan takes it, with the subplan of the original. Raises Unusable."""
    place = {"status": made.pop("status"), "replaces": made.pop("replaces", None)}
    try:
        json_safe(made)
        (read,) = dump_plan(parse_plan({"goal": "fragment", "steps": [made]}))["steps"]
    except ValidationError as error:
        raise Unusable(str(error.context["problems"][0])) from None
    except NotJsonSafeError as error:
        raise Unusable(f"changes: {error}") from None
    step: Node = {**read, "step_id": node["step_id"], "status": place["status"]}
    if place["replaces"] is not None:
        step["replaces"] = place["replaces"]
    if "subplan" in node:
        step["subplan"] = copy.deepcopy(node["subplan"])
    return step
