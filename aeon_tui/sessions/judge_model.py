"""The model that judges without a run, called in the same way as in one: for `calibrate` and `lint --judge`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from aeon_core.config.schema import RunConfig
from aeon_core.effects.port import Effects
from aeon_core.errors import LLMError, ModelUnavailableError
from aeon_core.journal.writer import JournalWriter
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, ModelChain
from aeon_core.prompts import with_room
from aeon_core.redaction import redact_text
from aeon_core.units import money


class JudgeModel:
    """Calls the configured judge, else the model or the next of a chain, and counts the cost.

    `refusal` is the error of a model that cannot be used at all: a wrong key, an unknown name. `failures` are the
    errors since the last reply; `calls` counts attempts. `warn` gets notices about the calls, each in one line.
    """

    def __init__(self, llm: LLMAdapter, config: RunConfig, warn: Callable[[str], None]) -> None:
        if isinstance(llm, ModelChain) and llm.judge is not None:
            llm = llm.judge
        nowhere = JournalWriter(None, "judge", self._record)
        self._effects = Effects(nowhere, llm=llm, config=config, sleep=time.sleep)
        self.models = self._effects.models
        """The current model, with the tokens and the cost of all calls."""
        self._warn, self._max_tokens = warn, config.max_tokens
        self.calls = 0
        self.refusal: LLMError | None = None
        self.failures: list[LLMError] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the first model's reply. Raises LLMError; CostCeilingReached before a call (exit 4)."""
        request = with_room(request, self._max_tokens)
        try:
            response = self._effects.complete(request, pass_number=1, step_id=None)
        except LLMError as error:
            self.failures.append(error)
            self.refusal = error if error.exit_code == ModelUnavailableError.exit_code else None
            raise
        self.failures.clear()
        return response

    @property
    def label(self) -> str:
        """The model, marked if it is simulated, for display."""
        return f"{self.models.model.model}{' (simulated)' if self.models.simulated else ''}"

    @property
    def spent(self) -> str:
        """Tokens and US dollars, for display."""
        usage, cost_usd = self.models.usage, self.models.cost_usd
        cost = "price unknown" if cost_usd is None else money(cost_usd)
        return f"{usage['input_tokens']:,} tokens in, {usage['output_tokens']:,} out · {cost}"

    def _record(self, line: bytes) -> None:
        """Count the calls, and print notices about them."""
        record = json.loads(line)
        self.calls += record["type"] == "llm" and record["state"] == "started"
        if record["type"] == "notice":
            self._warn(redact_text(record["message"]))
        elif record["type"] == "llm" and (seconds := record.get("retry_in_s")) is not None:
            error = record["error"]["message"]
            self._warn(redact_text(f"attempt {record['attempt']} failed: {error}; retrying in {seconds:g} s"))
