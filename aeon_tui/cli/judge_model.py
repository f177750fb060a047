"""The model behind `lint --judge` and `calibrate`: asked without a run, with a run's attempts, prices and budget."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from aeon_core.budget import Budget, request_tokens_at_most
from aeon_core.config.schema import RunConfig
from aeon_core.effects.model_calls import ModelInfo, adapters_of, model_infos
from aeon_core.effects.outcomes import call_model
from aeon_core.errors import LLMError, ModelUnavailableError
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.llm.retry import attempts
from aeon_core.money import money
from aeon_core.redaction import redact_text
from aeon_core.stdio import logged_to
from aeon_tui.cli.output import Output


class JudgeModel:
    """Asks the configured judge, else the model or the next of a chain, and counts what it costs.

    `refusal` is the error of a model that cannot be used at all: a wrong key, an unknown name. `failures` are the
    errors since the last reply; `calls` counts attempts, `usage` tokens.
    """

    def __init__(self, llm: LLMAdapter, config: RunConfig, out: Output) -> None:
        models = list(zip(adapters_of(llm), model_infos(llm, config), strict=True))
        self._models = [each for each in models if each[1].judges] or models
        self._budget = Budget(config.budget)
        self._out = out
        self.calls = 0
        self.usage = {"input_tokens": 0, "output_tokens": 0}
        self.cost_usd: float | None = 0.0
        """Of all calls; None where one was of a model without a known price."""
        self._asked: ModelInfo | None = None
        self.refusal: LLMError | None = None
        self.failures: list[LLMError] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the first reply that a model gives. Raises LLMError, CostCeilingReached before a call (exit 4)."""
        last = len(self._models) - 1
        for place, (adapter, known) in enumerate(self._models):
            try:
                response = self._with_attempts(adapter, known, request)
            except LLMError as error:
                if place == last:
                    self.failures.append(error)
                    self.refusal = error if error.exit_code == ModelUnavailableError.exit_code else None
                    raise
                self._warn(f"{known.model} failed: {error.message}; falling back to {self._models[place + 1][1].model}")
            else:
                self.failures.clear()
                return response
        raise LLMError("there is no model to judge with")

    @property
    def model(self) -> str:
        """The model that was asked last; before any was, the one that will be."""
        return (self._asked or self._models[0][1]).model

    @property
    def simulated(self) -> bool:
        """Whether that is the simulated one."""
        return (self._asked or self._models[0][1]).simulated

    @property
    def label(self) -> str:
        """That model, and whether it is the simulated one, for a person."""
        return f"{self.model}{' (simulated)' if self.simulated else ''}"

    @property
    def spent(self) -> str:
        """Tokens and US dollars, for a person."""
        cost = "price unknown" if self.cost_usd is None else money(self.cost_usd)
        return f"{self.usage['input_tokens']:,} tokens in, {self.usage['output_tokens']:,} out · {cost}"

    def tell_cost(self) -> None:
        """Print which model was asked last, the tokens of all calls, and US dollars where prices are known."""
        if self._asked is not None:
            self._out.line((f"judged by {self.label} · {self.spent}", "dim"))

    def _with_attempts(self, adapter: LLMAdapter, known: ModelInfo, request: LLMRequest) -> LLMResponse:
        def waiting(attempt: int, error: LLMError, seconds: float) -> None:
            self._warn(f"attempt {attempt} failed: {error.message}; retrying in {seconds:g} s")

        return attempts(lambda _: self._attempt(adapter, known, request), on_retry=waiting, sleep=time.sleep)

    def _attempt(self, adapter: LLMAdapter, known: ModelInfo, request: LLMRequest) -> LLMResponse:
        if known.price is not None and self._budget.limit_usd is not None:
            described = {"system": request.system, "messages": request.messages, "schema": request.schema}
            self._budget.reserve(known.price.worst_case(request_tokens_at_most(described), request.max_tokens))
        self.calls += 1
        outcome = call_model(adapter, request, threading.Event())
        if outcome.response is None:
            error = outcome.error or LLMError("the model returned neither a reply nor an error")
            self._count(known, error.usage)
            raise error
        self._count(known, outcome.response.usage)
        self._asked = known
        for notice in outcome.response.notices:
            self._warn(notice)
        return outcome.response

    def _count(self, known: ModelInfo, usage: Mapping[str, Any] | None) -> None:
        self._asked = known if usage else self._asked
        for kind in self.usage:
            self.usage[kind] += (usage or {}).get(kind, 0)
        cost = known.price.cost(usage) if known.price is not None and usage else None  # type: ignore[arg-type]
        self._budget.settle(cost)
        if known.price is None:
            self.cost_usd = None
        elif self.cost_usd is not None:
            self.cost_usd += cost or 0.0

    def _warn(self, text: str) -> None:
        self._out.line(("warning: ", "yellow"), redact_text(text))


def warnings_on(out: Output) -> contextlib.AbstractContextManager[None]:
    """Print what Aeon logs as a warning meanwhile, one line each: that a judge's advice is left out, and why."""
    return logged_to(_Lines(out))


class _Lines(logging.Handler):
    def __init__(self, out: Output) -> None:
        super().__init__(logging.WARNING)
        self._out = out

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        self._out.line(("warning: ", "yellow"), redact_text(self.format(record)))
