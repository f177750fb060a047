"""A plan as a tree of plain data that can be cut and grafted: places, ids, dependencies (adaptive FR-010, FR-015)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Node = dict[str, Any]
EXECUTED = ("complete", "failed", "invalid")


class Tree:
    """The steps of a dumped plan. Edits are made in place; `find` and the like always see the tree as it is."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def steps(self) -> list[Node]:
        """The steps at the top."""
        top: list[Node] = self.data["steps"]
        return top

    def walk(self) -> Iterator[tuple[Node, Node | None]]:
        """Yield every step with its parent, each parent before its substeps."""
        stack: list[tuple[Node, Node | None]] = [(step, None) for step in reversed(self.steps)]
        while stack:
            node, parent = stack.pop()
            yield node, parent
            stack.extend((child, node) for child in reversed(substeps(node)))

    def find(self, step_id: str) -> Node | None:
        """Return the step with that id, or None."""
        return next((node for node, _ in self.walk() if node["step_id"] == step_id), None)

    def parent_of(self, step_id: str) -> Node | None:
        """Return the step that the given one is a part of; None at the top."""
        return next((parent for node, parent in self.walk() if node["step_id"] == step_id), None)

    def ancestors(self, step_id: str) -> list[Node]:
        """Return the steps around a step, the nearest first."""
        parents = {node["step_id"]: parent for node, parent in self.walk()}
        found = []
        parent = parents.get(step_id)
        while parent is not None:
            found.append(parent)
            parent = parents[parent["step_id"]]
        return found

    def siblings(self, step_id: str) -> list[Node]:
        """Return the list that holds a step."""
        parent = self.parent_of(step_id)
        return self.steps if parent is None else substeps(parent)

    def insert_after(self, step_id: str, nodes: list[Node]) -> None:
        """Put steps right behind a step."""
        siblings = self.siblings(step_id)
        place = next(index for index, node in enumerate(siblings) if node["step_id"] == step_id)
        siblings[place + 1 : place + 1] = nodes

    def ids(self) -> set[str]:
        """Return every step_id."""
        return {node["step_id"] for node, _ in self.walk()}

    def depth_below(self, step_id: str | None) -> int:
        """Return the depth_level that a subplan of the step has, or would have; 0 for the top."""
        return 0 if step_id is None else len(self.ancestors(step_id)) + 1

    def broken_dependencies(self) -> set[tuple[str, str]]:
        """Return each dependency of a step that is still to run on one that is unknown or does not end before it."""
        order = {step_id: place for place, step_id in enumerate(self._in_order_of_completion(self.steps))}
        return {
            (node["step_id"], needed)
            for node, _ in self.walk()
            if node["status"] == "pending"
            for needed in node.get("depends_on", ())
            if order.get(needed, len(order)) >= order[node["step_id"]]
        }

    def _in_order_of_completion(self, nodes: list[Node]) -> Iterator[str]:
        for node in nodes:
            yield from self._in_order_of_completion(substeps(node))
            yield node["step_id"]

    def set_depths(self) -> int:
        """Set every subplan's depth_level to what its place demands; return the deepest."""
        deepest = 0
        level = self.steps
        while level := [node for node in level if "subplan" in node]:
            deepest += 1
            for node in level:
                node["subplan"]["depth_level"] = deepest
            level = [child for node in level for child in substeps(node)]
        return deepest


def substeps(node: Node) -> list[Node]:
    """Return the substeps of a step, the list itself."""
    found: list[Node] = node["subplan"]["substeps"] if "subplan" in node else []
    return found


def subtree(node: Node) -> Iterator[Node]:
    """Yield a step and all that is under it."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(substeps(current)))


def executed(node: Node) -> bool:
    """Return whether a step has run."""
    return node["status"] in EXECUTED


def fresh_id(wanted: str, taken: set[str]) -> str:
    """Return the id itself, or the first free one made of it with a number."""
    number, step_id = 2, wanted
    while step_id in taken:
        step_id = f"{wanted}-{number}"
        number += 1
    return step_id
