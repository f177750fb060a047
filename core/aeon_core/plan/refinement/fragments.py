"""Which fragments of a plan need refinement, and why: steps of it, or the plan as a whole (adaptive FR-012)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.refinement.actions import (
    ANSWER,
    MAX_ATTEMPTS_OF_FRAGMENT,
    PLAN,
    Issue,
    RefinementLedger,
    end_of_chain,
    issue_as_dict,
)
from aeon_core.step_status import StepStatus

_COUNTED = ("high", "medium")


@dataclass(frozen=True, slots=True)
class Fragment:
    """A step that is to be refined, or the plan. `exhausted` says that it may not be any more."""

    step_id: str
    """PLAN for the plan as a whole."""
    status: StepStatus | None
    """None for the plan."""
    reasons: tuple[str, ...]
    first_id: str
    """The step_id, or the first of the steps that it replaces: what the ledger counts by."""
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
    unmet: Sequence[str] = (),
    ledger: RefinementLedger,
) -> list[Fragment]:
    """Return what needs refinement: steps in the plan's order, then the plan itself.

    A step does where validation has a high or medium issue with it, and where it failed. Invalid steps do not: another
    one replaces them. The plan does where such an issue is with no step, and where convergence found lines `unmet`
    though no step needs it; the answer is no reason while steps may still be refined, as it is given again after them.
    """
    found = _wanting_steps(plan, issues, failures or {}, ledger)
    whole = _wanting_plan(found, issues, unmet, ledger)
    return [*found, whole] if whole is not None else found


def _wanting_steps(
    plan: Plan,
    issues: Sequence[Issue],
    failures: Mapping[str, list[str]],
    ledger: RefinementLedger,
) -> list[Fragment]:
    replaced = {step.step_id: step.replaces for step in plan.walk() if step.replaces is not None}
    over = _parts_of_invalid(plan)
    by_step: dict[str, list[Issue]] = {}
    for issue in issues:
        if issue.severity in _COUNTED and issue.location.step_id is not None:
            by_step.setdefault(_place(str(issue.location.step_id), over), []).append(issue)
    found = []
    for step in plan.walk():
        if step.status in ("invalid", "running") or step.step_id in over:
            continue
        own = by_step.get(step.step_id, [])
        reasons = (*(issue.description for issue in own), *_reasons(step, failures))
        if reasons:
            name = end_of_chain(step.step_id, replaced)
            found.append(
                Fragment(
                    step_id=step.step_id,
                    status=step.status,
                    reasons=reasons,
                    first_id=name,
                    issues=[dict(issue_as_dict(issue)) for issue in own],
                    attempts=ledger.attempts(name),
                    exhausted=ledger.exhausted(name),
                )
            )
    return found


def _parts_of_invalid(plan: Plan) -> dict[str, str]:
    """Return, by step_id, for the valid parts of invalid steps the replacement of the step around them."""
    stand_ins = {step.replaces: step for step in plan.walk() if step.replaces is not None}
    found: dict[str, str] = {}
    for step in plan.walk():
        last = step
        while last.status == "invalid" and last.step_id in stand_ins and stand_ins[last.step_id] is not step:
            last = stand_ins[last.step_id]
        if last is not step:
            found |= {part.step_id: last.step_id for part in _within(step) if part.status != "invalid"}
    return found


def _within(step: PlanStep) -> Iterator[PlanStep]:
    for part in step.subplan.substeps if step.subplan is not None else ():
        yield part
        yield from _within(part)


def _place(step_id: str, over: Mapping[str, str]) -> str:
    """Return the step at which an issue with a step is put right: itself, or the replacement of the step around it."""
    seen: set[str] = set()
    while step_id in over and step_id not in seen:
        seen.add(step_id)
        step_id = over[step_id]
    return step_id


def _wanting_plan(
    steps: Sequence[Fragment],
    issues: Sequence[Issue],
    unmet: Sequence[str],
    ledger: RefinementLedger,
) -> Fragment | None:
    refinable = any(not fragment.exhausted for fragment in steps)
    own = [issue for issue in issues if issue.location.step_id is None and issue.severity in _COUNTED]
    own = [issue for issue in own if not (refinable and ANSWER in issue.location.artifact.lower())]
    left = unmet if not steps else ()
    reasons = (*(issue.description for issue in own), *left)
    if not reasons:
        return None
    return Fragment(
        step_id=PLAN,
        status=None,
        reasons=tuple(dict.fromkeys(reasons)),
        first_id=PLAN,
        issues=[dict(issue_as_dict(issue)) for issue in own],
        attempts=ledger.attempts(PLAN),
        exhausted=ledger.exhausted(PLAN),
    )


def left_to_a_person(ledger: RefinementLedger, fragments: Iterable[Fragment]) -> RefinementLedger:
    """Return the ledger with each fragment marked that is still wanting and at its own limit (adaptive FR-065)."""
    for fragment in fragments:
        if fragment.attempts >= MAX_ATTEMPTS_OF_FRAGMENT:
            reason = f"refined {fragment.attempts} times and still insufficient: {'; '.join(fragment.reasons)}"
            ledger = ledger.marked(fragment.first_id, "refinement_limit", reason)
    return ledger


def _reasons(step: PlanStep, failures: Mapping[str, list[str]]) -> Iterator[str]:
    if step.status == "failed":
        why = "; ".join(failures.get(step.step_id, [])) or "no reason is known"
        yield f"the step failed: {why}"
