"""Plans in a line, and what the exact checks find in them."""

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


def found(*described: Step) -> list[tuple[str, str, str | None]]:
    """What the checks find: type, severity and step."""
    report = VALIDATOR.validate_plan(plan("Weigh the parcels", *described))
    return [(issue.type, issue.severity, issue.location.step_id) for issue in report.issues]


def said(*described: Step) -> list[tuple[str, str]]:
    """What the checks find, in words, and the repairs that they propose."""
    report = VALIDATOR.validate_plan(plan("Weigh the parcels", *described))
    return [(issue.description, issue.proposed_repair) for issue in report.issues]
