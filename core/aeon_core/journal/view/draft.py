"""A structured reply in progress, parsed from the part that has arrived; it is not in the journal yet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from jiter import from_json

from aeon_core.journal.values import dicts_of

Sign = Literal["+", "~", "−"]
"""A step is added, changed, or removed."""
STRUCTURED = frozenset({"profile", "plan", "review", "judge", "refine", "repair", "tool_call"})
"""The purposes whose replies are data rather than text for a person."""
_OPENING = re.compile(r"[\[{]")
_IDS = ("id", "step_id", "step")
_DESCRIPTIONS = ("description", "task", "action", "title", "name")
_MET = ("yes", "partly", "no")
_MAX_DEPTH = 20


class DraftStep(NamedTuple):
    """A step in a reply: part of a plan, or the target of a refinement."""

    sign: Sign
    step_id: str
    """Empty until the reply contains it."""
    text: str
    depth: int = 0
    after: str = ""
    """The step of the plan after which it belongs; empty for the end of the plan."""


class DraftVerdict(NamedTuple):
    """What the judge has written about requirement `n`; `met` is yes, partly or no, empty until it is written."""

    n: int
    met: str
    evidence: str


class Draft(NamedTuple):
    """A reply in progress."""

    purpose: str
    steps: tuple[DraftStep, ...] = ()
    verdicts: tuple[DraftVerdict, ...] = ()
    requirements: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


def partial_json(text: str) -> Any:
    """Return the JSON value that begins in a text, after any other text; None if there is none."""
    start = _OPENING.search(text)
    if start is None:
        return None
    try:
        return from_json(text[start.start() :].rstrip("`\n ").encode(), partial_mode="trailing-strings")
    except ValueError:
        return None


def read_draft(purpose: str, text: str) -> Draft | None:
    """Return what a reply for this purpose contains so far; None if it is not JSON, or nothing can be read yet."""
    value = partial_json(text)
    if not isinstance(value, dict | list):
        return None
    if purpose == "plan":
        return Draft(purpose, tuple(_plan(value)))
    if not isinstance(value, dict):
        return Draft(purpose)
    return Draft(
        purpose,
        tuple(_changes(value)) if purpose == "refine" else (),
        tuple(_verdicts(value)) if purpose == "judge" else (),
        tuple(_texts(value.get("requirements"))),
        tuple(_texts(value.get("issues"), "description")),
        tuple(_texts(value.get("follow_up_questions"))),
    )


def _plan(value: Any) -> Iterator[DraftStep]:
    """Yield the steps of a plan, nested or with their parents, whatever surrounds it."""
    depths: dict[str, int] = {}
    for step, depth in _rows(_steps_in(value), 0):
        step_id, parent = _first(step, _IDS), _text(step.get("parent"))
        depths[step_id] = depth = min(depths[parent] + 1 if parent in depths else depth, _MAX_DEPTH)
        yield DraftStep("+", step_id, _first(step, _DESCRIPTIONS), depth)


def _steps_in(value: Any, depth: int = 0) -> Any:
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        if "steps" in value:
            return value["steps"]
        return next((found for item in value.values() if (found := _steps_in(item, depth + 1)) is not None), None)
    return value if isinstance(value, list) and not depth else None


def _rows(steps: Any, depth: int) -> Iterator[tuple[Mapping[str, Any], int]]:
    for step in dicts_of(steps):
        if not any(key in step for key in _DESCRIPTIONS):
            continue  # its id may be incomplete
        yield step, depth
        below = step.get("subplan", step)
        if isinstance(below, dict) and depth < _MAX_DEPTH:
            yield from _rows(below.get("substeps", below.get("steps")), depth + 1)


def _first(step: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((_text(step[key]) for key in keys if key in step), "")


def _changes(value: Mapping[str, Any]) -> Iterator[DraftStep]:
    """Yield what each refinement action does to the plan, in the order in which they are written."""
    for action in dicts_of(value.get("actions")):
        kind, target = _text(action.get("type")), _text(action.get("target"))
        if not target or not {"changes", "reason"} & action.keys():
            continue  # it may be incomplete
        changes = action.get("changes")
        steps = list(_steps_of(changes))
        if kind in ("step_remove", "step_mark_invalid"):
            yield DraftStep("−", target, _text(action.get("reason")), after=target)
        elif kind != "step_add" and not steps:
            yield DraftStep("~", target, _text(action.get("reason")), after=target)
        for step in steps:
            if "description" not in step:
                continue
            step_id = _text(step.get("id") or step.get("step_id")) or ("" if kind == "step_add" else target)
            parent = _text(step.get("parent"))
            sign: Sign = "~" if kind in ("step_modify", "plan_update") and step_id == target else "+"
            after = changes.get("after") if isinstance(changes, dict) and kind == "step_add" else target
            yield DraftStep(sign, step_id, _text(step.get("description")), int(bool(parent)), _text(after))


def _steps_of(changes: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(changes, str):
        yield {"description": changes}
    elif isinstance(changes, list):
        yield from dicts_of(changes)
    elif isinstance(changes, dict):
        for key in ("steps", "substeps", "step"):
            item = changes.get(key)
            yield from dicts_of(item if isinstance(item, list) else [item])
        if "description" in changes:
            yield changes


def _verdicts(value: Mapping[str, Any]) -> Iterator[DraftVerdict]:
    for place, item in enumerate(dicts_of(value.get("requirements")), 1):
        number, met = item.get("n"), _text(item.get("met"))
        n = number if isinstance(number, int) and not isinstance(number, bool) else place
        yield DraftVerdict(n, met if met in _MET else "", _text(item.get("evidence")))


def _texts(value: Any, key: str = "") -> Iterator[str]:
    for item in value if isinstance(value, list) else ():
        text = _text(item.get(key) if isinstance(item, dict) else item)
        if text:
            yield text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""
