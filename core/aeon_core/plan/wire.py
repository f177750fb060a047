"""The schemas of requests: flat JSON Schemas that providers with strict structured output accept (core FR-024)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import PlanStep
from aeon_core.prompts import build_request, requirements_section, tools_section, ttl_section
from aeon_core.tools.base import object_schema


def _nullable(kind: str, description: str, **keywords: Any) -> dict[str, Any]:
    return {"type": [kind, "null"], "description": description, **keywords}


MAX_NAMED_TOOLS = 200
"""The most tools that a schema lists by name; strict modes limit the size of an enum."""

_ID: dict[str, Any] = {"type": "string", "description": "unique over the whole plan"}
_PARENT = _nullable("string", "id of the step that this one is a part of; null at the top level")
_DESCRIPTION: dict[str, Any] = {"type": "string", "description": "what the step does"}
_ARGUMENTS = _nullable("string", "the tool's arguments: one JSON object, written as a string")
_DEPENDS_ON: dict[str, Any] = {
    "type": "array",
    "description": "ids of earlier steps that this one builds on",
    "items": {"type": "string"},
}


def plan_schema(tool_names: Iterable[str]) -> dict[str, Any]:
    """Return the schema of a requested plan: a flat list of steps that name their parent.

    Every key is required and every object closed, as strict modes demand. A step has one of the registered tools or is
    answered by reasoning (core FR-069). Arguments are an open object, which strict modes do not support, so they travel
    as a JSON string.
    """
    steps = {"type": "array", "description": "in the order of execution", "items": step_items(tool_names)}
    goal = {"type": "string", "description": "what the plan is to reach"}
    return object_schema({"goal": goal, "steps": steps})


def step_items(tool_names: Iterable[str]) -> dict[str, Any]:
    """Return the schema of one step of a plan: with a tool, or with `agent` llm."""
    names = list(tool_names)
    reasoning = object_schema({**_BOTH, "agent": {"type": "string", "enum": ["llm"]}, "depends_on": _DEPENDS_ON})
    if not names:
        return reasoning
    tool: dict[str, Any] = {"type": "string", "description": "name of a listed tool"}
    if len(names) <= MAX_NAMED_TOOLS:
        tool["enum"] = names
    return {
        "anyOf": [
            object_schema({**_BOTH, "tool": tool, "arguments_json": _ARGUMENTS, "depends_on": _DEPENDS_ON}),
            reasoning,
        ]
    }


def changed_step_items(tool_names: Iterable[str]) -> dict[str, Any]:
    """Return the schema of one step of a refinement; null fields stay unchanged."""
    tool = _nullable("string", "name of a listed tool; null where none is needed, or it stays")
    names = list(tool_names)
    if len(names) <= MAX_NAMED_TOOLS:
        tool["enum"] = [*names, None]
    agent = _nullable("string", "llm for a step that is answered by reasoning, else null", enum=["llm", None])
    needs = _nullable("array", "ids of earlier steps that this one builds on", items={"type": "string"})
    return object_schema({**_BOTH, "tool": tool, "agent": agent, "arguments_json": _ARGUMENTS, "depends_on": needs})


_BOTH = {"id": _ID, "parent": _PARENT, "description": _DESCRIPTION}


def tool_call_schema(tool_name: str, input_schema: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a tool call that a repair requests."""
    return object_schema({"tool_name": {"const": tool_name}, "arguments": input_schema})


def step_schema(step: PlanStep, tool_names: Iterable[str]) -> dict[str, Any]:
    """Return the JSON Schema of a step repaired to use one of the tools."""
    return {
        "type": "object",
        "properties": {
            "step_id": {"const": step.step_id},
            "description": {"const": step.description},
            "tool": {"enum": [*tool_names, None], "description": "null where none of them does what the step asks"},
            "arguments": {"type": "object"},
        },
        "required": ["step_id", "description", "tool"],
    }


def plan_request(
    task: str,
    tools: list[dict[str, Any]],
    *,
    requirements: Sequence[str] = (),
    memory: str = "",
    ttl_remaining: int,
    ttl_limit: int,
    max_tokens: int,
    prompts_dir: Path | None = None,
) -> LLMRequest:
    """Return the request for a plan: the task unaltered, every registered tool with schemas and examples.

    `memory` is the section with the memory's content.
    """
    sections = {
        "task": task,
        "requirements": requirements_section(requirements),
        "memory": memory,
        "tools": tools_section(tools),
        "ttl": ttl_section(ttl_remaining, ttl_limit),
    }
    return build_request(
        "plan", sections, schema=plan_schema(tool["name"] for tool in tools), max_tokens=max_tokens, folder=prompts_dir
    )
