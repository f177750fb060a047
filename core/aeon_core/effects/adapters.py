"""The port as the kernel's parts see it: a model and a memory like any other."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from aeon_core.adaptive.strategy import ReasoningMode
from aeon_core.effects.port import Effects
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.memory.base import Memory
from aeon_core.prompts.reasoning_mode import in_reasoning_mode


@dataclass
class EffectModel(LLMAdapter):
    """The model behind the port. `place` gives (pass, step_id) of a call, `on_response` gets each reply.

    `mode` gives the reasoning_mode that a request is made in, None where there is none yet (adaptive FR-026).
    """

    effects: Effects
    place: Callable[[], tuple[int, str | None]]
    on_response: Callable[[LLMRequest, LLMResponse], None]
    mode: Callable[[], ReasoningMode | None] = lambda: None

    def complete(self, request: LLMRequest) -> LLMResponse:
        pass_number, step_id = self.place()
        if (mode := self.mode()) is not None:
            request = in_reasoning_mode(request, mode)
        response = self.effects.complete(request, pass_number=pass_number, step_id=step_id)
        self.on_response(request, response)
        return response


@dataclass
class EffectMemory(Memory):
    """The memory behind the port (core FR-018). A search leaves out what is under `hidden` keys."""

    effects: Effects
    hidden: Callable[[], Collection[str]] = tuple

    def write(self, key: str, value: Any) -> None:
        self.effects.remember(key, value)

    def read(self, key: str) -> Any | None:
        return self.effects.recall().get(key)

    def search(self, prefix: str) -> list[tuple[str, Any]]:
        hidden = self.hidden()
        found = self.effects.recall().items()
        return sorted((key, value) for key, value in found if key.startswith(prefix) and key not in hidden)
