"""A person's decisions: about a plan before it runs, a finished pass, or a tool call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from aeon_core.approvals import ApprovalDecision, nobody_answered, was_unasked
from aeon_core.effects.port import Effects
from aeon_core.entities import Finding, SemanticValidationReport, report_of
from aeon_core.errors import RunAborted, ToolError, UsageError, ValidationError
from aeon_core.journal.records import LabelRecord, Verdict
from aeon_core.plan.files import REQUIREMENTS, PlanEdit, parse_plan_edit, reuse_executed_steps
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan
from aeon_core.policy import Policy, unruled
from aeon_core.tools.base import Tool
from aeon_core.tools.schema import Schema
from aeon_core.validation.validator import issues_of

Point = Literal["plan", "pass"]
_LABELLING = frozenset({"accept", "approve", "reject"})
MAX_EDITS = 20
"""The most useless edits of a plan in a row: a program that decides would repeat its edit forever."""
SETTLED = "the requirements are final since the first plan; leave them out, or fork the run with other ones"


@dataclass(frozen=True)
class Review:
    """What a person's decision changes in the run; a field is set only if the decision is about it.

    `plan` and `requirements` replace the current ones; `report` holds their words as an issue for which the plan is
    refined, and `approved` says that the refined plan needs no second approval; `accepted` ends the run with the result
    as it is. `answers` maps open questions to their answers.
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
    """Ask a person about a plan or a pass; return the changes they want, None to continue unchanged.

    `before` is the plan as it was before the pass, which `replay` runs again. An edited plan keeps every executed step
    that the edit left unchanged; it may also hold `requirements`, as long as nothing has been executed. The person is
    asked again, with the reason, if the edit is no valid plan, or changes nothing after the last pass. What is decided
    about a pass is a label in the journal. Raises RunAborted if a person ends the run, if nobody decides, and after too
    many useless edits in a row.
    """
    problem: dict[str, Any] = {}
    for _ in range(MAX_EDITS):
        shown = {**subject, **problem}
        answer = effects.decide(point, shown, pass_number=pass_number, policy=partial(effects.auto_approval, point))
        _end_if_aborted(answer, f"the question about the {point}")
        if nobody_answered(answer.feedback):
            how = "resume it at a terminal, with --wait SECONDS, with approver= in Python, or with --approve none"
            raise RunAborted(f"the {point} needed approval, but {answer.feedback}; {how}")
        if (label := _label(point, subject, answer, pass_number)) is not None:
            effects.emit(label)
        answers = _answered(subject, answer)
        if answer.decision != "edit":
            another = point == "pass" and subject["ended"] is None
            return _requested_change(answer, before, report, answers, another=another)
        try:
            edited = _edited(parse_plan_edit(answer.edited), plan, subject.get(REQUIREMENTS), point, pass_number)
            useless = edited.plan is None or dump_plan(edited.plan) == dump_plan(plan)
            ended = point == "pass" and subject["ended"] is not None
            if useless and ended and not answers and not effects.continues_with_plan:
                raise ValidationError("it changes nothing; change a step, or decide approve, replay or accept")
            return replace(edited, answers=answers)
        except ValidationError as error:
            problem = {"problem": error.message}
    raise RunAborted(
        f"{MAX_EDITS} edits of the plan in a row could not be used, the last one because: {problem['problem']}"
    )


def _label(point: Point, subject: Mapping[str, Any], answer: ApprovalDecision, pass_number: int) -> LabelRecord | None:
    """Return the label that a decision about a pass implies, None if it implies none.

    Accepting the result, or approving it as converged, labels it good; rejecting it, or approving another pass, labels
    it bad.
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
    """Return a person's answers to the questions that were asked, without blank ones."""
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

    Answers refine the plan of that pass first; an approved plan runs as it was shown.
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
    said = [f"the user answers the question {question!r}: {answer}" for question, answer in (answers or {}).items()]
    if words.strip():
        said.insert(0, f"the user says: {words.strip()}")
    found = [Finding("relevance", "high", None, each, "do what the user says") for each in said]
    if not found:
        rejected = "the user rejected this without a reason"
        found = [Finding("relevance", "high", None, rejected, "propose something else")]
    issues = [*report.issues, *issues_of(found, "plan", start=len(report.issues) + 1)]
    return report_of(f"{report.validation_id}-person", report.artifact_type, issues)


def _end_if_aborted(answer: ApprovalDecision, where: str) -> None:
    if answer.decision == "abort":
        why = f": {answer.feedback}" if answer.feedback else ""
        raise RunAborted(f"the run was aborted at {where}{why}")


def authorize_call(
    effects: Effects,
    policy: Policy,
    tool: Tool,
    step_id: str,
    arguments: Mapping[str, Any],
    *,
    schema: Schema,
    pass_number: int,
    description: str,
    more: Mapping[str, Any] | None = None,
    substitutes: str | None = None,
    objection: str | None = None,
) -> dict[str, Any]:
    """Return the arguments to call the tool with. `substitutes` is the tool that a repair replaced with this one,
    `objection` the plan review's objection to the call, `more` anything else a person should know.

    The user sees what the call would change in a file and may edit the arguments; an edited call is authorized again,
    but not asked about a second time. A rule that they allow with the call is added to `policy`. Raises ToolError if
    the call is denied or not approved, RunAborted if a person ended the run.
    """
    judge = partial(
        effects.judge,
        policy,
        tool,
        pass_number=pass_number,
        step_id=step_id,
        substitutes=substitutes,
        objection=objection,
    )
    verdict = judge(arguments)
    if verdict.answer == "allow":
        return dict(arguments)
    if verdict.answer == "deny":
        raise ToolError(f"the call of {tool.name!r} is denied: {verdict.reason}", tool_name=tool.name)
    subject = {
        "tool_name": tool.name,
        "arguments": dict(arguments),
        "description": description,
        "reason": verdict.reason,
        **({"proposal": verdict.proposal} if verdict.proposal is not None else {}),
        **(more or {}),
    }
    decide = partial(effects.decide, "tool", pass_number=pass_number, step_id=step_id, policy=effects.denied_by_now)
    answer = _decided(effects, tool, arguments, subject, decide)
    _end_if_aborted(answer, f"the call of {tool.name!r}")
    if answer.decision == "approve":
        if answer.allow is not None:
            with suppress(UsageError):  # the call itself is approved
                policy.allow(answer.allow.rule)
        return dict(arguments)
    if answer.decision != "edit" or answer.edited is None:
        plain = "a person rejected it" if answer.decision == "reject" else "nothing was edited"
        why = answer.feedback or plain
        if nobody_answered(why):
            how = f"allow it with --allow {tool.name}, or a rule under `policy:` in a config file"
            if verdict.reason != unruled(tool, substitutes):
                how = "--allow cannot change that; use --approve tool, at a terminal or with --wait SECONDS"
            why = f"{verdict.reason} and {why}; {how}"
        raise ToolError(f"the call of {tool.name!r} was not approved: {why}", tool_name=tool.name)
    if problems := schema.errors(answer.edited):
        raise ToolError(f"the edited arguments do not fit: {'; '.join(problems)}", tool_name=tool.name)
    edited = judge(answer.edited)
    if edited.answer == "deny":
        raise ToolError(f"the edited call of {tool.name!r} is denied: {edited.reason}", tool_name=tool.name)
    return answer.edited


def _decided(
    effects: Effects,
    tool: Tool,
    arguments: Mapping[str, Any],
    subject: dict[str, Any],
    decide: Callable[[dict[str, Any]], ApprovalDecision],
) -> ApprovalDecision:
    """Return a person's decision about a call that they saw exactly as it will be made.

    If the file has changed by the time they approve, they are shown the call again.
    """
    while True:
        shown = effects.preview(tool, arguments)
        answer = decide(subject if shown is None else {**subject, "preview": shown})
        if answer.decision != "approve" or not effects.preview_changed(tool, arguments, shown):
            return answer
