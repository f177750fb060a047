"""Open tasks: the vague steps with which someone would begin, in the words of the task."""

from __future__ import annotations

import re

from aeon_core.llm.simulated.outcomes import clip
from aeon_core.llm.simulated.parsing import MAX_CLAUSE
from aeon_core.llm.simulated.texts import clauses, strip_politeness

_MAX_SUBJECT = 120

_MAKING = (
    "Clarify what {} must achieve and for whom",
    "List the main parts of {}",
    "Work out each part of {} in more detail",
    "Check the parts of {} against the goal and look for gaps",
    "Put together the final version of {}",
)
_WRITING = (
    "Collect what {} should say and to whom",
    "Outline {}",
    "Draft {}",
    "Revise the draft of {} and shorten it",
)
_FINDING_OUT = (
    "State precisely what has to be found out about {}",
    "Collect what is known about {}",
    "Weigh what speaks for and against each view of {}",
    "Look for what is missing or contradictory about {}",
    "Draw a conclusion about {}",
    "Summarise the findings about {} in a few sentences",
)
_ANYTHING = (
    "State what is asked for by {}",
    "Collect what is needed for {}",
    "Work on {} step by step",
    "Review the outcome of {} and put it together",
)
_PRONOUN = re.compile(r"(?:it|this|that|them|these|those)\b(?!\s+\w+\s+\w)", re.IGNORECASE)
_VERBS = {
    _MAKING: "design build create implement develop make plan set organise organize prepare refactor migrate",
    _WRITING: "write draft compose prepare formulate",
    _FINDING_OUT: "research analyse analyze compare explain find investigate evaluate review describe discuss study why"
    " how what who when where which is are does can should",
}
_KINDS = {verb: steps for steps, verbs in _VERBS.items() for verb in verbs.split()}


def request_of(clause: str) -> str:
    """Return a clause without the polite words before it, on one line, with a capital first."""
    request = clip(strip_politeness(clause[:MAX_CLAUSE]), MAX_CLAUSE).rstrip(" .")
    return request[:1].upper() + request[1:]


def made_thing(task: str) -> str | None:
    """Return the thing that a task wants made (`a REST API for invoices`), None where it wants something else."""
    first, _, rest = request_of(next(iter(clauses(task)), "")).partition(" ")
    made = _KINDS.get(first.lower()) is _MAKING and rest.strip()
    return clip(rest, _MAX_SUBJECT).rstrip(" ?!") if made else None


def open_steps(task: str) -> list[str]:
    """Return four to six descriptions of steps for a task that no rule understands."""
    request = request_of(task)
    first, _, rest = request.partition(" ")
    steps = _KINDS.get(first.lower().strip("?,:"))
    if steps is None or not rest.strip() or _PRONOUN.match(rest):
        steps, rest = _ANYTHING, f"“{clip(request, _MAX_SUBJECT)}”" if request else "the request"
    elif steps is _FINDING_OUT and first.lower() not in ("research", "find", "investigate", "study"):
        rest = f"“{clip(request, _MAX_SUBJECT)}”"
    subject = clip(rest, _MAX_SUBJECT).rstrip(" ?!")
    return [step.format(subject) for step in steps]
