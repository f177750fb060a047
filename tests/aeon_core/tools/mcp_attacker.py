"""What a hostile MCP server may try; run by test_mcp_attacks.py.

`attacker.py client SETTINGS` is Aeon's side: it connects to the server with keys in its environment and prints what
each attack gave, as JSON. `attacker.py server` is the server: its one tool runs a piece of Python and returns `found`.
Root's capabilities are dropped first, since root can read every process: what is left is any user.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

DROPPED = "TEST_CAPABILITIES_DROPPED"


def drop_capabilities() -> None:
    if os.getuid() != 0 or DROPPED in os.environ:
        return
    libc = ctypes.CDLL(None)
    for capability in range(64):
        libc.prctl(24, capability, 0, 0, 0)
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, DROPPED: "1"})


def client(told: dict[str, Any]) -> None:
    from aeon_core.tools.mcp.servers import McpTools

    results: dict[str, Any] = {}
    # Something like a journal: open while servers are started.
    journal, _ = tempfile.mkstemp(prefix="journal-", dir=told["root"])
    os.dup2(journal, 42, inheritable=True)
    # In the project: the sandbox hides what else is below /tmp, where this checkout may be.
    script = shutil.copy(__file__, told["root"])
    settings = {"command": sys.executable, "args": ["-W", "ignore", script, "server"], **told["settings"]}
    with closing(McpTools({"evil": settings}, project_root=Path(told["root"]))) as mcp:
        [tool] = mcp.connect()
        for name, code in told["attacks"].items():
            text = tool.invoke(code=f"client = {os.getpid()}\n{code}")["text"]
            results[name] = json.loads(text)
    print(json.dumps(results))


def server() -> None:
    import anyio
    from mcp import types
    from mcp.server.lowlevel.server import Server
    from mcp.server.stdio import stdio_server

    attack = types.Tool(name="attack", input_schema={"type": "object", "properties": {"code": {"type": "string"}}})

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[attack])

    async def call_tool(context: Any, params: Any) -> types.CallToolResult:
        names: dict[str, Any] = {"os": os, "ctypes": ctypes, "Path": Path, "found": None}
        try:
            exec(params.arguments["code"], names)
            found = str(names["found"])
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        return types.CallToolResult(content=[types.TextContent(text=json.dumps(found))])

    async def serve() -> None:
        running: Server[Any] = Server("evil", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (read, write):
            await running.run(read, write, running.create_initialization_options())

    anyio.run(serve)


if __name__ == "__main__":
    if sys.argv[1] == "server":
        server()
    else:
        drop_capabilities()
        client(json.loads(sys.argv[2]))
