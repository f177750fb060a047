"""OpenAIModel through the real SDK: what is sent, what is read, what is given up."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest

from aeon_core.errors import LLMError, RunAborted
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.llm.openai import OpenAIModel
from tests.aeon_core.llm.conftest import KEY, Make
from tests.aeon_core.llm.server import Reply, Server, stream

CLOSED = {
    "type": "object",
    "properties": {"goal": {"type": "string"}},
    "required": ["goal"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "properties": {"arguments": {"type": "object"}}}
TOOL = {
    "name": "calculator",
    "description": "Adds.",
    "input_schema": {"type": "object", "properties": {"a": {"type": "number"}}},
    "output_schema": {"type": "object"},
    "effect": "pure",
    "examples": [{"a": 1}],
}
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def request(**fields: Any) -> LLMRequest:
    given = {"purpose": "plan", "system": "Aeon plan", "messages": [{"role": "user", "content": "add"}], **fields}
    return LLMRequest(**given)


def completion(message: Any, finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "model": "m1-2026", "choices": [choice], "usage": USAGE, **fields}


def text(content: Any = "hello") -> Reply:
    return Reply(completion({"role": "assistant", "content": content}))


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"model": "m1-2026", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def refused(message: str, status: int = 400, **fields: Any) -> Reply:
    return Reply({"error": {"message": message, "type": "invalid_request_error", **fields}}, status=status)


def test_a_plain_request_carries_system_messages_and_limit_and_nothing_else(openai_model: Make, server: Server) -> None:
    server.script(text())
    reply = openai_model("team/llama:8b").complete(request(max_tokens=99))
    assert server.bodies == [
        {
            "model": "team/llama:8b",
            "messages": [{"role": "system", "content": "Aeon plan"}, {"role": "user", "content": "add"}],
            "max_tokens": 99,
        }
    ]
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert reply == LLMResponse(
        text="hello", usage={"input_tokens": 11, "output_tokens": 7}, stop_reason="end", model="m1-2026"
    )


def test_without_a_system_prompt_no_system_message_is_sent(openai_model: Make, server: Server) -> None:
    server.script(text())
    assert openai_model().generate("hi") == "hello"
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(("schema", "strict"), [(CLOSED, True), (OPEN, False)])
def test_a_schema_is_sent_under_its_purpose_and_strict_if_possible(
    openai_model: Make, server: Server, schema: dict[str, Any], strict: bool
) -> None:
    server.script(text("{}"))
    openai_model().complete(request(schema=schema))
    assert server.bodies[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "aeon_plan", "schema": schema, "strict": strict},
    }


def test_tools_are_sent_as_functions_without_extra_fields(openai_model: Make, server: Server) -> None:
    server.script(text())
    openai_model().complete(request(tools=[TOOL]))
    function = {"name": "calculator", "description": "Adds.", "parameters": TOOL["input_schema"]}
    assert server.bodies[0]["tools"] == [{"type": "function", "function": function}]


def test_a_native_tool_call_is_read_and_its_name_is_the_tools_own(openai_model: Make, server: Server) -> None:
    call = {"id": "call_9", "type": "function", "function": {"name": "my_tool", "arguments": '{"a": 5, "b": 10}'}}
    server.script(Reply(completion({"role": "assistant", "content": None, "tool_calls": [call]}, "stop")))
    reply = openai_model().complete(request(tools=[{**TOOL, "name": "my.tool"}]))
    assert server.bodies[0]["tools"][0]["function"]["name"] == "my_tool"
    assert reply.tool_calls == [{"id": "call_9", "name": "my.tool", "arguments": {"a": 5, "b": 10}}]
    assert (reply.text, reply.stop_reason) == ("", "tool_use")


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ('{"a": 1', '{"a": 1'),
        ("[1]", "[1]"),
        ('{"a": NaN}', '{"a": NaN}'),
        ("[" * 5000, "[" * 5000),
        (5, "5"),
        ("", {}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_arguments_that_are_not_an_object_are_kept_as_text(
    openai_model: Make, server: Server, sent: Any, read: Any
) -> None:
    call = {"id": "x", "function": {"name": "calculator", "arguments": sent}}
    server.script(Reply(completion({"content": "", "tool_calls": [call]}, "tool_calls")))
    assert openai_model().complete(request(tools=[TOOL])).tool_calls[0]["arguments"] == read


def test_a_conversation_with_calls_and_results_is_mapped(openai_model: Make, server: Server) -> None:
    server.script(text())
    openai_model().complete(
        request(
            messages=[
                {"role": "user", "content": "add"},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [
                        {"id": "c1", "name": "calculator", "arguments": {"a": "ü"}},
                        {"name": "my.tool", "arguments": "{broken"},
                    ],
                },
                {"role": "tool", "content": "15", "tool_call_id": "c1"},
                {"role": "tool", "content": "no such thing", "is_error": True},
                {"role": "tool", "content": "stray"},
                {"role": "assistant", "content": "done"},
            ]
        )
    )
    assert server.bodies[0]["messages"][1:] == [
        {"role": "user", "content": "add"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "calculator", "arguments": '{"a": "ü"}'}},
                {"id": "call_2", "type": "function", "function": {"name": "my_tool", "arguments": "{broken"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "15"},
        {"role": "tool", "tool_call_id": "call_2", "content": "Error: no such thing"},
        {"role": "user", "content": "stray"},
        {"role": "assistant", "content": "done"},
    ]


def test_hostile_text_is_sent_and_read_without_a_crash(openai_model: Make, server: Server) -> None:
    # A lone surrogate has no UTF-8 form: it is replaced on the way out and on the way in.
    server.script(Reply(rb'{"choices": [{"message": {"content": "a\ud800\u0000\u001b[31m[bold]"}}]}'))
    reply = openai_model().complete(request(messages=[{"role": "user", "content": "x\udcff\x00" + "y" * 5_000_000}]))
    assert server.bodies[0]["messages"][1]["content"] == "x\ufffd\x00" + "y" * 5_000_000
    assert (reply.text, reply.usage, reply.stop_reason) == ("a\ufffd\x00\x1b[31m[bold]", None, None)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "end"), ("length", "max_tokens"), ("content_filter", "refusal"), ("odd", "odd"), (7, None)],
)
def test_the_stop_reason_is_mapped(openai_model: Make, server: Server, finish: Any, reason: str | None) -> None:
    server.script(Reply(completion({"content": "x"}, finish)))
    assert openai_model().complete(request()).stop_reason == reason


def test_a_refusal_is_a_reply_with_its_usage(openai_model: Make, server: Server) -> None:
    server.script(Reply(completion({"content": None, "refusal": "I will not."})))
    reply = openai_model().complete(request(schema=CLOSED))
    assert (reply.text, reply.stop_reason) == ("I will not.", "refusal")
    assert reply.usage == {"input_tokens": 11, "output_tokens": 7}


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 3}, None),
        ({"completion_tokens": 3}, None),
        ({"prompt_tokens": "3", "completion_tokens": 4}, None),
        ({"prompt_tokens": 3.5, "completion_tokens": 4}, None),
        ({"prompt_tokens": 3, "completion_tokens": -1}, None),
        ({"prompt_tokens": True, "completion_tokens": 4}, None),
        ({"prompt_tokens": 3.0, "completion_tokens": 0}, {"input_tokens": 3, "output_tokens": 0}),
        (
            {"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 0}},
            {"input_tokens": 3, "output_tokens": 4},
        ),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 50}, {"input_tokens": 3, "output_tokens": 47}),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 0}, {"input_tokens": 3, "output_tokens": 4}),
        ("many", None),
    ],
)
def test_usage_is_unknown_unless_both_counts_are_usable(
    openai_model: Make, server: Server, usage: Any, read: Any
) -> None:
    server.script(Reply(completion({"content": "x"}, usage=usage)))
    assert openai_model().complete(request()).usage == read


def test_an_unusable_last_count_of_a_stream_does_not_leave_an_earlier_one(openai_model: Make, server: Server) -> None:
    early = {"choices": [], "usage": USAGE}
    late = {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": -1}}
    server.script(stream(early, chunk(content="x"), chunk("stop"), late))
    assert openai_model().complete(request(on_delta=lambda _: None)).usage is None


def test_counts_of_zero_at_the_end_of_a_stream_do_not_replace_the_real_ones(openai_model: Make, server: Server) -> None:
    zero = {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}
    server.script(
        stream({"choices": [], "usage": USAGE}, chunk("stop", content="x"), zero), stream(chunk("stop"), zero)
    )
    model = openai_model()
    usages = [model.complete(request(on_delta=lambda _: None)).usage for _ in range(2)]
    assert usages == [{"input_tokens": 11, "output_tokens": 7}, {"input_tokens": 0, "output_tokens": 0}]


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("place", ["moonshot", "groq"])
def test_usage_is_counted_where_moonshot_and_groq_put_it(
    openai_model: Make, server: Server, place: str, streamed: bool
) -> None:
    last = chunk("stop", content="x") if streamed else completion({"content": "x"})
    if not streamed:
        del last["usage"]
    (last["choices"][0] if place == "moonshot" else last.setdefault("x_groq", {"id": "r"}))["usage"] = USAGE
    first = {**chunk(role="assistant"), "x_groq": {"id": "r"}}
    server.script(stream(first, last) if streamed else Reply(last))
    reply = openai_model().complete(request(on_delta=(lambda _: None) if streamed else None))
    assert (reply.text, reply.usage) == ("x", {"input_tokens": 11, "output_tokens": 7})


def test_content_in_parts_is_joined_and_empty_content_is_empty_text(openai_model: Make, server: Server) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "thinking", "text": None}, {"type": "text", "text": "b"}]
    server.script(text(parts), text(None), text(""))
    model = openai_model()
    assert [model.complete(request()).text for _ in range(3)] == ["ab", "", ""]


def test_a_stream_is_passed_on_and_keeps_its_usage(openai_model: Make, server: Server) -> None:
    usage = {"choices": [], "usage": USAGE}
    server.script(stream(chunk(role="assistant"), chunk(content="hel"), chunk(content="lo"), chunk("stop"), usage))
    heard: list[str] = []
    reply = openai_model().complete(request(on_delta=heard.append))
    assert server.bodies[0]["stream"] is True
    assert server.bodies[0]["stream_options"] == {"include_usage": True}
    assert heard == ["hel", "lo"]
    assert reply == LLMResponse(
        text="hello", usage={"input_tokens": 11, "output_tokens": 7}, stop_reason="end", model="m1-2026"
    )


def test_streamed_tool_calls_are_put_together_by_index(openai_model: Make, server: Server) -> None:
    def part(index: int, arguments: str, **more: Any) -> dict[str, Any]:
        return {"index": index, "function": {"arguments": arguments, **more.pop("function", {})}, **more}

    server.script(
        stream(
            chunk(tool_calls=[part(0, "", id="a", function={"name": "calculator"})]),
            chunk(tool_calls=[part(0, '{"a":'), part(1, "{", id="b", function={"name": "echo"})]),
            chunk(tool_calls=[part(1, "}"), part(0, " 5}")]),
            chunk("tool_calls"),
        )
    )
    called: list[str] = []
    told = {"on_delta": lambda _: None, "on_call": lambda name, text: called.append(f"{name} {text}")}
    reply = openai_model().complete(request(tools=[TOOL], **told))
    assert called == ["calculator ", 'calculator {"a":', "echo ", "echo {", "echo }", "calculator  5}"]
    assert reply.tool_calls == [
        {"id": "a", "name": "calculator", "arguments": {"a": 5}},
        {"id": "b", "name": "echo", "arguments": {}},
    ]
    assert reply.stop_reason == "tool_use"


def test_streamed_tool_calls_without_numbers_are_distinguished_by_their_ids(openai_model: Make, server: Server) -> None:
    first = {"id": "a", "function": {"name": "echo", "arguments": '{"t":'}}
    more = {"function": {"arguments": "1}"}}
    second = {"id": "b", "function": {"name": "echo", "arguments": {"t": 2}}}
    server.script(stream(chunk(tool_calls=[first]), chunk(tool_calls=[more]), chunk("stop", tool_calls=[second])))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert [call["arguments"] for call in reply.tool_calls] == [{"t": 1}, {"t": 2}]


def test_streamed_tool_calls_with_the_same_number_are_distinguished_by_their_ids(
    openai_model: Make, server: Server
) -> None:
    # As Ollama sends them, and vLLM, whose ids differ in every part of a call.
    parts = [
        {"index": 0, "id": "a", "function": {"name": "echo", "arguments": '{"t": 1}'}},
        {"index": 0, "id": "b", "function": {"name": "echo", "arguments": '{"t":'}},
        {"index": 0, "function": {"arguments": " "}},
        {"index": 0, "id": "c", "function": {"arguments": "2}"}},
    ]
    server.script(stream(*(chunk(tool_calls=[part]) for part in parts), chunk("tool_calls")))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert reply.tool_calls == [
        {"id": "a", "name": "echo", "arguments": {"t": 1}},
        {"id": "b", "name": "echo", "arguments": {"t": 2}},
    ]


@pytest.mark.parametrize("named", [{"index": 0, "id": ""}, {"index": 0}, {}])
@pytest.mark.parametrize("arguments", ['{"t": 1}', {"t": 1}])
def test_streamed_tool_calls_without_ids_are_distinguished_by_complete_arguments(
    openai_model: Make, server: Server, named: Any, arguments: Any
) -> None:
    # As Gemini sends them. Others repeat the name in every part of a call.
    parts = [("echo", arguments), ("echo", '{"t"'), ("echo", ": 2}"), ("echo", ""), ("calculator", '{"a": 3}')]
    calls = [{**named, "function": {"name": name, "arguments": text}} for name, text in parts]
    server.script(stream(*(chunk(tool_calls=[call]) for call in calls), chunk("tool_calls")))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert [call["arguments"] for call in reply.tool_calls] == [{"t": 1}, {"t": 2}, {"a": 3}]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([("echo", '{"t": 1}', {"id": "1"}), ("echo", "\n", {})], [{"t": 1}]),
        ([("echo", '{"t": 1}', {}), ("echo", "\n", {})], [{"t": 1}]),
        ([("echo", "", {"id": "1"}), ("echo", "{}", {}), ("echo", " ", {})], [{}]),
        ([("echo", {}, {}), ("calculator", {"a": 3}, {})], [{}, {"a": 3}]),
    ],
)
def test_what_follows_complete_arguments_is_a_call_only_with_arguments_and_without_ids(
    openai_model: Make, server: Server, parts: Any, expected: Any
) -> None:
    calls = [{"index": 0, **ids, "function": {"name": name, "arguments": text}} for name, text, ids in parts]
    server.script(stream(*(chunk(tool_calls=[call]) for call in calls), chunk("tool_calls")))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert [call["arguments"] for call in reply.tool_calls] == expected


@pytest.mark.parametrize("function", [{"function": None}, {}])
def test_a_part_of_a_streamed_call_may_have_no_function(openai_model: Make, server: Server, function: Any) -> None:
    parts = [{"id": "a", **function}, {"function": {"name": "echo", "arguments": '{"t": 1}'}}, function]
    server.script(stream(*(chunk(tool_calls=[{"index": 0, **part}]) for part in parts), chunk("tool_calls")))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert reply.tool_calls == [{"id": "a", "name": "echo", "arguments": {"t": 1}}]


BROKEN_OFF = {
    "openrouter": ({"error": {"code": 502, "message": "died"}, "finish_reason": "error"}, "(502): died"),
    "openrouter-bare": ({"finish_reason": "error"}, "it broke off with the finish_reason 'error'"),
    "deepseek": ({"finish_reason": "insufficient_system_resource"}, "'insufficient_system_resource'"),
}


@pytest.mark.parametrize("name", BROKEN_OFF)
@pytest.mark.parametrize("streamed", [True, False])
def test_a_reply_that_the_server_breaks_off_is_no_reply(
    openai_model: Make, server: Server, name: str, streamed: bool
) -> None:
    choice, said = BROKEN_OFF[name]
    last = {"choices": [{"delta": {"content": ""}, **choice}], "usage": USAGE}
    whole = {"choices": [{"message": {"content": "half"}, **choice}], "usage": USAGE}
    server.script(stream(chunk(content="half"), last) if streamed else Reply(whole))
    with pytest.raises(LLMError, match=re.escape(said)) as caught:
        openai_model().complete(request(on_delta=(lambda _: None) if streamed else None))
    assert (caught.value.retryable, caught.value.usage) == (True, {"input_tokens": 11, "output_tokens": 7})


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_events_without_data_do_not_end_a_stream(openai_model: Make, server: Server, end: str) -> None:
    events = [": wait", "data:", f"data: {json.dumps(chunk(content='hel'))}", "retry: 3000", "event: ping", "data:  "]
    events += [f"data: {json.dumps(chunk('stop', content='lo'))}", "data: [DONE]"]
    server.script(Reply((end * 2).join([*events, ""]), content_type="text/event-stream"))
    assert openai_model().complete(request(on_delta=lambda _: None)).text == "hello"


def test_only_the_first_of_several_streamed_choices_is_read(openai_model: Make, server: Server) -> None:
    others = [{"choices": [{"index": 1, "delta": {"content": text}, "finish_reason": "stop"}]} for text in "xy"]
    server.script(stream(others[0], chunk(content="hel"), others[1], chunk("length", content="lo")))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert (reply.text, reply.stop_reason) == ("hello", "max_tokens")


def test_a_stream_that_is_one_whole_message_is_read(openai_model: Make, server: Server) -> None:
    server.script(stream(completion({"role": "assistant", "content": "hello"})))
    heard: list[str] = []
    assert openai_model().complete(request(on_delta=heard.append)).text == "hello"
    assert heard == ["hello"]


def test_a_stream_that_repeats_the_whole_message_at_its_end_is_read_once(openai_model: Make, server: Server) -> None:
    call = {"id": "a", "function": {"name": "echo", "arguments": "{}"}}
    parts = [chunk(content="hello"), chunk(tool_calls=[{"index": 0, **call}])]
    server.script(stream(*parts, completion({"content": "hello", "tool_calls": [call]})))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert (reply.text, [each["name"] for each in reply.tool_calls]) == ("hello", ["echo"])


@pytest.mark.parametrize("event", ["{broken", "upstream connect error", '{"choices": [{"delta": {"content": "h'])
def test_a_stream_event_that_is_not_json_is_described_as_such(openai_model: Make, server: Server, event: str) -> None:
    server.script(stream(chunk(content="a"), event, chunk("stop")))
    with pytest.raises(LLMError, match=r"cannot use the reply of \S+: a part of it is not JSON \([A-Z]"):
        openai_model().complete(request(on_delta=lambda _: None))


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("named", [{}, {"id": ""}, {"id": "same"}, {"index": 0, "id": "a"}])
def test_a_whole_message_keeps_every_call(
    openai_model: Make, server: Server, named: dict[str, Any], streamed: bool
) -> None:
    calls = [{**named, "function": {"name": "echo", "arguments": f'{{"t": {number}}}'}} for number in (1, 2)]
    message = completion({"content": None, "tool_calls": calls}, "tool_calls")
    server.script(stream(message) if streamed else Reply(message))
    reply = openai_model().complete(request(on_delta=(lambda _: None) if streamed else None))
    assert [call["arguments"] for call in reply.tool_calls] == [{"t": 1}, {"t": 2}]


@pytest.mark.parametrize("arguments", ['{"t": 1}', {"t": 1}])
def test_name_and_arguments_of_a_streamed_call_may_come_later(
    openai_model: Make, server: Server, arguments: Any
) -> None:
    parts = [
        {"index": 0, "id": "a", "function": {"name": None, "arguments": ""}},
        {"index": 0, "function": {"name": "echo"}},
        {"index": 0, "function": {"arguments": arguments}},
    ]
    server.script(stream(*(chunk(tool_calls=[part]) for part in parts), chunk("tool_calls")))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert reply.tool_calls == [{"id": "a", "name": "echo", "arguments": {"t": 1}}]


def test_a_streamed_call_without_a_name_is_an_unknown_tool(openai_model: Make, server: Server) -> None:
    server.script(stream(chunk(tool_calls=[{"index": 0, "id": "a", "function": {}}]), chunk("tool_calls")))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert reply.tool_calls == [{"id": "a", "name": "", "arguments": {}}]


def test_a_malformed_document_is_explained(openai_model: Make, server: Server) -> None:
    server.script(Reply({"status": "ok"}))
    with pytest.raises(LLMError, match=r"there is no 'choices'\); is the base URL right\?$"):
        openai_model().complete(request())


def test_a_server_that_ignores_streaming_is_read_anyway(openai_model: Make, server: Server) -> None:
    server.script(text("whole"))
    heard: list[str] = []
    assert openai_model().complete(request(on_delta=heard.append)).text == "whole"
    assert heard == ["whole"]


def test_a_failing_listener_does_not_lose_the_reply(openai_model: Make, server: Server) -> None:
    server.script(stream(chunk(content="a"), chunk("stop", content="b")))
    heard: list[str] = []

    def listener(delta: str) -> None:
        heard.append(delta)
        raise KeyError("screen")

    assert openai_model().complete(request(on_delta=listener)).text == "ab"
    assert heard == ["a"]


def test_an_abort_raised_by_a_listener_passes_through(openai_model: Make, server: Server) -> None:
    def listener(delta: str) -> None:
        raise RunAborted("enough")

    server.script(stream(chunk(content="a"), chunk("stop")))
    with pytest.raises(RunAborted, match="enough"):
        openai_model().complete(request(on_delta=listener))


@pytest.mark.parametrize("done", [True, False])
def test_a_stream_without_its_end_event_is_a_retryable_error(openai_model: Make, server: Server, done: bool) -> None:
    partly = {**chunk(content="hel"), "usage": USAGE}
    server.script(stream(chunk(content="x"), partly, done=done))
    with pytest.raises(LLMError, match="the stream ended before its end event") as caught:
        openai_model().complete(request(on_delta=lambda _: None))
    assert caught.value.retryable
    assert caught.value.usage == {"input_tokens": 11, "output_tokens": 7}


def test_a_connection_that_breaks_after_the_reply_loses_nothing(openai_model: Make, server: Server) -> None:
    server.script(stream(chunk(content="all"), chunk("stop"), {"choices": [], "usage": USAGE}, reset=True, done=False))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert (reply.text, reply.usage) == ("all", {"input_tokens": 11, "output_tokens": 7})


def test_an_error_inside_a_stream_is_judged_by_its_kind(openai_model: Make, server: Server) -> None:
    events = [
        {"error": {"message": "slow down", "type": "rate_limit_error"}},
        {"error": {"message": "no", "code": 400}},
        {"object": "error", "message": "too fast", "code": 429},
    ]
    server.script(*(stream(chunk(content="a"), event) for event in events))
    model = openai_model()
    seen = []
    for _ in events:
        with pytest.raises(LLMError) as caught:
            model.complete(request(on_delta=lambda _: None))
        seen.append((caught.value.status_code, caught.value.retryable))
    assert seen == [(429, True), (400, False), (429, True)]
    assert len(server.requests) == 3


@pytest.mark.parametrize("body", [{"message": "out of memory"}, {"detail": "out of memory"}])
@pytest.mark.parametrize("streamed", [True, False])
def test_an_error_without_its_key_is_shown(
    openai_model: Make, server: Server, body: dict[str, Any], streamed: bool
) -> None:
    server.script(stream(body) if streamed else Reply(body))
    with pytest.raises(LLMError, match="sent an error instead of a reply: out of memory"):
        openai_model().complete(request(on_delta=(lambda _: None) if streamed else None))


@pytest.mark.parametrize(
    "message",
    [
        "Unrecognized request argument supplied: response_format",
        "json_schema is not supported by this backend",
        "This model does not support structured outputs",
    ],
)
def test_an_unsupported_response_format_is_dropped_for_good(
    openai_model: Make, server: Server, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.script(refused(message), text("{}"), text("{}"))
    model = openai_model()
    with caplog.at_level(logging.WARNING, logger="aeon"):
        assert model.complete(request(schema=CLOSED)).text == "{}"
    assert "response_format" in caplog.text
    model.complete(request(schema=OPEN, purpose="judge"))
    assert ["response_format" in body for body in server.bodies] == [True, False, False]


def test_a_refused_schema_is_dropped_only_for_its_purpose(openai_model: Make, server: Server) -> None:
    server.script(refused("Invalid schema for response_format 'aeon_plan'"), text(), text(), text())
    model = openai_model()
    for purpose in ("plan", "judge", "plan"):
        model.complete(request(schema=CLOSED, purpose=purpose))
    assert ["response_format" in body for body in server.bodies] == [True, False, True, False]


def test_a_refused_limit_is_sent_under_its_other_name(openai_model: Make, server: Server) -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    server.script(refused(said, param="max_tokens"), text(), text())
    model = openai_model()
    for _ in range(2):
        model.complete(request(max_tokens=5))
    assert [body.get("max_tokens") for body in server.bodies] == [5, None, None]
    assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 5, 5]


def test_openai_itself_gets_max_completion_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    own, local = OpenAIModel("m"), OpenAIModel("m", base_url="http://localhost:1/v1")
    assert "max_completion_tokens" in own._built(request())[0]
    assert "max_tokens" in local._built(request())[0]


def test_refused_stream_options_and_streaming_are_dropped(openai_model: Make, server: Server) -> None:
    server.script(
        refused("Unknown parameter: stream_options"),
        refused("Your organization must be verified to stream this model.", param="stream"),
        text("whole"),
    )
    heard: list[str] = []
    assert openai_model().complete(request(on_delta=heard.append)).text == "whole"
    sent = [sorted(body.keys() & {"stream", "stream_options"}) for body in server.bodies]
    assert sent == [["stream", "stream_options"], ["stream"], []]
    assert heard == ["whole"]


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens",
        "Invalid schema for function 'calculator': bad type",
        "max_tokens is too large: 4096",
        "",
    ],
)
def test_a_refusal_of_something_else_is_an_error_after_one_request(
    openai_model: Make, server: Server, message: str
) -> None:
    server.script(refused(message))
    with pytest.raises(LLMError) as caught:
        openai_model().complete(request(schema=CLOSED, tools=[TOOL]))
    assert (caught.value.status_code, caught.value.retryable, len(server.requests)) == (400, False, 1)


def test_a_second_refusal_is_an_error(openai_model: Make, server: Server) -> None:
    server.script(refused("unknown: response_format"), refused("unknown: response_format"))
    with pytest.raises(LLMError, match="unknown: response_format") as caught:
        openai_model().complete(request(schema=CLOSED))
    assert (caught.value.retryable, len(server.requests)) == (False, 2)


def test_a_validation_error_in_fastapis_form_is_reported(openai_model: Make, server: Server) -> None:
    detail = [{"loc": ["body", "messages", 0], "msg": "field required", "input": {"response_format": 1}}]
    server.script(Reply({"detail": detail}, status=422))
    with pytest.raises(LLMError, match=r"body.messages.0: field required"):
        openai_model().complete(request(schema=CLOSED))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"choices": []},
        {"choices": None, "usage": USAGE},
        {"choices": [None]},
        {"choices": [{"message": "text"}]},
        {"choices": [{"message": {"content": 5}}]},
        {"choices": [{"message": {"content": [5]}}]},
        {"choices": [{"message": {"tool_calls": [{"function": {"name": 5}}]}}]},
        {"choices": [{"message": {"tool_calls": "calls"}}]},
        [],
        None,
        "text",
    ],
)
def test_a_malformed_reply_is_a_retryable_error(openai_model: Make, server: Server, body: Any) -> None:
    server.script(Reply(body))
    with pytest.raises(LLMError, match="cannot use the reply") as caught:
        openai_model().complete(request())
    assert caught.value.retryable


@pytest.mark.parametrize(
    "event",
    [
        [],
        {"choices": "x"},
        {"choices": [5]},
        {"choices": [{"delta": "x"}]},
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"tool_calls": [5]}}]},
        "{broken",
        "[" * 5000,
    ],
)
def test_a_malformed_stream_event_is_a_retryable_error(openai_model: Make, server: Server, event: Any) -> None:
    server.script(stream(chunk(content="a"), event, chunk("stop")))
    with pytest.raises(LLMError, match="cannot use the reply") as caught:
        openai_model().complete(request(on_delta=lambda _: None))
    assert caught.value.retryable


def test_a_request_without_a_json_form_is_not_sent(openai_model: Make, server: Server) -> None:
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"properties": {"a": deep}}
    with pytest.raises(LLMError, match="cannot be written as JSON") as caught:
        openai_model().complete(request(schema=deep))
    assert (caught.value.retryable, server.requests) == (False, [])


def test_a_long_streamed_argument_is_put_together_in_linear_time(openai_model: Make, server: Server) -> None:
    piece = {"index": 0, "function": {"arguments": "x" * 500}}
    begin = {"index": 0, "id": "a", "function": {"name": "echo", "arguments": '{"t": "'}}
    end = {"index": 0, "function": {"arguments": '"}'}}
    events = [chunk(tool_calls=[begin]), *[chunk(tool_calls=[piece])] * 2000, chunk("tool_calls", tool_calls=[end])]
    server.script(stream(*events))
    reply = openai_model().complete(request(on_delta=lambda _: None))
    assert json.dumps(reply.tool_calls[0]["arguments"]) == json.dumps({"t": "x" * 1_000_000})


def test_a_tool_call_is_forced_unless_a_server_refuses_it(openai_model: Make, server: Server) -> None:
    server.script(text(), refused("tool_choice is not supported by this model"), text(), text(), text())
    model = openai_model()
    asked = request(purpose="tool_call", tools=[{**TOOL, "name": "my.tool"}])
    model.complete(asked)
    assert server.bodies[0]["tool_choice"] == {"type": "function", "function": {"name": "my_tool"}}
    assert "tool_choice" in model.complete(asked).notices[0]
    model.complete(asked)
    model.complete(request(purpose="reason", tools=[TOOL]))
    assert ["tool_choice" in body for body in server.bodies] == [True, True, False, False, False]
    assert all("tools" in body for body in server.bodies)
