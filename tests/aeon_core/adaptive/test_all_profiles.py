"""Over every TaskProfile there is: TTL and mode follow the dimensions, never past the limit (adaptive FR-026…030)."""

from __future__ import annotations

import itertools

import pytest

from aeon_core.adaptive_depth import AdaptiveDepth, AdaptiveDepthConfiguration
from aeon_core.task_profile import DIMENSIONS, TaskProfile, coherent, tier
from tests.aeon_core.adaptive.test_profile import profile

MODES = ["shallow", "balanced", "deep"]
ALL = [profile(**dict(zip(DIMENSIONS, values, strict=True))) for values in itertools.product(*DIMENSIONS.values())]
STEPS = (None, 0, 1, 5, 40)


def configured(
    one: TaskProfile, steps: int | None = 5, limit: int = 1000, spent: int = 0
) -> AdaptiveDepthConfiguration:
    return AdaptiveDepth(limit).configure(one, steps=steps, pass_number=1 if spent == 0 else 2, spent=spent)


def raised(one: TaskProfile, dimension: str, by: int) -> TaskProfile | None:
    """The profile with one dimension moved, None at the end of its tiers."""
    tiers, place = DIMENSIONS[dimension], tier(one, dimension) + by
    return one.model_copy(update={dimension: tiers[place]}) if 0 <= place < len(tiers) else None


def test_every_profile_of_the_schema_is_covered() -> None:
    assert len(ALL) == 3 * 3 * 4 * 3 * 3


@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("dimension", list(DIMENSIONS))
def test_the_allocation_is_monotone_in_each_dimension(dimension: str, steps: int | None) -> None:
    by = -1 if dimension == "information_sufficiency" else 1
    compared = 0
    for one in ALL:
        other = raised(one, dimension, by)
        if other is None:
            continue
        before, after = configured(one, steps), configured(other, steps)
        assert after.allocated_ttl >= before.allocated_ttl
        assert MODES.index(after.reasoning_mode) >= MODES.index(before.reasoning_mode)
        assert after.detected_complexity > before.detected_complexity
        compared += 1
    assert compared == len(ALL) - len(ALL) // len(DIMENSIONS[dimension])


@pytest.mark.parametrize("dimension", ["reasoning_depth", "information_sufficiency"])
def test_depth_and_what_is_missing_weigh_more_than_the_others(dimension: str) -> None:
    simple = profile(information_sufficiency="high")
    by = -1 if dimension == "information_sufficiency" else 1
    weighty = raised(simple, dimension, by)
    assert weighty is not None
    for other in set(DIMENSIONS) - {"reasoning_depth", "information_sufficiency"}:
        light = raised(simple, other, 1)
        assert light is not None
        assert configured(weighty, 20).allocated_ttl > configured(light, 20).allocated_ttl


def test_the_simplest_profile_gets_least_and_the_hardest_most() -> None:
    made = [configured(one).allocated_ttl for one in ALL]
    simplest, hardest = profile(information_sufficiency="high"), ALL[-1].model_copy(update=HARDEST)
    assert configured(simplest).allocated_ttl == min(made) == 11
    assert configured(hardest).allocated_ttl == max(made) == 33


HARDEST = {name: tiers[0 if name == "information_sufficiency" else -1] for name, tiers in DIMENSIONS.items()}


@pytest.mark.parametrize("limit", [0, 1, 7, 11, 15, 32, 33])
def test_a_limit_caps_every_profile_and_is_named_only_then(limit: int) -> None:
    for one in ALL:
        wanted, made = configured(one).allocated_ttl, configured(one, limit=limit)
        capped = wanted > limit
        assert made.allocated_ttl == min(wanted, limit)
        assert (f"{wanted} cycles wanted, capped at the limit of {limit}" in made.adjustment_reason) is capped
        assert ("ttl_cap" in made.heuristics_used) is capped
        assert made.reasoning_mode == configured(one).reasoning_mode


@pytest.mark.parametrize("spent", [0, 3, 20])
def test_one_pass_of_the_plan_is_covered_whatever_the_profile(spent: int) -> None:
    for one in ALL:
        for steps in (0, 1, 9):
            assert configured(one, steps, spent=spent).allocated_ttl >= spent + steps + (4 if spent else 6)


def test_every_reason_names_every_dimension_the_mode_and_the_version() -> None:
    for one in ALL:
        said = configured(one).adjustment_reason
        assert all(f"{name} {getattr(one, name)}" in said for name in DIMENSIONS)
        assert f"TaskProfile version {one.profile_version}" in said
        assert f"reasoning_mode {configured(one).reasoning_mode}" in said


def test_simple_clear_tasks_are_shallow_and_hard_or_unclear_ones_deep() -> None:
    for one in ALL:
        mode = configured(one).reasoning_mode
        if mode == "shallow":
            assert (one.reasoning_depth, one.information_sufficiency) == ("low", "high")
        if one.reasoning_depth == "high" or one.information_sufficiency == "low":
            assert mode == "deep"


def test_making_a_profile_coherent_never_takes_cycles_away() -> None:
    for one in ALL:
        assert configured(coherent(one)).allocated_ttl >= configured(one).allocated_ttl
