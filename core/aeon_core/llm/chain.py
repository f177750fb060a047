"""Several models for one run: the next one is used when the one before has failed for good."""

from __future__ import annotations

from collections.abc import Sequence

from aeon_core.errors import LLMError, UsageError
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse


class ModelChain(LLMAdapter):
    """Models in the order in which they are used. A run tries each three times before it goes on with the next.

    Raises UsageError for an empty chain, or one that holds a chain.
    """

    def __init__(self, models: Sequence[LLMAdapter]) -> None:
        if not models or any(isinstance(model, ModelChain) for model in models):
            raise UsageError("a chain of models needs at least one model, and none that is a chain itself")
        self.models = tuple(models)
        self.model = self.models[0].model
        self.simulated = self.models[0].simulated
        self.context_window = self.models[0].context_window

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the first reply that a model gives, each asked once. Raises the last one's LLMError."""
        for model in self.models[:-1]:
            try:
                return model.complete(request)
            except LLMError:
                continue
        return self.models[-1].complete(request)

    def check(self) -> None:
        """Check every model of the chain. Raises ModelUnavailableError."""
        for model in self.models:
            model.check()

    def close(self) -> None:
        """Close every model of the chain."""
        for model in self.models:
            model.close()
