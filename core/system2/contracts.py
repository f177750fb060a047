"""What an agent is told to do, and how it says that it has done it (REQ-041, REQ-082, REQ-083)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from aeon_core.json_safe import parse_json
from aeon_core.suggest import shown
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
_MAX_OPENINGS = 200
"""How many braces of a text are tried as the beginning of a signal."""


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
    summary = given.get("summary")
    status: Status | None = next((each for each in get_args(Status) if each == given.get("status")), None)
    if status is None:
        raise ValueError(f"status must be one of {', '.join(get_args(Status))}, got {shown(given.get('status'))}")
    if not isinstance(summary, str):
        raise ValueError(f"summary must be a text, got {type(summary).__name__}")
    files = _texts("files_changed", given.get("files_changed"))
    blockers = _texts("blockers", given.get("blockers") or [])
    if status == "blockers" and not blockers:
        blockers = [summary]
    return CompletionSignal(status, files, summary, blockers)


def signal_in(text: str) -> CompletionSignal | None:
    """Return the last completion signal that stands in a text as a JSON object, None where there is none."""
    found = None
    for value in _objects(text):
        try:
            found = signal_of({"files_changed": [], **value})
        except ValueError:
            continue
    return found


def implicit_completion(text: str) -> CompletionSignal:
    """Return the signal for an agent that ended without one: what its text holds, else success with the text."""
    return signal_in(text) or CompletionSignal("success", [], text.strip())


def _texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{name} must be a list of texts")
    return list(value)


def _items(items: Iterable[str]) -> str:
    # What follows a line break is indented, so that no item opens a section of its own.
    lines = ["- " + item.strip().replace("\n", "\n  ") for item in items if item.strip()]
    return "\n".join(lines) or "- none"


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    at = tried = 0
    while (start := text.find("{", at)) >= 0 and tried < _MAX_OPENINGS:
        tried += 1
        try:
            _, end = decoder.raw_decode(text, start)
            value = parse_json(text[start:end])
        except (ValueError, RecursionError):
            at = start + 1
            continue
        at = end
        yield value
