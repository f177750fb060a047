"""What users want to know about a run before opening it: its status and why, scores, answer, plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from aeon_core.journal.values import at_pass, str_of
from aeon_core.journal.view.formatting import scored_reasons, words
from aeon_core.units import count, local_time, seconds_after
from aeon_widgets.icons import ROW_ICONS, WAITING, run_style, shown_status
from aeon_widgets.run_list import LIVE, SIMULATED, cost, is_waiting
from aeon_widgets.text import GAP, Block, duration, one_line
from aeon_widgets.text_view import TextView

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary
    from aeon_core.journal.view.model import RunView

TASK_CHARACTERS, ANSWER_CHARACTERS = 4_000, 2_000
STEPS_SHOWN, FORKS_SHOWN, PASSES_SHOWN, DAMAGE_SHOWN = 100, 5, 12, 3
_LABEL = 10
_POINTS = {
    "plan": "the plan",
    "pass": "the result of the pass",
    "tool": "a tool call",
    "unknown": "a call of unknown outcome",
    "budget": "more budget",
}


@dataclass(frozen=True)
class Kin:
    """A run's relatives in the list: whether its parent is there, and its forks."""

    parent_is_there: bool = False
    forks: Sequence[RunSummary] = ()
    """The newest first."""


class RunPreview(TextView):
    """A summary of one run. The content stays until another run is shown."""

    HELP_TITLE = "Preview"


def preview_blocks(run: RunSummary, view: RunView, kin: Kin, now: datetime) -> Iterator[Block]:
    """Yield a run's preview, from its row in the list and a view of its journal or of the journal's end."""
    yield "bold", _clipped(run.task, TASK_CHARACTERS)
    yield from _standing(run, view)
    if view.damage:
        yield "high", f"⚠ damaged: {count(len(view.damage), 'place')} of the journal cannot be read"
        yield from (("medium", f"  {one_line(text, 200)}") for text in view.damage[:DAMAGE_SHOWN])
        if len(view.damage) > DAMAGE_SHOWN:
            yield "muted", f"  … {len(view.damage) - DAMAGE_SHOWN:,} more"
    yield GAP
    yield from _facts(run, view, kin, now)
    if view.result is not None and view.result.answer:
        yield GAP
        yield "accent", "Answer (simulated)" if view.simulated else "Answer"
        yield "", _clipped(view.result.answer, ANSWER_CHARACTERS)
    yield GAP
    yield from _plan(run, view)


def _standing(run: RunSummary, view: RunView) -> Iterator[Block]:
    """Yield the status and the reason for it."""
    if is_waiting(run):
        what = _POINTS.get(run.waits_for, one_line(run.waits_for, 40))
        yield "medium", f"{ROW_ICONS[WAITING]} waiting for a decision about {what}; open it to decide"
        return
    icon, style = run_style(run.status)
    yield style, f"{icon} {words(run.status)}"
    error = view.result.error if view.result is not None else None
    if error is not None:
        yield "high", one_line(str_of(error.get("message")), 400)
    elif (last := view.assessment) is not None and run.status != LIVE:
        reasons = scored_reasons(last)
        if last.converged:
            yield "", f"  {', '.join(reasons)}"
        else:
            yield from (("medium", f"  {reason}") for reason in reasons)
    elif run.status == "interrupted":
        yield "muted", "  its process ended before the run did; it can be resumed"


def _facts(run: RunSummary, view: RunView, kin: Kin, now: datetime) -> Iterator[Block]:
    shown = view.assessments[-PASSES_SHOWN:]
    if shown:
        # Here: with the view it loads pydantic, for which a list of runs does not wait.
        from aeon_widgets.convergence import trend

        yield _fact("complete", trend([each.completeness_score for each in shown], 2))
        yield _fact("coherent", trend([each.coherence_score for each in shown], 2))
    if view.reports:
        high = sum(issue.severity == "high" for issue in view.issues)
        yield _fact("issues", f"{len(view.issues)}{f', {high} of severity high' if high else ''}")
    live = run.status == LIVE
    until = now.isoformat() if live else view.last_ts
    yield _fact("passes", f"{run.passes} ended, 1 running" if live else f"{run.passes or '–'}")
    yield _fact("took" if not live else "elapsed", duration(seconds_after(run.started, until)))
    yield _fact("cost", cost(run.cost_usd))
    named = run.model.startswith(SIMULATED)
    yield _fact("model", f"{one_line(run.model or '–', 80)}{' (simulated)' if view.simulated and not named else ''}")
    yield _fact("started", local_time(run.started, "%Y-%m-%d %H:%M"))
    yield _fact("run", one_line(run.run_id, 80))
    yield from _kin(run, kin)
    if view.whole_from:
        yield _fact("read", "the end of a long journal; open it for the rest")


def _kin(run: RunSummary, kin: Kin) -> Iterator[Block]:
    if run.parent is not None:
        gone = "" if kin.parent_is_there else " (its journal is gone)"
        yield _fact("fork of", f"{one_line(run.parent, 80)}{at_pass(run.forked_at)}{gone}")
    for fork in kin.forks[:FORKS_SHOWN]:
        yield _fact("fork", f"{one_line(fork.run_id, 80)}{at_pass(fork.forked_at)}, {words(fork.status)}")
    if len(kin.forks) > FORKS_SHOWN:
        yield _fact("", f"… {count(len(kin.forks) - FORKS_SHOWN, 'more fork')}")


def _plan(run: RunSummary, view: RunView) -> Iterator[Block]:
    steps = view.wanted_steps
    if not steps:
        yield "muted", "No plan yet." if run.status == LIVE else "The run has no plan."
        return
    done = sum(step.status == "complete" for step in steps)
    yield "accent", f"Plan · {done} of {count(len(steps), 'step')} complete"
    for step in steps[:STEPS_SHOWN]:
        status = shown_status(step.status, run.status == LIVE)
        style = {"running": "running", "failed": "failed", "complete": ""}.get(status, "muted")
        text = f"{ROW_ICONS[status]} {one_line(step.step_id, 40)} {one_line(step.description, 300)}"
        yield style, f"{'  ' * min(step.depth, 6)}{text}"
    if len(steps) > STEPS_SHOWN:
        yield "muted", f"… {len(steps) - STEPS_SHOWN:,} more"


def _fact(label: str, value: str) -> Block:
    return "", f"{label:<{_LABEL}}{value}"


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
