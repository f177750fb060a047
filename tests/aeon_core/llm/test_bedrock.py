"""BedrockModel through the real SDK: what is sent, what is read, what is given up, cutting a call."""

from __future__ import annotations

import json
import queue
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import LLMError, RunAborted
from aeon_core.llm.base import LLMResponse, Message
from tests.aeon_core.llm.converse_server import (
    ACCESS_KEY,
    SESSION_TOKEN,
    Make,
    answered,
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
from tests.aeon_core.llm.server import Reply, Server
from tests.waiting import PATIENCE

CLOSED = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
TOOL = {"name": "file.read", "description": "Reads.", "input_schema": {"properties": {"path": {}}}}
READ_USAGE = {"input_tokens": 11, "output_tokens": 7}


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_credentials(monkeypatch, tmp_path)
    set_credentials(monkeypatch)


@pytest.fixture
def make(server: Server) -> Iterator[Make]:
    yield from bedrock_models(server)


def test_a_call_is_one_signed_request_that_carries_system_messages_and_limit(make: Make, server: Server) -> None:
    server.script(said(model="x"))
    reply = make().complete(ask(max_tokens=99))
    assert server.bodies == [
        {
            "system": [{"text": "Aeon judge"}],
            "messages": [{"role": "user", "content": [{"text": "hi"}]}],
            "inferenceConfig": {"maxTokens": 99},
        }
    ]
    sent = server.requests[0]
    assert sent.path == "/model/us.anthropic.claude-x-v1%3A0/converse"
    assert f"Credential={ACCESS_KEY}/" in sent.headers["authorization"]
    assert re.search(r"/eu-west-1/bedrock/aws4_request.*Signature=[0-9a-f]{64}", sent.headers["authorization"])
    assert sent.headers["x-amz-security-token"] == SESSION_TOKEN
    assert reply == LLMResponse(text="hello", usage=READ_USAGE, stop_reason="end")  # type: ignore[arg-type]


def test_a_model_is_labelled_by_its_name_and_may_be_an_arn(make: Make, server: Server) -> None:
    arn = "arn:aws:bedrock:eu-west-1:1:inference-profile/p.q"
    server.script(said())
    model = make(arn)
    assert model.model == f"bedrock:{arn}"
    model.complete(ask())
    assert server.requests[0].path == "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fp.q/converse"


def test_a_tool_use_comes_back_under_the_tools_own_name() -> None:
    use = {"toolUse": {"toolUseId": "t1", "name": "file_read", "input": {"path": "a"}}}
    reply, requests = answered(converse({"text": "so"}, use, stop="tool_use"), request=ask(tools=[TOOL]))
    assert isinstance(reply, LLMResponse)
    assert (reply.text, reply.stop_reason) == ("so", "tool_use")
    assert reply.tool_calls == [{"id": "t1", "name": "file.read", "arguments": {"path": "a"}}]
    assert json.loads(requests[0].body)["toolConfig"]["tools"][0]["toolSpec"]["name"] == "file_read"


def test_a_streamed_reply_equals_an_unstreamed_one(make: Make, server: Server) -> None:
    heard: list[str] = []
    server.script(stream(*text_frames("he", "llo"), stop_frame(), usage_frame()))
    reply = make().complete(ask(on_delta=heard.append))
    assert heard == ["he", "llo"]
    assert server.requests[0].path.endswith("/converse-stream")
    assert reply == LLMResponse(text="hello", usage=READ_USAGE, stop_reason="end")  # type: ignore[arg-type]


def test_a_tool_use_streams_under_the_tools_own_name(make: Make, server: Server) -> None:
    def frames(event: str, **part: Any) -> bytes:
        return frame(event, {"contentBlockIndex": 1, **part})

    server.script(
        stream(
            *text_frames("so"),
            frames("contentBlockStart", start={"toolUse": {"toolUseId": "t1", "name": "file_read"}}),
            frames("contentBlockDelta", delta={"toolUse": {"input": '{"path":'}}),
            frames("contentBlockDelta", delta={"toolUse": {"input": ""}}),
            frames("contentBlockDelta", delta={"toolUse": {"input": ' "a"}'}}),
            stop_frame("tool_use"),
            usage_frame(),
        )
    )
    called: list[tuple[str, str]] = []
    told = {"on_delta": lambda _: None, "on_call": lambda *part: called.append(part)}
    reply = make().complete(ask(tools=[TOOL], **told))
    assert called == [("file.read", ""), ("file.read", '{"path":'), ("file.read", ' "a"}')]
    assert reply.tool_calls == [{"id": "t1", "name": "file.read", "arguments": {"path": "a"}}]


def test_a_listener_for_calls_that_fails_is_dropped(make: Make, server: Server) -> None:
    use = {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t1", "name": "file_read"}}}
    server.script(stream(frame("contentBlockStart", use), stop_frame("tool_use"), usage_frame()))

    def fail(*_: str) -> None:
        raise ValueError("the screen is gone")

    reply = make().complete(ask(tools=[TOOL], on_delta=lambda _: None, on_call=fail))
    assert [call["name"] for call in reply.tool_calls] == ["file.read"]


def test_a_schema_is_sent_if_supported(make: Make, server: Server) -> None:
    server.script(said("{}"), said("{}"))
    model = make()
    model.complete(ask(schema=CLOSED))
    model.complete(ask(schema={**CLOSED, "properties": {"score": {"type": "object"}}}))
    definition = server.bodies[0]["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert definition["name"] == "aeon_judge"
    assert json.loads(definition["schema"]) == {**CLOSED, "additionalProperties": False}
    assert "outputConfig" not in server.bodies[1]


@pytest.mark.parametrize("streamed", [False, True])
def test_refused_structured_output_is_dropped_with_one_notice(make: Make, server: Server, streamed: bool) -> None:
    whole = stream(*text_frames("{}"), stop_frame(), usage_frame()) if streamed else said("{}")
    told = "The model returned the following errors: output_config.format: Extra inputs are not permitted"
    server.script(refused("ValidationException", told), whole, whole)
    model = make()
    first = model.complete(ask(streamed, schema=CLOSED))
    second = model.complete(ask(streamed, schema=CLOSED, purpose="plan"))
    assert ["outputConfig" in body for body in server.bodies] == [True, False, False]
    assert (first.text, len(first.notices), second.notices) == ("{}", 1, [])
    assert "does not support outputConfig; replies are requested in the prompt only" in first.notices[0]


@pytest.mark.parametrize("told", ["outputConfig: invalid schema", "Grammar compilation timed out."])
def test_a_refused_schema_is_dropped_only_for_its_purpose(make: Make, server: Server, told: str) -> None:
    server.script(refused("ValidationException", told), said(), said(), said())
    model = make()
    for purpose in ("judge", "plan", "judge"):
        model.complete(ask(schema=CLOSED, purpose=purpose))
    assert ["outputConfig" in body for body in server.bodies] == [True, False, True, False]


def test_a_model_that_requires_a_reply_after_tool_results_gets_one(make: Make, server: Server) -> None:
    turns: list[Message] = [
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "file.read", "arguments": {}}]},
        {"role": "tool", "content": "3", "tool_call_id": "a"},
        {"role": "user", "content": "again"},
    ]
    told = "Conversation blocks and tool result blocks cannot be provided in the same turn."
    server.script(refused("ValidationException", told), said(), said())
    model = make()
    replies = [model.complete(ask(tools=[TOOL], messages=turns)) for _ in range(2)]
    assert [len(reply.notices) for reply in replies] == [1, 0]
    for body, number in zip(server.bodies, (1, 3, 3), strict=True):
        kinds = [[next(iter(block)) for block in turn["content"]] for turn in body["messages"][2:]]
        assert kinds == ([["toolResult", "text"]] if number == 1 else [["toolResult"], ["text"], ["text"]])


def test_a_model_that_does_not_stream_tool_use_is_asked_for_whole_replies(make: Make, server: Server) -> None:
    told = "This model doesn't support tool use in streaming mode."
    streamed = stream(*text_frames("hello"), stop_frame(), usage_frame())
    server.script(refused("ValidationException", told), said("one"), said("two"), streamed)
    model = make()
    replies = [model.complete(ask(True, tools=tools)) for tools in ([TOOL], [TOOL], [])]
    assert [(reply.text, len(reply.notices)) for reply in replies] == [("one", 1), ("two", 0), ("hello", 0)]
    kinds = [request.path.rpartition("/")[2] for request in server.requests]
    assert kinds == ["converse-stream", "converse", "converse", "converse-stream"]
    assert "a stream with tools; replies to requests with tools are not streamed" in replies[0].notices[0]


@pytest.mark.parametrize("told", ["toolConfig.tools.0.inputSchema: JSON schema is invalid", "messages: too few"])
def test_a_refusal_of_something_else_is_an_error_after_one_request(make: Make, server: Server, told: str) -> None:
    server.script(refused("ValidationException", told))
    with pytest.raises(LLMError, match=told.split(":")[0]) as caught:
        make().complete(ask(schema=CLOSED, tools=[TOOL]))
    assert (caught.value.retryable, len(server.requests)) == (False, 1)


@pytest.mark.parametrize(
    "reply", [Reply(hang=True), stream(*text_frames("he"), hang_after=True)], ids=["silent", "half"]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_closing_cuts_a_call_and_the_next_connects_again(
    make: Make, server: Server, reply: Reply, streamed: bool
) -> None:
    server.script(reply, said("again"))
    model = make(timeout=3_600.0)
    errors: queue.Queue[BaseException] = queue.Queue()

    def call() -> None:
        try:
            model.complete(ask(streamed))
        except BaseException as error:
            errors.put(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert server.arrived.acquire(timeout=PATIENCE)
    model.close()
    error = errors.get(timeout=PATIENCE)
    thread.join()
    assert isinstance(error, LLMError)
    assert not error.retryable
    assert "the adapter was closed" in error.message
    assert model.complete(ask()).text == "again"


def test_after_a_failure_the_next_call_works(make: Make, server: Server) -> None:
    server.script(Reply('{"output"', reset=True), refused("InternalServerException", status=500), said("ok"))
    model = make()
    for _ in range(2):
        with pytest.raises(LLMError):
            model.complete(ask())
    assert model.complete(ask()).text == "ok"
    assert len(server.requests) == 3


def test_a_listeners_own_error_ends_the_call_unchanged(make: Make, server: Server) -> None:
    def stop(_: str) -> None:
        raise RunAborted("enough")

    server.script(stream(*text_frames("he"), stop_frame(), usage_frame()))
    with pytest.raises(RunAborted, match="enough"):
        make().complete(ask(on_delta=stop))


def test_a_tool_call_is_forced_unless_the_service_refuses_it(make: Make, server: Server) -> None:
    server.script(
        said(), refused("ValidationException", "This model does not support toolConfig.toolChoice.tool"), said(), said()
    )
    model = make()
    asked = ask(purpose="tool_call", tools=[TOOL])
    for _ in range(3):
        model.complete(asked)
    configs = [request.body["toolConfig"] for request in server.requests]
    assert configs[0]["toolChoice"] == {"tool": {"name": "file_read"}}
    assert ["toolChoice" in config for config in configs] == [True, True, False, False]


CLAUDE = "us.anthropic.claude-sonnet-4-20250514-v1:0"


def test_a_shared_prompt_prefix_is_cached_if_supported(make: Make, server: Server) -> None:
    server.script(*[said()] * 4)
    turns = [{"role": role, "content": role} for role in ("user", "assistant", "user", "assistant", "user")]
    make(CLAUDE).complete(ask(cache_prefix=True, system="be brief", messages=turns))
    body = server.bodies[0]
    points = [["cachePoint" in block for block in turn["content"]] for turn in body["messages"]]
    assert points == [[False], [False], [False, True], [False], [False, True]]
    assert body["system"][-1] == {"cachePoint": {"type": "default"}}
    make(CLAUDE).complete(ask())
    make("amazon.titan-text").complete(ask(cache_prefix=True))
    assert not any("cachePoint" in json.dumps(body) for body in server.bodies[1:])


@pytest.mark.parametrize(
    ("code", "told", "status"),
    [
        ("ValidationException", "messages.0.content.1.cachePoint: Extra inputs are not permitted", 400),
        ("AccessDeniedException", "the model is unsupported, or your request did not allow prompt caching", 403),
    ],
)
def test_a_refused_cache_is_dropped_with_one_notice(
    make: Make, server: Server, code: str, told: str, status: int
) -> None:
    server.script(refused(code, told, status), said(), said())
    model = make(CLAUDE)
    first, second = (model.complete(ask(cache_prefix=True)) for _ in range(2))
    assert ["cachePoint" in json.dumps(body) for body in server.bodies] == [True, False, False]
    assert (len(first.notices), second.notices) == (1, [])
    assert "does not support cachePoint; prompts are not cached from now on" in first.notices[0]
