"""A run's model calls: attempts, fallback to the next model, cost, and room in the context window."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, cast

import msgspec

from aeon_core.budget import Budget, CostCeilingReached, request_tokens_at_most
from aeon_core.config.schema import RunConfig
from aeon_core.effects.context_window import ContextWindow
from aeon_core.effects.outcomes import ModelOutcome, call_model
from aeon_core.effects.record_stream import RecordStream
from aeon_core.effects.replay_cursor import RecordedModel
from aeon_core.effects.secret_recovery import LostSecretError, RunSecrets
from aeon_core.errors import LLMError, ModelUnavailableError, UsageError
from aeon_core.journal.reader import ASKED
from aeon_core.journal.records import LLMRecord, NoticeRecord
from aeon_core.json_safe import json_safe
from aeon_core.llm.base import JUDGING, LLMAdapter, LLMRequest, LLMResponse, ModelChain
from aeon_core.llm.catalogue import FREE, ModelPrice, context_window_of, price_date, price_of, with_current_rates
from aeon_core.llm.errors import MAX_ATTEMPTS, attempts
from aeon_core.suggest import shown


@dataclass(frozen=True)
class ModelInfo:
    """What is known about a model when the run starts, or what the journal recorded about it."""

    model: str
    simulated: bool
    price: ModelPrice | None
    context_window: int | None
    judges: bool = False
    """Whether it gets only the requests to judge and to review."""
    agents: tuple[str, ...] = ()
    """The conversations it is reserved for; empty if it serves all."""

    @property
    def is_apart(self) -> bool:
        """Whether it gets only its own requests and is never a fallback."""
        return self.judges or bool(self.agents)

    def described(self) -> dict[str, Any]:
        """Return the form that `run_started` holds."""
        price = None if self.price is None else {"input": self.price.input, "output": self.price.output}
        return {
            "model": self.model,
            "simulated": self.simulated,
            "price": price,
            "context_window": self.context_window,
            **({"judges": True} if self.judges else {}),
            **({"agents": list(self.agents)} if self.agents else {}),
        }


def model_infos(llm: LLMAdapter, config: RunConfig) -> list[ModelInfo]:
    """Return what the configuration, the adapters and the catalogue say about a run's models."""
    judge = llm.judge if isinstance(llm, ModelChain) else None
    infos = [_model_info(adapter, config, judges=adapter is judge) for adapter in adapters_of(llm)]
    agents = tuple(llm.agents) if isinstance(llm, ModelChain) else ()
    shared = len(infos) - len(agents)
    own = zip(agents, infos[shared:], strict=True)
    return infos[:shared] + [replace(info, agents=(agent,)) for agent, info in own]


def adapters_of(llm: LLMAdapter) -> list[LLMAdapter]:
    """Return the models of a chain, reserved ones last, or the single model."""
    return llm.all if isinstance(llm, ModelChain) else [llm]


def _model_info(adapter: LLMAdapter, config: RunConfig, *, judges: bool) -> ModelInfo:
    price = FREE if adapter.simulated else price_of(adapter.model, config.prices)
    window = config.context_window or adapter.context_window or context_window_of(adapter.model)
    return ModelInfo(adapter.model, adapter.simulated, price, window, judges)


def recorded_model(entry: Mapping[str, Any]) -> ModelInfo:
    """Return what `run_started` says about a model. Raises UsageError if that cannot be read."""
    price, simulated, window = entry.get("price"), entry.get("simulated") is True, entry.get("context_window")
    if window is not None and (type(window) is not int or window < 1):
        raise UsageError(f"cannot read the models in the journal: 'context_window' is {shown(window)}")
    try:
        known = ModelPrice(price["input"], price["output"], "recorded") if price else FREE if simulated else None
        judges, agents = entry.get("judges") is True, tuple(entry.get("agents") or ())
        return ModelInfo(entry["model"], simulated, known, window, judges, agents)
    except (KeyError, TypeError):
        raise UsageError("cannot read the models in the journal") from None


def check_budget(config: RunConfig, models: Sequence[ModelInfo]) -> None:
    """Raise UsageError if there is a budget and a model has no known price: the budget could not be enforced."""
    unpriced = [known.model for known in models if known.price is None]
    if config.budget is not None and unpriced:
        raise UsageError(
            f"the price of the model {unpriced[0]!r} is unknown, so a budget cannot be enforced; "
            "remove the budget, or set the price under `prices:` in a config file, in US dollars per million "
            f"tokens: '{unpriced[0]}: {{input: 3, output: 15}}'"
        )


logger: logging.Logger = logging.getLogger("aeon")

Deltas = Callable[[str, str | None, str], None]
"""Gets the purpose of a call, its step's id and the next piece of its reply; or, of a tool call in it, the tool's name,
the step's id and the next piece of the arguments' JSON, which is empty when the call begins."""
OnCost = Callable[[str | None, str, Mapping[str, int], float | None], None]
"""Gets each attempt's step, model, tokens and cost in US dollars, live and replayed."""
AskToLift = Callable[[CostCeilingReached, "ModelCall"], float | None]
"""Asks the user at the ceiling; returns the new limit in US dollars, None to keep it."""


@dataclass(frozen=True)
class RetryRule:
    """How often a call is tried: `attempts` in all; `limited` makes an error final if another attempt is pointless."""

    attempts: int = MAX_ATTEMPTS
    limited: Callable[[LLMError, int], LLMError] = lambda error, _: error


@dataclass
class ModelCall:
    """One model call: its request, its place, and how often it was tried."""

    call_id: str
    request: LLMRequest
    pass_number: int
    step_id: str | None
    attempt: int = 0
    described: dict[str, Any] = field(default_factory=dict)
    """The request of the last attempt, as it is journaled."""
    begun: bool = False
    """Whether text of the attempt's reply has arrived."""
    outcome: ModelOutcome = field(default_factory=lambda: ModelOutcome(None, None))


class ModelCalls:
    """The models of one run. `usage` and `cost_usd` total all attempts, including failed ones."""

    def __init__(
        self,
        stream: RecordStream,
        llm: LLMAdapter,
        config: RunConfig,
        secrets: RunSecrets,
        *,
        recorded: Mapping[str, Any] | None,
        on_delta: Deltas | None,
        on_call: Deltas | None,
        ask_to_lift: AskToLift,
        retries: RetryRule | None = None,
        on_cost: OnCost | None = None,
    ) -> None:
        self._stream = stream
        self._secrets = secrets
        self._on_delta, self._on_call = on_delta, on_call
        self._ask_to_lift = ask_to_lift
        self._retries, self._on_cost = retries or RetryRule(), on_cost
        self._overrides = config.prices
        self._conversations: dict[str, tuple[str, dict[str, Any]]] = {}
        """The last recorded call of each conversation, with its whole request."""
        self._llm = llm
        if recorded is None:
            self._use(model_infos(llm, config))
            self.prices = price_date() if any(known.price for known in self.known) else None
            check_budget(config, self.known)
        else:
            self._use(self._recorded_models(recorded.get("models") or [recorded]))
            self.prices = recorded.get("prices")
        self._budget = Budget(config.budget, config.budget_warning)
        self._applied = 0
        self._repeated = 0
        self._usage = {"input_tokens": 0, "output_tokens": 0}
        self._cost_usd: float | None = 0.0 if self.known[0].price is not None else None

    def _use(self, known: list[ModelInfo]) -> None:
        """Use these models from now on, beginning with the first."""
        self.known: list[ModelInfo] = known
        self._index = 0
        adapters = adapters_of(self._llm)
        self._adapters = adapters if len(adapters) == len(known) else [self._llm] * len(known)
        self._windows = [ContextWindow(each.model, each.context_window) for each in known]

    def _recorded_models(self, entries: Sequence[Mapping[str, Any]]) -> list[ModelInfo]:
        """Return what the journal recorded about models; to call them again, also their rates for caches and tiers."""
        known = [recorded_model(entry) for entry in entries]
        if isinstance(self._llm, RecordedModel):
            return known
        return [replace(each, price=with_current_rates(each.model, each.price, self._overrides)) for each in known]

    @property
    def usage(self) -> dict[str, int]:
        """The tokens of all attempts."""
        self._count_repeats()
        return self._usage

    @property
    def cost_usd(self) -> float | None:
        """The cost of all attempts in US dollars; None if unknown."""
        self._count_repeats()
        return self._cost_usd

    @property
    def model(self) -> ModelInfo:
        """The model in use."""
        return self.known[self._index]

    @property
    def simulated(self) -> bool:
        """Whether a simulated model was used."""
        used = self.known[: self._index + 1]
        return any(known.simulated for known in self.known if known.judges or known in used)

    def state(self) -> dict[str, Any]:
        """Return their state as plain JSON, for `restore`."""
        return {
            "calls": self._stream.calls,
            "index": self._index,
            "changed": self._applied,
            "repeated": self._stream.repeats_so_far,
            "usage": dict(self.usage),
            "cost_usd": self.cost_usd,
            "budget": self._budget.state(),
            "windows": [window.measure() for window in self._windows],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state, including everything spent so far."""
        for change in self._stream.recorded_changes[: state["changed"]]:
            self._apply_change(change)
        self._stream.calls = state["calls"]
        self._applied, self._index = state["changed"], state["index"]
        self._repeated = state.get("repeated", 0)
        self._usage, self._cost_usd = dict(state["usage"]), state["cost_usd"]
        self._budget.restore(state["budget"])
        for window, measure in zip(self._windows, state["windows"], strict=True):
            window.restore(measure)

    def complete(self, call: ModelCall) -> LLMResponse:
        """Return the first model's reply; each model is tried at most three times (core FR-048).

        One that failed for good is not used again in this run. If a judge model is configured, only that one judges.
        Raises LLMError, RunAborted, CostCeilingReached.
        """
        begins_at, self._stream.model_failed = self._stream.next_seq, False
        own, used = self._own_model(call.request), self._index
        self._index = used if own is None else own
        try:
            while True:
                try:
                    return self._with_attempts(call)
                except LLMError as error:
                    if own is not None or self._index + 1 >= sum(not known.is_apart for known in self.known):
                        if not self.model.judges:
                            self._stream.model_failed = True
                            self._stream.resumes_at = begins_at
                        raise
                    failed, self._index = self.model.model, self._index + 1
                    message = f"{failed} failed: {error.message}; falling back to {self.model.model}"
                    self._notice(call, "model_fallback", message, {"from": failed, "model": self.model.model})
        finally:
            if own is not None:
                self._index = used

    def _own_model(self, request: LLMRequest) -> int | None:
        """Return the model reserved for such requests, None if there is none."""
        for index, known in enumerate(self.known):
            if (known.judges and request.purpose in JUDGING) or request.conversation in known.agents:
                return index
        return None

    def _with_attempts(self, call: ModelCall) -> LLMResponse:
        def failed(error: LLMError, wait: float | None) -> None:
            if call.outcome.error is error:
                more = {} if wait is None else {"retry_in_s": wait}
                self._finish(call, error=_describe_error(error), **more)

        try:
            return attempts(
                lambda: self._attempt(call),
                on_retry=failed,
                sleep=self._stream.wait,
                max_attempts=self._retries.attempts,
            )
        except LLMError as error:
            failed(error, None)
            raise

    def _attempt(self, call: ModelCall) -> LLMResponse:
        self._begin(call)
        while (lost := call.outcome.error) is not None and lost.context.get("lost"):
            # Its reserve stays held. It counts as no attempt, and there is nothing to wait for.
            self._finish(call, error=_describe_error(lost))
            self._begin(call)
        if call.outcome.response is None:
            failure = call.outcome.error or LLMError("the model returned neither a reply nor an error")
            raise self._retries.limited(failure, call.attempt)
        response = call.outcome.response
        self._windows[self._index].learn(call.described, response.usage)
        self._finish(call, response=response.model_dump(exclude_none=True))
        for message in response.notices:
            self._notice(call, "provider", message)
        return response

    def _begin(self, call: ModelCall) -> None:
        """Make an attempt, and keep its outcome."""
        self._apply_changes()
        self._count_repeats()
        call.outcome, call.begun = ModelOutcome(None, None), False
        request = self._fit(call)
        described = _describe(request)
        reserved = self._reserve(described, request, call)
        call.attempt += 1
        named = {"model": self.model.model} if len(self.known) > 1 else {}
        priced = {} if reserved is None else {"reserved_usd": reserved}
        begun = self._stream.recording
        self._stream.emit(_record(call, "started", request=self._new_part(call, described), **named, **priced))
        call.described = described
        call.outcome = self._perform(call, request, begun=begun)

    def _new_part(self, call: ModelCall, described: dict[str, Any]) -> dict[str, Any]:
        """Return the request as it is recorded.

        In a conversation, only what the previous request lacks is written: `since` is that request's call, and `kept`
        how many of its messages this one begins with.
        """
        name = call.request.conversation
        if name is None:
            return described
        since, known = self._conversations.get(name, ("", {}))
        self._conversations[name] = call.call_id, described
        kept = _alike(known.get("messages", ()), described["messages"])
        if not kept:
            return described
        new = {key: value for key, value in described.items() if key not in known or known[key] != value}
        return {**new, "messages": described["messages"][kept:], "since": since, "kept": kept}

    def _apply_changes(self) -> None:
        """Apply the overrides of a resume: another budget, other models."""
        changes = self._stream.changes()
        for change in changes[self._applied :]:
            self._apply_change(change)
        self._applied = len(changes)

    def _apply_change(self, change: Mapping[str, Any]) -> None:
        if "budget" in change["options"]:
            self._budget.limit_usd = change["options"]["budget"]
        if models := change.get("models"):
            self._use(self._recorded_models(models))

    def _perform(self, call: ModelCall, request: LLMRequest, *, begun: bool) -> ModelOutcome:
        """Return the attempt's outcome. `begun` says that an earlier process had already started it."""
        self._stream.follow_abort(in_a_cycle=True)
        key = {"call_id": call.call_id, "state": "finished", "attempt": call.attempt}
        if line := self._stream.outcome("llm", key):
            took, cost_usd = line.get("latency_ms", 0.0), line.get("cost_usd")
            if "error" in line:
                return ModelOutcome(None, _recorded_error(line["error"], line.get("usage")), took, cost_usd)
            return ModelOutcome(LLMResponse.model_validate(line["response"]), None, took, cost_usd)
        adapter = self._adapters[self._index]
        if isinstance(adapter, RecordedModel):
            adapter.complete(request)
        if begun:
            lost = LLMError("the process ended before the reply arrived; asking the model again", True, lost=True)
            return ModelOutcome(None, lost)
        try:
            request = self._reveal(request)
        except LostSecretError as error:
            return ModelOutcome(None, LLMError(error.message, error_type="LostSecretError", unsent=True))
        if (listener := self._on_delta) is not None:
            request.on_delta = partial(self._notify, listener, call, call.request.purpose)
        if (calls := self._on_call) is not None:
            request.on_call = partial(self._notify, calls, call)
        outcome = self._call(adapter, request)
        if (reply := outcome.response) is not None and (cut := _cut_notice(call.request, reply)) is not None:
            outcome = replace(outcome, response=reply.model_copy(update={"notices": [*reply.notices, cut]}))
        if outcome.error is not None and (call.begun or (outcome.usage is not None and listener is not None)):
            outcome.error.context["partial"] = True
        return outcome

    def _notify(self, listener: Deltas, call: ModelCall, what: str, text: str) -> None:
        """Pass a piece of a reply to a listener; if the listener fails, the call does not."""
        call.begun = True
        if self._stream.aborted.is_set():
            return  # an abandoned call may last longer than its run
        try:
            listener(what, call.step_id, text)
        except Exception:
            logger.exception("a reply listener failed; the run continues")

    def _call(self, adapter: LLMAdapter, request: LLMRequest) -> ModelOutcome:
        # An adapter may change what it gets, such as put the system prompt first; another attempt must not see that.
        # This copies plain JSON about ten times as fast as deepcopy.
        parts = {"messages": request.messages, "tools": request.tools, "schema": request.schema}
        own: dict[str, Any] = msgspec.to_builtins(parts, enc_hook=json_safe)
        sent, aborted, conceal = replace(request, **own), self._stream.aborted, self._secrets.conceal
        outcome = self._stream.perform(lambda: call_model(adapter, sent, aborted, conceal))
        price, usage = self.model.price, outcome.usage
        if price is None or (usage is None and (price.input or price.output)):
            return outcome
        return replace(outcome, cost_usd=price.cost(usage) if usage is not None else 0.0)

    def _reveal(self, request: LLMRequest) -> LLMRequest:
        """Return the request as it is sent to a model. Raises LostSecretError."""
        parts: dict[str, Any] = {"system": request.system, "messages": request.messages}
        parts |= {"tools": request.tools, "schema": request.schema}
        revealed = self._secrets.reveal(parts)
        return request if revealed is parts else replace(request, **revealed)

    def repeat(self, started: Mapping[str, Any]) -> str | None:
        """Repeat a recorded call to recover a secret in its reply; return why that failed, None if a reply came.

        The cost counts, but nobody is asked to raise the budget for it. Raises RunAborted.
        """
        described = dict(started["request"])
        if "since" in described:
            return "that call was part of a conversation"
        request = LLMRequest(purpose=started["purpose"], **described)
        call_id = f"{started['call_id']}.{self._stream.repeats_so_far + 1}"
        call = ModelCall(call_id, request, started["pass"], started.get("step_id"), attempt=1)
        tokens, price = request_tokens_at_most(self._secrets.shown(described)), self.model.price
        reserved = {"reserved_usd": price.worst_case(tokens, request.max_tokens) if price is not None else 0.0}
        try:
            live = self._reveal(request)
            self._budget.reserve(reserved["reserved_usd"])
        except (LostSecretError, CostCeilingReached) as error:
            return error.message
        again = {"repeats": started["call_id"], **reserved}
        self._stream.append(_record(call, "started", request=described, **again))
        outcome = self._call(self._adapters[self._index], live)
        fields = {"usage": outcome.usage, "cost_usd": outcome.cost_usd, "latency_ms": outcome.latency_ms, **again}
        if outcome.response is not None:
            fields["response"] = outcome.response.model_dump(exclude_none=True)
        elif outcome.error is not None:
            fields["error"] = _describe_error(outcome.error)
        self._stream.append(_record(call, "finished", **fields))
        self._count(outcome.usage, outcome.cost_usd)
        self._budget.settle(outcome.cost_usd)
        return None if outcome.error is None else outcome.error.message

    def _count_repeats(self) -> None:
        """Count the cost of recorded calls that were repeated to recover a secret."""
        for line in self._stream.repeats[self._repeated :]:
            self._repeated += 1
            if line["type"] == LLMRecord.tag:
                with contextlib.suppress(CostCeilingReached):
                    self._budget.reserve(line.get("reserved_usd") or 0.0)
                self._count(line.get("usage"), line.get("cost_usd"))
                self._budget.settle(line.get("cost_usd"))

    def _count(self, usage: Mapping[str, Any] | None, cost_usd: float | None) -> None:
        for kind in self._usage:
            self._usage[kind] += (usage or {}).get(kind, 0)
        if self.model.price is None:
            # Without a price, there is nothing to add up.
            self._cost_usd = None if usage else self._cost_usd
        elif self._cost_usd is not None:
            self._cost_usd = round(self._cost_usd + (cost_usd or 0.0), 12)

    def _finish(self, call: ModelCall, **fields: Any) -> None:
        outcome = call.outcome
        usage = cast("dict[str, int] | None", outcome.usage)
        self._count_repeats()
        self._count(usage, outcome.cost_usd)
        if self._on_cost is not None and usage:
            self._on_cost(call.step_id, self.model.model, usage, outcome.cost_usd)
        if outcome.cost_usd is None and outcome.response is not None:
            self._cost_usd = None
        free = outcome.cost_usd is None and _is_free(outcome)
        self._budget.settle(0.0 if free else outcome.cost_usd, partly=_is_partial(outcome))
        fields |= {"usage": usage, "cost_usd": outcome.cost_usd}
        self._stream.emit(_record(call, "finished", latency_ms=outcome.latency_ms, **fields))
        self._stream.sync("full")
        if self._budget.warning_due():
            self._notice(call, "budget_warning", self._budget.summary())

    def _reserve(self, described: dict[str, Any], request: LLMRequest, call: ModelCall) -> float | None:
        """Reserve the call's worst case and return it in US dollars. Raises CostCeilingReached."""
        if self._budget.limit_usd is None:
            return None
        worst = self._recorded_reserve()
        if worst is None:
            price = self.model.price
            tokens = request_tokens_at_most(self._secrets.shown(described))
            worst = price.worst_case(tokens, request.max_tokens) if price is not None else 0.0
        asked_at = self._stream.next_seq
        while True:
            try:
                self._budget.reserve(worst)
            except CostCeilingReached as ceiling:
                limit = self._ask_to_lift(ceiling, call)
                if limit is None or limit <= (self._budget.limit_usd or 0.0):
                    self._stream.resumes_at = asked_at
                    raise
                self._budget.limit_usd = limit
            else:
                return worst

    def _recorded_reserve(self) -> float | None:
        line = self._stream.ahead() if self._stream.recording else {}
        held = line.get("subject", {}) if line.get("type") in ASKED else line
        reserved = held.get("reserved_usd")
        return float(reserved) if isinstance(reserved, int | float) else None

    def _fit(self, call: ModelCall) -> LLMRequest:
        """Return the request with room for a reply in the model's context window. Raises LLMError for one without."""
        if call.request.conversation is not None:
            return call.request  # the caller shortens it
        window = self._windows[self._index]
        fitted = window.fit(_describe(call.request))
        if fitted is None:
            return call.request
        if fitted.notice is not None:
            data = {"tokens": fitted.tokens, "context_window": window.tokens}
            self._notice(call, "context_window", fitted.notice, data)
        return replace(call.request, max_tokens=fitted.max_tokens)

    def _notice(self, call: ModelCall, kind: Any, message: str, data: dict[str, Any] | None = None) -> None:
        self._stream.emit(
            NoticeRecord(kind=kind, pass_number=call.pass_number, step_id=call.step_id, message=message, data=data)
        )


def _record(call: ModelCall, state: Literal["started", "finished"], **fields: Any) -> LLMRecord:
    return LLMRecord(
        call_id=call.call_id,
        state=state,
        purpose=call.request.purpose,
        pass_number=call.pass_number,
        step_id=call.step_id,
        attempt=call.attempt,
        **fields,
    )


def _describe(request: LLMRequest) -> dict[str, Any]:
    described = {"system": request.system, "messages": request.messages, "max_tokens": request.max_tokens}
    if request.tools:
        described["tools"] = request.tools
    if request.schema is not None:
        described["schema"] = request.schema
    if request.effort is not None:
        described["effort"] = request.effort
    return described


def _cut_notice(request: LLMRequest, reply: LLMResponse) -> str | None:
    """Return how much of a reply arrived before it was cut off, and what may help; None if it is whole.

    In a conversation, the caller has the reply continued.
    """
    if reply.stop_reason != "max_tokens" or request.conversation is not None:
        return None
    limit, came = request.max_tokens, reply.usage["output_tokens"] if reply.usage is not None else None
    if came is None or came >= limit:
        return f"the {request.purpose} reply was cut off at {limit:,} tokens, thinking included; raise max_tokens"
    left = "the context window is full, or thinking used the rest"
    return f"the {request.purpose} reply was cut off after {came:,} of at most {limit:,} tokens: {left}"


def _alike(known: Sequence[Any], messages: Sequence[Any]) -> int:
    """Return how many messages at their beginning two conversations share."""
    pairs = zip(known, messages, strict=False)
    differ = (place for place, (one, other) in enumerate(pairs) if one is not other and one != other)
    return next(differ, min(len(known), len(messages)))


def _is_free(outcome: ModelOutcome) -> bool:
    """Return whether a failed call cost nothing: it was refused, or never reached a model."""
    error = outcome.error
    if error is None or _is_partial(outcome):
        return False
    unsent = error.context.get("unsent") is True or error.exit_code == ModelUnavailableError.exit_code
    return unsent or error.status_code is not None


def _is_partial(outcome: ModelOutcome) -> bool:
    """Return whether a reply broke off while streaming, so that its cost may be higher than known."""
    return outcome.error is not None and outcome.error.context.get("partial") is True


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
