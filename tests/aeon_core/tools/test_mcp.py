"""Tools of the SDK's own server, over both transports (REQ-023)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from aeon_core.effects.outcomes import invoke_tool
from aeon_core.errors import ToolError
from aeon_core.redaction import redact_text
from aeon_core.tools.base import Tool
from aeon_core.tools.mcp.servers import McpTools
from aeon_core.tools.mcp.tool import MAX_TEXT
from aeon_core.tools.registry import ToolRegistry
from tests.aeon_core.tools.mcp_help import assert_nothing_is_left, http_server, stdio
from tests.waiting import wait_until

LISTED = ["add", "say", "fail", "nested", "blocks", "lies", "notes", "asks", "slow", "die", "big", "surroundings"]


@pytest.fixture(scope="module", params=["stdio", "http"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    root = tmp_path_factory.mktemp("root")
    notes = root / "notes"
    with ExitStack() as stack:
        server = stdio(env={"TEST_NOTES": str(notes)}, timeout=60)
        if request.param == "http":
            url, _ = stack.enter_context(http_server(notes))
            server = {"url": url, "timeout": 60}
        mcp = stack.enter_context(closing(McpTools({"test": server}, project_root=root)))
        yield {"root": root, "notes": notes, "server": server, "tools": {tool.name: tool for tool in mcp.connect()}}
    assert_nothing_is_left()


@pytest.fixture
def tools(place: dict[str, Any]) -> dict[str, Tool]:
    found: dict[str, Tool] = place["tools"]
    return found


@pytest.mark.exhaustive
def test_all_pages_are_listed_and_names_are_what_providers_take(tools: dict[str, Tool]) -> None:
    assert list(tools) == [f"mcp__test__{name}" for name in [*LISTED, "odd_name__"]]
    assert tools["mcp__test__odd_name__"].invoke() == {"text": "odd"}


def test_descriptions_are_plain_clipped_and_never_empty(tools: dict[str, Tool]) -> None:
    assert tools["mcp__test__say"].description == "Says \\x1b[31mred\\x1b[0m.\nTwice."
    assert tools["mcp__test__nested"].description == "x" * 2000 + "…"
    assert "'fail'" in tools["mcp__test__fail"].description


def test_schemas_are_the_servers(tools: dict[str, Tool]) -> None:
    registry = ToolRegistry()
    for tool in tools.values():
        registry.register(tool)
    # Imported here: every worker imports this file, and few need the SDK.
    from tests.aeon_core.tools.mcp_server import NESTED

    assert registry.input_schema("mcp__test__nested").schema == NESTED
    assert registry.input_schema("mcp__test__nested").errors({"tree": {"name": "a", "children": [{"name": 1}]}})
    assert tools["mcp__test__add"].output_schema["properties"] == {"sum": {"type": "integer"}}
    assert tools["mcp__test__say"].output_schema == {"type": "object"}


def test_a_servers_effect_hints_are_not_trusted(tools: dict[str, Tool]) -> None:
    assert {tool.effect for tool in tools.values()} == {"unsafe"}
    assert all(tool.needs_approval for tool in tools.values())


def test_structured_content_is_the_result(tools: dict[str, Tool]) -> None:
    assert tools["mcp__test__add"].invoke(a=2, b=-5) == {"sum": -3}


@pytest.mark.parametrize("text", ["grüße, 你好 👋", "a\nb\u2028c\x00d", "", '\\u0041 "quoted"'])
def test_text_arrives_unaltered(tools: dict[str, Tool], text: str) -> None:
    assert tools["mcp__test__say"].invoke(text=text) == {"text": f"<{text}>"}


def test_nested_arguments_arrive(tools: dict[str, Tool]) -> None:
    tree = {"name": "root", "children": [{"name": "leaf"}]}
    assert tools["mcp__test__nested"].invoke(tree=tree) == {"text": "leaf"}


def test_other_content_is_summarized(tools: dict[str, Tool]) -> None:
    assert tools["mcp__test__blocks"].invoke() == {
        "text": "first\nthe page",
        "content": [
            {"type": "image", "mime": "image/png", "bytes": 5},
            {"type": "resource_link", "uri": "file:///there", "name": "there"},
            {"type": "resource", "uri": "file:///page", "mime": "text/plain", "bytes": 8},
        ],
    }


def test_an_error_of_the_tool_is_a_tool_error_with_its_text(tools: dict[str, Tool]) -> None:
    secret = "sk-" + "ant-" + "x" * 30
    with pytest.raises(ToolError) as caught:
        tools["mcp__test__fail"].invoke(why=f"no \x1b[0m {secret}")
    said = f"MCP server 'test' reports that 'fail' failed: failed: no \\x1b[0m {redact_text(secret)}"
    assert caught.value.message == said


def test_a_result_against_the_servers_own_schema_fails_the_step(tools: dict[str, Tool]) -> None:
    registry = ToolRegistry()
    registry.register(tools["mcp__test__lies"])
    outcome = invoke_tool(tools["mcp__test__lies"], {}, registry.output_schema("mcp__test__lies"))
    assert outcome.result is None
    assert outcome.error is not None
    assert outcome.error["error_type"] == "ValidationError"


def test_notifications_are_ignored(tools: dict[str, Tool]) -> None:
    assert tools["mcp__test__notes"].invoke() == {"text": "noted"}


def test_a_server_that_asks_for_roots_gets_the_project_root(place: dict[str, Any]) -> None:
    assert place["root"].as_uri() in place["tools"]["mcp__test__asks"].invoke(what="roots")["text"]


def test_a_server_that_asks_for_a_model_is_refused(tools: dict[str, Tool]) -> None:
    with pytest.raises(ToolError, match="'test' answered 'asks' with an error: Sampling not supported"):
        tools["mcp__test__asks"].invoke(what="sampling")


def test_arguments_that_the_server_refuses_fail_only_the_call(tools: dict[str, Tool]) -> None:
    with pytest.raises(ToolError, match="MCP server 'test' answered 'add' with an error: "):
        tools["mcp__test__add"].invoke(c=1)
    assert tools["mcp__test__add"].invoke(a=1, b=1) == {"sum": 2}


def test_a_large_result_is_cut_with_a_note(tools: dict[str, Tool]) -> None:
    assert tools["mcp__test__big"].invoke(size=MAX_TEXT) == {"text": "é" * MAX_TEXT}
    cut = tools["mcp__test__big"].invoke(size=MAX_TEXT + 2000)["text"]
    assert cut == "é" * MAX_TEXT + "\n[cut: 2,000 more characters]"


def test_a_call_that_takes_too_long_is_cancelled_and_the_server_continues(place: dict[str, Any]) -> None:
    with closing(McpTools({"test": {**place["server"], "timeout": 3}}, project_root=place["root"])) as mcp:
        tools = {tool.name: tool for tool in mcp.connect()}
        with pytest.raises(ToolError, match="MCP server 'test' gave no answer to 'slow' within 3 s; see 'timeout'"):
            tools["mcp__test__slow"].invoke()
        wait_until(lambda: "cancelled slow" in place["notes"].read_text())
        assert tools["mcp__test__add"].invoke(a=1, b=2) == {"sum": 3}
