"""Steps and tool calls against the registry (core FR-025, FR-058, FR-063, FR-064)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core import Plan, PlanStep
from aeon_core.errors import UsageError
from aeon_core.plan.models import Subplan
from aeon_core.tools.registry import default_registry
from aeon_core.validation.plan_checks import (
    ValidationResult,
    validate_plan_tools,
    validate_step_tool,
    validate_tool_call,
)

REGISTRY = default_registry()
NEITHER = "Step has neither a tool nor agent 'llm'"


def step(**fields: Any) -> PlanStep:
    return PlanStep(**{"step_id": "s1", "description": "d", **fields})


def subplan(*substeps: PlanStep) -> Subplan:
    return Subplan(parent_step_id="s1", subplan_goal="g", substeps=list(substeps))


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (step(tool="echo"), None),
        (step(agent="llm"), None),
        (step(tool="echo", agent="llm"), None),
        (step(tool="X", agent="llm"), "Tool 'X' not found in registry"),
        (step(tool="X"), "Tool 'X' not found in registry"),
        (step(), NEITHER),
        (step(subplan=subplan(step(step_id="a"))), None),
        (step(subplan=subplan(step(step_id="a")), tool="X"), "Tool 'X' not found in registry"),
        (step(tool="\x1b[31m" + "x" * 5_000_000), f"Tool '\\x1b[31m{'x' * 195}' not found in registry"),
    ],
)
def test_a_step_is_valid_or_carries_its_error(made: PlanStep, error: str | None) -> None:
    errors = [] if error is None else [error]
    assert validate_step_tool(made, REGISTRY) == ValidationResult(not errors, errors)
    assert made.errors == (errors or None)
    assert made.status == "pending"


def test_errors_are_cleared_when_the_step_has_become_valid_and_kept_apart_from_the_result() -> None:
    registry = default_registry()
    registry.unregister("echo")
    made = step(tool="echo", status="running")
    result = validate_step_tool(made, registry)
    assert made.errors == ["Tool 'echo' not found in registry"]
    assert made.errors is not result.errors
    assert validate_step_tool(made, REGISTRY).valid
    assert made.errors is None
    assert made.status == "running"


@pytest.mark.parametrize(
    ("made", "registry", "told"),
    [
        ("s1", REGISTRY, "the step is of type str, expected a PlanStep"),
        ({"step_id": "s1"}, REGISTRY, "the step is of type dict, expected a PlanStep"),
        (step(tool="echo"), None, "the registry is of type NoneType, expected a ToolRegistry"),
    ],
)
def test_wrong_argument_types_are_named(made: Any, registry: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        validate_step_tool(made, registry)


@pytest.mark.parametrize(
    ("name", "arguments", "errors"),
    [
        ("calculator", {"operation": "add", "a": 1, "b": 2}, []),
        ("calculator", {"operation": "add", "a": "1", "b": 2}, ['a: expected number, got "1"']),
        ("calculator", {"operation": "add", "a": 1}, ["b: missing, but required"]),
        ("calculator", [1], ["arguments: expected an object, got list"]),
        ("calculater", {}, ["Tool 'calculater' not found in registry"]),
    ],
)
def test_a_tool_call_is_checked_against_the_input_schema(name: str, arguments: Any, errors: list[str]) -> None:
    assert validate_tool_call(name, arguments, REGISTRY) == ValidationResult(not errors, errors)


def test_every_step_of_the_tree_that_has_not_run_is_checked() -> None:
    plan = Plan(
        goal="g",
        steps=[
            step(subplan=subplan(step(step_id="a", tool="nope"), step(step_id="b", agent="llm"))),
            step(step_id="s2"),
            step(step_id="s3", tool="gone", status="complete"),
        ],
    )
    found = validate_plan_tools(plan, REGISTRY)
    assert found == {"a": ["Tool 'nope' not found in registry"], "s2": [NEITHER]}
    assert {made.step_id: made.errors for made in plan.walk() if made.errors} == found
