"""How a headless run's result is printed: what it gave on stdout, how it ended on stderr."""

from __future__ import annotations

import sys
from argparse import Namespace

from aeon_core.entities import RunResult
from aeon_core.journal.view.formatting import route
from aeon_core.journal.view.model import RunView, StepView
from aeon_core.stdio import is_terminal
from aeon_tui.cli.output import STATUS_STYLES, Output, stderr, stdout
from aeon_tui.cli.progress import Progress
from aeon_tui.reports.exit_summary import ending, why_not_usable
from aeon_tui.reports.run_report import Section, answer_title, notes, person_sections, readable, status_of

INDENT = "    "
NOTE_STYLES = {"text": "", "info": "dim", "warning": "yellow", "error": "red"}


def print_steps(out: Output, view: RunView) -> None:
    """Print each step: how it was executed, what was wrong and repaired, and its output or errors."""
    for step in view.steps.values():
        _print_step(out, step, view)


def print_sections(out: Output, sections: list[Section]) -> None:
    """Print each section under its title."""
    for section in sections:
        out.line()
        out.line((section.title, "bold"))
        for note in section.notes:
            out.paragraph(note.text, NOTE_STYLES[note.level], len(INDENT) * note.depth)


def print_answer(out: Output, answer: str | None, *, simulated: bool) -> None:
    """Print the answer, where there is one; a simulated model's is labelled."""
    if answer is None:
        return
    out.line()
    out.line((answer_title(simulated), "bold"))
    out.block(answer)


def _print_step(out: Output, step: StepView, view: RunView) -> None:
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


def print_result(args: Namespace, result: RunResult, progress: Progress, where: str) -> int:
    """Print a result, as JSON or with its steps, and return its exit code; `where` says where it is kept.

    With `--quiet` it is the answer as it is. What progress has already shown on the same terminal is left out.
    """
    out, err, view = stdout(), stderr(), progress.view
    on_screen = not args.quiet and progress.printed_all_steps and is_terminal(sys.stdout) and is_terminal(sys.stderr)
    if args.json:
        out.json(result.model_dump(mode="json"))
    elif args.quiet:
        if result.simulated:
            err.line((answer_title(simulated=True), "dim"))
        if result.answer is not None:
            out.block(result.answer)
        print_sections(err, person_sections(view))
    else:
        if not (on_screen or progress.guided):
            print_steps(out, view)
        print_answer(out, result.answer, simulated=result.simulated)
        print_sections(out, person_sections(view))
    if problem := why_not_usable(result):
        err.line(f"aeon-tui: {problem}")
    if not args.quiet:
        err.line((f"{ending(result, scores=not on_screen)} · {where}", "dim"))
    return result.exit_code
