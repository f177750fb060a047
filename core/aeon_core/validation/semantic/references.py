"""Steps named in a text or in arguments that do not exist, or that run later (adaptive FR-040)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.stems import words
from aeon_core.validation.semantic.views import PlanView, StepView

_NUMBERED = re.compile(
    r"(?P<source>\b(?:results?|outputs?|outcomes?|values?|data|findings?|numbers?|answers?|files?|sum|list|text|table|"
    r"from|of|by|using|use|uses|with|after|since|based on|given|in)\s+(?:the\s+)?)?"
    r"\bstep\s+#?(?P<number>\d{1,4})\b(?!\s+of\s+(?:the|a|an)\b)(?P<own>'s|’s)?",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(r"\{\{\s*([^{}]{1,100}?)\s*\}\}|\$\{\s*([^{}]{1,100}?)\s*\}")
_TARGETS = re.compile(r"\b(?:for|before|until|to|prepare|preparing|in preparation for)\s+(?:the\s+)?$", re.IGNORECASE)
_PATH_PART = re.compile(r"[\w-]+")
_TEMPLATE_WORDS = words("steps step results result outputs output plan")
_MAX_ARGUMENTS = 20_000
_MOST_NAMED = 6


def bad_references(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each step that builds on a step by name or number which is unknown, later, or itself."""
    for step in view.pending:
        seen: set[str] = set()
        for named, target, forward_counts in _mentions(step, view):
            if named in seen:
                continue
            seen.add(named)
            if target is None:
                yield _finding(step, named, "the plan has no such step", f"name one of the steps {_known(view)}")
            elif forward_counts and view.places[target] >= view.places[step.step_id]:
                why = "that is the step itself" if target == step.step_id else "that step runs later"
                yield _finding(step, named, why, f"move step {step.step_id!r} behind {target!r}")


def _finding(step: StepView, named: str, why: str, instead: str) -> Finding:
    return Finding(
        "consistency",
        "high",
        step.step_id,
        f"step {step.step_id!r} builds on {clip(named)}: {why}",
        f"Refer to an earlier step in place of {clip(named)}, or {instead}.",
    )


def _mentions(step: StepView, view: PlanView) -> Iterator[tuple[str, str | None, bool]]:
    text = step.said.text
    if "step" in text or "Step" in text:
        for match in _NUMBERED.finditer(text):
            target = _numbered(match["number"], view)
            if target is not None or len(view.steps) > 1:
                builds = match["source"] is not None or match["own"] is not None
                yield f"step {match['number']}", target, builds and not _TARGETS.search(text[: match.start()])
    if step.step.arguments:
        yield from _templates(step, view)


def _templates(step: StepView, view: PlanView) -> Iterator[tuple[str, str | None, bool]]:
    written = json.dumps(step.step.arguments, ensure_ascii=False, default=str)[:_MAX_ARGUMENTS]
    for match in _TEMPLATE.finditer(written):
        parts = _PATH_PART.findall(match[1] or match[2])
        if len(parts) > 1 and parts[0].lower() in _TEMPLATE_WORDS:
            parts = parts[1:]
        elif not parts or (parts[0] not in view.by_id and not _looks_like_an_id(parts[0], view)):
            continue
        known = parts[0] in view.by_id
        yield parts[0], parts[0] if known else None, True


def _looks_like_an_id(name: str, view: PlanView) -> bool:
    """Return whether a name is written as the plan's ids are: the same letters, other digits."""
    shape = re.sub(r"\d+", "0", name)
    return shape != name and any(re.sub(r"\d+", "0", known) == shape for known in view.by_id)


def _numbered(number: str, view: PlanView) -> str | None:
    """Return the id of the step that a number means: one that ends in it, else the one at that place."""
    for known in (number, f"s{number}", f"step{number}", f"step_{number}", f"step-{number}", f"Step {number}"):
        if known in view.by_id:
            return known
    place = int(number)
    top = view.plan.steps
    return top[place - 1].step_id if 1 <= place <= len(top) else None


def _known(view: PlanView) -> str:
    if len(view.steps) > _MOST_NAMED:
        return f"{view.steps[0].step_id!r} to {view.steps[-1].step_id!r}"
    return ", ".join(repr(step.step_id) for step in view.steps)
