"""The room that a request leaves for a reply in a model's context window, in tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aeon_core.budget import estimated_tokens, request_bytes
from aeon_core.errors import LLMError
from aeon_core.llm.base import Usage

NEARLY_FULL = 0.8
"""The share of a context window above which the user is warned."""
GENEROUS = 0.8
"""The share of an estimate that is certain as long as no call of this size has been measured."""
COMPARABLE = 2
"""A measured request calibrates requests up to this many times its length."""
LEAST_REPLY = 256
"""Tokens that must be left for a reply."""


@dataclass(frozen=True)
class Fitted:
    """A request that fits: the room for a reply, its size in tokens, and a warning if it nearly fills the window."""

    max_tokens: int
    tokens: int
    notice: str | None = None


class ContextWindow:
    """The context window of one model, in tokens; None if unknown. The user is warned once."""

    def __init__(self, model: str, tokens: int | None) -> None:
        self.model = model
        self.tokens = tokens
        self._size: int | None = None
        self._ratio = 0.0
        self._warned = False

    def fit(self, described: Mapping[str, Any]) -> Fitted | None:
        """Return how the request fits, None if the window is not known.

        The user is warned from 80 % on; a request is refused only if even a generous estimate leaves no room. Raises
        LLMError.
        """
        if self.tokens is None:
            return None
        window, wanted = self.tokens, described["max_tokens"]
        tokens, surely = self._estimated(described)
        least = min(wanted, LEAST_REPLY)
        if surely + least > window:
            raise LLMError(
                f"{self.model}: the request has about {tokens:,} tokens, but the model's context window has "
                f"{window:,} for request and reply; shorten the task or the steps' results, or use a model with a "
                "larger window",
                context_too_long=True,
            )
        notice = None
        if tokens > NEARLY_FULL * window and not self._warned:
            self._warned = True
            share = round(100 * tokens / window)
            notice = f"a request takes about {share} % of the {window:,} tokens in {self.model}'s context window"
        return Fitted(max(least, min(wanted, window - tokens)), tokens, notice)

    def measure(self) -> dict[str, Any]:
        """Return the calibration as plain JSON, for `restore`."""
        return {"size": self._size, "ratio": self._ratio, "told": self._warned}

    def restore(self, measure: Mapping[str, Any]) -> None:
        """Restore an earlier calibration."""
        self._size, self._ratio, self._warned = measure["size"], measure["ratio"], measure["told"]

    def learn(self, described: Mapping[str, Any], usage: Usage | None) -> None:
        """Calibrate later estimates with the tokens that the provider counted."""
        if self.tokens is not None and usage is not None and usage["input_tokens"] > 0:
            self._size = request_bytes(described)
            self._ratio = min(1.0, usage["input_tokens"] / self._size)

    def _estimated(self, described: Mapping[str, Any]) -> tuple[int, float]:
        """Return the request's estimated tokens, and how many of them are certain.

        What a provider adds to every request weighs less in a long one, so a short request says little about it.
        """
        typical = estimated_tokens(described)
        if self._size is None:
            return typical, GENEROUS * typical
        tokens = estimated_tokens(described, self._ratio)
        comparable = request_bytes(described) <= COMPARABLE * self._size
        return tokens, tokens if comparable else GENEROUS * min(tokens, typical)
