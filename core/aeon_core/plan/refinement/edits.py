"""What each type of refinement action does to the tree of a plan (adaptive: Refinement Action)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aeon_core.plan.fields import shown
from aeon_core.plan.refinement.actions import PLAN, RefinementAction
from aeon_core.plan.refinement.additions import added_to, place_for, put
from aeon_core.plan.refinement.expansion import DEFINITION, asks_for_answer, replaces_in
from aeon_core.plan.refinement.replacements import last_stand_in, replace_executed
from aeon_core.plan.refinement.steps import (
    TooDeep,
    Unusable,
    new_steps,
    rewritten,
    stated_id,
    steps_of,
    subplan_of,
)
from aeon_core.plan.refinement.tree import Node, Tree, executed, fresh_id, substeps, subtree


@dataclass
class Edit:
    """A change of a tree that can be made, and what it touches once it was."""

    fragment: str
    """The step that the attempt counts for, or PLAN."""
    change: Callable[[Edit, Tree], None]
    touched: set[str] = field(default_factory=set)
    """Pending steps with a new definition."""
    before: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    replaced: dict[str, str] = field(default_factory=dict)
    done: str = ""

    def make(self, tree: Tree) -> None:
        """Change the tree. Raises Unusable, TooDeep."""
        self.change(self, tree)


def edit_for(action: RefinementAction, tree: Tree, nesting: int) -> Edit:
    """Return the change that an action asks for. Raises Unusable where its target is not there or may not change."""
    if asks_for_answer(action):
        return _answer_again(tree)
    if action.type == "plan_update":
        if not steps_of(action.changes):
            raise Unusable("changes: expected 'steps'; a refinement keeps the goal")
        raise Unusable("changes: nothing would change; a step that is complete stays, unless it is marked invalid")
    if action.type == "step_add":
        return _add(action, tree, nesting)
    node = tree.find(action.target)
    if node is None:
        raise Unusable(f"target: no step of the plan has the id {shown(action.target)}")
    if node["status"] == "invalid":
        return edit_for(_on_stand_in(action, tree), tree, nesting)
    if (around := [each for each in tree.ancestors(action.target) if each["status"] == "invalid"]) and executed(node):
        raise Unusable(f"step {shown(action.target)} is a part of {shown(around[0]['step_id'])}, which was replaced")
    if node["status"] == "running":
        raise Unusable(f"step {shown(action.target)} is running")
    if action.type == "step_remove":
        return _remove(node)
    if executed(node):
        return _replace(action, node, nesting)
    if action.type == "step_mark_invalid":
        raise Unusable(f"step {shown(action.target)} has not run; modify or remove it instead")
    return _subplan(action, node, nesting) if action.type == "subplan_create" else _modify(action, node, nesting)


def _on_stand_in(action: RefinementAction, tree: Tree) -> RefinementAction:
    """Return an action on an invalid step as one on the step that stands in for it and is still to run.

    An earlier action of the same reply may have replaced both. Raises Unusable where there is none, or nothing new.
    """
    stand_in = tree.find(last_stand_in(tree, action.target))
    steps = steps_of(action.changes)
    if not action.changes or action.type == "step_remove" or stand_in is None or stand_in["status"] != "pending":
        raise Unusable(f"step {shown(action.target)} is invalid already, another step stands in for it")
    target = stand_in["step_id"]
    kind = "subplan_create" if action.type == "subplan_create" else "step_modify"
    first = steps[0] if steps and kind == "step_modify" else None
    own = next((each for each in steps if stated_id(each) == action.target), first)
    renamed = [{**each, "id": None, "step_id": target} if each is own else each for each in steps]
    changes = {"steps": renamed} if steps else action.changes
    return action.model_copy(update={"type": kind, "target": target, "changes": changes})


def _answer_again(tree: Tree) -> Edit:
    """Return the change that changes no step: that it is accepted is what makes the next pass answer once more."""
    if not any(executed(node) for node, _ in tree.walk()):
        raise Unusable("no step has run, so that there is no answer to give again")

    def change(edit: Edit, _: Tree) -> None:
        edit.done = "the steps stay, the task is answered again"

    return Edit(PLAN, change)


def _add(action: RefinementAction, tree: Tree, nesting: int) -> Edit:
    raw = steps_of(action.changes)
    if not raw:
        raise Unusable("changes: expected the step to add")
    replaced = replaces_in(action)
    if replaced is not None and (node := tree.find(replaced)) is not None and executed(node):
        if node["status"] == "invalid":
            raise Unusable(f"step {shown(replaced)} is invalid already, another step stands in for it")
        return _replace(action, node, nesting)
    first = stated_id(raw[0]) or fresh_id("new", tree.ids())
    raw = [{**raw[0], "id": None, "step_id": first}, *raw[1:]]

    def change(edit: Edit, tree: Tree) -> None:
        parent, anchor = place_for(action, raw, tree)
        depth = tree.depth_below(parent["step_id"] if parent is not None else None)
        nodes = new_steps(raw, tree, prefix=first, nesting=nesting, depth=depth)
        put(tree, nodes, parent, anchor)
        _note(edit, nodes)
        edit.done = f"added {', '.join(node['step_id'] for node in nodes)}"

    return Edit(added_to(action, tree), change)


def _remove(node: Node) -> Edit:
    step_id = node["step_id"]
    if any(executed(each) for each in subtree(node)):
        raise Unusable(f"step {shown(step_id)} was executed, or a part of it; what was executed stays")
    if "replaces" in node:
        raise Unusable(f"step {shown(step_id)} stands in for the invalid step {shown(node['replaces'])}")

    def change(edit: Edit, tree: Tree) -> None:
        siblings = tree.siblings(step_id)
        if len(siblings) == 1:
            raise Unusable(f"step {shown(step_id)} is the only one there; a plan and a subplan keep at least one step")
        siblings[:] = [each for each in siblings if each["step_id"] != step_id]
        edit.before = {step_id}
        edit.done = f"removed {step_id}"

    return Edit(step_id, change)


def _modify(action: RefinementAction, node: Node, nesting: int) -> Edit:
    step_id = node["step_id"]
    own, parts = _definition_and_parts(action, step_id)

    def change(edit: Edit, tree: Tree) -> None:
        target = _target(tree, step_id)
        made = rewritten(target, own) if own is not None else dict(target)
        target.clear()
        target.update(made)
        edit.before, edit.shown, edit.touched = {step_id}, {step_id}, {step_id}
        if parts:
            _expand(edit, tree, target, parts, nesting)
        edit.done = f"rewrote {step_id}"

    return Edit(step_id, change)


def _subplan(action: RefinementAction, node: Node, nesting: int) -> Edit:
    step_id = node["step_id"]
    raw = [step for step in steps_of(action.changes) if stated_id(step) != step_id]

    def change(edit: Edit, tree: Tree) -> None:
        target = _target(tree, step_id)
        if any(executed(each) for each in subtree(target)):
            raise Unusable(f"step {shown(step_id)} has substeps that were executed; what was executed stays")
        edit.before, edit.shown, edit.touched = {step_id}, {step_id}, {step_id}
        _expand(edit, tree, target, raw, nesting)
        goal = action.changes.get("subplan_goal")
        if isinstance(goal, str) and goal.strip():
            target["subplan"]["subplan_goal"] = goal
        edit.done = f"expanded {step_id} into {_counted(substeps(target))}"

    return Edit(step_id, change)


def _expand(edit: Edit, tree: Tree, target: Node, raw: list[dict[str, Any]], nesting: int) -> None:
    depth = tree.depth_below(target["step_id"])
    if depth > nesting:
        raise TooDeep
    target.pop("subplan", None)
    nodes = new_steps(raw, tree, prefix=target["step_id"], nesting=nesting, depth=depth)
    target["subplan"] = subplan_of(target["step_id"], target["description"], nodes)
    edit.touched |= {each["step_id"] for node in nodes for each in subtree(node)}


def _replace(action: RefinementAction, node: Node, nesting: int) -> Edit:
    """Return the change for an executed step: it becomes invalid, the step of the action stands in for it."""
    step_id = node["step_id"]
    own, parts = _definition_and_parts(action, step_id)

    def change(edit: Edit, tree: Tree) -> None:
        target = _target(tree, step_id)
        wanted = stated_id(own) if own is not None else None
        definition = {key: value for key, value in (own or {}).items() if key not in ("id", "step_id", "replaces")}
        fields = {key: value for key, value in definition.items() if value is not None and key != "parent"}
        made = rewritten(target, fields) if fields else target
        new = {key: copy.deepcopy(made[key]) for key in DEFINITION if key in made}
        depth = tree.depth_below(step_id)
        inner = new_steps(parts, tree, prefix=wanted or step_id, nesting=nesting, depth=depth) if parts else None
        edit.replaced = replace_executed(tree, step_id, new, inner, wanted)
        edit.before = {step_id}
        edit.shown = set(edit.replaced.values())
        edit.touched = {edit.replaced[step_id]} if fields else set()
        edit.touched |= {each["step_id"] for part in inner or () for each in subtree(part)}
        pairs = ", ".join(f"{old} by {new}" for old, new in edit.replaced.items())
        edit.done = f"executed steps are invalid and replaced: {pairs}"

    return Edit(step_id, change)


def _definition_and_parts(action: RefinementAction, step_id: str) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the new definition that changes give a step, and its new substeps as they are written. Raises Unusable."""
    steps = steps_of(action.changes)
    if action.type == "subplan_create":
        return None, [step for step in steps if stated_id(step) != step_id]
    if not steps:
        said = {key: value for key, value in action.changes.items() if key == "text"}
        if not said and action.type == "step_modify":
            raise Unusable("changes: expected a new description, tool, agent, arguments or depends_on")
        return (said or None), []
    own = next((step for step in steps if stated_id(step) == step_id), steps[0])
    parts = [step for step in steps if step is not own]
    subplan = own.get("subplan")
    if subplan is not None and not parts:
        parts = steps_of({"subplan": subplan})
    own = {key: value for key, value in own.items() if key not in ("subplan", "parent")}
    only_parts = all(own.get(key) is None for key in (*DEFINITION, "arguments_json"))
    return (None if only_parts and parts else own), parts


def _target(tree: Tree, step_id: str) -> Node:
    node = tree.find(step_id)
    assert node is not None
    return node


def _counted(parts: list[Node]) -> str:
    return "1 substep" if len(parts) == 1 else f"{len(parts)} substeps"


def _note(edit: Edit, nodes: list[Node]) -> None:
    edit.shown = {node["step_id"] for node in nodes}
    edit.touched = {each["step_id"] for node in nodes for each in subtree(node)}
