"""Several models for one run: the next one is used when the one before has failed for good; and one that judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aeon_core.errors import LLMError, UsageError
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, Purpose

JUDGING: frozenset[Purpose] = frozenset({"judge", "review"})
"""The purposes of the requests that a model of their own may get."""


class ModelChain(LLMAdapter):
    """Models in the order in which they are used. A run tries each three times before it turns to the next.

    `agents` are those of single conversations. A `judge` gets the requests to judge and to review; no other model takes
    its place. Raises UsageError for an empty chain, or one that holds a chain.
    """

    def __init__(
        self,
        models: Sequence[LLMAdapter],
        judge: LLMAdapter | None = None,
        agents: Mapping[str, LLMAdapter] | None = None,
    ) -> None:
        self.agents: dict[str, LLMAdapter] = dict(agents or {})
        if not models or any(isinstance(model, ModelChain) for model in (*models, judge, *self.agents.values())):
            raise UsageError("a chain of models needs at least one model, and none that is a chain itself")
        self.models: tuple[LLMAdapter, ...] = tuple(models)
        self.judge = judge
        self.model: str = self.models[0].model
        self.simulated: bool = self.models[0].simulated
        self.context_window: int | None = self.models[0].context_window
        self.base_url: str | None = self.models[0].base_url

    @property
    def all(self) -> list[LLMAdapter]:
        """The models, then the judge, then those of single conversations."""
        return [*self.models, *([] if self.judge is None else [self.judge]), *self.agents.values()]

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the first reply that a model gives, each asked once. Raises the last one's LLMError."""
        if self.judge is not None and request.purpose in JUDGING:
            return self.judge.complete(request)
        if request.conversation in self.agents:
            return self.agents[request.conversation].complete(request)
        for model in self.models[:-1]:
            try:
                return model.complete(request)
            except LLMError:
                continue
        return self.models[-1].complete(request)

    def check(self) -> None:
        """Check every model of the chain. Raises ModelUnavailableError."""
        for model in self.all:
            model.check()

    def close(self) -> None:
        """Close every model of the chain."""
        for model in self.all:
            model.close()
