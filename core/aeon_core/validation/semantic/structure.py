"""What depends on what: unknown and later steps, and circles (adaptive FR-040)."""

from __future__ import annotations

from collections.abc import Iterator

from aeon_core.validation.semantic.finding import Finding
from aeon_core.validation.semantic.views import PlanView


def broken_dependencies(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each dependency on no step of the plan, or on one that does not end before."""
    circular = {pair for circle in _circles(view) for pair in zip(circle, circle[1:] + circle[:1], strict=True)}
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
    for circle in _circles(view):
        chain = " → ".join([*circle, circle[0]])
        yield Finding(
            "consistency",
            "high",
            circle[0],
            f"the dependencies go round in a circle: {chain}",
            f"Remove {circle[1 % len(circle)]!r} from the depends_on of step {circle[0]!r}.",
        )


def _circles(view: PlanView) -> list[list[str]]:
    """Return one circle for each group of steps that depend on each other, in the order of the plan."""
    needs = {step.step_id: [n for n in step.step.depends_on or () if n in view.by_id] for step in view.steps}
    if all(view.places[n] < view.places[step_id] for step_id, needed in needs.items() for n in needed):
        return []
    circles, seen = [], set[str]()
    for start in needs:
        if start not in seen and (circle := _circle_from(start, needs, seen)):
            circles.append(circle)
            seen.update(circle)
    return circles


def _circle_from(start: str, needs: dict[str, list[str]], seen: set[str]) -> list[str] | None:
    path, branches = [start], [iter(needs[start])]
    visited = {start}
    while path:
        needed = next(branches[-1], None)
        if needed is None:
            path.pop()
            branches.pop()
        elif needed == start:
            return path
        elif needed not in visited and needed not in seen:
            visited.add(needed)
            path.append(needed)
            branches.append(iter(needs[needed]))
    return None


def _nearest_earlier(view: PlanView, step_id: str) -> str:
    place = view.places[step_id]
    earlier = [known for known, at in view.places.items() if at < place]
    return f"name an earlier step, such as {earlier[-1]!r}" if earlier else "add the step that it needs before it"
