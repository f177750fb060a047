"""A run's progress as lines for a client that has no panes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import apply
from aeon_widgets.text import count

PHASES = {
    "plan": "planning",
    "execute": "running the plan",
    "evaluate": "judging the result",
    "refine": "refining the plan",
}


class ProgressLines:
    """Folds the records of one run, in order, into `view`."""

    def __init__(self) -> None:
        self.view = RunView()

    def line(self, record: Mapping[str, Any]) -> str:
        """Return what a record says about the progress; mostly nothing."""
        apply(self.view, record)
        kind = record["type"]
        if kind == "phase" and record["state"] == "started":
            return f"pass {record['pass']}: {PHASES.get(record['phase'], record['phase'])}"
        if kind == "step" and record["status"] == "running":
            return f"{record['step_id']}: {self.view.steps[record['step_id']].description}"
        if kind == "convergence" and (found := self.view.assessments[-1].requirements):
            return f"{sum(each.met == 'yes' for each in found)} of {count(len(found), 'requirement')} met"
        return str(record["message"]) if kind == "notice" else ""
