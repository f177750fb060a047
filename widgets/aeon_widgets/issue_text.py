"""What validation found and refinement changed, as blocks of text for the step pane."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from aeon_core.journal.view import formatting
from aeon_core.journal.view.model import (
    AdvisoryView,
    CallView,
    IssueView,
    ProfileView,
    RefinementView,
    RepairView,
    RunView,
    StepView,
)
from aeon_core.journal.view.step_issues import advisories_of, issues_of, refinements_of
from aeon_widgets.icons import SEVERITY_ICONS
from aeon_widgets.text import one_line, pretty
from aeon_widgets.text_view import Block
from aeon_widgets.verdict_text import requirement_blocks

GAP: Block = ("", "")


def step_change_blocks(view: RunView, step: StepView) -> list[Block]:
    """Return what validation found in a step, and the refinements that touched it."""
    step_id = step.step_id
    first = [_replaces(step.replaces)] if step.replaces is not None else []
    blocks = _blocks(issues_of(view, step_id), refinements_of(view, step_id), advisories_of(view, step_id))
    return [*first, *blocks] or [("muted", "Nothing was found or changed here.")]


def for_a_person(view: RunView, step: StepView) -> list[Block]:
    """Return why a person should look at a step, where the run says so."""
    return [
        ("medium bold", f"⚠ {formatting.intervention(each)}")
        for each in view.manual_interventions
        if each.step_id == step.step_id
    ]


def calls_change_blocks(view: RunView, calls: Sequence[CallView]) -> list[Block]:
    """Return what was found and changed on the replies to these calls, before another model call was made."""
    between = _from_calls_to_the_next(view, calls)
    issues = [(each.pass_number, issue) for each in view.reports if each.seq in between for issue in each.issues]
    refinements = [each for each in view.refinements if each.seq in between]
    advisories = [each for each in view.advisories if each.seq in between]
    return _blocks(issues, refinements, advisories) or [("muted", "Nothing was found or changed here.")]


def repairs_of_calls(view: RunView, calls: Sequence[CallView]) -> list[RepairView]:
    """Return the repairs of the replies to these calls, of which none belongs to a step."""
    between = _from_calls_to_the_next(view, calls)
    return [repair for repair in view.repairs if repair.step_id is None and repair.seq in between]


def _from_calls_to_the_next(view: RunView, calls: Sequence[CallView]) -> range:
    if not calls:
        return range(0)
    later = bisect_right(view.call_seqs, calls[-1].seq)
    return range(calls[0].seq, view.call_seqs[later] if later < len(view.call_seqs) else view.last_seq + 1)


def _replaces(step_id: str) -> Block:
    return "muted", f"It replaces {one_line(step_id, 40)}, which is invalid."


def _blocks(
    issues: Sequence[tuple[int, IssueView]],
    refinements: Sequence[RefinementView],
    advisories: Sequence[AdvisoryView],
) -> list[Block]:
    blocks: list[Block] = []
    for number, issue in issues:
        blocks += [*issue_blocks(number, issue), GAP]
    for refinement in refinements:
        blocks += [*refinement_blocks(refinement), GAP]
    blocks += [("medium", f"⚠ {formatting.advisory(each)}") for each in advisories]
    return blocks[:-1] if blocks and blocks[-1] == GAP else blocks


def issue_blocks(number: int, issue: IssueView) -> list[Block]:
    """Return an issue that was found in a pass, with the repair that is proposed."""
    icon, style = (
        SEVERITY_ICONS.get(issue.severity, "?"),
        issue.severity if issue.severity in SEVERITY_ICONS else "muted",
    )
    return [
        (f"{style} bold", f"━━ {icon} {formatting.issue_head(issue)} · pass {number}"),
        ("", issue.description),
        ("muted", f"→ {issue.repair}" if issue.repair else "No repair is proposed."),
    ]


def refinement_blocks(shown: RefinementView) -> list[Block]:
    """Return a refinement: why it was needed, what it changed, and the steps before and after."""
    icon, outcome, style = ("✔", "accepted", "complete") if shown.accepted else ("✖", "refused", "failed")
    what = f"{icon} {formatting.words(shown.kind)} of {one_line(shown.target, 40)} {outcome}"
    blocks: list[Block] = [
        (f"{style} bold", f"━━ {what} · pass {shown.pass_number}"),
        ("muted", f"because: {formatting.refinement_cause(shown)}"),
    ]
    if shown.explanation:
        blocks.append(
            ("" if shown.accepted else "medium", f"{'done' if shown.accepted else 'why not'}: {shown.explanation}")
        )
    if change := formatting.refinement_change(shown):
        blocks.append(("", f"changed: {change}"))
    for name, steps in (("before", shown.before), ("after", shown.after)):
        if steps:
            blocks += [("accent", name), ("", "\n".join(map(pretty, steps)))]
    return blocks


def profile_blocks(profiles: Sequence[ProfileView]) -> list[Block]:
    """Return every version of the profile with what follows from it and why, the one that holds now first."""
    blocks: list[Block] = []
    for older, shown in reversed(list(zip([None, *profiles], profiles, strict=False))):
        depth = [
            f"{formatting.words(shown.reasoning_mode)} reasoning" if shown.reasoning_mode else "",
            f"{shown.allocated_ttl:,} cycles" if shown.allocated_ttl is not None else "",
        ]
        head = f"profile {shown.version} · from pass {shown.pass_number} on"
        blocks.append(("accent bold", " · ".join(part for part in (f"━━ {head}", *depth) if part)))
        blocks.append(("medium", f"why: {formatting.cause(shown)}"))
        if older is None or shown.dimensions != older.dimensions:
            blocks += [
                ("", f"{formatting.words(name)}: {one_line(value, 40)}") for name, value in shown.dimensions.items()
            ]
            blocks.append(("muted", f"inferred: {shown.raw_inference}"))
        if shown is profiles[-1] and shown.requirements:
            blocks += [GAP, *requirement_blocks(shown.requirements)]
        blocks.append(GAP)
    return blocks[:-1]
