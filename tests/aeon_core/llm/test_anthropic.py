"""AnthropicModel through the real SDK: what is sent, what is read, what is given up."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from aeon_core.errors import LLMError
from aeon_core.llm.anthropic import AnthropicModel
from aeon_core.llm.base import LLMRequest, LLMResponse, Usage
from tests.aeon_core.llm.conftest import KEY, Make
from tests.aeon_core.llm.server import Reply, Server, named_stream

CLOSED = {
    "type": "object",
    "properties": {"score": {"type": "number", "minimum": 0}},
    "required": ["score"],
    "additionalProperties": False,
}
TOOL = {"name": "calculator", "description": "Adds.", "input_schema": {"properties": {"a": {}}}, "effect": "pure"}
READ_USAGE: Usage = {"input_tokens": 11, "output_tokens": 7}


def request(**fields: Any) -> LLMRequest:
    given = {"purpose": "judge", "system": "Aeon judge", "messages": [{"role": "user", "content": "add"}], **fields}
    return LLMRequest(**given)


def message(*blocks: Any, stop: Any = "end_turn", **fields: Any) -> Reply:
    usage = {"input_tokens": 11, "output_tokens": 7}
    body = {"id": "m", "type": "message", "role": "assistant", "model": "m1-2026", "content": list(blocks)}
    return Reply({**body, "stop_reason": stop, "usage": usage, **fields})


def text(content: Any = "hello") -> Reply:
    return message({"type": "text", "text": content})


def begin(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"model": "m1-2026", "content": [], "usage": usage}}


def block(index: int, **content: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index: int, **change: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": change}


def said(index: int, content: Any) -> dict[str, Any]:
    return delta(index, type="text_delta", text=content)


def end(stop: Any = "end_turn", **usage: Any) -> list[dict[str, Any]]:
    return [{"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}, {"type": "message_stop"}]


def refused(told: str) -> Reply:
    return Reply({"type": "error", "error": {"type": "invalid_request_error", "message": told}}, status=400)


def test_a_plain_request_carries_system_messages_and_limit_and_nothing_else(
    anthropic_model: Make, server: Server
) -> None:
    server.script(text())
    reply = anthropic_model("claude:x").complete(request(max_tokens=99))
    assert server.bodies == [
        {
            "model": "claude:x",
            "max_tokens": 99,
            "system": "Aeon judge",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "add"}]}],
        }
    ]
    assert server.requests[0].path == "/v1/messages"
    assert KEY in str(server.requests[0].headers)
    assert "traceparent" not in server.requests[0].headers
    assert reply == LLMResponse(text="hello", usage=READ_USAGE, stop_reason="end", model="m1-2026")


@pytest.mark.parametrize("variable", [True, False])
@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "?team=a", "/v1?team=a"])
def test_a_base_url_may_end_with_the_version_as_that_of_other_providers(
    server: Server, monkeypatch: pytest.MonkeyPatch, end: str, variable: bool
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{server.url}{end}")
    server.script(text())
    with closing(AnthropicModel("m1", base_url=None if variable else f"{server.url}{end}")) as model:
        model.complete(request())
    assert server.requests[0].path == "/v1/messages" + "?team=a" * ("?" in end)


def test_without_a_system_prompt_none_is_sent(anthropic_model: Make, server: Server) -> None:
    server.script(text())
    assert anthropic_model().generate("hi", max_tokens=100_000) == "hello"
    assert "system" not in server.bodies[0]


def test_an_auth_token_replaces_a_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-mine")
    server.script(text())
    model = AnthropicModel("m1", base_url=server.url)
    model.complete(request())
    model.close()
    assert server.requests[0].headers["authorization"] == "Bearer token-of-mine"


def test_a_schema_is_sent_in_the_apis_form(anthropic_model: Make, server: Server) -> None:
    server.script(text("{}"))
    anthropic_model().complete(asked := request(schema=CLOSED))
    schema = server.bodies[0]["output_config"]["format"]["schema"]
    assert schema["title"] == f"aeon_{asked.purpose}"
    assert server.bodies[0]["output_config"]["format"]["type"] == "json_schema"
    assert schema["properties"]["score"] == {"type": "number", "description": "{minimum: 0}"}
    assert (schema["required"], schema["additionalProperties"]) == (["score"], False)


def test_a_schema_with_an_open_object_is_left_to_the_prompt(anthropic_model: Make, server: Server) -> None:
    # Closed, as the API wants it, the object would be forced empty.
    server.script(text("{}"))
    anthropic_model().complete(request(schema={**CLOSED, "properties": {"score": {"type": "object"}}}))
    assert "output_config" not in server.bodies[0]


def test_an_unsupported_output_config_is_dropped_for_good(
    anthropic_model: Make, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.script(refused("output_config: Extra inputs are not permitted"), text("{}"), text("{}"))
    model = anthropic_model()
    assert model.complete(request(schema=CLOSED)).text == "{}"
    model.complete(request(schema=CLOSED, purpose="plan"))
    assert ["output_config" in body for body in server.bodies] == [True, False, False]
    assert [record.name for record in caplog.records if "output_config" in record.message] == ["aeon"]


@pytest.mark.parametrize("told", ["Grammar compilation timed out.", "Schema is too complex."])
def test_a_schema_that_the_api_cannot_compile_is_dropped_for_its_purpose(
    anthropic_model: Make, server: Server, told: str
) -> None:
    server.script(refused(told), text("{}"), text("{}"), text("{}"))
    model = anthropic_model()
    for purpose in ("judge", "plan", "judge"):
        model.complete(request(schema=CLOSED, purpose=purpose))
    assert ["output_config" in body for body in server.bodies] == [True, False, True, False]


def test_a_refusal_of_a_tools_schema_is_an_error_after_one_request(anthropic_model: Make, server: Server) -> None:
    server.script(refused("tools.0.custom.input_schema: JSON schema is invalid"))
    with pytest.raises(LLMError, match=r"tools\.0\.custom") as caught:
        anthropic_model().complete(request(schema=CLOSED, tools=[TOOL]))
    assert (caught.value.retryable, len(server.requests)) == (False, 1)


def test_tools_and_a_conversation_are_mapped_into_alternating_turns(anthropic_model: Make, server: Server) -> None:
    server.script(text())
    anthropic_model().complete(
        request(
            tools=[TOOL],
            messages=[
                {"role": "user", "content": "add"},
                {
                    "role": "assistant",
                    "content": " ",
                    "tool_calls": [
                        {"id": "a.1", "name": "calculator", "arguments": {"a": 1}},
                        {"name": "calculator", "arguments": "{broken"},
                    ],
                },
                {"role": "tool", "content": "15", "tool_call_id": "a.1"},
                {"role": "tool", "content": "", "is_error": True},
                {"role": "user", "content": "and now?"},
            ],
        )
    )
    assert server.bodies[0]["tools"] == [
        {"name": "calculator", "description": "Adds.", "input_schema": {"type": "object", "properties": {"a": {}}}}
    ]
    assert server.bodies[0]["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "add"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a_1", "name": "calculator", "input": {"a": 1}},
                {"type": "tool_use", "id": "call_2", "name": "calculator", "input": {"text": "{broken"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a_1", "content": "15"},
                {"type": "tool_result", "tool_use_id": "call_2", "is_error": True},
                {"type": "text", "text": "and now?"},
            ],
        },
    ]


def test_a_native_tool_use_is_read_and_thinking_is_left_out(anthropic_model: Make, server: Server) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "my_tool", "input": {"a": 5}}
    server.script(
        message({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I add."}, use, stop="tool_use")
    )
    reply = anthropic_model().complete(request(tools=[{**TOOL, "name": "my tool"}]))
    assert reply.tool_calls == [{"id": "t1", "name": "my tool", "arguments": {"a": 5}}]
    assert (reply.text, reply.stop_reason) == ("I add.", "tool_use")


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("stop_sequence", "end"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
        (None, None),
    ],
)
def test_the_stop_reason_is_mapped_and_empty_content_is_empty_text(
    anthropic_model: Make, server: Server, stop: Any, reason: str | None
) -> None:
    server.script(message(stop=stop))
    reply = anthropic_model().complete(request())
    assert (reply.text, reply.stop_reason, reply.usage) == ("", reason, READ_USAGE)


def test_tokens_in_the_providers_cache_count_as_input(anthropic_model: Make, server: Server) -> None:
    usage = {"input_tokens": 1, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 2}
    server.script(message(usage=usage))
    assert anthropic_model().complete(request()).usage == {
        "input_tokens": 111,
        "output_tokens": 2,
        "cache_read_tokens": 100,
        "cache_write_tokens": 10,
    }


def test_a_stream_is_passed_on_and_keeps_its_usage(anthropic_model: Make, server: Server) -> None:
    server.script(
        named_stream(
            begin(input_tokens=11, output_tokens=1),
            {"type": "ping"},
            block(0, type="thinking", thinking=""),
            delta(0, type="thinking_delta", thinking="hm"),
            block(1, type="text", text=""),
            said(1, "hel"),
            said(1, "lo"),
            block(2, type="tool_use", id="t1", name="calculator", input={}),
            delta(2, type="input_json_delta", partial_json='{"a":'),
            delta(2, type="input_json_delta", partial_json=" 5}"),
            {"type": "content_block_stop", "index": 2},
            *end("tool_use", output_tokens=7, input_tokens=None),
        )
    )
    heard: list[str] = []
    called: list[tuple[str, str]] = []
    told = {"on_delta": heard.append, "on_call": lambda *part: called.append(part)}
    reply = anthropic_model().complete(request(tools=[TOOL], **told))
    assert server.bodies[0]["stream"] is True
    assert heard == ["hel", "lo"]
    assert called == [("calculator", ""), ("calculator", '{"a":'), ("calculator", " 5}")]
    assert reply == LLMResponse(
        text="hello",
        tool_calls=[{"id": "t1", "name": "calculator", "arguments": {"a": 5}}],
        usage=READ_USAGE,
        stop_reason="tool_use",
        model="m1-2026",
    )


def test_streamed_arguments_that_are_cut_are_kept_as_text(anthropic_model: Make, server: Server) -> None:
    cut = delta(0, type="input_json_delta", partial_json='{"a": ')
    use = block(0, type="tool_use", id="t", name="n", input={})
    server.script(named_stream(begin(), use, cut, *end("max_tokens")))
    reply = anthropic_model().complete(request(on_delta=lambda _: None))
    assert (reply.tool_calls[0]["arguments"], reply.stop_reason) == ('{"a": ', "max_tokens")


def test_an_empty_first_text_and_server_tools_are_skipped_in_a_stream(anthropic_model: Make, server: Server) -> None:
    use = [block(0, type="server_tool_use", id="s", name="web", input={}), delta(0, type="input_json_delta")]
    server.script(named_stream(begin(), *use, block(1, type="text", text=None), said(1, "hi"), *end("end_turn")))
    assert anthropic_model().complete(request(on_delta=lambda _: None)).text == "hi"


def test_a_server_that_ignores_streaming_is_read_anyway(anthropic_model: Make, server: Server) -> None:
    server.script(text("whole"))
    heard: list[str] = []
    assert anthropic_model().complete(request(on_delta=heard.append)).text == "whole"
    assert heard == ["whole"]


def test_a_stream_without_its_end_event_is_retryable_and_keeps_usage(anthropic_model: Make, server: Server) -> None:
    server.script(named_stream(begin(input_tokens=11, output_tokens=1), block(0, type="text", text=""), said(0, "h")))
    with pytest.raises(LLMError, match="the stream ended before its end event") as caught:
        anthropic_model().complete(request(on_delta=lambda _: None))
    assert caught.value.retryable
    assert caught.value.usage == {"input_tokens": 11, "output_tokens": 1}


def test_a_reset_stream_is_retryable_and_keeps_usage(anthropic_model: Make, server: Server) -> None:
    server.script(named_stream(begin(input_tokens=11), block(0, type="text", text="h"), reset=True))
    with pytest.raises(LLMError, match="broke before the reply was complete") as caught:
        anthropic_model().complete(request(on_delta=lambda _: None))
    assert caught.value.retryable
    assert caught.value.usage == {"input_tokens": 11, "output_tokens": 0}


@pytest.mark.parametrize(
    ("kind", "status", "retryable"),
    [
        ("overloaded_error", 529, True),
        ("rate_limit_error", 429, True),
        ("api_error", 500, True),
        ("invalid_request_error", 400, False),
        ("authentication_error", 401, False),
        ("never_heard_of", None, True),
    ],
)
def test_an_error_inside_a_stream_is_judged_by_its_kind(
    anthropic_model: Make, server: Server, kind: str, status: int | None, retryable: bool
) -> None:
    server.script(named_stream(begin(), {"type": "error", "error": {"type": kind, "message": "Overloaded"}}))
    with pytest.raises(LLMError, match="Overloaded") as caught:
        anthropic_model().complete(request(on_delta=lambda _: None))
    assert (caught.value.status_code, caught.value.retryable) == (status, retryable)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": "text"},
        {"content": ["text"]},
        {"content": [{"type": "text", "text": 5}]},
        {"content": [{"type": "tool_use", "name": 5, "input": {}}]},
        [],
        None,
        "text",
    ],
)
def test_a_malformed_reply_is_a_retryable_error(anthropic_model: Make, server: Server, body: Any) -> None:
    server.script(Reply(body))
    with pytest.raises(LLMError, match="cannot use the reply of") as caught:
        anthropic_model().complete(request())
    assert caught.value.retryable


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start", "message": 5},
        {"type": "content_block_start", "index": "x", "content_block": {"type": "text", "text": "a"}},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_delta", "index": 5, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "message_delta", "delta": None},
    ],
)
def test_a_malformed_stream_event_is_a_retryable_error(anthropic_model: Make, server: Server, event: Any) -> None:
    server.script(named_stream(begin(), event, *end()))
    with pytest.raises(LLMError, match="cannot use the reply of") as caught:
        anthropic_model().complete(request(on_delta=lambda _: None))
    assert caught.value.retryable


def test_a_tool_call_is_forced(anthropic_model: Make, server: Server) -> None:
    server.script(text(), text())
    anthropic_model().complete(request(purpose="tool_call", tools=[TOOL]))
    anthropic_model().complete(request(purpose="reason", tools=[TOOL]))
    assert server.bodies[0]["tool_choice"] == {"type": "tool", "name": "calculator"}
    assert "tool_choice" not in server.bodies[1]


def test_counts_of_zero_at_the_end_of_a_stream_do_not_replace_the_real_ones(
    anthropic_model: Make, server: Server
) -> None:
    start = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9, "output_tokens": 0}}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    last = {**end, "usage": {"input_tokens": 0, "output_tokens": 5}}
    server.script(named_stream(start, last, {**end, "usage": {"input_tokens": 0, "output_tokens": 0}}))
    usage = anthropic_model().complete(request(on_delta=lambda _: None)).usage
    assert usage == {"input_tokens": 9, "output_tokens": 5}


@pytest.mark.parametrize("last", [{}, {"output_tokens": -9}])
def test_a_stream_without_a_usable_output_count_has_unknown_usage(
    anthropic_model: Make, server: Server, last: dict[str, Any]
) -> None:
    server.script(
        named_stream(begin(input_tokens=11), block(0, type="text", text=""), said(0, "h"), *end("end_turn", **last))
    )
    assert anthropic_model().complete(request(on_delta=lambda _: None)).usage is None
