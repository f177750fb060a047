"""Whether a result is one: which results count, which is the last, and whether it says anything of its own."""

from __future__ import annotations

import re

from aeon_core.llm.simulated.elaborating import part_of, whole_of
from aeon_core.llm.simulated.outcomes import text_of
from aeon_core.llm.simulated.parsing import MAX_CLAUSE, parse_arithmetic
from aeon_core.llm.simulated.prompt import Prompt, StepOutcome
from aeon_core.llm.simulated.rounding import decimals_asked
from aeon_core.llm.simulated.texts import parse_text_task
from aeon_core.llm.simulated.tools import words_of
from aeon_core.llm.simulated.vocabulary import listed

_SAME_WORDS = listed("the points are is and built on in short words without a tool of memory holds result no")
"""Words with which a thought is put together; they say nothing about its subject."""
_BEGINNING = 100
_LACKS_TOOL = re.compile(r"(?:In short: )?No tool is there to \w+ ")
_LACKS_RESULT = re.compile(r"(?:In short: )?(?:There is no earlier result|The result of \S+ is (?:missing|no number))")


def valid_results(prompt: Prompt) -> list[StepOutcome]:
    """Return what the steps gave, without those that others stand in for."""
    invalid = {step["step_id"] for step in prompt.steps if step.get("status") == "invalid"}
    return [result for result in prompt.results if result.step_id not in invalid]


def last_result(prompt: Prompt) -> StepOutcome | None:
    """Return the result that no other one builds on: the last, or what puts the parts together that it belongs to."""
    valid = valid_results(prompt)
    if not valid:
        return None
    thing = part_of(described(prompt, valid[-1].step_id))
    wholes = [result for result in valid if thing and whole_of(described(prompt, result.step_id)) == thing]
    return wholes[-1] if wholes else valid[-1]


def described(prompt: Prompt, step_id: str) -> str:
    """Return the description of a step, empty where the plan does not show it."""
    step = next((step for step in prompt.steps if step["step_id"] == step_id), {})
    description = step.get("description")
    return description if isinstance(description, str) else ""


def undone(outcome: StepOutcome) -> bool:
    """Whether a step says itself that it could not be done."""
    text = text_of(outcome)
    return lacks_tool(outcome) or _LACKS_RESULT.match(text) is not None


def lacks_tool(outcome: StepOutcome) -> bool:
    """Whether a step says that no tool is there for it."""
    return _LACKS_TOOL.match(text_of(outcome)) is not None


def hollow(prompt: Prompt, outcome: StepOutcome) -> bool:
    """Whether what was thought in a step holds no word and no number beyond the task and the plan.

    One that begins by repeating its step does not become a result by quoting what other steps gave.
    """
    step = next((step for step in prompt.steps if step["step_id"] == outcome.step_id), {})
    description = described(prompt, outcome.step_id)
    if outcome.failed or step.get("tool") or not description or is_exact(description):
        return False
    asked = [prompt.text("goal"), prompt.text("task"), *(str(one.get("description")) for one in prompt.steps)]
    if text_of(outcome).startswith(description[:_BEGINNING].rstrip(".")):
        asked += [text_of(other) for other in prompt.results if other.step_id != outcome.step_id and not other.failed]
    known = _SAME_WORDS.union(*map(words_of, asked), *(words_of(one["step_id"]) for one in prompt.steps))
    return words_of(text_of(outcome)) <= known


def is_exact(description: str) -> bool:
    """Whether a description is a calculation, a rounding or a text task: what comes out of it is certain."""
    said = description[:MAX_CLAUSE]
    known = parse_text_task(said) is not None or parse_arithmetic(said) is not None
    return known or decimals_asked(said) is not None
