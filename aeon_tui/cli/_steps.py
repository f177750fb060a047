"""Steps and answer of a run as a person reads them, whichever way a step was executed (core FR-072 to FR-074)."""

from __future__ import annotations

import json
from typing import Any

from aeon_core.journal.log_text import brief, change, message, route
from aeon_core.journal.parts import RepairView, StepView
from aeon_core.journal.view import RunView
from aeon_tui.cli._output import STATUS_STYLES, Output

INDENT = "    "


def print_steps(out: Output, view: RunView) -> None:
    """Print each step: how it was executed, what was wrong and repaired, and its output or errors."""
    for step in view.steps.values():
        _print_step(out, step)


def print_answer(out: Output, view: RunView) -> None:
    """Print the answer, where there is one; a simulated model's is labelled."""
    if view.result is None or view.result.answer is None:
        return
    out.line()
    out.line((f"Answer{' (simulated model)' if view.simulated else ''}", "bold"))
    out.block(view.result.answer)


def _print_step(out: Output, step: StepView) -> None:
    indent = "  " * min(step.depth, 5)
    out.line(
        indent,
        (step.step_id, "bold"),
        " ",
        (step.status, STATUS_STYLES.get(step.status, "")),
        (f" · {route(step)}", "dim"),
        f" · {step.description}",
    )
    inner = indent + INDENT
    for text in step.validator_errors:
        out.line(inner, (f"warning: {brief(text)}", "yellow"))
    for repair in step.repairs:
        out.line(inner, (_repair(repair), "yellow"))
    if step.mode == "fallback":
        out.line(inner, ("fallback: no tool was found, the model reasoned about the description", "yellow"))
    if step.replaces is not None:
        out.line(inner, (f"replaces {step.replaces}", "dim"))
    for text in step.errors:
        out.line(inner, (f"error: {text}", "red"))
    if step.output is not None:
        out.block(_readable(step.output), indent=inner)


def _repair(repair: RepairView) -> str:
    how = f"{repair.action_type.replace('_', ' ')}, {repair.method}, attempt {repair.attempt_number} of 2"
    if repair.error is not None:
        return f"not repaired ({how}): {message(repair.error)}"
    return f"repaired ({how}): {change(repair)}"


def _readable(output: dict[str, Any]) -> str:
    if len(output) == 1 and isinstance(output.get("text"), str):
        return str(output["text"])
    return json.dumps(output, ensure_ascii=False)
