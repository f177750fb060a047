"""What validation and refinement say about one step of a run's view (adaptive FR-073, FR-075)."""

from __future__ import annotations

from collections import Counter

from aeon_core.journal.view.model import AdvisoryView, IssueView, RefinementView, RunView
from aeon_core.plan import end_of_chain


def found_issues(view: RunView) -> list[tuple[int, IssueView]]:
    """Return every issue of every report with the last pass in which it was found, the newest report first."""
    found: dict[tuple[str | None, str, str], tuple[int, IssueView]] = {}
    for report in reversed(view.reports):
        for issue in report.issues:
            found.setdefault((issue.step_id, issue.type, issue.description), (report.pass_number, issue))
    return list(found.values())


def issues_of(view: RunView, step_id: str) -> list[tuple[int, IssueView]]:
    """Return all issues ever found in a step, each with its pass."""
    return [(number, issue) for number, issue in found_issues(view) if issue.step_id == step_id]


def open_issues(view: RunView) -> dict[str, list[IssueView]]:
    """Return the issues of the last report by step, highest severity first.

    Issues of a step that was refined since are left out: only the next report says whether they are resolved.
    """
    by_step: dict[str, list[IssueView]] = {}
    answered = refined_since(view)
    for issue in view.issues:
        if issue.step_id is not None and issue.step_id not in answered:
            by_step.setdefault(issue.step_id, []).append(issue)
    return by_step


def refined_since(view: RunView) -> set[str]:
    """Return the steps that accepted refinements changed or replaced after the last report."""
    last = view.reports[-1].seq if view.reports else -1
    return {step_id for each in view.refinements if each.accepted and each.seq > last for step_id in _touched(each)}


def refinements_of(view: RunView, step_id: str) -> list[RefinementView]:
    """Return the refinement actions, accepted or refused, that targeted or changed a step, in order."""
    return [each for each in view.refinements if step_id in _touched(each)]


def advisories_of(view: RunView, step_id: str) -> list[AdvisoryView]:
    """Return the repairs of a step that validation proposed and the planner did not follow."""
    return [each for each in view.advisories if each.step_id == step_id]


def replacements(view: RunView) -> dict[str, str]:
    """Return the replaced steps, each with its replacement."""
    return {step.replaces: step.step_id for step in view.steps.values() if step.replaces is not None}


def superseded(view: RunView) -> dict[str, str]:
    """Return the replaced steps and their substeps, each with its final replacement.

    Steps of a damaged journal that replace each other in a circle are left out: nothing replaces them.
    """
    replaced, found = replacements(view), dict[str, str]()
    for step_id, step in view.steps.items():
        last = end_of_chain(step_id, replaced)
        if last in replaced:
            continue
        if last != step_id:
            found[step_id] = last
        elif step.parent in found:
            found[step_id] = found[step.parent]
    # What replaces a substep of a step that is replaced itself.
    return {step_id: found.get(last, last) for step_id, last in found.items() if found.get(last, last) != step_id}


def times_refined(view: RunView) -> dict[str, int]:
    """Return how often each fragment was refined, by its current step: replacing a step refines it."""
    replaces = {step_id: step.replaces for step_id, step in view.steps.items() if step.replaces is not None}
    counts = Counter(end_of_chain(each.target, replaces) for each in view.refinements if each.accepted)
    replaced = replacements(view)
    return {
        step_id: counts[origin]
        for step_id in view.steps
        if step_id not in replaced and (origin := end_of_chain(step_id, replaces)) in counts
    }


def _touched(refinement: RefinementView) -> set[str]:
    steps = [step.get("step_id") for step in (*refinement.before, *refinement.after)]
    named = {*refinement.replaced, *refinement.replaced.values(), refinement.target}
    return named | {step_id for step_id in steps if isinstance(step_id, str)}
