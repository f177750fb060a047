"""What models are asked for: flat JSON Schemas that providers with strict structured output accept (core FR-024)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aeon_core.plan.models import PlanStep


def _nullable(kind: str, description: str, **keywords: Any) -> dict[str, Any]:
    return {"type": [kind, "null"], "description": description, **keywords}


_STEP_PROPERTIES: dict[str, Any] = {
    "id": {"type": "string", "description": "unique over the whole plan"},
    "parent": _nullable("string", "id of the step that this one is a part of; null at the top level"),
    "description": {"type": "string", "description": "what the step does"},
    "tool": _nullable("string", "name of a listed tool; null where none is needed"),
    "agent": _nullable("string", "llm for a step that is answered by reasoning, else null", enum=["llm", None]),
    "arguments_json": _nullable("string", "the tool's arguments: one JSON object, written as a string"),
    "depends_on": _nullable("array", "ids of earlier steps that this one builds on", items={"type": "string"}),
}

WIRE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "goal": {"type": "string", "description": "what the plan is to reach"},
        "steps": {
            "type": "array",
            "description": "in the order of execution",
            "items": {
                "type": "object",
                "properties": _STEP_PROPERTIES,
                "required": list(_STEP_PROPERTIES),
                "additionalProperties": False,
            },
        },
    },
    "required": ["goal", "steps"],
    "additionalProperties": False,
}
"""The plan as it is asked of a model: a flat list of steps that name their parent, no recursion.

Every key is required and every object closed, so strict modes take it: five union types, no optional parameter.
Arguments are an open object, which strict modes do not know; they travel as a JSON string.
"""


def tool_call_schema(tool_name: str, input_schema: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a call of one tool, as a repair is asked for it."""
    return {
        "type": "object",
        "properties": {"tool_name": {"const": tool_name}, "arguments": input_schema},
        "required": ["tool_name", "arguments"],
        "additionalProperties": False,
    }


def step_schema(step: PlanStep, tool_names: Iterable[str]) -> dict[str, Any]:
    """Return the JSON Schema of a step that is repaired to use one of the tools."""
    return {
        "type": "object",
        "properties": {
            "step_id": {"const": step.step_id},
            "description": {"const": step.description},
            "tool": {"enum": list(tool_names)},
            "arguments": {"type": "object"},
        },
        "required": ["step_id", "description", "tool"],
    }
