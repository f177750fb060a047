"""A run's progress (on stderr) and result (on stdout) as text (core FR-071 to FR-073)."""

from __future__ import annotations

import contextlib
import shlex
import sys
import threading
from argparse import Namespace
from collections.abc import Iterator
from time import monotonic
from typing import Any

from aeon_core.entities import RunResult
from aeon_core.journal.values import brief
from aeon_core.journal.view import formatting, reducer
from aeon_core.journal.view.formatting import route
from aeon_core.journal.view.model import LogLine, RunView, StepView
from aeon_core.paths import run_command
from aeon_core.process import is_terminal
from aeon_tui.cli.output import STATUS_STYLES, OutputStream, stderr, stdout
from aeon_tui.reports.exit_summary import ending, why_not_usable
from aeon_tui.reports.run_report import ReportSection, answer_title, notes, person_sections, readable, status_of

QUIET = frozenset({"phase", "memory", "run_started", "run_finished", "pass", "validation"})
"""Record types whose lines are printed only if they warn."""
VERBOSE = frozenset({"ttl", "profile", "llm", "tool"})
"""Record types whose lines are printed with --verbose, or if they warn."""
UNGUIDED = frozenset({"advisory", "questions"})
"""Record types whose lines a guided run leaves out: it shows the story, not the bookkeeping."""
WAIT_SECONDS = 15.0
"""After which time a wait for a model or tool is printed, and how often it is looked at."""
NO_RESULT = 1
"""The exit code for a run that has not ended and so has none of its own."""
GUIDED_CELLS = 110
MARKS = {"warning": ("warning: ", "yellow"), "error": ("error: ", "bold red")}


class ProgressPrinter:
    """Folds every record into `view` and prints progress.

    A guided run's progress is short: what was found, repaired, done and decided.
    """

    def __init__(self, out: OutputStream, *, guided: bool = False, verbose: bool = False) -> None:
        self.view = RunView()
        self.guided = guided
        self._out = out
        self._quiet = QUIET if verbose else QUIET | VERBOSE
        self._steps_printed: set[str] = set()
        self._pass_reported = 0
        self._last_found = ""
        self._reasons_reported: set[tuple[int, str]] = set()
        self._waits: dict[str, tuple[str, float]] = {}
        """What is waited for, and since when, by the id of its call."""
        self._next_wait = WAIT_SECONDS

    def __call__(self, record: dict[str, Any]) -> None:
        before = self.view.log_count
        self.fold(record)
        kind = record.get("type")
        if kind == "run_started":
            self._started()
        if kind == "run_finished" or self._reported(record, kind):
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

    def fold(self, record: dict[str, Any]) -> None:
        """Fold a record without printing it."""
        reducer.apply(self.view, record)
        if record.get("type") in ("llm", "tool"):
            self._call(record)

    def _call(self, record: dict[str, Any]) -> None:
        call_id = str(record.get("call_id"))
        if record.get("state") == "started":
            # Which model of a chain is asked, or whether the judge's, is known only when it has answered.
            what = f"{record.get('step_id') or record.get('purpose')} · waiting for "
            self._waits[call_id] = (what + str(record.get("tool_name") or "the model"), monotonic())
        else:
            self._waits.pop(call_id, None)
        self._next_wait = WAIT_SECONDS

    @contextlib.contextmanager
    def reporting_waits(self) -> Iterator[None]:
        """Meanwhile, let a thread print what the run waits for, if a call takes long."""
        ended = threading.Event()

        def report() -> None:
            while not ended.wait(WAIT_SECONDS):
                self.report_wait()

        thread = threading.Thread(target=report, name="aeon-waits", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def report_wait(self) -> None:
        """Print the longest wait, if it has become twice as long as when it was printed last."""
        what, since = next(iter(self._waits.copy().values()), ("", monotonic()))
        if (waited := monotonic() - since) >= self._next_wait:
            self._next_wait = 2 * waited
            self._out.line((f"{what} · {waited:.0f} s", "dim"))

    @property
    def waits_since(self) -> int | None:
        """The seq of the record since which the run waits for a person; None if it does not."""
        return self.view.last_seq if self.view.asked else None

    @property
    def printed_all_steps(self) -> bool:
        """Whether every step of the plan was printed when it ended."""
        return self._steps_printed.issuperset(self.view.steps)

    def _reported(self, record: dict[str, Any], kind: Any) -> bool:
        """Print a record that has its own format; return whether that covers the record."""
        if kind == "phase":
            self._begin_pass(record)
        elif kind == "convergence":
            self._assessed()
        elif kind == "notice" and record.get("kind") == "questions":
            pass  # The result contains them.
        elif kind == "step" and self.guided and record.get("status") == "running":
            pass
        else:
            return self._reported_before(kind)
        return True

    def _reported_before(self, kind: Any) -> bool:
        """Return whether validation repeats its last findings, as at the end of a run."""
        if kind != "validation" or not self.view.log:
            return False
        before, self._last_found = self._last_found, self.view.log[-1].text
        return before == self._last_found

    def _started(self) -> None:
        label = " (simulated)" if self.view.simulated else ""
        self._out.line(("run ", "dim"), self.view.run_id, (" · ", "dim"), f"{self.view.model}{label}")

    def _begin_pass(self, record: dict[str, Any]) -> None:
        number = self.view.current_pass
        if self.view.adaptive and number > self._pass_reported and record.get("state") == "started":
            self._pass_reported = number
            self._out.line((f"── pass {number} ──", "bold"))

    def _assessed(self) -> None:
        """Print an assessment and further reasons; for a pass assessed twice, only new ones."""
        found = self.view.assessments[-1]
        reasons = [
            reason
            for reason in formatting.scored_reasons(found)
            if (found.pass_number, reason) not in self._reasons_reported
        ]
        self._reasons_reported |= {(found.pass_number, reason) for reason in reasons}
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


INDENT = "    "
NOTE_STYLES = {"text": "", "info": "dim", "warning": "yellow", "error": "red"}


def print_steps(out: OutputStream, view: RunView) -> None:
    """Print each step: how it was executed, its problems and repairs, and its output or errors."""
    for step in view.steps.values():
        _print_step(out, step, view)


def print_sections(out: OutputStream, sections: list[ReportSection]) -> None:
    """Print each section under its title."""
    for section in sections:
        out.line()
        out.line((section.title, "bold"))
        for note in section.notes:
            out.paragraph(note.text, NOTE_STYLES[note.level], len(INDENT) * note.depth)


def print_answer(out: OutputStream, answer: str | None, *, simulated: bool) -> None:
    """Print the answer, if there is one; a simulated model's is labelled."""
    if answer is None:
        return
    out.line()
    out.line((answer_title(simulated), "bold"))
    out.block(answer)


def _print_step(out: OutputStream, step: StepView, view: RunView) -> None:
    indent, status = "  " * min(step.depth, 5), status_of(step, view)
    out.line(
        indent,
        (step.step_id, "bold"),
        " ",
        (status, STATUS_STYLES.get(status, "")),
        (f" · {route(step)}", "dim"),
        f" · {step.description}",
    )
    inner = indent + INDENT
    for level, text in notes(step, view):
        out.line(inner, (text, NOTE_STYLES[level]))
    if step.output is not None:
        out.block(readable(step.output), indent=inner)


def print_result(args: Namespace, result: RunResult, progress: ProgressPrinter, where: str) -> int:
    """Print a result, as JSON or with its steps, and return its exit code; `where` is the place of its journal.

    With `--quiet`, that is only the answer. What progress has already shown on the same terminal is left out.
    """
    out, err, view = stdout(), stderr(), progress.view
    on_screen = not args.quiet and progress.printed_all_steps and is_terminal(sys.stdout) and is_terminal(sys.stderr)
    if args.json:
        out.json(result.model_dump(mode="json"))
    elif args.quiet:
        if result.answer is not None:
            if result.simulated:
                err.line((answer_title(simulated=True), "dim"))
            out.block(result.answer)
        print_sections(err, person_sections(view))
    else:
        if not (on_screen or progress.guided):
            print_steps(out, view)
        print_answer(out, result.answer, simulated=result.simulated)
        print_sections(out, person_sections(view))
    if problem := why_not_usable(result):
        err.line(f"aeon-tui: {problem}{_continuation(args, result, view)}")
    if not args.quiet:
        err.line((f"{ending(result, scores=not on_screen)} · {where}", "dim"))
    return result.exit_code


def _continuation(args: Namespace, result: RunResult, view: RunView) -> str:
    """Return how to continue a run after an error; empty if that is impossible, or the error explains it."""
    is_explained = result.error is None or "resume" in str(result.error.get("message"))
    if result.journal is None or is_explained or not view.resumable:
        return ""
    more = ["--budget", "N"] if result.status == "cost_ceiling" else []
    if args.config is not None:
        # Prices and servers are not taken from a journal.
        more += ["--config", args.config]
    return f" (to continue: {run_command('resume', result.journal, shlex.join(more))})"
