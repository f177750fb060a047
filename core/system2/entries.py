"""The entries of a workflow's transcript (REQ-125): the specification's types, and what going on after a crash needs.

Each is a record behind the journal's envelope, so that whatever reads journals reads transcripts. Readers ignore types
and fields that they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from aeon_core.journal.records import Nulls, Record


class WorkflowStart(Record):
    """First line of a workflow."""

    type: Literal["workflow_start"] = Field(default="workflow_start", exclude=True)
    task: str
    config: dict[str, Any]
    model: str
    simulated: bool = False
    price: dict[str, Any] | None = None
    """US dollars per million tokens, `input` and `output`, and `source`."""
    versions: dict[str, str] = Field(default_factory=dict)
    documents: dict[str, str] = Field(default_factory=dict)
    """The SHA-256 of each document of the workflow that was there before it."""
    snapshot: str | None = None
    """Names the project's files as the workflow found them."""


class WorkflowResumed(Record):
    """Another process goes on with the workflow."""

    type: Literal["workflow_resumed"] = Field(default="workflow_resumed", exclude=True)
    config: dict[str, Any]
    model: str
    simulated: bool = False


class AgentStart(Record):
    """Work is delegated to an agent, or it goes on after a rejection; then `feedback` says why, and `round` counts."""

    type: Literal["agent_start"] = Field(default="agent_start", exclude=True)
    agent: str
    contract: dict[str, Any]
    round: int = 1
    feedback: str | None = None
    model: str
    system: str
    tools: list[str]
    source: str
    """The file that defines the agent."""


class AgentSkipped(Record):
    """An agent is not needed (REQ-047)."""

    type: Literal["agent_skipped"] = Field(default="agent_skipped", exclude=True)
    agent: str
    reason: str


class ApiRequest(Record):
    """Before each attempt of a model call.

    `messages` are turns of the conversation in the form of Converse. With `since`, the `seq` of the last request,
    they are those behind the first `kept` ones of that request: a transcript grows with what is new.
    """

    type: Literal["api_request"] = Field(default="api_request", exclude=True)
    agent: str
    purpose: Literal["work", "summary"] = "work"
    message_count: int
    tool_count: int
    attempt: int
    messages: list[dict[str, Any]]
    since: int | None = None
    kept: int | None = None


class ApiResponse(Record):
    """After each attempt: the assistant's `message`, or the `error`."""

    type: Literal["api_response"] = Field(default="api_response", exclude=True)
    agent: str
    purpose: Literal["work", "summary"] = "work"
    attempt: int
    stop_reason: str | None = None
    usage: dict[str, int] | None = None
    message: dict[str, Any] | None = None
    cost_usd: float | None = None
    latency_ms: float = 0.0
    error: dict[str, Any] | None = None
    retry_in_s: float | None = None


class ToolExec(Record):
    """A tool use was answered: carried out, or refused."""

    type: Literal["tool_exec"] = Field(default="tool_exec", exclude=True)
    agent: str
    tool: str
    tool_use_id: str
    args_summary: str
    success: bool
    duration_ms: float
    input: dict[str, Any]
    result: str
    flags: list[str] | None = None
    """What in the result looks like an instruction to the model (REQ-113)."""


class QuestionEntry(Record):
    """A person was asked something that is no gate, and what was chosen. A Bash command is one of the kinds."""

    type: Literal["question"] = Field(default="question", exclude=True)
    agent: str
    kind: str
    text: str
    state: Literal["asked", "decided"]
    choices: list[str]
    details: list[str] | None = None
    choice: str | None = None
    feedback: str | None = None
    """Why a command was refused, in the person's words."""


class GateAsked(Record):
    """A gate waits for a decision."""

    type: Literal["gate_asked"] = Field(default="gate_asked", exclude=True)
    gate: int
    agent: str | None = None
    artifact: str
    summary: str
    changes: list[dict[str, Any]] = Field(default_factory=list)
    """The files that changed since the last gate: `path`, `status`, and where there are any `diff`, `added`, `removed`,
    `was`, `note` and `flag`."""


class GateDecided(Record):
    """A gate was decided (REQ-123)."""

    type: Literal["gate_decision"] = Field(default="gate_decision", exclude=True)
    gate: int
    decision: Literal["approve", "reject", "abort"]
    feedback: str | None = None
    agent: str | None = None
    snapshot: str | None = None
    """Names the project's files as they were when it was decided."""


class AgentComplete(Record):
    """An agent has ended: with a completion, or `halted` before one."""

    type: Literal["agent_complete"] = Field(default="agent_complete", exclude=True)
    nulls: ClassVar[Nulls] = "kept"
    agent: str
    cost: dict[str, Any]
    completion: dict[str, Any] | None = None
    halted: str | None = None
    files_changed: list[str] = Field(default_factory=list)
    """What its Write and Edit calls did change, whatever the completion says."""


class Notice(Record):
    """Something that a person should know."""

    type: Literal["note"] = Field(default="note", exclude=True)
    kind: Literal["warning", "cost_warning", "context_warning", "context_summarized", "retry", "flagged"]
    message: str
    agent: str | None = None
    paths: list[str] = Field(default_factory=list)
    """The files that the agent changed though they are not its to change."""


class WorkflowEnd(Record):
    """Last line of a process's part."""

    type: Literal["workflow_end"] = Field(default="workflow_end", exclude=True)
    total_cost: dict[str, Any]
    duration_s: float
    status: Literal["completed", "aborted", "failed", "cost_ceiling"]
    exit_code: int
    agents_invoked: list[str] = Field(default_factory=list)
    error: str | None = None


_BY_TYPE: dict[str, type[Record]] = {
    str(model.model_fields["type"].default): model
    for model in (
        *(WorkflowStart, WorkflowResumed, AgentStart, AgentSkipped, ApiRequest, ApiResponse, ToolExec, QuestionEntry),
        *(GateAsked, GateDecided, AgentComplete, Notice, WorkflowEnd),
    )
}


def check(record: Mapping[str, Any]) -> None:
    """Raise ValueError where an entry has not the fields of its type; what is not known is passed over."""
    model = _BY_TYPE.get(str(record.get("type")))
    if model is not None:
        model.model_validate({name: value for name, value in record.items() if name in model.model_fields})
