"""All rules on a plan, in the order in which their findings are reported. No model is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aeon_core.validation.semantic.contradictions import contradicting_steps, off_goal_steps, ruled_out_steps
from aeon_core.validation.semantic.do_say import wrong_tools
from aeon_core.validation.semantic.do_say_commands import changing_commands
from aeon_core.validation.semantic.do_say_values import contradicting_arguments
from aeon_core.validation.semantic.duplicates import duplicate_steps
from aeon_core.validation.semantic.finding import Finding
from aeon_core.validation.semantic.hallucination import misfit_arguments, unknown_operations, unknown_tools
from aeon_core.validation.semantic.order import impossible_order
from aeon_core.validation.semantic.references import bad_references
from aeon_core.validation.semantic.relevance import unrelated_steps
from aeon_core.validation.semantic.specificity import vague_steps
from aeon_core.validation.semantic.structure import broken_dependencies, circular_dependencies
from aeon_core.validation.semantic.views import PlanView

MAX_FINDINGS = 1000

_RULES: tuple[Callable[[PlanView], Iterator[Finding]], ...] = (
    unknown_tools,
    unknown_operations,
    misfit_arguments,
    broken_dependencies,
    circular_dependencies,
    bad_references,
    duplicate_steps,
    impossible_order,
    contradicting_steps,
    ruled_out_steps,
    off_goal_steps,
    wrong_tools,
    contradicting_arguments,
    changing_commands,
    vague_steps,
    unrelated_steps,
)


def plan_findings(view: PlanView) -> list[Finding]:
    """Return what the rules find in a plan, by step in the plan's order; at most MAX_FINDINGS.

    One finding of a kind says enough about a step: of several that are not about structure the first is kept.
    """
    places = {step.step_id: step.number for step in view.steps}
    found: list[Finding] = []
    seen: set[tuple[str, str | None]] = set()
    for rule in _RULES:
        for finding in rule(view):
            key = finding.type, finding.step_id
            if finding.structural or key not in seen:
                found.append(finding)
            seen.add(key)
    found = [finding for finding in found if not _follows(finding, seen)]
    return sorted(found, key=lambda finding: places.get(finding.step_id or "", 0))[:MAX_FINDINGS]


def _follows(finding: Finding, seen: set[tuple[str, str | None]]) -> bool:
    """Return whether a finding only follows from another: a vague step says too little to be related to anything."""
    return finding.type == "relevance" and ("specificity", finding.step_id) in seen
