"""A request as a reasoning_mode wants it: what it is told, how much the model thinks, how long it may be (FR-026)."""

from __future__ import annotations

from dataclasses import replace

from aeon_core.adaptive.strategy import ReasoningMode, strategy
from aeon_core.llm.base import LLMRequest, Message, Purpose

THOUGHT_OVER: frozenset[Purpose] = frozenset({"plan", "reason", "fallback", "review", "judge", "answer", "refine"})
"""The purposes whose replies gain by thought.

The arguments of a `tool_call` are read off the step and the results, and a provider may refuse effort beside tools. The
`profile` comes before there is a mode, and a `repair` adds no meaning.
"""


def in_reasoning_mode(request: LLMRequest, mode: ReasoningMode) -> LLMRequest:
    """Return the request as it is made in a reasoning_mode; the one that was given stays as it is (FR-026, FR-030).

    The mode's instruction stands in a last section `reasoning` of the last user message. With a factor above 1 the
    `max_tokens` leave room for thinking, and `reply_tokens` says what they were. `balanced` changes nothing.
    """
    if request.purpose not in THOUGHT_OVER:
        return request
    how = strategy(mode)
    longest = round(request.max_tokens * how.max_tokens_factor)
    return replace(
        request,
        messages=_told(request.messages, how.instruction),
        effort=how.effort,
        max_tokens=longest,
        reply_tokens=request.max_tokens if longest > request.max_tokens else None,
    )


def _told(messages: list[Message], instruction: str) -> list[Message]:
    last = max((number for number, message in enumerate(messages) if message["role"] == "user"), default=None)
    if not instruction or last is None:
        return messages
    section = f"<reasoning>\n{instruction}\n</reasoning>"
    told = messages[last].copy()
    told["content"] = f"{told['content']}\n\n{section}" if told["content"] else section
    return [*messages[:last], told, *messages[last + 1 :]]
