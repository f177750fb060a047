"""Whether the run converges: scores from pass to pass, why or why not, and how deeply it reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from aeon_core.journal.adaptive_text import flags, intervention, profile, score, verdict
from aeon_core.journal.view import AssessmentView, RunView
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import one_line
from aeon_widgets.text_view import Block, TextView

PASSES_SHOWN = 10
ISSUES_SHOWN = 20
_BARS = "▁▂▃▄▅▆▇█"


class ConvergencePane(TextView, Pane):
    """The assessment of each pass, the profile with its reason, and what is left to a person."""

    HELP_TITLE = "Convergence"
    RECORDS: ClassVar[frozenset[str]] = frozenset({"convergence", "profile", "run_finished", "run_resumed"})

    DEFAULT_CSS = pane_css("ConvergencePane")

    def __init__(self) -> None:
        super().__init__()
        self.pane_title = "Convergence"

    def update_view(self, view: RunView) -> None:
        """Show what is known of convergence by now."""
        last = view.assessment
        told = (
            "" if last is None else f" · pass {last.pass_number} {'converged' if last.converged else 'not converged'}"
        )
        self.pane_title = f"Convergence{told}"
        self.show(list(convergence_blocks(view)))


def convergence_blocks(view: RunView) -> Iterator[Block]:
    """Return what a person wants to know of how far the run has come, the newest first."""
    if view.assessment is None:
        yield "muted", "No pass was assessed yet."
    else:
        yield from _trends(view.assessments[-PASSES_SHOWN:], left_out=len(view.assessments) - PASSES_SHOWN)
        yield from _assessment(view.assessment)
        for earlier in view.assessments[-2 : -PASSES_SHOWN - 1 : -1]:
            yield "muted", f"pass {earlier.pass_number} {verdict(earlier)}"
    if view.profile is not None:
        yield "", profile(view.profile)
    for question in view.follow_up_questions[:ISSUES_SHOWN]:
        yield "accent", f"? {one_line(question)}"
    for fragment in view.manual_interventions[:ISSUES_SHOWN]:
        yield "medium", f"⚠ {intervention(fragment)}"


def _trends(shown: Sequence[AssessmentView], left_out: int) -> Iterator[Block]:
    before = "… " if left_out > 0 else ""
    yield "", f"completeness {before}{trend([each.completeness_score for each in shown])}"
    yield "", f"coherence    {before}{trend([each.coherence_score for each in shown])}"


def trend(scores: Sequence[float | None]) -> str:
    """Return scores as bars beside each other, then as numbers; a score that is not known has no bar."""
    bars = "".join(" " if value is None else _BARS[int(value * (len(_BARS) - 1))] for value in scores)
    return f"{bars}  {' → '.join(map(score, scores))}"


def _assessment(shown: AssessmentView) -> Iterator[Block]:
    icon, style = ("✔", "complete") if shown.converged else ("✖", "medium")
    yield style, f"{icon} pass {shown.pass_number} {verdict(shown)}"
    told = flags(shown)
    if agreeing := ", ".join(text for ok, text in told if ok):
        yield "complete", f"✔ {agreeing}"
    if contradicting := ", ".join(text for ok, text in told if not ok):
        yield "high", f"✖ {contradicting}"
    for issue in shown.detected_issues[:ISSUES_SHOWN]:
        yield "medium", f"⚠ {one_line(issue)}"
    if len(shown.detected_issues) > ISSUES_SHOWN:
        yield "muted", f"… {len(shown.detected_issues) - ISSUES_SHOWN} more"
