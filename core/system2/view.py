"""The state of a workflow, computed from its transcript for screens, the status and the result.

Entries are dicts, as `TranscriptEntries` yields them and a workflow's listener gets them; unknown types and fields
are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from aeon_core.journal.summary import started_at
from system2.changes import FileChange
from system2.constants import DELEGATION_MAP, GATES
from system2.contracts import CompletionSignal, DelegationContract
from system2.cost import Amount, CostRecord, Count
from system2.policies import GateDecision, GateDecisionType

Gate = Annotated[int, Meta(ge=0, le=max(gate.number for gate in GATES))]


class EntryFields(Struct, frozen=True, kw_only=True):
    ts: str
    run: str
    agent: str | None = None
    """The agent that the entry is about; most types have one."""


class Config(Struct, frozen=True):
    project_root: str | None = None
    cost_warning_usd: Amount | None = None
    cost_ceiling_usd: Amount | None = None


class WorkflowResumed(EntryFields, frozen=True, kw_only=True):
    model: str
    config: Config
    simulated: bool | None = None


class WorkflowStart(WorkflowResumed, frozen=True, kw_only=True):
    task: str


class AgentStart(EntryFields, frozen=True, kw_only=True):
    agent: str
    contract: DelegationContract
    round: Count = 1
    feedback: str | None = None
    tools: list[str] | None = None
    source: str | None = None


class AgentSkipped(EntryFields, frozen=True, kw_only=True):
    agent: str
    reason: str


class AgentComplete(EntryFields, frozen=True, kw_only=True):
    agent: str
    cost: CostRecord
    completion: CompletionSignal | None = None
    halted: str | None = None
    files_changed: list[str] | None = None


class ApiRequest(EntryFields, frozen=True, kw_only=True):
    attempt: Count = 1


class CallUsage(Struct, frozen=True):
    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_tokens: Count = 0


class MessagePart(Struct, frozen=True):
    """A part of a message; a tool use has no text."""

    text: str | None = None


class ModelMessage(Struct, frozen=True):
    content: list[MessagePart] = []


class ApiResponse(EntryFields, frozen=True, kw_only=True):
    agent: str
    usage: CallUsage | None = None
    cost_usd: Amount | None = None
    error: dict[str, Any] | None = None
    retry_in_s: Amount | None = None
    message: ModelMessage | None = None


class ToolExec(EntryFields, frozen=True, kw_only=True):
    agent: str
    tool: str
    args_summary: str
    success: bool
    duration_ms: Amount
    input: dict[str, Any] | None = None
    flags: list[str] | None = None


class QuestionEntry(EntryFields, frozen=True, kw_only=True):
    """A person is asked something besides the gates, or has answered."""

    kind: str
    state: Literal["asked", "decided"]
    text: str
    details: list[str] | None = None
    choice: str | None = None
    feedback: str | None = None


class GateAsked(EntryFields, frozen=True, kw_only=True):
    gate: Gate
    artifact: str
    summary: str
    changes: list[FileChange] | None = None


class GateDecided(EntryFields, frozen=True, kw_only=True):
    gate: Gate
    decision: Literal["approve", "reject", "abort"]
    feedback: str | None = None


class NoteEntry(EntryFields, frozen=True, kw_only=True):
    message: str
    kind: str | None = None


class WorkflowEnd(EntryFields, frozen=True, kw_only=True):
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
    "question": QuestionEntry,
    "gate_asked": GateAsked,
    "gate_decision": GateDecided,
    "note": NoteEntry,
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


GateState = Literal["ahead", "asked", "approved", "rejected", "aborted"]
_DECIDED: dict[str, GateState] = {"approve": "approved", "reject": "rejected", "abort": "aborted"}
AgentState = Literal["waiting", "running", "complete", "halted", "skipped"]
Entry = Mapping[str, Any]


@dataclass
class AgentView:
    """One agent of the pipeline."""

    name: str
    state: AgentState = "waiting"
    contract: DelegationContract | None = None
    rounds: int = 0
    completion: CompletionSignal | None = None
    halted: str | None = None
    skip_reason: str | None = None
    files_changed: list[str] = field(default_factory=list)
    cost: list[CostRecord] = field(default_factory=list)
    """One for each round that has ended."""
    entries: list[Entry] = field(default_factory=list)
    """All entries about this agent, in order, from which its conversation is drawn."""

    @property
    def cost_usd(self) -> float:
        return sum(each.cost_usd for each in self.cost)

    @property
    def api_calls(self) -> int:
        return sum(each.api_calls for each in self.cost)


@dataclass
class GateView:
    """One gate: its last question, and all its decisions."""

    number: int
    title: str
    artifact: str
    state: GateState = "ahead"
    summary: str = ""
    changes: list[FileChange] = field(default_factory=list)
    """The files that changed before it was asked last."""
    decisions: list[GateDecision] = field(default_factory=list)


class WorkflowView:
    """The state of a workflow after the records so far."""

    def __init__(self) -> None:
        self.run_id: str = ""
        self.task: str = ""
        self.model: str = ""
        self.simulated: bool = False
        self.config: dict[str, Any] = {}
        self.started: str = ""
        self.agents: dict[str, AgentView] = {name: AgentView(name) for name in DELEGATION_MAP}
        self.gates: dict[int, GateView] = {
            gate.number: GateView(gate.number, gate.title, gate.artifact) for gate in GATES
        }
        self.running: str | None = None
        self.question: Entry | None = None
        """What a person is being asked, besides gates."""
        self.notices: list[Entry] = []
        self.cost_usd: float = 0.0
        self.api_calls: int = 0
        self.output_tokens: int = 0
        self.input_tokens: int = 0
        self.cached_tokens: int = 0
        """Input tokens that were read from the provider's prompt cache."""
        self.decisions: list[GateDecision] = []
        """What was decided at all gates, in order."""
        self.end: Entry | None = None
        """The `workflow_end`; None while the workflow continues, or if it was interrupted."""

    def apply(self, record: Entry) -> None:
        """Apply the next entry. Raises ValueError, and changes nothing, if it is not one that a workflow writes."""
        entry = parse_entry(record)
        match entry:
            case WorkflowResumed():
                self._resume(entry, record)
            case AgentStart():
                agent = self._agent(entry.agent)
                agent.state, agent.rounds, agent.halted = "running", entry.round, None
                agent.contract, self.running = entry.contract, agent.name
            case AgentSkipped():
                agent = self._agent(entry.agent)
                agent.state, agent.skip_reason = "skipped", entry.reason
            case AgentComplete():
                agent = self._agent(entry.agent)
                agent.state = "halted" if entry.halted else "complete"
                agent.completion, agent.halted = entry.completion, entry.halted
                agent.files_changed = list(dict.fromkeys([*agent.files_changed, *(entry.files_changed or ())]))
                agent.cost.append(entry.cost)
                self.running = None
            case ApiResponse(usage=CallUsage() as usage):
                self.input_tokens += usage.input_tokens
                self.output_tokens += usage.output_tokens
                self.cached_tokens += usage.cache_read_tokens
                self.api_calls += 1
                self.cost_usd = round(self.cost_usd + (entry.cost_usd or 0.0), 9)
            case QuestionEntry():
                self.question = record if entry.state == "asked" else None
            case GateAsked():
                gate = self.gates[entry.gate]
                gate.state, gate.summary, gate.artifact = "asked", entry.summary, entry.artifact
                gate.changes = entry.changes or []
            case GateDecided():
                gate, decision = self.gates[entry.gate], GateDecisionType(entry.decision)
                gate.state = _DECIDED[entry.decision]
                gate.decisions.append(GateDecision(gate.number, decision, entry.feedback, entry.ts))
                self.decisions.append(gate.decisions[-1])
            case NoteEntry():
                self.notices.append(record)
            case WorkflowEnd():
                self.end, self.running, self.question = record, None, None
        name = record.get("agent")
        if isinstance(name, str) and not isinstance(entry, GateAsked):
            self._agent(name).entries.append(record)

    @property
    def open_gate(self) -> GateView | None:
        return next((gate for gate in self.gates.values() if gate.state == "asked"), None)

    def _agent(self, name: str) -> AgentView:
        return self.agents.setdefault(name, AgentView(name))

    def _resume(self, entry: WorkflowResumed, record: Entry) -> None:
        if isinstance(entry, WorkflowStart):
            self.run_id, self.task, self.started = entry.run, entry.task, started_at(record)
        self.model, self.simulated = entry.model, bool(entry.simulated)
        self.config, self.end, self.question = dict(record["config"]), None, None
