"""Steps that do once more what was done already (adaptive FR-040)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.stems import stems, words
from aeon_core.validation.semantic.views import PlanView, StepView

_REPEATABLE = stems(
    """run test check verify validate review measure profile save commit restart wait observe monitor rest repeat
    lint build compile deploy reload record sample"""
)
"""What is done again on purpose, after something has changed."""

_LOADING = stems("read load open fetch get retrieve")
"""What gets a thing, in so many words."""

_AGAIN = words("again once more repeat second third another re-run rerun further")


def duplicate_steps(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step that repeats an earlier one: the same said, named and counted."""
    first: dict[object, StepView] = {}
    for step in view.steps:
        if step.step.status == "invalid" or step.step.replaces is not None or not step.said.content:
            continue
        earlier = first.setdefault(_key(step), step)
        if earlier is step or step.step.executed or not _same_call(earlier, step) or _on_purpose(earlier, step):
            continue
        yield Finding(
            "consistency",
            "medium",
            step.step_id,
            f"step {step.step_id!r} repeats step {earlier.step_id!r}: {clip(step.step.description)}",
            f"Remove step {step.step_id!r} and use the result of {earlier.step_id!r}, or say what differs.",
        )


def _key(step: StepView) -> object:
    """Return what makes two steps the same: action, objects in their order, exact names, numbers, tool."""
    action = "read" if step.verb_stem in _LOADING else step.verb_stem
    names = step.said.exact_names
    objects = step.object_order
    if not objects and not names:
        action = " ".join(step.said.words)
    return action, objects, names, tuple(step.said.numbers), step.said.negated, step.step.tool


def _same_call(earlier: StepView, step: StepView) -> bool:
    one, other = earlier.step.arguments, step.step.arguments
    return one is None or other is None or _written(one) == _written(other)


def _on_purpose(earlier: StepView, step: StepView) -> bool:
    if not _AGAIN.isdisjoint(word for token in step.said.tokens for word in token.lower.split()):
        return True
    return step.verb_stem in _REPEATABLE and step.number > earlier.number + 1


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
