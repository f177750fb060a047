"""How the run ended: the answer, what went wrong, and what is left to the user, which is shown during the run too."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from aeon_core.journal.values import str_of, strs_of
from aeon_core.journal.view.formatting import cut_off, intervention, scored_reasons
from aeon_core.journal.view.model import AssessmentView, ResultView, RunView, cut_replies
from aeon_core.units import count
from aeon_widgets.icons import UNFINISHED, run_style
from aeon_widgets.pane import Item, Pane, pane_css
from aeon_widgets.text import Block, joined, one_line
from aeon_widgets.text_view import TextView

TITLES = {
    "failed": "Error",
    "aborted": "Aborted",
    "ttl_expired": "TTL expired",
    "cost_ceiling": "Cost ceiling",
    "not_converged": "Not converged",
}
ADVICE = {
    "ttl_expired": "The TTL ran out before the work was done; raise it to continue.",
    "not_converged": "The run ended without an accepted result.",
    "aborted": "The run was aborted.",
    "cost_ceiling": "The cost ceiling was reached.",
}


UNJUDGED = "The answer is available: check it yourself, or fork the run with another model or judge."


class Outcome(TextView, Pane):
    """The final answer and error. During the run it is shown only if the user is asked for something."""

    HELP_TITLE = "Answer"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "raw", "Raw", show=False, tooltip="Show raw or formatted text", id="text.raw")
    ]
    RECORDS: ClassVar[frozenset[str]] = frozenset({"run_finished", "run_resumed", "notice", "convergence"})

    DEFAULT_CSS = pane_css("Outcome") + "Outcome { height: auto; display: none; &.-shown { display: block; } }"

    later = False
    """Whether the run has ended and the view shows an earlier moment: the pane then keeps its height."""

    def __init__(self) -> None:
        super().__init__()
        self._answer = ""

    @property
    def item(self) -> Item | None:
        """The answer if there is one, else all the text of the pane."""
        return Item("the answer", self._answer, ".md") if self._answer else Item("the outcome", self.source)

    def update_view(self, view: RunView) -> None:
        """Show the result, else what the run asks of a person, else nothing."""
        left = left_blocks(view)
        self._answer = (view.result.answer or "") if view.result is not None else ""
        if (held := self.later and view.result is None) != ("height" in self.styles.inline.get_rules()):
            # Fix the height that the answer has, or let the text decide again.
            self.styles.height = self.outer_size.height if held and self.display else None
        self.set_class(view.result is not None or bool(left) or self.later, "-shown")
        if view.result is not None:
            fragments = len(view.manual_interventions)
            self.pane_title = joined(
                TITLES.get(view.result.status, "Answer"),
                f"{count(fragments, 'step')} need{'s' * (fragments == 1)} you" if fragments else "",
                count(len(questions), "open question") if (questions := view.follow_up_questions) else "",
            )
            cut: list[Block] = [("high", f"✖ {cut_off(parts)}")] if (parts := cut_replies(view)) else []
            self.show([*cut, *outcome_blocks(view.result, view.assessment), *left])
        elif left:
            self.pane_title = "For you"
            self.show(left)
        elif self.later:
            self.pane_title = "Answer"
            self.show([("muted", "The run had not ended.")])


def left_blocks(view: RunView) -> list[Block]:
    """Return the parts of the plan that need a person, and the task's open questions."""
    fragments: list[Block] = [("medium", f"⚠ {intervention(each)}") for each in view.manual_interventions[:20]]
    return [*fragments, *(("accent", f"? {question}") for question in view.follow_up_questions[:20])]


def outcome_blocks(result: ResultView, assessment: AssessmentView | None = None) -> list[Block]:
    """Return how a run ended: its error or advice, why it did not converge, its answer, and its unfinished steps."""
    icon, style = run_style(result.status)
    blocks: list[Block] = []
    if result.error is not None:
        message = str(result.error.get("message", "no message"))
        blocks.append((style, f"{icon} {message}") if result.status == "aborted" else ("high", f"✖ {message}"))
    elif result.status in ADVICE:
        blocks.append((style, f"{icon} {ADVICE[result.status]}"))
    if assessment is not None and not assessment.converged and result.status in UNFINISHED:
        if assessment.not_judged:
            blocks.append((style, f"not judged: {one_line(assessment.not_judged)}"))
            blocks += [(style, UNJUDGED)] if result.answer else []
        reasons = zip(assessment.reason_codes, scored_reasons(assessment), strict=False)
        if why := [reason for code, reason in reasons if code != "not_judged"]:
            blocks.append((style, f"why: {'; '.join(why)}"))
    if result.answer:
        blocks.append(("markdown", result.answer))
    return [*blocks, *_step_blocks(result)] or [("muted", "No answer was given.")]


def _step_blocks(result: ResultView) -> list[Block]:
    """Return the steps that failed, unless the run's error is the same, and those not completed."""
    blocks: list[Block] = []
    failed = [step for step in result.steps if step.get("status") == "failed"]
    for step in failed[:20]:
        why = next(iter(strs_of(step.get("errors"))), "no reason was recorded")
        if result.error is None or why != result.error.get("message"):
            blocks.append(("failed", f"✖ {one_line(str_of(step.get('step_id')), 40)} failed: {one_line(why, 300)}"))
    if result.incomplete_steps:
        steps = ", ".join(one_line(step, 40) for step in result.incomplete_steps[:20])
        blocks.append(("medium", f"⚠ not completed: {steps}"))
    return blocks
