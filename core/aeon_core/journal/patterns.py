"""Patterns across passes: what was refined often, what stood in the way, what depth changes achieved (FR-076)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from pydantic import Field

from aeon_core.entities import Entity
from aeon_core.journal.view.adaptive_parts import AssessmentView, ProfileView, RefinementView
from aeon_core.journal.view.model import RunView
from aeon_core.plan.refinement.actions import fragment_of

_ENDINGS = frozenset({"no_progress", "ttl_expired"})
"""Reason codes that say how a run ended, not what stood in the way."""


class RefinedFragment(Entity):
    """A fragment of the plan that was refined more than once; a step and those that replace it are one fragment."""

    fragment: str
    attempts: int
    accepted: int
    """Attempts that changed the plan."""
    passes: list[int]
    reasons: list[str]


class ConvergenceBlocker(Entity):
    """A reason code that stood in the way of convergence, and the passes in which it did."""

    reason_code: str
    passes: list[int]


class DepthAdjustment(Entity):
    """A revision of the profile, and what the pass after it achieved against the pass before it.

    The changes of scores are −1…1. They and `converged` are null where one of the two passes was not assessed.
    """

    pass_number: int
    """The first pass it is for."""
    profile_version: int
    reasoning_mode_before: str
    reasoning_mode: str
    allocated_ttl_before: int | None
    allocated_ttl: int | None
    adjustment_reason: str
    completeness_change: float | None = None
    coherence_change: float | None = None
    converged: bool | None = None


class ExecutionPatterns(Entity):
    """What shows only across passes (adaptive FR-076); empty where a run has one pass and converges at once."""

    refined_fragments: list[RefinedFragment] = Field(default_factory=list)
    """The most often refined first."""
    convergence_blockers: list[ConvergenceBlocker] = Field(default_factory=list)
    """Those of the most passes first."""
    depth_adjustments: list[DepthAdjustment] = Field(default_factory=list)


def patterns_of(view: RunView) -> ExecutionPatterns:
    """Return the patterns of a whole run."""
    return ExecutionPatterns(
        refined_fragments=_refined_fragments(view.refinements),
        convergence_blockers=_blockers(view.assessments),
        depth_adjustments=list(_adjustments(view.profiles, {each.pass_number: each for each in view.assessments})),
    )


def _refined_fragments(refinements: list[RefinementView]) -> list[RefinedFragment]:
    replaces = {new: old for each in refinements for old, new in each.replaced.items()}
    found: dict[str, RefinedFragment] = {}
    for each in refinements:
        name = fragment_of(each.target, replaces)
        fragment = found.setdefault(name, RefinedFragment(fragment=name, attempts=0, accepted=0, passes=[], reasons=[]))
        fragment.attempts += 1
        fragment.accepted += each.accepted
        if each.pass_number not in fragment.passes:
            fragment.passes.append(each.pass_number)
        if each.reason not in fragment.reasons:
            fragment.reasons.append(each.reason)
    often = [fragment for fragment in found.values() if fragment.attempts > 1]
    return sorted(often, key=lambda fragment: -fragment.attempts)


def _blockers(assessments: list[AssessmentView]) -> list[ConvergenceBlocker]:
    passes: dict[str, list[int]] = {}
    for each in assessments:
        for code in [] if each.converged else dict.fromkeys(each.reason_codes):
            if code not in _ENDINGS:
                passes.setdefault(code, []).append(each.pass_number)
    found = [ConvergenceBlocker(reason_code=code, passes=numbers) for code, numbers in passes.items()]
    return sorted(found, key=lambda blocker: -len(blocker.passes))


def _adjustments(profiles: list[ProfileView], assessed: dict[int, AssessmentView]) -> Iterator[DepthAdjustment]:
    for old, new in pairwise(profiles):
        before, after = assessed.get(new.pass_number - 1), assessed.get(new.pass_number)
        achieved = _achieved(before, after) if before is not None and after is not None else {}
        yield DepthAdjustment(
            pass_number=new.pass_number,
            profile_version=new.version,
            reasoning_mode_before=old.reasoning_mode,
            reasoning_mode=new.reasoning_mode,
            allocated_ttl_before=old.allocated_ttl,
            allocated_ttl=new.allocated_ttl,
            adjustment_reason=new.reason,
            **achieved,
        )


def _achieved(before: AssessmentView, after: AssessmentView) -> dict[str, Any]:
    return {
        "completeness_change": _change(before.completeness_score, after.completeness_score),
        "coherence_change": _change(before.coherence_score, after.coherence_score),
        "converged": after.converged,
    }


def _change(before: float | None, after: float | None) -> float | None:
    return round(after - before, 3) if before is not None and after is not None else None
