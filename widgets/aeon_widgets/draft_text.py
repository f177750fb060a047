"""A reply in progress as text: what it becomes, part by part, as a list a person can read."""

from __future__ import annotations

from collections.abc import Sequence

from aeon_core.journal.view.draft import Draft, DraftStep
from aeon_core.journal.view.formatting import MET_ICONS
from aeon_widgets.text import MAX_SHOWN, one_line
from aeon_widgets.text_view import Block
from aeon_widgets.verdict_text import MET_STYLES, quote_blocks

_WRITTEN = {
    "profile": "the requirements",
    "plan": "the plan",
    "review": "the review",
    "judge": "the verdict",
    "refine": "the changes",
    "repair": "the repair",
    "tool_call": "the tool call",
}
SIGN_STYLES = {"+": "complete", "~": "medium", "−": "high"}


def draft_blocks(purpose: str, draft: Draft | None, requirements: Sequence[str]) -> list[Block]:
    """Return what a structured reply holds so far; `requirements` are those that the judge writes about."""
    parts = parts_of(draft, requirements) if draft is not None else []
    return [*parts, ("muted", f"Writing {_WRITTEN.get(purpose, 'the reply')} …")]


def parts_of(draft: Draft, requirements: Sequence[str] = ()) -> list[Block]:
    """Return the parts that a structured reply has."""
    blocks: list[Block] = [(_style(draft, step), _step_line(draft, step)) for step in draft.steps]
    for each in draft.verdicts:
        text = requirements[each.n - 1] if 0 < each.n <= len(requirements) else f"requirement {each.n}"
        style = MET_STYLES.get(each.met, "muted")
        blocks.append((style, f"{MET_ICONS.get(each.met, '□')} {one_line(text, MAX_SHOWN)}"))
        blocks += quote_blocks(each.evidence, found=True)
    blocks += [("", f"□ {one_line(each, MAX_SHOWN)}") for each in draft.requirements]
    blocks += [("medium", f"⚠ {one_line(each, MAX_SHOWN)}") for each in draft.issues]
    return [*blocks, *(("accent", f"? {one_line(each, MAX_SHOWN)}") for each in draft.questions)]


def _style(draft: Draft, step: DraftStep) -> str:
    return "" if draft.purpose == "plan" else SIGN_STYLES[step.sign]


def _step_line(draft: Draft, step: DraftStep) -> str:
    sign = "○" if draft.purpose == "plan" else step.sign
    head = " ".join(part for part in (sign, one_line(step.step_id, 40)) if part)
    return f"{'  ' * step.depth}{head} {one_line(step.text, MAX_SHOWN)}"
