"""TaskProfile: tiers, coherence, at most one tier of drift (adaptive FR-NEW-004 to FR-NEW-007)."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.adaptive.profile import DIMENSIONS, TaskProfile, coherent, contradictions, drift, moved, tier

LEAST = {name: tiers[0] for name, tiers in DIMENSIONS.items()}
profiles = st.fixed_dictionaries({name: st.sampled_from(tiers) for name, tiers in DIMENSIONS.items()}).map(
    lambda values: profile(**values)
)


def profile(**values: Any) -> TaskProfile:
    return TaskProfile(**{"profile_version": 1, "raw_inference": "said", **LEAST, **values})


def test_a_profile_has_the_seven_fields_of_the_schema() -> None:
    assert list(TaskProfile.model_fields) == ["profile_version", *DIMENSIONS, "raw_inference"]
    assert DIMENSIONS["expected_tool_usage"] == ("none", "minimal", "moderate", "extensive")
    assert DIMENSIONS["output_breadth"] == ("narrow", "moderate", "broad")


@pytest.mark.parametrize(
    "values",
    [{"reasoning_depth": "huge"}, {"profile_version": 0}, {"raw_inference": " "}, {"more": 1}],
    ids=["tier", "version", "blank", "extra"],
)
def test_a_profile_takes_nothing_else(values: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        profile(**values)


@pytest.mark.parametrize(
    ("dimension", "value"),
    [("information_sufficiency", "low"), ("expected_tool_usage", "extensive"), ("output_breadth", "broad")],
)
def test_what_needs_thought_does_not_go_with_low_depth(dimension: str, value: str) -> None:
    sufficient = {"information_sufficiency": "high", dimension: value}
    (sentence,) = contradictions(profile(**sufficient))

    assert dimension in sentence
    made = coherent(profile(**sufficient))
    assert made.reasoning_depth == "medium"
    assert made.raw_inference == f"said reasoning_depth was raised to medium: {sentence}."
    assert contradictions(profile(**sufficient, reasoning_depth="medium")) == []


@given(profiles)
def test_every_profile_can_be_made_coherent(any_profile: TaskProfile) -> None:
    made = coherent(any_profile)

    assert contradictions(made) == []
    assert coherent(made) == made


@given(profiles.map(coherent), profiles.map(coherent))
def test_drift_is_at_most_one_tier_and_stays_coherent(before: TaskProfile, after: TaskProfile) -> None:
    made = drift(before, after)

    assert all(abs(tier(made, name) - tier(before, name)) <= 1 for name in DIMENSIONS)
    assert contradictions(made) == []
    if all(abs(tier(after, name) - tier(before, name)) <= 1 for name in DIMENSIONS):
        assert made == after


def test_what_was_held_back_is_reported() -> None:
    made = drift(profile(), profile(reasoning_depth="high", expected_tool_usage="moderate"))

    assert (made.reasoning_depth, made.expected_tool_usage) == ("medium", "minimal")
    assert made.raw_inference.endswith("Held to one tier of change: reasoning_depth, expected_tool_usage.")


def test_a_dimension_at_its_end_does_not_move() -> None:
    assert moved(profile(), {"reasoning_depth": -1, "output_breadth": 1}) == {"output_breadth": "moderate"}
