"""A model's structured reply as text: verdicts with their quotes, and a reply in progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from aeon_core.journal.values import brief
from aeon_core.journal.view.draft import Draft
from aeon_core.journal.view.formatting import MET_ICONS, QUOTE_NOT_FOUND, words
from aeon_core.journal.view.model import AssessmentView
from aeon_widgets.text import MAX_SHOWN, Block, joined, one_line

MET_STYLES = {"yes": "complete", "partly": "medium", "no": "high"}
_SUSPECTED = {
    True: ("high", "✖ suspicion confirmed"),
    False: ("complete", "✔ suspicion dismissed"),
    None: ("medium", "? suspicion not settled"),
}
_QUOTED = 1_000
"""Characters of a quote that are shown."""


class VerdictBlocks(Struct, frozen=True):
    """A verdict as blocks: what is judged, then the quote, if there is one. `about` is the kind of verdict or the name
    of the check; `ok` says whether a finished result may have this verdict.
    """

    blocks: list[Block]
    quote: str
    about: str
    ok: bool


def verdicts(shown: AssessmentView) -> Iterator[VerdictBlocks]:
    """Yield the verdict on each requirement."""
    for each in shown.requirements:
        icon, style = MET_ICONS.get(each.met, "?"), MET_STYLES.get(each.met, "high")
        head: Block = (style, f"{icon} {one_line(each.text, MAX_SHOWN)}")
        yield VerdictBlocks(
            [head, *quote_blocks(each.evidence, found=each.quote_found)],
            each.evidence,
            "requirement",
            each.met == "yes",
        )


def suspicions(shown: AssessmentView) -> Iterator[VerdictBlocks]:
    """Yield what exact checks suspected and the judge's verdict on it, without repeating a quote."""
    quoted = {each.evidence for each in shown.requirements}
    for each in shown.suspicions:
        style, label = _SUSPECTED[each.stands]
        head: Block = (style, f"{label}: {one_line(each.text, MAX_SHOWN)}")
        found = each.quote_found or each.stands is None
        quote = quote_blocks("" if each.evidence in quoted else each.evidence, found=found)
        quoted.add(each.evidence)
        yield VerdictBlocks([head, *quote], each.evidence, "suspicion", not each.stands)


def checks(shown: AssessmentView) -> Iterator[VerdictBlocks]:
    """Yield the verdict on coherence and each consistency flag, failed ones first, without repeating a quote."""
    quoted = {each.evidence for each in shown.requirements} | {each.evidence for each in shown.suspicions}
    for each in sorted(shown.checks, key=lambda check: check.ok):
        heading = f"{words(each.name)} {'agrees' if each.ok else 'disagrees'}"
        if each.name == "coherent":
            heading = "the parts are consistent" if each.ok else "the parts are inconsistent"
        head: Block = ("complete", f"✔ {heading}") if each.ok else ("high", f"✖ {heading}")
        quote = quote_blocks("" if each.evidence in quoted else each.evidence, found=each.quote_found)
        quoted.add(each.evidence)
        yield VerdictBlocks([head, *quote], each.evidence, each.name, each.ok)


def quote_blocks(quote: str, *, found: bool) -> list[Block]:
    """Return the judge's quote, and a warning if it was not `found`."""
    blocks: list[Block] = [("muted", f"  “{brief(quote, _QUOTED)}”")] if quote else []
    return blocks if found else [*blocks, ("medium", f"  ⚠ {QUOTE_NOT_FOUND}")]


def requirement_blocks(requirements: list[str]) -> list[Block]:
    """Return what a finished answer must satisfy, before anything is judged."""
    if not requirements:
        return [("muted", "A finished answer must do what the task says.")]
    return [("accent", "A finished answer must satisfy"), *(("", f"□ {one_line(each)}") for each in requirements)]


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
    """Return what a structured reply contains so far; `requirements` are those being judged."""
    parts = parts_of(draft, requirements) if draft is not None else []
    return [*parts, ("muted", f"Writing {_WRITTEN.get(purpose, 'the reply')} …")]


def parts_of(draft: Draft, requirements: Sequence[str] = ()) -> list[Block]:
    """Return the parts of a structured reply; `requirements` are those being judged."""
    blocks: list[Block] = []
    for step in draft.steps:
        sign, style = ("○", "") if draft.purpose == "plan" else (step.sign, SIGN_STYLES[step.sign])
        head = joined(sign, one_line(step.step_id, 40), by=" ")
        blocks.append((style, f"{'  ' * step.depth}{head} {one_line(step.text, MAX_SHOWN)}"))
    for each in draft.verdicts:
        text = requirements[each.n - 1] if 0 < each.n <= len(requirements) else f"requirement {each.n}"
        style = MET_STYLES.get(each.met, "muted")
        blocks.append((style, f"{MET_ICONS.get(each.met, '□')} {one_line(text, MAX_SHOWN)}"))
        blocks += quote_blocks(each.evidence, found=True)
    blocks += [("", f"□ {one_line(each, MAX_SHOWN)}") for each in draft.requirements]
    blocks += [("medium", f"⚠ {one_line(each, MAX_SHOWN)}") for each in draft.issues]
    return [*blocks, *(("accent", f"? {one_line(each, MAX_SHOWN)}") for each in draft.questions)]
