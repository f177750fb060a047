"""What a person changes where a fork starts, as one text: requirements, criteria of convergence, and the plan."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aeon_core.convergence.criteria import ConvergenceCriteria, parse_criteria
from aeon_core.errors import UsageError, ValidationError
from aeon_core.plan.edit import PlanEdit, parse_plan_edit
from aeon_core.plan.files import read_data
from aeon_tui.platform.yaml_draft import as_yaml

CRITERIA = "criteria"
TEXT = Path("the text")
"""What errors call the text that is edited."""
_PROBLEMS = 2


@dataclass(frozen=True)
class ForkEdits:
    """What a fork starts with instead of what its parent had there; None for what was left as it was."""

    plan: PlanEdit | None = None
    criteria: ConvergenceCriteria | None = None


@dataclass(frozen=True)
class ForkRequest:
    """A fork that a person asked for."""

    parent: Path
    pass_number: int
    """The pass that it starts with."""
    options: Mapping[str, Any]
    """Options that are not the parent's."""
    edits: ForkEdits = ForkEdits()


def fork_text(plan: PlanEdit, criteria: ConvergenceCriteria) -> str:
    """Return what holds where a fork starts, as YAML that `parse_fork_text` reads."""
    whole = plan.whole()
    requirements = {key: whole.pop(key) for key in ("requirements",) if key in whole}
    return as_yaml({**requirements, CRITERIA: criteria.model_dump(mode="json"), **whole})


def parse_fork_text(text: str, before: str) -> ForkEdits:
    """Return what a text changes of the one `before`.

    Raises UsageError in one line that calls the text `TEXT`, with all `problems` of a plan.
    """
    if text.strip() == before.strip():
        return ForkEdits()
    plan, criteria = _parsed(text)
    known_plan, known_criteria = _parsed(before)
    return ForkEdits(
        None if plan == known_plan else plan, None if criteria == known_criteria else criteria or ConvergenceCriteria()
    )


def _parsed(text: str) -> tuple[PlanEdit | None, ConvergenceCriteria | None]:
    data = _data(text)
    if not isinstance(data, dict):
        raise UsageError("the text is not a plan: expected `goal:` and `steps:`, as they were")
    criteria = parse_criteria(data.pop(CRITERIA)) if data.get(CRITERIA) is not None else None
    data.pop(CRITERIA, None)
    if not data:
        return None, criteria
    try:
        return parse_plan_edit(data), criteria
    except ValidationError as error:
        problems = error.context["problems"]
        raise UsageError(f"not a valid plan: {'; '.join(problems[:_PROBLEMS])}", problems=problems) from None


def _data(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "fork.yml")
        file.write_text(text, encoding="utf-8")
        try:
            return read_data(file)
        except UsageError as error:
            raise UsageError(error.message.replace(repr(str(file)), repr(str(TEXT)))) from None
