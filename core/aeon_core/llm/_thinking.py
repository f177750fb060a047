"""Which models can be told how much to think, and how they are told: known by their names, for nobody says it."""

from __future__ import annotations

import re
from typing import Any

from aeon_core.llm.base import LLMRequest

_LEAST_BUDGET = 1024
"""Tokens of thinking below which the API refuses a budget."""
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?")
_FIRST_THAT_THINKS = (3, 7)
_FIRST_ADAPTIVE = (4, 6)
"""From here on a model decides itself how long it thinks; later ones refuse a budget."""
_TAKES_REASONING_EFFORT = re.compile(r"(?:^|[/:])(?:o[134](?![\w.])|gpt-[56](?!\d)|gpt-oss(?!\w))")
_TAKES_NONE = re.compile(r"o1-(?:mini|preview)|-chat\b")


def claude_thinking(name: str, request: LLMRequest) -> dict[str, Any] | None:
    """Return the `thinking` that a Claude model is asked for at high effort, None where none is asked for.

    A budget is what the `max_tokens` have room for beside the reply. Thinking goes with neither a forced tool choice
    nor a temperature, which are never sent; nor with earlier tool uses, whose thinking is not kept.
    """
    version = _claude_version(name)
    if request.effort != "high" or version < _FIRST_THAT_THINKS or any(m.get("tool_calls") for m in request.messages):
        return None
    if version >= _FIRST_ADAPTIVE:
        return {"type": "adaptive"}
    budget = request.thinking_tokens
    return {"type": "enabled", "budget_tokens": budget} if budget >= _LEAST_BUDGET else None


def takes_claude_effort(name: str) -> bool:
    """Return whether a Claude model takes `effort` in its `output_config`."""
    return _claude_version(name) >= _FIRST_ADAPTIVE or "opus-4-5" in name.lower()


def takes_reasoning_effort(name: str) -> bool:
    """Return whether a model behind Chat Completions takes `reasoning_effort`: the o-series, gpt-5, gpt-6, gpt-oss."""
    lowered = name.lower()
    return bool(_TAKES_REASONING_EFFORT.search(lowered)) and not _TAKES_NONE.search(lowered)


def _claude_version(name: str) -> tuple[int, int]:
    """Return the version in a model's name, (0, 0) where there is none; a date or a revision is no part of it."""
    found = _CLAUDE.search(name.lower())
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)
