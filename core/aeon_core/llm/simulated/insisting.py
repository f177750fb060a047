"""A planner that learns nothing: whatever is found wanting, it puts the same step in its place again."""

from __future__ import annotations

from typing import Any

from aeon_core.llm.simulated.outcomes import clip
from aeon_core.llm.simulated.planning import MAX_GOAL
from aeon_core.llm.simulated.prompt import Prompt


def insisting(prompt: Prompt) -> dict[str, Any]:
    """Return a refinement that replaces every executed step it is shown by one that does the same."""
    shown = {str(fragment.get("step_id")) for fragment in prompt.fragments}
    wanting = [
        step for step in prompt.steps if step["step_id"] in shown and step.get("status") in ("failed", "complete")
    ]
    return {"actions": [_again(step) for step in wanting], "follow_up_questions": []}


def _again(step: dict[str, Any]) -> dict[str, Any]:
    tool = step.get("tool")
    stand_in = {
        "id": step["step_id"],
        "parent": None,
        "description": clip(str(step.get("description")), MAX_GOAL),
        "tool": tool,
        "agent": None if tool else "llm",
        "arguments": None,
        "depends_on": None,
    }
    changes = {"after": None, "goal": None, "steps": [stand_in]}
    reason = "it is to be done once more"
    return {"type": "step_mark_invalid", "target": step["step_id"], "changes": changes, "reason": reason}
