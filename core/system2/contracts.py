"""What an agent is told to do, and how it says that it has done it (REQ-041, REQ-082, REQ-083)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from system2.agents.tools import COMPLETION_TOOL

Status = Literal["success", "failure", "blockers"]

_TEXTS = {"type": "array", "items": {"type": "string"}}
COMPLETION_TOOL_SPEC: dict[str, Any] = {
    "name": COMPLETION_TOOL,
    "description": "Signal that you have completed your task. Call this when done.",
    "input_schema": {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": list(get_args(Status))},
            "files_changed": _TEXTS,
            "summary": {"type": "string"},
            "blockers": _TEXTS,
        },
        "required": ["status", "files_changed", "summary"],
    },
}
"""The tool that every agent has besides its own (AD-3)."""


@dataclass(frozen=True)
class DelegationContract:
    """What the orchestrator hands to an agent (REQ-041)."""

    objective: str
    inputs: list[str]
    """Files, or descriptions of what there is."""
    outputs: list[str]
    """The files that are expected."""
    constraints: list[str]
    completion_requirements: list[str]

    def to_message(self) -> str:
        """Return the contract as the text of the first user message, in labelled sections (REQ-082)."""
        sections = {
            "Objective": self.objective.strip(),
            "Inputs": _items(self.inputs),
            "Outputs": _items(self.outputs),
            "Constraints": _items(self.constraints),
            "Completion Summary Requirements": _items(self.completion_requirements),
        }
        return "\n\n".join(f"## {label}\n\n{text}" for label, text in sections.items()) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Return the contract as plain JSON; `DelegationContract(**it)` gives it back."""
        return asdict(self)


@dataclass(frozen=True)
class CompletionSignal:
    """What an agent says when it has ended (REQ-083)."""

    status: Status
    files_changed: list[str]
    summary: str
    blockers: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the signal as plain JSON; `CompletionSignal(**it)` gives it back."""
        return asdict(self)


def signal_of(given: Mapping[str, Any]) -> CompletionSignal:
    """Return the signal that a tool use's input is. Raises ValueError that says what is wrong, for the agent to mend.

    Blockers that are announced and not listed are what the summary says.
    """
    from aeon_core.tools.schema import Schema  # not loaded by whoever only shows a workflow

    signal = {**given, "blockers": given.get("blockers") or []}
    if problems := Schema(COMPLETION_TOOL_SPEC["input_schema"]).errors(signal):
        raise ValueError("; ".join(problems))
    status, summary, blockers = signal["status"], signal["summary"], list(signal["blockers"])
    if status == "blockers" and not blockers:
        blockers = [summary]
    return CompletionSignal(status, list(signal["files_changed"]), summary, blockers)


def signal_in(text: str) -> CompletionSignal | None:
    """Return the last completion signal that stands in a text as a JSON object, None where there is none."""
    from aeon_core.loose_json import values_in

    found = None
    for _, _, value in values_in(text):
        with suppress(ValueError, TypeError):
            found = signal_of({"files_changed": [], **value})
    return found


def implicit_completion(text: str) -> CompletionSignal:
    """Return the signal for an agent that ended without one: what its text holds, else success with the text."""
    return signal_in(text) or CompletionSignal("success", [], text.strip())


def _items(items: Iterable[str]) -> str:
    # What follows a line break is indented, so that no item opens a section of its own.
    lines = ["- " + item.strip().replace("\n", "\n  ") for item in items if item.strip()]
    return "\n".join(lines) or "- none"
