"""Converse's requests and replies, without a client: conversations, tools, schemas, usage."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.llm.bedrock import ConverseReader, converse_params, declared_tools, output_config
from aeon_core.llm.connect import PLACEHOLDER_KEY, Endpoint
from aeon_core.llm.wire import ToolNames

PLACE = Endpoint("bedrock", "m", "https://bedrock.example", None, "AWS_PROFILE", PLACEHOLDER_KEY)
NAMES = ToolNames([])
TOOL = {"name": "file.read", "description": "Reads.", "input_schema": {"properties": {"path": {}}}, "effect": "pure"}


def request(**fields: Any) -> LLMRequest:
    given_fields = {"purpose": "judge", "system": "", "messages": [{"role": "user", "content": "hi"}], **fields}
    return LLMRequest(**given_fields)


def params(**fields: Any) -> dict[str, Any]:
    asked = request(**fields)
    return converse_params("m", asked, ToolNames(declared_tools(asked)))


def read_reply(document: Any, names: ToolNames = NAMES) -> LLMResponse:
    return ConverseReader(PLACE, request(), names).document(document)


def reply(*blocks: Any, **fields: Any) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": list(blocks)}}, **fields}


def unusable(value: dict[str, Any]) -> LLMError:
    with pytest.raises(LLMError) as caught:
        read_reply(value)
    assert caught.value.retryable
    return caught.value


def test_tool_results_are_user_turns_and_equal_roles_are_merged() -> None:
    sent = params(
        tools=[TOOL],
        messages=[
            {"role": "user", "content": "read"},
            {"role": "user", "content": "a"},
            {
                "role": "assistant",
                "content": " ",
                "tool_calls": [
                    {"id": "c.1", "name": "file.read", "arguments": {"path": "a"}},
                    {"name": "file.read", "arguments": "{broken"},
                ],
            },
            {"role": "tool", "content": "text", "tool_call_id": "c.1"},
            {"role": "tool", "content": "", "is_error": True},
            {"role": "user", "content": "and?"},
            {"role": "assistant", "content": ""},
        ],
    )
    assert sent["messages"] == [
        {"role": "user", "content": [{"text": "read"}, {"text": "a"}]},
        {
            "role": "assistant",
            "content": [
                {"toolUse": {"toolUseId": "c_1", "name": "file_read", "input": {"path": "a"}}},
                {"toolUse": {"toolUseId": "call_2", "name": "file_read", "input": {"text": "{broken"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "c_1", "content": [{"text": "text"}]}},
                {"toolResult": {"toolUseId": "call_2", "content": [{"text": "(no output)"}], "status": "error"}},
                {"text": "and?"},
            ],
        },
    ]


@pytest.mark.parametrize(("model", "status"), [("us.anthropic.claude-sonnet-4-v1:0", "success"), ("meta.llama", None)])
def test_a_result_has_a_status_where_every_model_takes_one(model: str, status: str | None) -> None:
    call = {"id": "c1", "name": "look", "arguments": {}}
    asked = request(
        messages=[
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "x", "tool_call_id": "c1"},
        ]
    )
    sent = converse_params(model, asked, ToolNames(declared_tools(asked)))
    assert sent["messages"][-1]["content"][0]["toolResult"].get("status") == status


def test_tools_are_sent_as_specifications_of_objects() -> None:
    sent = params(tools=[TOOL, {"name": "plain", "description": " "}])["toolConfig"]["tools"]
    schemas = [{"json": {"properties": {"path": {}}, "type": "object"}}, {"json": {"properties": {}, "type": "object"}}]
    assert sent == [
        {"toolSpec": {"name": "file_read", "description": "Reads.", "inputSchema": schemas[0]}},
        {"toolSpec": {"name": "plain", "inputSchema": schemas[1]}},
    ]


def test_a_conversation_with_tool_uses_declares_missing_tools() -> None:
    calls: Any = [{"id": "1", "name": "a.b", "arguments": {}}, {"id": "2", "name": "a.b", "arguments": {}}]
    sent = params(messages=[{"role": "assistant", "content": "", "tool_calls": calls}])
    assert [tool["toolSpec"]["name"] for tool in sent["toolConfig"]["tools"]] == ["a_b"]
    assert sent["messages"][0]["content"][0]["toolUse"]["name"] == "a_b"


def test_absent_tools_and_system_are_not_sent() -> None:
    assert params(system=" ", max_tokens=9) == {
        "modelId": "m",
        "messages": [{"role": "user", "content": [{"text": "hi"}]}],
        "inferenceConfig": {"maxTokens": 9},
    }


def test_a_schema_is_sent_as_text_closed_and_with_its_bounds_in_words() -> None:
    schema = {
        "type": "object",
        "properties": {
            "score": {"type": "number", "minimum": 0, "maximum": 1, "description": "How good."},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 2},
            "place": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/Place"}]},
        },
        "required": ["score", "tags", "place"],
        "$defs": {"Place": {"type": "object", "properties": {"at": {"type": "string", "pattern": "^x"}}}},
    }
    config = output_config(request(schema=schema))
    assert config is not None
    definition = config["textFormat"]["structure"]["jsonSchema"]
    assert (config["textFormat"]["type"], definition["name"]) == ("json_schema", "aeon_judge")
    assert json.loads(definition["schema"]) == {
        "type": "object",
        "properties": {
            "score": {"type": "number", "description": 'How good. {"minimum": 0, "maximum": 1}'},
            "tags": {
                "type": "array",
                "items": {"type": "string", "description": '{"maxLength": 5}'},
                "description": '{"minItems": 2}',
            },
            "place": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Place"}]},
        },
        "required": ["score", "tags", "place"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "type": "object",
                "properties": {"at": {"type": "string", "description": '{"pattern": "^x"}'}},
                "additionalProperties": False,
            }
        },
    }


def test_a_property_named_like_a_bound_is_kept() -> None:
    schema = {"type": "object", "properties": {"minimum": {"type": "integer"}}, "required": ["minimum"]}
    config = output_config(request(schema=schema))
    assert config is not None
    sent = json.loads(config["textFormat"]["structure"]["jsonSchema"]["schema"])
    assert sent["properties"] == {"minimum": {"type": "integer"}}


@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {"a": {"type": "object"}}}])
def test_a_schema_that_cannot_be_closed_is_left_to_the_prompt(schema: Any) -> None:
    assert output_config(request(schema=schema)) is None


@pytest.mark.parametrize(
    ("given_usage", "expected"),
    [
        ({"inputTokens": 3, "outputTokens": 4}, {"input_tokens": 3, "output_tokens": 4}),
        (
            {"inputTokens": 3, "outputTokens": 4, "cacheReadInputTokens": 10, "cacheWriteInputTokens": 20},
            {"input_tokens": 33, "output_tokens": 4, "cache_read_tokens": 10, "cache_write_tokens": 20},
        ),
        (
            {"inputTokens": 3, "outputTokens": 4, "cacheReadInputTokens": 0},
            {"input_tokens": 3, "output_tokens": 4},
        ),
        ({"inputTokens": -1}, None),
        (None, None),
    ],
)
def test_cache_tokens_count_as_input_and_are_reported(given_usage: Any, expected: Any) -> None:
    assert read_reply(reply({"text": "x"}, usage=given_usage)).usage == expected


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("tool_use", "tool_use"),
        ("guardrail_intervened", "refusal"),
        ("content_filtered", "refusal"),
        ("malformed_model_output", "malformed_model_output"),
        ("malformed_tool_use", "malformed_tool_use"),
        ("something_new", "something_new"),
        (None, None),
        (5, None),
    ],
)
def test_a_stop_reason_is_mapped_or_passed_through(stop: Any, expected: str | None) -> None:
    assert read_reply(reply({"text": "x"}, stopReason=stop)).stop_reason == expected


def test_texts_are_joined_tool_uses_read_and_the_rest_ignored() -> None:
    names = ToolNames([TOOL])
    read = read_reply(
        reply(
            {"reasoningContent": {"reasoningText": {"text": "hm"}}},
            {"text": "a"},
            {"SDK_UNKNOWN_MEMBER": {"name": "new"}},
            {"text": "b"},
            {"toolUse": {"toolUseId": "t1", "name": "file_read", "input": {"path": "x"}}},
            {"toolUse": {"toolUseId": "t2", "name": "made_up", "input": "{cut"}},
            {"toolUse": {"name": "file_read", "input": ["é"]}},
            {"toolUse": {"name": "file_read"}},
        ),
        names,
    )
    assert read.text == "ab"
    assert read.tool_calls == [
        {"id": "t1", "name": "file.read", "arguments": {"path": "x"}},
        {"id": "t2", "name": "made_up", "arguments": "{cut"},
        {"name": "file.read", "arguments": '["é"]'},
        {"name": "file.read", "arguments": {}},
    ]


def test_null_is_accepted_for_other_block_kinds() -> None:
    read = read_reply(
        reply(
            {"text": "a", "toolUse": None},
            {"text": None, "toolUse": {"toolUseId": "t1", "name": "add", "input": {}}},
        )
    )
    assert (read.text, [call["name"] for call in read.tool_calls]) == ("a", ["add"])


def test_an_empty_reply_is_valid() -> None:
    assert read_reply(reply(stopReason="end_turn")).text == ""


def read_or_fail(document: dict[str, Any]) -> LLMResponse | LLMError:
    try:
        return read_reply(document)
    except LLMError as error:
        return error


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"output": "text"},
        {"output": {"message": {"content": "text"}}},
        reply("text"),
        reply({"text": 5}),
        reply({"toolUse": {"name": 5, "input": {}}}),
        reply({"toolUse": "text"}),
    ],
)
def test_a_malformed_reply_is_an_error_that_keeps_its_usage(value: dict[str, Any]) -> None:
    error = unusable({**value, "usage": {"inputTokens": 3, "outputTokens": 4}})
    assert error.usage == {"input_tokens": 3, "output_tokens": 4}


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["output", "message", "content", "text", "toolUse", "name", "usage", "stopReason", "inputTokens"]
                ),
                inner,
            )
        ),
        max_leaves=12,
    )
)
def test_any_document_is_parsed_or_one_retryable_error(value: Any) -> None:
    for document in (value, {"output": value, "usage": value}, reply(value, {"text": value}, stopReason=value)):
        if not isinstance(document, dict):
            continue
        read = read_or_fail(document)
        assert isinstance(read, LLMResponse) or read.retryable
