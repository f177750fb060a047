"""Saying what a task asks for: the five dimensions of a profile from the words of the task and the listed tools."""

from __future__ import annotations

from typing import Any

from aeon_core.llm.simulated.calculator import listed
from aeon_core.llm.simulated.planner import make_plan
from aeon_core.llm.simulated.prompt import Prompt
from aeon_core.llm.simulated.reasoner import is_exact
from aeon_core.llm.simulated.texts import clauses
from aeon_core.llm.simulated.wording import Wording, is_vague, wording

_HARD = listed(
    "analyse analyze architect compare debug derive design evaluate investigate migrate optimise optimize prove"
    " redesign refactor research restructure"
)
_CAREFUL = listed(
    "backup contract dosage financial invoice invoices legal medical migrate patient patients payment payments payroll"
    " production safety salary security tax taxes"
)
_REQUIREMENTS = 8
_MUCH = 30
"""Words of content from which a task is long."""


def profile(prompt: Prompt) -> dict[str, Any]:
    """Return the profile of the task. More to do never lowers its reasoning_depth or output_breadth."""
    task = prompt.text("task")
    parts = clauses(task)
    words = wording(task)
    planned = make_plan(task, prompt.tools)["steps"]
    known = all(is_exact(part) for part in parts) and any(is_exact(step["description"]) for step in planned)
    calls = sum(step["tool"] is not None for step in planned)
    said = {
        "information_sufficiency": _information(words, known),
        "expected_tool_usage": _tool_usage(calls),
        "output_breadth": _breadth(words, len(parts)),
        "confidence_requirement": _confidence(words),
    }
    needs_thought = (said["information_sufficiency"][0], said["output_breadth"][0], said["expected_tool_usage"][0])
    said = {"reasoning_depth": _depth(words, len(parts), known, needs_thought), **said}
    values: dict[str, Any] = {name: value for name, (value, _) in said.items()}
    inference = "; ".join(f"{name} is {value}: {why}" for name, (value, why) in said.items())
    return {
        "profile_version": 1,
        "requirements": requirements(parts) or [task],
        **values,
        "raw_inference": f"{inference}.",
        "follow_up_questions": questions(words, task),
    }


def requirements(parts: list[str]) -> list[str]:
    """Return a requirement for each part of the task, at most eight."""
    said = dict.fromkeys(" ".join(part.split()).strip(" .") for part in parts)
    return [f"The answer shows the result of: {part}" for part in said if part][:_REQUIREMENTS]


def questions(words: Wording, task: str) -> list[str]:
    """Return what to ask about a task that names little more than a kind of thing; nothing for any other."""
    if not is_vague(words):
        return []
    vague = [*words.vague, *words.pronouns] or [*words.generic] or [task[:60]]
    return [f"What exactly is meant by {vague[0]!r} in “{task[:60]}”?"]


def _depth(words: Wording, parts: int, known: bool, needs_thought: tuple[str, str, str]) -> tuple[str, str]:
    hard = sorted(_HARD.intersection((words.verb, *words.actions)))
    if hard:
        return "high", f"{hard[0]!r} asks for more than one thought"
    if not known and words.open_ended:
        return "medium", f"{words.verb!r} leaves open what comes out"
    if not known and words.question and words.verb in ("why", "how"):
        return "medium", f"{words.verb!r} asks for an explanation"
    if parts > 2 or len(words.content) > _MUCH:
        return "medium", "several parts build on each other"
    if {"low", "broad", "extensive"}.intersection(needs_thought):
        return "medium", "what is missing or belongs together has to be worked out"
    return "low", "one known operation" if known else "one thing is asked for"


def _information(words: Wording, known: bool) -> tuple[str, str]:
    if known:
        return "high", "it says on what, and what to do"
    if is_vague(words):
        vague = [*words.vague, *words.pronouns]
        return "low", f"vague words: {', '.join(vague)}" if vague else "it names little more than a kind of thing"
    if words.vague or not (words.literals or words.names):
        return "medium", "few details are given"
    return "high", "it names what it is about"


def _tool_usage(calls: int) -> tuple[str, str]:
    if calls == 0:
        return "none", "no listed tool does any of it"
    told = f"{calls} tool call{'' if calls == 1 else 's'}"
    return ("minimal" if calls <= 2 else "moderate" if calls <= 6 else "extensive"), told


def _breadth(words: Wording, parts: int) -> tuple[str, str]:
    if parts > 4 or len(words.content) > _MUCH:
        return "broad", "many parts are asked for"
    if parts > 1 or words.listed or words.open_ended:
        return "moderate", "a few parts are asked for"
    return "narrow", "one thing is asked for"


def _confidence(words: Wording) -> tuple[str, str]:
    careful = sorted(_CAREFUL.intersection(words.content))
    if careful:
        return "high", f"{careful[0]!r}: an error does harm"
    if words.literals or words.question:
        return "medium", "the result can be checked"
    return "low", "nothing says that it must be certain"
