"""The port to everything nondeterministic (Decision 2 of the design).

The kernel emits records and asks for outcomes here. As long as there are recorded lines, what it emits is compared with
them and outcomes come from them; past them, effects are performed and appended. Without a performer it is a replay.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from aeon_core.approvals import (
    REVIEWED,
    UNASKED,
    ApprovalDecision,
    ApprovalRequest,
    Approver,
    ask,
    nobody_answered,
    rejected,
    unattended,
)
from aeon_core.budget import CostCeilingReached
from aeon_core.config.journal_trust import is_sealed, seal, unconfirmed
from aeon_core.config.schema import Durability, RunConfig
from aeon_core.effects.model_calls import Deltas, ModelCall, ModelCalls, OnCost, RetryRule, adapters_of
from aeon_core.effects.outcomes import ToolOutcome, describe, in_use, invoke_tool, reconcile, unmade_outcome
from aeon_core.effects.record_stream import RecordStream
from aeon_core.effects.replay_cursor import RecordedModel, RecordingEnded, ReplayCursor
from aeon_core.effects.run_memory import RunMemory
from aeon_core.effects.secret_recovery import LostSecretError, RunSecrets, is_repeatable
from aeon_core.errors import AeonError, RunAborted
from aeon_core.journal.records import (
    ApprovalPoint,
    ApprovalRecord,
    GateRecord,
    ObservationRecord,
    PolicyRecord,
    QuestionRecord,
    Record,
    RunResumed,
    ToolRecord,
)
from aeon_core.journal.writer import JournalWriter
from aeon_core.json_safe import clean_text, json_safe
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.memory import Memory
from aeon_core.policy import Policy, PolicyRules, propose_rule
from aeon_core.process import interrupts_passed_to
from aeon_core.prompts import ReasoningMode, in_reasoning_mode, with_answers
from aeon_core.redaction import SecretVault
from aeon_core.tools.base import CallVerdict, NoDiffError, Tool
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.schema import Schema

_RECORD_OF: Mapping[str, type[ApprovalRecord | GateRecord | QuestionRecord]] = {
    "gate": GateRecord,
    "question": QuestionRecord,
}
"""The record types of the points that have their own."""
logger: logging.Logger = logging.getLogger("aeon")


class Effects:
    """Performs, journals, remembers. One instance a run; used by the kernel's thread, `abort` by any.

    Raises UsageError if the configuration has a budget and a model no known price.
    """

    def __init__(
        self,
        journal: JournalWriter,
        *,
        llm: LLMAdapter,
        config: RunConfig,
        memory: Memory | None = None,
        approver: Approver | None = None,
        recorded: ReplayCursor | None = None,
        on_delta: Deltas | None = None,
        on_call: Deltas | None = None,
        resumed: RunResumed | None = None,
        secrets: RunSecrets | None = None,
        tools: ToolRegistry | None = None,
        unstored: Mapping[str, Any] | None = None,
        retries: RetryRule | None = None,
        on_cost: OnCost | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self._secrets = secrets if secrets is not None else RunSecrets(SecretVault())
        self._secrets.recover_with(self._repeat)
        self._config = config
        options = resumed.options if resumed is not None else {}
        self.rules: PolicyRules = config.policy.joined(options.get("policy", PolicyRules()))
        """The rules for tool calls: those that the run was started with, and those of a resume."""
        self._tools, self._policy = tools, Policy(self.rules)
        replays = isinstance(llm, RecordedModel)
        durability = options.get("durability", config.durability)
        self._stream = RecordStream(journal, recorded, durability, replays=replays, resumed=resumed)
        if sleep is not None:
            self._stream.sleep = sleep
        self._options: dict[str, Any] = {}
        self._judged: Any = ...
        """What the next call would do, as far as rules can see, at the time of its verdict; `...` if it has none."""
        self._trusts = replays or recorded is None or recorded.trusted
        self._claim: tuple[Tool, Mapping[str, Any], Policy, dict[str, str | None]] | None = None
        """The call that comes next, and what judges it, if only recorded lines say that it may be made."""
        self._confirmed = False
        """Whether this user decided about that call."""
        self._edited: dict[str, Any] | None = None
        """The arguments that a recorded decision gave it."""
        self._answered = 0
        """The number of resumes replayed when an open question was last decided."""
        self._on_unknown = config.on_unknown
        self._approve: list[str] = list(config.approve)
        first = recorded.first if recorded is not None else None
        self._llm = llm
        self._approver = approver
        self.memory: RunMemory = RunMemory(
            memory,
            self._stream,
            self._secrets,
            replays=replays,
            recorded=first["memory"] if first is not None else None,
            unstored=unstored or {},
        )
        self.models: ModelCalls = ModelCalls(
            self._stream,
            llm,
            config,
            self._secrets,
            recorded=first,
            on_delta=on_delta,
            on_call=on_call,
            ask_to_lift=self._ask_for_budget,
            retries=retries,
            on_cost=on_cost,
        )

    def restore_checkpoint(self, line: Mapping[str, Any], memory: Mapping[str, Any]) -> None:
        """Restore the state in a `pass` line: of the models and of the memory."""
        self.memory.restore(memory)
        self._stream.restore_checkpoint(line)
        self.models.restore(line["standing"]["models"])

    @property
    def recording(self) -> bool:
        """Whether recorded lines are being replayed."""
        return self._stream.recording

    @property
    def now(self) -> str:
        """The kernel's clock: the stamp of the last line, ISO 8601 UTC."""
        return self._stream.now

    def abort(self) -> None:
        """Ask the run to end: at the next cycle, or within a second if a model call is in flight."""
        self._stream.aborted.set()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the models open, in this block, although another run that shares them is aborted, and let an interrupt
        end only what a replay would end, too: an effect, or the run at its next cycle.
        """
        if isinstance(self._llm, RecordedModel):
            yield
            return
        with in_use(adapters_of(self._llm), self._stream.aborted), interrupts_passed_to(self._stream.interrupt):
            yield

    def control(self) -> dict[str, Any]:
        """Act on what the user did and return the overrides so far; polled at the start of each cycle.

        Raises RunAborted.
        """
        options = self._apply_overrides()
        # After the overrides of a resume: the next one applies it.
        self._stream.resumes_at = self._stream.next_seq
        self._stream.follow_abort(in_a_cycle=False)
        if self._stream.aborted.is_set() and not self._stream.recording:
            raise RunAborted("the run was aborted")
        return options

    def _apply_overrides(self) -> dict[str, Any]:
        for change in self._stream.changes():
            # Decisions about unknown calls apply only to that process.
            self._options = {**self._options, "on_unknown": self._on_unknown, **change["options"]}
        return self._options

    def resumes_from(self, seq: int) -> None:
        """Mark the seq at which a run that ends now continues when it is resumed, whether it failed or not."""
        self._stream.resumes_at = seq
        self._stream.model_failed = True

    def follow_abort(self) -> None:
        """End the run here if a person asked for it, and drop the resume mark.

        Raises RunAborted.
        """
        self._apply_overrides()
        self._stream.resumes_at = None
        self._stream.follow_abort(in_a_cycle=True)
        if self._stream.aborted.is_set() and not self._stream.recording:
            raise RunAborted("the run was aborted")

    def interrupted(self) -> RunAborted:
        """Return the abort that an interrupt was; the run continues here when it is resumed.

        Raises KeyboardInterrupt in a replay, which is no run to abort.
        """
        if isinstance(self._llm, RecordedModel):
            raise KeyboardInterrupt
        self.resumes_from(self.next_seq)
        return RunAborted("the run was interrupted")

    def end_resumable(self) -> None:
        """Record where a run that ends now would resume: at the mark, else after its last record."""
        self.resumes_from(self._stream.resumes_at if self._stream.resumes_at is not None else self._stream.next_seq)

    @property
    def next_seq(self) -> int:
        """The seq of the next record."""
        return self._stream.next_seq

    def observe(self, what: str, look: Callable[[], Any]) -> Any:
        """Return what `look` observes outside as plain JSON without secrets; a replay reads it from the record.

        Effects of `look` must be idempotent. Raises AeonError if it fails; a run that ends then looks again when it is
        resumed.
        """
        seq = self._stream.next_seq
        value, failed = None, None
        if self._stream.recording:
            value, failed = (self._stream.ahead().get(key) for key in ("value", "error"))
        elif isinstance(self._llm, RecordedModel):
            raise RecordingEnded(f"what was seen of {what!r} was not recorded")
        else:
            try:
                value = self._secrets.conceal(json_safe(self._stream.perform(look)))
            except AeonError as error:
                failed = error.message
            except Exception as error:
                logger.exception("cannot see %r", what)
                failed = f"internal error: {describe(error)}"
            failed = self._secrets.conceal(clean_text(failed)) if failed is not None else None
        if failed is None:
            self.emit(ObservationRecord(what=what, value=value))
            return value
        self.emit(ObservationRecord(what=what, value=value, error=failed))
        self.resumes_from(seq)
        raise AeonError(failed)

    def emit(self, record: Record) -> int:
        """Append a record from the kernel; return its `seq`. Raises JournalError, ReplayMismatchError."""
        return self._stream.emit(record)

    def complete(self, request: LLMRequest, *, pass_number: int, step_id: str | None) -> LLMResponse:
        """Return a model's reply (core FR-048). Raises LLMError, RunAborted, CostCeilingReached."""
        return self.models.complete(ModelCall(self._stream.call_id(), request, pass_number, step_id))

    def _ask_for_budget(self, ceiling: CostCeilingReached, call: ModelCall) -> float | None:
        """Ask the user at the cost ceiling; return the new limit in US dollars, None to keep the old one."""
        needed = sum(ceiling.context[part] for part in ("spent_usd", "held_usd", "reserved_usd"))
        proposed = max(2 * ceiling.context["limit_usd"], math.ceil(100 * needed) / 100)
        asker = {"model": self.models.model.model, "purpose": call.request.purpose}
        subject = {**ceiling.context, **asker, "proposed_usd": proposed}
        answer = self.decide("budget", subject, pass_number=call.pass_number, step_id=call.step_id)
        if answer.decision == "abort":
            raise RunAborted("the run was aborted at the question for a larger budget")
        if answer.decision == "edit":
            limit = (answer.edited or {}).get("limit_usd")
            return float(limit) if isinstance(limit, int | float) and limit <= sys.float_info.max else None
        return proposed if answer.decision == "approve" else None

    def invoke(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        output_schema: Schema,
        *,
        pass_number: int,
        step_id: str,
        substitutes: str | None = None,
    ) -> ToolOutcome:
        """Return the tool's outcome. The tool gets a copy of the validated arguments, with their secrets."""
        call_id = self._stream.call_id()
        record = partial(ToolRecord, call_id=call_id, pass_number=pass_number, step_id=step_id, tool_name=tool.name)
        needed: Durability = "normal" if tool.effect == "unsafe" else "full"
        begun = self._stream.recording
        started = record(state="started", arguments=arguments, effect=tool.effect, substitutes=substitutes)
        self.emit(started)
        self._stream.follow_abort(in_a_cycle=True)
        refused = self._decide_unknown(tool, started) if begun else None
        missing = f"the outcome of the tool call {call_id!r} was not recorded"
        if line := self._stream.outcome("tool", {"call_id": call_id, "state": "finished"}, missing):
            outcome = ToolOutcome(line.get("result"), line.get("error"), line.get("duration_ms", 0.0), line.get("note"))
        elif refused is not None:
            outcome = refused
        else:
            if begun:
                self._confirm()
            self._stream.sync(needed)
            judged, self._judged = self._judged, ...
            outcome = self._outcome_by_now(tool, begun=begun) or self._invoke_live(
                tool, arguments, output_schema, judged
            )
        self.emit(record(state="finished", **vars(outcome)))
        self._stream.sync(needed)
        return outcome

    def _invoke_live(
        self, tool: Tool, arguments: dict[str, Any], output_schema: Schema, judged: Any = ...
    ) -> ToolOutcome:
        """Invoke a tool with the secrets in its arguments, which must then still satisfy its input_schema.

        It is not invoked if the call would do something else than what was `judged`, such as to write elsewhere because
        a folder became a link while a person decided.
        """
        try:
            live = self._secrets.reveal(arguments)
        except LostSecretError as error:
            return ToolOutcome(None, error.as_dict())
        if live is not arguments and (problems := Schema(tool.input_schema).errors(live, shown=self._secrets.conceal)):
            message = f"the arguments of {tool.name!r} do not fit: {'; '.join(problems)}"
            return ToolOutcome(None, {"error_type": "ValidationError", "message": self._secrets.conceal(message)})
        if judged is not ... and self._stream.perform(lambda: tool.parts(dict(live))) != judged:
            message = (
                f"the call of {tool.name!r} would no longer do what it was allowed to: a path leads elsewhere by now"
            )
            return ToolOutcome(None, {"error_type": "ToolError", "message": f"{message}; make the call again"})
        given, conceal = json_safe(live), self._secrets.conceal
        return self._stream.perform(lambda: invoke_tool(tool, given, output_schema, conceal))

    def _decide_unknown(self, tool: Tool, started: ToolRecord) -> ToolOutcome | None:
        """Return the outcome of a call that started but did not finish; None to make the call (again).

        It is made again if it is not unsafe and no rule asks about it by now. Otherwise the tool itself may know, or a
        person or the policy (`on_unknown`) decides, and the decision is journaled. A retry has a `started` record of
        its own.
        """
        call_id, arguments = started.call_id, dict(started.arguments or {})
        while True:
            written = self._stream.appended
            if self._stream.ahead().get("point") != "unknown":
                if self._stream.recording or (tool.effect != "unsafe" and self._asked_by_now() is None):
                    return None
                if (known := self._reconcile(tool, call_id, arguments)) is not None:
                    return known
                # A call that is not confirmed is not asked about either.
                self._decide_unattended(tool)
            subject = {"tool_name": tool.name, "arguments": arguments, "call_id": call_id}
            decided = self.decide(
                "unknown",
                subject,
                pass_number=started.pass_number,
                step_id=started.step_id,
                policy=partial(self._decide_unattended, tool),
            )
            if decided.decision == "abort":
                raise RunAborted(f"the run was aborted at the question about the interrupted call of {tool.name!r}")
            again, live = decided.decision in ("approve", "replay"), self._stream.appended > written
            if live and not again:
                by_rule = self._asked_by_now() if nobody_answered(decided.feedback) else None
                why = f"{by_rule} and {decided.feedback}" if by_rule is not None else decided.feedback
                return unmade_outcome(tool, why, begun=True)
            ahead = self._stream.ahead()
            if live or (again and (ahead.get("type"), ahead.get("state")) == ("tool", "started")):
                self.emit(started)
                self._stream.follow_abort(in_a_cycle=True)
            if live:
                return None

    def _decide_unattended(self, tool: Tool) -> ApprovalDecision | None:
        """Return what today's rules decide about a begun call, or `on_unknown` if it is unsafe; None to ask a person.

        Raises UnconfirmedCall.
        """
        if (denied := self.denied_by_now()) is not None:
            return denied
        decided = unattended(self._apply_overrides().get("on_unknown", self._on_unknown))
        if tool.effect != "unsafe":
            decided = ApprovalDecision(decision="approve", feedback=UNASKED.format("call"))
        if decided is not None and decided.decision == "approve":
            if self._asked_by_now() is not None:
                return None
            self._confirm()
        return decided

    def _reconcile(self, tool: Tool, call_id: str, arguments: dict[str, Any]) -> ToolOutcome | None:
        """Return what a tool itself knows about a call; None if it does not know, or if a secret it needs is lost."""
        try:
            known, conceal = self._secrets.reveal(arguments), self._secrets.conceal
            return self._stream.perform(lambda: reconcile(tool, call_id, known, conceal))
        except LostSecretError:
            return None

    def _repeat(self, line: Mapping[str, Any]) -> str | None:
        """Repeat what a record began to recover a secret in its outcome; return why that failed."""
        if line["type"] == "llm":
            return self.models.repeat(line)
        if line["type"] == "tool":
            return self._repeat_tool_call(line)
        self.memory.read_store()
        return None

    def _repeat_tool_call(self, started: Mapping[str, Any]) -> str | None:
        tool = self._tools.get(started["tool_name"]) if self._tools is not None else None
        if tool is None or not (is_repeatable(tool.effect) and is_repeatable(started["effect"])):
            return "that call is not safe to repeat" if tool is not None else "that tool no longer exists"
        try:
            arguments, substitutes = self._secrets.reveal(started["arguments"]), started.get("substitutes")
            if self._policy.verdict(tool, arguments, substitutes=substitutes).answer != "allow":
                return "the policy does not allow repeating that call"
        except LostSecretError as error:
            return error.message
        call_id = f"{started['call_id']}.{self._stream.repeats_so_far + 1}"
        record = partial(
            ToolRecord,
            call_id=call_id,
            pass_number=started["pass"],
            step_id=started["step_id"],
            tool_name=tool.name,
            repeats=started["call_id"],
        )
        self._stream.append(record(state="started", arguments=started["arguments"], effect=tool.effect))
        outcome = self._invoke_live(tool, started["arguments"], Schema(tool.output_schema))
        finished = record(state="finished", result=outcome.result, error=outcome.error, duration_ms=outcome.duration_ms)
        self._stream.append(finished)
        return str(outcome.error["message"]) if outcome.error is not None else None

    @property
    def approve(self) -> list[str]:
        """The points at which the user is asked: as configured at the start, or as last overridden."""
        return list(self._options.get("approve", self._approve))

    def asks_here(self, point: ApprovalPoint) -> bool:
        """Return whether a person is asked here; in a recording, whether one was: earlier versions asked less often."""
        return point in self.approve and (not self._stream.recording or self._stream.ahead().get("point") == point)

    @property
    def continues_with_plan(self) -> bool:
        """Whether the recorded run continues with a plan here, as earlier versions did after an edit without effect."""
        return self._stream.recording and self._stream.ahead().get("type") == "plan"

    @property
    def given_answers(self) -> dict[str, str]:
        """The answers that came with an abort which the last resume revoked, by question, until the next decision."""
        changes = self._stream.changes()
        return dict(changes[-1].get("answers") or {}) if len(changes) > self._answered else {}

    def auto_approval(self, point: ApprovalPoint) -> ApprovalDecision | None:
        """Return the automatic approval of a point that no longer asks; None if a person is asked."""
        if point in self._apply_overrides().get("approve", self._approve):
            return None
        return ApprovalDecision(decision="approve", feedback=UNASKED.format(point))

    def judge(
        self,
        policy: Policy,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        pass_number: int,
        step_id: str,
        substitutes: str | None = None,
        objection: str | None = None,
    ) -> CallVerdict:
        """Return the policy's verdict on a call; journaled, since it depends on the file system and the machine.

        Raises UnconfirmedCall if only the journal allows it.
        """
        is_edit, self._claim = arguments is self._edited, None
        more = {"substitutes": substitutes, "objection": objection}
        if self._stream.recording:
            self._claim = tool, arguments, policy, more
            self._confirmed = self._confirmed and is_edit
            line = self._stream.ahead()
            noted = line.get("type") == "policy"
            recorded = CallVerdict(line["answer"], line["reason"], line.get("proposal")) if noted else None
            verdict = recorded or CallVerdict("allow", "as recorded")
        else:
            verdict = self._verdict(policy, tool, arguments, **more)
            if verdict.answer != "deny":
                known = dict(self._secrets.reveal(arguments))
                self._judged = self._stream.perform(lambda: tool.parts(known))
            noted = tool.needs_approval or verdict.answer != "allow"
        if noted:
            self.emit(PolicyRecord(pass_number=pass_number, step_id=step_id, tool_name=tool.name, **asdict(verdict)))
        if is_edit or verdict.answer == "allow":
            ahead = self._stream.ahead()
            judged_again = ahead.get("type") == "policy" and ahead["answer"] != "allow"
            if not is_edit and (judged_again or self._asked_by_now()):
                # A rule that the run lacked when it was recorded asks about the call.
                return self.judge(policy, tool, arguments, pass_number=pass_number, step_id=step_id, **more)
            self._confirm()
        return verdict

    def _note_decision(self, asked_at: int, line: Mapping[str, Any], edited: dict[str, Any] | None) -> None:
        """Note a recorded decision by which a call may be made. Raises UnconfirmedCall if it is not this user's."""
        run_id = self._stream.journal.run_id
        self._confirmed = self._trusts or is_sealed(run_id, asked_at, line, self._config.root)
        self._edited = edited
        if self._claim is not None and edited is not None:
            tool, _, policy, more = self._claim
            self._claim = tool, edited, policy, more
        self._confirm()

    def _confirm(self) -> None:
        """Raise UnconfirmedCall if the recorded lines end here, and only they say that the next call may be made.

        It may be if this user decided that or trusts the journal, or if the rules of the run allow it without asking.
        One that they deny by now will not be made.
        """
        if self._claim is None or self._confirmed or self._trusts or self._stream.recording:
            return
        tool, arguments, *_ = self._claim
        if (verdict := self._verdict_by_now()) is not None and verdict.answer == "ask":
            raise unconfirmed(self._stream.journal.run_id, tool.name, arguments, self._config.root)

    def _verdict_by_now(self) -> CallVerdict | None:
        """Return the verdict on a call that the recorded lines allow; None for any other, and if it cannot be made."""
        if self._claim is None:
            return None
        tool, arguments, policy, more = self._claim
        try:
            return self._stream.perform(lambda: policy.verdict(tool, self._secrets.reveal(arguments), **more))
        except LostSecretError:
            return None

    def _asked_by_now(self) -> str | None:
        """Return why a rule asks by now about a call that recorded lines lead to; None for another or a decided one."""
        if self._claim is None or self._confirmed or self._stream.recording:
            return None
        tool, arguments, policy, _ = self._claim
        try:
            known = self._secrets.reveal(arguments)
        except LostSecretError:
            return None
        ruled = self._stream.perform(lambda: policy.restricted(tool, known))
        return self._secrets.conceal(ruled.reason) if ruled is not None and ruled.answer == "ask" else None

    def denied_by_now(self) -> ApprovalDecision | None:
        """Return the rejection of a call that recorded lines lead to and a rule denies by now; None for any other."""
        verdict = self._verdict_by_now()
        if verdict is None or verdict.answer != "deny":
            return None
        return rejected(self._secrets.conceal(verdict.reason))

    def _outcome_by_now(self, tool: Tool, *, begun: bool) -> ToolOutcome | None:
        """Return the outcome of a call that is denied by now; None for any other."""
        denied = self.denied_by_now()
        return unmade_outcome(tool, denied.feedback, begun=begun) if denied is not None else None

    def _verdict(self, policy: Policy, tool: Tool, arguments: Mapping[str, Any], **more: str | None) -> CallVerdict:
        try:
            known = self._secrets.reveal(arguments)
            verdict = self._stream.perform(lambda: policy.verdict(tool, known, **more))
        except LostSecretError as error:
            return CallVerdict("deny", error.message)
        proposal = None
        if verdict.answer == "ask":
            proposal = propose_rule(policy, tool, known, **more)
            if (concealed := self._secrets.conceal(proposal)) != proposal:
                proposal = {"why_not": "the call contains a secret"} if "rule" in proposal else concealed
        return CallVerdict(verdict.answer, self._secrets.conceal(verdict.reason), proposal)

    def preview(self, tool: Tool, arguments: Mapping[str, Any]) -> dict[str, str] | None:
        """Return a preview of what a call would change in a file: its `diff`, the `problem` with it, or a
        `warning` that it replaces what no diff can show.

        None if it changes no file. This depends on the file system, so a replay reads it from the record.
        """
        if self._stream.recording:
            return (self._stream.ahead().get("subject") or {}).get("preview")
        try:
            known = dict(self._secrets.reveal(arguments))
            found = self._stream.perform(lambda: tool.preview(known))
        except AeonError as error:
            key = "warning" if isinstance(error, NoDiffError) else "problem"
            return {key: self._secrets.conceal(error.message)}
        except Exception as error:
            return {"problem": self._secrets.conceal(describe(error))}
        return {"diff": clean_text(self._secrets.conceal(found))} if found is not None else None

    def preview_changed(self, tool: Tool, arguments: Mapping[str, Any], shown: dict[str, str] | None) -> bool:
        """Return whether a call would now change something other than what was shown."""
        if self._stream.recording:
            ahead = self._stream.ahead()
            return (ahead.get("type"), ahead.get("point"), ahead.get("state")) == ("approval", "tool", "asked")
        return self.preview(tool, arguments) != shown

    def decide(
        self,
        point: ApprovalPoint,
        subject: dict[str, Any],
        *,
        pass_number: int,
        step_id: str | None = None,
        policy: Callable[[], ApprovalDecision | None] = lambda: None,
    ) -> ApprovalDecision:
        """Ask a person, unless a policy decides; return the decision.

        If nobody can be asked, it is `reject` with the reason. The person sees the subject with its secrets; the digest
        binds what is recorded.
        """
        asked_at = self._stream.next_seq
        digest = hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()
        kind = _RECORD_OF.get(point, ApprovalRecord)
        record = partial(kind, point=point, pass_number=pass_number, step_id=step_id)
        seq = self.emit(record(state="asked", subject=subject, digest=digest))
        self._stream.follow_abort(in_a_cycle=True)
        missing = f"what was decided about the {point} was not recorded"
        line = self._stream.outcome(kind.tag, {"digest": digest, "state": "decided"}, missing)
        if line is not None:
            decision = ApprovalDecision(**{key: line[key] for key in ApprovalDecision.model_fields if key in line})
        elif (decided := policy()) is not None:
            decision = decided
        else:
            self._stream.sync("normal")
            shown = self._secrets.shown(subject)
            request = ApprovalRequest(
                point=point, pass_number=pass_number, step_id=step_id, subject=shown, digest=digest
            )
            decision = self._stream.perform(lambda: ask(self._approver, request))
            decision = ApprovalDecision(**self._secrets.conceal_edited(decision.model_dump()))
        if decision.answers is None and (given := subject.get("answers")):
            decision = decision.model_copy(update={"answers": given})
        body = {**decision.model_dump(), "digest": digest}
        if allows := point == "tool" and decision.decision in ("approve", "edit"):
            body["seal"] = seal(self._stream.journal.run_id, seq, body) if line is None else line.get("seal")
        self.emit(record(state="decided", **body))
        if line is None:
            self._confirmed |= decision.decision != "reject"
        elif allows:
            self._note_decision(seq, line, decision.edited)
        if decision.decision == "abort" or (point in REVIEWED and nobody_answered(decision.feedback)):
            # The question is asked again when the run is resumed.
            self._stream.resumes_at = asked_at
            # An earlier version may have ended the run with another message.
            self._stream.follow_abort(in_a_cycle=False)
        elif point in REVIEWED:
            self._answered = len(self._stream.changes())
        self._stream.sync("normal")
        return decision


@dataclass
class EffectModel(LLMAdapter):
    """The model behind the port. `place` gives (pass, step_id) of a call, `on_response` gets each reply.

    `mode` gives the reasoning_mode of a request, None if there is none yet (adaptive FR-026); `answers` the person's
    answers to open questions, which every request concerned includes.
    """

    effects: Effects
    place: Callable[[], tuple[int, str | None]]
    on_response: Callable[[LLMRequest, LLMResponse], None]
    mode: Callable[[], ReasoningMode | None] = lambda: None
    answers: Callable[[], Mapping[str, str]] = dict

    def complete(self, request: LLMRequest) -> LLMResponse:
        pass_number, step_id = self.place()
        request = with_answers(request, self.answers())
        if (mode := self.mode()) is not None:
            request = in_reasoning_mode(request, mode)
        response = self.effects.complete(request, pass_number=pass_number, step_id=step_id)
        self.on_response(request, response)
        return response
