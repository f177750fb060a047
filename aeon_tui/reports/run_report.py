"""The content of a report on a run in any format: facts, repairs, warnings, passes, answer (contract: show)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from aeon_core.journal.history import DepthAdjustment, ExecutionHistory, with_statuses
from aeon_core.journal.listing import Lineage
from aeon_core.journal.values import at_pass, brief, dict_of, id_of, int_of, number_of, str_of
from aeon_core.journal.view import formatting
from aeon_core.journal.view.formatting import change, message, whole, words
from aeon_core.journal.view.model import (
    AssessmentView,
    LogLine,
    PhaseView,
    ProfileView,
    RefinementView,
    RepairView,
    ReportView,
    RunView,
    StepView,
)
from aeon_core.units import count, money, seconds_after, span
from aeon_widgets.icons import shown_status

ISSUES_SHOWN = 20


@dataclass(frozen=True)
class ReportNote:
    """One line of a section. `level` is `text`, `info` or `warning`; `depth` counts its parent notes.

    `kind` is `evidence` for the judge's quotes on coherence and consistency, which a page folds.
    """

    level: str
    text: str
    depth: int = 0
    kind: str = ""


@dataclass(frozen=True)
class ReportSection:
    """A title with at least one note."""

    title: str
    notes: list[ReportNote]


def score_trend(assessments: list[AssessmentView]) -> str:
    """Return the course of each score over the passes; empty if nothing was assessed."""
    if not assessments:
        return ""
    completeness, coherence = (
        " → ".join(map(formatting.score, scores))
        for scores in zip(*((each.completeness_score, each.coherence_score) for each in assessments), strict=True)
    )
    return f"completeness {completeness}, coherence {coherence}"


def person_sections(view: RunView) -> list[ReportSection]:
    """Return what is left to a person: questions about the task, and fragments to check (adaptive FR-011, FR-065)."""
    questions = [ReportNote("text", brief(question, 400)) for question in view.follow_up_questions]
    fragments = [ReportNote("warning", formatting.intervention(each)) for each in view.manual_interventions]
    return _filled(
        ReportSection("Questions about the task", questions), ReportSection("Needs your attention", fragments)
    )


def _filled(*sections: ReportSection) -> list[ReportSection]:
    return [section for section in sections if section.notes]


class _Passes:
    """What a view holds, by pass: grouped once, since a run may have thousands of passes."""

    def __init__(self, view: RunView) -> None:
        self.phases = _by_pass(view.phases)
        self.assessments = {each.pass_number: each for each in reversed(view.assessments)}
        known = [0, *(each.version for each in view.profiles)]
        self.all_profiles = [(each, each.version != before) for each, before in zip(view.profiles, known, strict=False)]
        self.profiles: defaultdict[int, list[tuple[ProfileView, bool]]] = defaultdict(list)
        """Each with whether it is a new version."""
        for profile, new in self.all_profiles:
            self.profiles[profile.pass_number].append((profile, new))
        self.reports = _by_pass(view.reports)
        self.refinements = _by_pass(view.refinements)
        self.advisories = _by_pass(view.advisories)


def _by_pass(items: Iterable[Any]) -> defaultdict[int, list[Any]]:
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for each in items:
        found[each.pass_number].append(each)
    return found


def _pass(passes: _Passes, number: int, *, begun: bool, cut: bool, alone: bool) -> Iterator[ReportNote]:
    assessment = passes.assessments.get(number)
    unknown = "not assessed" if begun else "has not started"
    head = unknown if assessment is None else "converged" if assessment.converged else "not converged"
    yield ReportNote("text", f"pass {number}{' (cut short)' if cut else ''} · {head}")
    if phases := _phases(passes.phases[number]):
        yield ReportNote("info", phases, 1)
    if assessment is not None:
        yield from _assessment(assessment, passes.assessments.get(number - 1))
    yield from _profiles(passes.all_profiles if alone else passes.profiles[number])
    yield from _issues(passes.reports[number], assessment)
    for refinement in passes.refinements[number]:
        yield from _refinement(refinement)
    for advisory in passes.advisories[number]:
        yield ReportNote("warning", f"advisory: {formatting.advisory(advisory)}", 1)


def _profiles(profiles: list[tuple[ProfileView, bool]]) -> Iterator[ReportNote]:
    """Yield profiles, with the dimensions of each new version."""
    for profile, new in profiles:
        yield ReportNote("info", formatting.profile(profile), 1)
        if new and profile.dimensions:
            yield ReportNote("info", formatting.dimensions(profile), 2)


def _assessment(assessment: AssessmentView, before: AssessmentView | None) -> Iterator[ReportNote]:
    flags = formatting.flags(assessment)
    consistency = ", ".join(text for _, text in flags) or "consistency was not recorded"
    sound = assessment.converged or all(ok for ok, _ in flags)
    if flags or assessment.completeness_score is not None:
        yield ReportNote("info" if sound else "warning", f"{_scores(assessment, before)} · {consistency}", 1)
    for each in assessment.requirements:
        yield ReportNote("info" if each.met == "yes" else "warning", f"requirement {formatting.requirement(each)}", 1)
    for suspect in assessment.suspicions:
        yield ReportNote("warning" if suspect.stands else "info", f"suspicion {formatting.suspicion(suspect)}", 1)
    for _, same in groupby(assessment.checks, lambda check: (check.ok, check.evidence, check.quote_found)):
        first, *more = same
        yield ReportNote("info" if first.ok else "warning", f"evidence {formatting.check(first, *more)}", 1, "evidence")
    if assessment.not_judged:
        yield ReportNote("warning", f"not judged: {brief(assessment.not_judged, 400)}", 1)
    if not assessment.converged:
        for code, reason in zip(assessment.reason_codes, formatting.scored_reasons(assessment), strict=False):
            if code != "not_judged":
                yield ReportNote("warning", f"because: {reason}", 1)


def _scores(assessment: AssessmentView, before: AssessmentView | None) -> str:
    """Return both scores, each with its difference from the previous pass."""
    earlier = (before.completeness_score, before.coherence_score) if before is not None else (None, None)
    now = (assessment.completeness_score, assessment.coherence_score)
    named = zip(("completeness", "coherence"), now, earlier, strict=True)
    return ", ".join(f"{name} {formatting.score(score)}{_gained(score, old)}" for name, score, old in named)


def _gained(score: float | None, before: float | None) -> str:
    return f" ({_gain(round(score - before, 3))})" if score is not None and before is not None else ""


def _issues(reports: list[ReportView], assessment: AssessmentView | None) -> Iterator[ReportNote]:
    for report in reports[:-1]:
        if report.issues:
            artifact = formatting.words(report.artifact_type)
            yield ReportNote("info", f"earlier, in the {artifact}: {count(len(report.issues), 'issue')}", 1)
            yield from _shown([formatting.issue(issue) for issue in report.issues], 2)
    issues = reports[-1].issues if reports else []
    found = [formatting.issue(issue) for issue in issues]
    if assessment is not None:
        # An assessment repeats what validation found, prefixed with its location.
        known = tuple(issue.description for issue in issues if issue.description)
        named = formatting.named_in_verdicts(assessment)
        new = (text for text in assessment.detected_issues if text not in named and not text.endswith(known))
        found += [brief(text, 400) for text in new]
    yield from _shown(found, 1)


def _shown(issues: list[str], depth: int) -> Iterator[ReportNote]:
    for text in issues[:ISSUES_SHOWN]:
        yield ReportNote("warning", f"issue: {text}", depth)
    if len(issues) > ISSUES_SHOWN:
        yield ReportNote("warning", f"{count(len(issues) - ISSUES_SHOWN, 'more issue')}; see all with --json", depth)


def _refinement(refinement: RefinementView) -> Iterator[ReportNote]:
    level = "info" if refinement.accepted else "warning"
    yield ReportNote(level, f"refinement: {formatting.refinement(refinement)}", 1)
    yield ReportNote("info", f"because: {formatting.refinement_cause(refinement)}", 2)
    if change := formatting.refinement_change(refinement):
        yield ReportNote("info", f"{'change' if refinement.accepted else 'proposed'}: {change}", 2)


def _phases(phases: list[PhaseView]) -> str:
    ended = [phase for phase in phases if phase.duration_ms is not None]
    return ", ".join(f"{brief(phase.phase, 20)} {span(phase.duration_ms)}" for phase in ended)


def _patterns(history: ExecutionHistory) -> Iterator[ReportNote]:
    patterns = history.overall_statistics.patterns
    for fragment in patterns.refined_fragments:
        accepted = f"{fragment.accepted} accepted" if fragment.accepted else "none accepted"
        where = _those(fragment.passes)
        yield ReportNote(
            "text", f"{brief(fragment.fragment, 40)} was refined {fragment.attempts} times, {accepted} ({where})"
        )
    for blocker in patterns.convergence_blockers:
        if len(blocker.passes) > 1:
            yield ReportNote(
                "text", f"{formatting.words(blocker.reason_code)} prevented convergence ({_those(blocker.passes)})"
            )
    for adjustment in patterns.depth_adjustments:
        if adjustment.converged is not None:
            yield ReportNote("text", _adjustment(adjustment))


def _adjustment(adjustment: DepthAdjustment) -> str:
    mode = _step(brief(adjustment.reasoning_mode_before, 20), brief(adjustment.reasoning_mode, 20))
    cycles = _step(_known(adjustment.allocated_ttl_before), _known(adjustment.allocated_ttl))
    gains = f"completeness {_gain(adjustment.completeness_change)}, coherence {_gain(adjustment.coherence_change)}"
    outcome = "converged" if adjustment.converged else "not converged"
    return f"depth for pass {adjustment.pass_number}: {mode} reasoning, {cycles} cycles; then {gains}, {outcome}"


def _step(before: str, after: str) -> str:
    return f"{before} → {after}" if before != after else after


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)


def _gain(change: float | None) -> str:
    return "unknown" if change is None else f"{change:+.2f}" if change else "unchanged"


def _those(numbers: list[int]) -> str:
    return f"pass{'' if len(numbers) == 1 else 'es'} {', '.join(map(str, numbers))}"


def answer_title(simulated: bool) -> str:
    """Return the heading of an answer."""
    return f"Answer{' (simulated model)' if simulated else ''}"


def status_of(step: StepView, view: RunView) -> str:
    """Return the status to show for a step: in a run that has stopped, no step is running."""
    return shown_status(step.status, live=view.status == "running")


def notes(step: StepView, view: RunView) -> list[tuple[str, str]]:
    """Return level and text of each note about a step: what was wrong, repaired, replaced, or failed."""
    found = [("warning", f"warning: {brief(text)}") for text in step.validator_errors]
    found += [("warning", repair_text(repair)) for repair in step.repairs]
    if step.mode == "fallback":
        found.append(("warning", "fallback: no tool found, so the model reasoned from the description"))
    if step.replaces is not None:
        found.append(("info", f"replaces {step.replaces}"))
    for call in step.tool_calls[-1:]:
        if not call.finished and view.status != "running" and call.effect not in ("pure", "idempotent"):
            found.append(("warning", f"unknown: {call.tool_name} was called, but the journal has no outcome"))
    return found + [("error", f"error: {text}") for text in step.errors]


def repair_text(repair: RepairView) -> str:
    """Return one line about a repair attempt."""
    how = f"{repair.action_type.replace('_', ' ')}, {repair.method}, attempt {repair.attempt_number} of 2"
    if repair.error is not None:
        return f"not repaired ({how}): {message(repair.error)}"
    return f"repaired ({how}): {change(repair)}"


def readable(output: dict[str, Any]) -> str:
    """Return a step's output: a model's text as it is, anything else as JSON."""
    if len(output) == 1 and isinstance(output.get("text"), str):
        return str(output["text"])
    return json.dumps(output, ensure_ascii=False)


@dataclass
class ApprovalChange:
    """A question to a person with its decision; `decided` is the decision's record, None while it is open."""

    seq: int
    pass_number: int
    point: str
    step_id: str | None
    subject: dict[str, Any]
    asked: str
    decided: dict[str, Any] | None = None


@dataclass
class PassSpan:
    """The first and last record of a pass, and the first record of each of its phases."""

    number: int
    first: int
    last: int
    phases: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class RunChanges:
    """The history of what a view keeps only the latest of: plans, step statuses, TTL and cost, passes, approvals.

    Each list is in journal order; every entry starts with, or contains, the seq of its record."""

    plans: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    statuses: list[tuple[int, str, str]] = field(default_factory=list)
    """seq, step_id, status."""
    totals: list[tuple[int, int, int, float | None]] = field(default_factory=list)
    """seq, cycles left, cycles allocated, cost in USD."""
    passes: dict[int, PassSpan] = field(default_factory=dict)
    approvals: list[ApprovalChange] = field(default_factory=list)

    def apply(self, record: Mapping[str, Any]) -> None:
        """Fold in one record, read leniently."""
        kind, seq = record.get("type"), int_of(record.get("seq"))
        number = int_of(record.get("pass"))
        if number > 0 and kind not in ("profile", "label"):
            self.passes.setdefault(number, PassSpan(number, seq, seq)).last = seq
        if kind == "run_started":
            plan = dict_of((dict_of(record.get("start")) or {}).get("plan"))
            self.plans += [(seq, plan)] if plan is not None else []
        elif kind == "plan":
            self.plans.append((seq, dict_of(record.get("plan")) or {}))
        elif kind == "step":
            self.statuses.append((seq, str_of(record.get("step_id")), str_of(record.get("status"))))
        elif kind == "ttl":
            cost = number_of(record.get("cost_usd"))
            self.totals.append((seq, int_of(record.get("remaining")), int_of(record.get("allocated")), cost))
        elif kind == "phase" and record.get("state") == "started" and number in self.passes:
            self.passes[number].phases.append((seq, str_of(record.get("phase"))))
        elif kind == "approval":
            self._approval(record, seq, number)

    def _approval(self, record: Mapping[str, Any], seq: int, number: int) -> None:
        if record.get("state") != "decided" or not self.approvals or self.approvals[-1].decided is not None:
            subject, stamp = dict_of(record.get("subject")) or {}, str_of(record.get("ts"))
            point, step_id = str_of(record.get("point")), id_of(record.get("step_id"))
            self.approvals.append(ApprovalChange(seq, number, point, step_id, subject, stamp))
        if record.get("state") == "decided":
            self.approvals[-1].decided = dict(record)

    def plan_at(self, seq: int) -> dict[str, Any]:
        """Return the plan after the record `seq`, with the statuses of steps by then; {} before the first plan."""
        found = [(at, plan) for at, plan in self.plans if at <= seq]
        if not found:
            return {}
        at, plan = found[-1]
        statuses = {step_id: status for when, step_id, status in self.statuses if at < when <= seq}
        return with_statuses(plan, statuses)


FORKS_SHOWN = 20
ITS_END = "only the end of a long journal; to read all of it, use --pass N, --export or --json"
_REPORTED_ELSEWHERE = frozenset(
    {"supervisor", "run_finished", "validation", "refinement", "advisory", "questions", "manual_intervention"}
)
"""Types of records that a report shows elsewhere than among the warnings."""


class RunReport:
    """A report on a run, or on one pass of it, from its view and history. A web page shows its changes, too."""

    def __init__(
        self,
        view: RunView,
        history: ExecutionHistory,
        pass_number: int | None,
        family: Callable[[], Lineage] = Lineage,
        changes: RunChanges | None = None,
    ) -> None:
        self.view = view
        self.changes = changes if changes is not None else RunChanges()
        self._history = history
        self._pass_number = pass_number
        self._read_family = family

    @cached_property
    def _family(self) -> Lineage:
        return self._read_family()

    @property
    def damage(self) -> list[str]:
        """What could not be read in the journal."""
        return self.view.damage

    def as_json(self) -> dict[str, Any]:
        """Return the history as plain JSON."""
        return self._history.model_dump(mode="json")

    @property
    def one_pass(self) -> bool:
        """Whether the report covers only one pass."""
        return self._pass_number is not None

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Labels and values of the header; each of several values has a line under the same label."""
        view, statistics = self.view, self._history.overall_statistics
        passes = f"{statistics.total_passes}, " if self._pass_number is None else f"pass {self._pass_number}, "
        trend = score_trend(view.assessments)
        cost = "" if view.cost_usd is None else f", {money(view.cost_usd)}"
        repairs = "" if view.whole_from else f", {count(len(view.repairs), 'repair')}"
        return [
            ("run", view.run_id),
            ("task", brief(view.task, 1_000)),
            *self._parent(),
            ("status", words(view.status)),
            ("model", f"{view.model}{' (simulated)' if view.simulated else ''}"),
            (
                "started",
                f"{view.started[:19].replace('T', ' ')} UTC, {seconds_after(view.started, view.last_ts):.1f} s",
            ),
            ("passes", f"{passes}{count(view.cycles, 'cycle')}{repairs}"),
            *([("scores", trend)] if trend else []),
            *self._labels(),
            ("ttl", f"{view.ttl_remaining} of {view.ttl_allocated} cycles left"),
            ("tokens", f"{view.usage.get('input_tokens', 0):,} in, {view.usage.get('output_tokens', 0):,} out{cost}"),
            *self._forks(),
            *([("read", ITS_END)] if view.whole_from else []),
        ]

    def _labels(self) -> Iterator[tuple[str, str]]:
        """Yield each labelled pass's verdict by a person; the last label counts."""
        for number, each in {each.pass_number: each for each in self.view.labels}.items():
            yield "label", f"pass {number} {brief(each.verdict, 10)}{f': {brief(each.why, 1_000)}' if each.why else ''}"

    def _parent(self) -> Iterator[tuple[str, str]]:
        family = self._family
        if family.parent is not None:
            gone = "" if family.parent_is_there else " (its journal is gone)"
            yield "parent", f"forked from {brief(family.parent)}{at_pass(family.forked_at)}{gone}"

    def _forks(self) -> Iterator[tuple[str, str]]:
        forks = self._family.forks
        for fork in forks[:FORKS_SHOWN]:
            yield "forks", f"{fork.run_id}{at_pass(fork.forked_at)}, {words(fork.status)}"
        if len(forks) > FORKS_SHOWN:
            yield "forks", f"… and {len(forks) - FORKS_SHOWN} more; see `aeon-tui runs`"

    @property
    def other_repairs(self) -> list[str]:
        """Repairs that belong to no step, each with what it is of."""
        apart = (repair for repair in self.view.repairs if repair.step_id is None)
        return [f"the {whole(repair)} was {repair_text(repair)}" for repair in apart]

    @property
    def repairs(self) -> list[str]:
        """Every repair attempt, with its step."""
        return [f"{repair.step_id or f'the {whole(repair)}'}: {repair_text(repair)}" for repair in self.view.repairs]

    @property
    def warnings(self) -> list[LogLine]:
        """What failed or deviated from the plan, apart from repair attempts."""
        return [line for line in self.view.log if line.level != "info" and line.type not in _REPORTED_ELSEWHERE]

    @property
    def passes(self) -> list[ReportSection]:
        """The sections before the answer; empty for a run without evaluation (adaptive FR-071 to FR-078)."""
        view = self.view
        if not (view.assessments or view.reports or view.refinements or view.profiles):
            return []
        passes = [note for notes in self.pass_notes.values() for note in notes]
        return _filled(
            ReportSection("Requirements", [ReportNote("text", brief(each, 400)) for each in view.requirements]),
            ReportSection("Pass" if self.one_pass else "Passes", passes),
            ReportSection("Across passes", self.across_passes),
        )

    @property
    def pass_notes(self) -> dict[int, list[ReportNote]]:
        """The notes on each pass by number, even without an evaluation: its verdict, then its causes."""
        view = self.view
        begun = {phase.pass_number for phase in view.phases}
        numbers = sorted(begun | {each.pass_number for each in view.profiles})
        whole = {each.pass_number for each in self._history.passes}
        passes, found = _Passes(view), {}
        for number in numbers if self._pass_number is None else [self._pass_number]:
            cut = number in begun and number not in whole and view.status != "running"
            found[number] = list(_pass(passes, number, begun=number in begun, cut=cut, alone=self.one_pass))
        return found

    @property
    def across_passes(self) -> list[ReportNote]:
        """What shows only across several passes."""
        return [] if self.one_pass else list(_patterns(self._history))

    @property
    def for_a_person(self) -> list[ReportSection]:
        """What the run leaves to the user in addition to its answer."""
        return person_sections(self.view)

    @property
    def answer(self) -> str | None:
        """The answer of the run, or that in the record of one pass."""
        if self.view.result is not None:
            return self.view.result.answer
        given = self._history.passes[-1].execution_results.get("answer") if self._history.passes else None
        return given if self._pass_number is not None and isinstance(given, str) else None

    @property
    def error(self) -> dict[str, Any] | None:
        """Why the run has no usable result."""
        return self.view.result.error if self.view.result is not None else None
