"""Reading replies: the strict parser first, then the local repair; the shapes of a tool call and of a step."""

from __future__ import annotations

from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.plain import parse_json
from aeon_core.plan.fields import shown
from aeon_core.plan.models import PlanStep
from aeon_core.plan.parsing import parse_plan
from aeon_core.supervisor.local import repair_locally

_KEPT = ("status", "errors", "parent", "subplan")
"""What a repaired step takes from the original, whatever the reply says."""


def read_json(text: str) -> tuple[Any, bool]:
    """Return the value that a reply holds, and whether it took a local repair. Raises ValueError: one line, why not."""
    try:
        return parse_json(text, unique_keys=True), False
    except ValueError as error:
        strict = error
    try:
        return repair_locally(text), True
    except ValueError as error:
        raise ValueError(f"not JSON: {strict}; no lossless local repair: {error}") from None


def as_object(value: Any) -> dict[str, Any]:
    """Return what an entity keeps of a value: objects as they are, text as {"text": …}, all else as {"value": …}."""
    if isinstance(value, dict):
        return value
    return {"text": value} if isinstance(value, str) else {"value": value}


def read_call(value: Any, tool: str) -> dict[str, Any]:
    """Return the arguments of a call in the form {"tool_name", "arguments"}. Raises ValidationError with problems."""
    if not isinstance(value, dict):
        raise invalid([f"expected an object with 'tool_name' and 'arguments', got {shown(value)}"])
    problems = [f"unknown key {shown(key)}, expected 'tool_name' and 'arguments'" for key in value if key not in _CALL]
    problems += [f"{key}: missing" for key in _CALL if key not in value]
    if "tool_name" in value and value["tool_name"] != tool:
        problems.append(f"tool_name: expected {tool!r}, the tool of the step, got {shown(value['tool_name'])}")
    if "arguments" in value:
        try:
            return _sound(problems, read_arguments(value["arguments"])[0])
        except ValueError as error:
            problems.append(f"arguments: {error}")
    raise invalid(problems)


_CALL = ("tool_name", "arguments")


def read_arguments(raw: Any) -> tuple[dict[str, Any], bool]:
    """Return arguments that came as an object or as its text, and whether it took a local repair. Raises ValueError."""
    local = False
    if isinstance(raw, str):
        # Some servers send no text at all where a tool takes nothing.
        raw, local = read_json(raw) if raw.strip() else ({}, False)
    if not isinstance(raw, dict):
        raise ValueError(f"expected an object, got {shown(raw)}")
    return raw, local


def read_step(value: Any, original: PlanStep) -> PlanStep:
    """Return the step a repair names; what it leaves out, and status and subplan, are the original's.

    The step comes without errors. Raises ValidationError with problems.
    """
    if isinstance(value, dict) and isinstance(value.get("step"), dict):
        value = value["step"]
    if not isinstance(value, dict):
        raise invalid([f"expected the step as an object, got {shown(value)}"])
    if value.get("subplan") is not None and original.subplan is None:
        raise invalid(["subplan: a repair adds no steps"])
    given = {key: item for key, item in value.items() if key not in _KEPT and item is not None}
    if "id" not in given:
        given.setdefault("step_id", original.step_id)
    given.setdefault("description", original.description)
    read = _parsed_step(given)
    fields = {name: getattr(read, name) for name in read.model_fields_set - {"status"}}
    kept = {name: getattr(original, name) for name in original.model_fields_set}
    return PlanStep(**{**kept, **fields, "status": original.status, "errors": None})


def _parsed_step(given: dict[str, Any]) -> PlanStep:
    try:
        return parse_plan({"goal": "repair", "steps": [given]}).steps[0]
    except ValidationError as error:
        raise invalid([f"step{line.removeprefix('steps[0]')}" for line in error.context["problems"]]) from None


def invalid(problems: list[str]) -> ValidationError:
    """Return the error that carries these problems."""
    return ValidationError(problems[0], problems=problems)


def _sound(problems: list[str], arguments: dict[str, Any]) -> dict[str, Any]:
    if problems:
        raise invalid(problems)
    return arguments
