"""The state of a run (data model: OrchestrationState; Decision 9): data and its rules, no control flow."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from aeon_core.adaptive_depth import AdaptiveDepthConfiguration
from aeon_core.entities import Entity, StepResult, SupervisorAction, ToolCall, TTLState
from aeon_core.plan import ExecutionMode
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.refinement.actions import RefinementLedger
from aeon_core.prompts import STRATEGIES, ReasoningMode
from aeon_core.task_profile import TaskProfile

T = TypeVar("T")

FULL_PLAN_STEPS = 32
"""Up to this many steps, every cycle holds the whole plan; beyond, mostly what changed since the cycle before."""


class AppendOnly(list[T]):
    """A list that only grows. Another thread may read it while the kernel appends."""

    def extend(self, values: Iterable[T]) -> None:
        for value in values:
            self.append(value)


class ReadOnly(dict[str, Any]):
    """An entry of a history, deeply immutable."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        super().__init__({key: _read_only(item) for key, item in value.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadOnly, (dict(self),)


def _read_only(value: Any) -> Any:
    if isinstance(value, dict):
        return ReadOnly(value)
    return tuple(map(_read_only, value)) if isinstance(value, list) else value


def _refuse(kind: type, why: str, methods: str) -> None:
    def refused(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError(why)

    for method in methods.split():
        setattr(kind, method, refused)


_refuse(
    AppendOnly,
    "this history is append-only",
    "__setitem__ __delitem__ __iadd__ __imul__ clear insert pop remove reverse sort",
)
_refuse(
    ReadOnly,
    "what is in a history does not change",
    "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update",
)


def call_form(step: PlanStep) -> str:
    """Return a digest of what a step does: its description, tool and arguments."""
    definition = json.dumps([step.description, step.tool, step.arguments], sort_keys=True)
    return hashlib.sha256(definition.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class OrchestrationState(Entity):
    """A run's state. Histories are append-only; another thread may read all of it during the run.

    `outputs`, `modes` and `failures` (why a step failed) are by step_id.
    """

    plan: Plan | None = None
    current_step_id: str | None = None
    tool_history: Annotated[list[ToolCall], AfterValidator(AppendOnly)] = Field(default_factory=AppendOnly)
    llm_outputs: Annotated[list[dict[str, Any]], AfterValidator(AppendOnly)] = Field(default_factory=AppendOnly)
    supervisor_actions: Annotated[list[SupervisorAction], AfterValidator(AppendOnly)] = Field(
        default_factory=AppendOnly
    )
    ttl_remaining: Annotated[int, Field(ge=0)]
    ttl_limit: Annotated[int, Field(ge=0)] = Field(default_factory=lambda data: data.get("ttl_remaining", 0))
    ttl_allocated: Annotated[int, Field(ge=0)] = Field(default_factory=lambda data: data.get("ttl_remaining", 0))
    outputs: dict[str, dict[str, Any]] = Field(default_factory=dict)
    modes: dict[str, ExecutionMode] = Field(default_factory=dict)
    failures: dict[str, list[str]] = Field(default_factory=dict)
    substitutions: dict[str, str] = Field(default_factory=dict)
    """Steps whose tool a repair replaced, with the tool they named before; "" for none."""
    reviewed: dict[str, str | None] = Field(default_factory=dict)
    """The review's objections to calls of unsafe tools, by `call_form`; None for no objection."""
    outdated: set[str] = Field(default_factory=set)
    """Steps that run again or were taken out: the memory's entries under their ids do not count."""
    pass_number: int = 1
    task_profile: TaskProfile | None = None
    requirements: list[str] = Field(default_factory=list)
    """What a finished answer must satisfy; settled with the profile, or by a person who approves the plan."""
    adaptive_depth: AdaptiveDepthConfiguration | None = None
    ledger: RefinementLedger = Field(default_factory=RefinementLedger)
    follow_up_questions: list[str] = Field(default_factory=list)
    answers: dict[str, str] = Field(default_factory=dict)
    """A person's answers to follow-up questions, by question; answered ones are no longer open."""
    _step_ids: set[str] = PrivateAttr(default_factory=set)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("tool_history", "llm_outputs", "supervisor_actions"):
            raise TypeError(f"{name} is append-only; it cannot be replaced")
        if name == "ttl_remaining" and value < 0:
            raise ValueError(f"ttl_remaining cannot be {value}; it ends at 0")
        if name == "current_step_id" and value is not None and not self._has(value):
            raise ValueError(f"current_step_id {value!r} is no step of the plan")
        super().__setattr__(name, value)

    def _has(self, step_id: str) -> bool:
        # Called twice a step: looking up a private attribute in pydantic takes as long as writing a record.
        known = (self.__pydantic_private__ or {})["_step_ids"]
        if step_id not in known and self.plan is not None:
            known = self._step_ids = {step.step_id for step in self.plan.walk()}
        return step_id in known

    @model_validator(mode="after")
    def _current_step_exists(self) -> OrchestrationState:
        if self.current_step_id is not None and not self._has(self.current_step_id):
            raise ValueError(f"current_step_id {self.current_step_id!r} is no step of the plan")
        return self

    @property
    def ttl(self) -> TTLState:
        """The TTL as the result and the journal show it."""
        remaining = self.ttl_remaining
        return TTLState(
            limit=self.ttl_limit,
            allocated=self.ttl_allocated,
            spent=self.ttl_allocated - remaining,
            remaining=remaining,
        )

    @property
    def reasoning_mode(self) -> ReasoningMode | None:
        """How deeply to reason now; None if not decided."""
        return self.adaptive_depth.reasoning_mode if self.adaptive_depth is not None else None

    @property
    def output_characters(self) -> int:
        """Characters of one step's output that a prompt shows."""
        return STRATEGIES[self.reasoning_mode or "balanced"].output_characters

    def spend_cycle(self) -> None:
        """Subtract one cycle from the TTL (core FR-035). Raises ValueError when none is left."""
        if self.ttl_remaining < 1:
            raise ValueError("no TTL cycle is left to spend")
        self.ttl_remaining -= 1

    def allocate(self, cycles: int) -> None:
        """Allocate this many cycles in all, including spent ones; never more than the limit."""
        spent = self.ttl.spent
        self.ttl_allocated = max(spent, min(cycles, self.ttl_limit))
        self.ttl_remaining = self.ttl_allocated - spent

    def adopt(self, plan: Plan) -> None:
        """Adopt another plan; earlier results of its pending steps, and of steps it no longer has, are dropped."""
        self.plan, self._step_ids = plan, set()
        kept = {step.step_id for step in plan.walk() if step.status != "pending"}
        for step_id in {*self.outputs, *self.modes, *self.failures} - kept:
            if self.outputs.pop(step_id, None) is not None:
                self.outdated.add(step_id)
            self.modes.pop(step_id, None)
            self.failures.pop(step_id, None)

    def substitution_of(self, step: PlanStep) -> str | None:
        """Return the tool that a step, or one it replaces, named before a repair; None if no repair changed it."""
        seen: set[str] = set()
        current: PlanStep | None = step
        while current is not None and current.step_id not in seen:
            if current.step_id in self.substitutions:
                return self.substitutions[current.step_id]
            seen.add(current.step_id)
            current = self.plan.find(current.replaces) if current.replaces is not None and self.plan else None
        return None

    def answer(self, answers: Mapping[str, str]) -> None:
        """Keep a person's answers, so that nobody is asked the same question again."""
        self.answers = {**self.answers, **answers}
        self.follow_up_questions = [each for each in self.follow_up_questions if each not in self.answers]

    def objection_to(self, step: PlanStep) -> str | None:
        """Return the plan review's objection to a step's call, None if it has none."""
        objection = self.reviewed.get(call_form(step)) if self.reviewed else None
        return f"the review of the plan objects: {objection}" if objection is not None else None

    def limited(self, options: Mapping[str, Any]) -> bool:
        """Apply the overrides' TTL limit and allocation; return whether that changes anything."""
        cycles = options.get("ttl", self.ttl_limit)
        if cycles == self.ttl_limit:
            return False
        self.ttl_limit = cycles
        self.allocate(cycles)
        return True

    def step_results(self) -> list[StepResult]:
        """Return the result of each step in the tree, substeps after their parent."""
        return [StepResult(**described) for described in self.described_steps()]

    def described_steps(self) -> list[dict[str, Any]]:
        """Return the step results as plain JSON."""
        return [self._describe(step) for step in self.plan.walk()] if self.plan is not None else []

    def _describe(self, step: PlanStep) -> dict[str, Any]:
        step_id = step.step_id
        return {
            "step_id": step_id,
            "description": step.description,
            "status": step.status,
            "mode": self.modes.get(step_id),
            "output": self.outputs.get(step_id),
            "errors": self.failures.get(step_id) or step.errors or [],
        }


@dataclass
class Cycle:
    """What happens in one orchestration cycle, until it is written as a LogEntry."""

    plan_state: dict[str, Any]
    llm_output: dict[str, Any] = field(default_factory=dict)
    supervisor_actions: list[SupervisorAction] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    open: bool = True
    """Whether it has yet to be written."""

    def entry(self) -> dict[str, Any]:
        """Return its fields of the LogEntry."""
        return {key: value for key, value in vars(self).items() if key != "open"}


class PlanRecorder:
    """What a cycle says about the plan: all of it, or what changed since the cycle before (contract: A cycle).

    The cost grows with the changes, not with the plan.
    """

    def __init__(self) -> None:
        self._plan: dict[str, Any] = {}
        self._nodes: dict[str, dict[str, Any]] = {}
        self._changes: dict[str, dict[str, Any]] = {}
        self._whole = True
        self._cycles_since_whole = 0
        self._previous_seq: int | None = None

    def structure(self, plan: Plan) -> None:
        """Note that the plan is new or its structure changed; the next cycle holds it in full."""
        self._plan = plan.model_dump(mode="json", exclude_none=True)
        self._nodes = {}
        stack = list(self._plan["steps"])
        while stack:
            node = stack.pop()
            self._nodes[node["step_id"]] = node
            stack.extend(node.get("subplan", {}).get("substeps", ()))
        self._changes = {}
        self._whole = True

    def new_pass(self) -> None:
        """Note that a pass begins; its first cycle holds the plan in full."""
        self._whole = True

    def changed(self, step: PlanStep) -> None:
        """Note that a step's status or errors changed."""
        changes = self._changes.setdefault(step.step_id, {})
        changes["status"] = step.status
        if step.errors is not None or "errors" in self._nodes[step.step_id] or "errors" in changes:
            changes["errors"] = list(step.errors or ())

    def at_cycle_start(self) -> dict[str, Any]:
        """Return the `plan_state` of a cycle that starts now. It is valid until the next call."""
        changes, self._changes = self._changes, {}
        for step_id, fields in changes.items():
            node = self._nodes[step_id]
            node.update(fields)
            if not node.get("errors", True):
                del node["errors"]
        size = len(self._nodes)
        self._cycles_since_whole += 1
        if self._whole or size <= FULL_PLAN_STEPS or self._cycles_since_whole >= size or self._previous_seq is None:
            self._whole, self._cycles_since_whole = False, 0
            return self._plan
        return {"since": self._previous_seq, "steps": changes}

    def cycle_written(self, seq: int) -> None:
        """Note the `seq` of the cycle that was written last."""
        self._previous_seq = seq
