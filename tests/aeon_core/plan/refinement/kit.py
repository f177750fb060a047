"""What the tests of refinement share: plans, actions, issues, and a validation by rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aeon_core import Plan, PlanStep
from aeon_core.entities import IssueLocation, ValidationIssue
from aeon_core.plan.parsing import dump_plan, parse_plan
from aeon_core.plan.refinement.actions import RefinementAction, RefinementLedger
from aeon_core.plan.refinement.apply import Refinement, RefinementOutcome, apply_actions


def step(
    step_id: str, status: str = "pending", *substeps: dict[str, Any], depth: int = 1, **fields: Any
) -> dict[str, Any]:
    made = {"step_id": step_id, "description": f"do {step_id}", "status": status, "agent": "llm", **fields}
    if made["agent"] is None:
        del made["agent"]
    if substeps:
        made["subplan"] = {
            "parent_step_id": step_id,
            "subplan_goal": "g",
            "substeps": list(substeps),
            "depth_level": depth,
        }
    return made


def plan_of(*steps: dict[str, Any]) -> Plan:
    return parse_plan({"goal": "reach it", "steps": list(steps)}, fresh=False)


def act(kind: Any, target: str, **changes: Any) -> RefinementAction:
    return RefinementAction(type=kind, target=target, changes=changes, reason="because")


def issue(step_id: str | None, severity: Any = "medium", kind: Any = "specificity", **fields: Any) -> ValidationIssue:
    made = {"issue_id": f"i-{step_id}", "description": f"{step_id} is wanting", "proposed_repair": "Say what is done."}
    return ValidationIssue(
        type=kind, severity=severity, location=IssueLocation(artifact="plan", step_id=step_id), **{**made, **fields}
    )


def no_issues(step: PlanStep, plan: Plan) -> Sequence[ValidationIssue]:
    return ()


class Outcome(RefinementOutcome):
    """What became of actions, and what tests ask of it."""

    @property
    def refused(self) -> list[Refinement]:
        return [each for each in self.refinements if not each.accepted]

    @property
    def replaced(self) -> dict[str, str]:
        """The steps that were marked invalid, and the steps that replace them."""
        return {old: new for each in self.refinements for old, new in each.replaced.items()}


def applied(
    plan: Plan,
    *actions: RefinementAction,
    ledger: RefinementLedger | None = None,
    validate: Callable[[PlanStep, Plan], Sequence[ValidationIssue]] = no_issues,
    issues: Sequence[ValidationIssue] = (),
) -> Outcome:
    ledger = ledger if ledger is not None else RefinementLedger()
    made = apply_actions(plan, actions, ledger=ledger, validate=validate, issues=issues)
    return Outcome(made.plan, made.ledger, made.refinements, made.advisories)


def by_id(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return each step of a plan as plain JSON without its subplan, by step_id, in order."""
    return {each.step_id: each.model_dump(exclude_none=True, exclude={"subplan"}) for each in plan.walk()}


def unchanged(before: Plan, after: Plan, *but: str) -> bool:
    """Return whether every other step of the first plan is unchanged in the second."""
    was, now = by_id(before), by_id(after)
    return all(now.get(step_id) == fields for step_id, fields in was.items() if step_id not in but)


def same(before: Plan, after: Plan) -> bool:
    return dump_plan(before) == dump_plan(after)
