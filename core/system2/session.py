"""One agent's tool-use loop, from a contract to a completion, and again after a rejection (REQ-050…055, 092)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from aeon_core.budget import CostCeilingReached
from aeon_core.effects.model_calls import RetryRule
from aeon_core.errors import AeonError, LLMError
from aeon_core.journal.records import AgentRecord
from aeon_core.llm.base import LLMRequest, LLMResponse, Message
from aeon_core.reasoning import reply_text
from system2.agents import AgentDefinition
from system2.constants import COMPLETION_TOOL
from system2.context import WorkflowContext
from system2.contracts import CompletionSignal, DelegationContract, implicit_completion, signal_of
from system2.converse import (
    SUMMARIZER,
    Conversation,
    ToolUseRequest,
    Turn,
    WindowMeter,
    as_turns,
    reply_message,
    summary_parts,
    summary_prompt,
    tool_uses,
    use_ids,
)
from system2.cost import CostRecord, dollars, total_cost
from system2.policies import Question
from system2.prompt_injection import scan_for_injection
from system2.toolbox import Toolbox

Halt = Literal["max_tokens", "turn_limit", "context_overflow", "injection"]
THROTTLE_RETRIES = 3
SERVICE_RETRIES = 2
"""For a 5xx and any other error that may be temporary."""
MAX_WAIT = 30.0
"""The longest wait before an attempt, in seconds (REQ-090)."""
MAX_CONTINUATIONS = 3
"""How often in a row an agent whose reply was cut off is asked to continue."""
REFUSED = "the model refused to answer"
ACKNOWLEDGED = "Completion acknowledged."
_CUT = (
    "Your reply was cut off at {tokens:,} tokens. Go on where it ends; keep replies shorter, "
    "and write a long file in several parts."
)
_CUT_USE = (
    "not carried out: your reply was cut off at {tokens:,} tokens, so the call may be incomplete; "
    "call it again with less, such as a file in several parts"
)
_EMPTY = "Your reply was empty. Go on with the work, or signal completion where it is done."
_REJECTED = """## Feedback

The work was reviewed by a person and was not approved. What was said:

{feedback}

Take it into account, change what it concerns, and signal completion again when you have done so."""


@dataclass(frozen=True)
class AgentResult:
    """How an agent's work ended."""

    agent: str
    completion: CompletionSignal | None
    """None if it was halted."""
    halted: Halt | None
    text: str
    """What the agent said last."""
    cost: CostRecord
    """Of this round alone."""
    files_changed: tuple[str, ...]
    """What its Write and Edit calls changed in all rounds."""


class _Halted(Exception):
    """The agent's work ends here; its argument is a Halt."""


class AgentSession:
    """One agent's conversation."""

    def __init__(self, agent: AgentDefinition, context: WorkflowContext) -> None:
        self.agent = agent
        self.rounds: int = 0
        """How often it was set to work."""
        self._context = context
        self._toolbox = Toolbox(agent, context)
        self._conversation = Conversation()
        window = context.settings.context_window_tokens
        self._meter = WindowMeter(min(window, context.model_of(agent.name).context_window or window))
        self._text = ""
        self._tool_turns = 0
        for warning in self._toolbox.allowance.warnings:
            self._notice("provider", f"agent {agent.name!r}: {warning}")

    @property
    def history(self) -> list[Turn]:
        """The conversation so far, as Converse turns."""
        return as_turns(self._conversation.messages)

    def run(self, contract: DelegationContract, feedback: str | None = None) -> AgentResult:
        """Have the agent work on a contract, and return how that ended (REQ-041).

        After a rejection, `feedback` continues the conversation (REQ-043); if there is none, as for an earlier
        workflow's document, it starts with the contract and the feedback. Raises CostCeilingReached, LLMError
        or RunAborted, as a model's call does.
        """
        if feedback is None or not self._conversation.messages:
            self._conversation.add_text(contract.to_message())
        if feedback is not None:
            self._conversation.add_text(_REJECTED.format(feedback=feedback.strip() or "(no reason was given)"))
        context, name = self._context, self.agent.name
        self.rounds += 1
        self._toolbox.round = self.rounds
        record = partial(AgentRecord, agent=name, pass_number=self.rounds)
        context.effects.emit(
            record(
                state="started",
                contract=contract.as_dict(),
                feedback=feedback,
                model=context.model_of(name).model,
                system=self.agent.system_prompt,
                tools=self._toolbox.names,
                source=str(self.agent.source_path),
            )
        )
        before, turns = len(context.spent), self._tool_turns
        completion: CompletionSignal | None = None
        halted: Halt | None = None
        try:
            completion = self._work()
        except _Halted as ending:
            (halted,) = ending.args
        main = context.effects.models.model.model
        cost = total_cost(context.spent[before:], main, name, self._tool_turns - turns)
        changed = tuple(self._toolbox.files_changed)
        said = completion.as_dict() if completion is not None else None
        context.effects.emit(
            record(state="finished", cost=cost.as_dict(), completion=said, halted=halted, files_changed=list(changed))
        )
        return AgentResult(name, completion, halted, self._text, cost, changed)

    def _work(self) -> CompletionSignal:
        """Run the tool-use loop until the agent signals completion, or ends without a signal (REQ-050)."""
        tool_turns = cut_off = 0
        was_silent = False
        while True:
            reply, uses = self._exchange()
            self._review(reply, uses)
            was_empty, was_silent = was_silent, not reply.text.strip() and not uses
            if uses:
                if tool_turns >= self._context.settings.max_tool_turns and not _only_signals(uses):
                    raise _Halted("turn_limit")
                tool_turns, cut_off = tool_turns + 1, 0
                if (signal := self._carry_out(uses, is_cut=reply.stop_reason == "max_tokens")) is not None:
                    return signal
                if tool_turns > self._context.settings.max_tool_turns:
                    raise _Halted("turn_limit")
            elif reply.stop_reason == "max_tokens":
                cut_off += 1
                if cut_off > MAX_CONTINUATIONS:
                    raise _Halted("max_tokens")
                self._conversation.add_text(_CUT.format(tokens=self._context.settings.max_output_tokens))
            elif reply.stop_reason == "refusal":
                return CompletionSignal("failure", [], reply.text if reply.text.strip() else REFUSED)
            elif was_silent and not was_empty:
                # Models sometimes end a turn like this after tool results, and continue when asked.
                self._conversation.add_text(_EMPTY)
            else:
                return implicit_completion(reply.text)

    def _carry_out(self, uses: list[ToolUseRequest], *, is_cut: bool) -> CompletionSignal | None:
        """Answer every tool use of a reply, one after the other (REQ-052); return the completion that it signals.

        The last one of a reply that was cut off may be incomplete, and is not carried out.
        """
        if not _only_signals(uses):
            self._tool_turns += 1
        cut = uses[-1] if is_cut else None
        failed: list[str] = []
        for use in uses:
            if use is cut:
                text = _CUT_USE.format(tokens=self._context.settings.max_output_tokens)
                result = self._toolbox.answer(use, text, is_error=True)
            elif use.name == COMPLETION_TOOL:
                continue
            else:
                result = self._toolbox.use(use)
            self._conversation.answer(result)
            if result.is_error:
                failed.append(use.name)
        signals = [use for use in uses if use.name == COMPLETION_TOOL and use is not cut]
        return self._accept_signals(signals, failed)

    def _accept_signals(self, signals: list[ToolUseRequest], failed: list[str]) -> CompletionSignal | None:
        """Answer the completion signals of a reply, and return the first valid one."""
        accepted: CompletionSignal | None = None
        for use in signals:
            try:
                if failed:
                    raise ValueError(f"{', '.join(failed)} failed in the same reply; look at that, and signal again")
                if use.malformed:
                    raise ValueError("its input is not a JSON object")
                signal = signal_of(use.input)
            except ValueError as error:
                result = self._toolbox.answer(use, f"not taken: {error}", is_error=True)
            else:
                accepted = accepted or signal
                result = self._toolbox.answer(use, ACKNOWLEDGED)
            self._conversation.answer(result)
        return accepted

    def _review(self, reply: LLMResponse, uses: list[ToolUseRequest]) -> None:
        """Ask a person about a message that may pass on an instruction to a model (REQ-113)."""
        text = reply.text if reply.text.strip() else ""
        self._text = text or self._text
        found = scan_for_injection("\n\n".join([text, *_signalled_texts(uses)]), passed_on=True)
        if not found:
            return
        for finding in found:
            self._notice("flagged", f"a message from {self.agent.name!r} {finding}")
        text = f"a message from {self.agent.name!r} may contain an injected instruction; continue?"
        question = Question("injection", self.agent.name, text, ("stop", "continue"), "stop", tuple(found))
        if self._context.choose(question, self.rounds) != "continue":
            raise _Halted("injection")

    def _exchange(self) -> tuple[LLMResponse, list[ToolUseRequest]]:
        """Send the next messages, and return the reply and its tool uses.

        Raises _Halted if they do not fit the context window.
        """
        while True:
            messages = self._conversation.outgoing()
            request = LLMRequest(
                purpose="tool_call",
                system=self.agent.system_prompt,
                messages=messages,
                tools=self._toolbox.specs(),
                max_tokens=self._context.settings.max_output_tokens,
                cache_prefix=True,
                conversation=self.agent.name,
            )
            if self._fits(request):
                try:
                    reply = self._ask_model(request)
                except LLMError as error:
                    if not error.context.get("context_too_long"):
                        raise
                else:
                    uses = tool_uses(reply, use_ids(messages))
                    self._conversation.add_reply(reply_message(reply, uses))
                    usage = reply.usage or {"input_tokens": 0, "output_tokens": 0}
                    self._meter.learn(self.history, usage["input_tokens"] + usage["output_tokens"])
                    return reply, uses
            if not self._conversation.messages:
                # There is no history to summarize, or it is a summary already.
                raise _Halted("context_overflow")
            self._summarize(messages)

    def _ask_model(self, request: LLMRequest) -> LLMResponse:
        """Return the reply to a request.

        If the model cannot be reached after all retries, a person decides whether to try again (REQ-091). Raises
        LLMError (exit 3 if credentials are rejected), with `context_too_long` in its context if the request does
        not fit; CostCeilingReached (exit 4) if the ceiling is reached and not raised; RunAborted.
        """
        effects, name = self._context.effects, self.agent.name
        while True:
            effects.follow_abort()
            try:
                return effects.complete(request, pass_number=self.rounds, step_id=name)
            except CostCeilingReached as ceiling:
                names = ("spent_usd", "limit_usd", "reserved_usd")
                spent, limit, next_call = (dollars(ceiling.context[name]) for name in names)
                message = (
                    f"the workflow has cost {spent} and the next call may cost up to {next_call}; the ceiling is "
                    f"{limit}, and it was not raised; set cost_ceiling_usd in .system2/config.yml"
                )
                raise CostCeilingReached(message, **ceiling.context) from None
            except LLMError as error:
                if not error.context.get("may_pass"):
                    raise
                question = Question("api_error", name, error.message, ("abort", "retry"), "abort")
                if self._context.choose(question, self.rounds) != "retry":
                    raise

    def _fits(self, request: LLMRequest) -> bool:
        tokens = self._meter.estimate(request.system, as_turns(request.messages), request.tools)
        verdict = self._meter.judge(tokens)
        if verdict == "warn":
            share, window = 100 * tokens // self._meter.tokens, self._meter.tokens
            self._notice(
                "context_window", f"the conversation of {self.agent.name!r} uses about {share} % of {window:,} tokens"
            )
        return verdict != "overflow"

    def _summarize(self, messages: list[Message]) -> None:
        """Replace the conversation with a summary if a person agrees (REQ-055).

        Raises _Halted if not, or if the model gives none.
        """
        context, name = self._context, self.agent.name
        text = f"the conversation of {name!r} no longer fits {self._meter.tokens:,} tokens"
        question = Question("context_overflow", name, text, ("abort", "summarize"), "abort")
        if context.choose(question, self.rounds) != "summarize":
            raise _Halted("context_overflow")
        summary = ""
        reply_tokens = min(context.settings.max_output_tokens, self._meter.tokens // 8)
        for part in summary_parts(as_turns(messages), self._meter.tokens, reply_tokens):
            prompt: Message = {"role": "user", "content": summary_prompt(part, summary)}
            reply = self._ask_model(LLMRequest("reason", SUMMARIZER, [prompt], max_tokens=reply_tokens))
            try:
                summary = reply_text(reply)
            except AeonError as error:
                # Without a summary, the agent would begin its work again.
                self._notice("context_window", f"the conversation of {name!r} was not summarized: {error.message}")
                raise _Halted("context_overflow") from None
        self._conversation.replace_by_summary(summary)
        self._meter.reset()
        self._notice("context_summarized", f"the conversation of {name!r} was summarized")

    def _notice(self, kind: str, message: str) -> None:
        self._context.note(kind, self.agent.name, message, self.rounds)


def limit_retries(error: LLMError, attempt: int) -> LLMError:
    """Return the error for the retry policy, not retryable after the last attempt that its kind gets."""
    if error.retryable:
        error.context["may_pass"] = True
        starting = error.status_code is None and bool(error.context.get("unavailable"))
        error.retryable = error.status_code == 429 or starting or attempt <= SERVICE_RETRIES
    if isinstance(error.retry_after, int | float):
        error.retry_after = min(float(error.retry_after), MAX_WAIT)
    return error


RETRIES = RetryRule(1 + THROTTLE_RETRIES, limit_retries)
"""How often a call is tried (REQ-090, REQ-091)."""


def _signalled_texts(uses: list[ToolUseRequest]) -> list[str]:
    """Return the texts in a reply's completion signals: people read them, and the executor gets the blockers."""
    texts: list[str] = []
    for use in uses:
        if use.name == COMPLETION_TOOL:
            blockers = use.input.get("blockers")
            texts += [str(use.input.get("summary", "")), *map(str, blockers if isinstance(blockers, list) else [])]
    return texts


def _only_signals(uses: list[ToolUseRequest]) -> bool:
    return all(use.name == COMPLETION_TOOL for use in uses)
