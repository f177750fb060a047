"""Asking a model how a plan is to be refined (adaptive FR-009 to FR-013)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import Plan
from aeon_core.plan.refinement.actions import RefinementLedger, RefinementLimits, RefinementType
from aeon_core.plan.refinement.fragments import Fragment
from aeon_core.plan.wire import changed_step_items, closed
from aeon_core.prompts import build_request
from aeon_core.prompts.sections import (
    plan_section,
    requirements_section,
    results_section,
    to_line,
    tools_section,
    ttl_section,
)


def refine_schema(tool_names: Iterable[str]) -> dict[str, Any]:
    """Return the refinement as it is asked of a model: closed objects, flat steps, no recursion, for strict modes."""
    after = {"type": ["string", "null"], "description": "step_add: id of the step that the new ones come after"}
    steps = {"type": "array", "description": "in the order of execution", "items": changed_step_items(tool_names)}
    action = closed(
        {
            "type": {"type": "string", "enum": list(get_args(RefinementType))},
            "target": {
                "type": "string",
                "description": "step_id of the step to refine; plan for the plan itself, answer for the answer",
            },
            "changes": closed({"after": after, "steps": steps}),
            "reason": {"type": "string", "description": "why it is needed"},
        }
    )
    questions = {"type": "array", "items": {"type": "string"}}
    return closed({"actions": {"type": "array", "items": action}, "follow_up_questions": questions})


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
    limits: RefinementLimits | None = None,
    reasoning: str = "",
    prompts_dir: Path | None = None,
) -> LLMRequest:
    """Return the request for refinement actions on the fragments that may still be refined.

    `assessment` is what convergence found, `reasoning` how deeply to think. The plan, results and issues are shown as
    data, with the arguments of the steps to refine, so that one of them can be corrected and the others kept.
    """
    limits = limits if limits is not None else RefinementLimits()
    known = list(tools)
    open_ones = [fragment.as_dict() for fragment in fragments if not fragment.exhausted]
    left = (
        f"{max(0, limits.total - ledger.total)} refinements of the plan, {limits.per_fragment} of one fragment in all"
    )
    sections = {
        "task": task,
        "requirements": requirements_section(requirements),
        "tools": tools_section(known),
        "plan": plan_section(plan),
        "arguments": _arguments_section(plan, {str(fragment["step_id"]) for fragment in open_ones}),
        "results": results_section(plan, outputs, failures),
        "assessment": to_line(dict(assessment)) if assessment else "",
        "fragments": "\n".join(map(to_line, open_ones)),
        "limits": f"{left}; subplans nest at most {limits.nesting} deep",
        "reasoning": reasoning,
        "ttl": ttl_section(ttl_remaining, ttl_limit),
    }
    schema = refine_schema(tool["name"] for tool in known)
    return build_request("refine", sections, schema=schema, max_tokens=max_tokens, folder=prompts_dir)


def _arguments_section(plan: Plan, wanted: Collection[str]) -> str:
    """Return a line for each of the wanted steps that has arguments."""
    steps = (step for step in plan.walk() if step.step_id in wanted and step.arguments is not None)
    return "\n".join(to_line({"step_id": step.step_id, "arguments": step.arguments}) for step in steps)
