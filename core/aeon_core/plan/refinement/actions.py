"""Refinement as data: the action a planner asks for, the limits, the ledger (adaptive: Refinement Action)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue

from aeon_core.entities import Entity
from aeon_core.plan.models import MAX_NESTING_DEPTH, NonBlank

MAX_QUESTIONS = 5
"""The most follow-up questions asked at a time."""
PLAN = "plan"
"""The plan as a whole, as a target and a fragment for what no single step covers."""
ANSWER = "answer"
"""The answer, as the target of a plan_update: the steps are fine, and only the answer is to be given again."""

RefinementType = Literal["plan_update", "step_add", "step_remove", "step_modify", "subplan_create", "step_mark_invalid"]


class RefinementAction(Entity):
    """One modification of the plan during refinement (adaptive FR-073)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    type: RefinementType
    target: NonBlank
    """A step_id, or a section: PLAN, ANSWER."""
    changes: dict[str, JsonValue] = Field(default_factory=dict)
    """The modified content."""
    reason: NonBlank
    semantic_validation_input: list[dict[str, JsonValue]] = Field(default_factory=list)
    """The validation issues that triggered it."""
    inconsistency_detected: bool = False
    """Whether it conflicts with steps that were already executed (adaptive FR-069)."""


Cause = Literal["refinement_limit", "nesting_limit"]
"""Why a fragment is left to a person."""


class ManualIntervention(Entity):
    """A fragment that needs the user's attention; the run continues without it (adaptive FR-065, FR-082)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    step_id: NonBlank
    """The fragment: a step_id, or PLAN."""
    cause: Cause
    reason: NonBlank
    attempts: Annotated[int, Field(ge=0)]


MAX_ATTEMPTS_OF_FRAGMENT = 3
"""The most attempts for one fragment (adaptive FR-065)."""
MAX_ATTEMPTS = 10
"""The most attempts in all (adaptive FR-066)."""


class RefinementLedger(Entity):
    """How often each fragment was refined, over the whole run. Plain JSON, so that a snapshot can hold it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    total: Annotated[int, Field(ge=0)] = 0
    fragments: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Attempts by fragment: PLAN, or a step_id; for a replacement, that of the first step in the chain."""
    manual_intervention: list[ManualIntervention] = Field(default_factory=list)

    def attempts(self, fragment: str) -> int:
        """Return how often a fragment was refined."""
        return self.fragments.get(fragment, 0)

    def refusal(self, fragment: str) -> str | None:
        """Return why the fragment may not be refined again, or None if it may."""
        if self.attempts(fragment) >= MAX_ATTEMPTS_OF_FRAGMENT:
            return f"{fragment!r} was refined {self.attempts(fragment)} times, the most for one fragment"
        if self.total >= MAX_ATTEMPTS:
            return f"the plan was refined {self.total} times, the most in all"
        return None

    def counted(self, fragment: str) -> RefinementLedger:
        """Return the ledger with one more attempt."""
        fragments = {**self.fragments, fragment: self.attempts(fragment) + 1}
        return self.model_copy(update={"total": self.total + 1, "fragments": fragments})

    def marked(self, step_id: str, cause: Cause, reason: str) -> RefinementLedger:
        """Return the ledger with a fragment that needs a person; an existing entry is unchanged."""
        if self.left_to_a_person(step_id):
            return self
        entry = ManualIntervention(step_id=step_id, cause=cause, reason=reason, attempts=self.attempts(step_id))
        return self.model_copy(update={"manual_intervention": [*self.manual_intervention, entry]})

    def nested_too_deep(self, step_ids: Iterable[str]) -> RefinementLedger:
        """Return the ledger with the steps marked whose subplans were left out (adaptive FR-082)."""
        ledger, reason = self, f"subplans nested deeper than {MAX_NESTING_DEPTH} levels; deeper ones were dropped"
        for step_id in step_ids:
            ledger = ledger.marked(step_id, "nesting_limit", reason)
        return ledger

    def left_to_a_person(self, fragment: str) -> bool:
        """Return whether the fragment was marked for a person."""
        return any(entry.step_id == fragment for entry in self.manual_intervention)

    def exhausted(self, fragment: str) -> bool:
        """Return whether the fragment may no longer be refined."""
        return self.left_to_a_person(fragment) or self.refusal(fragment) is not None


def end_of_chain(step_id: str, links: Mapping[str, str]) -> str:
    """Follow the links from a step to the end and return that step; the step itself if it has no link.

    Following what each step replaces gives the fragment that the ledger counts.
    """
    seen = {step_id}
    while (linked := links.get(step_id)) is not None and linked not in seen:
        seen.add(linked)
        step_id = linked
    return step_id


@dataclass(frozen=True, slots=True)
class Advisory:
    """A repair that validation proposed but the planner did not follow; the planner's refinement is kept (FR-079)."""

    step_id: str
    issue: dict[str, JsonValue]

    def as_dict(self) -> dict[str, Any]:
        """Return the advisory as plain JSON."""
        return {
            "step_id": self.step_id,
            "issue": self.issue,
            "resolution": "the recursive planner's refinement was kept",
        }
