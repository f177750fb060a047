"""How the run ended: the answer, and what went wrong."""

from __future__ import annotations

from typing import ClassVar

from aeon_core.entities import RunResult
from aeon_core.journal.view import RunView
from aeon_widgets.marks import run_style
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import one_line
from aeon_widgets.text_view import Block, TextView

TITLES = {
    "failed": "Error",
    "aborted": "Aborted",
    "ttl_expired": "TTL expired",
    "cost_ceiling": "Cost ceiling",
    "not_converged": "Not converged",
}
ADVICE = {
    "ttl_expired": "The TTL was spent before the work was done; a higher TTL would let it go on.",
    "not_converged": "The run ended without a result that was accepted.",
    "aborted": "The run was aborted before its end.",
    "cost_ceiling": "The cost ceiling was reached.",
}


class Outcome(TextView, Pane):
    """The final answer and error; not there while the run goes on."""

    HELP_TITLE = "Answer"
    RECORDS: ClassVar[frozenset[str]] = frozenset({"run_finished", "run_resumed"})

    DEFAULT_CSS = (
        pane_css("Outcome")
        + """
    Outcome { height: auto; display: none; }
    Outcome.-ended { display: block; }
    """
    )

    def update_view(self, view: RunView) -> None:
        """Show the result there is, or nothing."""
        self.set_class(view.result is not None, "-ended")
        if view.result is not None:
            self.pane_title = TITLES.get(view.result.status, "Answer")
            self.show(outcome_blocks(view.result))


def outcome_blocks(result: RunResult) -> list[Block]:
    """Return what a person wants to know first of a run that has ended."""
    icon, style = run_style(result.status)
    blocks: list[Block] = []
    if result.error is not None and result.status != "aborted":
        message = result.error.get("message", "no message")
        blocks.append(("high", f"✖ {message if isinstance(message, str) else str(message)}"))
    elif result.status in ADVICE:
        blocks.append((style, f"{icon} {ADVICE[result.status]}"))
    if result.answer:
        blocks.append(("", result.answer))
    failed = [step for step in result.steps if step.status == "failed"]
    for step in failed[:20]:
        why = step.errors[0] if step.errors else "no reason was recorded"
        if result.error is None or why != result.error.get("message"):
            blocks.append(("failed", f"✖ {one_line(step.step_id, 40)} failed: {one_line(why, 300)}"))
    if result.ttl_expired_metadata is not None and result.ttl_expired_metadata.incomplete_steps:
        steps = ", ".join(one_line(step, 40) for step in result.ttl_expired_metadata.incomplete_steps[:20])
        blocks.append(("medium", f"⚠ not run to the end: {steps}"))
    blocks += [("accent", f"? {question}") for question in result.follow_up_questions[:20]]
    return blocks or [("muted", "No answer was given.")]
