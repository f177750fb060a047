"""What the tests of MCP share: the SDK's server as a process, and a look at what is left of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from aeon_core.tools.base import Tool
from aeon_core.tools.mcp.servers import McpTools
from tests.waiting import wait_until

SERVER = str(Path(__file__).with_name("mcp_server.py"))
PLAIN_SERVER = str(Path(__file__).with_name("mcp_plain_server.py"))


def stdio(*more: str, **settings: Any) -> dict[str, Any]:
    """Settings of the SDK's server over stdio."""
    return {"command": sys.executable, "args": ["-W", "ignore", SERVER, "stdio", *more], **settings}


def plain(*more: str, **settings: Any) -> dict[str, Any]:
    """Settings of the server that needs no SDK: it starts ten times as fast."""
    return {"command": sys.executable, "args": ["-S", PLAIN_SERVER, "stdio", *more], **settings}


def program(code: str, **settings: Any) -> dict[str, Any]:
    """Settings of a server that is any piece of Python."""
    return {"command": sys.executable, "args": ["-c", code], **settings}


@contextmanager
def http_server(notes: Path, port: str = "0") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The SDK's server over HTTP: its address and its process."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", SERVER, "http", port],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TEST_NOTES": str(notes)},
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def connected(root: Path, **servers: Any) -> Iterator[dict[str, Tool]]:
    """The tools of the servers by name, and afterwards the certainty that nothing of them is left."""
    with closing(McpTools(servers, project_root=root)) as mcp:
        yield {tool.name: tool for tool in mcp.connect()}
    assert_nothing_is_left()


def assert_nothing_is_left() -> None:
    # The thread in which asyncio waits for a process ends just after the process.
    wait_until(
        lambda: not [thread.name for thread in threading.enumerate() if thread.name.startswith(("aeon-mcp", "waitpid"))]
    )
    assert not children()


def children() -> list[int]:
    """Return the ids of our child processes that run a server over stdio or are not waited for.

    What multiprocessing keeps running for tests before this one does not count.
    """
    listed = subprocess.run(
        ["ps", "-o", "pid=,stat=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True
    )
    rows = [row.split(None, 2) for row in listed.stdout.splitlines()]
    return [
        int(pid)
        for pid, state, command in rows
        if "multiprocessing" not in command and (state.startswith("Z") or "stdio" in command or " -c " in command)
    ]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pids(notes: Path) -> list[int]:
    """Return the process ids that the server noted, one for each start."""
    return [int(line.removeprefix("pid ")) for line in notes.read_text().splitlines() if line.startswith("pid ")]
