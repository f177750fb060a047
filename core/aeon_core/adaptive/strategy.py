"""What a reasoning_mode changes: the words of a prompt, a provider's effort, how much of a result is shown (FR-030)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ReasoningMode = Literal["shallow", "balanced", "deep"]


@dataclass(frozen=True, slots=True)
class ReasoningStrategy:
    """How the requests of a pass are made."""

    instruction: str
    """The text of a prompt's `reasoning` section; empty where nothing needs to be said."""
    effort: Literal["low", "high"] | None
    """For providers that take one: reasoning effort, or the thinking that corresponds to it; None asks for nothing."""
    output_characters: int
    """Characters of one step's output that a prompt shows."""
    max_tokens_factor: float
    """What the configured max_tokens are multiplied by, so that thinking does not use up the reply."""


_STRATEGIES: dict[ReasoningMode, ReasoningStrategy] = {
    "shallow": ReasoningStrategy(
        instruction="Answer directly: what is asked is simple, and all that is needed is there.",
        effort="low",
        output_characters=2000,
        max_tokens_factor=1.0,
    ),
    "balanced": ReasoningStrategy(
        instruction="",
        effort=None,
        output_characters=4000,
        max_tokens_factor=1.0,
    ),
    "deep": ReasoningStrategy(
        instruction=(
            "Think it through before you answer: find what is not said and decide what to assume instead, weigh the "
            "alternatives, and check the result against the goal and the earlier results. The form of the reply stays "
            "as it is asked for."
        ),
        effort="high",
        output_characters=12_000,
        max_tokens_factor=2.0,
    ),
}


def strategy(mode: ReasoningMode) -> ReasoningStrategy:
    """Return how requests are made in a reasoning_mode."""
    return _STRATEGIES[mode]
