"""One conversation with tools and one set of failures, the same for every adapter, through the real SDKs.

An adapter joins by an entry in DIALECTS, and a fixture `<provider>_model` that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMRequest, Message
from tests.aeon_core.llm.conftest import Make
from tests.aeon_core.llm.converse_server import bedrock_models, no_credentials, set_credentials
from tests.aeon_core.llm.dialects import DIALECTS, Dialect
from tests.aeon_core.llm.server import Reply, Server

TOOLS = [
    {"name": name, "description": name, "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    for name in ("calc.add", "echo")
]
CONVERSATION: list[Message] = [
    {"role": "user", "content": "add and echo"},
    {
        "role": "assistant",
        "content": "I call both.",
        "tool_calls": [
            {"id": "call_a", "name": "calc.add", "arguments": {"a": 5}},
            {"id": "call_b", "name": "echo", "arguments": {}},
        ],
    },
    {"role": "tool", "content": "15", "tool_call_id": "call_a"},
    {"role": "tool", "content": "no such voice", "tool_call_id": "call_b", "is_error": True},
    {"role": "user", "content": "go on"},
]
CALLS = [("call_a", "calc.add", {"a": 5}), ("call_b", "echo", {})]
SEEN = [
    ("user", "add and echo"),
    ("assistant", "I call both."),
    ("call", "call_a", "calc_add", {"a": 5}),
    ("call", "call_b", "echo", {}),
    ("result", "call_a", "15", False),
    ("result", "call_b", "no such voice", True),
    ("user", "go on"),
]
TELLING = ["anthropic", "openai"]
"""Who sends an error instead of a reply, and what servers and proxies add to it."""

USAGE = {"input_tokens": 11, "output_tokens": 7}


@pytest.fixture(params=sorted(DIALECTS))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bedrock_model(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Make]:
    no_credentials(monkeypatch, tmp_path)
    set_credentials(monkeypatch)
    yield from bedrock_models(server)


@pytest.fixture
def dialect(provider: str) -> Dialect:
    return DIALECTS[provider]


@pytest.fixture
def make(provider: str, request: pytest.FixtureRequest) -> Make:
    return request.getfixturevalue(f"{provider}_model")  # type: ignore[no-any-return]


def ask(messages: list[Message] | None = None, **fields: Any) -> LLMRequest:
    return LLMRequest("tool_call", "Aeon tool_call", messages or [{"role": "user", "content": "hi"}], **fields)


def listening(streamed: bool) -> dict[str, Any]:
    return {"on_delta": lambda _: None} if streamed else {}


def failed(make: Make, server: Server, *replies: Reply, streamed: bool = False, **options: Any) -> LLMError:
    """Return the error of one call, after one request."""
    server.script(*replies)
    with pytest.raises(LLMError) as caught:
        make(**options).complete(ask(**listening(streamed)))
    assert len(server.requests) == 1
    return caught.value


def test_a_conversation_with_tools_round_trips(make: Make, server: Server, dialect: Dialect) -> None:
    server.script(Reply(dialect.reply("I call both.", CALLS, "tool_use")), Reply(dialect.reply("done")))
    model = make()
    first = model.complete(ask(CONVERSATION[:1], tools=TOOLS))
    assert first.tool_calls == CONVERSATION[1]["tool_calls"]
    assert (first.text, first.stop_reason, first.usage) == ("I call both.", "tool_use", USAGE)
    turn: Message = {"role": "assistant", "content": first.text, "tool_calls": first.tool_calls}
    second = model.complete(ask([CONVERSATION[0], turn, *CONVERSATION[2:]], tools=TOOLS))
    assert (second.text, second.tool_calls, second.stop_reason, second.usage) == ("done", [], "end", USAGE)
    assert dialect.seen(server.bodies[0]) == SEEN[:1]
    assert dialect.seen(server.bodies[1]) == SEEN
    assert len(server.requests) == 2


def test_a_call_without_a_name_becomes_an_unknown_tool(make: Make, server: Server, dialect: Dialect) -> None:
    server.script(Reply(dialect.reply("", [("call_a", "", {"a": 5})], "tool_use")), Reply(dialect.reply("done")))
    model = make()
    first = model.complete(ask(CONVERSATION[:1], tools=TOOLS))
    assert first.tool_calls == [{"id": "call_a", "name": "", "arguments": {"a": 5}}]
    turn: Message = {"role": "assistant", "content": "", "tool_calls": first.tool_calls}
    result: Message = {"role": "tool", "content": "there is no tool ''", "tool_call_id": "call_a", "is_error": True}
    model.complete(ask([CONVERSATION[0], turn, result], tools=TOOLS))
    seen = dialect.seen(server.bodies[1])
    assert ("call", "call_a", "tool", {"a": 5}) in seen
    assert seen[-1] == ("result", "call_a", "there is no tool ''", True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_busy_provider_is_asked_once_and_its_wait_passed_on(
    make: Make, server: Server, status: int, streamed: bool
) -> None:
    reply = Reply({"error": {"message": "busy"}}, status=status, headers={"retry-after": "7"})
    error = failed(make, server, reply, streamed=streamed)
    assert (error.status_code, error.retryable, error.retry_after) == (status, True, 7.0)


def test_a_wait_until_a_date_is_passed_on_in_seconds(make: Make, server: Server, now: float) -> None:
    headers = {"retry-after": formatdate(now + 30, usegmt=True)}
    error = failed(make, server, Reply({"error": {"message": "slow"}}, status=429, headers=headers))
    assert error.retry_after == 30


@pytest.mark.parametrize("provider", TELLING)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_tokens_reported_with_an_error_are_kept(
    make: Make, server: Server, dialect: Dialect, streamed: bool
) -> None:
    body = {"error": {"message": "broke"}, **dialect.reply()}
    assert failed(make, server, Reply(body, status=500), streamed=streamed).usage == USAGE


LAST: dict[str, list[dict[str, Any]]] = {
    "openai": [{"choices": [{"delta": {}, "finish_reason": "stop"}]}],
    "anthropic": [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}],
}
FRAMED: dict[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda events: b"\xef\xbb\xbf" + events,
    "CRLF": lambda events: b"\xef\xbb\xbf" + events.replace(b"\n", b"\r\n"),
    "comments": lambda events: events.replace(b"data: ", b": wait\ndata:"),
    "not escaped": lambda events: events.replace(rb"\u2028", "\u2028".encode()).replace(rb"\u0085", "\x85".encode()),
}


@pytest.mark.parametrize("framed", FRAMED)
@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain"])
@pytest.mark.parametrize("provider", LAST)
def test_a_stream_is_read_however_its_events_are_framed(
    provider: str, make: Make, server: Server, dialect: Dialect, framed: str, kind: str
) -> None:
    text = "a\u2028b\x85c\r\n\ufeff"
    whole = dialect.stream(*dialect.events(text), *LAST[provider])
    server.script(Reply(FRAMED[framed](whole.content), content_type=kind))
    reply = make().complete(ask(on_delta=lambda _: None))
    assert (reply.text, reply.stop_reason, reply.usage) == (text, "end", USAGE)


BREAKS: dict[str, Callable[[Dialect], Reply]] = {
    "reset": lambda dialect: dialect.stream(*dialect.events("hel"), reset=True),
    "ended": lambda dialect: dialect.stream(*dialect.events("hel")),
    # So long that it is handed on before the silence, whatever the SDK reads at a time.
    "timeout": lambda dialect: dialect.stream(*dialect.events("hel" * 30_000), hang_after=True),
    "frame": lambda dialect: dialect.stream(*dialect.events("hel"), dialect.broken),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_stream_is_retryable_and_keeps_its_tokens(
    make: Make, server: Server, dialect: Dialect, how: str
) -> None:
    error = failed(make, server, BREAKS[how](dialect), streamed=True, timeout=0.3)
    assert error.retryable
    assert error.usage == USAGE


@pytest.mark.parametrize("kept", [1, 30, 80])
def test_a_truncated_document_is_retryable(make: Make, server: Server, dialect: Dialect, kept: int) -> None:
    error = failed(make, server, Reply(Reply(dialect.reply("hello")).content[:kept]))
    assert error.retryable
    assert "not JSON" in error.message


@pytest.mark.parametrize("stop", ["refusal", "end", "max_tokens"])
def test_a_reply_without_text_is_a_reply_with_its_reason_and_tokens(
    make: Make, server: Server, dialect: Dialect, stop: str
) -> None:
    server.script(Reply(dialect.reply("", (), stop)))
    reply = make().complete(ask())
    assert (reply.text, reply.stop_reason, reply.usage, len(server.requests)) == ("", stop, USAGE, 1)


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_request_that_is_too_long_is_final_and_quotes_the_provider(
    make: Make, server: Server, dialect: Dialect, status: int, streamed: bool
) -> None:
    error = failed(make, server, Reply(dialect.too_long, status=status), streamed=streamed)
    assert (error.status_code, error.retryable, error.context["context_too_long"]) == (status, False, True)
    said = dialect.too_long.get("error", dialect.too_long)["message"]
    assert f"({status}): " in error.message
    assert said in error.message
    assert "; shorten the task" in error.message


_LM_STUDIO = (
    "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context "
    "length of only 4096 tokens, which is not enough."
)
_LM_STUDIO_NOW = "The number of tokens to keep is greater than the context length (n_keep: 13055>= n_ctx: 4096)."
WORDS = {
    "vllm": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
    "vllm-2": "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "llama.cpp": "request (1407 tokens) exceeds the available context size (256 tokens)",
    "lm-studio": _LM_STUDIO,
    "lm-studio-2": _LM_STUDIO_NOW,
    "sglang": "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "together": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000",
    "tgi": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
    "xai": "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "ollama": "prompt too long; exceeded max context length by 120 tokens",
    "moonshot": "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)",
    "qwen": "InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
    "z.ai": "Prompt exceeds max length",
    "minimax": "invalid params, context window exceeds limit (2013)",
    "cohere": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
}


def test_a_request_that_is_too_long_with_its_reply_says_that_a_shorter_reply_may_help(
    openai_model: Make, server: Server
) -> None:
    told = "This model's maximum context length is 4096 tokens. However, you requested 4096 output tokens"
    error = failed(openai_model, server, Reply({"error": {"message": told}}, status=400))
    assert error.message.endswith(
        "; shorten the task or its results, lower max_tokens, or use a model with a larger context"
    )


@pytest.mark.parametrize("words", WORDS)
def test_too_long_errors_of_compatible_servers_are_recognised(openai_model: Make, server: Server, words: str) -> None:
    error = failed(openai_model, server, Reply({"error": WORDS[words]}, status=400))
    assert error.context["context_too_long"] is True
    assert WORDS[words][:90] in error.message


@pytest.mark.parametrize(
    "reply",
    [
        Reply({"error": {"type": "exceed_context_size_error", "message": "x", "n_prompt_tokens": 9, "n_ctx": 4}}),
        Reply({"error": {"message": "input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}, status=400),
        Reply("<html>413 Request Entity Too Large", status=413, content_type="text/html"),
    ],
    ids=["in-200", "sum", "proxy"],
)
@pytest.mark.parametrize("provider", TELLING)
def test_too_long_is_recognised_by_type_message_or_status(make: Make, server: Server, reply: Reply) -> None:
    error = failed(make, server, reply)
    assert (error.retryable, error.context["context_too_long"]) == (False, True)


def test_a_token_rate_limit_is_not_a_context_limit(make: Make, server: Server) -> None:
    told = "This request would exceed the maximum context length rate of 30000 input tokens per minute"
    error = failed(make, server, Reply({"error": {"message": told}}, status=429))
    assert (error.retryable, "context_too_long" in error.context) == (True, False)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_refused_key_ends_with_three_after_one_request(make: Make, server: Server, streamed: bool) -> None:
    error = failed(make, server, Reply({"error": {"message": "bad key"}}, status=401), streamed=streamed)
    assert (error.exit_code, error.retryable) == (3, False)


def test_tokens_from_the_providers_cache_are_named_and_counted_among_the_input(
    make: Make, server: Server, dialect: Dialect
) -> None:
    server.script(Reply({**dialect.reply("x"), "usage": dialect.cached}))
    assert make().complete(ask()).usage == {**USAGE, "cache_read_tokens": 6}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("target", "named"),
    [("http://elsewhere.example:81/v1?key=hidden", "http://elsewhere.example:81/v1"), ("/v2/chat", "/v2/chat")],
)
def test_a_redirect_is_a_final_error_that_names_the_target_and_is_not_followed(
    make: Make, server: Server, target: str, named: str, streamed: bool
) -> None:
    error = failed(make, server, Reply({}, status=307, headers={"location": target}), streamed=streamed)
    assert (error.retryable, error.status_code) == (False, 307)
    assert f"{named} (307)" in error.message
    assert "set its base URL" in error.message
    assert "hidden" not in error.message


def test_a_status_that_does_not_exist_is_final(make: Make, server: Server) -> None:
    assert not failed(make, server, Reply({"message": "m"}, status=999)).retryable
