"""What of an executed plan still holds when a person has edited it."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.plan.files import reuse_executed_steps
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import parse_plan

Node = dict[str, Any]


def leaf(step_id: str, status: str | None = "complete", **fields: Any) -> Node:
    node: Node = {"step_id": step_id, "description": f"do {step_id}", "agent": "llm", **fields}
    return node if status is None else {**node, "status": status}


def group(step_id: str, *substeps: Node, status: str | None = "complete") -> Node:
    subplan = {"parent_step_id": step_id, "subplan_goal": "parts", "substeps": list(substeps)}
    node: Node = {"step_id": step_id, "description": f"do {step_id}", "subplan": subplan}
    return node if status is None else {**node, "status": status}


def plan(*steps: Node) -> Plan:
    return parse_plan({"goal": "a goal", "steps": list(steps)}, fresh=False)


BEFORE = plan(
    leaf("s1"), group("g", leaf("a"), leaf("b"), leaf("c", "invalid")), leaf("s2", "failed", depends_on=["g"])
)
PARTS = leaf("a"), leaf("b"), leaf("c", "invalid")
LAST = leaf("s2", "failed", depends_on=["g"])


def pending(*steps: Node, before: Plan | None = BEFORE) -> list[str]:
    return [step.step_id for step in reuse_executed_steps(plan(*steps), before).walk() if step.status == "pending"]


@pytest.mark.parametrize(
    ("steps", "again"),
    [
        ((leaf("s1"), group("g", *PARTS), LAST), []),
        ((leaf("s1", None), group("g", *(leaf(name, None) for name in "abc"), status=None), leaf("s2", None)), []),
        ((LAST, group("g", *reversed(PARTS)), leaf("s1")), []),
        ((leaf("s1", "pending"), group("g", *PARTS), LAST), ["s1"]),
        ((leaf("new"), group("g", *PARTS), LAST), ["new"]),
        ((leaf("s1"), group("g", leaf("a", tool="echo", agent=None), *PARTS[1:]), LAST), ["g", "a", "s2"]),
        ((leaf("s1"), group("g", *PARTS, leaf("d", None)), LAST), ["g", "d", "s2"]),
        ((leaf("s1"), group("g", *PARTS[:2]), LAST), []),
        ((leaf("s1"), group("g", *PARTS[1:]), LAST), ["g", "s2"]),
        ((leaf("s1"), leaf("g", agent=None), LAST), ["g", "s2"]),
        ((leaf("s1"), leaf("a"), group("g", *PARTS[1:]), LAST), ["g", "s2"]),
    ],
)
def test_unchanged_steps_do_not_run_again(steps: tuple[Node, ...], again: list[str]) -> None:
    assert pending(*steps) == again


def test_without_execution_all_steps_are_pending() -> None:
    assert pending(leaf("s1"), group("g", *PARTS), LAST, before=None) == ["s1", "g", "a", "b", "c", "s2"]
