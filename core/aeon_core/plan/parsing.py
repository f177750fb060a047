"""From data to a Plan and back: strict, complete in what it says is wrong (core FR-006, FR-010, FR-026; Decision 3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from aeon_core.errors import UsageError, ValidationError
from aeon_core.json_safe import json_safe
from aeon_core.plan.files import read_data
from aeon_core.plan.forms import normal_plan
from aeon_core.plan.models import Plan
from aeon_core.plan.parser import PlanEntry, PlanReader
from aeon_core.tools.coercion import properties
from aeon_core.tools.registry import ToolRegistry

MAX_PROBLEMS = 20
_PROBLEMS_IN_A_LINE = 3


def parse_plan(data: Any, *, fresh: bool = True) -> Plan:
    """Return the Plan that `data` describes: nested as Plan is, or flat, with `id` and `parent` (core FR-010).

    With `fresh` every step must be pending and without errors. Nothing is coerced, no key ignored; text comes out
    clean. Of subplans, five levels are kept; `Plan.cut` names the steps whose parts were left out (adaptive FR-082).
    Raises ValidationError; its context holds `problems`, at most MAX_PROBLEMS lines of path and expectation.
    """
    reading = PlanReader(data, fresh=fresh, limit=MAX_PROBLEMS, cuts=True)
    if reading.problems:
        raise _invalid([str(problem) for problem in reading.problems])
    built = {"goal": reading.goal, "steps": [_built(entry, 1) for entry in reading.roots]}
    try:
        return Plan.model_validate(built).cut_at(reading.cut)
    except pydantic.ValidationError as error:
        raise _invalid([_line(detail) for detail in error.errors()[:MAX_PROBLEMS]]) from None


def parse_loosely(value: Any, tools: ToolRegistry, *, exact: bool = False) -> tuple[Plan, bool]:
    """Return the plan in a reply's value, and whether it had to be brought into form (Decision 4).

    With `exact`, no key is left out, and every declared call fits its tool: of what may be meant, only that counts.
    Raises ValidationError as `parse_plan`.
    """
    try:
        plan, changed = parse_plan(value), False
    except ValidationError:
        normal, dropped = normal_plan(value, arguments_by_tool(tools))
        if exact and dropped:
            raise
        plan, changed = parse_plan(normal), True
    if exact:
        for step in plan.walk():
            known = step.tool is not None and step.tool in tools and step.arguments is not None
            if known and (errors := tools.input_schema(str(step.tool)).errors(step.arguments)):
                raise _invalid([f"the arguments of step {step.step_id!r} do not fit: {errors[0]}"])
    return plan, changed


def arguments_by_tool(tools: ToolRegistry) -> dict[str, list[str]]:
    """Return the names of the arguments that each registered tool takes."""
    return {tool.name: list(properties(tools.input_schema(tool.name).schema)) for tool in tools}


def load_plan_file(path: Path, *, fresh: bool = True) -> Plan:
    """Return the plan of a JSON or YAML file. Raises UsageError, one line with the file and the first problems.

    `fresh` is as in `parse_plan`.
    """
    data = read_plan_data(path)
    try:
        return parse_plan(data, fresh=fresh)
    except ValidationError as error:
        problems = error.context["problems"]
        line = "; ".join(problems[:_PROBLEMS_IN_A_LINE])
        more = len(problems) - _PROBLEMS_IN_A_LINE
        raise UsageError(f"{str(path)!r} is no valid plan: {line}{f'; and {more} more' if more > 0 else ''}") from None


def read_plan_data(path: Path) -> Any:
    """Return what a plan file holds, valid or not. Raises UsageError where it is neither JSON nor YAML."""
    return read_data(path)


def given_plan(plan: Plan | Mapping[str, Any] | None) -> Plan | None:
    """Return the plan a caller hands over: a Plan object itself, or the Plan that a dict describes.

    Raises UsageError where it is neither, was executed already, was made unsound after it was made, or cannot be
    written as JSON; ValidationError for what a dict describes.
    """
    if plan is None:
        return None
    if not isinstance(plan, Plan):
        if not isinstance(plan, Mapping):
            raise UsageError(f"the plan is of type {type(plan).__name__}, expected a Plan or a dict")
        return parse_plan(dict(plan))
    executed = [step.step_id for step in plan.walk() if step.status != "pending"]
    if executed:
        raise UsageError(f"the plan was executed already (steps {', '.join(executed[:5])}); hand over a fresh one")
    try:
        for step in plan.walk():
            json_safe(step.arguments)
        Plan.model_validate_json(plan.model_dump_json())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the plan is unsound: {' '.join(str(error).split())[:300]}") from None
    return plan


def dump_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain JSON, without null fields; nulls inside arguments stay."""
    return plan.model_dump(mode="json", exclude_none=True)


def _built(entry: PlanEntry, depth: int) -> dict[str, Any]:
    step = dict(entry.fields)
    if entry.children:
        step["subplan"] = {
            "parent_step_id": step["step_id"],
            "subplan_goal": entry.goal if entry.goal is not None else step["description"],
            "substeps": [_built(child, depth + 1) for child in entry.children],
            "depth_level": depth,
            "created_by": entry.created_by,
        }
    return step


def _invalid(problems: list[str]) -> ValidationError:
    more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
    return ValidationError(f"not a valid plan: {problems[0]}{more}", problems=problems)


def _line(detail: Any) -> str:
    return f"{'.'.join(map(str, detail['loc'])) or 'plan'}: {detail['msg']}"
