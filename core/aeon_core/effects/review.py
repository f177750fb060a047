"""What a person wants otherwise: of a plan before it runs, of a pass when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from aeon_core.effects.approval import ApprovalDecision
from aeon_core.effects.port import Effects
from aeon_core.errors import RunAborted, ValidationError
from aeon_core.journal.question import NOBODY
from aeon_core.plan.carrying import carried_over
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import parse_plan
from aeon_core.validation.report import IssueLocation, SemanticValidationReport, ValidationIssue, report_of

Point = Literal["plan", "pass"]


@dataclass(frozen=True)
class Review:
    """What a person decided that changes the run; each of the fields where it is that.

    `plan` takes the place of the one there is; `report` holds their words as an issue, which the plan is refined for;
    `accepted` ends the run with the result as it is.
    """

    plan: Plan | None = None
    report: SemanticValidationReport | None = None
    accepted: bool = False


def review(
    effects: Effects,
    point: Point,
    subject: Mapping[str, Any],
    *,
    plan: Plan,
    before: Plan | None,
    report: SemanticValidationReport,
    pass_number: int,
) -> Review | None:
    """Ask a person about a plan or a pass; return what they want otherwise, None where it goes on as it is.

    `before` is the plan as it was before the pass, which `replay` runs once more. An edited plan keeps what was
    executed and is not changed; one that is no plan is asked about again, with what is wrong with it. Raises RunAborted
    where a person ends the run, and where nobody could be asked.
    """
    problem: dict[str, Any] = {}
    while True:
        shown = {**subject, **problem}
        answer = effects.decide(point, shown, pass_number=pass_number, policy=partial(effects.unasked, point))
        if answer.decision == "abort":
            why = f": {answer.feedback}" if answer.feedback else ""
            raise RunAborted(f"the question about the {point} was answered with abort{why}")
        if answer.feedback == NOBODY:
            how = "resume it where somebody can answer, at a terminal or with --wait SECONDS, or with --approve none"
            raise RunAborted(f"the {point} was to be approved, and {NOBODY}; {how}")
        if answer.decision != "edit":
            return _otherwise(answer, before, report)
        try:
            return Review(plan=carried_over(parse_plan(answer.edited, fresh=False), plan))
        except ValidationError as error:
            problem = {"problem": error.message}


def _otherwise(answer: ApprovalDecision, before: Plan | None, report: SemanticValidationReport) -> Review | None:
    if answer.decision == "reject":
        return Review(report=with_words(report, answer.feedback or "a person rejected it, without saying why"))
    if answer.decision == "replay" and before is not None:
        return Review(plan=before)
    return Review(accepted=True) if answer.decision == "accept" else None


def with_words(report: SemanticValidationReport, words: str) -> SemanticValidationReport:
    """Return a report with a person's words as an issue of high severity with the plan."""
    issue = ValidationIssue(
        issue_id=f"issue-{len(report.issues) + 1}",
        type="relevance",
        severity="high",
        description=f"a person says: {words.strip() or 'no'}",
        location=IssueLocation(artifact="plan"),
        proposed_repair="do as the person says",
    )
    return report_of(f"{report.validation_id}-person", report.artifact_type, [*report.issues, issue])
