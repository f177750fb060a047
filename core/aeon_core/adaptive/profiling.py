"""Inferring a TaskProfile: the request to a model, its reply, the profile by rules (adaptive FR-027, FR-034)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pydantic

from aeon_core.adaptive.profile import DIMENSIONS, TaskProfile, coherent
from aeon_core.errors import ValidationError
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.fields import object_in, shown
from aeon_core.plan.questions import is_vague
from aeon_core.plan.wording import Wording, listed, wording
from aeon_core.prompts import build_request
from aeon_core.prompts.sections import tools_section, ttl_section

_HARD = listed("""
    analyse analyze architect debug derive design develop evaluate explore implement integrate investigate migrate
    modernise modernize optimise optimize plan prove refactor research restructure study
""")
"""Verbs of work that takes more than one thought."""
_CAREFUL = listed("""
    audit backup compliance contract critical delete deploy diagnosis dosage financial invoice legal medical migrate
    patient payment payments payroll production prove safety security tax transfer
""")
"""Words of work in which an error does harm."""
_LONG = 30
"""Words of content from which a task is long."""
_SEVERAL = 2

PROFILE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "profile_version": {"type": "integer"},
        **{dimension: {"type": "string", "enum": list(tiers)} for dimension, tiers in DIMENSIONS.items()},
        "raw_inference": {"type": "string", "description": "how each dimension was determined"},
    },
    "required": ["profile_version", *DIMENSIONS, "raw_inference"],
    "additionalProperties": False,
}
"""The TaskProfile as it is asked of a model: every key required, so that strict modes take it."""


def profile_request(
    task: str,
    tools: Iterable[dict[str, Any]],
    *,
    context: str = "",
    ttl_remaining: int,
    ttl_limit: int,
    max_tokens: int,
    prompts_dir: Path | None = None,
) -> LLMRequest:
    """Return the request for the profile of a task, unaltered, with its context (adaptive FR-NEW-010)."""
    sections = {
        "task": task,
        "tools": tools_section(tools),
        "context": context,
        "ttl": ttl_section(ttl_remaining, ttl_limit),
    }
    return build_request("profile", sections, schema=PROFILE_SCHEMA, max_tokens=max_tokens, folder=prompts_dir)


def read_profile(reply: Any, *, version: int = 1) -> TaskProfile:
    """Return the coherent profile of a reply: its text, or the value it holds. The version is the caller's.

    Case and blanks around a tier do not matter, unknown keys are left out. Raises ValidationError, with `problems`,
    where a dimension or raw_inference is missing or no tier.
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
    said = value.get("raw_inference")
    if not isinstance(said, str) or not said.strip():
        problems.append(f"raw_inference: expected how each dimension was determined, got {shown(said)}")
    if problems:
        raise _invalid(problems)
    try:
        return coherent(TaskProfile.model_validate({"profile_version": version, **made, "raw_inference": said}))
    except pydantic.ValidationError as error:
        raise _invalid([str(error.errors()[0]["msg"])]) from None


def _tier(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def default_profile(task: str, *, tools: int = 0, version: int = 1) -> TaskProfile:
    """Return the profile of a task by token patterns alone, for a reply that cannot be used (FR-034, FR-035).

    `tools` is how many tools are registered.
    """
    words = wording(task)
    found = {
        "reasoning_depth": _reasoning_depth(words),
        "information_sufficiency": _information_sufficiency(words),
        "expected_tool_usage": _expected_tool_usage(words, tools),
        "output_breadth": _output_breadth(words),
        "confidence_requirement": _confidence_requirement(words),
    }
    said = "; ".join(f"{dimension} is {value}: {why}" for dimension, (value, why) in found.items())
    values = {dimension: value for dimension, (value, _) in found.items()}
    inference = f"By token patterns, without a model. {said}."
    return coherent(TaskProfile.model_validate({"profile_version": version, **values, "raw_inference": inference}))


def _reasoning_depth(words: Wording) -> tuple[str, str]:
    hard = sorted(_HARD.intersection((words.verb, *words.actions)))
    if hard and not words.question and (len(words.content) > _SEVERAL or len(words.actions) > 1):
        return "high", f"{hard[0]!r} asks for more than one thought"
    if hard or len(words.actions) > _SEVERAL or len(words.content) > _LONG:
        return "medium", "several actions or much material"
    if words.open_ended and not words.literals:
        return "medium", f"{words.verb!r} leaves open what comes out"
    return "low", "one known operation"


def _information_sufficiency(words: Wording) -> tuple[str, str]:
    if is_vague(words):
        vague = [*words.vague, *words.pronouns]
        return (
            "low",
            f"vague words: {', '.join(vague)}" if vague else "details are missing: it names only a kind of thing",
        )
    if words.vague or (words.open_ended and words.detail < 2 * _SEVERAL):
        return "medium", f"vague words: {', '.join(words.vague)}" if words.vague else "few details"
    return "high", "it says what is needed"


def _expected_tool_usage(words: Wording, tools: int) -> tuple[str, str]:
    if tools == 0:
        return "none", "no tool is registered"
    count = len(words.actions) + words.literals // _SEVERAL
    if count > 2 * _SEVERAL:
        return "extensive", "many actions on many things"
    if count > _SEVERAL:
        return "moderate", "several actions"
    return "minimal", "an action or two"


def _output_breadth(words: Wording) -> tuple[str, str]:
    if len(words.content) > _LONG or len(words.actions) > 2 * _SEVERAL:
        return "broad", "many parts are asked for"
    if words.listed or words.open_ended or len(words.actions) > 1:
        return "moderate", "a few parts are asked for"
    return "narrow", "one thing is asked for"


def _confidence_requirement(words: Wording) -> tuple[str, str]:
    careful = sorted(_CAREFUL.intersection(words.content))
    if careful:
        return "high", f"{careful[0]!r}: an error does harm"
    if words.literals or words.question:
        return "medium", "the result can be checked"
    return "low", "nothing says that it must be certain" if not words.open_ended else "the outcome is open"


def _invalid(problems: list[str]) -> ValidationError:
    return ValidationError(f"not a valid TaskProfile: {problems[0]}", problems=problems)
