"""Runs to list in the demos: the recorded one, and others made of its summary."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from aeon_core.journal.summary import RunSummary, summarise
from aeon_widgets.run_tree import RunLine, as_tree

RECORDING = Path(__file__).with_name("recording.jsonl")
"""The journal of the run that the demos show: real, on the simulated model, of two passes with repairs."""
RUN_ID = "20261120-093000-d3a0a1"
NOW = datetime(2026, 11, 20, 9, 40, tzinfo=UTC)
"""The fixed time of the demo, so that ages don't change."""
_OTHERS = ("running", "not_converged", "failed", "aborted", "interrupted", "ttl_expired")


def runs() -> list[RunSummary]:
    """Return the recorded run, and older ones, each with another status; one of them a fork of it."""
    run = replace(cast("RunSummary", summarise(RECORDING)), run_id=RUN_ID)
    return [run, *(_other(run, number, status) for number, status in enumerate(_OTHERS, start=1))]


def _other(run: RunSummary, number: int, status: str) -> RunSummary:
    began = datetime.fromisoformat(run.started) - timedelta(minutes=17 * number)
    other = replace(
        run,
        run_id=f"{began:%Y%m%d-%H%M%S}-d3a0a{number + 1}",
        status=status,
        started=began.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    )
    return replace(other, parent=run.run_id, forked_at=2) if status == "not_converged" else other


def lines() -> list[RunLine]:
    """Return the runs as the lines of a list."""
    return as_tree(runs())
