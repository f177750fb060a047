"""The view of a run: what a fold of its journal's records says (Decision 3). Panes, `show` and history read this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aeon_core.journal.view import reducer
from aeon_core.journal.view import reducer as _fold
from aeon_core.journal.view.adaptive_parts import (
    AdvisoryView,
    AssessmentView,
    CheckView,
    InterventionView,
    IssueView,
    LabelView,
    LeftOpenView,
    ProfileView,
    RefinementView,
    ReportView,
    RequirementView,
    SuspicionView,
)
from aeon_core.journal.view.formatting import brief
from aeon_core.journal.view.parts import CallView, LogLine, PhaseView, RepairView, StepView, ToolCallView

if TYPE_CHECKING:
    from aeon_core.entities import RunResult

__all__ = [
    "AdvisoryView",
    "AssessmentView",
    "CallView",
    "CheckView",
    "InterventionView",
    "IssueView",
    "LabelView",
    "LeftOpenView",
    "LogLine",
    "PhaseView",
    "ProfileView",
    "RefinementView",
    "RepairView",
    "ReportView",
    "RequirementView",
    "RunView",
    "StepView",
    "SuspicionView",
    "ToolCallView",
    "fold",
]

LOG_LINES = 5_000
"""The last lines of the log that a view keeps."""
_LOG_SLACK = 500
DAMAGE_LINES = 1_000


@dataclass
class RunView:
    """A run as its journal tells it so far.

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
    """Where the view is of a journal's end: the seq from which on it leaves nothing out; 0 where it is of the whole."""
    parent: str = ""
    """The run that this one is a fork of, and the pass of it that this one starts with."""
    parent_pass: int = 0
    config: dict[str, Any] = field(default_factory=dict)
    tools: list[dict[str, Any]] = field(default_factory=list)
    goal: str = ""
    steps: dict[str, StepView] = field(default_factory=dict)
    """By step_id, in the plan's order, substeps after their parent."""
    current_step_id: str | None = None
    current_pass: int = 0
    phases: list[PhaseView] = field(default_factory=list)
    calls: dict[str, list[CallView]] = field(default_factory=dict)
    """Every model call by call_id, its attempts in order."""
    call_seqs: list[int] = field(default_factory=list)
    """The seq of each model call's first attempt, in order."""
    loose_calls: list[CallView] = field(default_factory=list)
    """The first attempts of model calls that belong to no step, in order."""
    tool_calls: dict[str, ToolCallView] = field(default_factory=dict)
    """Every tool invocation by call_id."""
    repairs: list[RepairView] = field(default_factory=list)
    profiles: list[ProfileView] = field(default_factory=list)
    """Every version of the TaskProfile, each with the first pass it is for."""
    reports: list[ReportView] = field(default_factory=list)
    """Every report of semantic validation, in order; several a pass."""
    assessments: list[AssessmentView] = field(default_factory=list)
    """What convergence says of each pass in the end."""
    labels: list[LabelView] = field(default_factory=list)
    """Every verdict of a person, in order; of several on one pass the last counts."""
    refinements: list[RefinementView] = field(default_factory=list)
    advisories: list[AdvisoryView] = field(default_factory=list)
    follow_up_questions: list[str] = field(default_factory=list)
    """What the result asks; before there is one, what was asked so far. So with the manual interventions."""
    manual_interventions: list[InterventionView] = field(default_factory=list)
    left_open: LeftOpenView = field(default_factory=LeftOpenView)
    """What notices told of both, whatever a result says."""
    memory: dict[str, Any] = field(default_factory=dict)
    ttl_limit: int = 0
    ttl_allocated: int = 0
    ttl_spent: int = 0
    ttl_remaining: int = 0
    ttl_reason: str = ""
    ttl_last: str = ""
    """What the last cycle was spent on, in words; empty where none is."""
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    proposed_usd: float | None = None
    """What the budget would be raised to, as it was last asked."""
    asked: str = ""
    """The point of the approval that is waited for; empty where none is."""
    cycles: int = 0
    passes: int = 0
    """Passes that have ended."""
    log: list[LogLine] = field(default_factory=list)
    """The last lines, at least LOG_LINES of them."""
    log_count: int = 0
    """How many lines there ever were, the dropped ones included."""
    result: RunResult | None = None
    damage: list[str] = field(default_factory=list)

    def apply(self, record: Mapping[str, Any]) -> None:
        """Fold one parsed line in. Never raises on a record it does not understand."""
        try:
            _fold.apply(self, record)
            reducer.left_open(self, record)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            self.add_problem(f"a record after seq {self.last_seq} cannot be read: {type(error).__name__}")

    @property
    def adaptive(self) -> bool:
        """Whether the run goes round in passes, rather than once through a plain loop."""
        return self.config.get("single_pass") is False or bool(self.profiles or self.reports or self.assessments)

    @property
    def profile(self) -> ProfileView | None:
        """The profile that holds now."""
        return self.profiles[-1] if self.profiles else None

    @property
    def requirements(self) -> list[str]:
        """What a finished answer must satisfy, as settled by now; none where that is the task itself, or not known."""
        return self.profile.requirements if self.profile is not None else []

    @property
    def issues(self) -> list[IssueView]:
        """The issues of the last report, the highest severity first."""
        return self.reports[-1].issues if self.reports else []

    @property
    def assessment(self) -> AssessmentView | None:
        """What convergence said last."""
        return self.assessments[-1] if self.assessments else None

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


def fold(records: Iterable[Mapping[str, Any]]) -> RunView:
    """Return the view that these records give, in their order. Any prefix of a journal folds."""
    view = RunView()
    for record in records:
        view.apply(record)
    return view
