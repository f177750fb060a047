"""Folding what the adaptive engine journals: profiles, reports, assessments, refinements, advisories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aeon_core.journal.values import dict_of, dicts_of, id_of, int_of, number_of, str_of, strs_of
from aeon_core.journal.view import adaptive_text
from aeon_core.journal.view.adaptive_parts import (
    AdvisoryView,
    AssessmentView,
    CheckView,
    InterventionView,
    IssueView,
    LabelView,
    ProfileView,
    RefinementView,
    ReportView,
    RequirementView,
    SuspicionView,
)
from aeon_core.journal.view.formatting import brief

if TYPE_CHECKING:
    from aeon_core.journal.view.model import RunView

Record = Mapping[str, Any]
_SEVERITIES = ("high", "medium", "low")
_DIMENSIONS = (
    "reasoning_depth",
    "information_sufficiency",
    "expected_tool_usage",
    "output_breadth",
    "confidence_requirement",
)


def profile(view: RunView, record: Record) -> None:
    """Fold in a TaskProfile that was inferred or revised."""
    found = profile_of(record, pass_number=int_of(record.get("pass")), seq=view.last_seq)
    last = view.profile
    if last is not None and replace(found, seq=last.seq, reason=last.reason, requirements=last.requirements) == last:
        view.profiles[-1] = replace(last, requirements=found.requirements)
        view.add_line("info", "profile", f"{found.reason}: {' · '.join(map(brief, found.requirements))}")
        return
    view.profiles.append(found)
    view.add_line("info", "profile", adaptive_text.profile(found))


def label(view: RunView, record: Record) -> None:
    """Fold in a person's verdict on a pass."""
    found = LabelView(
        seq=view.last_seq,
        ts=view.last_ts,
        pass_number=int_of(record.get("pass")),
        verdict=str_of(record.get("verdict")),
        why=str_of(record.get("why")),
        source=str_of(record.get("source")),
    )
    view.labels.append(found)
    view.add_line("info", "label", adaptive_text.label(found))


def profile_of(record: Record, *, pass_number: int, seq: int) -> ProfileView:
    """Return what a TaskProfile says, beside its `adaptive_depth` and the `adjustment_reason`."""
    depth = dict_of(record.get("adaptive_depth")) or {}
    ttl = depth.get("allocated_ttl")
    return ProfileView(
        seq=seq,
        pass_number=pass_number,
        version=int_of(record.get("profile_version")),
        dimensions={name: str_of(record.get(name)) for name in _DIMENSIONS if id_of(record.get(name))},
        raw_inference=str_of(record.get("raw_inference")),
        reasoning_mode=str_of(depth.get("reasoning_mode")),
        allocated_ttl=int_of(ttl) if number_of(ttl) is not None else None,
        reason=str_of(record.get("adjustment_reason")),
        requirements=strs_of(record.get("requirements")),
    )


def validation(view: RunView, record: Record) -> None:
    """Fold in a report; told once more in the same pass, it stands once."""
    report = ReportView(
        seq=view.last_seq,
        pass_number=int_of(record.get("pass")),
        validation_id=str_of(record.get("validation_id")),
        artifact_type=str_of(record.get("artifact_type")),
        issues=sorted(map(issue_of, dicts_of(record.get("issues"))), key=_rank),
    )
    last = view.reports[-1] if view.reports else None
    if last is not None and (last.pass_number, last.validation_id) == (report.pass_number, report.validation_id):
        view.reports.pop()
    view.reports.append(report)
    view.add_line("warning" if report.issues else "info", "validation", adaptive_text.validation(report))


def convergence(view: RunView, record: Record) -> None:
    """Fold in an assessment; a later one of the same pass takes its place, for it says how the pass ended."""
    found = assessment_of(record, pass_number=int_of(record.get("pass")), seq=view.last_seq)
    if view.assessments and view.assessments[-1].pass_number == found.pass_number:
        view.assessments.pop()
    view.assessments.append(found)
    view.add_line("info", "convergence", adaptive_text.convergence(found))


def assessment_of(assessment: Record, *, pass_number: int, seq: int = 0) -> AssessmentView:
    """Return what a ConvergenceAssessment says, of a record or of a result.

    Of a result that was not judged there are no scores, and only the flags that exact checks found broken.
    """
    unjudged = "not_judged" in strs_of(assessment.get("reason_codes"))
    flags = dict_of(assessment.get("consistency_status")) or {}
    metadata = dict_of(assessment.get("metadata")) or {}
    return AssessmentView(
        seq=seq,
        pass_number=pass_number,
        converged=assessment.get("converged") is True,
        reason_codes=strs_of(assessment.get("reason_codes")),
        completeness_score=None if unjudged else _score(assessment.get("completeness_score")),
        coherence_score=None if unjudged else _score(assessment.get("coherence_score")),
        consistency={name: flag for name, flag in flags.items() if isinstance(flag, bool) and not (flag and unjudged)},
        detected_issues=strs_of(assessment.get("detected_issues")),
        criteria=dict_of(metadata.get("criteria")) or {},
        additional=_additional(dict_of(metadata.get("additional")) or {}),
        requirements=[_requirement(verdict) for verdict in dicts_of(assessment.get("requirements"))],
        checks=_checks(dict_of(metadata.get("evidence")) or {}),
        suspicions=[_suspicion(told) for told in dicts_of(metadata.get("suspicions"))],
    )


def _requirement(verdict: Record) -> RequirementView:
    return RequirementView(
        n=int_of(verdict.get("n")),
        text=str_of(verdict.get("text")),
        met=str_of(verdict.get("met")),
        evidence=str_of(verdict.get("evidence")),
        quote_found=verdict.get("quote_found") is True,
    )


def _checks(told: Record) -> list[CheckView]:
    found = ((name, dict_of(check) or {}) for name, check in told.items())
    return [
        CheckView(name, check["ok"], str_of(check.get("evidence")), check.get("quote_found") is True)
        for name, check in found
        if isinstance(check.get("ok"), bool)
    ]


def _suspicion(told: Record) -> SuspicionView:
    stands = told.get("stands")
    return SuspicionView(
        text=str_of(told.get("text")),
        stands=stands if isinstance(stands, bool) else None,
        evidence=str_of(told.get("evidence")),
        quote_found=told.get("quote_found") is True,
    )


def _additional(told: Record) -> dict[str, bool]:
    met = {name: (dict_of(verdict) or {}).get("met") for name, verdict in told.items()}
    return {name: value for name, value in met.items() if isinstance(value, bool)}


def refinement(view: RunView, record: Record) -> None:
    """Fold in what became of a refinement action."""
    found = refinement_of(record, pass_number=int_of(record.get("pass")), seq=view.last_seq)
    view.refinements.append(found)
    view.add_line("info" if found.accepted else "warning", "refinement", adaptive_text.refinement(found))


def refinement_of(record: Record, *, pass_number: int, seq: int = 0) -> RefinementView:
    """Return what became of a refinement action, of a record or of what a person is asked about."""
    action = dict_of(record.get("action")) or {}
    replaced = dict_of(record.get("replaced")) or {}
    return RefinementView(
        seq=seq,
        pass_number=pass_number,
        kind=str_of(action.get("type")),
        target=str_of(action.get("target")),
        reason=str_of(action.get("reason")),
        accepted=record.get("accepted") is True,
        explanation=str_of(record.get("explanation")),
        before=dicts_of(record.get("before")),
        after=dicts_of(record.get("after")),
        replaced={old: new for old, new in replaced.items() if isinstance(new, str)},
        issues=[issue_of(issue) for issue in dicts_of(action.get("semantic_validation_input"))],
        inconsistency_detected=action.get("inconsistency_detected") is True,
    )


def advisory(view: RunView, record: Record) -> None:
    """Fold in the notice that a proposed repair was not carried out (adaptive FR-079)."""
    data = dict_of(record.get("data")) or {}
    issue = dict_of(data.get("issue"))
    found = AdvisoryView(
        seq=view.last_seq,
        pass_number=int_of(record.get("pass")),
        step_id=id_of(data.get("step_id")) or id_of(record.get("step_id")),
        message=str_of(record.get("message")),
        issue=issue_of(issue) if issue is not None else None,
    )
    view.advisories.append(found)
    view.add_line("warning", "advisory", adaptive_text.advisory(found))


def left_open(view: RunView, record: Record) -> None:
    """Fold in a notice of questions, or of a fragment that needs a person; any other record changes nothing."""
    if record.get("type") != "notice":
        return
    kind, data, known = record.get("kind"), dict_of(record.get("data")) or {}, view.left_open
    if kind == "questions":
        known.questions += [each for each in strs_of(data.get("questions")) if each not in known.questions]
    elif kind == "manual_intervention":
        fragment = _intervention(data)
        same = [each for each in known.interventions if each.step_id == fragment.step_id]
        known.interventions = [each for each in known.interventions if each not in same] + [fragment]
    else:
        return
    outcome(view, {})


def outcome(view: RunView, result: Record) -> None:
    """Keep what is left to a person, questions and fragments to look at: the result's, else what notices told."""
    known = view.left_open
    asked, fragments = result.get("follow_up_questions"), result.get("manual_intervention")
    view.follow_up_questions = list(known.questions) if asked is None else strs_of(asked)
    view.manual_interventions = (
        list(known.interventions) if fragments is None else [_intervention(each) for each in dicts_of(fragments)]
    )


def _intervention(entry: Record) -> InterventionView:
    return InterventionView(
        step_id=str_of(entry.get("step_id")),
        cause=str_of(entry.get("cause")),
        reason=str_of(entry.get("reason")),
        attempts=int_of(entry.get("attempts")),
    )


def _score(value: Any) -> float | None:
    number = number_of(value)
    return number if number is not None and 0 <= number <= 1 else None


def issue_of(issue: Record) -> IssueView:
    """Return an issue as a report holds it, or, with its step beside it, as a refinement does."""
    place = dict_of(issue.get("location")) or issue
    return IssueView(
        issue_id=str_of(issue.get("issue_id")),
        type=str_of(issue.get("type")),
        severity=str_of(issue.get("severity")),
        description=str_of(issue.get("description")),
        artifact=str_of(place.get("artifact")),
        step_id=id_of(place.get("step_id")),
        repair=str_of(issue.get("proposed_repair")),
    )


def _rank(issue: IssueView) -> int:
    return _SEVERITIES.index(issue.severity) if issue.severity in _SEVERITIES else len(_SEVERITIES)
