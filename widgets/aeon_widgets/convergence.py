"""Whether the run converges: scores from pass to pass, the judge's verdicts with what it quotes, and why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from aeon_core.journal.values import number_of
from aeon_core.journal.view.draft import Draft
from aeon_core.journal.view.formatting import MET_ICONS, named_in_verdicts, score, scored_reasons, verdict, words
from aeon_core.journal.view.model import AssessmentView, RunView
from aeon_core.units import count
from aeon_widgets.icons import SCORE_ICONS
from aeon_widgets.pane import Pane, PaneMessage, message, pane_css
from aeon_widgets.reply_text import (
    MET_STYLES,
    VerdictBlocks,
    checks,
    parts_of,
    requirement_blocks,
    suspicions,
    verdicts,
)
from aeon_widgets.text import GAP, Block, Piece, one_line
from aeon_widgets.text_view import PartsView

PASSES_SHOWN = 8
ISSUES_SHOWN = 20
_NUMBERS = 2
"""The number of passes whose scores are also shown as numbers."""
NEAR = 0.8
"""A score of at least this share of the required one is near it."""
_BARS = "▁▂▃▄▅▆▇█"


class ConvergencePane(PartsView, Pane):
    """The requirements, and the assessment of each pass, the last one in full. Enter goes to a verdict's quote."""

    HELP_TITLE = "Convergence"
    RECORDS: ClassVar[frozenset[str]] = frozenset(
        {"convergence", "run_started", "run_finished", "run_resumed", "profile"}
    )

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose_part", "Quote", id="convergence.quote")]

    DEFAULT_CSS = pane_css("ConvergencePane")
    REACH, CLICKS = 2, 2

    @message
    class Opened(PaneMessage):
        """The person wants to see the passage that the judge quotes for a verdict."""

        verdict: VerdictBlocks

    def __init__(self) -> None:
        super().__init__()
        self._verdicts: list[tuple[int, VerdictBlocks]] = []
        """The index of each verdict's first block, and the verdict."""
        self._drafted = RunView()
        self._draft: Draft | None = None
        """The reply in progress; `_drafted` is its run."""
        self.pane_title = "Convergence"

    def update_view(self, view: RunView) -> None:
        """Show what is known about convergence so far."""
        self.pane_title = f"Convergence{_title(view)}"
        shown: list[Block] = []
        found: list[tuple[int, VerdictBlocks]] = []
        if view is not self._drafted:
            self._draft, self._drafted = None, view
        if self._draft is not None:
            self.pane_title = f"Convergence · {'judging' if self._draft.purpose == 'judge' else 'requirements'}"
            shown += [*drafted_blocks(self._draft, view), GAP]
        for part in convergence_parts(view):
            if isinstance(part, VerdictBlocks):
                found.append((len(shown), part))
                shown += part.blocks
            else:
                shown.append(part)
        if bool(found) != bool(self._verdicts):
            self.refresh_bindings()
        self._verdicts = found
        self.selected = min(self.selected, max(0, len(found) - 1))
        self.show(shown)

    def update_draft(self, draft: Draft | None) -> None:
        """Show requirements and verdicts as they are written; None if none are being written."""
        shown = draft if draft is not None and draft.purpose in ("judge", "profile") else None
        if shown != self._draft:
            self._draft = shown
            self.update_view(self._drafted)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self._verdicts) if action == "choose_part" else super().check_action(action, parameters)

    @property
    def parts(self) -> Sequence[range]:
        return [range(place, place + len(each.blocks)) for place, each in self._verdicts]

    def choose_part(self) -> None:
        """Ask for the passage that the judge quotes."""
        self.post_message(self.Opened(self, self._verdicts[self.selected][1]))


def drafted_blocks(draft: Draft, view: RunView) -> list[Block]:
    """Return the requirements: those being written, or all of them with the judge's verdicts so far."""
    if draft.purpose == "profile":
        return parts_of(draft)
    written = {each.n: each for each in draft.verdicts if each.met}
    blocks: list[Block] = []
    for number, text in enumerate(view.requirements or [view.task], 1):
        met = written[number].met if number in written else ""
        blocks.append((MET_STYLES.get(met, "muted"), f"{MET_ICONS.get(met, '□')} {one_line(text)}"))
    return blocks


def _title(view: RunView) -> str:
    last = view.assessment
    if last is None:
        return f" · {count(len(view.requirements), 'requirement')}" if view.requirements else ""
    if last.not_judged:
        return f" · pass {last.pass_number}: not judged"
    return f" · pass {last.pass_number}: {'yes' if last.converged else 'not yet' if view.result is None else 'no'}"


def summary(view: RunView) -> list[Piece]:
    """Return on one line how many requirements are met."""
    last = view.assessment
    if last is None:
        return [(f"{len(view.requirements)}, not assessed yet" if view.requirements else "not assessed yet", "muted")]
    if last.not_judged:
        return [("not judged", "high")]
    icon, style = ("✔", "complete") if last.converged else ("✖", "medium")
    met = sum(each.met == "yes" for each in last.requirements)
    line = (
        f"{met} of {count(len(last.requirements), 'requirement')}"
        if last.requirements
        else words((last.reason_codes or ["no reason"])[0])
    )
    return [(f"{icon} {line}", style)]


def convergence_parts(view: RunView) -> Iterator[Block | VerdictBlocks]:
    """Yield how far the run has come, the newest pass first."""
    last = view.assessment
    if last is None:
        if view.profile is None:
            yield "muted", "No pass assessed yet."
        else:
            yield from requirement_blocks(view.requirements)
        return
    if last.not_judged:
        yield "high", f"✖ not judged: {one_line(last.not_judged)}"
    yield from _trends(view.assessments[-PASSES_SHOWN:], left_out=len(view.assessments) - PASSES_SHOWN)
    yield from _assessment(last)
    if view.requirements and not last.requirements:
        yield from requirement_blocks(view.requirements)
    for earlier in view.assessments[-2 : -PASSES_SHOWN - 1 : -1]:
        yield "muted", f"pass {earlier.pass_number} {verdict(earlier)}"


def _trends(shown: Sequence[AssessmentView], left_out: int) -> Iterator[Block]:
    before, last = "…" if left_out > 0 else "", shown[-1]
    for label, name, scores in (
        ("complete", "completeness", [each.completeness_score for each in shown]),
        ("coherent", "coherence", [each.coherence_score for each in shown]),
    ):
        level = score_level(scores[-1], number_of(last.criteria.get(name)))
        yield level, f"{SCORE_ICONS.get(level, ' ')} {label} {before}{bars(scores)} {score(scores[-1])}{change(scores)}"


def score_level(reached: float | None, asked: float | None) -> str:
    """Return the style of a score: good if it reaches the one `asked`, fair if near it, else poor; empty if unknown."""
    if reached is None or asked is None:
        return ""
    return "score-good" if reached >= asked else "score-fair" if reached + 1e-9 >= NEAR * asked else "score-poor"


UNCHANGED = " ±0"


def trend(scores: Sequence[float | None], numbers: int = _NUMBERS) -> str:
    """Return scores as a row of bars, then the last ones as numbers; an unknown score has no bar."""
    return f"{bars(scores)} {' → '.join(map(score, scores[-numbers:]))}"


def bars(scores: Sequence[float | None]) -> str:
    """Return scores as a row of bars, full only for a score of 1; an unknown score has no bar."""
    return "".join(" " if value is None else _BARS[int(value * (len(_BARS) - 1))] for value in scores)


def change(scores: Sequence[float | None]) -> str:
    """Return by how much the last score differs from the one before it, as ` +0.12`; empty if either is missing."""
    before, now = scores[-2:] if len(scores) > 1 else (None, None)
    if before is None or now is None:
        return ""
    # Computed from the rounded numbers, so that a person can check the sum.
    by = float(score(now)) - float(score(before))
    return f" {by:+.2f}" if round(by, 2) else UNCHANGED


def _assessment(shown: AssessmentView) -> Iterator[Block | VerdictBlocks]:
    judged = bool(shown.requirements)
    yield from verdicts(shown)
    line = " ".join(f"{'✔' if ok else '✖'} {words(name)}" for name, ok in shown.consistency.items())
    if line:
        yield "flags", line
    if disagreeing := ", ".join(words(name) for name, ok in shown.consistency.items() if not ok):
        yield "high", f"disagreeing: {disagreeing}"
    for name, met in ({} if judged else shown.additional).items():
        yield ("complete", f"✔ {words(name)}") if met else ("medium", f"✖ {words(name)}: not met")
    own = [
        line
        for code, line in zip(shown.reason_codes, scored_reasons(shown), strict=False)
        if code not in shown.additional and code != "not_judged"
    ]
    if shown.converged:
        yield "complete", f"✔ {', '.join(own) or 'converged'}"
    else:
        yield from (("medium", f"✖ {reason}") for reason in own)
    yield from suspicions(shown)
    known = named_in_verdicts(shown)
    issues = [issue for issue in shown.detected_issues if issue not in known]
    for issue in issues[:ISSUES_SHOWN]:
        yield "muted", f"· {one_line(issue)}"
    if len(issues) > ISSUES_SHOWN:
        yield "muted", f"… {len(issues) - ISSUES_SHOWN} more"
    yield from checks(shown)
