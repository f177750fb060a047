"""A workflow in short, for the preview beside the list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aeon_core.money import money
from aeon_tui.reports.pipeline_rows import pipeline_rows
from aeon_tui.sources.workflow import WORKFLOW_ROW, WorkflowState
from aeon_widgets.icons import run_style
from aeon_widgets.text import Block, count, one_line

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary

_WHOLE = 16 * 1024 * 1024
"""Bytes up to which a transcript is read for a preview."""
_NAME_CELLS = 22


def workflow_blocks(run: RunSummary) -> list[Block]:
    """Return the preview of a workflow, from its row in the list and its transcript. Reads: for a thread.

    Raises UsageError, OSError where it cannot be read.
    """
    icon, style = run_style(run.status)
    waits = f", waits for {one_line(run.waits_for, 40)}" if run.waits_for and run.status == "running" else ""
    blocks: list[Block] = [
        ("bold", run.task[:4_000]),
        (style, f"{icon} {run.status.replace('_', ' ')}{waits}"),
        ("", ""),
    ]
    if Path(run.path).stat().st_size > _WHOLE:
        return [*blocks, ("muted", "a long transcript; open it to read it")]
    from aeon_core.journal.reader import read_records

    state, damage = WorkflowState(), list[str]()
    for record in read_records(Path(run.path), plans=False, damage=damage):
        state.apply(record)
    view = state.view
    if view.end is not None and view.end.get("error"):
        blocks.append(("high", one_line(str(view.end["error"]), 400)))
    spent = (
        f"{money(view.cost_usd)}, {count(view.api_calls, 'call')}, {view.input_tokens + view.output_tokens:,} tokens"
    )
    blocks += [("muted", f"model  {one_line(run.model, 80)}"), ("muted", f"cost   {spent}"), ("", "")]
    for row in pipeline_rows(state, run.status, state.last_ts, goes_on=run.status == "running"):
        if row.key != WORKFLOW_ROW:
            blocks.append((row.style, f"{row.icon} {row.name:<{_NAME_CELLS}} {row.word}".rstrip()))
    return [*blocks, *(("high", f"damaged: {problem}") for problem in damage[:3])]
