"""One call of the model: the ceiling before it, its attempts, cost and transcript after it (REQ-090…093, 130…132)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from aeon_core.budget import CostCeilingReached, estimated_tokens
from aeon_core.effects.outcomes import ModelOutcome, call_model
from aeon_core.errors import LLMError, RunAborted
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon_core.llm.retry import attempts
from aeon_core.redaction import conceal
from system2.converse import ConverseTurn, Turn, turn_of, use_ids
from system2.cost import CostTracker, dollars
from system2.entries import ApiRequest, ApiResponse, Notice
from system2.human_input import HumanInput
from system2.logs import Log
from system2.policies import Question
from system2.transcript import Transcript

THROTTLE_RETRIES = 3
SERVICE_RETRIES = 2
"""After a 5xx, and after whatever else may pass by itself."""
MAX_WAIT = 30.0
"""The longest wait before an attempt, in seconds (REQ-090)."""

Purpose = Literal["work", "summary"]
ModelOfAgent = Callable[[str], LLMAdapter]
"""Gives the model that an agent has."""


@dataclass
class _Call:
    """A request, and how the last attempt at it went."""

    agent: str
    purpose: Purpose
    request: LLMRequest
    turns: list[Turn]
    attempt: int = 0
    outcome: ModelOutcome = field(default_factory=lambda: ModelOutcome(None, None))


class ModelCalls:
    """The calls of one workflow, one after the other."""

    def __init__(
        self,
        model_of: ModelOfAgent,
        costs: CostTracker,
        transcript: Transcript,
        log: Log,
        human_input: HumanInput,
        *,
        abort: threading.Event,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self._model_of, self._costs, self._transcript, self._log = model_of, costs, transcript, log
        self._human_input = human_input
        self._abort = abort
        self._sleep = sleep or abort.wait
        self._recorded: dict[str, _Recorded] = {}
        """The last request of each agent in the transcript."""

    def ask(self, agent: str, request: LLMRequest, turns: list[Turn], purpose: Purpose = "work") -> ConverseTurn:
        """Return the reply to a request, whose messages are the `turns`.

        Where the model cannot be reached after all retries, a person says whether to try again (REQ-091). Raises
        LLMError (exit 3 where credentials are refused), with `context_too_long` in its context where the request does
        not fit; CostCeilingReached (exit 4) where the ceiling is reached and not lifted; RunAborted.
        """
        while True:
            self._hold_at_ceiling(agent)
            try:
                return self._with_retries(_Call(agent, purpose, request, turns))
            except LLMError as error:
                if not (error.context.get("may_pass") and self._tries_again(agent, error)):
                    raise

    def _with_retries(self, call: _Call) -> ConverseTurn:
        turn: list[ConverseTurn] = []

        def attempt(number: int) -> LLMResponse:
            call.attempt = number
            response = self._attempt(call)
            turn.append(self._answered(call, response))
            return response

        def wait(seconds: float) -> None:
            self._sleep(seconds)

        try:
            attempts(
                attempt,
                on_retry=lambda _, error, seconds: self._failed(call, error, seconds),
                sleep=wait,
                max_attempts=1 + THROTTLE_RETRIES,
            )
        except LLMError as error:
            self._failed(call, error, None)
            raise
        return turn[-1]

    def _attempt(self, call: _Call) -> LLMResponse:
        if self._abort.is_set():
            raise RunAborted("the workflow was aborted")
        self._record(call)
        call.outcome = call_model(self._model_of(call.agent), call.request, self._abort)
        if call.outcome.response is None:
            raise _limited(
                call.outcome.error or LLMError("the model returned neither a reply nor an error"), call.attempt
            )
        return call.outcome.response

    def _record(self, call: _Call) -> None:
        """Write the request down: of the turns those that the agent's last request did not have."""
        known = self._recorded.pop(call.agent, None)
        kept = _common(known.turns, call.turns) if known is not None else 0
        seq = self._transcript.write(
            ApiRequest(
                agent=call.agent,
                purpose=call.purpose,
                message_count=len(call.turns),
                tool_count=len(call.request.tools),
                attempt=call.attempt,
                messages=[conceal(turn) for turn in call.turns[kept:]],
                since=known.seq if known is not None and kept else None,
                kept=kept or None,
            ),
            redacted=True,
        )
        if seq is not None:
            self._recorded[call.agent] = _Recorded(seq, list(call.turns))

    def _answered(self, call: _Call, response: LLMResponse) -> ConverseTurn:
        usage = response.usage or _estimated(call.request, response)
        cost = self._costs.add(call.agent, usage, model_id=self._model_of(call.agent).model)
        turn = turn_of(response, (use_id for turn in call.turns for use_id in use_ids(turn)))
        turn = replace(turn, input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"])
        self._transcript.write(
            ApiResponse(
                agent=call.agent,
                purpose=call.purpose,
                attempt=call.attempt,
                stop_reason=turn.stop_reason,
                usage=cast("dict[str, int]", usage),
                message=turn.raw_message,
                cost_usd=cost.cost_usd,
                latency_ms=call.outcome.latency_ms,
            )
        )
        for notice in response.notices:
            self._notice("warning", call.agent, notice)
        if self._costs.check_thresholds() == "warning":
            spent, ceiling = dollars(self._costs.cumulative), dollars(self._costs.ceiling_usd)
            self._notice(
                "cost_warning", call.agent, f"the workflow has cost {spent} so far; it will pause at {ceiling}"
            )
        return turn

    def _failed(self, call: _Call, error: LLMError, wait: float | None) -> None:
        cost = None
        if error.usage:
            model = self._model_of(call.agent).model
            cost = self._costs.add(call.agent, cast("Usage", error.usage), model_id=model).cost_usd
        self._transcript.write(
            ApiResponse(
                agent=call.agent,
                purpose=call.purpose,
                attempt=call.attempt,
                usage=error.usage,
                cost_usd=cost,
                latency_ms=call.outcome.latency_ms,
                error=error.as_dict(),
                retry_in_s=wait,
            )
        )
        if wait is not None:
            self._notice("retry", call.agent, f"{error.message}; retrying in {wait:g} s")

    def _hold_at_ceiling(self, agent: str) -> None:
        while self._costs.is_at_ceiling:
            spent, ceiling = dollars(self._costs.cumulative), dollars(self._costs.ceiling_usd)
            reached = f"the workflow has cost {spent}, the ceiling is {ceiling}"
            asked = Question(
                "cost_ceiling",
                agent,
                f"{reached}; continue, up to the same amount again?",
                ("stop", "continue"),
                "stop",
            )
            if self._human_input.choose(asked) != "continue":
                raise CostCeilingReached(
                    f"{reached}, and it was not raised; set cost_ceiling_usd in .system2/config.yml",
                    spent_usd=self._costs.cumulative,
                    limit_usd=self._costs.ceiling_usd,
                )
            self._costs.lift()

    def _tries_again(self, agent: str, error: LLMError) -> bool:
        question = Question("api_error", agent, error.message, ("abort", "retry"), "abort")
        return self._human_input.choose(question) == "retry"

    def _notice(self, kind: Literal["retry", "warning", "cost_warning"], agent: str, message: str) -> None:
        self._transcript.write(Notice(kind=kind, agent=agent, message=message))
        self._log.warning(message)


@dataclass(frozen=True)
class _Recorded:
    """A request that the transcript holds, and its turns."""

    seq: int
    turns: list[Turn]


def _common(known: list[Turn], turns: list[Turn]) -> int:
    """Return how many turns two conversations begin with alike."""
    pairs = zip(known, turns, strict=False)
    differ = (place for place, (one, other) in enumerate(pairs) if one is not other and one != other)
    return next(differ, min(len(known), len(turns)))


def _limited(error: LLMError, attempt: int) -> LLMError:
    """Return the error as the retry policy is to see it: final after the last attempt that its kind is worth."""
    if error.retryable:
        error.context["may_pass"] = True
        starting = error.status_code is None and bool(error.context.get("unavailable"))
        error.retryable = error.status_code == 429 or starting or attempt <= SERVICE_RETRIES
    if isinstance(error.retry_after, int | float):
        error.retry_after = min(float(error.retry_after), MAX_WAIT)
    return error


def _estimated(request: LLMRequest, response: LLMResponse) -> Usage:
    """Return about how many tokens a call had, where the provider did not count them."""
    sent = {"system": request.system, "messages": request.messages, "tools": request.tools}
    said = {"system": response.text + json.dumps(response.tool_calls, ensure_ascii=False)}
    return {"input_tokens": estimated_tokens(sent), "output_tokens": estimated_tokens(said)}
