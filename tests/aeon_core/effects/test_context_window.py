"""Context windows: warnings, refusals, and what an estimate is based on."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.effects.context_window import LEAST_REPLY, ContextWindow, Fitted
from aeon_core.errors import LLMError


def request(size: int, max_tokens: int = 1_000) -> dict[str, Any]:
    """Return a request of about so many bytes."""
    return {"system": "x" * size, "messages": [], "max_tokens": max_tokens}


def test_an_unknown_window_is_not_reported() -> None:
    window = ContextWindow("a:b", None)
    window.learn(request(100), {"input_tokens": 100, "output_tokens": 1})
    assert window.fit(request(10_000_000)) is None


def test_a_small_request_is_unchanged() -> None:
    assert ContextWindow("a:b", 10_000).fit(request(3_600)) == Fitted(1_000, 1_000)


def test_the_80_percent_warning_comes_once_and_limits_the_reply() -> None:
    window = ContextWindow("a:b", 10_000)
    fitted = window.fit(request(34_200))
    assert fitted is not None
    assert (fitted.max_tokens, fitted.tokens) == (500, 9_500)
    assert fitted.notice == "a request takes about 95 % of the 10,000 tokens in a:b's context window"
    assert window.fit(request(34_200)) == Fitted(500, 9_500)


def test_a_request_is_refused_if_even_a_low_estimate_leaves_no_room() -> None:
    window = ContextWindow("a:b", 10_000)
    fitted = window.fit(request(43_000))
    assert fitted is not None
    assert fitted.max_tokens == LEAST_REPLY
    with pytest.raises(LLMError, match="has about 12,223 tokens, but the model's context window has 10,000") as caught:
        window.fit(request(44_000))
    assert caught.value.context == {"context_too_long": True}
    assert not caught.value.retryable


def test_a_measured_request_calibrates_similar_sizes() -> None:
    window = ContextWindow("a:b", 10_000)
    window.learn(request(30_000), {"input_tokens": 15_000, "output_tokens": 1})
    with pytest.raises(LLMError, match="about 10,000 tokens"):
        window.fit(request(20_000))


def test_overhead_of_a_short_request_does_not_refuse_a_long_one() -> None:
    window = ContextWindow("a:b", 10_000)
    window.learn(request(1_000), {"input_tokens": 900, "output_tokens": 1})
    fitted = window.fit(request(30_000))
    assert fitted is not None
    assert fitted.max_tokens == LEAST_REPLY
    with pytest.raises(LLMError, match="context window"):
        window.fit(request(44_000))
