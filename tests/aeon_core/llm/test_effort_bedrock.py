"""What Converse makes of a reasoning_mode: thinking of Claude models, room for it, and both refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.prompts import ReasoningMode, in_reasoning_mode
from tests.aeon_core.llm.converse_server import (
    Make,
    ask,
    bedrock_models,
    converse,
    frame,
    no_credentials,
    refused,
    said,
    set_credentials,
    stop_frame,
    stream,
    text_frames,
    usage_frame,
)
from tests.aeon_core.llm.server import Server

OLD, NEW = "us.anthropic.claude-haiku-4-5-20251001-v1:0", "global.anthropic.claude-opus-4-6-v1"
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 4096}}
ADAPTIVE = {"thinking": {"type": "adaptive"}}
ADAPTIVE_ONLY = (
    'The model returned the following errors: "thinking.type.enabled" is not supported for this model. '
    'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
)
CLOSED = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_credentials(monkeypatch, tmp_path)
    set_credentials(monkeypatch)


@pytest.fixture
def make(server: Server) -> Iterator[Make]:
    yield from bedrock_models(server)


def request(mode: ReasoningMode | None = "deep", streamed: bool = False, **fields: Any) -> LLMRequest:
    asked = ask(streamed, **{"max_tokens": 4096, **fields})
    return asked if mode is None else in_reasoning_mode(asked, mode)


def asked_for(body: dict[str, Any]) -> tuple[Any, int]:
    return body.get("additionalModelRequestFields"), body["inferenceConfig"]["maxTokens"]


@pytest.mark.parametrize(
    ("name", "mode", "expected"),
    [
        (OLD, None, (None, 4096)),
        (OLD, "shallow", (None, 4096)),
        (OLD, "balanced", (None, 4096)),
        (OLD, "deep", (BUDGET, 8192)),
        (NEW, "shallow", (None, 4096)),
        (NEW, "deep", (ADAPTIVE, 8192)),
        ("amazon.nova-pro-v1:0", "deep", (None, 8192)),
    ],
    ids=["old-none", "old-shallow", "old-balanced", "old-deep", "new-shallow", "new-deep", "other"],
)
def test_claude_thinks_only_in_deep_mode(
    make: Make, server: Server, name: str, mode: ReasoningMode | None, expected: Any
) -> None:
    server.script(said())
    make(name).complete(request(mode))
    assert asked_for(server.bodies[0]) == expected


@pytest.mark.parametrize("streamed", [False, True])
def test_thinking_is_neither_text_nor_delta(make: Make, server: Server, streamed: bool) -> None:
    def thought(**part: Any) -> bytes:
        return frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": part}})

    frames = [thought(text="hm"), thought(signature="s"), *text_frames("hello", index=1), stop_frame(), usage_frame()]
    block = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
    server.script(stream(*frames) if streamed else converse(block, {"text": "hello"}))
    heard: list[str] = []
    asked = request()
    asked.on_delta = heard.append if streamed else None
    reply = make(NEW).complete(asked)
    usage: Any = {"input_tokens": 11, "output_tokens": 7}
    assert reply == LLMResponse(text="hello", usage=usage, stop_reason="end")
    assert heard == (["hello"] if streamed else [])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("told", "then", "notice"),
    [
        (
            ADAPTIVE_ONLY,
            (None, 8192),
            "does not support thinking; requests are sent without it from now on",
        ),
        (
            "The maximum tokens you requested exceeds the model limit of 4096. Try again with a lower value.",
            (None, 4096),
            "does not support max_tokens with room for thinking; the configured max_tokens are sent from now on",
        ),
    ],
    ids=["thinking", "length"],
)
def test_refused_options_are_dropped_for_good(
    make: Make, server: Server, told: str, then: Any, notice: str, streamed: bool
) -> None:
    whole = stream(*text_frames("hello"), stop_frame(), usage_frame()) if streamed else said()
    server.script(refused("ValidationException", told), whole, whole)
    model = make(OLD)
    replies = [model.complete(request(streamed=streamed, purpose=purpose)) for purpose in ("judge", "answer")]
    assert [asked_for(body) for body in server.bodies] == [(BUDGET, 8192), then, then]
    assert [(reply.text, len(reply.notices)) for reply in replies] == [("hello", 1), ("hello", 0)]
    assert notice in replies[0].notices[0]


def test_thinking_room_that_does_not_fit_is_dropped_for_its_purpose(make: Make, server: Server) -> None:
    told = "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000"
    server.script(refused("ValidationException", told), said(), said(), said())
    model = make(NEW)
    for purpose in ("judge", "answer", "judge"):
        model.complete(request(purpose=purpose))
    assert [asked_for(body)[1] for body in server.bodies] == [8192, 4096, 8192, 4096]


def test_thinking_and_a_schema_are_dropped_one_by_one(make: Make, server: Server) -> None:
    told = ["outputConfig: not supported", "additionalModelRequestFields: extraneous key"]
    server.script(*(refused("ValidationException", each) for each in told), said("{}"))
    reply = make(NEW).complete(request(schema=CLOSED))
    keys = {"outputConfig", "additionalModelRequestFields"}
    assert [sorted(body.keys() & keys) for body in server.bodies] == [
        ["additionalModelRequestFields", "outputConfig"],
        ["additionalModelRequestFields"],
        [],
    ]
    assert len(reply.notices) == 2
    assert json.dumps(server.bodies[2]["inferenceConfig"]) == '{"maxTokens": 8192}'


@pytest.mark.parametrize("told", ["messages: too few", "prompt is too long for thinking: 210000 > 200000 maximum"])
def test_a_refusal_of_something_else_is_an_error_after_one_request(make: Make, server: Server, told: str) -> None:
    server.script(refused("ValidationException", told))
    with pytest.raises(LLMError) as caught:
        make(NEW).complete(request())
    assert (caught.value.retryable, len(server.requests)) == (False, 1)
