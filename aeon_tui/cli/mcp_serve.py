"""`aeon-tui mcp-serve`: serve runs as tools to other agents, over standard input and output or on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from aeon_core.config.keys import listed
from aeon_core.config.schema import runs_directory
from aeon_core.errors import UsageError
from aeon_core.installation import missing_extra, versions
from aeon_core.paths import writable
from aeon_core.process import ending_signals, is_terminal
from aeon_tui.cli import options
from aeon_tui.cli.output import diagnostics, stderr
from aeon_tui.cli.tools import inspected_tools
from aeon_tui.platform.stdio_server import serve_until_hung_up
from aeon_tui.sessions.served_runs import ServedRuns

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry
    from aeon_tui.mcp_server import AeonServer

HOST, PORT = "127.0.0.1", 8765
ENDING_SECONDS = 2
"""Seconds that open connections get to close when the server stops."""
_OF_THE_JUDGE = ("model", "base_url", "judge_model", "judge_votes", "budget")


def execute(args: Namespace) -> int:
    """Serve until the client hangs up or the command is interrupted, and return 0.

    Without `--http`, standard output is the protocol's alone. Raises UsageError, MissingExtraError.
    """
    try:
        from aeon_tui.mcp_server import AeonServer
    except ModuleNotFoundError:
        raise missing_extra("`aeon-tui mcp-serve`", "mcp") from None
    if args.http is None and None in (sys.stdin, sys.stdout):
        raise UsageError("standard input or output is closed; mcp-serve talks to an MCP client over both")
    if args.http is None and is_terminal(sys.stdin):
        raise UsageError("mcp-serve talks to an MCP client, not to a terminal; add it to the client, or use --http")
    listening = _listening(args.http) if args.http is not None else None
    runs, inspected, calibrate = _served(args)
    server = AeonServer(runs, inspected, calibrate, versions()["aeon"], debug=args.debug)
    with diagnostics(args.debug):
        if listening is None:
            asyncio.run(serve_until_hung_up(server.run_stdio_async, runs.close))
        else:
            stderr().line(
                f"aeon-tui: serving MCP at http://{HOST}:{listening.getsockname()[1]}/mcp · press Ctrl-C to stop"
            )
            asyncio.run(_until_interrupted(server, listening, runs))
    return 0


def _served(args: Namespace) -> tuple[ServedRuns, Callable[[], ToolRegistry], Callable[[int | None], list[str]]]:
    """Return the runs to serve, a function that finds the tools for checking plans, and one that measures the judge."""
    loaded = options.load(args)
    # The client waits for the call, so a person is asked only if necessary, not after every pass.
    config = loaded.config if "approve" in loaded.sources else loaded.config.model_copy(update={"approve": ["tool"]})
    options.check_served(config, {*listed(",".join(args.tools or ()))} - {"mcp"})
    runs = ServedRuns(config, writable(runs_directory(config)))
    return runs, partial(inspected_tools, args, config), partial(_calibrate, args)


def _calibrate(args: Namespace, limit: int | None) -> list[str]:
    """Return the command that measures the judge; as a separate process, it can be ended at any time."""
    command = [sys.executable, "-P", "-m", "aeon_tui", "calibrate", "--json"]
    command += ["--history"] if limit is None else ["--limit", str(limit)]
    for name in () if limit is None else _OF_THE_JUDGE:
        value = getattr(args, name, None)
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            command += [f"--{name.replace('_', '-')}", str(each)]
    return [*command, *options.file_options(args)]


def _listening(text: str) -> socket.socket:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) < 65536):
        raise UsageError(f"--http takes a port from 0 to 65535; got {text!r}")
    try:
        return socket.create_server((HOST, int(text)))
    except OSError as error:
        raise UsageError(f"cannot serve MCP on port {text}: {error.strerror}; choose another with --http") from None


async def _until_interrupted(server: AeonServer, listening: socket.socket, runs: ServedRuns) -> None:
    import uvicorn

    # The library refuses requests under another host name and from pages of other sites.
    app = server.streamable_http_app(host=HOST)
    serving = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=ENDING_SECONDS))
    # It would raise the signal again before the runs have ended.
    serving.capture_signals = contextlib.nullcontext  # type: ignore[assignment]
    for number in ending_signals():
        asyncio.get_running_loop().add_signal_handler(number, setattr, serving, "should_exit", True)
    try:
        await serving.serve(sockets=[listening])
    finally:
        await runs.close()
