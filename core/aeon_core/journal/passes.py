"""The passes of a run, as their records and those before them tell (adaptive: Execution Pass; FR-071 to FR-078)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Annotated, Any

from pydantic import Field, ValidationError

from aeon_core.entities import Entity
from aeon_core.journal.values import dict_of, int_of

_NO_FIELDS = frozenset({"v", "seq", "ts", "run", "type", "pass"})
"""Keys of a line that are no fields of the entity it holds."""
_DEPTH_FIELDS = frozenset({"adaptive_depth", "adjustment_reason"})
"""Keys of a profile's line that are no fields of the TaskProfile."""


class ExecutionPass(Entity):
    """One iteration of the multi-pass loop (adaptive: Execution Pass).

    `plan_state` is the plan when the pass ended, with its refinements and the steps' statuses. `phases` holds phase
    and `duration_ms` of each; `timing_information` start_time, end_time and duration in seconds.
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
    """The profile that the pass went by."""
    adaptive_depth: dict[str, Any] | None = None
    """How deep it was to reason, and why (adaptive FR-078)."""
    initial_plan_state: dict[str, Any] | None = None
    """The plan when the pass began; of the first pass, as it was made or given (adaptive FR-072)."""
    validation_reports: list[dict[str, Any]] = Field(default_factory=list)
    """Every SemanticValidationReport of the pass, in order: of the plan before it ran, of what it gave (FR-075)."""
    advisories: list[dict[str, Any]] = Field(default_factory=list)
    """Repairs that validation proposed and the planner did not follow (adaptive FR-079)."""


class PassesFold:
    """Folds the records of a run into its passes. What it keeps is its own: nothing that comes later changes it."""

    def __init__(self) -> None:
        self.passes: list[ExecutionPass] = []
        """Those that have ended."""
        self._initial: dict[str, Any] | None = None
        self._reports: list[dict[str, Any]] = []
        self._advisories: list[dict[str, Any]] = []
        self._profiles: list[tuple[int, dict[str, Any]]] = []

    def apply(self, record: Mapping[str, Any]) -> None:
        """Fold one record in; a pass that cannot be read is left out."""
        kind = record.get("type")
        if kind == "plan" and record.get("cause") in ("generated", "given") and self._initial is None:
            self._initial = deepcopy(dict_of(record.get("plan")))
        elif kind == "profile":
            self._profiles.append((int_of(record.get("pass")), _fields(record)))
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
            ended.initial_plan_state = self._initial
            ended.validation_reports, ended.advisories = self._reports, self._advisories
            self._set_profile(ended)
            self.passes.append(ended)
        self._initial = deepcopy(ended.plan_state) if ended is not None else None
        self._reports, self._advisories = [], []

    def _set_profile(self, ended: ExecutionPass) -> None:
        """Put in the profile that the pass went by: when its record is written, that of the next may hold already."""
        known = [fields for number, fields in self._profiles if number <= ended.pass_number]
        if known:
            ended.task_profile = {key: value for key, value in known[-1].items() if key not in _DEPTH_FIELDS}
            ended.adaptive_depth = dict_of(known[-1].get("adaptive_depth"))


def _read(record: Mapping[str, Any]) -> ExecutionPass | None:
    try:
        return ExecutionPass.model_validate(deepcopy(dict(record)), extra="ignore")
    except ValidationError:
        return None


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    return deepcopy({key: value for key, value in record.items() if key not in _NO_FIELDS})
