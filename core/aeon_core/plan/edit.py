"""What a person makes of a plan before it runs: another plan, and what a finished answer must satisfy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.json_safe import clean_text
from aeon_core.plan.fields import shown
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan, parse_plan

REQUIREMENTS = "requirements"
"""The key of an edited plan that holds the requirements, beside `goal` and `steps`."""


@dataclass(frozen=True)
class PlanEdit:
    """An edited plan, edited requirements, or both; None for what was left as it was."""

    plan: Plan | None = None
    requirements: list[str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what `parse_plan_edit` reads as the same edit: the plan's keys, and `requirements`."""
        # A status that nobody wrote is left out: `pending` would let an executed step run again.
        plan = self.plan.model_dump(mode="json", exclude_unset=True, exclude_none=True) if self.plan is not None else {}
        return plan if self.requirements is None else {REQUIREMENTS: list(self.requirements), **plan}

    def whole(self) -> dict[str, Any]:
        """Return the same with every status, for a person to edit."""
        plan = dump_plan(self.plan) if self.plan is not None else {}
        return plan if self.requirements is None else {REQUIREMENTS: list(self.requirements), **plan}


def parse_plan_edit(data: Any) -> PlanEdit:
    """Return the edit that `data` describes: a plan in which steps may have been executed, with `requirements` or not.

    `requirements` alone leave the plan as it is. Raises ValidationError as `parse_plan` does.
    """
    if not isinstance(data, Mapping) or REQUIREMENTS not in data:
        return PlanEdit(parse_plan(data, fresh=False))
    requirements = parse_requirements(data[REQUIREMENTS])
    rest = {key: value for key, value in data.items() if key != REQUIREMENTS}
    return PlanEdit(parse_plan(rest, fresh=False) if rest else None, requirements)


def parse_requirements(value: Any) -> list[str]:
    """Return requirements, each once and on one line. Raises ValidationError, with `problems`."""
    if not isinstance(value, list) or not value:
        raise _invalid(f"{REQUIREMENTS}: expected a list of one sentence or more, got {shown(value)}")
    for number, text in enumerate(value):
        if not isinstance(text, str) or not text.strip():
            raise _invalid(f"{REQUIREMENTS}[{number}]: expected a sentence, got {shown(text)}")
    return list(dict.fromkeys(" ".join(clean_text(text).split()) for text in value))


def _invalid(problem: str) -> ValidationError:
    return ValidationError(f"not a valid plan: {problem}", problems=[problem])
