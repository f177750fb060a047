"""What each type of refinement action does to the tree of a plan (adaptive: Refinement Action)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aeon_core.plan.fields import shown
from aeon_core.plan.refinement import RefinementAction
from aeon_core.plan.refining_expansion import DEFINITION, replaces_in
from aeon_core.plan.refining_steps import (
    CREATED_BY,
    TooDeep,
    Unusable,
    new_steps,
    rewritten,
    stated_id,
    steps_of,
)
from aeon_core.plan.refining_tree import Node, Tree, executed, fresh_id, substeps, subtree
from aeon_core.plan.replacing import replace_executed


@dataclass
class Edit:
    """A change of a tree that can be made, and what it touches once it was."""

    fragment: str
    """The step that the attempt counts for."""
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
    if action.type == "plan_update":
        return _update_goal(action, tree)
    if action.type == "step_add":
        return _add(action, tree, nesting)
    node = tree.find(action.target)
    if node is None:
        raise Unusable(f"target: no step of the plan has the id {shown(action.target)}")
    if node["status"] == "invalid":
        raise Unusable(f"step {shown(action.target)} is invalid already, another step stands in for it")
    if node["status"] == "running":
        raise Unusable(f"step {shown(action.target)} is running")
    if action.type == "step_remove":
        return _remove(node)
    if executed(node):
        return _replace(action, node, nesting)
    if action.type == "step_mark_invalid":
        raise Unusable(f"step {shown(action.target)} has not run; modify or remove it instead")
    return _subplan(action, node, nesting) if action.type == "subplan_create" else _modify(action, node, nesting)


def _update_goal(action: RefinementAction, tree: Tree) -> Edit:
    goal = action.changes.get("goal")
    if not isinstance(goal, str) or not goal.strip():
        raise Unusable("changes: expected 'steps', or a new 'goal' before anything ran")
    if any(executed(node) for node, _ in tree.walk()):
        raise Unusable("the goal stays once a step has run; refinement changes steps")

    def change(edit: Edit, tree: Tree) -> None:
        edit.done = f"the goal was {shown(tree.data['goal'])}"
        tree.data["goal"] = goal

    return Edit("plan", change)


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
        parent, anchor = _place(action, raw, tree)
        depth = tree.depth_below(parent["step_id"] if parent is not None else None)
        nodes = new_steps(raw, tree, prefix=first, nesting=nesting, depth=depth)
        _put(tree, nodes, parent, anchor)
        _note(edit, nodes)
        edit.done = f"added {', '.join(node['step_id'] for node in nodes)}"

    return Edit(fresh_id(first, tree.ids()), change)


def _place(action: RefinementAction, raw: list[dict[str, Any]], tree: Tree) -> tuple[Node | None, str | None]:
    """Return where new steps go: into the subplan of a step that is still to run, or behind a step, or at the end.

    Nothing goes inside a step that was executed: it goes behind that step.
    """
    named = raw[0].get("parent")
    parent = tree.find(named) if isinstance(named, str) else None
    if parent is not None and not executed(parent):
        return parent, None
    for key in ("after", "before"):
        anchor = action.changes.get(key)
        if isinstance(anchor, str) and tree.find(anchor) is not None:
            return None, _behind(anchor, tree) if key == "after" else _ahead(anchor, tree)
    if tree.find(action.target) is not None and stated_id(raw[0]) != action.target:
        return None, _behind(action.target, tree)
    return None, _behind(tree.steps[-1]["step_id"], tree)


def _behind(step_id: str, tree: Tree) -> str:
    around = [node["step_id"] for node in tree.ancestors(step_id) if executed(node)]
    return around[-1] if around else step_id


def _ahead(step_id: str, tree: Tree) -> str | None:
    """Return the step that one is to stand behind to come before another: None for the head of the plan.

    Nothing comes before the first substep of a step; it stands behind that.
    """
    siblings = tree.siblings(step_id)
    place = next(index for index, node in enumerate(siblings) if node["step_id"] == step_id)
    if place > 0:
        return _behind(siblings[place - 1]["step_id"], tree)
    return None if siblings is tree.steps else _behind(step_id, tree)


def _put(tree: Tree, nodes: list[Node], parent: Node | None, anchor: str | None) -> None:
    if parent is not None:
        inside = substeps(parent)
        if inside:
            inside.extend(nodes)
        else:
            parent["subplan"] = _subplan_of(parent["step_id"], parent["description"], nodes)
    elif anchor is not None:
        tree.insert_after(anchor, nodes)
    else:
        tree.steps[:0] = nodes


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
        edit.done = f"expanded {step_id} into {len(substeps(target))} substeps"

    return Edit(step_id, change)


def _expand(edit: Edit, tree: Tree, target: Node, raw: list[dict[str, Any]], nesting: int) -> None:
    depth = tree.depth_below(target["step_id"])
    if depth > nesting:
        raise TooDeep
    target.pop("subplan", None)
    nodes = new_steps(raw, tree, prefix=target["step_id"], nesting=nesting, depth=depth)
    target["subplan"] = _subplan_of(target["step_id"], target["description"], nodes)
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


def _subplan_of(step_id: str, goal: str, nodes: list[Node]) -> dict[str, Any]:
    return {"parent_step_id": step_id, "subplan_goal": goal, "substeps": nodes, "created_by": CREATED_BY}


def _note(edit: Edit, nodes: list[Node]) -> None:
    edit.shown = {node["step_id"] for node in nodes}
    edit.touched = {each["step_id"] for node in nodes for each in subtree(node)}
