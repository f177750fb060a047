"""What a pass found out about its task: harder or simpler than its TaskProfile says (adaptive FR-031 to FR-033)."""

from __future__ import annotations

from dataclasses import dataclass

_MANY_ISSUES = 2
"""Medium issues from which a plan is harder than it looked."""
_GOOD = 0.9
"""Scores from which a result is nearly there."""
_CONTRADICTIONS = frozenset({"incoherent", "inconsistent", "contradiction_detected", "hallucinated_tool"})

Move = tuple[list[str], tuple[str, ...], dict[str, int]]
"""Causes, one clause each; where they come from; by how many tiers each dimension moves."""


@dataclass(frozen=True, slots=True)
class DepthEvidence:
    """What validation, convergence and the recursive planner found in a pass."""

    high_issues: int = 0
    medium_issues: int = 0
    specificity_issues: int = 0
    """High and medium ones of type specificity."""
    converged: bool | None = None
    """None where convergence was not assessed."""
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
        """Whether the result lacks so little that deeper reasoning is not what it needs."""
        scores = (self.completeness_score, self.coherence_score)
        good = all(score is not None and score >= _GOOD for score in scores)
        return good and not _CONTRADICTIONS.intersection(self.reason_codes)


def harder(evidence: DepthEvidence) -> Move:
    """Return why the task is harder than its profile says, and how the profile moves; no causes where it is not."""
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
    """Return why the task is simpler than its profile says, and how the profile moves; no causes where it is not."""
    assessed = evidence.converged is True or evidence.nearly_there
    if harder(evidence)[0] or evidence.medium_issues or evidence.follow_up_questions or not assessed:
        return [], (), {}
    cause = "the task is simpler than estimated: no issue above low, nothing failed or refined, scores all but reached"
    return [cause], ("semantic_validation", "convergence"), {"reasoning_depth": -1, "information_sufficiency": 1}


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
