"""TaskProfile: the demands of a task in five dimensions, coherent and versioned (adaptive FR-026 to FR-030).

A model infers it, with the requirements, from the task: the request, and its reply (adaptive FR-027, FR-034).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field

from aeon_core.entities import Entity
from aeon_core.errors import invalid
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import NonBlank
from aeon_core.plan.parsing import object_in, shown
from aeon_core.plan.refinement.actions import MAX_QUESTIONS
from aeon_core.plan.requests import read_questions
from aeon_core.prompts import build_request, tools_section, ttl_section
from aeon_core.tools.base import object_schema

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


_INVALID = "not a valid TaskProfile: "
MAX_REQUIREMENTS = 8
_MAX_REQUIREMENT = 300
"""The most characters of one requirement."""

_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
PROFILE_SCHEMA: dict[str, Any] = object_schema(
    {
        "profile_version": {"type": "integer"},
        "requirements": {**_TEXTS, "description": "one to eight sentences that a finished answer must satisfy"},
        **{dimension: {"type": "string", "enum": list(tiers)} for dimension, tiers in DIMENSIONS.items()},
        "raw_inference": {"type": "string", "description": "how each dimension was determined"},
        "follow_up_questions": {**_TEXTS, "description": "what only the person can say, and is needed; else empty"},
    },
    ["profile_version", "requirements", *DIMENSIONS, "raw_inference", "follow_up_questions"],
)
"""The schema of the requested profile: every key is required, so that strict modes accept it."""


@dataclass(frozen=True)
class ProfileReply:
    """A model's assessment of a task before it is planned."""

    profile: TaskProfile
    requirements: list[str] = field(default_factory=list)
    """What a finished answer must satisfy, in the task's own language; the task itself if there are none."""
    follow_up_questions: list[str] = field(default_factory=list)


def profile_request(
    task: str,
    tools: Iterable[dict[str, Any]],
    *,
    memory: str = "",
    ttl_remaining: int,
    ttl_limit: int,
    max_tokens: int,
    prompts_dir: Path | None = None,
) -> LLMRequest:
    """Return the request for the profile of a task: the task unaltered, the tools, the TTL (adaptive FR-NEW-010).

    `memory` is the section with the content of the memory.
    """
    sections = {
        "task": task,
        "memory": memory,
        "tools": tools_section(tools),
        "ttl": ttl_section(ttl_remaining, ttl_limit),
    }
    most = {"requirements": MAX_REQUIREMENTS, "follow_up_questions": MAX_QUESTIONS}
    return build_request(
        "profile", sections, schema=PROFILE_SCHEMA, most=most, max_tokens=max_tokens, folder=prompts_dir
    )


def read_profile_reply(reply: Any) -> ProfileReply:
    """Return the profile, requirements and questions of a reply: its text, or its value.

    Raises ValidationError, with `problems`, if the profile is incomplete.
    """
    profile = read_profile(reply)
    value = object_in(reply, "an object")
    return ProfileReply(profile, read_requirements(value), read_questions(value.get("follow_up_questions")))


def read_requirements(value: dict[str, Any]) -> list[str]:
    """Return the requirements of a reply, each once and on one line; none if it has none.

    A small model that forgets to close the list continues with the names of the next fields, which are no requirements.
    """
    given = value.get("requirements")
    listed = given if isinstance(given, list) else [given]
    texts = [item.get("text") if isinstance(item, dict) else item for item in listed]
    lines = (" ".join(text.split())[:_MAX_REQUIREMENT] for text in texts if isinstance(text, str))
    said = dict.fromkeys(line for line in lines if line and line not in PROFILE_SCHEMA["properties"])
    return list(said)[:MAX_REQUIREMENTS]


def read_profile(reply: Any) -> TaskProfile:
    """Return the coherent profile of a reply, version 1: its text, or its value.

    Case and blanks around a tier are ignored, as are unknown keys. Raises ValidationError, with `problems`,
    if a dimension or raw_inference is missing or not a tier.
    """
    try:
        value = object_in(reply, "an object with the seven fields of a TaskProfile")
    except ValueError as error:
        raise invalid([str(error)], _INVALID) from None
    made = {name: _tier(value.get(name)) for name in DIMENSIONS}
    problems = [
        f"{name}: expected one of {', '.join(tiers)}, got {shown(value.get(name))}"
        for name, tiers in DIMENSIONS.items()
        if made[name] not in tiers
    ]
    inference = value.get("raw_inference")
    if not isinstance(inference, str) or not inference.strip():
        problems.append(f"raw_inference: expected how each dimension was determined, got {shown(inference)}")
    if problems:
        raise invalid(problems, _INVALID)
    return coherent(TaskProfile.model_validate({"profile_version": 1, **made, "raw_inference": inference}))


def default_profile(*, tools: int = 0) -> TaskProfile:
    """Return the profile of a task without a usable assessment: the middle of each dimension.

    `tools` is the number of registered tools.
    """
    middle = {name: tiers[len(tiers) // 2] for name, tiers in DIMENSIONS.items()}
    middle["expected_tool_usage"] = "moderate" if tools else "none"
    inference = "The model's reply was not usable: each dimension has its middle value."
    return TaskProfile.model_validate({"profile_version": 1, **middle, "raw_inference": inference})


def _tier(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value
