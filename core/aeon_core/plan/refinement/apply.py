"""Applies refinement actions to a plan: each on its own, checked, then accepted or refused (adaptive FR-009 to
FR-015).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pydantic
from pydantic import JsonValue

from aeon_core.entities import IssueType, ValidationIssue
from aeon_core.plan.models import MAX_NESTING_DEPTH, Plan, PlanStep
from aeon_core.plan.parsing import dump_plan, shown
from aeon_core.plan.refinement.actions import (
    MAX_ATTEMPTS_OF_FRAGMENT,
    PLAN,
    Advisory,
    Cause,
    RefinementAction,
    RefinementLedger,
)
from aeon_core.plan.refinement.edits import Change, Edit, edit_for, single_actions
from aeon_core.plan.refinement.tree import Node, TooDeep, Tree, UnusableChanges, executed, ignored_in

_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`")


_MAX_IGNORED = 5

Validate = Callable[[PlanStep, Plan], Sequence[ValidationIssue]]
"""Returns the issues of a step as part of a plan."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """The outcome of one action. `action` is in the journal's form, with the issues that triggered it."""

    action: RefinementAction
    accepted: bool
    explanation: str
    """What was done, or why nothing was done."""
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    """The steps that were marked invalid, and the steps that replace them."""

    def as_dict(self) -> dict[str, Any]:
        """Return the refinement as plain JSON (adaptive FR-073)."""
        return {
            "action": self.action.model_dump(mode="json"),
            "accepted": self.accepted,
            "explanation": self.explanation,
            "before": self.before,
            "after": self.after,
            "replaced": self.replaced,
        }


@dataclass(frozen=True, slots=True)
class RefinementOutcome:
    """A refined plan, as a new object; the original is unchanged."""

    plan: Plan
    ledger: RefinementLedger
    refinements: list[Refinement]
    advisories: list[Advisory]

    @property
    def accepted(self) -> list[Refinement]:
        return [each for each in self.refinements if each.accepted]


def apply_actions(
    plan: Plan,
    actions: Iterable[RefinementAction],
    *,
    ledger: RefinementLedger,
    validate: Validate,
    issues: Sequence[ValidationIssue] = (),
) -> RefinementOutcome:
    """Return the plan after the actions, in order, with the outcome of each. Never raises because of their content.

    Only pending steps change; an executed step that an action finds deficient is marked invalid and replaced (FR-069,
    FR-070). An action that would make the plan invalid, or that `validate` objects to, is refused (FR-013); a repair
    that validation proposed in `issues` and that an accepted action does not make becomes an advisory (FR-079). Each
    attempt on a fragment counts, refused or not; beyond the limits nothing is tried (FR-065, FR-066).
    """
    work = _Applying(plan, ledger, validate, issues)
    for action in single_actions(actions, work.tree):
        work.apply(action)
    return RefinementOutcome(work.plan, work.ledger, work.refinements, work.advisories)


class _Applying:
    def __init__(
        self, plan: Plan, ledger: RefinementLedger, validate: Validate, issues: Sequence[ValidationIssue]
    ) -> None:
        self.tree = Tree(dump_plan(plan))
        self.plan = plan.model_copy(deep=True)
        self.ledger = ledger
        self.refinements: list[Refinement] = []
        self.advisories: list[Advisory] = []
        self._validate = validate
        self._issues = issues

    def apply(self, action: RefinementAction) -> None:
        """Accept an action into the plan, or refuse it."""
        action = action.model_copy(update={"semantic_validation_input": self._issues_behind(action)})
        try:
            edit = edit_for(action, self.tree)
            fragment = self.tree.first_replaced(edit.fragment)
            self._count(fragment)
        except UnusableChanges as reason:
            self._refuse(action, str(reason))
            return
        try:
            self._make(action, edit)
        except UnusableChanges as reason:
            self._refuse(action, str(reason))
        except TooDeep:
            why = f"the refinement nests deeper than {MAX_NESTING_DEPTH} levels of subplans"
            self._mark(fragment, "nesting_limit", why)
            self._refuse(action, why)

    def _count(self, fragment: str) -> None:
        """Count an attempt. Raises Unusable if none is left; a fragment at its limit is left to a person."""
        if self.ledger.left_to_a_person(fragment):
            raise UnusableChanges(f"{fragment!r} is left to a person")
        attempts = self.ledger.attempts(fragment)
        if attempts >= MAX_ATTEMPTS_OF_FRAGMENT:
            self._mark(fragment, "refinement_limit", f"refined {attempts} times and still insufficient")
        if (refusal := self.ledger.refusal(fragment)) is not None:
            raise UnusableChanges(refusal)
        self.ledger = self.ledger.counted(fragment)

    def _mark(self, fragment: str, cause: Cause, reason: str) -> None:
        if fragment == PLAN or self.tree.find(fragment) is not None:
            self.ledger = self.ledger.marked(fragment, cause, reason)

    def _make(self, action: RefinementAction, edit: Edit) -> None:
        """Edit the plan. Raises Unusable if it would become invalid or validation objects to it; TooDeep."""
        tree = Tree(copy.deepcopy(self.tree.data))
        change = edit.change(tree)
        tree.follow_replacements()
        if tree.set_depths() > MAX_NESTING_DEPTH:
            raise TooDeep
        if broken := tree.broken_dependencies() - self.tree.broken_dependencies():
            step_id, needed = min(broken)
            raise UnusableChanges(f"step {step_id!r} would depend on {needed!r}, which does not end before it")
        try:
            plan = Plan.model_validate(tree.data)
        except pydantic.ValidationError as error:
            raise UnusableChanges(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from None
        self.advisories += self._reviewed(change, plan)
        before = [copy.deepcopy(node) for node in self.tree.walk() if node["step_id"] in change.before]
        after = [copy.deepcopy(node) for node in tree.walk() if node["step_id"] in change.after]
        if change.replaced:
            action = action.model_copy(update={"inconsistency_detected": True})
        ignored = ", ".join(map(shown, ignored_in(action.changes)[:_MAX_IGNORED]))
        done = f"{change.done}; ignored in changes: {ignored}" if ignored else change.done
        self.tree, self.plan = tree, plan
        self.refinements.append(Refinement(action, True, done, before, after, change.replaced))

    def _refuse(self, action: RefinementAction, reason: str) -> None:
        node = self.tree.find(action.target)
        conflict = node is not None and executed(node)
        action = action.model_copy(update={"inconsistency_detected": conflict})
        self.refinements.append(Refinement(action, False, reason))

    def _reviewed(self, change: Change, plan: Plan) -> list[Advisory]:
        """Return validation's remarks on a change. Raises Unusable if it objects to the change."""
        known = {step.step_id: step for step in self.plan.walk()}
        made: list[Advisory] = []
        for step in plan.walk():
            if step.step_id in change.touched and not step.executed:
                was = known.get(step.step_id) or known.get(step.replaces or "")
                found = self._validate(step, plan)
                before = self._validate(was, self.plan) if was is not None else None
                if (reason := _objection(step, found, before)) is not None:
                    raise UnusableChanges(reason)
                made += _advisories(step, [*self._issues_with(step.step_id), *found], still=found)
            if step.replaces is not None and change.replaced.get(step.replaces) == step.step_id:
                made += _advisories(step, self._issues_with(step.replaces), still=())
        return made

    def _issues_with(self, step_id: str) -> list[ValidationIssue]:
        return [issue for issue in self._issues if issue.location.step_id == step_id]

    def _issues_behind(self, action: RefinementAction) -> list[dict[str, JsonValue]]:
        """Return the known issues of an action's target, and those that it names by id (FR-073).

        An addition, like any action on the whole plan, answers those of the plan, too.
        """
        named = {str(given.get("issue_id")) for given in action.semantic_validation_input}
        of_plan = action.type in ("step_add", "plan_update") or self.tree.find(action.target) is None
        about = (action.target, None) if of_plan else (action.target,)
        found = (issue for issue in self._issues if issue.location.step_id in about or issue.issue_id in named)
        return [issue.model_dump(mode="json") for issue in found]


def _objection(
    step: PlanStep, found: Sequence[ValidationIssue], before: Sequence[ValidationIssue] | None
) -> str | None:
    """Return why a refined step is refused: its blocking issues, if there are no fewer than before; None if it is
    accepted.

    High issues block, and so do medium ones of specificity, since a refinement that is still vague does not help.
    `before` are the issues of the original step, None for a new one. A missing tool or agent does not block: it is
    repaired when the step runs.
    """
    now = _blocking(step, found)
    was = _blocking(step, before) if before is not None else (0, 0)
    if now == (0, 0) or now < was:
        return None
    severity = "high" if now[0] else "medium"
    worst = next(issue for issue in found if issue.severity == severity and (now[0] or issue.type == "specificity"))
    return f"validation objects to step {step.step_id!r}: {worst.description}"


def _blocking(step: PlanStep, issues: Sequence[ValidationIssue]) -> tuple[int, int]:
    high = sum(issue.severity == "high" for issue in issues)
    vague = sum(issue.severity == "medium" and issue.type == "specificity" for issue in issues)
    undecided = step.tool is None and step.agent is None and step.subplan is None
    return high, max(0, vague - undecided)


def _advisories(
    step: PlanStep, issues: Iterable[ValidationIssue], *, still: Sequence[ValidationIssue]
) -> list[Advisory]:
    """Return an advisory for each proposed repair that a refined step does not make.

    It counts as made if the step contains everything the repair quotes, or, if it quotes nothing, if the issue is no
    longer among those `still` found.
    """
    text = step.model_dump_json(exclude_none=True)
    left = {(issue.type, issue.description) for issue in still}
    seen: set[str] = set()
    made = []
    for issue in issues:
        if issue.description in seen or _carried_out(issue, text, left):
            continue
        seen.add(issue.description)
        made.append(Advisory(step.step_id, issue.model_dump(mode="json")))
    return made


def _carried_out(issue: ValidationIssue, text: str, left: set[tuple[IssueType, str]]) -> bool:
    if (issue.type, issue.description) in left:
        return False
    quoted = [next(filter(None, match.groups())) for match in _QUOTED.finditer(issue.proposed_repair)]
    return all(literal in text for literal in quoted)
