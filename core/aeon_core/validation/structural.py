"""Structural validation of steps and tool calls against the registry (core FR-025, FR-058, FR-063, FR-064)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aeon_core.plan.models import Plan, PlanStep

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry

_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Whether something is valid, and every reason why not."""

    valid: bool
    errors: list[str] = field(default_factory=list)


def validate_step_tool(step: PlanStep, registry: ToolRegistry) -> ValidationResult:
    """Return whether the step can be executed as it stands, and set `step.errors` accordingly (Decision 12).

    A tool must be registered and takes precedence over the agent; without a tool, `agent: llm` or a subplan will do.
    `step.errors` becomes None where the step is valid; the status stays (core FR-058).
    """
    if step.tool is not None:
        error = None if registry.get(step.tool) is not None else _not_found(step.tool)
    elif step.agent is None and step.subplan is None:
        error = "Step has neither a tool nor agent 'llm'"
    else:
        error = None
    if error is None:
        if step.errors is not None:
            step.errors = None
        return ValidationResult(True)
    step.errors = [error]
    return ValidationResult(False, [error])


def validate_tool_call(name: str, arguments: Any, registry: ToolRegistry) -> ValidationResult:
    """Return whether the tool is registered and the arguments fit its input_schema (core FR-025)."""
    if registry.get(name) is None:
        return ValidationResult(False, [_not_found(name)])
    if not isinstance(arguments, dict):
        return ValidationResult(False, [f"arguments: expected an object, got {type(arguments).__name__}"])
    errors = registry.input_schema(name).errors(arguments)
    return ValidationResult(not errors, errors)


def validate_plan_tools(plan: Plan, registry: ToolRegistry) -> dict[str, list[str]]:
    """Return the errors of every invalid step of the tree by step_id, and set each step's `errors` (core FR-063).

    Steps that have been executed are left alone.
    """
    invalid = {}
    for step in plan.walk():
        if not step.executed and not (result := validate_step_tool(step, registry)).valid:
            invalid[step.step_id] = result.errors
    return invalid


def _not_found(name: str) -> str:
    return f"Tool {name[:_MAX_NAME]!r} not found in registry"
