"""The review of a plan by a model before it acts (contract: `review`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aeon_core.judge.judgement import REVIEW_SCHEMA
from aeon_core.llm.base import DEFAULT_MAX_TOKENS, LLMRequest
from aeon_core.plan.models import Plan
from aeon_core.prompts import build_request
from aeon_core.prompts.sections import plan_section, requirements_section, to_line, tools_section

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry


def review_request(
    plan: Plan,
    registry: ToolRegistry,
    *,
    task: str | None = None,
    requirements: Sequence[str] = (),
    folder: Path | None = None,
    max_tokens: int = DEFAULT_MAX_TOKENS,
) -> LLMRequest:
    """Return the request to review a plan that is about to run, against the task and its requirements."""
    arguments = (step for step in plan.walk() if step.arguments is not None)
    sections = {
        "task": task or plan.goal,
        "requirements": requirements_section(requirements),
        "tools": tools_section(registry.export_tools_for_llm()),
        "plan": plan_section(plan),
        "arguments": "\n".join(to_line({"step_id": step.step_id, "arguments": step.arguments}) for step in arguments),
    }
    return build_request("review", sections, schema=REVIEW_SCHEMA, max_tokens=max_tokens, folder=folder)
