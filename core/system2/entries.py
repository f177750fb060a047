"""The types of entries in a workflow's transcript, with the fields that are read.

A file may hold anything: `parse_entry` is the only place where entries are checked, so that code that shows them
can rely on their shape. Fields that are not listed here may hold any value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from system2.changes import FileChange
from system2.constants import GATES
from system2.contracts import CompletionSignal, DelegationContract
from system2.cost import Amount, CostRecord, Count

Gate = Annotated[int, Meta(ge=0, le=max(gate.number for gate in GATES))]


class EntryFields(Struct, frozen=True, kw_only=True):
    """The fields of every entry."""

    ts: str
    run: str
    agent: str | None = None
    """The agent that the entry is about; most types have one."""


class Config(Struct, frozen=True):
    """The workflow's project and settings."""

    project_root: str | None = None
    cost_warning_usd: Amount | None = None
    cost_ceiling_usd: Amount | None = None


class WorkflowResumed(EntryFields, frozen=True, kw_only=True):
    """A process continues the workflow."""

    model: str
    config: Config
    simulated: bool | None = None


class WorkflowStart(WorkflowResumed, frozen=True, kw_only=True):
    """The first entry."""

    task: str


class AgentStart(EntryFields, frozen=True, kw_only=True):
    """An agent begins a round."""

    agent: str
    contract: DelegationContract
    round: Count = 1
    feedback: str | None = None
    tools: list[str] | None = None
    source: str | None = None


class AgentSkipped(EntryFields, frozen=True, kw_only=True):
    """An agent was not needed."""

    agent: str
    reason: str


class AgentComplete(EntryFields, frozen=True, kw_only=True):
    """An agent's round has ended, with a completion or halted."""

    agent: str
    cost: CostRecord
    completion: CompletionSignal | None = None
    halted: str | None = None
    files_changed: list[str] | None = None


class ApiRequest(EntryFields, frozen=True, kw_only=True):
    """A model is called."""

    attempt: Count = 1


class Usage(Struct, frozen=True):
    """The tokens of a call."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_tokens: Count = 0


class Part(Struct, frozen=True):
    """A part of a message; a tool use has no text."""

    text: str | None = None


class Message(Struct, frozen=True):
    """What a model said."""

    content: list[Part] = []


class ApiResponse(EntryFields, frozen=True, kw_only=True):
    """A model has answered, or the call has failed."""

    agent: str
    usage: Usage | None = None
    cost_usd: Amount | None = None
    error: dict[str, Any] | None = None
    retry_in_s: Amount | None = None
    message: Message | None = None


class ToolExec(EntryFields, frozen=True, kw_only=True):
    """An agent has used a tool."""

    agent: str
    tool: str
    args_summary: str
    success: bool
    duration_ms: Amount
    input: dict[str, Any] | None = None
    flags: list[str] | None = None


class Question(EntryFields, frozen=True, kw_only=True):
    """A person is asked something besides the gates, or has answered."""

    kind: str
    state: Literal["asked", "decided"]
    text: str
    details: list[str] | None = None
    choice: str | None = None
    feedback: str | None = None


class GateAsked(EntryFields, frozen=True, kw_only=True):
    """A gate waits for a decision."""

    gate: Gate
    artifact: str
    summary: str
    changes: list[FileChange] | None = None


class GateDecided(EntryFields, frozen=True, kw_only=True):
    """A gate was decided."""

    gate: Gate
    decision: Literal["approve", "reject", "abort"]
    feedback: str | None = None


class Note(EntryFields, frozen=True, kw_only=True):
    """A warning, or something else that a person should know."""

    message: str
    kind: str | None = None


class WorkflowEnd(EntryFields, frozen=True, kw_only=True):
    """The workflow has ended."""

    status: str
    exit_code: Annotated[int, Meta(ge=0, le=255)]
    duration_s: Amount
    error: str | None = None


_TYPES: dict[str, type[EntryFields]] = {
    "workflow_start": WorkflowStart,
    "workflow_resumed": WorkflowResumed,
    "agent_start": AgentStart,
    "agent_skipped": AgentSkipped,
    "agent_complete": AgentComplete,
    "api_request": ApiRequest,
    "api_response": ApiResponse,
    "tool_exec": ToolExec,
    "question": Question,
    "gate_asked": GateAsked,
    "gate_decision": GateDecided,
    "note": Note,
    "workflow_end": WorkflowEnd,
}


def parse_entry(entry: Mapping[str, Any]) -> EntryFields | None:
    """Return an entry as an instance of its type, or None if the type is unknown.

    Raises ValueError, which names the field that is missing or has the wrong type.
    """
    kind = _TYPES.get(str(entry.get("type")))
    if kind is None:
        return None
    try:
        return convert(entry, kind)
    except ValidationError as error:
        raise ValueError(_plain(str(error))) from None


def _plain(problem: str) -> str:
    """Reword msgspec's "Expected `str`, got `int` - at `$.task`" as "task: expected str, got int"."""
    what, _, place = problem.replace("`", "").partition(" - at ")
    field = place.removeprefix("$").removeprefix(".")
    return f"{field}: {what[:1].lower()}{what[1:]}" if field else f"{what[:1].lower()}{what[1:]}"
