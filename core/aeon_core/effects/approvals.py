"""What a person wants otherwise: of a plan before it runs, of a pass when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from aeon_core.approvals.pending import ApprovalDecision, nobody_answered, was_unasked
from aeon_core.effects.port import Effects
from aeon_core.errors import RunAborted, ValidationError
from aeon_core.journal.records import LabelRecord, Verdict
from aeon_core.plan.edit import REQUIREMENTS, PlanEdit, parse_plan_edit, reuse_executed_steps
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan
from aeon_core.validation.report import IssueLocation, SemanticValidationReport, ValidationIssue, report_of

Point = Literal["plan", "pass"]
_LABELLING = frozenset({"accept", "approve", "reject"})
SETTLED = "the requirements are final since the first plan; leave them out, or fork the run with other ones"


@dataclass(frozen=True)
class Review:
    """What a person decided that changes the run; each of the fields where it is that.

    `plan` takes the place of the one there is, and so do `requirements`; `report` holds their words as an issue, which
    the plan is refined for, and `approved` says that they are not asked about what comes of it; `accepted` ends the run
    with the result as it is. `answers` are to open questions, by question.
    """

    plan: Plan | None = None
    requirements: list[str] | None = None
    report: SemanticValidationReport | None = None
    approved: bool = False
    accepted: bool = False
    answers: Mapping[str, str] = field(default_factory=dict)


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
    """Ask a person about a plan or a pass; return what they want otherwise, None to continue as it is.

    `before` is the plan as it was before the pass, which `replay` runs again. An edited plan keeps what was
    executed and is not changed; one that is no plan is asked about again, with what is wrong with it. It may hold
    `requirements` where those of the subject can be changed: before anything was executed. What is decided about a pass
    is journaled as a label. Raises RunAborted where a person ends the run, and where nobody decided.
    """
    problem: dict[str, Any] = {}
    while True:
        shown = {**subject, **problem}
        answer = effects.decide(point, shown, pass_number=pass_number, policy=partial(effects.auto_approval, point))
        if answer.decision == "abort":
            why = f": {answer.feedback}" if answer.feedback else ""
            raise RunAborted(f"the run was aborted at the question about the {point}{why}")
        if nobody_answered(answer.feedback):
            how = "resume it at a terminal, with --wait SECONDS, or with --approve none"
            raise RunAborted(f"the {point} needed approval, but {answer.feedback}; {how}")
        if (label := _label(point, subject, answer, pass_number)) is not None:
            effects.emit(label)
        answers = _answered(subject, answer)
        if answer.decision != "edit":
            another = point == "pass" and subject["ended"] is None
            return _requested_change(answer, before, report, answers, another=another)
        try:
            edited = _edited(parse_plan_edit(answer.edited), plan, subject.get(REQUIREMENTS), point, pass_number)
            return replace(edited, answers=answers)
        except ValidationError as error:
            problem = {"problem": error.message}


def _label(point: Point, subject: Mapping[str, Any], answer: ApprovalDecision, pass_number: int) -> LabelRecord | None:
    """Return what a person's decision about a pass says of its result; None where it says nothing.

    To accept it, or to approve it as converged, calls it good; to reject it, or to approve another pass, calls it bad.
    """
    if point != "pass" or was_unasked(answer.feedback, point) or answer.decision not in _LABELLING:
        return None
    converged = answer.decision == "approve" and subject["ended"] == "converged"
    verdict: Verdict = "good" if converged or answer.decision == "accept" else "bad"
    return LabelRecord(verdict=verdict, why=answer.feedback, pass_number=pass_number, source="decision")


def takes_requirements(point: str, pass_number: int) -> bool:
    """Return whether a person can change the requirements here: they are settled when the first plan is approved."""
    return point == "plan" and pass_number == 1


def _edited(edit: PlanEdit, plan: Plan, known: list[str] | None, point: Point, pass_number: int) -> Review:
    changed = edit.requirements if edit.requirements != known else None
    if changed is not None and not takes_requirements(point, pass_number):
        raise ValidationError(SETTLED)
    edited = reuse_executed_steps(edit.plan, plan) if edit.plan is not None else None
    if edited is not None and changed is not None and dump_plan(edited) == dump_plan(plan):
        edited = None
    return Review(plan=edited, requirements=changed)


def _answered(subject: Mapping[str, Any], answer: ApprovalDecision) -> dict[str, str]:
    """Return a person's answers to questions that were asked; one without words is none."""
    given = answer.answers or {}
    return {each: words.strip() for each in subject["questions"] if (words := given.get(each, "")).strip()}


def _requested_change(
    answer: ApprovalDecision,
    before: Plan | None,
    report: SemanticValidationReport,
    answers: Mapping[str, str],
    *,
    another: bool,
) -> Review | None:
    """Return what the decision changes, None for nothing. `another` says whether an approval leads to another pass.

    The plan of that pass is refined for the answers first; a plan that is approved runs as it was shown.
    """
    if answer.decision == "reject":
        words = answer.feedback or ("" if answers else "a person rejected it, without saying why")
        return Review(report=with_feedback(report, words, answers), answers=answers)
    if answer.decision == "replay" and before is not None:
        return Review(plan=before, answers=answers)
    if answer.decision == "approve" and another and answers:
        return Review(report=with_feedback(report, "", answers), approved=True, answers=answers)
    if answer.decision == "accept":
        return Review(accepted=True, answers=answers)
    return Review(answers=answers) if answers else None


def with_feedback(
    report: SemanticValidationReport, words: str, answers: Mapping[str, str] | None = None
) -> SemanticValidationReport:
    """Return a report with a person's words, and their answers, as issues of high severity with the plan."""
    said = [f"a person says: {words.strip() or 'no'}"] if words.strip() or not answers else []
    said += [f"a person answers the question {question!r}: {told}" for question, told in (answers or {}).items()]
    issues = list(report.issues)
    for description in said:
        issues.append(
            ValidationIssue(
                issue_id=f"issue-{len(issues) + 1}",
                type="relevance",
                severity="high",
                description=description,
                location=IssueLocation(artifact="plan"),
                proposed_repair="do as the person says",
            )
        )
    return report_of(f"{report.validation_id}-person", report.artifact_type, issues)
