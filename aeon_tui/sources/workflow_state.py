"""A workflow as its screen shows it: system2's own fold, and what only a screen asks of the records."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from system2.policies import GateDecisionType
from system2.view import WorkflowView


class WorkflowState:
    """Takes records one by one, live and past alike."""

    def __init__(self) -> None:
        self.view = WorkflowView()
        self.last_seq = -1
        self.last_ts = ""
        self.seconds: dict[str, float] = {}
        """How long each agent has worked in the rounds that have ended; what a person took at a gate is not in it."""
        self.began: dict[str, str] = {}
        """When the round began that an agent works on."""
        self.ceilings = 1
        """How often the ceiling counts: once, and once more for each time that it was lifted."""

    def apply(self, record: dict[str, Any]) -> None:
        """Take the next record."""
        self.last_seq, self.last_ts = record["seq"], str(record.get("ts", ""))
        kind = record.get("type")
        if kind == "agent_start":
            self.began[record["agent"]] = self.last_ts
        elif kind == "agent_complete":
            self._ended(record["agent"])
        elif kind in ("workflow_end", "workflow_resumed"):
            self.began.clear()
        elif kind == "question" and record.get("kind") == "cost_ceiling" and record.get("choice") == "continue":
            self.ceilings += 1
        self.view.apply(record)

    def _ended(self, agent: str) -> None:
        began = self.began.pop(agent, None)
        if began is not None:
            self.seconds[agent] = self.seconds.get(agent, 0.0) + seconds_between(began, self.last_ts)

    def worked(self, agent: str, now: str) -> float | None:
        """Return the seconds that an agent has worked until now; None where it has not."""
        if agent not in self.seconds and agent not in self.began:
            return None
        running = seconds_between(self.began[agent], now) if agent in self.began else 0.0
        return self.seconds.get(agent, 0.0) + running

    @property
    def project_root(self) -> Path:
        """The project whose files the agents work on."""
        return Path(str(self.view.config.get("project_root") or ""))

    @property
    def warning_usd(self) -> float:
        """The cost from which on there is a warning."""
        return float(self.view.config.get("cost_warning_usd") or 0.0)

    @property
    def ceiling_usd(self) -> float:
        """The cost at which a person is asked next."""
        return float(self.view.config.get("cost_ceiling_usd") or 0.0) * self.ceilings

    def status(self, *, live: bool, reading: bool) -> str:
        """Return how the workflow stands, as a word or a few: as it ended, or what it does."""
        view = self.view
        if view.end is not None:
            return str(view.end["status"])
        if not live:
            return "reading …" if reading or self.last_seq < 0 else "interrupted"
        return "waiting for a decision" if view.question is not None or view.open_gate is not None else "running"

    @property
    def current(self) -> str:
        """The key of the row where the workflow is: an agent, a gate such as `gate 2`, or the workflow as a whole."""
        view = self.view
        if view.end is not None:
            return WORKFLOW
        if (gate := view.open_gate) is not None:
            return gate_key(gate.number)
        return view.running or self._last_worked

    @property
    def _last_worked(self) -> str:
        worked = [name for name, agent in self.view.agents.items() if agent.state in ("complete", "halted")]
        return worked[-1] if worked else WORKFLOW

    def rejections(self, gate: int) -> int:
        """Return how often a gate was rejected."""
        decisions = self.view.gates[gate].decisions
        return sum(decision.decision is GateDecisionType.REJECT for decision in decisions)


WORKFLOW = "workflow"
"""The key of the row that tells of the workflow as a whole."""


def gate_key(number: int) -> str:
    """Return the key of a gate's row."""
    return f"gate {number}"


def gate_of(key: str) -> int | None:
    """Return the gate that a key names; None where it names none."""
    word, _, number = key.partition(" ")
    return int(number) if word == "gate" and number.isdigit() else None


def seconds_between(one: str, other: str) -> float:
    """Return the seconds between two stamps; 0 where one of them is none."""
    try:
        return max(0.0, (datetime.fromisoformat(other) - datetime.fromisoformat(one)).total_seconds())
    except (TypeError, ValueError):
        return 0.0
