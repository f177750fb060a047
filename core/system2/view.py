"""A workflow as its transcript tells it, reduced for the screen, live and past, and for the status and the result.

Entries come as dicts, as `TranscriptEntries` and a workflow's listener give them; unknown types and fields are
passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from system2.constants import DELEGATION_MAP, GATES
from system2.contracts import CompletionSignal, DelegationContract
from system2.cost import CostRecord
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
    """All that is about this agent, in order: what its conversation is painted from."""


@dataclass
class GateView:
    """One gate: what was asked last, and all that was decided."""

    number: int
    title: str
    artifact: str
    state: Literal["ahead", "asked", "approved", "rejected", "aborted"] = "ahead"
    summary: str = ""
    changes: list[Mapping[str, Any]] = field(default_factory=list)
    """The files that changed before it was asked last, as its record has them."""
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
        """The agent that works."""
        self.question: Entry | None = None
        """What a person is being asked, besides gates."""
        self.notices: list[Entry] = []
        self.cost_usd: float = 0.0
        self.api_calls: int = 0
        self.output_tokens: int = 0
        self.input_tokens: int = 0
        self.cached_tokens: int = 0
        """Those of the input that were read from the provider's prompt cache."""
        self.end: Entry | None = None
        """The `workflow_end`; None while the workflow continues, or where it was interrupted."""

    def apply(self, record: Entry) -> None:
        """Take the next record."""
        match record.get("type"):
            case "workflow_start":
                self.run_id, self.task, self.started = record["run"], record["task"], record["ts"]
                self._resume(record)
            case "workflow_resumed":
                self._resume(record)
            case "agent_start" | "agent_skipped" | "agent_complete":
                self._change_agent(record)
            case "api_response" if usage := record.get("usage"):
                self._add_usage(usage, float(record.get("cost_usd") or 0.0))
            case "question":
                self.question = record if record["state"] == "asked" else None
            case "gate_asked" | "gate_decision":
                self._change_gate(record)
            case "note":
                self.notices.append(record)
            case "workflow_end":
                self.end, self.running, self.question = record, None, None
        name = record.get("agent")
        if isinstance(name, str) and record.get("type") != "gate_asked":
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

    def _resume(self, record: Entry) -> None:
        self.model, self.simulated = record["model"], bool(record.get("simulated"))
        self.config, self.end, self.question = dict(record["config"]), None, None

    def _change_agent(self, record: Entry) -> None:
        agent = self._agent(record["agent"])
        if record["type"] == "agent_start":
            agent.state, agent.rounds, agent.halted = "running", record.get("round", 1), None
            agent.contract = DelegationContract(**record["contract"])
            self.running = agent.name
        elif record["type"] == "agent_skipped":
            agent.state, agent.skip_reason = "skipped", record["reason"]
        else:
            agent.completion = CompletionSignal(**record["completion"]) if record.get("completion") else None
            agent.halted, agent.state = record.get("halted"), "halted" if record.get("halted") else "complete"
            agent.files_changed = list(dict.fromkeys([*agent.files_changed, *record.get("files_changed", [])]))
            agent.cost.append(CostRecord(**record["cost"]))
            self.running = None

    def _add_usage(self, usage: Mapping[str, int], cost_usd: float) -> None:
        self.input_tokens += usage.get("input_tokens", 0)
        self.output_tokens += usage.get("output_tokens", 0)
        self.cached_tokens += usage.get("cache_read_tokens", 0)
        self.api_calls += 1
        self.cost_usd = round(self.cost_usd + cost_usd, 9)

    def _change_gate(self, record: Entry) -> None:
        gate = self.gates[record["gate"]]
        if record["type"] == "gate_asked":
            gate.state, gate.summary, gate.artifact = "asked", record["summary"], record["artifact"]
            gate.changes = list(record.get("changes", ()))
        else:
            decision = GateDecisionType(record["decision"])
            gate.decisions.append(GateDecision(gate.number, decision, record.get("feedback"), record["ts"]))
            gate.state = _DECIDED[decision]


_DECIDED: dict[GateDecisionType, Literal["approved", "rejected", "aborted"]] = {
    GateDecisionType.APPROVE: "approved",
    GateDecisionType.REJECT: "rejected",
    GateDecisionType.ABORT: "aborted",
}
