"""The simulated judge: plain rules over what the simulated model wrote. It measures nothing about real judges."""

from __future__ import annotations

import re
from typing import Any

from aeon_core.json_safe import parse_json
from aeon_core.llm.simulated.calculator import MAX_CLAUSE, listed
from aeon_core.llm.simulated.prompt import Prompt, clip, text_of
from aeon_core.llm.simulated.reasoner import hollow, last_result, undone, valid_results
from aeon_core.llm.simulated.texts import QUOTED
from aeon_core.llm.simulated.tools import words_of
from aeon_core.llm.simulated.wording import OPEN_VERBS

_CONJUNCTION = re.compile(r",? (?:and then|and|then) |[;,] ", re.IGNORECASE)
_QUOTE = 80
"""Characters of the answer that are quoted as evidence."""
_MEASURED = re.compile(r"\d+")
_FIGURE = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r"[\"“'‘]([^\"”'’]+)[\"”'’]")
_ASKED_WORDS = listed(
    "the a an answer result must should shall be is are has have contain contains mention mentions name names include"
    " includes say says give gives it of in to for and or with at least most every each all any how what which that"
)

Issue = dict[str, Any]


def judgement(prompt: Prompt) -> dict[str, Any]:
    """Return the judgement of a result, by plain rules over what the simulated model writes; no real judge's work.

    A requirement is met unless a step gave nothing of its own or said that it could not be done, the plan leaves out
    that part of the goal, or words that a criterion quotes are not in the answer. A suspicion is confirmed where the
    answer lacks the last result; a last figure that it lacks is a fault without one.
    """
    answer = unwrapped(prompt.text("answer"))
    issues = _wanting(prompt)
    unmet = {n: lacking for n, text in enumerate(prompt.requirements, 1) if (lacking := _lacking(text, answer))}
    hollow_answer = bool(issues) and not unmet
    evidence = answer[:_QUOTE] or "no answer"
    requirements = [
        {"n": n, "evidence": evidence, "met": "no" if n in unmet or hollow_answer else "yes"}
        for n in range(1, len(prompt.requirements) + 1)
    ]
    stands = _is_wrong(prompt)
    issues += [_issue("consistency", "answer", told, repair, None) for told, repair in unmet.values()]
    issues += [
        _issue("hallucination", "answer", text, "Answer with the figures that the steps gave.", None)
        for text in prompt.suspicions or ["the answer lacks the figure that the last step gave"]
        if stands
    ]
    check = {"evidence": evidence, "ok": True}
    return {
        "requirements": requirements,
        "coherent": check,
        "consistent": {"plan": check, "step": check, "answer": {**check, "ok": not stands}, "memory": check},
        "suspicions": [{"n": n, "evidence": evidence, "stands": stands} for n in range(1, len(prompt.suspicions) + 1)],
        "issues": [{"issue_id": f"j{number}", **issue} for number, issue in enumerate(issues, 1)],
    }


def _is_wrong(prompt: Prompt) -> bool:
    """Whether the answer lacks the last result, where that is a figure or a figure is suspected."""
    last, answer = last_result(prompt), unwrapped(prompt.text("answer"))
    if last is None or last.failed or not answer:
        return False
    return text_of(last) not in answer and bool(prompt.suspicions or _FIGURE.fullmatch(text_of(last)))


def _lacking(requirement: str, answer: str) -> tuple[str, str] | None:
    """Return what of a person's own criterion the answer does not show: its quotations and figures."""
    name, colon, description = requirement.partition(": ")
    if not colon or " " in name:
        return None
    wanted = [*_QUOTED.findall(description), *_MEASURED.findall(description)]
    lacking = [text for text in wanted if text.casefold() not in answer.casefold()]
    said = words_of(answer)
    lacking = lacking or sorted(words_of(_QUOTED.sub(" ", description)) - _ASKED_WORDS - said)
    shown = ", ".join(lacking[:5])
    return (f"{name}: the answer does not show {shown!r}", f"Answer with {shown}.") if lacking else None


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
    goal = unwrapped(prompt.text("goal")) or prompt.text("task")
    said = {_verb(str(step.get("description"))) for step in prompt.steps}
    parts = [part.strip(" .?!") for part in _CONJUNCTION.split(QUOTED.sub(_masked, goal[:MAX_CLAUSE]))[1:]]
    return [part for part in parts if _verb(part) in OPEN_VERBS - said and len(part.split()) > 1]


def unwrapped(text: str) -> str:
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


def _issue(kind: str, artifact: str, told: str, repair: str, step_id: str | None) -> Issue:
    return {
        "type": kind,
        "severity": "high",
        "description": f"simulated judge, a plain rule: {told}",
        "location": {"artifact": artifact, "step_id": step_id},
        "proposed_repair": repair,
    }
