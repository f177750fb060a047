"""A model that replies slowly, so that a person can watch."""

from __future__ import annotations

import threading

from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse

REPLY_SECONDS = 0.8
PIECES = 12


class SlowedModel(LLMAdapter):
    """Delivers another model's replies over `seconds` each, in pieces if there is a listener."""

    def __init__(self, inner: LLMAdapter, seconds: float = REPLY_SECONDS) -> None:
        self.model = inner.model
        self.simulated = inner.simulated
        self._inner = inner
        self._pause = seconds / PIECES
        self._closed = threading.Event()

    def complete(self, request: LLMRequest) -> LLMResponse:
        on_delta, request.on_delta = request.on_delta, None
        response = self._inner.complete(request)
        size = -(-len(response.text) // PIECES)
        for piece in range(PIECES):
            if self._closed.wait(self._pause):
                break
            if on_delta is not None and (text := response.text[piece * size : (piece + 1) * size]):
                on_delta(text)
        return response

    def close(self) -> None:
        self._closed.set()
        self._inner.close()
