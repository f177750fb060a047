"""The view of a run, folded from its journal's records (Decision 3). Panes, `show` and history read this.

The functions below the model answer what validation and refinement say about one step (adaptive FR-073, FR-075).
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from aeon_core.journal.values import brief
from aeon_core.plan import ExecutionMode, StepStatus, end_of_chain

if TYPE_CHECKING:
    from aeon_core.entities import RunResult

LOG_LINES = 5_000
"""The last lines of the log that a view keeps."""
_LOG_SLACK = 500
DAMAGE_LINES = 1_000


class CallView(Struct):
    """One attempt of a model call. `finished` is False until the reply has arrived."""

    call_id: str
    purpose: str
    pass_number: int
    step_id: str | None
    attempt: int
    seq: int
    started: str
    finished: bool = False
    request: dict[str, Any] = {}
    response: dict[str, Any] | None = None
    usage: dict[str, int] | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    error: dict[str, Any] | None = None
    retry_in_s: float | None = None
    finished_seq: int | None = None
    """The seq of the record with its end."""
    is_cut: bool = False
    """Whether the reply was cut off at the limit of its tokens."""


class ToolCallView(Struct):
    """One tool invocation. `finished` is False while it runs."""

    call_id: str
    pass_number: int
    step_id: str
    tool_name: str
    arguments: dict[str, Any]
    effect: str
    seq: int
    started: str
    finished: bool = False
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    duration_ms: float | None = None
    finished_seq: int | None = None
    """The seq of the record with its end."""


class RepairView(Struct):
    """One repair attempt of the supervisor."""

    seq: int
    action_type: str
    method: str
    attempt_number: int
    pass_number: int
    step_id: str | None
    original_output: dict[str, Any]
    repaired_output: dict[str, Any] | None
    error: dict[str, Any] | None
    purpose: str = ""
    """The purpose of the call whose reply was repaired, if that belongs to no step."""


class StepView(Struct):
    """One step, as the plan and its records show it."""

    step_id: str
    description: str
    depth: int = 0
    parent: str | None = None
    """The step whose subplan it belongs to."""
    status: StepStatus = "pending"
    tool: str | None = None
    agent: str | None = None
    arguments: dict[str, Any] | None = None
    replaces: str | None = None
    depends_on: list[str] = []
    validator_errors: list[str] = []
    """The validator's messages; kept when the step ends, cleared when it is repaired."""
    mode: ExecutionMode | None = None
    output: dict[str, Any] | None = None
    output_seq: int | None = None
    """The record that holds the output."""
    errors: list[str] = []
    """Why it failed."""
    repaired: bool = False
    """Whether the supervisor replaced it."""
    calls: list[CallView] = []
    tool_calls: list[ToolCallView] = []
    repairs: list[RepairView] = []


class PhaseView(Struct):
    """One phase of a pass."""

    pass_number: int
    phase: str
    started: str
    finished: bool = False
    duration_ms: float | None = None


class LogLine(Struct):
    """One record as a line of text."""

    seq: int
    ts: str
    type: str
    level: str
    """`info`, `warning` or `error`."""
    text: str


class IssueView(Struct):
    """One issue that validation found, or that a refinement addresses."""

    issue_id: str
    type: str
    severity: str
    description: str
    artifact: str
    step_id: str | None
    """The step that it concerns; None for the artifact as a whole."""
    repair: str
    """What validation proposes."""


class ReportView(Struct):
    """One report of semantic validation; its issues are sorted, highest severity first."""

    seq: int
    pass_number: int
    validation_id: str
    artifact_type: str
    issues: list[IssueView] = []


class RequirementView(Struct):
    """The judge's verdict on one requirement: `met` is yes, partly or no, `evidence` what it quotes."""

    n: int
    text: str
    met: str
    evidence: str
    quote_found: bool
    """Whether those words occur in an artifact."""


class CheckView(Struct):
    """The judge's verdict on coherence or on one consistency flag, its `name`, and what it quotes."""

    name: str
    ok: bool
    evidence: str
    quote_found: bool


class SuspicionView(Struct):
    """A suspicion of the exact checks, and the judge's verdict: `stands` is None if there is none."""

    text: str
    stands: bool | None
    evidence: str
    quote_found: bool


class AssessmentView(Struct):
    """The assessment of a pass. Scores are 0…1, None if the journal has no number."""

    seq: int
    pass_number: int
    converged: bool
    reason_codes: list[str] = []
    completeness_score: float | None = None
    coherence_score: float | None = None
    consistency: dict[str, bool] = {}
    """Whether each artifact agrees with the others."""
    detected_issues: list[str] = []
    criteria: dict[str, Any] = {}
    """The criteria, as in the assessment's metadata; empty if they are not there."""
    additional: dict[str, bool] = {}
    """Whether each additional criterion is met, by name."""
    requirements: list[RequirementView] = []
    """The judge's verdict on each requirement; none if the result was not judged."""
    checks: list[CheckView] = []
    """The judge's evidence for coherence and for each consistency flag."""
    suspicions: list[SuspicionView] = []

    @property
    def not_judged(self) -> str:
        """Why the judge gave no verdict; empty if it gave one, or was not asked."""
        wanting = "not_judged" in self.reason_codes
        return (self.detected_issues[-1:] or ["no reason was recorded"])[0] if wanting else ""


class LabelView(Struct):
    """A person's verdict on the result of a pass: `good` or `bad`. `source` is `decision` or `person`."""

    seq: int
    ts: str
    pass_number: int
    verdict: str
    why: str
    source: str


class ProfileView(Struct):
    """A TaskProfile with the depth that follows from it. `pass_number` is the first pass that it applies to."""

    seq: int
    pass_number: int
    version: int
    dimensions: dict[str, str]
    raw_inference: str
    reasoning_mode: str
    allocated_ttl: int | None
    """Cycles of the whole run."""
    reason: str
    """Why it was made or revised."""
    requirements: list[str] = []
    """What a finished answer must satisfy, as settled by then; empty if that is only the task itself."""


class RefinementView(Struct):
    """One refinement action and its result. `before` and `after` are steps as in a plan."""

    seq: int
    pass_number: int
    kind: str
    target: str
    reason: str
    accepted: bool
    explanation: str
    """What was done, or why nothing was done."""
    before: list[dict[str, Any]] = []
    after: list[dict[str, Any]] = []
    replaced: dict[str, str] = {}
    """The steps that were marked invalid, and the steps that replace them."""
    issues: list[IssueView] = []
    """The validation issues that triggered it."""


class AdvisoryView(Struct):
    """A repair that validation proposed and the planner did not follow."""

    seq: int
    pass_number: int
    step_id: str | None
    message: str
    issue: IssueView | None


class InterventionView(Struct):
    """A fragment of the plan that a person should look at."""

    step_id: str
    reason: str


class ResultView(Struct):
    """The readable part of a finished run's result."""

    status: str
    answer: str | None
    error: dict[str, Any] | None
    converged: bool
    steps: list[dict[str, Any]]
    incomplete_steps: list[str]
    """The steps that were not done when the TTL expired."""
    record: dict[str, Any]
    """The whole result, as recorded."""

    def validated(self) -> RunResult:
        """Return the RunResult. Raises pydantic's ValidationError if the record is not one."""
        from aeon_core.entities import RunResult

        return RunResult.model_validate(self.record, extra="ignore")


class LeftOpenView(Struct):
    """What the run has left to a person so far, until its result contains that."""

    questions: list[str] = []
    interventions: list[InterventionView] = []


class RunView(Struct):
    """A run as its journal records it.

    `status` is `running` until a `run_finished` record; `damage` lists what could not be read, with line numbers.
    """

    run_id: str = ""
    task: str = ""
    model: str = ""
    simulated: bool = False
    status: str = "running"
    started: str = ""
    last_ts: str = ""
    last_seq: int = -1
    whole_from: int = 0
    """For a view of a journal's end: the seq from which it is complete; 0 for a view of the whole."""
    parent: str = ""
    """The run that this one was forked from."""
    parent_pass: int = 0
    """The pass of the parent that this run starts with."""
    config: dict[str, Any] = {}
    tools: list[dict[str, Any]] = []
    goal: str = ""
    steps: dict[str, StepView] = {}
    """By step_id, in the plan's order, substeps after their parent."""
    current_step_id: str | None = None
    current_pass: int = 0
    phases: list[PhaseView] = []
    calls: dict[str, list[CallView]] = {}
    """Every model call by call_id, its attempts in order."""
    call_seqs: list[int] = []
    """The seq of each model call's first attempt, in order."""
    loose_calls: list[CallView] = []
    """The first attempts of model calls that belong to no step, in order."""
    tool_calls: dict[str, ToolCallView] = {}
    """Every tool invocation by call_id."""
    repairs: list[RepairView] = []
    profiles: list[ProfileView] = []
    """Every version of the TaskProfile, each with the first pass that it applies to."""
    reports: list[ReportView] = []
    """Every report of semantic validation, in order; a pass may have several."""
    assessments: list[AssessmentView] = []
    """The last assessment of convergence in each pass."""
    labels: list[LabelView] = []
    """Every verdict of a person, in order; the last one for a pass counts."""
    refinements: list[RefinementView] = []
    advisories: list[AdvisoryView] = []
    follow_up_questions: list[str] = []
    """Those in the result, or those so far until there is one; likewise the manual interventions."""
    answers: dict[str, str] = {}
    """What a person has answered, by question."""
    manual_interventions: list[InterventionView] = []
    left_open: LeftOpenView = field(default_factory=LeftOpenView)
    """Questions and interventions according to notices, whatever the result says."""
    memory: dict[str, Any] = {}
    ttl_limit: int = 0
    ttl_allocated: int = 0
    ttl_spent: int = 0
    ttl_remaining: int = 0
    ttl_reason: str = ""
    ttl_last: str = ""
    """What the last cycle was spent on, in words; empty if none was spent."""
    usage: dict[str, int] = {}
    cost_usd: float | None = None
    proposed_usd: float | None = None
    """The amount in the last question whether to raise the budget."""
    asked: str = ""
    """The point of the pending approval; empty if there is none."""
    cycles: int = 0
    passes: int = 0
    """Passes that have ended."""
    log: list[LogLine] = []
    """The last lines, at least LOG_LINES of them."""
    log_count: int = 0
    """The number of lines so far, including dropped ones."""
    result: ResultView | None = None
    resumable: bool = False
    """Whether a run that has ended can be resumed."""
    damage: list[str] = []

    @property
    def adaptive(self) -> bool:
        """Whether the run goes through passes, rather than once through a plain loop."""
        return self.config.get("single_pass") is False or bool(self.profiles or self.reports or self.assessments)

    @property
    def wanted_steps(self) -> list[StepView]:
        """The steps of the plan that no other step replaced."""
        return [step for step in self.steps.values() if step.status != "invalid"]

    @property
    def profile(self) -> ProfileView | None:
        """The current profile."""
        return self.profiles[-1] if self.profiles else None

    @property
    def requirements(self) -> list[str]:
        """What a finished answer must satisfy, as settled so far; none if that is the task itself, or unknown."""
        return self.profile.requirements if self.profile is not None else []

    @property
    def issues(self) -> list[IssueView]:
        """The issues of the last report, highest severity first."""
        return self.reports[-1].issues if self.reports else []

    @property
    def assessment(self) -> AssessmentView | None:
        """The last assessment."""
        return self.assessments[-1] if self.assessments else None

    def assessment_of(self, number: int) -> AssessmentView | None:
        """Return the assessment of a pass; None if it has none yet."""
        return next((each for each in self.assessments if each.pass_number == number), None)

    def add_problem(self, text: str) -> None:
        """Note that a part of the journal cannot be read, in `damage` and as an error in the log."""
        if len(self.damage) < DAMAGE_LINES:
            self.damage.append(text)
            self.add_line("error", "damage", brief(text))

    def add_line(self, level: str, kind: str, text: str) -> None:
        """Append a line to the log under the last record's seq and time, and drop the oldest ones beyond the bound."""
        self.log.append(LogLine(seq=self.last_seq, ts=self.last_ts, type=kind, level=level, text=text))
        self.log_count += 1
        if len(self.log) >= LOG_LINES + _LOG_SLACK:
            del self.log[:_LOG_SLACK]


def cut_replies(view: RunView) -> list[str]:
    """Return what the run's last replies leave incomplete because they were cut off: `the answer`, and steps by id."""
    answers = (view.calls[call.call_id][-1] for call in reversed(view.loose_calls) if call.purpose == "answer")
    last = [("the answer", call) for call in islice(answers, 1)]
    last += [(step.step_id, step.calls[-1]) for step in view.wanted_steps if step.calls]
    return [name for name, call in last if call.is_cut]


def found_issues(view: RunView) -> list[tuple[int, IssueView]]:
    """Return every issue of every report with the last pass in which it was found, the newest report first."""
    found: dict[tuple[str | None, str, str], tuple[int, IssueView]] = {}
    for report in reversed(view.reports):
        for issue in report.issues:
            found.setdefault((issue.step_id, issue.type, issue.description), (report.pass_number, issue))
    return list(found.values())


def issues_of(view: RunView, step_id: str) -> list[tuple[int, IssueView]]:
    """Return all issues ever found in a step, each with its pass."""
    return [(number, issue) for number, issue in found_issues(view) if issue.step_id == step_id]


def open_issues(view: RunView) -> dict[str, list[IssueView]]:
    """Return the issues of the last report by step, highest severity first.

    Issues of a step that was refined since are left out: only the next report says whether they are resolved.
    """
    by_step: dict[str, list[IssueView]] = {}
    answered = refined_since(view)
    for issue in view.issues:
        if issue.step_id is not None and issue.step_id not in answered:
            by_step.setdefault(issue.step_id, []).append(issue)
    return by_step


def refined_since(view: RunView) -> set[str]:
    """Return the steps that accepted refinements changed or replaced after the last report."""
    last = view.reports[-1].seq if view.reports else -1
    return {step_id for each in view.refinements if each.accepted and each.seq > last for step_id in _touched(each)}


def refinements_of(view: RunView, step_id: str) -> list[RefinementView]:
    """Return the refinement actions, accepted or refused, that targeted or changed a step, in order."""
    return [each for each in view.refinements if step_id in _touched(each)]


def advisories_of(view: RunView, step_id: str) -> list[AdvisoryView]:
    """Return the repairs of a step that validation proposed and the planner did not follow."""
    return [each for each in view.advisories if each.step_id == step_id]


def replacements(view: RunView) -> dict[str, str]:
    """Return the replaced steps, each with its replacement."""
    return {step.replaces: step.step_id for step in view.steps.values() if step.replaces is not None}


def superseded(view: RunView) -> dict[str, str]:
    """Return the replaced steps and their substeps, each with its final replacement.

    Steps of a damaged journal that replace each other in a circle are left out: nothing replaces them.
    """
    replaced, found = replacements(view), dict[str, str]()
    for step_id, step in view.steps.items():
        last = end_of_chain(step_id, replaced)
        if last in replaced:
            continue
        if last != step_id:
            found[step_id] = last
        elif step.parent in found:
            found[step_id] = found[step.parent]
    # The final replacement of a substep whose parent was replaced, too.
    return {step_id: found.get(last, last) for step_id, last in found.items() if found.get(last, last) != step_id}


def times_refined(view: RunView) -> dict[str, int]:
    """Return how often each fragment was refined, by its current step: replacing a step refines it."""
    replaces = {step_id: step.replaces for step_id, step in view.steps.items() if step.replaces is not None}
    counts = Counter(end_of_chain(each.target, replaces) for each in view.refinements if each.accepted)
    replaced = replacements(view)
    return {
        step_id: counts[origin]
        for step_id in view.steps
        if step_id not in replaced and (origin := end_of_chain(step_id, replaces)) in counts
    }


def _touched(refinement: RefinementView) -> set[str]:
    steps = [step.get("step_id") for step in (*refinement.before, *refinement.after)]
    named = {*refinement.replaced, *refinement.replaced.values(), refinement.target}
    return named | {step_id for step_id in steps if isinstance(step_id, str)}
