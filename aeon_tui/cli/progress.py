"""A run's progress as lines on stderr, told by its records as they are written (core FR-071 to FR-073)."""

from __future__ import annotations

from typing import Any

from aeon_core.journal.values import brief
from aeon_core.journal.view import formatting, reducer
from aeon_core.journal.view.formatting import route
from aeon_core.journal.view.model import LogLine, RunView
from aeon_tui.cli.output import Output

QUIET = frozenset({"phase", "memory", "run_started", "run_finished", "pass", "validation"})
"""Types whose lines are printed only when they warn."""
VERBOSE = frozenset({"ttl", "profile", "llm", "tool"})
"""Types whose lines are printed with --verbose, or when they warn."""
UNGUIDED = frozenset({"advisory", "questions"})
"""Types whose lines a guided run leaves out: it tells the story, not the bookkeeping."""
GUIDED_CELLS = 110
MARKS = {"warning": ("warning: ", "yellow"), "error": ("error: ", "bold red")}


class Progress:
    """Takes every record, folds it into `view` and prints what a person wants to know meanwhile.

    A guided run's is short: what was found, repaired, done and decided.
    """

    def __init__(self, out: Output, *, guided: bool = False, verbose: bool = False) -> None:
        self.view = RunView()
        self.guided = guided
        self._out = out
        self._quiet = QUIET if verbose else QUIET | VERBOSE
        self._steps_printed: set[str] = set()
        self._pass_told = 0
        self._last_found = ""
        self._reasons_told: set[tuple[int, str]] = set()

    def __call__(self, record: dict[str, Any]) -> None:
        before = self.view.log_count
        reducer.apply(self.view, record)
        kind = record.get("type")
        if kind == "run_started":
            self._started()
        if kind == "run_finished" or self._told(record, kind):
            return
        if kind == "step":
            self._steps_printed.add(str(record.get("step_id")))
        new = self.view.log_count - before
        for index, line in enumerate(self.view.log[-new:] if new else ()):
            self._line(line)
            if kind == "plan" and self.guided:
                break
            if kind == "plan" and index == 0:
                self._plan()

    @property
    def printed_all_steps(self) -> bool:
        """Whether every step of the plan was printed as it ended."""
        return self._steps_printed.issuperset(self.view.steps)

    def _told(self, record: dict[str, Any], kind: Any) -> bool:
        """Print a record that has its own format; return whether that covers the record."""
        if kind == "phase":
            self._begin_pass(record)
        elif kind == "convergence":
            self._assessed()
        elif kind == "notice" and record.get("kind") == "questions":
            pass  # The result ends with them.
        elif kind == "step" and self.guided and record.get("status") == "running":
            pass
        else:
            return self._told_before(kind)
        return True

    def _told_before(self, kind: Any) -> bool:
        """Return whether validation repeats its last findings, as it does at the end of a run."""
        if kind != "validation" or not self.view.log:
            return False
        before, self._last_found = self._last_found, self.view.log[-1].text
        return before == self._last_found

    def _started(self) -> None:
        label = " (simulated)" if self.view.simulated else ""
        self._out.line(("run ", "dim"), self.view.run_id, (" · ", "dim"), f"{self.view.model}{label}")

    def _begin_pass(self, record: dict[str, Any]) -> None:
        number = self.view.current_pass
        if self.view.adaptive and number > self._pass_told and record.get("state") == "started":
            self._pass_told = number
            self._out.line((f"── pass {number} ──", "bold"))

    def _assessed(self) -> None:
        """Print an assessment and the reasons that its line does not name; of a pass assessed twice, only new ones."""
        found = self.view.assessments[-1]
        reasons = [
            reason
            for reason in formatting.scored_reasons(found)
            if (found.pass_number, reason) not in self._reasons_told
        ]
        self._reasons_told |= {(found.pass_number, reason) for reason in reasons}
        style = "green" if found.converged else "yellow"
        named = formatting.reasons(found)
        if len(reasons) == len(named):
            self._out.line((formatting.convergence(found), style))
        else:
            named = []
        if not found.converged and not self.guided:
            for reason in reasons:
                if reason not in named:
                    self._out.line((f"pass {found.pass_number} · {reason}", style))

    def _line(self, line: LogLine) -> None:
        if self.guided and line.type in UNGUIDED:
            return
        text = brief(line.text, GUIDED_CELLS) if self.guided else line.text
        if line.level in MARKS:
            self._out.line(MARKS[line.level], text)
        elif line.type not in self._quiet:
            self._out.line((text, "dim" if line.type in VERBOSE else ""))
            if line.type == "refinement" and not self.guided:
                self._refined()

    def _refined(self) -> None:
        refinement = self.view.refinements[-1]
        self._out.line(f"    because: {formatting.refinement_cause(refinement)}")
        if change := formatting.refinement_change(refinement):
            self._out.line(f"    change: {change}")

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
