"""What evaluation, refinement and adaptive depth say in a run's view, by pass (adaptive FR-071 to FR-078)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class IssueView:
    """One issue that validation found, or that a refinement goes back to."""

    issue_id: str
    type: str
    severity: str
    description: str
    artifact: str
    step_id: str | None
    """The step it is about; None where it is about the whole."""
    repair: str
    """What validation proposes."""


@dataclass
class ReportView:
    """One report of semantic validation; its issues stand with the highest severity first."""

    seq: int
    pass_number: int
    validation_id: str
    artifact_type: str
    issues: list[IssueView] = field(default_factory=list)


@dataclass
class RequirementView:
    """What the judge says of one requirement: `met` is yes, partly or no, `evidence` the words that it quotes."""

    n: int
    text: str
    met: str
    evidence: str
    quote_found: bool
    """Whether those words occur in an artifact."""


@dataclass
class CheckView:
    """What the judge says of coherence or of one consistency flag, by its `name`, and the words that it quotes."""

    name: str
    ok: bool
    evidence: str
    quote_found: bool


@dataclass
class SuspicionView:
    """What exact checks found odd, and what the judge says of it: `stands` is None where it says nothing."""

    text: str
    stands: bool | None
    evidence: str
    quote_found: bool


@dataclass
class AssessmentView:
    """What convergence says of a pass. Scores are 0…1, None where the journal holds no number."""

    seq: int
    pass_number: int
    converged: bool
    reason_codes: list[str] = field(default_factory=list)
    completeness_score: float | None = None
    coherence_score: float | None = None
    consistency: dict[str, bool] = field(default_factory=dict)
    """By artifact, whether it agrees with the others."""
    detected_issues: list[str] = field(default_factory=list)
    criteria: dict[str, Any] = field(default_factory=dict)
    """What was asked of the result, as the assessment's metadata has it; empty where it does not say."""
    additional: dict[str, bool] = field(default_factory=dict)
    """By name, whether an additional criterion is met."""
    requirements: list[RequirementView] = field(default_factory=list)
    """The judge's verdict on each requirement; none where the result was not judged."""
    checks: list[CheckView] = field(default_factory=list)
    """The judge's evidence for coherence and for each consistency flag."""
    suspicions: list[SuspicionView] = field(default_factory=list)

    @property
    def not_judged(self) -> str:
        """Why no judge's verdict could be had; empty where there is one, or none was wanted."""
        wanting = "not_judged" in self.reason_codes
        return (self.detected_issues[-1:] or ["no reason was recorded"])[0] if wanting else ""


@dataclass
class LabelView:
    """A person's verdict on the result of a pass: `good` or `bad`. `source` is `decision` or `person`."""

    seq: int
    ts: str
    pass_number: int
    verdict: str
    why: str
    source: str


@dataclass
class ProfileView:
    """A TaskProfile with the depth that follows from it. `pass_number` is the first pass it is for."""

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
    requirements: list[str] = field(default_factory=list)
    """What a finished answer must satisfy, as it was settled by then; none where that is the task itself."""


@dataclass
class RefinementView:
    """One refinement action, and what became of it. `before` and `after` are steps as in a plan."""

    seq: int
    pass_number: int
    kind: str
    target: str
    reason: str
    accepted: bool
    explanation: str
    """What was done, or why nothing was."""
    before: list[dict[str, Any]] = field(default_factory=list)
    after: list[dict[str, Any]] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    """The steps that were marked invalid, and the steps that stand in for them."""
    issues: list[IssueView] = field(default_factory=list)
    """The validation issues that triggered it."""
    inconsistency_detected: bool = False


@dataclass
class AdvisoryView:
    """A repair that validation proposed and the planner did not follow."""

    seq: int
    pass_number: int
    step_id: str | None
    message: str
    issue: IssueView | None


@dataclass
class InterventionView:
    """A fragment of the plan that a person should look at."""

    step_id: str
    cause: str
    reason: str
    attempts: int


@dataclass
class LeftOpenView:
    """What the run has told a person on its way, before there is a result that says it all."""

    questions: list[str] = field(default_factory=list)
    interventions: list[InterventionView] = field(default_factory=list)
