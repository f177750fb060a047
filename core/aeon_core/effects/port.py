"""The port to everything that is not deterministic (Decision 2 of the design).

The kernel emits records and asks for outcomes here. Where lines were recorded, what it emits is compared with them and
outcomes are taken from them; past them outcomes are performed and appended. Without a performer it is a replay.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from aeon_core.config import Durability
from aeon_core.effects.approval import ApprovalDecision, ApprovalRequest, Approver, ask
from aeon_core.effects.cursor import Cursor, RecordedModel
from aeon_core.effects.perform import ModelOutcome, ToolOutcome, call_model, describe, invoke_tool
from aeon_core.errors import LLMError, ReplayMismatchError, RunAborted
from aeon_core.journal.records import (
    ApprovalPoint,
    ApprovalRecord,
    LLMRecord,
    MemoryRecord,
    PassRecord,
    Record,
    RunFinished,
    ToolRecord,
)
from aeon_core.journal.writer import JournalWriter
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.llm.retry import attempts
from aeon_core.memory.base import Memory
from aeon_core.plain import NotPlainError, clean_text, plain
from aeon_core.redaction import holds_secret, redact
from aeon_core.tools.base import Tool
from aeon_core.tools.schema import Schema

logger = logging.getLogger("aeon")


class Effects:
    """Performs, journals, remembers. One instance a run; used by the kernel's thread, `abort` by any."""

    def __init__(
        self,
        journal: JournalWriter,
        *,
        llm: LLMAdapter,
        memory: Memory | None = None,
        approver: Approver | None = None,
        recorded: Cursor | None = None,
        durability: Durability = "normal",
        on_delta: Callable[[str | None, str], None] | None = None,
    ) -> None:
        self._journal = journal
        self._llm = llm
        self._memory = memory
        self._approver = approver
        self._recorded = recorded
        self._durability = durability
        self._on_delta = on_delta
        self._aborted = threading.Event()
        self._calls = 0
        self._unstored: set[str] = set()
        self._known: dict[str, Any] = recorded.first["memory"] if recorded is not None else self._read_memory()
        self.usage = {"input_tokens": 0, "output_tokens": 0}
        self.cost_usd: float | None = 0.0 if llm.simulated else None

    @property
    def now(self) -> str:
        """The kernel's clock: the stamp of the last line, ISO 8601 UTC."""
        return self._recorded.stamp if self._recorded is not None and self._recording else self._journal.stamp

    @property
    def memory(self) -> dict[str, Any]:
        """What the memory is known to hold."""
        return self._known

    @property
    def _recording(self) -> bool:
        return self._recorded is not None and not self._recorded.exhausted

    def abort(self) -> None:
        """Ask the run to end: at the next cycle, or within a second where a model call is in flight."""
        self._aborted.set()

    def control(self) -> None:
        """Act on what a person did meanwhile; polled at the top of a cycle. Raises RunAborted."""
        self._follow_abort(in_a_cycle=False)
        if self._aborted.is_set() and not self._recording:
            raise RunAborted("the run was aborted")

    def _follow_abort(self, *, in_a_cycle: bool) -> None:
        if self._recorded is not None and self._recording:
            message = self._recorded.aborted_here(in_a_cycle=in_a_cycle)
            if message is not None:
                raise RunAborted(message)

    def emit(self, record: Record) -> int:
        """Pass a record of the kernel's to the journal; return its `seq`. Raises JournalError, ReplayMismatchError."""
        if self._recording:
            assert self._recorded is not None
            return self._recorded.expect(record)
        seq = self._journal.append(record)
        if self._durability != "off" and isinstance(record, PassRecord | RunFinished):
            self._journal.sync()
        return seq

    def complete(self, request: LLMRequest, *, pass_number: int, step_id: str | None) -> LLMResponse:
        """Return the model's reply after at most three attempts (core FR-048). Raises LLMError, RunAborted."""
        call_id = self._call_id()
        record = partial(LLMRecord, call_id=call_id, purpose=request.purpose, pass_number=pass_number, step_id=step_id)
        described = _describe(request)
        outcome = ModelOutcome(None, None)
        number = 0

        def attempt(attempt_number: int) -> LLMResponse:
            nonlocal outcome, number
            number = attempt_number
            self.emit(record(state="started", attempt=number, request=described))
            outcome = self._model_outcome(request, call_id, number, step_id)
            if outcome.response is None:
                raise outcome.error or LLMError("the model gave neither a reply nor an error")
            return outcome.response

        def finished(**fields: Any) -> None:
            self.emit(record(state="finished", attempt=number, latency_ms=outcome.latency_ms, **fields))
            self._sync("full")

        def failed(error: LLMError, wait: float | None) -> None:
            self._count(error.usage)
            more = {} if wait is None else {"retry_in_s": wait}
            finished(error=_describe_error(error), usage=error.usage, cost_usd=None, **more)

        try:
            response = attempts(
                attempt,
                on_retry=lambda _, error, wait: failed(error, wait),
                sleep=self._wait,
            )
        except LLMError as error:
            failed(error, None)
            raise
        usage = dict(response.usage) if response.usage is not None else None
        self._count(usage)
        cost_usd = 0.0 if self._llm.simulated else None
        finished(response=response.model_dump(exclude_none=True), usage=usage, cost_usd=cost_usd)
        return response

    def _count(self, usage: Mapping[str, Any] | None) -> None:
        for kind, tokens in (usage or {}).items():
            self.usage[kind] = self.usage.get(kind, 0) + tokens

    def _model_outcome(self, request: LLMRequest, call_id: str, attempt: int, step_id: str | None) -> ModelOutcome:
        self._follow_abort(in_a_cycle=True)
        key = {"call_id": call_id, "state": "finished", "attempt": attempt}
        if line := self._recorded_outcome("llm", key):
            latency_ms = line.get("latency_ms", 0.0)
            if "error" in line:
                return ModelOutcome(None, _recorded_error(line["error"], line.get("usage")), latency_ms)
            return ModelOutcome(LLMResponse.model_validate(line["response"]), None, latency_ms)
        if isinstance(self._llm, RecordedModel):
            self._llm.complete(request)
        if (listener := self._on_delta) is not None:
            request.on_delta = _guarded(listener, step_id)
        return call_model(self._llm, request, self._aborted)

    def invoke(
        self, tool: Tool, arguments: dict[str, Any], output_schema: Schema, *, pass_number: int, step_id: str
    ) -> ToolOutcome:
        """Return what the tool gave. The tool gets a copy of the validated arguments."""
        call_id = self._call_id()
        record = partial(ToolRecord, call_id=call_id, pass_number=pass_number, step_id=step_id, tool_name=tool.name)
        needed: Durability = "normal" if tool.effect == "unsafe" else "full"
        self.emit(record(state="started", arguments=arguments, effect=tool.effect))
        self._follow_abort(in_a_cycle=True)
        if line := self._recorded_outcome("tool", {"call_id": call_id, "state": "finished"}):
            outcome = ToolOutcome(line.get("result"), line.get("error"), line.get("duration_ms", 0.0))
        elif isinstance(self._llm, RecordedModel):
            raise ReplayMismatchError(f"the tool call {call_id!r} was not recorded")
        else:
            self._sync(needed)
            outcome = invoke_tool(tool, plain(arguments), output_schema)
        self.emit(record(state="finished", result=outcome.result, error=outcome.error, duration_ms=outcome.duration_ms))
        self._sync(needed)
        return outcome

    def decide(
        self, point: ApprovalPoint, subject: dict[str, Any], *, pass_number: int, step_id: str | None = None
    ) -> ApprovalDecision:
        """Ask a person; return what was decided. Where nobody can be asked, the answer is `reject` with the reason."""
        digest = hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()
        record = partial(ApprovalRecord, point=point, pass_number=pass_number, step_id=step_id, digest=digest)
        self.emit(record(state="asked", subject=subject))
        if line := self._recorded_outcome("approval", {"digest": digest, "state": "decided"}):
            decision = ApprovalDecision(
                decision=line["decision"], feedback=line.get("feedback"), edited=line.get("edited")
            )
        else:
            self._sync("normal")
            decision = ask(
                self._approver,
                ApprovalRequest(point=point, pass_number=pass_number, step_id=step_id, subject=subject, digest=digest),
            )
        self._journal.redacts |= holds_secret(decision.model_dump_json())
        self.emit(record(state="decided", **decision.model_dump()))
        self._sync("normal")
        return decision

    def remember(self, key: str, value: Any) -> str | None:
        """Write to memory; return the message of a store that refused, which never stops a run."""
        error = self._store(key, value)
        self._known[key] = value
        self.emit(MemoryRecord(key=key, value=value, error=error))
        return error

    def recall(self) -> dict[str, Any]:
        """Return what the memory holds, by key. What others wrote to it meanwhile is journaled first."""
        if self._recording:
            while line := self._recorded_external():
                self._learn(line["key"], line["value"])
        elif (found := self._read_memory(self._known)) is not self._known:
            for key in [*found, *(key for key in self._known if key not in found)]:
                if self._known.get(key) != found.get(key):
                    self._learn(key, found.get(key))
        return self._known

    def _learn(self, key: str, value: Any) -> None:
        """Note what others wrote; a null says that nothing is stored any more."""
        self._known[key] = value
        if value is None:
            del self._known[key]
        self.emit(MemoryRecord(key=key, value=value, source="external"))

    def _recorded_external(self) -> dict[str, Any] | None:
        assert self._recorded is not None
        line = self._recorded.peek()
        return line if line is not None and line["type"] == "memory" and line["source"] == "external" else None

    def _store(self, key: str, value: Any) -> str | None:
        if self._memory is None:
            return None
        if line := self._recorded_outcome("memory", {"key": key}):
            return line.get("error")
        try:
            self._memory.write(key, plain(value))
        except Exception as error:
            logger.warning("memory refused to store %r: %s", key, describe(error))
            self._unstored.add(key)
            return describe(error)
        return None

    def _read_memory(self, otherwise: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return all that the store holds, but for what is no JSON; `otherwise` where it cannot be read."""
        known = otherwise if otherwise is not None else {}
        if self._memory is None:
            return known
        found: dict[str, Any] = {}
        try:
            for key, value in self._memory.search(""):
                try:
                    found[clean_text(key)] = redact(plain(value))
                except NotPlainError as error:
                    logger.warning("memory holds under %r what is no JSON: %s", key, error)
        except Exception as error:
            logger.warning("memory cannot be read: %s", describe(error))
            return known
        # What the store refused to keep is known all the same.
        return {**{key: value for key, value in known.items() if key in self._unstored}, **found}

    def _recorded_outcome(self, tag: str, key: dict[str, Any]) -> dict[str, Any] | None:
        return self._recorded.outcome(tag, key) if self._recorded is not None and self._recording else None

    def _call_id(self) -> str:
        self._calls += 1
        return f"c{self._calls}"

    def _wait(self, seconds: float) -> None:
        self._follow_abort(in_a_cycle=True)
        if self._recording:
            return
        if self._aborted.wait(seconds):
            raise RunAborted("the run was aborted while it waited to repeat a model call")

    def _sync(self, needed: Durability) -> None:
        if not self._recording and (self._durability == "full" or self._durability == needed):
            self._journal.sync()


def _describe(request: LLMRequest) -> dict[str, Any]:
    described = {"system": request.system, "messages": request.messages, "max_tokens": request.max_tokens}
    if request.tools:
        described["tools"] = request.tools
    if request.schema is not None:
        described["schema"] = request.schema
    return described


def _describe_error(error: LLMError) -> dict[str, Any]:
    described = {**error.as_dict(), "retryable": error.retryable, "retry_after": error.retry_after}
    if error.exit_code != 1:
        described["exit_code"] = error.exit_code
    return {key: value for key, value in described.items() if value is not None}


def _recorded_error(described: dict[str, Any], usage: dict[str, int] | None) -> LLMError:
    rest = {key: value for key, value in described.items() if (key, value) != ("error_type", "LLMError")}
    return LLMError(
        rest.pop("message"), rest.pop("retryable", False), rest.pop("retry_after", None), usage=usage, **rest
    )


def _guarded(listener: Callable[[str | None, str], None], step_id: str | None) -> Callable[[str], None]:
    """Return what hands text on to a listener, whose failure is no failure of the call."""

    def listen(text: str) -> None:
        try:
            listener(step_id, text)
        except Exception:
            logger.exception("a listener to replies failed; the run goes on")

    return listen
