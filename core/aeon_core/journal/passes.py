"""The passes of a run, as their records and those before them tell (adaptive: Execution Pass; FR-071 to FR-078)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Annotated, Any

from pydantic import Field, ValidationError

from aeon_core.entities import Entity
from aeon_core.journal.values import dict_of, dicts_of, int_of, str_of

_NO_FIELDS = frozenset({"v", "seq", "ts", "run", "type", "pass"})
"""Keys of a line that are no fields of the entity it holds."""


class ExecutionPass(Entity):
    """One iteration of the multi-pass loop (adaptive: Execution Pass).

    `plan_state` is the plan when the pass began; in the first, as it was made or given. `phases` holds phase and
    `duration_ms` of each; `timing_information` start_time, end_time and duration in seconds.
    """

    pass_number: Annotated[int, Field(ge=1)]
    phases: list[dict[str, Any]]
    plan_state: dict[str, Any]
    execution_results: dict[str, Any]
    evaluation_results: dict[str, Any]
    """The last `semantic_validation` and `convergence` of the pass; empty in a run without them."""
    refinement_changes: list[dict[str, Any]]
    ttl_remaining: Annotated[int, Field(ge=0)]
    timing_information: dict[str, Any]
    task_profile: dict[str, Any] | None = None
    """The profile that held during the pass."""
    adaptive_depth: dict[str, Any] | None = None
    """How deep it was to reason, and why (adaptive FR-078)."""
    depth_adjustments: list[dict[str, Any]] = Field(default_factory=list)
    """Each AdaptiveDepthConfiguration that was made for the pass, in order; the last is the one that held."""
    final_plan_state: dict[str, Any] | None = None
    """The plan when the pass ended, with its refinements and the statuses of its steps (adaptive FR-072)."""
    validation_reports: list[dict[str, Any]] = Field(default_factory=list)
    """Every SemanticValidationReport of the pass, in order: of the plan before it ran, of what it gave (FR-075)."""
    advisories: list[dict[str, Any]] = Field(default_factory=list)
    """Repairs that validation proposed and the planner did not follow (adaptive FR-079)."""


class PassesFold:
    """Folds the records of a run into its passes. What it keeps is its own: nothing that comes later changes it."""

    def __init__(self) -> None:
        self.passes: list[ExecutionPass] = []
        """Those that have ended."""
        self._plan: dict[str, Any] | None = None
        self._statuses: dict[str, Any] = {}
        self._depths: list[tuple[int, dict[str, Any]]] = []
        self._reports: list[dict[str, Any]] = []
        self._advisories: list[dict[str, Any]] = []

    def apply(self, record: Mapping[str, Any]) -> None:
        """Fold one record in; a pass that cannot be read is left out."""
        kind = record.get("type")
        if kind == "plan":
            self._plan, self._statuses = dict_of(record.get("plan")), {}
        elif kind == "step":
            self._statuses[str_of(record.get("step_id"))] = record.get("status")
        elif kind == "profile":
            depth = deepcopy(dict_of(record.get("adaptive_depth")) or {})
            told = (int_of(record.get("pass")), depth)
            if told not in self._depths[-1:]:
                self._depths.append(told)  # else the requirements alone were edited
        elif kind == "validation":
            report = _fields(record)
            if report not in self._reports[-1:]:
                self._reports.append(report)
        elif kind == "notice" and record.get("kind") == "advisory":
            self._advisories.append(deepcopy(dict_of(record.get("data")) or {}))
        elif kind == "pass":
            self._end(record)

    def _end(self, record: Mapping[str, Any]) -> None:
        ended = _read(record)
        if ended is not None:
            ended.final_plan_state = _as_it_is(self._plan or ended.plan_state, self._statuses)
            ended.depth_adjustments = [depth for number, depth in self._depths if number == ended.pass_number]
            ended.validation_reports, ended.advisories = self._reports, self._advisories
            self.passes.append(ended)
        self._reports, self._advisories = [], []


def _as_it_is(plan: dict[str, Any], statuses: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a plan, with the statuses that its steps have got since it was told."""
    copied = deepcopy(plan)
    nodes = dicts_of(copied.get("steps"))
    while nodes:
        node = nodes.pop()
        if status := str_of(statuses.get(str_of(node.get("step_id")))):
            node["status"] = status
        nodes += dicts_of((dict_of(node.get("subplan")) or {}).get("substeps"))
    return copied


def _read(record: Mapping[str, Any]) -> ExecutionPass | None:
    try:
        return ExecutionPass.model_validate(deepcopy(dict(record)), extra="ignore")
    except ValidationError:
        return None


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    return deepcopy({key: value for key, value in record.items() if key not in _NO_FIELDS})
