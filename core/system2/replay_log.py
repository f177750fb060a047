"""What an earlier process of a workflow has done, in its order, for a resume to go by (REQ-125)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from system2.constants import TASK_GATE
from system2.contracts import CompletionSignal
from system2.cost import CostRecord
from system2.earlier_spec import SPEC_CHOICES
from system2.policies import GateDecision, GateDecisionType
from system2.session import AgentResult
from system2.suite_runs import RanCommand, recorded_test

_FOLLOWED = frozenset({"agent_start", "agent_complete", "agent_skipped", "gate_decision"})


class ReplayLog:
    """The outcomes of a transcript: each is given out once, in the order in which the workflow comes to them.

    What ended the earlier process is not among them: an abort is asked about again, and work in the middle of which it
    ended is done again. Where the workflow takes another way than it did, what is left is forgotten.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._left: deque[Mapping[str, Any]] = deque()
        self.task = ""
        self.documents: dict[str, str] = {}
        """The digests of the documents that were there when the workflow began."""
        self.cut_off: str | None = None
        """The agent in whose work the earlier process ended."""
        self.spec: str | None = None
        """What was said about the documents of an earlier workflow; None where that is yet to be asked."""
        self.lifted = 0
        """How often a person had the work go on at the cost ceiling."""
        self.half_done: list[tuple[str, str]] = []
        """What was changed in rounds that did not end: the agent and the file, as it was named."""
        self.gate_snapshot: str | None = None
        """The project's files at the last gate that was decided, else at the start."""
        self.execution_snapshot: str | None = None
        """Those at the approval of the tasks; None before it."""
        self.flagged: list[tuple[str, str]] = []
        """The agents and files that were flagged since the last gate."""
        self.commands: list[RanCommand] = []
        """The tests that agents ran."""
        self._round: list[tuple[str, str]] = []
        for record in records:
            self._take(record)
        while self._left and self._left[-1].get("decision") == "abort":
            self._left.pop()
        self.half_done += self._round
        self.cut_off = self._without_unfinished_work()

    @property
    def over(self) -> bool:
        """Whether all of it was given out: from here on the workflow is live."""
        return not self._left

    def result(self, agent: str) -> AgentResult | None:
        """Return how an agent's next round ended, None where that is yet to come."""
        record = self._next("agent_complete", agent=agent)
        return _result(record) if record is not None else None

    def skipped(self, agent: str) -> str | None:
        """Return why an agent was skipped, None where it was not."""
        record = self._next("agent_skipped", agent=agent, keep=True)
        return str(record["reason"]) if record is not None else None

    def halted(self, agent: str) -> str | None:
        """Return what a person said about an agent that was halted, None where that is yet to be asked."""
        record = self._next("question", agent=agent, keep=True)
        return str(record["choice"]) if record is not None else None

    def decision(self, gate: int) -> GateDecision | None:
        """Return what was decided at a gate, None where that is yet to be asked."""
        record = self._next("gate_decision", gate=gate)
        if record is None:
            return None
        said = GateDecisionType(record["decision"])
        return GateDecision(gate, said, record.get("feedback"), str(record["ts"]))

    def _take(self, record: Mapping[str, Any]) -> None:
        kind = record["type"]
        if kind == "workflow_start":
            self.task, self.documents = record["task"], record.get("documents", {})
            self.gate_snapshot = record.get("snapshot")
        elif kind == "agent_start":
            self.half_done += self._round
            self._round = []
        elif kind == "agent_complete":
            self._round = []
        elif kind == "tool_exec" and record["success"] and record["tool"] in ("Write", "Edit"):
            self._round.append((record["agent"], str(record["input"].get("file_path", ""))))
        elif kind == "question" and record["kind"] == "existing_spec" and record.get("choice") in SPEC_CHOICES:
            self.spec = record["choice"]
        elif kind == "tool_exec" and (ran := recorded_test(record)) is not None:
            self.commands.append(ran)
        elif kind == "note":
            self.flagged += [(str(record.get("agent")), path) for path in record.get("paths", ())]
        elif kind == "gate_decision" and record["decision"] != "abort":
            self._decided(record)
        elif kind == "question" and record["kind"] == "cost_ceiling" and record.get("choice") == "continue":
            self.lifted += 1
        is_choice = kind == "question" and record["kind"] == "agent_halted" and record["state"] == "decided"
        if kind in _FOLLOWED or (is_choice and record["choice"] != "abort"):
            self._left.append(record)

    def _decided(self, record: Mapping[str, Any]) -> None:
        self.gate_snapshot, self.flagged = record.get("snapshot"), []
        if record["gate"] == TASK_GATE and record["decision"] == "approve":
            self.execution_snapshot = self.gate_snapshot

    def _without_unfinished_work(self) -> str | None:
        """Forget the beginnings of rounds; return whose the last one was, where it did not end."""
        began = {record["agent"] for record in self._left if record["type"] == "agent_start"}
        unfinished: str | None = None
        for record in self._left:
            if record["type"] == "agent_start":
                unfinished = record["agent"]
            elif record["type"] == "agent_complete":
                unfinished = None
        self._left = deque(record for record in self._left if record["type"] != "agent_start")
        return unfinished if unfinished in began else None

    def _next(self, kind: str, *, keep: bool = False, **fields: Any) -> Mapping[str, Any] | None:
        """Return the next outcome where it is of this kind; else what is left is forgotten, with `keep` it stays."""
        if not self._left:
            return None
        head = self._left[0]
        if head["type"] == kind and all(head.get(name) == value for name, value in fields.items()):
            return self._left.popleft()
        if not keep:
            self._left.clear()
        return None


def _result(record: Mapping[str, Any]) -> AgentResult:
    completion = record.get("completion")
    signal = CompletionSignal(**completion) if completion is not None else None
    return AgentResult(
        agent=record["agent"],
        completion=signal,
        halted=record.get("halted"),
        text=signal.summary if signal is not None else "",
        cost=CostRecord(**record["cost"]),
        files_changed=tuple(record.get("files_changed", ())),
    )
