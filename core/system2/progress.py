"""Passes a workflow's records on as they are written: to transcript, log, view and listener."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from system2.constants import GATES
from system2.cost import CostRecord, agent_summary, workflow_summary
from system2.logs import Log
from system2.policies import GateDecision, GateDecisionType
from system2.transcript import Entry, TranscriptEntries, TranscriptFile
from system2.view import WorkflowView


class WorkflowProgress:
    """Takes each line of the journal on the workflow's thread. `listener` gets the lines of the transcript."""

    def __init__(self, log: Log, listener: Callable[[bytes], None] | None, root: Path) -> None:
        self.view: WorkflowView = WorkflowView()
        self.transcript: TranscriptFile | None = None
        self.assumed: list[str] = []
        """The models of which a price is assumed."""
        self.automatic = False
        """Whether nobody sees the gates, so that the log shows them."""
        self.journal_problem: Callable[[], str | None] = lambda: None
        self.summary: str = ""
        self._log, self._listener, self._root = log, listener, root
        self._entries = TranscriptEntries()

    def recorded(self, records: Iterable[Mapping[str, Any]], transcript: TranscriptFile | None) -> None:
        """Take what an earlier process has written, and complete the transcript with it."""
        self.transcript = transcript
        for record in records:
            for entry in self._entries.of(record):
                self.view.apply(entry)
                if transcript is not None:
                    transcript.write(entry)

    def on_line(self, line: bytes) -> None:
        """Take the next line of the journal."""
        for entry in self._entries.of(json.loads(line)):
            self.view.apply(entry)
            if self.transcript is not None:
                self.transcript.write(entry)
            if self._listener is not None:
                self._listener(json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass"))
            if (tell := _TELL.get(entry["type"])) is not None:
                tell(self, entry)

    def _agent_start(self, entry: Entry) -> None:
        for problem in (self.transcript.problem if self.transcript is not None else None, self.journal_problem()):
            if problem is not None:
                self._log.warning(problem)
        if "feedback" not in entry:
            self._log.info(f"[AGENT] {entry['agent']}: {entry['contract']['objective'].splitlines()[0]}")

    def _agent_skipped(self, entry: Entry) -> None:
        self._log.info(f"[SKIP] {entry['agent']}: {entry['reason']}")

    def _tool_exec(self, entry: Entry) -> None:
        error = None if entry["success"] else entry["result"]
        self._log.tool(entry["tool"], entry["input"], entry["args_summary"], error, entry["duration_ms"])

    def _note(self, entry: Entry) -> None:
        self._log.warning(entry["message"])

    def _gate_asked(self, entry: Entry) -> None:
        if self.automatic:
            self._log.info(f"[GATE] Gate {entry['gate']} ({GATES[entry['gate']].title})\n{entry['summary']}")

    def _gate_decision(self, entry: Entry) -> None:
        said = GateDecisionType(entry["decision"])
        decision = GateDecision(entry["gate"], said, entry.get("feedback"), f"{entry['ts'][:19]}Z")
        self._log.gate(GATES[entry["gate"]].title, decision)

    def _agent_complete(self, entry: Entry) -> None:
        if halted := entry.get("halted"):
            self._log.warning(f"agent {entry['agent']!r} was halted: {halted.replace('_', ' ')}")
        self._log.info(agent_summary(entry["cost"], self.view.cost_usd, self.assumed))

    def _end(self, entry: Entry) -> None:
        path = self.transcript.path if self.transcript is not None else None
        if path is not None and path.is_relative_to(self._root):
            path = path.relative_to(self._root)
        shown = str(path) if path is not None else None
        total = CostRecord(**entry["total_cost"])
        self.summary = workflow_summary(total, entry["agents_invoked"], entry["duration_s"], shown, self.assumed)
        self._log.info(self.summary)


_TELL: dict[str, Callable[[WorkflowProgress, Entry], None]] = {
    "agent_start": WorkflowProgress._agent_start,
    "agent_skipped": WorkflowProgress._agent_skipped,
    "tool_exec": WorkflowProgress._tool_exec,
    "note": WorkflowProgress._note,
    "gate_asked": WorkflowProgress._gate_asked,
    "gate_decision": WorkflowProgress._gate_decision,
    "agent_complete": WorkflowProgress._agent_complete,
    "workflow_end": WorkflowProgress._end,
}
