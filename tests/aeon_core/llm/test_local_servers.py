"""What local servers refuse of a request, in their own words: each is one notice and a reply, through the real SDK."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMRequest, Message
from tests.aeon_core.llm.conftest import Make
from tests.aeon_core.llm.server import Reply, Server, stream

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
TOOL = {"name": "add", "description": "Adds.", "input_schema": {"type": "object", "properties": {}}}
LM_STUDIO = "'response_format.type' must be 'json_schema' or 'text'"


def request(**fields: Any) -> LLMRequest:
    given = {"purpose": "plan", "system": "Aeon plan", "messages": [{"role": "user", "content": "add"}], **fields}
    return LLMRequest(**given)


def text(content: str = "{}", **fields: Any) -> Reply:
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return Reply({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}, **fields})


def refused(message: Any, status: int = 400, **fields: Any) -> Reply:
    return Reply({"error": {"message": message, "type": "invalid_request_error", **fields}}, status=status)


def formats(server: Server) -> list[Any]:
    return [body.get("response_format", {}).get("type") for body in server.bodies]


GRAMMAR = [
    pytest.param(refused("Failed to initialize samplers: failed to parse grammar", code=400), id="llama.cpp"),
    pytest.param(refused("failed to parse grammar", 500, type="server_error"), id="llama.cpp-500"),
    pytest.param(refused("JSON schema conversion failed: Unsupported schema", 500), id="llama.cpp-convert"),
    pytest.param(
        Reply({"error": {"code": 400, "message": "Failed to initialize samplers: std::exception"}}), id="llama.cpp-200"
    ),
    pytest.param(refused("The provided JSON schema contains features not supported by xgrammar."), id="vllm-xgrammar"),
    pytest.param(
        refused('Failed to compile json_schema: Unimplemented keys: ["patternProperties"]'), id="vllm-guidance"
    ),
    pytest.param(refused("invalid JSON schema in format", 500, type="api_error"), id="ollama"),
]


@pytest.mark.parametrize("reply", GRAMMAR)
def test_an_unsupported_schema_is_dropped_for_its_purpose(openai_model: Make, server: Server, reply: Reply) -> None:
    server.script(reply, text(), text(), text())
    model = openai_model("x")
    first = model.complete(request(schema=SCHEMA))
    told = f"openai:x: {server.url}/v1 does not support response_format for 'plan'; "
    assert first.notices == [told + "replies are requested in the prompt only from now on"]
    assert model.complete(request(schema=SCHEMA)).notices == []
    assert model.complete(request(schema=SCHEMA, purpose="judge")).notices == []
    assert formats(server) == ["json_schema", None, None, "json_schema"]


def test_a_grammar_is_dropped_if_the_server_refuses_it_with_tools(openai_model: Make, server: Server) -> None:
    server.script(refused("Cannot use custom grammar constraints with tools."), text(), text())
    model = openai_model()
    reply = model.complete(request(purpose="tool_call", schema=SCHEMA, tools=[TOOL]))
    model.complete(request(schema=SCHEMA))
    assert len(reply.notices) == 1
    assert formats(server) == ["json_schema", None, "json_schema"]
    assert ["tools" in body for body in server.bodies] == [True, True, False]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(refused("This response_format type is unavailable now"), id="deepseek"),
        pytest.param(
            refused('response_format type must be one of "text" or "json_object", but got: json_schema'), id="llama.cpp"
        ),
        pytest.param(
            Reply(
                {
                    "detail": [
                        {"loc": ["body", "response_format", "type"], "msg": "Input should be 'text' or 'json_object'"}
                    ]
                },
                status=422,
            ),
            id="fastapi",
        ),
        pytest.param(
            refused("Invalid parameter: 'response_format' of type 'json_schema' is not supported; use json_object"),
            id="older-model",
        ),
        pytest.param(refused("This model does not support response format `json_schema`."), id="groq"),
    ],
)
def test_a_server_with_only_json_objects_is_asked_for_them(openai_model: Make, server: Server, reply: Reply) -> None:
    server.script(reply, text(), text())
    model = openai_model("x")
    notices = [model.complete(request(schema=SCHEMA, purpose=purpose)).notices for purpose in ("plan", "judge")]
    told = (
        f"openai:x: {server.url}/v1 does not support a schema in response_format; "
        "JSON objects are requested, with their form in the prompt only from now on"
    )
    assert notices == [[told], []]
    assert formats(server) == ["json_schema", "json_object", "json_object"]
    assert server.bodies[1]["response_format"] == {"type": "json_object", "schema": SCHEMA}


LISTS = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "string"}}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def schemas(server: Server) -> list[Any]:
    return [body["response_format"]["json_schema"] for body in server.bodies]


def test_a_list_is_sent_with_the_most_items_that_are_read_of_it(openai_model: Make, server: Server) -> None:
    server.script(text())
    asked = request(schema=LISTS, most={"a": 8})
    openai_model().complete(asked)
    (sent,) = schemas(server)
    assert sent["schema"]["properties"]["a"] == {"type": "array", "items": {"type": "string"}, "maxItems": 8}
    assert sent["strict"] is True
    # The recorded schema is the same as ever.
    assert "maxItems" not in str(asked.schema)


def test_a_server_that_refuses_max_items_still_gets_the_schema(openai_model: Make, server: Server) -> None:
    words = (
        "Invalid schema for response_format 'aeon_plan': In context=('properties', 'a'), 'maxItems' is not permitted."
    )
    server.script(refused(words), text(), text())
    model = openai_model("x")
    replies = [model.complete(request(schema=LISTS, most={"a": 8})) for _ in range(2)]
    told = (
        f"openai:x: {server.url}/v1 does not support maxItems in a schema for 'plan'; lists have no limit from now on"
    )
    assert [reply.notices for reply in replies] == [[told], []]
    assert [sent["schema"] for sent in schemas(server)[1:]] == [LISTS, LISTS]


@pytest.mark.parametrize(
    ("message", "option", "left"),
    [
        ("No endpoints found that support tool use. To learn more", "tools", set()),
        ("No endpoints found that support the provided 'tool_choice' value.", "tool_choice", {"tools"}),
    ],
)
def test_an_option_that_no_provider_of_openrouter_supports_is_dropped(
    openai_model: Make, server: Server, message: str, option: str, left: set[str]
) -> None:
    server.script(refused(message, 404, code=404), text())
    reply = openai_model().complete(request(purpose="tool_call", tools=[TOOL]))
    assert f"does not support {option};" in reply.notices[0]
    assert server.bodies[1].keys() & {"tools", "tool_choice"} == left


def test_two_refusals_of_one_option_are_one_notice(openai_model: Make, server: Server) -> None:
    server.script(refused("json_schema: use json_object"), Reply({"error": LM_STUDIO}, status=400), text(), text())
    model = openai_model()
    notices = [model.complete(request(schema=SCHEMA)).notices for _ in range(2)]
    assert [len(told) for told in notices] == [1, 0]
    assert "does not support response_format; replies are requested in the prompt only" in notices[0][0]
    assert formats(server) == ["json_schema", "json_object", None, None]


@pytest.mark.parametrize(
    "message",
    [
        "response_format is not supported by this model",
        "guided decoding is not enabled",
        "JSON mode is not enabled for models/gemma-3-27b-it",
    ],
)
def test_a_server_without_structured_output_is_asked_in_the_prompt(
    openai_model: Make, server: Server, message: str
) -> None:
    server.script(refused(message), text(), text())
    model = openai_model()
    notices = [model.complete(request(schema=SCHEMA, purpose=purpose)).notices for purpose in ("plan", "judge")]
    assert [len(told) for told in notices] == [1, 0]
    assert formats(server) == ["json_schema", None, None]


@pytest.mark.parametrize(
    ("message", "option", "instead"),
    [
        ("Unknown parameter: 'stream_options'", "stream_options", "may lack token counts"),
        ("streaming is off ('stream')", "stream", "replies are not streamed"),
        ("Unsupported parameter: 'max_tokens', use 'max_completion_tokens'", "max_tokens", "max_completion_tokens is"),
    ],
)
def test_any_other_refused_option_is_one_notice(
    openai_model: Make, server: Server, message: str, option: str, instead: str
) -> None:
    streamed = stream({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]})
    whole = text("ok") if option == "stream" else streamed
    server.script(refused(message), whole, whole)
    model = openai_model()
    replies = [model.complete(request(on_delta=lambda _: None)) for _ in range(2)]
    assert [reply.text for reply in replies] == ["ok", "ok"]
    assert (len(replies[0].notices), replies[1].notices) == (1, [])
    assert f"does not support {option}; " in replies[0].notices[0]
    assert instead in replies[0].notices[0]
    assert [option in body for body in server.bodies] == [True, False, False]


@pytest.mark.parametrize(
    "message",
    [
        "registry.ollama.ai/library/gemma:2b does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "Function calling is not enabled for models/gemma-3-27b-it",
    ],
    ids=["ollama", "vllm", "gemini"],
)
def test_a_model_without_tool_use_gets_the_tools_in_the_prompt_and_calls_them_by_json(
    openai_model: Make, server: Server, message: str
) -> None:
    call = text('```json\n{"tool_name": "add", "arguments": {"a": 1}}\n```')
    server.script(refused(message), call, text("done"))
    model = openai_model()
    first = model.complete(request(tools=[TOOL]))
    turns = [
        {"role": "assistant", "content": "", "tool_calls": first.tool_calls},
        {"role": "tool", "content": "3"},
        {"role": "tool", "content": "stray"},
    ]
    second = model.complete(request(tools=[TOOL], messages=[{"role": "user", "content": "add"}, *turns]))
    assert first.tool_calls == [{"name": "add", "arguments": {"a": 1}}]
    assert (first.text, first.stop_reason, len(first.notices)) == ("", "tool_use", 1)
    assert (second.text, second.tool_calls, second.notices) == ("done", [], [])
    assert ["tools" in body for body in server.bodies] == [True, False, False]
    assert '"input_schema": {"type": "object"' in server.bodies[1]["messages"][0]["content"]
    assert server.bodies[2]["messages"][1:] == [
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": '{"tool_name": "add", "arguments": {"a": 1}}'},
        {"role": "user", "content": "Result of add:\n3\n\nstray"},
    ]


@pytest.mark.parametrize(
    "message",
    ["System role not supported", "Developer instruction is not enabled for models/gemma-3-27b-it"],
    ids=["vllm", "gemini"],
)
def test_a_model_without_a_system_role_gets_the_system_prompt_from_the_user(
    openai_model: Make, server: Server, message: str
) -> None:
    server.script(refused(message), text(), text())
    model = openai_model()
    replies = [model.complete(request()) for _ in range(2)]
    assert [len(reply.notices) for reply in replies] == [1, 0]
    assert "does not support a system message; it is sent as the user's from now on" in replies[0].notices[0]
    assert [body["messages"] for body in server.bodies[1:]] == [[{"role": "user", "content": "Aeon plan\n\nadd"}]] * 2


@pytest.mark.parametrize(
    "message",
    [
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "This model only support stream mode, please enable the stream parameter to access the model.",
    ],
)
def test_a_model_that_only_streams_is_asked_for_streams(openai_model: Make, server: Server, message: str) -> None:
    streamed = stream({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]})
    server.script(refused(message), streamed, streamed)
    model = openai_model()
    replies = [model.complete(request()) for _ in range(2)]
    assert [(reply.text, len(reply.notices)) for reply in replies] == [("ok", 1), ("ok", 0)]
    assert [body.get("stream_options") for body in server.bodies] == [None, *[{"include_usage": True}] * 2]
    assert "does not support a reply that is not streamed; replies are streamed from now on" in replies[0].notices[0]


def test_a_server_that_requires_a_reply_after_tool_results_gets_one_before_the_user(
    openai_model: Make, server: Server
) -> None:
    turns: list[Message] = [
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "add", "arguments": {}}] * 2},
        {"role": "tool", "content": "3"},
        {"role": "tool", "content": "4"},
        {"role": "user", "content": "again"},
    ]
    server.script(refused("Unexpected role 'user' after role 'tool'", code="3230"), text(), text())
    model = openai_model()
    replies = [model.complete(request(tools=[TOOL], messages=turns)) for _ in range(2)]
    roles = [[message["role"] for message in body["messages"][3:]] for body in server.bodies]
    assert roles == [["tool", "tool", "user"], *[["tool", "tool", "assistant", "user"]] * 2]
    assert [len(reply.notices) for reply in replies] == [1, 0]
    assert "after a tool's result; a reply is put between them from now on" in replies[0].notices[0]


def test_a_call_by_json_is_read_after_the_models_thinking(openai_model: Make, server: Server) -> None:
    server.script(refused("x does not support tools"), text('<think>\nAdd {a}.\n</think>\n\n{"tool_name": "add"}'))
    reply = openai_model().complete(request(tools=[TOOL]))
    assert (reply.text, reply.tool_calls) == ("", [{"name": "add", "arguments": {}}])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("5 and 10,\nso 15.\n</think>\n\nIt is 15.", "It is 15."),
        ("</think>\nIt is 15.", "It is 15."),
        ("5 and 10.\n</think>\n\n", ""),
        ("<think>\n5 and 10.\n</think>\n\nIt is 15.", "<think>\n5 and 10.\n</think>\n\nIt is 15."),
        ("It is </think>, as in:\n </think>", "It is </think>, as in:\n </think>"),
    ],
)
def test_thinking_that_the_prompt_began_is_not_part_of_the_reply(
    openai_model: Make, server: Server, streamed: bool, said: str, kept: str
) -> None:
    events = [{"choices": [{"delta": {"content": part}}]} for part in (said[:12], said[12:])]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    server.script(stream(*events, end) if streamed else text(said))
    assert openai_model().complete(request(on_delta=(lambda _: None) if streamed else None)).text == kept


def test_a_server_that_ignores_the_schema_gets_no_second_request(openai_model: Make, server: Server) -> None:
    server.script(text("Sure, here it is."))
    reply = openai_model().complete(request(schema=SCHEMA))
    assert (reply.text, reply.notices, len(server.requests)) == ("Sure, here it is.", [], 1)


def test_the_tokens_of_a_refused_request_are_counted(openai_model: Make, server: Server) -> None:
    paid = {"error": {"message": "response_format"}, "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    server.script(Reply(paid, status=400), text(), Reply(paid, status=429))
    model = openai_model()
    assert model.complete(request(schema=SCHEMA)).usage == {"input_tokens": 8, "output_tokens": 3}
    with pytest.raises(LLMError) as caught:
        model.complete(request())
    assert caught.value.usage == {"input_tokens": 5, "output_tokens": 1}


def test_a_notice_waits_for_the_next_reply_if_the_retry_fails(openai_model: Make, server: Server) -> None:
    server.script(refused("unknown: response_format"), Reply({}, status=500), text(), text())
    model = openai_model()
    with pytest.raises(LLMError):
        model.complete(request(schema=SCHEMA))
    assert [len(model.complete(request(schema=SCHEMA)).notices) for _ in range(2)] == [1, 0]


def test_an_unrelated_server_error_is_not_a_refusal(openai_model: Make, server: Server) -> None:
    server.script(Reply({"error": {"message": "stream_options crashed: unknown"}}, status=500))
    with pytest.raises(LLMError) as caught:
        openai_model().complete(request(on_delta=lambda _: None))
    assert (caught.value.status_code, caught.value.retryable, len(server.requests)) == (500, True, 1)


def test_a_request_that_is_too_long_drops_no_option(openai_model: Make, server: Server) -> None:
    server.script(refused("maximum context length is 10 tokens, the json_schema of response_format alone takes 30"))
    with pytest.raises(LLMError) as caught:
        openai_model().complete(request(schema=SCHEMA))
    assert (caught.value.context["context_too_long"], len(server.requests)) == (True, 1)
