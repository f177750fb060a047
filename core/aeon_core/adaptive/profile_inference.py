"""Inferring a TaskProfile and the requirements: the request to a model, and its reply (adaptive FR-027, FR-034)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic

from aeon_core.adaptive.profile import DIMENSIONS, TaskProfile, coherent
from aeon_core.errors import ValidationError
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.parsing import object_in, shown
from aeon_core.plan.refinement.reply import read_questions
from aeon_core.prompts import build_request, tools_section, ttl_section
from aeon_core.tools.base import object_schema

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
    return build_request("profile", sections, schema=PROFILE_SCHEMA, max_tokens=max_tokens, folder=prompts_dir)


def read_profile_reply(reply: Any) -> ProfileReply:
    """Return the profile, requirements and questions of a reply: its text, or its value.

    Raises ValidationError, with `problems`, if the profile is incomplete.
    """
    profile = read_profile(reply)
    value = object_in(reply, "an object")
    return ProfileReply(profile, read_requirements(value), read_questions(value.get("follow_up_questions")))


def read_requirements(value: dict[str, Any]) -> list[str]:
    """Return the requirements of a reply, each once and on one line; none if it has none."""
    given = value.get("requirements")
    listed = given if isinstance(given, list) else [given]
    texts = [item.get("text") if isinstance(item, dict) else item for item in listed]
    lines = (" ".join(text.split())[:_MAX_REQUIREMENT] for text in texts if isinstance(text, str))
    return list(dict.fromkeys(line for line in lines if line))[:MAX_REQUIREMENTS]


def read_profile(reply: Any) -> TaskProfile:
    """Return the coherent profile of a reply, version 1: its text, or its value.

    Case and blanks around a tier are ignored, as are unknown keys. Raises ValidationError, with `problems`,
    if a dimension or raw_inference is missing or not a tier.
    """
    try:
        value = object_in(reply, "an object with the seven fields of a TaskProfile")
    except ValueError as error:
        raise _invalid([str(error)]) from None
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
        raise _invalid(problems)
    try:
        return coherent(TaskProfile.model_validate({"profile_version": 1, **made, "raw_inference": inference}))
    except pydantic.ValidationError as error:
        raise _invalid([str(error.errors()[0]["msg"])]) from None


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


def _invalid(problems: list[str]) -> ValidationError:
    return ValidationError(f"not a valid TaskProfile: {problems[0]}", problems=problems)
