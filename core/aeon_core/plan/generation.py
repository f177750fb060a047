"""Asking a model for a plan (core FR-006, FR-067, FR-069; Decision 13)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aeon_core.llm.base import LLMRequest
from aeon_core.plan.wire import plan_schema
from aeon_core.prompts import build_request
from aeon_core.prompts.sections import requirements_section, tools_section, ttl_section


def plan_request(
    task: str,
    tools: list[dict[str, Any]],
    *,
    requirements: Sequence[str] = (),
    ttl_remaining: int,
    ttl_limit: int,
    max_tokens: int,
    prompts_dir: Path | None = None,
) -> LLMRequest:
    """Return the request for a plan: the task unaltered, every registered tool with schemas and examples."""
    sections = {
        "task": task,
        "requirements": requirements_section(requirements),
        "tools": tools_section(tools),
        "ttl": ttl_section(ttl_remaining, ttl_limit),
    }
    return build_request(
        "plan", sections, schema=plan_schema(tool["name"] for tool in tools), max_tokens=max_tokens, folder=prompts_dir
    )
