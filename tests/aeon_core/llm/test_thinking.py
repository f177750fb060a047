"""Which models can be told how much to think, by the names that providers give them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.llm.base import LLMRequest
from aeon_core.llm.catalogue import claude_thinking, takes_claude_effort, takes_reasoning_effort


def request(**fields: Any) -> LLMRequest:
    given_fields = {"effort": "high", "max_tokens": 8192, "reply_tokens": 4096, **fields}
    return LLMRequest("reason", "s", [{"role": "user", "content": "hi"}], **given_fields)


BUDGET = {"type": "enabled", "budget_tokens": 4096}
ADAPTIVE = {"type": "adaptive"}


@pytest.mark.parametrize(
    ("name", "thinking", "effort"),
    [
        ("claude-2.1", None, False),
        ("claude-instant-1.2", None, False),
        ("claude-3-opus-20240229", None, False),
        ("claude-3-5-sonnet-latest", None, False),
        ("claude-3-7-sonnet-20250219", BUDGET, False),
        ("claude-sonnet-4-20250514", BUDGET, False),
        ("claude-opus-4@20250514", BUDGET, False),
        ("claude-opus-4-1", BUDGET, False),
        ("claude-haiku-4-5-20251001", BUDGET, False),
        ("claude-opus-4-5-20251101", BUDGET, True),
        ("claude-opus-4-6", ADAPTIVE, True),
        ("claude-sonnet-5", ADAPTIVE, True),
        ("claude-fable-5-2", ADAPTIVE, True),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", BUDGET, False),
        ("global.anthropic.claude-opus-4-6-v1", ADAPTIVE, True),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-opus-4-8", ADAPTIVE, True),
        ("Claude-Opus-4.8", ADAPTIVE, True),
        ("claude-x", None, False),
        ("amazon.nova-pro-v1:0", None, False),
        ("gpt-5", None, False),
    ],
)
def test_a_claude_models_version_decides_how_it_thinks(name: str, thinking: Any, effort: bool) -> None:
    assert claude_thinking(name, request()) == thinking
    assert takes_claude_effort(name) == effort


@pytest.mark.parametrize("effort", [None, "low", "medium"])
@pytest.mark.parametrize("name", ["claude-sonnet-4-5", "claude-opus-5"])
def test_thinking_is_requested_only_at_high_effort(name: str, effort: Any) -> None:
    assert claude_thinking(name, request(effort=effort)) is None


def test_a_conversation_with_tool_uses_continues_without_thinking() -> None:
    asked = request()
    asked.messages.append({"role": "assistant", "content": "", "tool_calls": [{"name": "t", "arguments": {}}]})
    asked.messages.append({"role": "tool", "content": "done"})
    assert (claude_thinking("claude-opus-5", asked), claude_thinking("claude-opus-4-1", asked)) == (None, None)


@given(st.integers(1, 200_000), st.none() | st.integers(1, 200_000))
def test_a_thinking_budget_leaves_room_for_the_reply(longest: int, reply: int | None) -> None:
    thinking = claude_thinking("claude-sonnet-4-5", request(max_tokens=longest, reply_tokens=reply))
    if reply is None or longest - reply < 1024:
        assert thinking is None
    else:
        assert thinking == {"type": "enabled", "budget_tokens": longest - reply}
        assert 1024 <= thinking["budget_tokens"] < longest


@pytest.mark.parametrize(
    "name",
    [
        *("o1", "o3", "o3-2025-04-16", "o4-mini", "ft:o4-mini-2025-04-16:team::id"),
        *("gpt-5", "gpt-5-mini", "gpt-5.2-2025-12-11", "GPT-5", "gpt-6.1-sol", "openai/gpt-5.6-luna"),
        *("gpt-oss:20b", "openai/gpt-oss-120b", "unsloth/gpt-oss-20b-GGUF"),
    ],
)
def test_models_that_reason_are_known_by_name(name: str) -> None:
    assert takes_reasoning_effort(name)


@pytest.mark.parametrize(
    "name",
    [
        *("gpt-4o", "gpt-4.1-mini", "chatgpt-4o-latest", "gpt-3.5-turbo", "gpt-50", "gpt-5-chat-latest"),
        *("gpt-5.2-chat-latest", "o1-mini", "o1-preview", "o2", "llama3.1:8b", "qwen3:8b", "phi-o3x", "go3", "m1", ""),
    ],
)
def test_other_models_are_sent_nothing(name: str) -> None:
    assert not takes_reasoning_effort(name)
