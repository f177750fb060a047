"""A plan as a tree of plain data that can be edited: places, ids, dependencies (adaptive FR-010, FR-015)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aeon_core.plan.refinement.actions import end_of_chain

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
