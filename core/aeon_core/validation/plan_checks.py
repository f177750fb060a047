"""Exact checks on a plan: what code can prove, in any language, without a model (Decision 7)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.parsing import PlanEntry
from aeon_core.suggest import close
from aeon_core.validation.literals import mismatch
from aeon_core.validation.report import Finding, clip

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry

_MAX_NAME = 200
_Step = TypeVar("_Step", PlanStep, PlanEntry)


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Whether something is valid, with every reason if not."""

    valid: bool
    errors: list[str] = field(default_factory=list)


def validate_step_tool(step: PlanStep, registry: ToolRegistry) -> ValidationResult:
    """Return whether the step can be executed as it is, and set `step.errors` accordingly (Decision 12).

    A tool must be registered and takes precedence over the agent; without a tool, `agent: llm` or a subplan suffices.
    `step.errors` becomes None if the step is valid; the status stays (core FR-058).
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


def check_plan(plan: Plan, registry: ToolRegistry) -> list[Finding]:
    """Return the problems of pending steps; executed ones can no longer change.

    Unregistered tools, arguments that do not fit the tool's input_schema, dependencies on unknown or later steps, calls
    that repeat an earlier one, and literals that the arguments contradict (adaptive FR-037 to FR-040).
    """
    order, to_run = end_order(plan), [step for step in plan.walk() if not step.executed]
    found = [finding for step in to_run for finding in check_tool(step, registry)]
    found += [finding for step in to_run for finding in check_dependencies(step, order)]
    return [*found, *check_calls(plan, registry)]


def check_tool(step: PlanStep, registry: ToolRegistry) -> Iterator[Finding]:
    """Yield a tool that is not registered, and each argument that does not fit its input_schema."""
    if step.tool is None:
        return
    if registry.get(step.tool) is None:
        near = close(step.tool, [known.name for known in registry], 0.5)
        repair = f"Call {near!r} instead." if near else "Set tool to null and agent to 'llm', or register the tool."
        yield Finding("hallucination", "high", step.step_id, f"the tool {step.tool[:100]!r} is not registered", repair)
    elif step.arguments is not None:
        for error in registry.input_schema(step.tool).errors(step.arguments):
            repair = f"Change the arguments to fit the input_schema of {step.tool!r}: {error}."
            yield Finding("consistency", "high", step.step_id, f"the arguments do not fit: {error}", repair)


def check_dependencies(step: PlanStep, order: dict[str, int]) -> Iterator[Finding]:
    """Yield dependencies on steps that do not exist or do not end before the step runs, which includes every cycle.

    `order` has each step's position in the order in which steps end.
    """
    for needed in dict.fromkeys(step.depends_on or ()):
        if needed not in order:
            why, repair = "no step has that id", "name an earlier step"
        elif order[needed] >= order.get(step.step_id, len(order)):
            why, repair = "that step does not end before this one runs", "move this step after it"
        else:
            continue
        description = f"depends_on names {needed[:100]!r}: {why}"
        proposed = f"Remove {needed[:100]!r} from depends_on, or {repair}."
        yield Finding("consistency", "high", step.step_id, description, proposed)


def check_calls(plan: Plan, registry: ToolRegistry) -> Iterator[Finding]:
    """Yield calls whose outcome an earlier step has already, and arguments that contradict a literal."""
    seen: dict[str, str] = {}
    calls = ""
    for step in plan.walk():
        tool = registry.get(step.tool) if step.tool is not None else None
        if tool is None or tool.effect != "pure":
            # Any other step may change what a call returns.
            seen = {} if step.tool is not None else seen
        if tool is None or step.arguments is None:
            continue
        call = json.dumps([tool.name, step.arguments], sort_keys=True, ensure_ascii=False)
        if tool.effect == "pure" and not step.executed and call in seen:
            description = f"the step repeats the call of step {seen[call]!r}: same tool, same arguments"
            repair = f"Remove the step, and use the result of {seen[call]!r}."
            yield Finding("relevance", "low", step.step_id, description, repair)
        seen.setdefault(call, step.step_id)
        found = None if step.executed else mismatch(step.description, step.arguments, reads=tool.effect == "pure")
        # A value that an earlier call or the goal also names may be this step's starting point.
        is_explained = found is not None and (
            (not found[3] and found[1] in calls) or all(x in plan.goal for x in found[1:3])
        )
        if found is not None and not is_explained:
            kind, described, passed, alone = found
            description = f"the description names the {kind} {clip(described)}, the arguments {clip(passed)}"
            repair = f"Make description and arguments name the same {kind}."
            yield Finding("do_say_mismatch", "high" if alone else "medium", step.step_id, description, repair)
        calls += call


def end_order(plan: Plan) -> dict[str, int]:
    """Return each step_id's position in the order in which the plan's steps end."""
    return completion_order(plan.steps, lambda step: step.substeps)


def completion_order(steps: list[_Step], substeps: Callable[[_Step], list[_Step]]) -> dict[str, int]:
    """Return each step_id's position in the order in which steps end: substeps before their parent."""
    stack, last_first = list(steps), []
    while stack:
        last_first.append(stack.pop())
        stack.extend(substeps(last_first[-1]))
    order: dict[str, int] = {}
    for step in reversed(last_first):
        if step.step_id is not None:
            order.setdefault(step.step_id, len(order))
    return order
