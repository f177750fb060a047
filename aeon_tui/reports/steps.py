"""Steps and answer of a run as a person reads them, whichever way a step was executed (core FR-072 to FR-074)."""

from __future__ import annotations

import json
from typing import Any

from aeon_core.journal.values import brief
from aeon_core.journal.view.formatting import change, message
from aeon_core.journal.view.model import RepairView, RunView, StepView
from aeon_widgets.icons import shown_status


def answer_title(simulated: bool) -> str:
    """Return what stands above an answer."""
    return f"Answer{' (simulated model)' if simulated else ''}"


def status_of(step: StepView, view: RunView) -> str:
    """Return the status to show of a step: nothing is running in a run that is not."""
    return shown_status(step.status, live=view.status == "running")


def notes(step: StepView, view: RunView) -> list[tuple[str, str]]:
    """Return level and text of what is to be said about a step: what was wrong, repaired, replaced, or failed."""
    found = [("warning", f"warning: {brief(text)}") for text in step.validator_errors]
    found += [("warning", repair_text(repair)) for repair in step.repairs]
    if step.mode == "fallback":
        found.append(("warning", "fallback: no tool found, so the model reasoned from the description"))
    if step.replaces is not None:
        found.append(("info", f"replaces {step.replaces}"))
    call = step.tool_calls[-1] if step.tool_calls else None
    lost = call is not None and not call.finished and view.status != "running"
    if call is not None and lost and call.effect not in ("pure", "idempotent"):
        found.append(("warning", f"unknown: {call.tool_name} was called, but the journal has no outcome"))
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
