"""Steps and answer of a run as a person reads them, whichever way a step was executed (core FR-072 to FR-074)."""

from __future__ import annotations

import json
from typing import Any

from aeon_core.journal.view.formatting import brief, change, message, route
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.parts import RepairView, StepView
from aeon_tui.cli.output import STATUS_STYLES, Output
from aeon_tui.reports.pass_sections import Section
from aeon_widgets.icons import shown_status

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


def answer_title(simulated: bool) -> str:
    """Return what stands above an answer."""
    return f"Answer{' (simulated model)' if simulated else ''}"


def status_of(step: StepView, view: RunView) -> str:
    """Return the status to show of a step: nothing is running in a run that is not."""
    return shown_status(step.status, live=view.status == "running")


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


def notes(step: StepView, view: RunView) -> list[tuple[str, str]]:
    """Return level and text of what is to be said about a step: what was wrong, repaired, replaced, or failed."""
    found = [("warning", f"warning: {brief(text)}") for text in step.validator_errors]
    found += [("warning", repair_text(repair)) for repair in step.repairs]
    if step.mode == "fallback":
        found.append(("warning", "fallback: no tool was found, the model reasoned about the description"))
    if step.replaces is not None:
        found.append(("info", f"replaces {step.replaces}"))
    call = step.tool_calls[-1] if step.tool_calls else None
    lost = call is not None and not call.finished and view.status != "running"
    if call is not None and lost and call.effect not in ("pure", "idempotent"):
        found.append(("warning", f"unknown: {call.tool_name} was called, and the journal holds no outcome"))
    return found + [("error", f"error: {text}") for text in step.errors]


def repair_text(repair: RepairView) -> str:
    """Return one line about a repair attempt."""
    how = f"{repair.action_type.replace('_', ' ')}, {repair.method}, attempt {repair.attempt_number} of 2"
    if repair.error is not None:
        return f"not repaired ({how}): {message(repair.error)}"
    return f"repaired ({how}): {change(repair)}"


def readable(output: dict[str, Any]) -> str:
    """Return a step's output: a model's text as it is, all else as JSON."""
    if len(output) == 1 and isinstance(output.get("text"), str):
        return str(output["text"])
    return json.dumps(output, ensure_ascii=False)
