"""Whether the run converges: scores from pass to pass, and why or why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from aeon_core.journal.adaptive_text import reasons, score, too_low_score, verdict, words
from aeon_core.journal.view import AssessmentView, RunView
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import one_line
from aeon_widgets.text_view import Block, TextView

PASSES_SHOWN = 8
ISSUES_SHOWN = 20
_NUMBERS = 2
"""Scores of the last passes that stand beside the bars as numbers."""
_COLUMN = 33
"""Cells of the narrowest pane in a column of its own: a trend is to fit on one line."""
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
    before, last = "… " if left_out > 0 else "", shown[-1]
    for label, name, scores in (
        ("complete", "completeness", [each.completeness_score for each in shown]),
        ("coherent", "coherence", [each.coherence_score for each in shown]),
    ):
        # What was asked is told of a score that does not reach it.
        asked = too_low_score(last, name).partition(" ")[2]
        lines = [f"{label} {before}{trend(scores, numbers)} {asked}".rstrip() for numbers in (_NUMBERS, 1)]
        yield "", lines[0] if len(lines[0]) <= _COLUMN else lines[1]


def trend(scores: Sequence[float | None], numbers: int = _NUMBERS) -> str:
    """Return scores as bars beside each other, then the last ones as numbers; a score that is not known has no bar."""
    bars = "".join(" " if value is None else _BARS[int(value * (len(_BARS) - 1))] for value in scores)
    return f"{bars} {' → '.join(map(score, scores[-numbers:]))}"


def _assessment(shown: AssessmentView) -> Iterator[Block]:
    told = " ".join(f"{'✔' if ok else '✖'} {words(name)}" for name, ok in shown.consistency.items())
    if told:
        yield "complete" if all(shown.consistency.values()) else "high", told
    if disagreeing := ", ".join(words(name) for name, ok in shown.consistency.items() if not ok):
        yield "high", f"disagreeing: {disagreeing}"
    if shown.converged:
        yield "complete", f"✔ {', '.join(reasons(shown))}"
    else:
        yield from (("medium", f"✖ {reason}") for reason in reasons(shown))
    for issue in shown.detected_issues[:ISSUES_SHOWN]:
        yield "muted", f"· {one_line(issue)}"
    if len(shown.detected_issues) > ISSUES_SHOWN:
        yield "muted", f"… {len(shown.detected_issues) - ISSUES_SHOWN} more"
