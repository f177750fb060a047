"""What is made of the tools that an MCP server lists, and of its answers, without a server (REQ-023)."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from aeon_core.errors import UsageError
from aeon_core.json_safe import json_safe
from aeon_core.tools.base import Tool
from aeon_core.tools.mcp.settings import McpServer
from aeon_core.tools.mcp.stdio_transport import ErrorOutput
from aeon_core.tools.mcp.tool import (
    MAX_NAME,
    MAX_TEXT,
    ServerReply,
    TooLarge,
    Words,
    result_of,
    text_of,
    tool_names,
    tools_from,
)

OBJECT = {"type": "object"}


def listed(name: str = "do", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "Does it.", "inputSchema": OBJECT, **more}


def made(*tools: dict[str, Any], **settings: Any) -> list[Tool]:
    server = McpServer(command="true", **settings)
    return tools_from("srv", server, tools, lambda tool, arguments: {"called": tool.name, "with": arguments})


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def result(*blocks: dict[str, Any], structured: Any = None, declared: bool = False) -> Any:
    return result_of(ServerReply(list(blocks), structured, False), declared=declared)


@given(st.sets(st.text(min_size=1), max_size=8))
def test_names_are_distinct_fit_providers_and_do_not_depend_on_the_order(names: set[str]) -> None:
    found = tool_names("srv", sorted(names))
    assert len(set(found.values())) == len(names)
    assert all(re.fullmatch(r"mcp__srv__[A-Za-z0-9_-]*", name) and len(name) <= MAX_NAME for name in found.values())
    assert found == tool_names("srv", sorted(names, reverse=True))


def test_a_name_that_needs_no_change_keeps_it_next_to_one_that_does() -> None:
    found = tool_names("srv", ["a b", "a_b", "a.b"])
    assert found["a_b"] == "mcp__srv__a_b"
    assert re.fullmatch(r"mcp__srv__a_b_[0-9a-f]{8}", found["a b"])
    assert found["a b"] != found["a.b"]


def test_a_tool_that_runs_only_as_a_task_is_left_out_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="aeon"):
        found = made(
            listed("long", execution={"taskSupport": "required"}),
            listed("either", execution={"taskSupport": "optional"}),
            listed("never", execution={"taskSupport": "forbidden"}),
            listed("odd", execution="required"),
            listed("plain"),
        )
    assert [tool.name for tool in found] == [f"mcp__srv__{name}" for name in ("either", "never", "odd", "plain")]
    assert caplog.messages == ["MCP server 'srv': left out 'long', which runs only as a task (taskSupport: required)"]


def test_arguments_of_any_name_reach_the_server() -> None:
    [tool] = made(listed())
    given_arguments = {"self": 1, "tool": 2, "arguments": 3, "name": 4}
    assert tool.invoke(**given_arguments) == {"called": "mcp__srv__do", "with": given_arguments}


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        ({"readOnlyHint": True}, "pure"),
        ({"idempotentHint": True}, "idempotent"),
        ({"readOnlyHint": False, "idempotentHint": False}, "unsafe"),
        ({"readOnlyHint": "yes"}, "unsafe"),
        (None, "unsafe"),
    ],
)
def test_hints_count_only_for_a_trusted_server(hints: Any, effect: str) -> None:
    [trusted] = made(listed(annotations=hints), trust_annotations=True)
    assert (trusted.effect, trusted.needs_approval) == (effect, effect != "pure")
    [other] = made(listed(annotations=hints))
    assert (other.effect, other.needs_approval) == ("unsafe", True)


def test_the_list_of_tools_takes_names_and_patterns_in_the_servers_order() -> None:
    tools = [listed("read_file"), listed("read_dir"), listed("write"), listed("move")]
    assert [tool.name for tool in made(*tools, tools=["move", "read_*"])] == [
        "mcp__srv__read_file",
        "mcp__srv__read_dir",
        "mcp__srv__move",
    ]


def test_an_entry_of_the_list_that_fits_no_tool_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'tools' of 'srv' in 'mcp_servers' lists 'raed', which .* it has 'read'"):
        made(listed("read"), tools=["raed"])


def test_the_first_of_two_tools_with_one_name_is_used() -> None:
    [tool] = made(listed(description="one"), listed(description="two"))
    assert tool.description == "one"


def test_a_tool_whose_exported_name_is_taken_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    ours = made(listed("a?"), listed("a/"))[0].name.removeprefix("mcp__srv__")
    first, _ = made(listed(ours, description="one"), listed("a?"), listed("a/"))
    assert first.description == "one"
    [message] = caplog.messages
    assert message.startswith(f"MCP server 'srv': left out a tool that cannot be used: a tool named 'mcp__srv__{ours}'")


def test_schemas_are_passed_on_unchanged() -> None:
    schema = {"type": "object", "properties": {"x": {"default": None, "enum": [None, "a"]}}, "x-more": {"y": [None]}}
    [tool] = made(listed(inputSchema=schema, outputSchema=schema))
    assert tool.input_schema == tool.output_schema == schema


def nest(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"properties": {"x": schema}}
    return {"type": "object", **schema}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"x": {"type": "objekt"}}},
        {"type": "object", "$schema": "https://example.org/unknown-draft"},
        {"type": "object", "$ref": "https://example.org/elsewhere"},
        {"type": "object", "$ref": "#/$defs/missing"},
        {"type": "array"},
        nest(200),
    ],
    ids=["invalid", "draft", "remote", "missing", "array", "deep"],
)
@pytest.mark.parametrize("member", ["inputSchema", "outputSchema"])
def test_a_tool_with_an_unusable_schema_is_left_out_with_a_warning(
    caplog: pytest.LogCaptureFixture, member: str, schema: dict[str, Any]
) -> None:
    if member == "outputSchema" and schema["type"] == "array":
        schema = {"type": "arry"}
    caplog.set_level(logging.WARNING, "aeon")
    assert [tool.name for tool in made(listed("bad", **{member: schema}), listed("good"))] == ["mcp__srv__good"]
    assert "MCP server 'srv': left out a tool that cannot be used: tool 'mcp__srv__bad'" in caplog.text


@pytest.mark.parametrize(
    ("structured", "declared", "expected"),
    [
        ({"a": [None, 1.5]}, False, {"a": [None, 1.5]}),
        ({}, True, {}),
        ([1, 2], False, {"result": [1, 2]}),
        ([1, 2], True, [1, 2]),
        (0, False, {"result": 0}),
        (None, True, {"text": "said"}),
    ],
)
def test_structured_content_takes_precedence_over_text(structured: Any, declared: bool, expected: Any) -> None:
    assert result(text("said"), structured=structured, declared=declared) == expected


def test_too_large_structured_content_is_replaced_by_text() -> None:
    structured = {"x": "y" * MAX_TEXT}
    assert result(text("short"), structured=structured) == {"text": "short"}
    with pytest.raises(TooLarge, match=r"its result has 1,000,009 characters, at most 1,000,000"):
        result(structured=structured, declared=True)


@given(st.lists(st.text(max_size=30), max_size=5), st.integers(0, 60))
def test_text_is_joined_and_never_longer_than_its_bound(parts: list[str], limit: int) -> None:
    whole = "\n".join(part for part in parts if part)
    found = text_of([text(part) for part in parts], limit)
    if len(whole) <= limit:
        assert found == whole
    else:
        assert found == f"{whole[:limit]}\n[cut: {len(whole) - limit} more characters]"


@given(st.binary(max_size=50))
def test_binary_content_is_reported_by_its_size(data: bytes) -> None:
    encoded = base64.b64encode(data).decode()
    blob = {"type": "resource", "resource": {"uri": "u:1", "blob": encoded}}
    found = result({"type": "audio", "mimeType": "audio/wav", "data": encoded}, blob)
    assert [part["bytes"] for part in found["content"]] == [len(data)] * 2
    assert json_safe(found) == found


def test_no_more_than_a_hundred_blocks_are_reported() -> None:
    found = result(*[{"type": "resource_link", "uri": f"u:{n}", "name": "n"} for n in range(130)])
    assert len(found["content"]) == 100
    assert found["content_left_out"] == 30


@given(st.text(), st.integers(1, 50))
def test_foreign_text_is_one_short_line_without_control_characters(said: str, limit: int) -> None:
    line = Words()(said, limit)
    assert len(line) <= limit + 1
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", line)


def test_a_servers_own_secrets_do_not_get_into_a_message() -> None:
    words = Words(["hunter2!", "hunter2!-longer", "1"])
    assert words("token hunter2!-longer, hunter2! and 1") == "token [redacted], [redacted] and 1"
    assert words.of(ValueError("no hunter2!")) == "no [redacted]"
    assert words.of(ValueError()) == "ValueError"


def test_a_mismatch_is_one_line_without_an_address() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(dict[str, int]).validate_python({"n": None})
    assert Words().of(caught.value) == "n: Input should be a valid integer"


@pytest.mark.parametrize(
    ("written", "last"),
    [("one\n\n  the last", "the last"), ("one\ntwo\n \n", "two"), ("x" * 10_000, "x" * 300 + "…"), ("", "")],
)
def test_the_last_line_of_error_output_is_known_at_its_end(written: str, last: str) -> None:
    async def said() -> str:
        output, stream = ErrorOutput("srv", Words()), asyncio.StreamReader()
        stream.feed_data(written.encode())
        stream.feed_eof()
        await output.read(stream)
        return output.last

    assert asyncio.run(said()) == last


NODE = """node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/nope/x.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15) {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2
"""
NPM = """npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/nope
npm error 404
npm error 404 Note that you can also install from a
npm error A complete log of this run can be found in: /home/own/.npm/_logs/debug-0.log
"""
GROUP = """  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    | {}
    +------------------------------------
"""
PANIC = (
    "thread 'main' panicked at src/main.rs:1:13:\nno token\nnote: run with `RUST_BACKTRACE=1` environment variable\n"
)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (NODE, "Error: Cannot find module '/nope/x.js'"),
        (
            "Error [ERR_MODULE_NOT_FOUND]: no package\n    at x\n\nNode.js v20.20.2\n",
            "Error [ERR_MODULE_NOT_FOUND]: no package",
        ),
        ("thrown: 7\n\nNode.js v20.20.2\n", "thrown: 7"),
        (NPM, "npm error 404 Not Found - GET https://registry.npmjs.org/nope"),
        ("npm ERR! code E1\nnpm ERR! no such\nnpm ERR! A complete log of\nnpm ERR!     /log\n", "npm ERR! no such"),
        (GROUP.format("KeyError: 'TOKEN'"), "KeyError: 'TOKEN'"),
        (GROUP.format("anyio.EndOfStreamError"), "anyio.EndOfStreamError"),
        (PANIC, "no token"),
        ("OldError: long ago\nbye\n", "bye"),
        ("Node.js v20.20.2\n", "Node.js v20.20.2"),
    ],
)
def test_the_last_words_of_a_crash_are_its_reason(written: str, reason: str) -> None:
    test_the_last_line_of_error_output_is_known_at_its_end(written, reason)


def test_unterminated_error_output_is_reported_as_far_as_read() -> None:
    async def said() -> str:
        output, stream = ErrorOutput("srv", Words()), asyncio.StreamReader()
        stream.feed_data(b"one\nmore")
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await output.read(stream)
        return output.last

    assert asyncio.run(said()) == "more"
