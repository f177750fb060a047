"""TaskProfile: the demands of a task in five dimensions, coherent and versioned (adaptive FR-026 to FR-030)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field

from aeon_core.entities import Entity
from aeon_core.plan.models import NonBlank

ReasoningMode = Literal["shallow", "balanced", "deep"]


@dataclass(frozen=True, slots=True)
class ReasoningStrategy:
    """How the requests of a pass are made."""

    instruction: str
    """The text of a prompt's `reasoning` section; may be empty."""
    effort: Literal["low", "high"] | None
    """Reasoning effort, or the corresponding thinking, for providers that support it; None requests nothing."""
    output_characters: int
    """The most characters of one step's output in a prompt."""
    max_tokens_factor: float
    """The factor of the configured max_tokens, so that thinking does not use up the reply."""


STRATEGIES: dict[ReasoningMode, ReasoningStrategy] = {
    "shallow": ReasoningStrategy(
        instruction="Answer directly: what is asked is simple, and all that is needed is there.",
        effort="low",
        output_characters=2000,
        max_tokens_factor=1.0,
    ),
    "balanced": ReasoningStrategy(
        instruction="",
        effort=None,
        output_characters=4000,
        max_tokens_factor=1.0,
    ),
    "deep": ReasoningStrategy(
        instruction=(
            "Think it through before you answer: find what is not said and decide what to assume instead, weigh the "
            "alternatives, and check the result against the goal and the earlier results. The form of the reply stays "
            "as it is asked for."
        ),
        effort="high",
        output_characters=12_000,
        max_tokens_factor=2.0,
    ),
}


Tier = Literal["low", "medium", "high"]
ToolUsage = Literal["none", "minimal", "moderate", "extensive"]
Breadth = Literal["narrow", "moderate", "broad"]

DIMENSIONS: dict[str, tuple[str, ...]] = {
    "reasoning_depth": get_args(Tier),
    "information_sufficiency": get_args(Tier),
    "expected_tool_usage": get_args(ToolUsage),
    "output_breadth": get_args(Breadth),
    "confidence_requirement": get_args(Tier),
}
"""The tiers of each dimension, lowest first."""

_NEEDS_THOUGHT = {
    "information_sufficiency": ("low", "low information_sufficiency: what is missing has to be found out"),
    "expected_tool_usage": ("extensive", "extensive expected_tool_usage: many calls have to be planned"),
    "output_breadth": ("broad", "broad output_breadth: many parts have to fit together"),
}


class TaskProfile(Entity):
    """A task in five dimensions (adaptive: TaskProfile Schema). `profile_version` counts from 1 within a run."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    profile_version: Annotated[int, Field(ge=1)]
    reasoning_depth: Tier
    information_sufficiency: Tier
    """How much of the needed information the task has; vague words and missing details lower it (adaptive FR-028)."""
    expected_tool_usage: ToolUsage
    output_breadth: Breadth
    confidence_requirement: Tier
    raw_inference: NonBlank
    """How each dimension was determined (adaptive FR-NEW-005)."""


def tier(profile: TaskProfile, dimension: str) -> int:
    """Return the place of a dimension's value among its tiers, 0 for the lowest."""
    return DIMENSIONS[dimension].index(getattr(profile, dimension))


def contradictions(profile: TaskProfile) -> list[str]:
    """Return the contradictions in a profile, one sentence each; none if it is coherent (FR-NEW-006)."""
    if profile.reasoning_depth != "low":
        return []
    return [
        f"low reasoning_depth does not go with {why}"
        for dimension, (value, why) in _NEEDS_THOUGHT.items()
        if getattr(profile, dimension) == value
    ]


def coherent(profile: TaskProfile) -> TaskProfile:
    """Return the profile, if needed with the reasoning_depth that its other dimensions need, noted in raw_inference."""
    found = contradictions(profile)
    if not found:
        return profile
    inference = f"{profile.raw_inference} reasoning_depth was raised to medium: {'; '.join(found)}."
    return profile.model_copy(update={"reasoning_depth": "medium", "raw_inference": inference})


def with_tools(profile: TaskProfile, tools: Collection[Any]) -> TaskProfile:
    """Return the profile, without any expected_tool_usage if there are no tools, noted in raw_inference."""
    if tools or profile.expected_tool_usage == "none":
        return profile
    inference = f"{profile.raw_inference} expected_tool_usage was set to none: no tool is registered."
    return profile.model_copy(update={"expected_tool_usage": "none", "raw_inference": inference})


def drift(before: TaskProfile, after: TaskProfile) -> TaskProfile:
    """Return `after` with no dimension more than one tier from `before`, and coherent (FR-NEW-006, FR-NEW-007).

    raw_inference names the dimensions that were held back.
    """
    held: dict[str, Any] = {}
    for dimension, tiers in DIMENSIONS.items():
        was, now = tier(before, dimension), tier(after, dimension)
        if abs(now - was) > 1:
            held[dimension] = tiers[was + (1 if now > was else -1)]
    if held:
        held["raw_inference"] = f"{after.raw_inference} Held to one tier of change: {', '.join(held)}."
    return coherent(after.model_copy(update=held) if held else after)


def moved(profile: TaskProfile, steps: dict[str, int]) -> dict[str, str]:
    """Return the values of dimensions after moving by this many tiers; those at their limit are left out."""
    values = {}
    for dimension, by in steps.items():
        tiers, place = DIMENSIONS[dimension], tier(profile, dimension)
        target = min(max(place + by, 0), len(tiers) - 1)
        if target != place:
            values[dimension] = tiers[target]
    return values
