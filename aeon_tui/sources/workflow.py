"""Where a workflow's screen gets its records from: the workflow of this process, or a file."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aeon_core.errors import AeonError
from aeon_core.journal.follow import Follower, FollowStatus
from aeon_core.journal.reader import unreadable
from aeon_core.journal.view.reducer import MALFORMED
from aeon_core.units import seconds_after
from aeon_widgets.call_rows import Activity
from system2.policies import GateDecisionType
from system2.transcript import Entry, TranscriptEntries
from system2.view import WorkflowView


class WorkflowState:
    """Takes records one by one, live and past alike."""

    def __init__(self) -> None:
        self.view = WorkflowView()
        self.damage: list[str] = []
        """Records that are not what a workflow writes."""
        self._entries = TranscriptEntries()
        self.last_seq = -1
        self.last_ts = ""
        self.seconds: dict[str, float] = {}
        """How long each agent has worked in the rounds that have ended; what a person took at a gate is not in it."""
        self.began: dict[str, str] = {}
        """When the round began that an agent works on."""
        self.busy: Activity | None = None
        """What the running agent does: it writes, or a tool is at work."""
        self.busy_since = ""
        self.ceilings = 1
        """How often the ceiling counts: once, and once more for each time that it was lifted."""

    def apply(self, record: dict[str, Any]) -> list[Entry]:
        """Take the next record; return the entries that it gives. Never raises on one that it does not understand."""
        self.last_seq, self.last_ts = record["seq"], str(record.get("ts", ""))
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
            self._end_round(record["agent"])
        elif kind in ("workflow_end", "workflow_resumed"):
            self.began.clear()
        elif kind == "question" and record.get("kind") == "cost_ceiling" and record.get("choice") == "continue":
            self.ceilings += 1

    def _end_round(self, agent: str) -> None:
        began = self.began.pop(agent, None)
        if began is not None:
            self.seconds[agent] = self.seconds.get(agent, 0.0) + seconds_after(began, self.last_ts)

    def seconds_worked(self, agent: str, now: str) -> float | None:
        """Return the seconds that an agent has worked until now; None if it has not."""
        if agent not in self.seconds and agent not in self.began:
            return None
        running = seconds_after(self.began[agent], now) if agent in self.began else 0.0
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
        """Return the workflow's status in a word or a few: how it ended, or what it does."""
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
            return WORKFLOW_ROW
        if (gate := view.open_gate) is not None:
            return gate_key(gate.number)
        return view.running or self._last_worked

    @property
    def _last_worked(self) -> str:
        worked = [name for name, agent in self.view.agents.items() if agent.state in ("complete", "halted")]
        return worked[-1] if worked else WORKFLOW_ROW

    def rejections(self, gate: int) -> int:
        """Return how often a gate was rejected."""
        decisions = self.view.gates[gate].decisions
        return sum(decision.decision is GateDecisionType.REJECT for decision in decisions)


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    return str(error) if type(error) is ValueError else "its fields are not what a workflow writes"


WORKFLOW_ROW = "workflow"
"""The key of the row of the workflow as a whole."""


def gate_key(number: int) -> str:
    """Return the key of a gate's row."""
    return f"gate {number}"


def gate_of(key: str) -> int | None:
    """Return the gate that a key names; None if it names none."""
    word, _, number = key.partition(" ")
    return int(number) if word == "gate" and number.isdigit() else None


Record = dict[str, Any]
CAPACITY = 20_000
"""Lines that are kept for the screen at most; where more wait, the transcript is read instead."""
AHEAD = 2_000
POLL_SECONDS = 0.05


class Taken(NamedTuple):
    """Records in order; with `anew` they begin with the first, and replace what was taken before."""

    records: list[Record]
    anew: bool = False


class WorkflowSource(Protocol):
    """Records of one workflow. Drained by the screen, never waited for."""

    error: AeonError | None
    """Why no more can be read."""

    @property
    def path(self) -> Path | None:
        """The journal, or a transcript without one; None if there is neither."""

    @property
    def damage(self) -> list[str]:
        """What could not be read, with line numbers."""

    @property
    def live(self) -> bool:
        """Whether a process writes the transcript."""

    @property
    def reading(self) -> bool:
        """Whether there is more to be taken of what was there at first."""

    def take(self, seconds: float) -> Taken:
        """Return the next records there are, after at most about that time."""

    def close(self) -> None:
        """Read no more."""


class TranscriptSource:
    """A transcript, read on a thread of its own from its beginning, and followed as another process writes on it."""

    def __init__(self, path: Path | None) -> None:
        self.error: AeonError | None = None
        self.damage: list[str] = []
        self.path: Path | None = path
        self._status: FollowStatus = "reading"
        self._ready: deque[tuple[int, Record]] = deque()
        self._generation = 0
        self._closed = threading.Event()
        self._follows = False
        if path is not None:
            self._follow(path)

    def _follow(self, path: Path) -> None:
        self._follows = True
        threading.Thread(target=self._work, args=(path,), name="aeon-transcript-source", daemon=True).start()

    @property
    def live(self) -> bool:
        """Whether a process writes the transcript."""
        return self._status == "running"

    @property
    def reading(self) -> bool:
        """Whether there is more to be taken."""
        return self.error is None and (bool(self._ready) or self._status in ("reading", "awaited"))

    @property
    def journal(self) -> Path | None:
        """The file, for a decision from here."""
        return self.path

    def take(self, seconds: float) -> Taken:
        """Return the next records there are, after at most about that time."""
        deadline, ready = time.perf_counter() + seconds, self._ready
        records: list[Record] = []
        anew = False
        while ready and time.perf_counter() < deadline:
            generation, record = ready.popleft()
            if generation != self._generation:
                self._generation, anew = generation, True
                records = []
            records.append(record)
        return Taken(records, anew)

    def close(self) -> None:
        """Follow no more."""
        self._closed.set()

    def _work(self, path: Path) -> None:
        follower = Follower(path)
        try:
            while not self._closed.is_set():
                for each in follower.read():
                    self._hand_over(each)
                self.damage = list(follower.damage)
                self._status = follower.status
                self._closed.wait(POLL_SECONDS)
        except (AeonError, OSError) as error:
            self.error = unreadable(path, error) if isinstance(error, OSError) else error
            self._status = "gone"
        finally:
            follower.close()

    def _hand_over(self, followed: tuple[int, Record]) -> None:
        while len(self._ready) >= AHEAD and not self._closed.is_set():
            self._closed.wait(POLL_SECONDS)
        self._ready.append(followed)


class LiveWorkflowSource(TranscriptSource):
    """The lines of this process's workflow. `put` only appends: a slow screen never slows the work.

    Where lines were lost because too many waited, the journal is followed instead.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        super().__init__(None)
        self._lines: deque[bytes | Record] = deque(maxlen=capacity)
        self._last_seq = -1
        self._lost = self._finished = False

    @property
    def live(self) -> bool:
        """Whether the workflow runs, or has ended and is not shown to its end yet."""
        return not self._finished or bool(self._lines) or self.reading

    @property
    def reading(self) -> bool:
        """Whether a transcript that lines were lost of is being read."""
        return self._follows and super().reading

    def put(self, line: bytes | Record) -> None:
        """Take a line from the workflow's thread."""
        if not self._follows:
            self._lost = self._lost or len(self._lines) == self._lines.maxlen
            self._lines.append(line)

    def finish(self) -> None:
        """Note that nothing more is put."""
        self._finished = True

    def take(self, seconds: float) -> Taken:
        """Return the next records there are, after at most about that time."""
        if self._follows:
            return super().take(seconds)
        if self._lost and self.path is not None:
            self._lines.clear()
            self._follow(self.path)
            return Taken([], anew=True)
        deadline = time.perf_counter() + seconds
        records: list[Record] = []
        while self._lines and time.perf_counter() < deadline:
            line = self._lines.popleft()
            record: Record = json.loads(line) if isinstance(line, bytes) else line
            if record["seq"] > self._last_seq:
                self._last_seq = record["seq"]
                records.append(record)
        return Taken(records)
