"""What the convergence engine returns (adaptive: Convergence Assessment; FR-023 to FR-025)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from aeon_core.entities import Entity
from aeon_core.judge.judgement import Met
from aeon_core.plan.models import NonBlank


@with_config(ConfigDict(extra="forbid"))
class ConsistencyStatus(TypedDict):
    """Which artifacts agree with the others.

    `plan`: the plan with the goal and the execution. `step`: the steps' statuses and outputs with one another.
    `answer`: the answer with the outputs. `memory`: the memory with both.
    """

    plan: bool
    step: bool
    answer: bool
    memory: bool


@with_config(ConfigDict(extra="forbid"))
class RequirementVerdict(TypedDict):
    """The judge's verdict on one requirement, counted from 1.

    `evidence` is the quote; `quote_found` says whether it occurs in an artifact.
    """

    n: int
    text: str
    met: Met
    evidence: str
    quote_found: bool


class ConvergenceAssessment(Entity):
    """Whether a result is finished, and why (adaptive FR-023, FR-024, FR-025).

    `reason_codes` of a converged result name the criteria that are met, otherwise only what keeps it from converging;
    an additional criterion appears under its name in both. Scores are 0…1. `detected_issues` has one line an issue.
    `judged` says whether a model judged the result; otherwise it never converges. `metadata` holds `criteria`, `steps`
    (counts and ids), `evidence` (by flag) and `suspicions`.
    """

    converged: bool
    reason_codes: list[NonBlank] = Field(min_length=1)
    completeness_score: Annotated[float, Field(ge=0, le=1)]
    coherence_score: Annotated[float, Field(ge=0, le=1)]
    consistency_status: ConsistencyStatus
    detected_issues: list[str] = Field(default_factory=list)
    requirements: list[RequirementVerdict] = Field(default_factory=list)
    judged: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)

    def ended(self, code: Literal["incomplete", "no_progress", "not_judged", "ttl_expired"]) -> ConvergenceAssessment:
        """Return the assessment with a reason code that rules convergence out, even if it had looked converged."""
        if code in self.reason_codes:
            return self
        if self.converged:
            return self.model_copy(update={"converged": False, "reason_codes": [code]})
        before = [each for each in self.reason_codes if each != "not_judged" or code != "ttl_expired"]
        return self.model_copy(update={"reason_codes": [*before, code]})
