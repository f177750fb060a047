"""Plans in a line, and what the rules find in them."""

from __future__ import annotations

from typing import Any

from aeon_core.plan.models import Plan
from aeon_core.validation.validator import SemanticValidator
from tests.aeon_core.validation.labelled.tools import registry

VALIDATOR = SemanticValidator(registry())

Step = str | tuple[Any, ...]


def plan(goal: str, *described: Step) -> Plan:
    """Steps s1, s2, …: a description, or (description, tool or None, arguments or None, ids it depends on)."""
    steps = []
    for number, given in enumerate(described, 1):
        said, tool, arguments, needed = (*((given,) if isinstance(given, str) else given), None, None, None)[:4]
        steps.append(
            {
                "step_id": f"s{number}",
                "description": said,
                "tool": tool,
                "agent": None if tool else "llm",
                "arguments": arguments,
                "depends_on": needed,
            }
        )
    return Plan.model_validate({"goal": goal, "steps": steps})


def found(goal: str, *described: Step) -> list[tuple[str, str, str | None]]:
    """What the rules find: type, severity and step."""
    report = VALIDATOR.validate_plan(plan(goal, *described))
    return [(issue.type, issue.severity, issue.location.step_id) for issue in report.issues]


def said(goal: str, *described: Step) -> list[str]:
    """What the rules find, in words."""
    return [issue.description for issue in VALIDATOR.validate_plan(plan(goal, *described)).issues]


def repairs(goal: str, *described: Step) -> list[str]:
    """What the rules propose."""
    return VALIDATOR.validate_plan(plan(goal, *described)).proposed_repairs
