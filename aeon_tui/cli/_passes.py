"""What a report says of the passes: scores, reasons, issues, refinements, depth, and what shows only across passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aeon_core.journal import adaptive_text
from aeon_core.journal.adaptive_parts import AssessmentView, RefinementView, ReportView
from aeon_core.journal.history import ExecutionHistory
from aeon_core.journal.log_text import brief
from aeon_core.journal.patterns import DepthAdjustment
from aeon_core.journal.view import RunView

ISSUES_SHOWN = 20


@dataclass(frozen=True)
class Note:
    """One line of a section. `level` is `text`, `info` or `warning`; `depth` counts the notes it is part of."""

    level: str
    text: str
    depth: int = 0


@dataclass(frozen=True)
class Section:
    """A title and the notes under it, of which there is at least one."""

    title: str
    notes: list[Note]


def pass_sections(view: RunView, history: ExecutionHistory, pass_number: int | None) -> list[Section]:
    """Return what is to be told before the answer; nothing of a run without evaluation (adaptive FR-071 to FR-078)."""
    if not (view.assessments or view.reports or view.refinements or view.profiles):
        return []
    begun = {phase.pass_number for phase in view.phases}
    numbers = [pass_number] if pass_number else sorted(begun | {each.pass_number for each in view.profiles})
    passes = [
        note for number in numbers for note in _pass(view, number, begun=number in begun, alone=bool(pass_number))
    ]
    patterns = list(_patterns(history)) if pass_number is None else []
    return _filled(Section("Passes" if pass_number is None else "Pass", passes), Section("Across passes", patterns))


def person_sections(view: RunView) -> list[Section]:
    """Return what is left to a person: questions about the task, and fragments to look at (adaptive FR-011, FR-065)."""
    questions = [Note("text", brief(question, 400)) for question in view.follow_up_questions]
    fragments = [Note("warning", adaptive_text.intervention(each)) for each in view.manual_interventions]
    return _filled(Section("Questions about the task", questions), Section("For a person to look at", fragments))


def _filled(*sections: Section) -> list[Section]:
    return [section for section in sections if section.notes]


def _pass(view: RunView, number: int, *, begun: bool, alone: bool) -> Iterator[Note]:
    assessment = next((each for each in view.assessments if each.pass_number == number), None)
    unknown = "not assessed" if begun else "has not begun"
    head = unknown if assessment is None else adaptive_text.verdict(assessment)
    yield Note("text", f"pass {number} · {head}")
    if assessment is not None:
        yield from _assessment(assessment)
    for profile in view.profiles:
        if alone or profile.pass_number == number:
            yield Note("info", adaptive_text.profile(profile), 1)
    yield from _issues([each for each in view.reports if each.pass_number == number], assessment)
    for refinement in view.refinements:
        if refinement.pass_number == number:
            yield from _refinement(refinement)
    for advisory in view.advisories:
        if advisory.pass_number == number:
            yield Note("warning", f"advisory: {adaptive_text.advisory(advisory)}", 1)
    if phases := _phases(view, number):
        yield Note("info", phases, 1)


def _assessment(assessment: AssessmentView) -> Iterator[Note]:
    flags = adaptive_text.flags(assessment)
    told = ", ".join(text for _, text in flags) or "no consistency was recorded"
    sound = assessment.converged or all(ok for ok, _ in flags)
    yield Note("info" if sound else "warning", f"{adaptive_text.scores(assessment)} · {told}", 1)


def _issues(reports: list[ReportView], assessment: AssessmentView | None) -> Iterator[Note]:
    for report in reports[:-1]:
        if report.issues:
            artifact = adaptive_text.words(report.artifact_type)
            yield Note("info", f"before, of the {artifact}: {adaptive_text.validation(report)}", 1)
    issues = reports[-1].issues if reports else []
    known = {issue.description for issue in issues}
    found = [Note("warning", f"issue: {adaptive_text.issue(issue)}", 1) for issue in issues]
    if assessment is not None:
        found += [Note("warning", f"issue: {brief(t, 400)}", 1) for t in assessment.detected_issues if t not in known]
    yield from found[:ISSUES_SHOWN]
    if len(found) > ISSUES_SHOWN:
        yield Note("warning", f"{len(found) - ISSUES_SHOWN} more issues; --json has them all", 1)


def _refinement(refinement: RefinementView) -> Iterator[Note]:
    level = "info" if refinement.accepted else "warning"
    yield Note(level, f"refinement: {adaptive_text.refinement(refinement)}", 1)
    yield Note("info", f"because: {adaptive_text.refinement_cause(refinement)}", 2)
    if change := adaptive_text.refinement_change(refinement):
        yield Note("info", f"{'change' if refinement.accepted else 'proposed'}: {change}", 2)


def _phases(view: RunView, number: int) -> str:
    phases = [phase for phase in view.phases if phase.pass_number == number and phase.duration_ms is not None]
    return ", ".join(f"{brief(phase.phase, 20)} {phase.duration_ms:.0f} ms" for phase in phases)


def _patterns(history: ExecutionHistory) -> Iterator[Note]:
    patterns = history.overall_statistics.patterns
    for fragment in patterns.refined_fragments:
        accepted = f"{fragment.accepted} of them accepted" if fragment.accepted else "none of them accepted"
        where = _those(fragment.passes)
        yield Note(
            "text", f"{brief(fragment.fragment, 40)} was refined {fragment.attempts} times, {accepted} ({where})"
        )
    for blocker in patterns.convergence_blockers:
        if len(blocker.passes) > 1:
            yield Note(
                "text", f"{brief(blocker.reason_code, 60)} stood in the way of convergence ({_those(blocker.passes)})"
            )
    for adjustment in patterns.depth_adjustments:
        if adjustment.converged is not None:
            yield Note("text", _adjustment(adjustment))


def _adjustment(adjustment: DepthAdjustment) -> str:
    mode = f"{brief(adjustment.reasoning_mode_before, 20)} → {brief(adjustment.reasoning_mode, 20)} reasoning"
    cycles = f"{_known(adjustment.allocated_ttl_before)} → {_known(adjustment.allocated_ttl)} cycles"
    gains = f"completeness {_gain(adjustment.completeness_change)}, coherence {_gain(adjustment.coherence_change)}"
    outcome = "converged" if adjustment.converged else "not converged"
    return f"depth for pass {adjustment.pass_number}: {mode}, {cycles}; then {gains}, {outcome}"


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)


def _gain(change: float | None) -> str:
    return "unknown" if change is None else f"{change:+.2f}" if change else "unchanged"


def _those(numbers: list[int]) -> str:
    return f"pass{'' if len(numbers) == 1 else 'es'} {', '.join(map(str, numbers))}"
