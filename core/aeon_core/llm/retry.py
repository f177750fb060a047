"""The house's one retry policy (core FR-048): for model calls, above the adapters, which never retry by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMResponse

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

    Only a retryable LLMError is tried again; one with `unavailable` in its context beyond `max_attempts`, until some
    30 s were waited in all. Before each wait, `on_retry(attempt, error, seconds)` gets what failed and how long the
    wait is: 1 s, then twice as long each time, at least the provider's `retry_after`, at most 60 s; no jitter, so that
    a run is deterministic. Raises the last LLMError, and at once whatever else `call` raises; ValueError for fewer
    than one attempt.
    """
    if max_attempts < 1:
        raise ValueError(f"max_attempts must be at least 1, got {max_attempts!r}")
    attempt, waited = 1, 0.0
    while True:
        try:
            return call(attempt)
        except LLMError as error:
            # What was waited is counted, not the time that went by: a replay makes the same attempts.
            is_starting = bool(error.context.get("unavailable")) and waited < UNAVAILABLE_SECONDS
            if not error.retryable or (attempt >= max_attempts and not is_starting):
                raise
            wait = _wait(attempt, error.retry_after)
            on_retry(attempt, error, wait)
        sleep(wait)
        attempt, waited = attempt + 1, waited + wait


def _wait(attempt: int, requested: Any) -> float:
    # An adapter of the caller's own may give anything here, NaN too: then the backoff alone counts.
    least = requested if isinstance(requested, (int, float)) and requested > 0 else 0.0
    return float(min(max(2.0 ** min(attempt - 1, 6), least), MAX_WAIT))
