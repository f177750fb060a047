"""A server of the MCP SDK for tests: `mcp_server.py stdio` or `mcp_server.py http PORT`, which prints its port.

The variable `TEST_NOTES` names a file that it appends to: its process id when it starts, and which
calls were cancelled.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

PAGE = 4
NOTES = "TEST_NOTES"
NESTED = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/Node"}},
    "required": ["tree"],
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["name"],
        }
    },
}


def object_of(**properties: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }


TOOLS = [
    types.Tool(
        name="add",
        description="Adds two numbers.",
        input_schema=object_of(a="integer", b="integer"),
        output_schema=object_of(sum="integer"),
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
    types.Tool(name="say", description="Says \x1b[31mred\x1b[0m.\nTwice.", input_schema=object_of(text="string")),
    types.Tool(
        name="fail",
        input_schema=object_of(why="string"),
        annotations=types.ToolAnnotations(idempotent_hint=True),
    ),
    types.Tool(name="nested", description="x" * 3000, input_schema=NESTED),
    types.Tool(name="broken", description="Has no valid schema.", input_schema=object_of(x="objekt")),
    types.Tool(name="blocks", description="Gives all kinds of content.", input_schema=object_of()),
    types.Tool(
        name="lies", description="Breaks its word.", input_schema=object_of(), output_schema=object_of(n="integer")
    ),
    types.Tool(name="notes", description="Notifies while it works.", input_schema=object_of()),
    types.Tool(name="asks", description="Asks its client.", input_schema=object_of(what="string")),
    types.Tool(name="slow", description="Never ends.", input_schema=object_of()),
    types.Tool(
        name="die",
        description="Ends the server.",
        input_schema=object_of(),
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
    types.Tool(name="big", description="Gives much text.", input_schema=object_of(size="integer")),
    types.Tool(name="surroundings", description="Gives its environment.", input_schema=object_of()),
    types.Tool(name="odd name/ü", description="Is named oddly.", input_schema=object_of()),
]


async def list_tools(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    start = int(params.cursor) if params and params.cursor else 0
    following = str(start + PAGE) if start + PAGE < len(TOOLS) else None
    return types.ListToolsResult(tools=TOOLS[start : start + PAGE], next_cursor=following)


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
    arguments = params.arguments or {}
    if params.name == "asks" and (params.input_responses is None):
        return asks(arguments["what"])
    if params.name == "asks":
        return text(str(dict(params.input_responses or {})))
    if params.name == "notes":
        await context.session.send_log_message(level="error", data="hello from the log")
        await context.session.report_progress(0.5)
        return text("noted")
    if params.name == "slow":
        return await slow()
    return CALLS[params.name](**arguments)


def asks(what: str) -> types.InputRequiredResult:
    requests: dict[str, Any] = {
        "roots": types.ListRootsRequest(),
        "sampling": types.CreateMessageRequest(
            params=types.CreateMessageRequestParams(
                messages=[types.SamplingMessage(role="user", content=types.TextContent(text="hi"))], max_tokens=5
            )
        ),
    }
    return types.InputRequiredResult(input_requests={"q": requests[what]})


async def slow() -> types.CallToolResult:
    note("began slow")
    try:
        await anyio.sleep(60)
    except asyncio.CancelledError:
        note("cancelled slow")
        raise
    return text("awake")


def text(said: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=said)], **more)


def blocks() -> types.CallToolResult:
    page = types.TextResourceContents(uri="file:///page", text="the page", mime_type="text/plain")
    return types.CallToolResult(
        content=[
            types.TextContent(text="first"),
            types.ImageContent(data="aGVsbG8=", mime_type="image/png"),
            types.ResourceLink(uri="file:///there", name="there"),
            types.EmbeddedResource(resource=page),
        ]
    )


def die() -> None:
    print("dying, as told", file=sys.stderr, flush=True)
    os._exit(3)


def note(line: str) -> None:
    if NOTES in os.environ:
        with Path(os.environ[NOTES]).open("a") as notes:
            notes.write(f"{line}\n")


CALLS: dict[str, Any] = {
    "add": lambda a, b: text("sum", structured_content={"sum": a + b}),
    "say": lambda text: globals()["text"](f"<{text}>"),
    "fail": lambda why: text(f"failed:\n{why}", is_error=True),
    "nested": lambda tree: text(tree["children"][0]["name"]),
    "blocks": blocks,
    "lies": lambda: text("not a number", structured_content={"n": "one"}),
    "die": die,
    "big": lambda size: text("é" * size),
    "surroundings": lambda: types.CallToolResult(content=[], structured_content=dict(os.environ)),
    "odd name/ü": lambda: text("odd"),
}

server: Server[Any] = Server("test", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def serve_http() -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    print(listening.getsockname()[1], flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])


if __name__ == "__main__":
    note(f"pid {os.getpid()}")
    if "garbage" in sys.argv:
        sys.stdout.buffer.write(b"Welcome! this is no JSON\n\xff\xfe nor text\n{}\n\n")
        sys.stdout.buffer.flush()
    if sys.argv[1] == "stdio":
        anyio.run(serve_stdio)
    else:
        serve_http()
