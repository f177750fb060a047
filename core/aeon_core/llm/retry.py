"""The house's one retry policy (core FR-048): for model calls, above the adapters, which never retry by themselves."""

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
"""Attempts in all, the first one counted."""

UNAVAILABLE_SECONDS = 30.0
"""How long a server is waited for that refuses the connection or answers 503: it may be starting."""

MAX_WAIT = 60.0
"""The longest wait before an attempt, in seconds, whatever a provider asks for."""


def attempts(
    call: Callable[[int], LLMResponse],
    *,
    on_retry: Callable[[int, LLMError, float], None],
    sleep: Callable[[float], None] = time.sleep,
    max_attempts: int = MAX_ATTEMPTS,
) -> LLMResponse:
    """Return what `call(attempt)` gives, `attempt` counting from 1 (core FR-048).

    Only an LLMError that says it is retryable is tried again; one with `unavailable` in its context beyond
    `max_attempts`, until some 30 s were waited in all. Before each wait `on_retry(attempt, error, seconds)` gets
    what failed and how long the wait is: 1 s, then twice as long each time, at least the provider's `retry_after`, at
    most 60 s; no jitter, so that a run is deterministic. Raises the last LLMError, and at once whatever else `call`
    raises; ValueError for fewer than one attempt.
    """
    if max_attempts < 1:
        raise ValueError(f"max_attempts must be at least 1, got {max_attempts!r}")
    try:
        return call(1)
    except LLMError as error:
        if not error.retryable:
            raise
        first = error
    # Imported where an attempt has failed: it loads asyncio, and most runs retry nothing.
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
    """Return what the last attempt raised: nothing else is retried."""
    return cast("LLMError", state.outcome and state.outcome.exception())


def _waited_long_enough(state: RetryCallState) -> bool:
    # What was waited is counted, not the time that went by: a replay makes the same attempts.
    return not _error(state).context.get("unavailable") or state.idle_for >= UNAVAILABLE_SECONDS


def _wait(error: LLMError, backoff: float) -> float:
    wish = error.retry_after
    # An adapter of the caller's own may give anything here, NaN too: then the backoff alone counts.
    floor = wish if isinstance(wish, (int, float)) and wish > 0 else 0.0
    return float(min(max(backoff, floor), MAX_WAIT))
