"""Whether the run converges: scores from pass to pass, and why or why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from aeon_core.journal.adaptive_text import score, scored_reasons, verdict, words
from aeon_core.journal.values import number_of
from aeon_core.journal.view import AssessmentView, RunView
from aeon_widgets.marks import SCORE_ICONS
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import one_line
from aeon_widgets.text_view import Block, TextView

PASSES_SHOWN = 8
ISSUES_SHOWN = 20
_NUMBERS = 2
"""Scores of the last passes that stand beside the bars as numbers."""
NEAR = 0.8
"""From this share of what was asked on, a score is near to it."""
_BARS = "▁▂▃▄▅▆▇█"


class ConvergencePane(TextView, Pane):
    """The assessment of each pass, the last one whole."""

    HELP_TITLE = "Convergence"
    RECORDS: ClassVar[frozenset[str]] = frozenset({"convergence", "run_finished", "run_resumed"})

    DEFAULT_CSS = pane_css("ConvergencePane")

    def __init__(self) -> None:
        super().__init__()
        self.pane_title = "Convergence"

    def update_view(self, view: RunView) -> None:
        """Show what is known of convergence by now."""
        told = ""
        if (last := view.assessment) is not None:
            verdict_so_far = "yes" if last.converged else "not yet" if view.result is None else "no"
            told = f" · pass {last.pass_number} {verdict_so_far}"
        self.pane_title = f"Convergence{told}"
        self.show(list(convergence_blocks(view)))


def convergence_blocks(view: RunView) -> Iterator[Block]:
    """Return what a person wants to know of how far the run has come, the newest first."""
    last = view.assessment
    if last is None:
        yield "muted", "No pass was assessed yet."
        return
    yield from _trends(view.assessments[-PASSES_SHOWN:], left_out=len(view.assessments) - PASSES_SHOWN)
    yield from _assessment(last)
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
    """Return the style of a score: reaches what is asked, is near to it, or does not; empty where it is not known."""
    if reached is None or asked is None:
        return ""
    return "score-good" if reached >= asked else "score-fair" if reached + 1e-9 >= NEAR * asked else "score-poor"


def trend(scores: Sequence[float | None], numbers: int = _NUMBERS) -> str:
    """Return scores as bars beside each other, then the last ones as numbers; a score that is not known has no bar."""
    return f"{bars(scores)} {' → '.join(map(score, scores[-numbers:]))}"


def bars(scores: Sequence[float | None]) -> str:
    """Return scores as bars beside each other, full only where the score is; one that is not known has none."""
    return "".join(" " if value is None else _BARS[int(value * (len(_BARS) - 1))] for value in scores)


def change(scores: Sequence[float | None]) -> str:
    """Return by how much the last score differs from the one before it, as ` +0.12`; empty where there is none."""
    before, now = scores[-2:] if len(scores) > 1 else (None, None)
    if before is None or now is None:
        return ""
    # Of the numbers as they are shown, so that a person can add them up.
    by = float(score(now)) - float(score(before))
    return f" {by:+.2f}" if round(by, 2) else " ±0"


def _assessment(shown: AssessmentView) -> Iterator[Block]:
    told = " ".join(f"{'✔' if ok else '✖'} {words(name)}" for name, ok in shown.consistency.items())
    if told:
        yield "complete" if all(shown.consistency.values()) else "high", told
    if disagreeing := ", ".join(words(name) for name, ok in shown.consistency.items() if not ok):
        yield "high", f"disagreeing: {disagreeing}"
    for name, met in shown.additional.items():
        yield ("complete", f"✔ {words(name)}") if met else ("medium", f"✖ {words(name)}: not met")
    own = [
        told
        for code, told in zip(shown.reason_codes, scored_reasons(shown), strict=False)
        if code not in shown.additional
    ]
    if shown.converged:
        yield "complete", f"✔ {', '.join(own) or 'converged'}"
    else:
        yield from (("medium", f"✖ {reason}") for reason in own)
    for issue in shown.detected_issues[:ISSUES_SHOWN]:
        yield "muted", f"· {one_line(issue)}"
    if len(shown.detected_issues) > ISSUES_SHOWN:
        yield "muted", f"… {len(shown.detected_issues) - ISSUES_SHOWN} more"


if __name__ == "__main__":
    from aeon_widgets.demo import main

    main("convergence")
