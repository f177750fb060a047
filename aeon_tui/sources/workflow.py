"""The source of a workflow's records for its screen: the workflow of this process, or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aeon_core.journal.listing import Awaited
from aeon_core.journal.view.reducer import MALFORMED
from aeon_core.units import seconds_after
from aeon_tui.sources.base import Projection
from aeon_tui.sources.journal import FollowedSource
from aeon_widgets.call_rows import Activity
from system2.policies import GateDecisionType
from system2.transcript import Entry, TranscriptEntries
from system2.view import WorkflowView


class WorkflowState:
    """Folds records one by one, live and past alike."""

    def __init__(self) -> None:
        self.view = WorkflowView()
        self.damage: list[str] = []
        """Problems of records that no workflow writes."""
        self._entries = TranscriptEntries()
        self.has_journal = False
        """Whether this is read from a journal, not from a transcript of an earlier version."""
        self.last_seq = -1
        self.last_ts = ""
        self.seconds: dict[str, float] = {}
        """How long each agent has worked in ended rounds, without the time that people took at gates."""
        self.began: dict[str, str] = {}
        """When the current round of the running agent began."""
        self.busy: Activity | None = None
        """What the running agent is doing: writing, or using a tool."""
        self.busy_since = ""
        self.ceilings = 1
        """The multiple of the ceiling that applies: one more for each time that it was raised."""

    def apply(self, record: dict[str, Any]) -> list[Entry]:
        """Fold the next record; return its entries. Never raises for a record that it does not understand."""
        self.last_seq, self.last_ts = record["seq"], str(record.get("ts", ""))
        self.has_journal |= record.get("type") == "run_started"
        try:
            self._note_activity(record)
            entries = list(self._entries.of(record))
            for entry in entries:
                self._apply(entry)
        except MALFORMED as error:
            self.damage.append(f"the record with seq {self.last_seq} cannot be read: {_reason(error)}")
            return []
        return entries

    def _note_activity(self, record: dict[str, Any]) -> None:
        kind = record.get("type")
        if kind in ("llm", "tool") and record["state"] == "started":
            arguments = record.get("arguments") or {}
            what = str(arguments.get("command") or arguments.get("file_path") or arguments.get("pattern") or "")
            name = "writes" if kind == "llm" else f"{record['tool_name']} {what}"
            self.busy, self.busy_since = Activity(str(record.get("step_id")), name, 0.0), self.last_ts
        elif kind in ("llm", "tool", "run_finished", "run_resumed"):
            self.busy = None

    def _apply(self, record: Entry) -> None:
        self.view.apply(record)
        kind = record.get("type")
        if kind == "agent_start":
            self.began[record["agent"]] = self.last_ts
        elif kind == "agent_complete":
            agent = record["agent"]
            if (began := self.began.pop(agent, None)) is not None:
                self.seconds[agent] = self.seconds.get(agent, 0.0) + seconds_after(began, self.last_ts)
        elif kind in ("workflow_end", "workflow_resumed"):
            self.began.clear()
        elif kind == "question" and record.get("kind") == "cost_ceiling" and record.get("choice") == "continue":
            self.ceilings += 1

    def seconds_worked(self, agent: str, now: str) -> float | None:
        """Return the seconds that an agent has worked so far; None if it has not."""
        if agent not in self.seconds and agent not in self.began:
            return None
        running = seconds_after(self.began[agent], now) if agent in self.began else 0.0
        return self.seconds.get(agent, 0.0) + running

    @property
    def project_root(self) -> Path:
        return Path(str(self.view.config.get("project_root") or ""))

    @property
    def warning_usd(self) -> float:
        """The cost from which there is a warning."""
        return float(self.view.config.get("cost_warning_usd") or 0.0)

    @property
    def ceiling_usd(self) -> float:
        """The cost at which a person is asked next."""
        return float(self.view.config.get("cost_ceiling_usd") or 0.0) * self.ceilings

    def status(self, *, live: bool, reading: bool) -> str:
        """Return the workflow's status in a few words: how it ended, or what it is doing."""
        view = self.view
        if view.end is not None:
            return str(view.end["status"])
        if not live:
            return "reading …" if reading or self.last_seq < 0 else "interrupted"
        return "waiting for a decision" if view.question is not None or view.open_gate is not None else "running"

    @property
    def current(self) -> str:
        """The key of the current row: an agent, a gate such as `gate 2`, or the whole workflow."""
        view = self.view
        if view.end is not None:
            return WORKFLOW_ROW
        if (gate := view.open_gate) is not None:
            return gate_key(gate.number)
        worked = [name for name, agent in view.agents.items() if agent.state in ("complete", "halted")]
        return view.running or (worked[-1] if worked else WORKFLOW_ROW)

    def rejections(self, gate: int) -> int:
        decisions = self.view.gates[gate].decisions
        return sum(decision.decision is GateDecisionType.REJECT for decision in decisions)


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    return str(error) if type(error) is ValueError else "its fields are not what a workflow writes"


WORKFLOW_ROW = "workflow"


def gate_key(number: int) -> str:
    return f"gate {number}"


def gate_of(key: str) -> int | None:
    """Return the gate that a key names; None if it names none."""
    word, _, number = key.partition(" ")
    return int(number) if word == "gate" and number.isdigit() else None


WORKFLOW = Projection(WorkflowState, WorkflowState.apply)


def follow_workflow(path: Path, *, fast: bool = False) -> FollowedSource[WorkflowState]:
    """Return the source of a journal or a transcript that another process writes, or wrote.

    It is `fast` if a view of it is already shown.
    """
    return FollowedSource(Awaited(path, path.parent), fast=fast, projection=WORKFLOW)
