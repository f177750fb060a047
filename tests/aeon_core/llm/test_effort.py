"""What each adapter makes of a reasoning_mode on the wire, and what it does where the server refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMRequest, Message
from aeon_core.llm.openai import OpenAIModel
from aeon_core.prompts import ReasoningMode, in_reasoning_mode, with_room
from tests.aeon_core.llm.conftest import KEY, Make
from tests.aeon_core.llm.server import Reply, Server, named_stream, stream

CLOSED = {
    "type": "object",
    "properties": {"goal": {"type": "string"}},
    "required": ["goal"],
    "additionalProperties": False,
}
BUDGET = {"type": "enabled", "budget_tokens": 4096}
ADAPTIVE = {"type": "adaptive"}
TOOL = {"name": "calculator", "description": "Adds.", "input_schema": {"type": "object", "properties": {}}}


def request(mode: ReasoningMode | None = "deep", **fields: Any) -> LLMRequest:
    given = {"purpose": "plan", "system": "s", "messages": [{"role": "user", "content": "<task>\nadd\n</task>"}]}
    asked = LLMRequest(**{**given, "max_tokens": 4096, **fields})
    return asked if mode is None else in_reasoning_mode(asked, mode)


def message(*blocks: dict[str, Any]) -> Reply:
    usage = {"input_tokens": 11, "output_tokens": 700}
    return Reply({"model": "m", "content": list(blocks), "stop_reason": "end_turn", "usage": usage})


def completion(**said: Any) -> Reply:
    usage = {"prompt_tokens": 11, "completion_tokens": 700, "completion_tokens_details": {"reasoning_tokens": 650}}
    return Reply({"model": "m", "choices": [{"message": said, "finish_reason": "stop"}], "usage": usage})


MESSAGE, COMPLETION = message({"type": "text", "text": "hello"}), completion(content="hello")


def refused(told: str, status: int = 400) -> Reply:
    return Reply({"error": {"type": "invalid_request_error", "message": told}}, status=status)


def asked_for(body: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a request to Anthropic says of thinking: thinking, effort, and the longest reply."""
    return body.get("thinking"), body.get("output_config", {}).get("effort"), body["max_tokens"]


@pytest.mark.parametrize(
    ("name", "mode", "expected"),
    [
        ("claude-3-haiku-20240307", "deep", (None, None, 8192)),
        ("claude-haiku-4-5", None, (None, None, 4096)),
        ("claude-haiku-4-5", "shallow", (None, None, 4096)),
        ("claude-haiku-4-5", "balanced", (None, None, 4096)),
        ("claude-haiku-4-5", "deep", (BUDGET, None, 8192)),
        ("claude-opus-4-5", "shallow", (None, "low", 4096)),
        ("claude-opus-4-5", "deep", (BUDGET, "high", 8192)),
        ("claude-opus-5", "shallow", (None, "low", 4096)),
        ("claude-opus-5", "balanced", (None, None, 4096)),
        ("claude-opus-5", "deep", (ADAPTIVE, "high", 8192)),
    ],
)
def test_anthropic_gets_thinking_and_effort_as_the_model_supports(
    anthropic_model: Make, server: Server, name: str, mode: ReasoningMode | None, expected: tuple[Any, ...]
) -> None:
    server.script(MESSAGE)
    anthropic_model(name).complete(request(mode))
    assert asked_for(server.bodies[0]) == expected
    assert not server.bodies[0].keys() & {"tool_choice", "temperature"}
    assert ("<reasoning>" in server.bodies[0]["messages"][0]["content"][0]["text"]) == (mode in ("shallow", "deep"))


def test_effort_and_a_schema_are_sent_together(anthropic_model: Make, server: Server) -> None:
    server.script(MESSAGE)
    anthropic_model("claude-opus-5").complete(request(schema=CLOSED))
    assert sorted(server.bodies[0]["output_config"]) == ["effort", "format"]


@pytest.mark.parametrize("streamed", [False, True])
def test_anthropic_thinking_is_not_text_but_counts_in_usage(
    anthropic_model: Make, server: Server, streamed: bool
) -> None:
    def begun(index: int, **block: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    def part(index: int, **delta: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": delta}

    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    hidden = {"type": "redacted_thinking", "data": "xx"}
    events = [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 11}}},
        begun(0, type="thinking", thinking="", signature=""),
        part(0, type="thinking_delta", thinking="hm"),
        part(0, type="signature_delta", signature="s"),
        begun(1, **hidden),
        begun(2, type="text", text=""),
        part(2, type="text_delta", text="hello"),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 700}},
    ]
    server.script(named_stream(*events) if streamed else message(thought, hidden, {"type": "text", "text": "hello"}))
    heard: list[str] = []
    reply = anthropic_model("claude-opus-5").complete(request(on_delta=heard.append if streamed else None))
    assert (reply.text, heard) == ("hello", ["hello"] if streamed else [])
    assert reply.usage == {"input_tokens": 11, "output_tokens": 700}


ADAPTIVE_ONLY = (
    '"thinking.type.enabled" is not supported for this model. '
    'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
)


@pytest.mark.parametrize(
    ("name", "told", "first", "then", "notice"),
    [
        (
            "claude-haiku-4-5",
            ADAPTIVE_ONLY,
            (BUDGET, None, 8192),
            (None, None, 8192),
            "does not support thinking; requests are sent without it from now on",
        ),
        (
            "claude-opus-5",
            "adaptive thinking is not supported on this model",
            (ADAPTIVE, "high", 8192),
            (None, "high", 8192),
            "does not support thinking; requests are sent without it from now on",
        ),
        (
            "claude-opus-5",
            "This model does not support the effort parameter.",
            (ADAPTIVE, "high", 8192),
            (ADAPTIVE, None, 8192),
            "does not support output_config.effort; the model's default effort is used from now on",
        ),
        (
            "claude-opus-5",
            "output_config: Extra inputs are not permitted",
            (ADAPTIVE, "high", 8192),
            (ADAPTIVE, None, 8192),
            "does not support output_config.effort; the model's default effort is used from now on",
        ),
        (
            "claude-3-haiku-20240307",
            "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307",
            (None, None, 8192),
            (None, None, 4096),
            "does not support max_tokens with room for thinking; the configured max_tokens are sent from now on",
        ),
    ],
    ids=["budget", "adaptive", "effort", "output_config", "length"],
)
def test_options_anthropic_refuses_are_dropped_for_good(
    anthropic_model: Make, server: Server, name: str, told: str, first: Any, then: Any, notice: str
) -> None:
    server.script(refused(told), MESSAGE, MESSAGE)
    model = anthropic_model(name)
    replies = [model.complete(request()), model.complete(request(purpose="answer"))]
    assert [asked_for(body) for body in server.bodies] == [first, then, then]
    assert [len(reply.notices) for reply in replies] == [1, 0]
    assert notice in replies[0].notices[0]


def test_a_server_without_output_config_costs_one_request_per_option(anthropic_model: Make, server: Server) -> None:
    server.script(*[refused("output_config: Extra inputs are not permitted")] * 2, MESSAGE)
    reply = anthropic_model("claude-opus-5").complete(request(schema=CLOSED))
    assert [sorted(body.get("output_config", {})) for body in server.bodies] == [["effort", "format"], ["effort"], []]
    assert len(reply.notices) == 2


def test_a_too_small_window_is_remembered_only_for_its_purpose(openai_model: Make, server: Server) -> None:
    told = "maximum context length is 8192 tokens. You requested 9001 (809 in the messages, 8192 in the completion)"
    server.script(refused(told), COMPLETION, COMPLETION, COMPLETION)
    model = openai_model()
    replies = [model.complete(request(purpose=purpose)) for purpose in ("plan", "answer", "plan")]
    assert [body["max_tokens"] for body in server.bodies] == [8192, 4096, 8192, 4096]
    assert [len(reply.notices) for reply in replies] == [1, 0, 0]
    assert "for 'plan'; the configured max_tokens are sent from now on" in replies[0].notices[0]


def test_a_prompt_that_is_too_long_is_always_an_error(anthropic_model: Make, server: Server) -> None:
    server.script(refused("prompt is too long for thinking at this effort: 210000 tokens > 200000 maximum"))
    with pytest.raises(LLMError, match="too long") as caught:
        anthropic_model("claude-opus-5").complete(request())
    assert (caught.value.retryable, len(server.requests)) == (False, 1)


@pytest.mark.parametrize(
    ("told", "mode"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", "deep"),
        ("maximum context length is 8192 tokens, and the completion needs more", "balanced"),
        ("max_tokens is too large: 4096", "shallow"),
        ("POST /v1/chat/completions: messages.0 is malformed", "deep"),
        ("This model does not support reasoning_effort", "deep"),
    ],
)
def test_a_refusal_of_an_unsent_option_is_an_error(
    openai_model: Make, server: Server, told: str, mode: ReasoningMode
) -> None:
    server.script(refused(told))
    with pytest.raises(LLMError) as caught:
        openai_model("m1").complete(request(mode))
    assert (caught.value.retryable, len(server.requests)) == (False, 1)


@pytest.mark.parametrize(
    ("name", "mode", "effort", "longest"),
    [
        ("gpt-oss:20b", None, None, 4096),
        ("gpt-oss:20b", "shallow", "low", 4096),
        ("gpt-oss:20b", "balanced", None, 4096),
        ("gpt-oss:20b", "deep", "high", 8192),
        ("o4-mini", "deep", "high", 8192),
        ("gpt-4o", "deep", None, 8192),
        ("llama3.1:8b", "shallow", None, 4096),
    ],
)
def test_openai_models_that_reason_are_sent_their_effort(
    openai_model: Make, server: Server, name: str, mode: ReasoningMode | None, effort: str | None, longest: int
) -> None:
    server.script(COMPLETION)
    openai_model(name).complete(request(mode))
    assert (server.bodies[0].get("reasoning_effort"), server.bodies[0]["max_tokens"]) == (effort, longest)


def test_openai_itself_gets_effort_and_max_completion_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    params = OpenAIModel("gpt-5-mini")._built(request())[0]
    assert (params["reasoning_effort"], params["max_completion_tokens"]) == ("high", 8192)
    assert "max_tokens" not in params


def test_effort_is_not_sent_next_to_tools(openai_model: Make, server: Server) -> None:
    server.script(COMPLETION)
    openai_model("gpt-5").complete(request(tools=[TOOL]))
    assert "reasoning_effort" not in server.bodies[0]


@pytest.mark.parametrize("streamed", [False, True])
def test_reasoning_of_a_chat_model_is_neither_text_nor_delta(
    openai_model: Make, server: Server, streamed: bool
) -> None:
    def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
        return {"choices": [{"delta": delta, "finish_reason": finish}]}

    usage = {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 700}}
    parts = stream(chunk(reasoning_content="hm"), chunk(reasoning="hm"), chunk("stop", content="hello"), usage)
    server.script(parts if streamed else completion(content="hello", reasoning_content="hm", reasoning="hm"))
    heard: list[str] = []
    reply = openai_model("gpt-oss:20b").complete(request(on_delta=heard.append if streamed else None))
    assert (reply.text, heard) == ("hello", ["hello"] if streamed else [])
    assert reply.usage == {"input_tokens": 11, "output_tokens": 700}


SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}


@pytest.mark.parametrize(
    ("told", "reasoning", "extra"),
    [
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", " ", None),
        ("thinking is enabled but reasoning_content is missing in assistant tool call message at index 2", " ", None),
        ("Function call is missing a thought_signature in functionCall parts.", None, SIGNATURE),
    ],
    ids=["deepseek", "moonshot", "gemini"],
)
def test_a_server_that_requires_earlier_thinking_gets_placeholders(
    openai_model: Make, server: Server, told: str, reasoning: str | None, extra: Any
) -> None:
    turns: list[Message] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "calculator", "arguments": {}}] * 2},
        {"role": "tool", "content": "3"},
        {"role": "tool", "content": "4"},
    ]
    server.script(refused(told), COMPLETION, COMPLETION)
    model = openai_model("thinker")
    replies = [model.complete(request(None, tools=[TOOL], messages=turns)) for _ in range(2)]
    said = [body["messages"][2] for body in server.bodies]
    assert [turn.get("reasoning_content") for turn in said] == [None, reasoning, reasoning]
    given = [[call.get("extra_content") for call in turn["tool_calls"]] for turn in said]
    assert given == [[None, None], [extra, None], [extra, None]]
    assert [len(reply.notices) for reply in replies] == [1, 0]
    assert "the model's thinking; placeholders are sent for it from now on" in replies[0].notices[0]


@pytest.mark.parametrize(
    "told",
    [
        "Unrecognized request argument supplied: reasoning_effort",
        "Unsupported value: 'reasoning_effort' does not support 'high' with this model.",
        '"gpt-oss:20b" does not support thinking',
        "body.reasoning_effort: Input should be 'low' or 'medium'",
    ],
)
def test_a_refused_reasoning_effort_is_dropped_for_good(openai_model: Make, server: Server, told: str) -> None:
    server.script(refused(told), COMPLETION, COMPLETION)
    model = openai_model("gpt-oss:20b")
    replies = [model.complete(request()), model.complete(request("shallow", purpose="answer"))]
    assert [body.get("reasoning_effort") for body in server.bodies] == ["high", None, None]
    assert [len(reply.notices) for reply in replies] == [1, 0]
    assert "does not support reasoning_effort; the model's default effort is used from now on" in replies[0].notices[0]


def test_a_model_limited_to_less_gets_the_configured_length(openai_model: Make, server: Server) -> None:
    told = "max_tokens is too large: 8192. This model supports at most 4096 completion tokens."
    server.script(refused(told), COMPLETION, COMPLETION)
    model = openai_model("gpt-4o")
    replies = [model.complete(request()), model.complete(request(purpose="answer"))]
    assert [body["max_tokens"] for body in server.bodies] == [8192, 4096, 4096]
    assert [len(reply.notices) for reply in replies] == [1, 0]


@pytest.mark.parametrize("mode", ["shallow", "balanced"])
def test_a_judge_gets_the_configured_length_if_more_is_refused(
    openai_model: Make, server: Server, mode: ReasoningMode
) -> None:
    told = "This model's maximum context length is 4096 tokens. However, you requested 4096 output tokens"
    server.script(refused(told), COMPLETION, COMPLETION)
    model = openai_model("local")
    judge = in_reasoning_mode(with_room(request(None, purpose="judge"), 1024), mode)
    notices = [model.complete(judge).notices for _ in range(2)]
    assert [body["max_tokens"] for body in server.bodies] == [4096, 1024, 1024]
    assert [len(told) for told in notices] == [1, 0]


def test_a_configured_length_that_is_refused_is_an_error(openai_model: Make, server: Server) -> None:
    server.script(*[refused("max_tokens is too large: it supports at most 1024 completion tokens.")] * 2)
    with pytest.raises(LLMError, match="too large") as caught:
        openai_model("gpt-4o").complete(request())
    assert (caught.value.retryable, len(server.requests)) == (False, 2)
