"""What the convergence engine returns (adaptive: Convergence Assessment; FR-023 to FR-025)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from aeon_core.entities import Entity
from aeon_core.plan.models import NonBlank


@with_config(ConfigDict(extra="forbid"))
class ConsistencyStatus(TypedDict):
    """Which artifacts agree with the others.

    `plan`: the plan with the goal and with what was executed. `step`: the steps' statuses and outputs with one
    another. `answer`: the answer with the outputs. `memory`: the memory with both.
    """

    plan: bool
    step: bool
    answer: bool
    memory: bool


class ConvergenceAssessment(Entity):
    """Whether a result is finished, and why (adaptive FR-023, FR-024, FR-025).

    `reason_codes` of a converged result name the criteria that are met, those of another one only what stands in the
    way; an additional criterion goes by its name in both. Scores are 0…1. `detected_issues` has one line an issue.
    `metadata` holds `criteria`, `steps` (counts and ids), `goal_parts` and `additional`.
    """

    converged: bool
    reason_codes: list[NonBlank] = Field(min_length=1)
    completeness_score: Annotated[float, Field(ge=0, le=1)]
    coherence_score: Annotated[float, Field(ge=0, le=1)]
    consistency_status: ConsistencyStatus
    detected_issues: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    judged: bool = Field(default=True, exclude_if=bool)
    """False where a judge was asked and gave no usable judgement; it is written only then."""

    def unjudged(self, why: str) -> ConvergenceAssessment:
        """Return the assessment of a result that the judge could not judge: it does not converge (Decision 7)."""
        issues = [*self.detected_issues, f"the result was not judged: {why}"]
        changed = {"judged": False, "detected_issues": issues}
        return self.ended("not_judged").model_copy(update=changed)

    def limited(self, completeness: float, *, incomplete: bool) -> ConvergenceAssessment:
        """Return the assessment with a completeness of at most this; `incomplete` says that this is too little."""
        score = round(min(self.completeness_score, completeness), 3)
        changed = self.ended("incomplete") if incomplete else self
        return changed.model_copy(update={"completeness_score": score})

    def ended(self, code: Literal["incomplete", "no_progress", "not_judged", "ttl_expired"]) -> ConvergenceAssessment:
        """Return the assessment with a reason code that rules convergence out: what looked converged is not."""
        if code in self.reason_codes:
            return self
        if self.converged:
            return self.model_copy(update={"converged": False, "reason_codes": [code]})
        return self.model_copy(update={"reason_codes": [*self.reason_codes, code]})
