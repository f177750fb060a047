"""The steps of a plan, as a record holds it, for a view: what cannot be read is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast, get_args

from aeon_core.journal.values import dict_of, dicts_of, id_of, str_of, strs_of
from aeon_core.journal.view.parts import StepView
from aeon_core.step_words import StepStatus

_STATUSES = get_args(StepStatus)


def nodes(plan: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], int, str | None]]:
    """Yield each step with its depth and its parent's id, substeps after their parent."""
    stack: list[tuple[dict[str, Any], int, str | None]] = []
    stack.extend((node, 0, None) for node in reversed(dicts_of(plan.get("steps"))))
    while stack:
        node, depth, parent = stack.pop()
        if id_of(node.get("step_id")) is None:
            continue
        yield node, depth, parent
        substeps = dicts_of((dict_of(node.get("subplan")) or {}).get("substeps"))
        stack.extend((substep, depth + 1, node["step_id"]) for substep in reversed(substeps))


def describe(step: StepView, node: Mapping[str, Any], depth: int, parent: str | None) -> None:
    """Say of a step's view what the plan says of the step."""
    step.description, step.depth, step.parent = str_of(node.get("description")), depth, parent
    step.status = status_of(node.get("status"), step.status)
    step.tool, step.agent = id_of(node.get("tool")), id_of(node.get("agent"))
    step.arguments, step.replaces = dict_of(node.get("arguments")), id_of(node.get("replaces"))
    step.depends_on = strs_of(node.get("depends_on"))


def status_of(value: Any, default: StepStatus) -> StepStatus:
    """Return a step's status, `default` where the value is none."""
    return cast("StepStatus", value) if value in _STATUSES else default
