"""What a workflow writes as it runs: transcript, and a log without file contents or secrets (REQ-111, REQ-122…124)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from aeon_core.escape import escape_controls
from aeon_core.redaction import cut_place, redact_text
from system2.constants import GATES
from system2.cost import CostRecord, agent_summary, workflow_summary
from system2.toolbox import CONTENTS, INJECTION_WARNING
from system2.transcript import Entry, TranscriptEntries, TranscriptFile, redact_aws
from system2.view import WorkflowView

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
MAX_TEXT = 500
"""Characters of one value that a log shows."""
NO_ROOM = (
    "its conversation does not fit the context window; shorten the task, raise context_window_tokens in "
    ".system2/config.yml as far as the model allows, or use a model with a larger one"
)
_LEFT_OUT = CONTENTS | {"messages", "message", "result", "stdout", "stderr", "system", "output", "input"}
"""Fields that may hold file contents or whole conversations."""
_DECISIONS = {"approve": "APPROVED", "reject": "REJECTED", "abort": "ABORTED"}


def sanitize_log_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry for a log: without file contents and secrets, and with long texts cut."""
    return {_redact(key): _sanitize(key, value) for key, value in entry.items()}


class Log:
    """Writes lines to a sink, which adds the newline; `verbose` includes those of level DEBUG.

    `path` is the sink's file, if it is one, so that it is not taken for the project's work.
    """

    def __init__(
        self,
        sink: Callable[[str], None],
        log_format: Literal["text", "json"] = "text",
        *,
        verbose: bool = False,
        path: Path | None = None,
    ) -> None:
        self.path = path
        self.log_format = log_format
        self._sink = sink
        self._verbose = verbose

    def info(self, text: str) -> None:
        """Log what happens; the text may have several lines."""
        self._write("INFO", "info", text, {"text": text})

    def debug(self, text: str) -> None:
        self._write("DEBUG", "debug", text, {"text": text})

    def warning(self, text: str) -> None:
        """Log something that a person should look at."""
        self._write("WARNING", "warning", f"WARNING: {text}", {"text": text})

    def error(self, text: str) -> None:
        """Log why the work ended early."""
        self._write("ERROR", "error", f"ERROR: {text}", {"text": text})

    def tool(self, entry: Entry) -> None:
        """Log a tool call: its arguments, whether it succeeded, and how long it took (REQ-122)."""
        tool, took, done = entry["tool"], round(entry["duration_ms"]), bool(entry["success"])
        error = {} if done else {"error": _first_line(entry["result"].removeprefix(INJECTION_WARNING))}
        outcome = "success" if done else f"ERROR: {error['error']}"
        fields = {"tool": tool, "args": entry["input"], "success": done, "duration_ms": took, **error}
        self._write("INFO", "tool_exec", f"[TOOL] {tool} {entry['args_summary']} -> {outcome} ({took}ms)", fields)

    def gate(self, entry: Entry) -> None:
        """Log the decision at a gate, and when it was made (REQ-123)."""
        number, decision, at = entry["gate"], entry["decision"], f"{entry['ts'][:19]}Z"
        feedback = {"feedback": entry["feedback"]} if entry.get("feedback") else {}
        words = f" feedback={json.dumps(entry['feedback'], ensure_ascii=False)}" if feedback else ""
        line = f"[GATE] Gate {number} ({GATES[number].title}) -> {_DECISIONS[decision]} at {at}{words}"
        self._write("INFO", "gate_decision", line, {"gate": number, "decision": decision, "at": at, **feedback})

    def _write(self, level: Level, kind: str, line: str, fields: Mapping[str, Any]) -> None:
        if level == "DEBUG" and not self._verbose:
            return
        if self.log_format == "text":
            # Only `info` may write several lines: elsewhere, a name or message from a model could forge some.
            self._sink(escape_controls(_redact(line), keep="\n" if kind == "info" else ""))
            return
        ts = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        entry = {"ts": ts, "level": level, "type": kind, **sanitize_log_entry(fields)}
        self._sink(json.dumps(entry, ensure_ascii=False))


def _sanitize(key: str, value: Any) -> Any:
    if key in _LEFT_OUT:
        return f"<{len(value):,} characters>" if isinstance(value, str) else "<left out>"
    if isinstance(value, Mapping):
        return {_redact(str(name)): _sanitize(str(name), item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sanitize("", item) for item in value]
    if isinstance(value, str):
        return _cut(_redact(value))
    return value


def _redact(text: str) -> str:
    return redact_aws(redact_text(text))


def _first_line(text: str) -> str:
    lines = text.strip().splitlines() or [""]
    return _cut(_redact(lines[0]))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: cut_place(text, MAX_TEXT)]}…"


class WorkflowProgress:
    """Processes each line of the journal on the workflow's thread. `listener` gets the lines of the transcript."""

    def __init__(self, log: Log, listener: Callable[[bytes], None] | None, root: Path) -> None:
        self.view: WorkflowView = WorkflowView()
        self.transcript: TranscriptFile
        """Set by `restore`; before that, a journal has only lines that are not in a transcript."""
        self.assumed: list[str] = []
        """The models whose price is assumed."""
        self.automatic = False
        """Whether nobody sees the gates, so that the log shows them."""
        self.journal_problem: Callable[[], str | None] = lambda: None
        self.summary: str = ""
        self._log, self._listener, self._root = log, listener, root
        self._entries = TranscriptEntries()
        self._overflow: str = NO_ROOM
        """Why the last request did not fit, if the model said so."""

    def restore(self, records: Iterable[Mapping[str, Any]], transcript: TranscriptFile) -> None:
        """Apply the records of an earlier process, and write them to the transcript."""
        self.transcript = transcript
        for record in records:
            for entry in self._entries.of(record):
                self._keep(entry)

    def on_line(self, line: bytes) -> None:
        for entry in self._entries.of(json.loads(line)):
            self._keep(entry)
            if self._listener is not None:
                self._listener(json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass"))
            self._log_entry(entry)

    def _keep(self, entry: Entry) -> None:
        self.view.apply(entry)
        self.transcript.write(entry)

    def _log_entry(self, entry: Entry) -> None:
        match entry["type"]:
            case "agent_start":
                self._log_problems()
                if "feedback" not in entry:
                    self._log.info(f"[AGENT] {entry['agent']}: {_first_line(entry['contract']['objective'])}")
            case "agent_skipped":
                self._log.info(f"[SKIP] {entry['agent']}: {entry['reason']}")
            case "api_response":
                error = entry.get("error") or {}
                self._overflow = error["message"] if error.get("context_too_long") else NO_ROOM
            case "tool_exec":
                self._log.tool(entry)
            case "note":
                self._log.warning(entry["message"])
            case "gate_asked" if self.automatic:
                self._log.info(f"[GATE] Gate {entry['gate']} ({GATES[entry['gate']].title})\n{entry['summary']}")
            case "gate_decision":
                self._log.gate(entry)
            case "agent_complete":
                self._end_agent(entry)
            case "workflow_end":
                self._end(entry)

    def _end_agent(self, entry: Entry) -> None:
        if halted := entry.get("halted"):
            why = f"; {self._overflow}" if halted == "context_overflow" else ""
            self._log.warning(f"agent {entry['agent']!r} was halted: {halted.replace('_', ' ')}{why}")
        elif (said := entry["completion"]) is not None and said["status"] == "failure":
            why = _first_line(said["summary"])
            self._log.warning(f"agent {entry['agent']!r} reports that it failed: {why}")
        self._log.info(agent_summary(entry["cost"], self.view.cost_usd, self.assumed))

    def _log_problems(self) -> None:
        for problem in (self.transcript.problem, self.journal_problem()):
            if problem is not None:
                self._log.warning(problem)

    def _end(self, entry: Entry) -> None:
        path = self.transcript.path
        if path is not None and path.is_relative_to(self._root):
            path = path.relative_to(self._root)
        shown = str(path) if path is not None else None
        total = CostRecord(**entry["total_cost"])
        self.summary = workflow_summary(total, entry["agents_invoked"], entry["duration_s"], shown, self.assumed)
        self._log.info(self.summary)
