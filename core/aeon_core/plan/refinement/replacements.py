"""Replacing executed steps: they become invalid, new pending ones stand in for them (adaptive FR-069, FR-070).

What was executed keeps its definition, output and errors. A result that rests on an invalid one is invalid too: of the
steps that depend on it, and of the steps around it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from aeon_core.plan.refinement.actions import fragment_of
from aeon_core.plan.refinement.expansion import DEFINITION
from aeon_core.plan.refinement.tree import Node, Tree, executed, substeps


def replace_executed(
    tree: Tree, target: str, definition: Mapping[str, Any], parts: list[Node] | None, wanted_id: str | None
) -> dict[str, str]:
    """Mark an executed step invalid and put the step that replaces it behind it; return new ids by replaced id.

    `definition` is that of the new step; `parts` are its substeps, None where it has those of the old one that are
    wanting. Executed steps whose results rest on the replaced one are run again: each is replaced by its like.
    """
    wanting = _wanting(tree, target, definition, parts)
    nodes = [node for node, _ in tree.walk() if node["step_id"] in wanting]
    new_ids = _new_ids(tree, nodes, target, wanted_id)
    tops = [node for node in nodes if _parent_id(tree, node) not in wanting]

    def stand_in(node: Node) -> Node:
        step_id = node["step_id"]
        own = definition if step_id == target else {key: node[key] for key in DEFINITION if key in node}
        made: Node = {**copy.deepcopy(dict(own)), "step_id": new_ids[step_id], "status": "pending", "replaces": step_id}
        given = parts if step_id == target else None
        inner = given if given is not None else [stand_in(sub) for sub in substeps(node) if sub["step_id"] in wanting]
        if inner:
            made["subplan"] = {
                "parent_step_id": made["step_id"],
                "subplan_goal": made["description"],
                "substeps": inner,
                "created_by": "refinement",
            }
        return made

    grafts = [(node["step_id"], stand_in(node)) for node in tops]
    for node in nodes:
        node["status"] = "invalid"
    for step_id, graft in grafts:
        tree.insert_after(step_id, [graft])
    return new_ids


def follow_replacements(tree: Tree) -> None:
    """Make the steps that are still to run depend on what stands in for invalid steps."""
    stand_ins = {node["replaces"]: node["step_id"] for node, _ in tree.walk() if "replaces" in node}
    invalid = {node["step_id"] for node, _ in tree.walk() if node["status"] == "invalid"}
    for node, _ in tree.walk():
        if node["status"] == "pending" and "depends_on" in node:
            followed = (_last(needed, stand_ins, invalid) for needed in node["depends_on"])
            node["depends_on"] = list(dict.fromkeys(followed))


def last_stand_in(tree: Tree, step_id: str) -> str:
    """Return the step that stands in for a step after all that was replaced; the step itself where none does."""
    stand_ins = {node["replaces"]: node["step_id"] for node, _ in tree.walk() if "replaces" in node}
    return _last(step_id, stand_ins, {node["step_id"] for node, _ in tree.walk() if node["status"] == "invalid"})


def replaced_in(tree: Tree) -> dict[str, str]:
    """Return, by step_id, what each step replaces."""
    return {node["step_id"]: node["replaces"] for node, _ in tree.walk() if "replaces" in node}


def _last(step_id: str, stand_ins: Mapping[str, str], invalid: set[str]) -> str:
    seen = set()
    while step_id in invalid and step_id in stand_ins and step_id not in seen:
        seen.add(step_id)
        step_id = stand_ins[step_id]
    return step_id


def _wanting(tree: Tree, target: str, definition: Mapping[str, Any], parts: list[Node] | None) -> set[str]:
    wanting = {target}
    while True:
        before = len(wanting)
        for node, _ in tree.walk():
            if executed(node) and node["status"] != "invalid" and _rests_on(node, wanting):
                wanting.add(node["step_id"])
        for node, _ in tree.walk():
            if node["step_id"] in wanting and not (node["step_id"] == target and parts):
                own = definition if node["step_id"] == target else node
                wanting.update(_parts_to_gather(node, own, wanting))
        if len(wanting) == before:
            return wanting


def _rests_on(node: Node, wanting: set[str]) -> bool:
    return any(needed in wanting for needed in node.get("depends_on", ())) or any(
        sub["step_id"] in wanting for sub in substeps(node)
    )


def _parts_to_gather(node: Node, own: Mapping[str, Any], wanting: set[str]) -> list[str]:
    """Return the substeps that a step needs run again: the failed ones, else all where it is nothing but them."""
    ran = [sub for sub in substeps(node) if sub["status"] in ("complete", "failed")]
    failed = [sub["step_id"] for sub in ran if sub["status"] == "failed"]
    if failed or "tool" in own or "agent" in own or any(sub["step_id"] in wanting for sub in substeps(node)):
        return failed
    return [sub["step_id"] for sub in ran]


def _new_ids(tree: Tree, nodes: list[Node], target: str, wanted_id: str | None) -> dict[str, str]:
    taken, replaced = tree.ids(), replaced_in(tree)
    new_ids: dict[str, str] = {}
    for node in nodes:
        step_id = node["step_id"]
        first, number = fragment_of(step_id, replaced), 1
        while (made := f"{first}-r{number}") in taken:
            number += 1
        if step_id == target and wanted_id is not None and wanted_id not in taken:
            made = wanted_id
        taken.add(made)
        new_ids[step_id] = made
    return new_ids


def _parent_id(tree: Tree, node: Node) -> str | None:
    parent = tree.parent_of(node["step_id"])
    return parent["step_id"] if parent is not None else None
