"""The transcript of a workflow (REQ-125): its journal in the specification's own terms.

Each record of the journal becomes up to two entries, which screens, reports and the log read too. Entries in the
transcripts of earlier versions, which had no journal, are passed on as they are.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from aeon_core.journal.summary import started_at
from aeon_core.journal.values import ENVELOPE
from aeon_core.llm.base import LLMResponse, Message
from aeon_core.paths import create_file
from aeon_core.redaction import REDACTED
from aeon_core.units import seconds_between
from system2.converse import as_turns, reply_message, tool_uses, use_ids
from system2.cost import CostRecord, total_cost
from system2.policies import choice_of, question_of

Entry = dict[str, Any]
Warn = Callable[[str], None]
_NOTES = {"budget_warning": "cost_warning", "context_window": "context_warning", "provider": "warning"}


class _Conversation(TypedDict):
    messages: list[Message]
    tools: int
    seq: int


class TranscriptEntries:
    """Converts a workflow's records to entries, one after the other from the first."""

    def __init__(self) -> None:
        self.next_seq: int = 0
        self._conversations: dict[str, _Conversation] = {}
        self._asked: Mapping[str, Any] = {}
        self._start: Mapping[str, Any] = {}
        self._spent: list[CostRecord] = []
        self._tool_turns = 0
        self._invoked: dict[str, None] = {}

    def of(self, record: Mapping[str, Any]) -> Iterator[Entry]:
        """Yield the entries of a record; `record` is its seq, the other fields are those of the specification."""
        if record.get("type") in _IN_THE_JOURNAL_ALONE:
            return
        make = _MAKERS.get(str(record.get("type")))
        if make is None or (record.get("type") == "question" and "subject" not in record and "digest" not in record):
            yield dict(record)
            return
        for kind, fields in make(self, record):
            entry = {"v": 1, "seq": self.next_seq, "ts": record["ts"], "run": record["run"], "type": kind}
            self.next_seq += 1
            yield {
                **entry,
                **{key: value for key, value in fields.items() if value is not None},
                "record": record["seq"],
            }

    def _on_start(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
        self._start = record
        workflow = record.get("workflow") or {}
        price = (record.get("models") or [{}])[0].get("price")
        fields = {"task": record["task"], "config": _config(workflow), "model": record["model"]}
        more = {"simulated": bool(record.get("simulated")), "price": price, "versions": record.get("versions")}
        yield "workflow_start", {**fields, **more, "journal": record["run"], "parent": record.get("parent")}

    def _on_resume(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
        models = record.get("models") or self._start.get("models") or [{}]
        fields = {"config": _config(self._start.get("workflow") or {}), "model": models[0].get("model")}
        yield "workflow_resumed", {**fields, "simulated": bool(models[0].get("simulated"))}

    def _agent(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
        fields = {key: value for key, value in record.items() if key not in (*ENVELOPE, "state", "pass")}
        state = record["state"]
        if state == "started":
            self._invoked[record["agent"]] = None
            yield "agent_start", {**fields, "round": record["pass"]}
        elif state == "skipped":
            yield "agent_skipped", fields
        elif state == "answered":
            yield "tool_exec", fields
        else:
            self._tool_turns += int((record.get("cost") or {}).get("tool_turns", 0))
            yield "agent_complete", {"completion": None, "halted": None, "files_changed": [], **fields}

    def _llm(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
        agent = str(record.get("step_id"))
        head = {"agent": agent, "purpose": "summary" if record["purpose"] == "reason" else "work"}
        head["attempt"] = record["attempt"]
        if record["state"] == "started":
            yield "api_request", {**head, **self._request(agent, record["request"])}
            return
        fields = {key: record.get(key) for key in ("usage", "cost_usd", "latency_ms", "error", "retry_in_s")}
        if record.get("usage"):
            model = str(record.get("model") or self._start.get("model"))
            self._spent.append(CostRecord.of_call(agent, model, record["usage"], record.get("cost_usd")))
        if (response := record.get("response")) is not None:
            parsed, known = LLMResponse.model_validate(response), self._conversations.get(agent)
            uses = tool_uses(parsed, use_ids(known["messages"] if known is not None else ()))
            stop = "end_turn" if parsed.stop_reason == "end" else parsed.stop_reason
            fields |= {"stop_reason": stop, "message": as_turns([reply_message(parsed, uses)])[0]}
        yield "api_response", {**head, **fields}
        if fields["retry_in_s"] is not None:
            message = f"{record['error']['message']}; retrying in {fields['retry_in_s']:g} s"
            yield "note", {"kind": "retry", "agent": agent, "message": message}

    def _request(self, agent: str, request: Mapping[str, Any]) -> Entry:
        """Return the fields of a request's entry, with its new messages as Converse turns."""
        known = self._conversations.get(agent) if "since" in request else None
        before: list[Message] = known["messages"] if known is not None else []
        messages = [*before, *request["messages"]]
        tools = len(request["tools"]) if "tools" in request else known["tools"] if known is not None else 0
        self._conversations[agent] = {"messages": messages, "tools": tools, "seq": self.next_seq}
        new = as_turns(request["messages"])
        fields: Entry = {"message_count": len(as_turns(messages)), "tool_count": tools, "messages": new}
        return fields if known is None else {**fields, "since": known["seq"], "kept": len(as_turns(before))}

    def _notice(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
        kind, data = _NOTES.get(record["kind"], record["kind"]), record.get("data") or {}
        fields = {"kind": kind, "agent": record.get("step_id"), "message": record["message"]}
        yield "note", {**fields, "paths": data.get("paths")}

    def _gate(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
        if record["state"] == "asked":
            self._asked = subject = record["subject"]
            yield "gate_asked", {key: subject.get(key) for key in ("gate", "agent", "artifact", "summary", "changes")}
        else:
            fields = {"gate": self._asked.get("gate"), "agent": self._asked.get("agent")}
            yield "gate_decision", {**fields, "decision": record["decision"], "feedback": record.get("feedback")}

    def _question(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
        if record["state"] == "asked":
            self._asked = record["subject"]
        question = question_of(record["point"], self._asked, record.get("step_id"))
        fields: Entry = {
            "agent": question.agent,
            "kind": question.kind,
            "text": question.text,
            "state": record["state"],
        }
        fields |= {"choices": list(question.choices), "details": list(question.details) or None}
        if record["state"] == "decided":
            fields |= {"choice": choice_of(question, record), "feedback": record.get("feedback")}
        yield "question", fields

    def _on_finish(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
        result, error = record["result"], record["result"].get("error") or {}
        cost = total_cost(self._spent, self._start.get("model", ""), tool_turns=self._tool_turns)
        fields = {"total_cost": cost.as_dict(), "duration_s": seconds_between(started_at(self._start), record["ts"])}
        code = error.get("exit_code", {"completed": 0, "cost_ceiling": 4}.get(result["status"], 1))
        fields |= {"status": result["status"], "exit_code": code}
        yield "workflow_end", {**fields, "agents_invoked": list(self._invoked), "error": error.get("message")}


_Maker = Callable[[TranscriptEntries, Mapping[str, Any]], Iterator[tuple[str, Entry]]]
_MAKERS: dict[str, _Maker] = {
    "run_started": TranscriptEntries._on_start,
    "run_resumed": TranscriptEntries._on_resume,
    "agent": TranscriptEntries._agent,
    "llm": TranscriptEntries._llm,
    "notice": TranscriptEntries._notice,
    "gate": TranscriptEntries._gate,
    "question": TranscriptEntries._question,
    "approval": TranscriptEntries._question,
    "run_finished": TranscriptEntries._on_finish,
}
_IN_THE_JOURNAL_ALONE = frozenset({"tool", "policy", "observation", "memory", "text", "label", "journal_recovered"})


def _config(workflow: Mapping[str, Any]) -> Entry:
    return {"project_root": workflow.get("project_root"), **(workflow.get("settings") or {})}


_AWS = re.compile(
    r"""((?:secret_?access_?key|session_?token)["'\\]*[ \t]*[:=\s][ \t]*["'\\]*)(?!\[|[\d.]+[}\]])"""
    r"""(?:[^\s"'\\;,…]{16,}|[^\s"'\\;,…]+(?=…))""",
    re.IGNORECASE,
)
"""Credentials of AWS by their names, since they have no form of their own; the second may be cut off."""


def redact_aws(text: str) -> str:
    """Return a text, also JSON text, without AWS credentials. Our own records keep them, as a replay needs them."""
    return _AWS.sub(rf"\1{REDACTED}", text)


class TranscriptFile:
    """Appends entries to a file, mode 0600, and never raises: a failure goes to `warn` (REQ-126).

    A file that exists is emptied: a resume writes it again from the journal. A folder that it creates gets a
    `.gitignore`, which keeps it out of git.
    """

    def __init__(self, path: Path, warn: Warn) -> None:
        self._warn = warn
        self.path: Path | None = path
        self.problem: str | None = None
        """Why it cannot be written."""
        self._fd: int | None = None
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            _make_folder(path.parent)
            self._fd = os.open(path, flags, 0o600)
        except OSError as error:
            self._fail(error)

    def write(self, entry: Mapping[str, Any]) -> None:
        if self._fd is None:
            return
        text = redact_aws(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
        line = f"{text}\n".encode("utf-8", "surrogatepass")
        try:
            status = os.fstat(self._fd)
            if not status.st_nlink:
                raise FileNotFoundError(errno.ENOENT, "it was deleted")
            size = status.st_size
            if size and os.pread(self._fd, 1, size - 1) != b"\n":
                line = b"\n" + line  # another program has written to it
            while line:
                line = line[os.write(self._fd, line) :]
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _fail(self, error: OSError) -> None:
        self.problem = f"cannot write the transcript {str(self.path)!r}: {error.strerror}; the work continues"
        self.path = None
        self.close()
        self._warn(self.problem)


def _make_folder(folder: Path) -> None:
    """Create the folder if it is missing, and have git ignore it, since it holds whole conversations."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        try:
            create_file(folder / ".gitignore", "*\n")
        except OSError:
            folder.rmdir()  # otherwise the next workflow would not have it ignored
            raise
