"""Plan, PlanStep and Subplan: the declarative plan as data (core FR-007, FR-009; data model: Plan, PlanStep)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    SerializeAsAny,
    StringConstraints,
    model_validator,
)

from aeon_core.plan import StepStatus

MAX_NESTING_DEPTH = 5
"""Deepest `depth_level` of a subplan (adaptive FR-082)."""

_TRANSITIONS: dict[str, frozenset[str]] = {
    "pending": frozenset({"running"}),
    "running": frozenset({"complete", "failed"}),
    "complete": frozenset({"invalid"}),
    "failed": frozenset({"invalid"}),
    "invalid": frozenset(),
}

NonBlank = Annotated[str, StringConstraints(strict=True, pattern=r"\S")]


class _Declarative(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", validate_assignment=True, allow_inf_nan=False, defer_build=True
    )


class PlanStep(_Declarative):
    """One step of a plan.

    With `tool` it runs as a tool call (which takes precedence over `agent`), with `agent: llm` as reasoning; with
    neither, or with a tool that is not registered, it is a missing-tool step: repaired, else reasoned about. Invalid
    data raises pydantic's ValidationError, and assigning a `status` that is not a legal transition ValueError.
    """

    step_id: NonBlank
    """Id of the step, unique in the whole plan."""
    description: NonBlank
    """What the step does, in words."""
    status: StepStatus = "pending"
    """`pending` for a step that has not run."""
    tool: NonBlank | None = None
    """Name of the registered tool that the step calls."""
    agent: Literal["llm"] | None = None
    """`llm` for a step in which the model reasons, without a tool."""
    arguments: SerializeAsAny[dict[str, JsonValue]] | None = None
    """The tool's declarative arguments; without them, the step's LLM cycle supplies the tool call."""
    depends_on: list[NonBlank] | None = None
    """Ids of earlier steps this one builds on; execution stays sequential."""
    errors: list[str] | None = None
    """The validator's messages; cleared by a successful repair or when the step ends."""
    subplan: Subplan | None = None
    """The smaller steps that carry it out."""
    replaces: NonBlank | None = None
    """Id of the invalid step that this one replaces."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "status":
            self._move(value)
        else:
            super().__setattr__(name, value)

    def _move(self, status: StepStatus) -> None:
        if status not in _TRANSITIONS[self.status]:
            raise ValueError(f"step {self.step_id!r} cannot go from {self.status!r} to {status!r}")
        # A checked literal needs no second validation: this runs twice a step.
        self.__dict__["status"] = status
        if status in ("complete", "failed"):
            self.__dict__["errors"] = None

    @property
    def executed(self) -> bool:
        """Whether the step has run: its definition can no longer change (adaptive FR-070)."""
        return self.status in ("complete", "failed", "invalid")

    @property
    def substeps(self) -> list[PlanStep]:
        """The steps of its subplan, none without one."""
        return self.subplan.substeps if self.subplan is not None else []

    def walk(self) -> Iterator[PlanStep]:
        """Yield the step and everything under it, each parent before its substeps."""
        return _walk([self])

    @model_validator(mode="after")
    def _subplan_belongs_here(self) -> PlanStep:
        if self.subplan is not None and self.subplan.parent_step_id != self.step_id:
            raise ValueError(
                f"the subplan of step {self.step_id!r} names {self.subplan.parent_step_id!r} as its parent_step_id"
            )
        return self


class Subplan(_Declarative):
    """A nested plan that expands one step (adaptive: Subplan)."""

    parent_step_id: NonBlank
    """Id of the step that it expands."""
    subplan_goal: NonBlank
    """The step's goal, in words."""
    substeps: list[PlanStep] = Field(min_length=1)
    """Run in this order, before the parent ends."""
    depth_level: Annotated[int, Field(strict=True, ge=1, le=MAX_NESTING_DEPTH)] = 1
    """1 for the subplan of a top-level step, 2 for a subplan inside it, and so on."""
    created_by: NonBlank = "plan"
    """What made it, such as `plan`."""

    @model_validator(mode="after")
    def _depths_grow_by_one(self) -> Subplan:
        for step in self.substeps:
            if step.subplan is not None and step.subplan.depth_level != self.depth_level + 1:
                raise ValueError(
                    f"the subplan of step {step.step_id!r} has depth_level {step.subplan.depth_level}, "
                    f"expected {self.depth_level + 1}"
                )
        return self


class Plan(_Declarative):
    """A goal and the ordered steps that reach it. The order is the array's; step ids are unique in the whole tree."""

    goal: NonBlank
    """The plan's goal, in words."""
    steps: list[PlanStep] = Field(min_length=1)
    """Run one after the other, in this order."""
    _cut: tuple[str, ...] = PrivateAttr(default=())

    @property
    def cut(self) -> tuple[str, ...]:
        """The steps whose subplans were left out because they nest deeper than MAX_NESTING_DEPTH (adaptive FR-082)."""
        return self._cut

    def cut_at(self, step_ids: Iterable[str]) -> Plan:
        """Note the steps whose subplans were left out; return the plan."""
        self._cut = tuple(step_ids)
        return self

    @model_validator(mode="after")
    def _tree_is_sound(self) -> Plan:
        seen: set[str] = set()
        for step in self.walk():
            if step.step_id in seen:
                raise ValueError(f"step_id {step.step_id!r} occurs twice; ids must be unique over the whole plan")
            seen.add(step.step_id)
        for step in self.steps:
            if step.subplan is not None and step.subplan.depth_level != 1:
                raise ValueError(f"the subplan of step {step.step_id!r} must have depth_level 1")
        return self

    def walk(self) -> Iterator[PlanStep]:
        """Yield every step of the tree, each parent before its substeps."""
        return _walk(self.steps)

    def find(self, step_id: str) -> PlanStep | None:
        """Return the step with that id anywhere in the tree, or None."""
        return next((step for step in self.walk() if step.step_id == step_id), None)

    @property
    def pending(self) -> list[PlanStep]:
        """The pending steps of the tree; when none is left, the loop ends (core FR-004)."""
        return [step for step in self.walk() if step.status == "pending"]


PlanStep.model_rebuild()


def _walk(steps: list[PlanStep]) -> Iterator[PlanStep]:
    stack = steps[::-1]
    while stack:
        step = stack.pop()
        yield step
        if step.subplan is not None:
            stack.extend(reversed(step.subplan.substeps))


def steps_to_gather(plan: Plan, step: PlanStep) -> list[PlanStep]:
    """Return the substeps that count for a step: its own valid ones, and those kept from the step it replaces.

    If a replacement has only the substeps that had to run again, the valid ones of the replaced step still count, so
    that nothing runs twice (FR-070). A replacement with parts of its own keeps none.
    """
    gathered = list[PlanStep]()
    seen = set[str]()
    current: PlanStep | None = step
    while current is not None and current.step_id not in seen:
        seen.add(current.step_id)
        gathered[:0] = [part for part in current.substeps if part.status != "invalid"]
        replaced = plan.find(current.replaces) if current.replaces is not None else None
        former = {part.step_id for part in replaced.substeps} if replaced is not None else set()
        current = replaced if not former.isdisjoint(part.replaces for part in current.substeps) else None
    return gathered
