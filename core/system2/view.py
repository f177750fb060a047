"""The state of a workflow, computed from its transcript for screens, the status and the result.

Entries are dicts, as `TranscriptEntries` yields them and a workflow's listener gets them; unknown types and fields
are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from system2.changes import FileChange
from system2.constants import DELEGATION_MAP, GATES
from system2.contracts import CompletionSignal, DelegationContract
from system2.cost import CostRecord
from system2.entries import (
    AgentComplete,
    AgentSkipped,
    AgentStart,
    ApiResponse,
    GateAsked,
    GateDecided,
    Note,
    Question,
    Usage,
    WorkflowEnd,
    WorkflowResumed,
    WorkflowStart,
    parse_entry,
)
from system2.policies import GateDecision, GateDecisionType

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


@dataclass
class GateView:
    """One gate: its last question, and all its decisions."""

    number: int
    title: str
    artifact: str
    state: Literal["ahead", "asked", "approved", "rejected", "aborted"] = "ahead"
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
        """The agent at work."""
        self.question: Entry | None = None
        """What a person is being asked, besides gates."""
        self.notices: list[Entry] = []
        self.cost_usd: float = 0.0
        self.api_calls: int = 0
        self.output_tokens: int = 0
        self.input_tokens: int = 0
        self.cached_tokens: int = 0
        """Input tokens that were read from the provider's prompt cache."""
        self.end: Entry | None = None
        """The `workflow_end`; None while the workflow continues, or if it was interrupted."""

    def apply(self, record: Entry) -> None:
        """Apply the next entry. Raises ValueError, and changes nothing, if it is not one that a workflow writes."""
        entry = parse_entry(record)
        match entry:
            case WorkflowStart():
                self.run_id, self.task, self.started = entry.run, entry.task, entry.ts
                self._resume(entry, record)
            case WorkflowResumed():
                self._resume(entry, record)
            case AgentStart() | AgentSkipped() | AgentComplete():
                self._change_agent(entry)
            case ApiResponse(usage=Usage() as usage):
                self._add_usage(usage, entry.cost_usd or 0.0)
            case Question():
                self.question = record if entry.state == "asked" else None
            case GateAsked() | GateDecided():
                self._change_gate(entry)
            case Note():
                self.notices.append(record)
            case WorkflowEnd():
                self.end, self.running, self.question = record, None, None
        name = record.get("agent")
        if isinstance(name, str) and not isinstance(entry, GateAsked):
            self._agent(name).entries.append(record)

    @property
    def open_gate(self) -> GateView | None:
        """The gate that waits for a decision."""
        return next((gate for gate in self.gates.values() if gate.state == "asked"), None)

    @property
    def decisions(self) -> list[GateDecision]:
        """What was decided at all gates, in order."""
        made = [decision for gate in self.gates.values() for decision in gate.decisions]
        return sorted(made, key=lambda each: each.timestamp)

    def _agent(self, name: str) -> AgentView:
        return self.agents.setdefault(name, AgentView(name))

    def _resume(self, entry: WorkflowResumed, record: Entry) -> None:
        self.model, self.simulated = entry.model, bool(entry.simulated)
        self.config, self.end, self.question = dict(record["config"]), None, None

    def _change_agent(self, entry: AgentStart | AgentSkipped | AgentComplete) -> None:
        agent = self._agent(entry.agent)
        match entry:
            case AgentStart():
                agent.state, agent.rounds, agent.halted = "running", entry.round, None
                agent.contract = entry.contract
                self.running = agent.name
            case AgentSkipped():
                agent.state, agent.skip_reason = "skipped", entry.reason
            case AgentComplete():
                agent.completion, agent.halted = entry.completion, entry.halted
                agent.state = "halted" if entry.halted else "complete"
                agent.files_changed = list(dict.fromkeys([*agent.files_changed, *(entry.files_changed or ())]))
                agent.cost.append(entry.cost)
                self.running = None

    def _add_usage(self, usage: Usage, cost_usd: float) -> None:
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cached_tokens += usage.cache_read_tokens
        self.api_calls += 1
        self.cost_usd = round(self.cost_usd + cost_usd, 9)

    def _change_gate(self, entry: GateAsked | GateDecided) -> None:
        gate = self.gates[entry.gate]
        if isinstance(entry, GateAsked):
            gate.state, gate.summary, gate.artifact = "asked", entry.summary, entry.artifact
            gate.changes = entry.changes or []
        else:
            decision = GateDecisionType(entry.decision)
            gate.decisions.append(GateDecision(gate.number, decision, entry.feedback, entry.ts))
            gate.state = _DECIDED[decision]


_DECIDED: dict[GateDecisionType, Literal["approved", "rejected", "aborted"]] = {
    GateDecisionType.APPROVE: "approved",
    GateDecisionType.REJECT: "rejected",
    GateDecisionType.ABORT: "aborted",
}
