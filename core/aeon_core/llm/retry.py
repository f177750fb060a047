"""The only retry policy for model calls (core FR-048); adapters never retry by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, cast

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMResponse

if TYPE_CHECKING:
    from tenacity import RetryCallState

MAX_ATTEMPTS = 3
"""The number of attempts, including the first."""

UNAVAILABLE_SECONDS = 30.0
"""How long to wait for a server that refuses connections or answers 503, since it may be starting."""

MAX_WAIT = 60.0
"""The longest wait before an attempt in seconds, whatever a provider asks for."""


def attempts(
    call: Callable[[int], LLMResponse],
    *,
    on_retry: Callable[[int, LLMError, float], None],
    sleep: Callable[[float], None] = time.sleep,
    max_attempts: int = MAX_ATTEMPTS,
) -> LLMResponse:
    """Return the result of `call(attempt)`, where `attempt` counts from 1 (core FR-048).

    Only a retryable LLMError is tried again; one with `unavailable` in its context even beyond
    `max_attempts`, until the waits add up to 30 s. Before each wait, `on_retry(attempt, error, seconds)` is called with
    the failure and the wait: 1 s, then twice as long each time, at least the provider's `retry_after`, at
    most 60 s, without jitter, so that a run is deterministic. Raises the last LLMError, any other error of `call`
    at once, and ValueError for fewer than one attempt.
    """
    if max_attempts < 1:
        raise ValueError(f"max_attempts must be at least 1, got {max_attempts!r}")
    try:
        return call(1)
    except LLMError as error:
        if not error.retryable:
            raise
        first = error
    # Imported only after a failure, since it loads asyncio and most runs retry nothing.
    from tenacity import Retrying, retry_if_exception, wait_exponential

    backoff = wait_exponential(multiplier=1, exp_base=2, max=MAX_WAIT)
    numbers = count(1)

    def attempt() -> LLMResponse:
        if (number := next(numbers)) == 1:
            raise first
        return call(number)

    retrying = Retrying(
        stop=lambda state: state.attempt_number >= max_attempts and _waited_long_enough(state),
        wait=lambda state: _wait(_error(state), backoff(state)),
        retry=retry_if_exception(lambda error: isinstance(error, LLMError) and error.retryable),
        before_sleep=lambda state: on_retry(state.attempt_number, _error(state), state.upcoming_sleep),
        sleep=sleep,
        reraise=True,
    )
    return retrying(attempt)


def _error(state: RetryCallState) -> LLMError:
    """Return the LLMError of the last attempt; nothing else is retried."""
    return cast("LLMError", state.outcome and state.outcome.exception())


def _waited_long_enough(state: RetryCallState) -> bool:
    # Counts the waits, not elapsed time, so that a replay makes the same attempts.
    return not _error(state).context.get("unavailable") or state.idle_for >= UNAVAILABLE_SECONDS


def _wait(error: LLMError, backoff: float) -> float:
    requested = error.retry_after
    # A caller's own adapter may set anything here, even NaN; then only the backoff counts.
    floor = requested if isinstance(requested, (int, float)) and requested > 0 else 0.0
    return float(min(max(backoff, floor), MAX_WAIT))
