"""A plan as a tree of plain data that can be edited: places, ids, dependencies (adaptive FR-010, FR-015)."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.json_safe import MAX_DEPTH
from aeon_core.plan import end_of_chain
from aeon_core.plan.forms import loose_arguments
from aeon_core.plan.parsing import FLAT_FIELDS, STEP_FIELDS, dump_plan, parse_plan, shown

Node = dict[str, Any]


class Tree:
    """The steps of a dumped plan. Edits are made in place; every method sees the current tree."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def steps(self) -> list[Node]:
        """The steps at the top."""
        top: list[Node] = self.data["steps"]
        return top

    def walk(self) -> Iterator[Node]:
        """Yield every step, each parent before its substeps."""
        for node in self.steps:
            yield from subtree(node)

    def find(self, step_id: str | None) -> Node | None:
        """Return the step with that id, or None."""
        return next((node for node in self.walk() if node["step_id"] == step_id), None)

    def ancestors(self, step_id: str) -> list[Node]:
        """Return the steps that enclose a step, nearest first."""
        parents = {part["step_id"]: node for node in self.walk() for part in substeps(node)}
        found: list[Node] = []
        while step_id in parents:
            found.append(parents[step_id])
            step_id = found[-1]["step_id"]
        return found

    def siblings(self, step_id: str) -> tuple[list[Node], int]:
        """Return the list that holds a step, and its index."""
        around = self.ancestors(step_id)
        listed = substeps(around[0]) if around else self.steps
        return listed, next(place for place, node in enumerate(listed) if node["step_id"] == step_id)

    def insert_after(self, step_id: str, nodes: list[Node]) -> None:
        """Insert steps right after a step."""
        siblings, place = self.siblings(step_id)
        siblings[place + 1 : place + 1] = nodes

    def ids(self) -> set[str]:
        """Return every step_id."""
        return {node["step_id"] for node in self.walk()}

    def depth_below(self, node: Node | None) -> int:
        """Return the depth_level that a subplan of the step has, or would have; 0 for the top."""
        return 0 if node is None else len(self.ancestors(node["step_id"])) + 1

    def first_replaced(self, step_id: str) -> str:
        """Return the first step in the chain that a step replaces: the fragment it belongs to."""
        return end_of_chain(step_id, {node["step_id"]: node["replaces"] for node in self.walk() if "replaces" in node})

    def replacements(self) -> dict[str, str]:
        """Return the replacement of each replaced invalid step, by the step_id of the latter."""
        invalid = {node["step_id"] for node in self.walk() if node["status"] == "invalid"}
        return {node["replaces"]: node["step_id"] for node in self.walk() if node.get("replaces") in invalid}

    def follow_replacements(self) -> None:
        """Make pending steps depend on the last replacements of invalid steps."""
        by = self.replacements()
        for node in self.walk():
            if node["status"] == "pending" and "depends_on" in node:
                node["depends_on"] = list(dict.fromkeys(end_of_chain(needed, by) for needed in node["depends_on"]))

    def broken_dependencies(self) -> set[tuple[str, str]]:
        """Return each dependency of a pending step on a step that is unknown or does not end before it."""
        order = {step_id: place for place, step_id in enumerate(_in_order_of_completion(self.steps))}
        return {
            (node["step_id"], needed)
            for node in self.walk()
            if node["status"] == "pending"
            for needed in node.get("depends_on", ())
            if order.get(needed, len(order)) >= order[node["step_id"]]
        }

    def set_depths(self) -> int:
        """Set every subplan's depth_level by its position; return the deepest."""
        deepest = 0
        level = self.steps
        while level := [node for node in level if "subplan" in node]:
            deepest += 1
            for node in level:
                node["subplan"]["depth_level"] = deepest
            level = [part for node in level for part in substeps(node)]
        return deepest


def _in_order_of_completion(nodes: list[Node]) -> Iterator[str]:
    for node in nodes:
        yield from _in_order_of_completion(substeps(node))
        yield node["step_id"]


def substeps(node: Node) -> list[Node]:
    """Return the substeps of a step, the list itself."""
    found: list[Node] = node["subplan"]["substeps"] if "subplan" in node else []
    return found


def subtree(node: Node) -> Iterator[Node]:
    """Yield a step and everything under it."""
    stack = [node]
    while stack:
        yield stack[-1]
        stack.extend(reversed(substeps(stack.pop())))


def executed(node: Node) -> bool:
    """Return whether a step has run."""
    return node["status"] in ("complete", "failed", "invalid")


def fresh_id(wanted: str, used: set[str]) -> str:
    """Return the id itself, or the first free one with a number appended."""
    number, step_id = 2, wanted
    while step_id in used:
        step_id = f"{wanted}-{number}"
        number += 1
    return step_id


DEFINITION = ("description", "tool", "agent", "arguments", "depends_on")
"""The fields of a step that say what it does."""
CREATED_BY = "recursive_planner"
_MANY_STEPS = ("steps", "substeps", "new_steps")
_ONE_STEP = ("step", "new_step", "replacement", "replaced_by", "replacing_step")
_STEP_KEYS = frozenset((*STEP_FIELDS, *FLAT_FIELDS))
_PLACE = ("after", "before", "parent_step_id", "subplan_goal", "depth_level", "created_by", "goal")
"""Keys next to a step's fields that say where it goes or describe its subplan."""
_READ = frozenset((*_ONE_STEP, *_MANY_STEPS, *_STEP_KEYS, *_PLACE, "text"))


class TooDeep(Exception):
    """Steps nest deeper than a plan may."""


class UnusableChanges(Exception):
    """Changes that cannot be applied; the message says why."""


def steps_of(changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the steps in changes, as written; none if there are none. Raises Unusable."""
    for key in _MANY_STEPS:
        if changes.get(key) is not None:
            return _objects(changes[key], key)
    for key in _ONE_STEP:
        if isinstance(changes.get(key), dict):
            return [changes[key]]
    subplan = changes.get("subplan")
    if subplan is not None and "description" not in changes:
        return steps_of(subplan) if isinstance(subplan, dict) else _objects(subplan, "subplan")
    if "description" in changes or ("text" not in changes and not _STEP_KEYS.isdisjoint(changes)):
        return [{key: value for key, value in changes.items() if key not in _PLACE}]
    return []


def _objects(value: Any, key: str) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise UnusableChanges(f"changes.{key}: expected an array of steps, got {shown(value)}")
    return value


def ignored_in(changes: Mapping[str, Any]) -> list[str]:
    """Return the keys of changes that describe neither a step nor its place, which nothing reads."""
    return [key for key in changes if key not in _READ]


def stated_id(step: Mapping[str, Any]) -> str | None:
    """Return the id written in a step, or None."""
    given = step["step_id"] if step.get("step_id") is not None else step.get("id")
    return given if isinstance(given, str) and given.strip() else None


def new_steps(raw: list[dict[str, Any]], tree: Tree, *, prefix: str, nesting: int, depth: int) -> list[Node]:
    """Return steps for the tree from what a model wrote, nested or flat, `depth` subplans deep; all pending.

    A missing id is made from `prefix`, a used one gets a number; dependencies inside the fragment follow. Raises
    Unusable if a step is invalid, TooDeep beyond `nesting` levels.
    """
    if not raw:
        raise UnusableChanges("changes: expected at least one step")
    inside = {stated_id(step) for step in raw} - {None}
    counter = itertools.count(1)
    steps = [_completed(step, prefix, counter, 0) for step in raw]
    for step in steps:
        if not isinstance(parent := step.get("parent"), str) or parent not in inside:
            # Its parent is outside the fragment: the place that the fragment gets.
            step.pop("parent", None)
    if any("subplan" in step for step in steps):
        steps = list(map(_nested_form, steps))
    nodes = _parsed(steps, too_deep=nesting - depth)
    _own_ids(nodes, tree)
    for node in nodes:
        for each in subtree(node):
            each.pop("replaces", None)
            each.pop("errors", None)
            if "subplan" in each:
                each["subplan"]["created_by"] = CREATED_BY
    return nodes


def subplan_of(step_id: str, goal: str, nodes: list[Node], created_by: str = CREATED_BY) -> dict[str, Any]:
    """Return the subplan of a step; its depth_level follows from its place."""
    return {"parent_step_id": step_id, "subplan_goal": goal, "substeps": nodes, "created_by": created_by}


def _completed(step: dict[str, Any], prefix: str, counter: Iterator[int], depth: int) -> dict[str, Any]:
    """Return a step with what a model may leave out: its id, and its subplan's position."""
    if depth > MAX_DEPTH:
        raise TooDeep
    made = {key: value for key, value in step.items() if value is not None}
    if isinstance(arguments := loose_arguments(made.get("arguments_json")), dict) and "arguments" not in made:
        del made["arguments_json"]
        made["arguments"] = arguments
    if stated_id(made) is None:
        made.pop("id", None)
        made["step_id"] = f"{prefix}.{next(counter)}"
    subplan = made.get("subplan")
    if isinstance(subplan, list):
        subplan = {"substeps": subplan}
    if isinstance(subplan, dict):
        parts = subplan.get("substeps", subplan.get("steps"))
        made["subplan"] = {
            "parent_step_id": stated_id(made),
            "subplan_goal": subplan.get("subplan_goal", made.get("description")),
            "substeps": [
                _nested_form(_completed(part, prefix, counter, depth + 1)) if isinstance(part, dict) else part
                for part in (parts if isinstance(parts, list) else [])
            ],
        }
    return made


def _nested_form(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step with PlanStep's names, for a fragment that has subplans."""
    if "id" not in step or "step_id" in step or "parent" in step:
        return step
    return {"step_id": step["id"], **{key: value for key, value in step.items() if key != "id"}}


def _parsed(steps: list[dict[str, Any]], too_deep: int) -> list[Node]:
    """Return steps in the form of a plan. Raises Unusable, and TooDeep if more subplans are in one another."""
    try:
        plan = parse_plan({"goal": "fragment", "steps": steps})
    except ValidationError as error:
        raise UnusableChanges(str(error.context["problems"][0])) from None
    nodes: list[Node] = dump_plan(plan)["steps"]
    if plan.cut or max(map(_height, nodes)) > too_deep:
        raise TooDeep
    return nodes


def _height(node: Node) -> int:
    return 1 + max(map(_height, substeps(node))) if substeps(node) else 0


def _own_ids(nodes: list[Node], tree: Tree) -> None:
    """Give each step whose id is already used another one, and update what depends on it inside the fragment."""
    used = tree.ids()
    everything = [each for node in nodes for each in subtree(node)]
    reserved = used | {each["step_id"] for each in everything}
    renamed: dict[str, str] = {}
    for each in everything:
        if each["step_id"] in used:
            renamed[each["step_id"]] = fresh_id(each["step_id"], reserved)
            reserved.add(renamed[each["step_id"]])
    for each in everything:
        each["step_id"] = renamed.get(each["step_id"], each["step_id"])
        if "subplan" in each:
            each["subplan"]["parent_step_id"] = each["step_id"]
        if "depends_on" in each:
            each["depends_on"] = [renamed.get(needed, needed) for needed in each["depends_on"]]


def rewritten(node: Node, changes: Mapping[str, Any]) -> Node:
    """Return a copy of a step with the definition that changes give it; omitted and null fields stay.

    A given tool replaces the agent and vice versa; another tool's arguments are dropped. The step_id stays. Raises
    Unusable.
    """
    given = {key: value for key, value in changes.items() if value is not None}
    if isinstance(given.get("text"), str) and "description" not in given:
        given["description"] = given.pop("text")
    _refuse_what_stays(node, given)
    definition = {key: given[key] for key in DEFINITION if key in given}
    if "arguments_json" in given:
        definition["arguments"] = arguments = loose_arguments(given["arguments_json"])
        if not isinstance(arguments, dict):
            raise UnusableChanges("changes.arguments_json: expected a JSON object written as a string")
    if not definition:
        raise UnusableChanges(
            f"changes: expected a new description, tool, agent, arguments or depends_on, got {shown(changes)}"
        )
    made = {key: node[key] for key in ("step_id", *DEFINITION) if key in node}
    if definition.get("tool", made.get("tool")) != made.get("tool") or (
        "agent" in definition and "tool" not in definition
    ):
        made.pop("arguments", None)
    if "tool" in definition:
        made.pop("agent", None)
    elif "agent" in definition:
        made.pop("tool", None)
    (read,) = _parsed([{**made, **definition}], too_deep=0)
    return {**read, **{key: copy.deepcopy(node[key]) for key in ("status", "replaces", "subplan") if key in node}}


def _refuse_what_stays(node: Node, given: Mapping[str, Any]) -> None:
    unknown = [key for key in given if key not in _STEP_KEYS and key not in _PLACE]
    if unknown:
        raise UnusableChanges(f"changes: unknown key {shown(unknown[0])}, expected the fields of a step")
    if (step_id := stated_id(given)) is not None and step_id != node["step_id"]:
        raise UnusableChanges(f"changes.step_id: expected {shown(node['step_id'])}, ids stay; got {shown(step_id)}")
    if given.get("status", "pending") != "pending":
        raise UnusableChanges(f"changes.status: expected 'pending', got {shown(given['status'])}")
