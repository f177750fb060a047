"""Which fragments of a plan need refinement, and why: its steps, or the plan as a whole (adaptive FR-012)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aeon_core.plan import StepStatus
from aeon_core.plan.models import Plan
from aeon_core.plan.refinement.actions import (
    ANSWER,
    MAX_ATTEMPTS_OF_FRAGMENT,
    PLAN,
    RefinementLedger,
    end_of_chain,
)
from aeon_core.validation.report import ValidationIssue


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
