"""Judging by rules: results that say nothing of their own, or say that nothing could be done; unmet criteria."""

from __future__ import annotations

import re
from typing import Any

from aeon_core.llm.simulated.outcomes import clip, text_of
from aeon_core.llm.simulated.parsing import MAX_CLAUSE
from aeon_core.llm.simulated.prompt import Prompt
from aeon_core.llm.simulated.substance import hollow, last_result, undone, valid_results
from aeon_core.llm.simulated.texts import QUOTED
from aeon_core.llm.simulated.tools import words_of
from aeon_core.llm.simulated.vocabulary import listed
from aeon_core.plain import parse_json
from aeon_core.plan.wording import OPEN_VERBS

_CONJUNCTION = re.compile(r",? (?:and then|and|then) |[;,] ", re.IGNORECASE)
_MEASURED = re.compile(r"\d+")
_QUOTED = re.compile(r"[\"“'‘]([^\"”'’]+)[\"”'’]")
_ASKED_WORDS = listed(
    "the a an answer result must should shall be is are has have contain contains mention mentions name names include"
    " includes say says give gives it of in to for and or with at least most every each all any how what which that"
)

Issue = dict[str, Any]


def judgement(prompt: Prompt) -> dict[str, Any]:
    """Return the report: on the criteria where there are some, else on what came of the plan."""
    issues = _unmet(prompt) if prompt.criteria else _wanting(prompt)
    numbered = [{"issue_id": f"j{number}", **issue} for number, issue in enumerate(issues, 1)]
    return {"issues": numbered}


def _wanting(prompt: Prompt) -> list[Issue]:
    issues = []
    for outcome in valid_results(prompt):
        if not outcome.failed and undone(outcome):
            told = f"step {outcome.step_id!r} did not do what it says: {clip(text_of(outcome), 120)}"
            repair = "Give the step a tool that can do it, or supply what it needs."
            issues.append(_issue("do_say_mismatch", "results", told, repair, outcome.step_id))
    last = last_result(prompt)
    if issues or last is None or last.failed:
        return issues
    if hollow(prompt, last):
        told = f"step {last.step_id!r} gives no result of its own: it repeats what is asked for"
        repair = "Split the step into one for each part of the thing, and put their results together."
        issues.append(_issue("specificity", "results", told, repair, last.step_id))
        return issues
    for part in parts_left_out(prompt):
        told = f"the plan leaves out a part of the goal: {part!r}"
        issues.append(_issue("consistency", "plan", told, f"Add a step after {last.step_id!r}: {part}.", last.step_id))
    return issues


def parts_left_out(prompt: Prompt) -> list[str]:
    """Return the parts of the goal that begin with a verb which no step begins with, in the goal's words."""
    goal = _unwrapped(prompt.text("goal")) or prompt.text("task")
    said = {_verb(str(step.get("description"))) for step in prompt.steps}
    parts = [part.strip(" .?!") for part in _CONJUNCTION.split(QUOTED.sub(_masked, goal[:MAX_CLAUSE]))[1:]]
    return [part for part in parts if _verb(part) in OPEN_VERBS - said and len(part.split()) > 1]


def _unwrapped(text: str) -> str:
    """Return a text that may be written as a JSON string."""
    try:
        value = parse_json(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def _masked(match: re.Match[str]) -> str:
    return match[0].replace(" ", "\N{NO-BREAK SPACE}")


def _verb(part: str) -> str:
    return part.split(None, 1)[0].lower() if part else ""


def _unmet(prompt: Prompt) -> list[Issue]:
    """Return an issue for each criterion whose words, figures or quotations the answer and the results do not show."""
    answer = prompt.text("answer")
    said = words_of(answer)
    issues = []
    for criterion in prompt.criteria:
        name, description = str(criterion.get("name", "")), str(criterion.get("description", ""))
        wanted = [*_QUOTED.findall(description), *_MEASURED.findall(description)]
        lacking = [text for text in wanted if text.casefold() not in answer.casefold()]
        lacking = lacking or sorted(words_of(_QUOTED.sub(" ", description)) - _ASKED_WORDS - said)
        if lacking:
            told = f"{name}: the answer does not show {', '.join(lacking[:5])!r}"
            issues.append(_issue("consistency", name, told, f"Answer with {', '.join(lacking[:5])}.", None))
    return issues


def _issue(kind: str, artifact: str, told: str, repair: str, step_id: str | None) -> Issue:
    return {
        "type": kind,
        "severity": "high",
        "description": told,
        "location": {"artifact": artifact, "step_id": step_id},
        "proposed_repair": repair,
    }
