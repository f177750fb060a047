"""Which fragments of a plan need refinement, and why (adaptive FR-012)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aeon_core.plan.models import Plan, PlanStep, StepStatus
from aeon_core.plan.questions import is_vague
from aeon_core.plan.refinement import (
    Issue,
    RefinementLedger,
    RefinementLimits,
    fragment_of,
    issue_as_dict,
    replaced_by_step,
)
from aeon_core.plan.wording import wording

_MANY_ACTIONS = 4
"""Verbs in one description from which a step is better expanded into substeps."""
_COUNTED = ("high", "medium")


@dataclass(frozen=True, slots=True)
class Fragment:
    """A step that is to be refined. `exhausted` says that it may not be any more: a person should look at it."""

    step_id: str
    status: StepStatus
    reasons: tuple[str, ...]
    first_id: str
    """The step_id, or the first of the steps that it stands in for: what the ledger counts by."""
    issues: list[dict[str, Any]] = field(default_factory=list)
    attempts: int = 0
    exhausted: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the fragment as plain JSON, as a prompt shows it."""
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
    issues: Sequence[Issue] = (),
    failures: Mapping[str, list[str]] | None = None,
    ledger: RefinementLedger,
    limits: RefinementLimits | None = None,
) -> list[Fragment]:
    """Return the steps that need refinement, in the plan's order.

    A step does where validation has a high or medium issue with it, where it failed, or, while it is pending, where
    its description is vague or holds several actions. Invalid steps do not: another stands in for them.
    """
    limits = limits if limits is not None else RefinementLimits()
    replaced = replaced_by_step(plan)
    found = []
    for step in plan.walk():
        if step.status in ("invalid", "running"):
            continue
        own = [issue for issue in issues if issue.location.step_id == step.step_id and issue.severity in _COUNTED]
        reasons = (*(issue.description for issue in own), *_reasons(step, failures or {}))
        if reasons:
            name = fragment_of(step.step_id, replaced)
            found.append(
                Fragment(
                    step_id=step.step_id,
                    status=step.status,
                    reasons=reasons,
                    first_id=name,
                    issues=[dict(issue_as_dict(issue)) for issue in own],
                    attempts=ledger.attempts(name),
                    exhausted=ledger.exhausted(name, limits),
                )
            )
    return found


def left_to_a_person(
    ledger: RefinementLedger, fragments: Iterable[Fragment], limits: RefinementLimits | None = None
) -> RefinementLedger:
    """Return the ledger with each fragment marked that is still wanting and at its own limit (adaptive FR-065)."""
    limits = limits if limits is not None else RefinementLimits()
    for fragment in fragments:
        if fragment.attempts >= limits.per_fragment:
            reason = f"refined {fragment.attempts} times and still wanting: {'; '.join(fragment.reasons)}"
            ledger = ledger.marked(fragment.first_id, "refinement_limit", reason)
    return ledger


def _reasons(step: PlanStep, failures: Mapping[str, list[str]]) -> Iterator[str]:
    if step.status == "failed":
        why = "; ".join(failures.get(step.step_id, [])) or "no reason is known"
        yield f"the step failed: {why}"
    if step.status != "pending" or step.subplan is not None:
        return
    words = wording(step.description)
    if step.arguments is None and not words.own and is_vague(words):
        yield "the description is vague: it does not say what exactly is done, and with what"
    if len(words.actions) >= _MANY_ACTIONS and step.tool is None:
        yield f"the step holds several actions: {', '.join(words.actions)}"
