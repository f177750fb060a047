"""Refinement as data: actions, limits, the ledger, and fragments of a plan (adaptive: Refinement Action)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue

from aeon_core.entities import Entity, ValidationIssue
from aeon_core.plan import StepStatus, end_of_chain
from aeon_core.plan.models import MAX_NESTING_DEPTH, NonBlank, Plan

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


@dataclass(frozen=True, slots=True)
class Fragment:
    """A step to refine, or the plan. `exhausted` says that it may no longer be refined."""

    step_id: str
    """PLAN for the plan as a whole."""
    status: StepStatus | None
    """None for the plan."""
    reasons: tuple[str, ...]
    first_id: str
    """The step_id, or that of the first step it replaces, by which the ledger counts."""
    issues: list[dict[str, Any]]
    attempts: int
    exhausted: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the fragment as plain JSON, in the form that a prompt shows."""
        return {
            "step_id": self.step_id,
            "status": self.status,
            "reasons": list(self.reasons),
            "issues": self.issues,
            "attempts": self.attempts,
        }


def fragments_to_refine(
    plan: Plan,
    *,
    issues: Sequence[ValidationIssue] = (),
    failures: Mapping[str, list[str]] | None = None,
    unmet: Sequence[str] = (),
    ledger: RefinementLedger,
) -> list[Fragment]:
    """Return what needs refinement: steps in the plan's order, then the plan itself.

    A step does if validation has a high or medium issue with it, or if it failed. Invalid steps do not, since others
    replace them. The plan does if such an issue concerns no step, or if convergence found requirements `unmet` and no
    step needs refinement; the answer alone is no reason while steps may still be refined, since it is given again after
    them.
    """
    replaced = {step.step_id: step.replaces for step in plan.walk() if step.replaces is not None}
    inside = _parts_of_invalid(plan)
    by_step: dict[str | None, list[ValidationIssue]] = {}
    for issue in issues:
        if issue.severity != "low":
            step_id = issue.location.step_id
            by_step.setdefault(end_of_chain(step_id, inside) if step_id is not None else None, []).append(issue)

    def fragment(
        step_id: str, status: StepStatus | None, own: list[ValidationIssue], reasons: Iterable[str]
    ) -> Fragment:
        first = end_of_chain(step_id, replaced)
        return Fragment(
            step_id=step_id,
            status=status,
            reasons=tuple(reasons),
            first_id=first,
            issues=[issue.model_dump(mode="json") for issue in own],
            attempts=ledger.attempts(first),
            exhausted=ledger.exhausted(first),
        )

    found = []
    for step in plan.walk():
        if step.status in ("invalid", "running") or step.step_id in inside:
            continue
        own, failed = by_step.get(step.step_id, []), []
        if step.status == "failed":
            why = "; ".join((failures or {}).get(step.step_id, [])) or "no reason is known"
            failed = [f"the step failed: {why}"]
        if own or failed:
            reasons = [*(issue.description for issue in own), *failed]
            found.append(fragment(step.step_id, step.status, own, reasons))
    with_no_step = by_step.get(None, [])
    if any(not each.exhausted for each in found):
        with_no_step = [issue for issue in with_no_step if ANSWER not in issue.location.artifact.lower()]
    reasons = [*(issue.description for issue in with_no_step), *(unmet if not found else ())]
    if reasons:
        found.append(fragment(PLAN, None, with_no_step, dict.fromkeys(reasons)))
    return found


def _parts_of_invalid(plan: Plan) -> dict[str, str]:
    """Return the replacement of the enclosing step for each valid part of an invalid step, by step_id."""
    by = {step.replaces: step.step_id for step in plan.walk() if step.replaces is not None}
    invalid = {step.step_id for step in plan.walk() if step.status == "invalid"}
    by = {step_id: replacement for step_id, replacement in by.items() if step_id in invalid}
    return {
        part.step_id: end_of_chain(step.step_id, by)
        for step in plan.walk()
        if step.step_id in by
        for part in step.walk()
        if part.status != "invalid"
    }


def left_to_a_person(ledger: RefinementLedger, fragments: Iterable[Fragment]) -> RefinementLedger:
    """Return the ledger with each fragment marked that still needs refinement but is at its limit (adaptive FR-065)."""
    for fragment in fragments:
        if fragment.attempts >= MAX_ATTEMPTS_OF_FRAGMENT:
            reason = f"refined {fragment.attempts} times and still insufficient: {'; '.join(fragment.reasons)}"
            ledger = ledger.marked(fragment.first_id, "refinement_limit", reason)
    return ledger
