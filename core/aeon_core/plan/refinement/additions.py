"""Steps that a refinement adds: which additions are one, what they count for, where they go (adaptive FR-010)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aeon_core.plan.refinement.actions import PLAN, RefinementAction
from aeon_core.plan.refinement.steps import Unusable, stated_id, steps_of, subplan_of
from aeon_core.plan.refinement.tree import Node, Tree, executed, substeps

_PLACES = ("after", "before")


def added_to(action: RefinementAction, tree: Tree) -> str:
    """Return the fragment that a step_add is an attempt on: the step it expands or stands beside, else PLAN.

    What was executed is not refined any more: what comes behind it is added to the plan.
    """
    for step_id in (_parent_in(action), action.target):
        node = tree.find(step_id) if step_id is not None else None
        if node is not None and not executed(node):
            return step_id or PLAN
    return PLAN


def merged(actions: Iterable[RefinementAction], tree: Tree) -> Iterator[RefinementAction]:
    """Yield the actions; additions that follow one another at one place become one, in the order they are written.

    So that a model that adds three steps has made one attempt on the plan and not three.
    """
    held: RefinementAction | None = None
    for action in actions:
        joined = _joined(held, action, tree) if held is not None else None
        if joined is None and held is not None:
            yield held
        held = joined if joined is not None else action
    if held is not None:
        yield held


def _joined(first: RefinementAction, second: RefinementAction, tree: Tree) -> RefinementAction | None:
    """Return two additions as one, None where they are not at one place."""
    earlier, later = _plain_steps(first), _plain_steps(second)
    if not earlier or not later or added_to(first, tree) != added_to(second, tree):
        return None
    if _parent_in(first) != _parent_in(second) or not (_same_place(first, second) or _follows(earlier, second)):
        return None
    places = {key: first.changes[key] for key in _PLACES if key in first.changes}
    reason = first.reason if second.reason in first.reason else f"{first.reason}; {second.reason}"
    target = first.target if tree.find(first.target) is not None else PLAN
    changes = {"steps": [*earlier, *later], **places}
    return first.model_copy(update={"target": target, "changes": changes, "reason": reason})


def _plain_steps(action: RefinementAction) -> list[dict[str, Any]]:
    """Return the steps that an action adds; none where it is something else, or where one replaces another."""
    if action.type != "step_add":
        return []
    try:
        steps = steps_of(action.changes)
    except Unusable:
        return []
    return [] if any(step.get("replaces") is not None for step in steps) else steps


def _parent_in(action: RefinementAction) -> str | None:
    steps = _plain_steps(action)
    parent = steps[0].get("parent") if steps else None
    return parent if isinstance(parent, str) else None


def _same_place(first: RefinementAction, second: RefinementAction) -> bool:
    return all(first.changes.get(key) == second.changes.get(key) for key in _PLACES)


def _follows(earlier: list[dict[str, Any]], second: RefinementAction) -> bool:
    after = second.changes.get("after")
    return isinstance(after, str) and after == stated_id(earlier[-1])


def place_for(action: RefinementAction, raw: list[dict[str, Any]], tree: Tree) -> tuple[Node | None, str | None]:
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


def put(tree: Tree, nodes: list[Node], parent: Node | None, anchor: str | None) -> None:
    """Put new steps into the subplan of a step, behind a step, or at the head of the plan."""
    if parent is not None:
        inside = substeps(parent)
        if inside:
            inside.extend(nodes)
        else:
            parent["subplan"] = subplan_of(parent["step_id"], parent["description"], nodes)
    elif anchor is not None:
        tree.insert_after(anchor, nodes)
    else:
        tree.steps[:0] = nodes
