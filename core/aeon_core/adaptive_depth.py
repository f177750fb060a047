"""Adaptive depth: how much thought a task needs (adaptive FR-001 to FR-021).

TTL and reasoning_mode follow from the TaskProfile, within the limit (adaptive FR-026 to FR-035, FR-077).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import ConfigDict, Field

from aeon_core.entities import Entity
from aeon_core.plan.models import NonBlank
from aeon_core.prompts import ReasoningMode
from aeon_core.task_profile import DIMENSIONS, TaskProfile, drift, moved, tier

_MANY_ISSUES = 2
"""The number of medium issues from which a plan is harder than expected."""
_GOOD = 0.9
"""The scores from which a result is nearly complete."""
_CONTRADICTIONS = frozenset({"incoherent", "inconsistent", "contradiction_detected", "hallucinated_tool"})

Move = tuple[list[str], tuple[str, ...], dict[str, int]]
"""Causes, one clause each; where they come from; by how many tiers each dimension moves."""


@dataclass(frozen=True, slots=True)
class DepthEvidence:
    """What validation, convergence and the recursive planner found in a pass."""

    high_issues: int = 0
    medium_issues: int = 0
    specificity_issues: int = 0
    """High and medium issues of type specificity."""
    converged: bool | None = None
    """None if convergence was not assessed."""
    completeness_score: float | None = None
    coherence_score: float | None = None
    reason_codes: tuple[str, ...] = ()
    failed_steps: int = 0
    refinements: int = 0
    """Refinement attempts of the pass, refused ones included."""
    manual_interventions: int = 0
    follow_up_questions: int = 0

    @property
    def nearly_there(self) -> bool:
        """Whether the result lacks so little that deeper reasoning would not help."""
        scores = (self.completeness_score, self.coherence_score)
        good = all(score is not None and score >= _GOOD for score in scores)
        return good and not _CONTRADICTIONS.intersection(self.reason_codes)


def harder(evidence: DepthEvidence) -> Move:
    """Return why the task is harder than its profile, and how the profile moves; no causes if it is not."""
    causes: list[str] = []
    sources: list[str] = []
    steps: dict[str, int] = {}
    if evidence.high_issues or evidence.medium_issues >= _MANY_ISSUES:
        counted = _counted(evidence.medium_issues, "medium issue")
        causes.append(f"validation found {evidence.high_issues} high and {counted}")
        sources.append("semantic_validation")
        steps["reasoning_depth"] = 1
    if evidence.converged is False and not evidence.nearly_there:
        codes = ", ".join(evidence.reason_codes) or "no reason code"
        causes.append(f"convergence was not reached ({codes})")
        sources.append("convergence")
        steps["reasoning_depth"] = 1
        if _CONTRADICTIONS.intersection(evidence.reason_codes):
            steps["confidence_requirement"] = 1
    if evidence.failed_steps:
        causes.append(f"{_counted(evidence.failed_steps, 'step')} failed")
        sources.append("execution")
        steps["reasoning_depth"] = 1
    if evidence.refinements or evidence.manual_interventions:
        left = evidence.manual_interventions
        causes.append(f"the planner needed {_counted(evidence.refinements, 'refinement')} and left {left} to a person")
        sources.append("recursive_planner")
        steps["reasoning_depth"] = 1
    if causes and evidence.specificity_issues + evidence.follow_up_questions:
        vague, asked = evidence.specificity_issues, evidence.follow_up_questions
        causes.append(f"details are missing ({_counted(vague, 'vague step')}, {_counted(asked, 'question')})")
        steps["information_sufficiency"] = -1
    return causes, tuple(sources), steps


def easier(evidence: DepthEvidence) -> Move:
    """Return why the task is simpler than its profile, and how the profile moves; no causes if it is not."""
    assessed = evidence.converged is True or evidence.nearly_there
    if harder(evidence)[0] or evidence.medium_issues or evidence.follow_up_questions or not assessed:
        return [], (), {}
    cause = "the task is simpler than estimated: no issue above low, nothing failed or refined, scores all but reached"
    return [cause], ("semantic_validation", "convergence"), {"reasoning_depth": -1, "information_sufficiency": 1}


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


_Score = Annotated[float, Field(ge=0, le=1)]

_DEMAND = {
    "reasoning_depth": 3,
    "information_sufficiency": -3,
    "expected_tool_usage": 1,
    "output_breadth": 1,
    "confidence_requirement": 1,
}
"""What a tier of each dimension adds to the demand; sufficiency reduces it."""
_MOST_DEMAND = sum(abs(weight) * (len(DIMENSIONS[dimension]) - 1) for dimension, weight in _DEMAND.items())
_FIRST_PASS = 6
"""Cycles of the first pass besides its steps: profile, plan, refining it, judge, answer, refinement."""
_LATER_PASS = 4
"""Cycles of a later pass besides its steps: refining the plan, judge, answer, refinement."""
_A_VOTE = 2
"""Cycles of each further vote of the judge: the verdict, and another if it is in doubt."""
_PASSES = 2
"""Passes that the most demanding profile gets beyond the one that every profile gets."""


class AdaptiveDepthConfiguration(Entity):
    """How deeply a pass reasons, and how many cycles the run may use (adaptive: Adaptive Depth Configuration)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    detected_complexity: _Score
    ambiguity_score: _Score
    """1 if information_sufficiency is low, 0 if it is high."""
    uncertainty_score: _Score
    """How far what is known falls short of the confidence that is required."""
    allocated_ttl: Annotated[int, Field(ge=0)]
    """Cycles of the whole run, including spent ones; never above the limit."""
    reasoning_mode: ReasoningMode
    adjustment_reason: NonBlank
    """Why it was chosen, with its cause (adaptive FR-078)."""
    heuristics_used: list[str]


class Revision(NamedTuple):
    """A profile revised at a pass boundary, with its consequences."""

    profile: TaskProfile
    configuration: AdaptiveDepthConfiguration


@dataclass(frozen=True, slots=True)
class AdaptiveDepth:
    """Allocates cycles and chooses a reasoning_mode. `ttl_limit` is the most cycles a run may use (FR-077)."""

    ttl_limit: int
    judge_votes: int = 1

    def configure(
        self,
        profile: TaskProfile,
        *,
        steps: int | None,
        pass_number: int = 1,
        spent: int = 0,
        least: int = 0,
        cause: str = "inferred from the task",
        heuristics: tuple[str, ...] = (),
    ) -> AdaptiveDepthConfiguration:
        """Return the configuration for a profile; TTL and mode never fall if a dimension asks for more (FR-029).

        `steps` are those of the plan that are still to run, None before there is a plan; `spent` the cycles used so
        far; `least` what is allocated in any case, within the limit. The allocation covers one pass over the steps
        if the limit allows; adjustment_reason mentions a cap.
        """
        complexity = _complexity(profile)
        to_run = steps if steps is not None else _expected_steps(profile)
        one_pass = to_run + (_FIRST_PASS if pass_number <= 1 else _LATER_PASS) + _A_VOTE * (self.judge_votes - 1)
        wanted = max(least, spent + one_pass + round(_PASSES * complexity * one_pass))
        allocated = max(0, min(wanted, self.ttl_limit))
        mode = _reasoning_mode(profile)
        return AdaptiveDepthConfiguration(
            detected_complexity=round(complexity, 3),
            ambiguity_score=_short_of(profile),
            uncertainty_score=round((_short_of(profile) + tier(profile, "confidence_requirement") / 2) / 2, 3),
            allocated_ttl=allocated,
            reasoning_mode=mode,
            adjustment_reason=self._reason(profile, mode, cause, wanted=wanted, least=spent + one_pass),
            heuristics_used=_heuristics(profile, heuristics, capped=wanted > self.ttl_limit),
        )

    def adjusted(
        self,
        profile: TaskProfile,
        before: AdaptiveDepthConfiguration | None,
        evidence: DepthEvidence | None,
        *,
        steps: int | None,
        pass_number: int,
        spent: int,
    ) -> Revision | None:
        """Return the profile and configuration from here on, None if they stay as `before`.

        With `evidence`, at a pass boundary, the profile may be revised; without, the cycles follow the plan. What
        proved harder does not get fewer cycles than it had, however little of the plan is left; nor does a later pass
        whose plan a person changed.
        """
        place: dict[str, Any] = {"steps": steps, "pass_number": pass_number, "spent": spent, "least": 0}
        if before is not None and (pass_number > 1 if evidence is None else harder(evidence)[0]):
            place["least"] = before.allocated_ttl
        if evidence is not None:
            revised = self.revise(profile, evidence, **place)
            if revised is not None:
                return revised
        to_run = f"{steps} step{'' if steps == 1 else 's'}"
        cause = "inferred from the task" if before is None else f"the plan has {to_run} to run"
        made = self.configure(profile, cause=cause, **place)
        if before is not None and made.allocated_ttl == before.allocated_ttl:
            return None
        return Revision(profile, made)

    def revise(
        self,
        profile: TaskProfile,
        evidence: DepthEvidence,
        *,
        steps: int | None,
        pass_number: int,
        spent: int = 0,
        least: int = 0,
    ) -> Revision | None:
        """Return the profile that a pass boundary calls for, None if the findings change nothing (FR-080).

        Each dimension moves by at most one tier, up on findings of validation, convergence or the planner, down if
        the task proved simpler. The version increases. `pass_number` is that of the next pass, `least` what is
        allocated in any case.
        """
        causes, sources, steps_up = harder(evidence)
        if not causes:
            causes, sources, steps_up = easier(evidence)
        moving = drift(profile, profile.model_copy(update=moved(profile, steps_up)))
        changed = [name for name in DIMENSIONS if getattr(moving, name) != getattr(profile, name)]
        if not changed:
            return None
        changes = ", ".join(f"{name} {getattr(profile, name)} → {getattr(moving, name)}" for name in changed)
        reason = f"{'; '.join(causes)}: {changes}"
        version = {"profile_version": profile.profile_version + 1, "raw_inference": f"Revised: {reason}."}
        revised = moving.model_copy(update=version)
        place: dict[str, Any] = {"steps": steps, "pass_number": pass_number, "spent": spent, "least": least}
        return Revision(revised, self.configure(revised, cause=reason, heuristics=sources, **place))

    def _reason(self, profile: TaskProfile, mode: ReasoningMode, cause: str, *, wanted: int, least: int) -> str:
        shown = ", ".join(f"{dimension} {getattr(profile, dimension)}" for dimension in DIMENSIONS)
        reason = f"{cause}. TaskProfile version {profile.profile_version}: {shown}; reasoning_mode {mode}"
        if wanted <= self.ttl_limit:
            return f"{reason}, {wanted} of at most {self.ttl_limit} cycles."
        short = f", which does not cover one pass ({least})" if least > self.ttl_limit else ""
        return f"{reason}; {wanted} cycles wanted, capped at the limit of {self.ttl_limit}{short}."


def _complexity(profile: TaskProfile) -> float:
    """Return the profile's demand, 0…1."""
    demand = sum(
        weight * tier(profile, dimension) if weight > 0 else -weight * _below_top(profile, dimension)
        for dimension, weight in _DEMAND.items()
    )
    return demand / _MOST_DEMAND


def _below_top(profile: TaskProfile, dimension: str) -> int:
    return len(DIMENSIONS[dimension]) - 1 - tier(profile, dimension)


def _short_of(profile: TaskProfile) -> float:
    return _below_top(profile, "information_sufficiency") / 2


def _expected_steps(profile: TaskProfile) -> int:
    """Return the number of steps expected before there is a plan."""
    return 2 + tier(profile, "expected_tool_usage") + tier(profile, "output_breadth") + tier(profile, "reasoning_depth")


def _reasoning_mode(profile: TaskProfile) -> ReasoningMode:
    if profile.reasoning_depth == "high" or profile.information_sufficiency == "low":
        return "deep"
    simple = profile.reasoning_depth == "low" and profile.information_sufficiency == "high"
    if simple and profile.confidence_requirement != "high":
        return "shallow"
    return "balanced"


def _heuristics(profile: TaskProfile, sources: tuple[str, ...], *, capped: bool) -> list[str]:
    """Return the basis of the decision: demanding dimensions, findings, the cap."""
    demanding = [
        dimension
        for dimension, weight in _DEMAND.items()
        if (tier(profile, dimension) if weight > 0 else _below_top(profile, dimension)) > 0
    ]
    return [*(demanding or ["reasoning_depth", "information_sufficiency"]), *sources, *(["ttl_cap"] if capped else [])]
