"""Requests for a plan and for its refinement (adaptive FR-073), and the reply that refines it.

Their schemas are flat JSON Schemas that providers with strict structured output accept (core FR-024).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pydantic

from aeon_core.errors import invalid
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import MAX_NESTING_DEPTH, Plan, PlanStep
from aeon_core.plan.parsing import MAX_PROBLEMS, object_in, shown
from aeon_core.plan.refinement.actions import (
    MAX_ATTEMPTS,
    MAX_ATTEMPTS_OF_FRAGMENT,
    MAX_QUESTIONS,
    Fragment,
    RefinementAction,
    RefinementLedger,
    RefinementType,
)
from aeon_core.prompts import (
    build_request,
    plan_section,
    requirements_section,
    results_section,
    to_line,
    tools_section,
    ttl_section,
)
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
    steps = {"type": "array", "description": "in the order of execution", "items": _step_items(tool_names)}
    goal = {"type": "string", "description": "what the plan is to reach"}
    return object_schema({"goal": goal, "steps": steps})


def _step_items(tool_names: Iterable[str]) -> dict[str, Any]:
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


def _changed_step_items(tool_names: Iterable[str]) -> dict[str, Any]:
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


def refine_schema(tool_names: Iterable[str]) -> dict[str, Any]:
    """Return the schema of a requested refinement: closed objects, flat steps, no recursion, for strict modes."""
    after = {"type": ["string", "null"], "description": "step_add: id of the step that the new ones come after"}
    steps = {"type": "array", "description": "in the order of execution", "items": _changed_step_items(tool_names)}
    action = object_schema(
        {
            "type": {"type": "string", "enum": list(get_args(RefinementType))},
            "target": {
                "type": "string",
                "description": "step_id of the step to refine; plan for the plan itself, answer for the answer",
            },
            "changes": object_schema({"after": after, "steps": steps}),
            "reason": {"type": "string", "description": "why it is needed"},
        }
    )
    questions = {"type": "array", "items": {"type": "string"}}
    return object_schema({"actions": {"type": "array", "items": action}, "follow_up_questions": questions})


def refinement_request(
    task: str,
    plan: Plan,
    fragments: Iterable[Fragment],
    *,
    tools: Iterable[dict[str, Any]],
    requirements: Sequence[str] = (),
    outputs: Mapping[str, dict[str, Any]],
    failures: Mapping[str, list[str]],
    assessment: Mapping[str, Any] | None = None,
    ledger: RefinementLedger,
    ttl_remaining: int,
    ttl_limit: int,
    max_tokens: int,
    prompts_dir: Path | None = None,
) -> LLMRequest:
    """Return the request for refinement actions on the fragments that may still be refined.

    `assessment` is convergence's. The plan, results and issues are shown as data, with the arguments of the steps to
    refine, so that one can be corrected and the others kept.
    """
    known = list(tools)
    open_ones = [fragment.as_dict() for fragment in fragments if not fragment.exhausted]
    left = max(0, MAX_ATTEMPTS - ledger.total)
    sections = {
        "task": task,
        "requirements": requirements_section(requirements),
        "tools": tools_section(known),
        "plan": plan_section(plan),
        "arguments": _arguments_section(plan, {str(fragment["step_id"]) for fragment in open_ones}),
        "results": results_section(plan, outputs, failures),
        "assessment": to_line(dict(assessment)) if assessment else "",
        "fragments": "\n".join(map(to_line, open_ones)),
        "limits": f"{left} refinements of the plan, {MAX_ATTEMPTS_OF_FRAGMENT} of one fragment in all; "
        f"subplans nest at most {MAX_NESTING_DEPTH} deep",
        "ttl": ttl_section(ttl_remaining, ttl_limit),
    }
    schema = refine_schema(tool["name"] for tool in known)
    most = {"actions": max(1, left), "follow_up_questions": MAX_QUESTIONS}
    return build_request("refine", sections, schema=schema, most=most, max_tokens=max_tokens, folder=prompts_dir)


def _arguments_section(plan: Plan, wanted: Collection[str]) -> str:
    """Return a line for each requested step that has arguments."""
    steps = (step for step in plan.walk() if step.step_id in wanted and step.arguments is not None)
    return "\n".join(to_line({"step_id": step.step_id, "arguments": step.arguments}) for step in steps)


_INVALID = "not a valid refinement: "


@dataclass(frozen=True, slots=True)
class RefinementReply:
    """A reply's content. `problems` says which actions could not be read, and why."""

    actions: list[RefinementAction]
    follow_up_questions: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def errors(self) -> list[dict[str, Any]]:
        """Return the problems as a cycle's errors."""
        return [{"error_type": "ValidationError", "message": f"refinement: {problem}"} for problem in self.problems]


def read_refinement(reply: Any) -> RefinementReply:
    """Return the actions and questions of a reply: its text, or the value it holds.

    Text where `changes` should be an object counts as {"text": …}. Unreadable actions are left out and named. Raises
    ValidationError, with `problems`, if the reply does not have this form at all or holds no usable action.
    """
    try:
        value = object_in(reply, "an object with 'actions' and 'follow_up_questions'")
    except ValueError as error:
        raise invalid([str(error)], _INVALID) from None
    given = value.get("actions")
    if not isinstance(given, list):
        raise invalid([f"actions: expected an array of refinement actions, got {shown(given)}"], _INVALID)
    actions: list[RefinementAction] = []
    problems: list[str] = []
    for index, item in enumerate(given):
        try:
            actions.append(_action(item))
        except ValueError as error:
            problems.append(f"actions[{index}]: {error}")
    if problems and not actions:
        raise invalid(problems[:MAX_PROBLEMS], _INVALID)
    return RefinementReply(actions, read_questions(value.get("follow_up_questions")), problems[:MAX_PROBLEMS])


def _action(item: Any) -> RefinementAction:
    if not isinstance(item, dict):
        raise ValueError(f"expected an object, got {shown(item)}")
    made = {key: item[key] for key in RefinementAction.model_fields if item.get(key) is not None}
    changes = made.get("changes")
    if isinstance(changes, str):
        made["changes"] = {"text": changes}
    elif isinstance(changes, list):
        made["changes"] = {"steps": changes}
    elif isinstance(changes, dict):
        made["changes"] = {key: value for key, value in changes.items() if value is not None}
    made["semantic_validation_input"] = _cited(made.get("semantic_validation_input"))
    made.pop("inconsistency_detected", None)
    if not isinstance(made.get("reason"), str) or not made["reason"].strip():
        made["reason"] = "the model gave no reason"
    try:
        return RefinementAction.model_validate(made)
    except pydantic.ValidationError as error:
        detail = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}") from None


def _cited(value: Any) -> list[dict[str, Any]]:
    """Return the issues that a model names, by id or in full."""
    cited: Sequence[Any] = value if isinstance(value, list) else [value]
    ids = [{"issue_id": item} for item in cited if isinstance(item, str)]
    return [*ids, *(item for item in cited if isinstance(item, dict))]


def read_questions(value: Any) -> list[str]:
    """Return the questions of a reply's list, each once and on one line; one may be an object with a `question`."""
    listed = value if isinstance(value, list) else []
    texts = [item.get("question") if isinstance(item, dict) else item for item in listed]
    questions = [" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip()]
    return list(dict.fromkeys(questions))[:MAX_QUESTIONS]
