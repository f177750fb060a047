"""TTL and reasoning_mode from the profile: monotone, capped aloud, revised on evidence (adaptive FR-026 to FR-033)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.adaptive_depth import AdaptiveDepth, DepthEvidence
from aeon_core.prompts import STRATEGIES
from aeon_core.task_profile import DIMENSIONS, TaskProfile, coherent, contradictions, tier
from tests.aeon_core.adaptive.test_profile import profile, profiles

MODES = ["shallow", "balanced", "deep"]
SIMPLE = profile(information_sufficiency="high")
HARD = profile(
    reasoning_depth="high",
    information_sufficiency="low",
    expected_tool_usage="extensive",
    output_breadth="broad",
    confidence_requirement="high",
)
MIDDLE = profile(reasoning_depth="medium", information_sufficiency="medium")
DEPTH = AdaptiveDepth(50)
CLEAN = DepthEvidence(converged=False, completeness_score=0.95, coherence_score=1.0, reason_codes=("incomplete",))
counts = st.integers(0, 3)
evidences = st.builds(
    DepthEvidence,
    high_issues=counts,
    medium_issues=counts,
    specificity_issues=counts,
    converged=st.none() | st.booleans(),
    completeness_score=st.none() | st.floats(0, 1),
    coherence_score=st.none() | st.floats(0, 1),
    reason_codes=st.lists(st.sampled_from(["incomplete", "incoherent", "missing_step"])).map(tuple),
    failed_steps=counts,
    refinements=counts,
    manual_interventions=counts,
    follow_up_questions=counts,
)


def test_a_simple_task_gets_one_pass_and_shallow_reasoning() -> None:
    made = DEPTH.configure(SIMPLE, steps=2)

    assert (made.allocated_ttl, made.reasoning_mode, made.detected_complexity) == (8, "shallow", 0)
    assert (made.ambiguity_score, made.uncertainty_score) == (0, 0)
    assert made.heuristics_used == ["reasoning_depth", "information_sufficiency"]


def test_a_demanding_task_gets_more_cycles_and_deep_reasoning() -> None:
    made = DEPTH.configure(HARD, steps=2)

    assert (made.allocated_ttl, made.reasoning_mode, made.detected_complexity) == (24, "deep", 1)
    assert (made.ambiguity_score, made.uncertainty_score) == (1, 1)
    assert made.heuristics_used == list(DIMENSIONS)
    assert made.adjustment_reason == (
        "inferred from the task. TaskProfile version 1: reasoning_depth high, information_sufficiency low, "
        "expected_tool_usage extensive, output_breadth broad, confidence_requirement high; reasoning_mode deep, "
        "24 of at most 50 cycles."
    )


def test_a_cap_is_reported() -> None:
    made = AdaptiveDepth(20).configure(HARD, steps=2)
    short = AdaptiveDepth(5).configure(SIMPLE, steps=2)

    assert made.allocated_ttl == 20
    assert made.adjustment_reason.endswith("24 cycles wanted, capped at the limit of 20.")
    assert "ttl_cap" in made.heuristics_used
    assert short.adjustment_reason.endswith("capped at the limit of 5, which does not cover one pass (8).")


@pytest.mark.parametrize(
    ("values", "mode"),
    [
        ({"reasoning_depth": "high", "information_sufficiency": "high"}, "deep"),
        ({"reasoning_depth": "medium", "information_sufficiency": "low"}, "deep"),
        ({"reasoning_depth": "medium", "information_sufficiency": "high"}, "balanced"),
        ({"information_sufficiency": "medium"}, "balanced"),
        ({"information_sufficiency": "high", "confidence_requirement": "high"}, "balanced"),
        ({"information_sufficiency": "high", "output_breadth": "moderate"}, "shallow"),
    ],
)
def test_the_mode_follows_the_dimensions(values: dict[str, Any], mode: str) -> None:
    assert DEPTH.configure(profile(**values), steps=1).reasoning_mode == mode


@pytest.mark.parametrize(
    ("dimension", "cycles"),
    [
        ("reasoning_depth", 31),
        ("information_sufficiency", 36),
        ("expected_tool_usage", 32),
        ("output_breadth", 36),
        ("confidence_requirement", 42),
    ],
)
def test_each_dimension_counts_before_there_is_a_plan(dimension: str, cycles: int) -> None:
    easier = HARD.model_copy(update={dimension: getattr(SIMPLE, dimension)})
    assert DEPTH.configure(HARD, steps=None).allocated_ttl == 45
    assert DEPTH.configure(easier, steps=None).allocated_ttl == cycles


def test_settings_grow_with_the_mode() -> None:
    strategies = [*STRATEGIES.values()]

    assert [each.effort for each in strategies] == ["low", None, "high"]
    assert [each.output_characters for each in strategies] == sorted({each.output_characters for each in strategies})
    assert [each.max_tokens_factor for each in strategies] == [1.0, 1.0, 2.0]
    assert len({each.instruction for each in strategies}) == 3


def more(one: TaskProfile, other: TaskProfile) -> bool:
    """Return whether `other` asks for as much as `one` in every dimension, or for more."""
    signs = {name: -1 if name == "information_sufficiency" else 1 for name in DIMENSIONS}
    return all(sign * tier(other, name) >= sign * tier(one, name) for name, sign in signs.items())


@given(profiles, profiles, st.none() | st.integers(0, 60), st.integers(1, 100), st.integers(1, 4), st.integers(0, 100))
def test_ttl_is_within_the_limit_and_monotone_like_the_mode(
    one: TaskProfile, other: TaskProfile, steps: int | None, limit: int, number: int, spent: int
) -> None:
    depth, spent = AdaptiveDepth(limit), min(spent, limit)
    first = depth.configure(one, steps=steps, pass_number=number, spent=spent)
    second = depth.configure(other, steps=steps, pass_number=number, spent=spent)

    assert 1 <= first.allocated_ttl <= limit
    assert first.allocated_ttl >= spent
    assert first == depth.configure(one, steps=steps, pass_number=number, spent=spent)
    if steps is not None:
        assert first.allocated_ttl >= min(limit, spent + steps + 4)
    if more(one, other):
        assert second.allocated_ttl >= first.allocated_ttl
        assert MODES.index(second.reasoning_mode) >= MODES.index(first.reasoning_mode)


@pytest.mark.parametrize(
    ("found", "cause", "source"),
    [
        ({"high_issues": 1}, "validation found 1 high and 0 medium issues", "semantic_validation"),
        ({"medium_issues": 2}, "validation found 0 high and 2 medium issues", "semantic_validation"),
        ({"converged": False}, "convergence was not reached (no reason code)", "convergence"),
        ({"failed_steps": 1}, "1 step failed", "execution"),
        ({"refinements": 2}, "the planner needed 2 refinements and left 0 to a person", "recursive_planner"),
    ],
)
def test_findings_raise_the_depth_and_are_named_in_the_reason(found: dict[str, Any], cause: str, source: str) -> None:
    revision = DEPTH.revise(MIDDLE, DepthEvidence(**found), steps=3, pass_number=2, spent=9)

    assert revision is not None
    assert revision.profile.profile_version == 2
    assert revision.profile.reasoning_depth == "high"
    assert revision.configuration.adjustment_reason.startswith(f"{cause}: reasoning_depth medium → high.")
    assert source in revision.configuration.heuristics_used
    assert revision.configuration.reasoning_mode == "deep"
    before = DEPTH.configure(MIDDLE, steps=3, pass_number=2, spent=9)
    assert revision.configuration.allocated_ttl > before.allocated_ttl


def test_missing_details_and_contradictions_adjust_the_profile() -> None:
    vague = DEPTH.revise(MIDDLE, DepthEvidence(high_issues=1, specificity_issues=1), steps=3, pass_number=2)
    wrong = DEPTH.revise(MIDDLE, DepthEvidence(converged=False, reason_codes=("incoherent",)), steps=3, pass_number=2)

    assert vague is not None
    assert vague.profile.information_sufficiency == "low"
    assert "details are missing (1 vague step, 0 questions)" in vague.configuration.adjustment_reason
    assert wrong is not None
    assert wrong.profile.confidence_requirement == "medium"


def test_a_task_that_proves_simpler_gets_less() -> None:
    revision = DEPTH.revise(HARD, CLEAN, steps=1, pass_number=2, spent=12)

    assert revision is not None
    assert (revision.profile.reasoning_depth, revision.profile.information_sufficiency) == ("medium", "medium")
    assert "simpler than estimated" in revision.configuration.adjustment_reason
    before = DEPTH.configure(HARD, steps=1, pass_number=2, spent=12)
    assert revision.configuration.allocated_ttl < before.allocated_ttl
    assert revision.configuration.reasoning_mode == "balanced"


def test_a_dimension_required_by_others_does_not_fall() -> None:
    broad = profile(reasoning_depth="medium", information_sufficiency="medium", output_breadth="broad")
    revision = DEPTH.revise(broad, CLEAN, steps=1, pass_number=2)

    assert revision is not None
    assert (revision.profile.reasoning_depth, revision.profile.information_sufficiency) == ("medium", "high")
    assert "reasoning_depth medium →" not in revision.configuration.adjustment_reason
    assert DEPTH.revise(revision.profile, CLEAN, steps=1, pass_number=3) is None


@pytest.mark.parametrize(
    ("given_profile", "evidence"),
    [(SIMPLE, CLEAN), (MIDDLE, DepthEvidence()), (MIDDLE, DepthEvidence(converged=True, medium_issues=1))],
    ids=["at-the-end", "nothing-found", "neither"],
)
def test_a_profile_is_not_revised_without_a_cause(given_profile: TaskProfile, evidence: DepthEvidence) -> None:
    assert DEPTH.revise(given_profile, evidence, steps=1, pass_number=2) is None


@given(profiles.map(coherent), evidences, st.integers(0, 9), st.integers(1, 60))
def test_a_revision_moves_one_tier_at_most_and_stays_coherent(
    before: TaskProfile, evidence: DepthEvidence, steps: int, limit: int
) -> None:
    revision = AdaptiveDepth(limit).revise(before, evidence, steps=steps, pass_number=2)

    if revision is not None:
        after = revision.profile
        assert after.profile_version == before.profile_version + 1
        assert contradictions(after) == []
        assert all(abs(tier(after, name) - tier(before, name)) <= 1 for name in DIMENSIONS)
        assert any(tier(after, name) != tier(before, name) for name in DIMENSIONS)
        assert revision.configuration.allocated_ttl <= limit


@pytest.mark.parametrize("one", [MIDDLE, HARD], ids=["revised", "at-the-top"])
def test_a_harder_task_keeps_its_cycles_near_the_end_of_the_plan(one: TaskProfile) -> None:
    before = DEPTH.configure(one, steps=8)
    place: dict[str, Any] = {"steps": 1, "pass_number": 2, "spent": 6}

    harder = DEPTH.adjusted(one, before, DepthEvidence(failed_steps=1), **place)
    simpler = DEPTH.adjusted(one, before, CLEAN, **place)

    assert (harder.configuration if harder is not None else before).allocated_ttl >= before.allocated_ttl
    assert simpler is not None
    assert simpler.configuration.allocated_ttl < before.allocated_ttl


def test_kept_cycles_respect_a_lowered_limit() -> None:
    before = DEPTH.configure(HARD, steps=8)
    kept = AdaptiveDepth(20).adjusted(HARD, before, DepthEvidence(failed_steps=1), steps=1, pass_number=2, spent=6)

    assert kept is not None
    assert kept.configuration.allocated_ttl == 20
    assert "capped at the limit of 20" in kept.configuration.adjustment_reason


def test_a_later_pass_whose_plan_a_person_shortened_keeps_its_cycles() -> None:
    before = DEPTH.configure(MIDDLE, steps=8, pass_number=2, spent=6)

    assert DEPTH.adjusted(MIDDLE, before, None, steps=1, pass_number=2, spent=6) is None
