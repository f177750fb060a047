"""A run's progress as lines on stderr, told by its records as they are written (core FR-071 to FR-073)."""

from __future__ import annotations

from typing import Any

from aeon_core.journal.log_text import route
from aeon_core.journal.view import LogLine, RunView
from aeon_tui.cli._output import Output

QUIET = frozenset({"phase", "memory", "llm", "tool", "run_started", "run_finished", "pass", "validation"})
"""Types whose lines are printed only when they warn."""
MARKS = {"warning": ("warning: ", "yellow"), "error": ("error: ", "bold red")}


class Progress:
    """Takes every record, folds it into `view` and prints what a person wants to know meanwhile."""

    def __init__(self, out: Output) -> None:
        self.view = RunView()
        self._out = out

    def __call__(self, record: dict[str, Any]) -> None:
        before = self.view.log_count
        self.view.apply(record)
        kind = record.get("type")
        if kind == "run_started":
            self._started()
        if kind == "run_finished":
            return
        new = self.view.log_count - before
        for index, line in enumerate(self.view.log[-new:] if new else ()):
            self._line(line)
            if kind == "plan" and index == 0:
                self._plan()

    def _started(self) -> None:
        label = " (simulated)" if self.view.simulated else ""
        self._out.line(("run ", "dim"), self.view.run_id, (" · ", "dim"), f"{self.view.model}{label}")

    def _line(self, line: LogLine) -> None:
        if line.level in MARKS:
            self._out.line(MARKS[line.level], line.text)
        elif line.type not in QUIET:
            self._out.line((line.text, "dim" if line.type == "ttl" else ""))

    def _plan(self) -> None:
        if any(step.status != "pending" for step in self.view.steps.values()):
            return
        for step in self.view.steps.values():
            self._out.line(
                "  " * (1 + min(step.depth, 5)),
                (step.step_id, "bold"),
                f"  {step.description}",
                (f"  [{route(step)}]", "dim"),
            )
