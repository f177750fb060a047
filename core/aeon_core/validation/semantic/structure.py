"""What depends on what: unknown and later steps, and circles (adaptive FR-040)."""

from __future__ import annotations

from collections.abc import Iterator

from aeon_core.validation.semantic.finding import Finding
from aeon_core.validation.semantic.views import PlanView


def broken_dependencies(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each dependency on no step of the plan, or on one that does not end before."""
    circular = {pair for circle in view.circles for pair in zip(circle, circle[1:] + circle[:1], strict=True)}
    for step in view.steps:
        for needed in dict.fromkeys(step.step.depends_on or ()):
            if needed not in view.places:
                why, instead = "no step has that id", _nearest_earlier(view, step.step_id)
            elif (step.step_id, needed) in circular:
                continue
            elif view.places[needed] >= view.places[step.step_id]:
                why, instead = "that step runs later", f"move step {step.step_id!r} behind {needed!r}"
            else:
                continue
            yield Finding(
                "consistency",
                "high",
                step.step_id,
                f"step {step.step_id!r} depends on {needed!r}: {why}",
                f"Remove {needed!r} from its depends_on, or {instead}.",
                structural=True,
            )


def circular_dependencies(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each circle of dependencies, at its first step."""
    for circle in view.circles:
        chain = " → ".join([*circle, circle[0]])
        yield Finding(
            "consistency",
            "high",
            circle[0],
            f"the dependencies go round in a circle: {chain}",
            f"Remove {circle[1 % len(circle)]!r} from the depends_on of step {circle[0]!r}.",
        )


def _nearest_earlier(view: PlanView, step_id: str) -> str:
    place = view.places[step_id]
    return f"name an earlier step, such as {view.ending_order[place - 1]!r}" if place else _NOTHING_EARLIER


_NOTHING_EARLIER = "add the step that it needs before it"
