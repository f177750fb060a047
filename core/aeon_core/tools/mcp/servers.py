"""The tools of MCP servers (REQ-023): programs over stdio and addresses over HTTP, each kept for the run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from aeon_core.errors import AeonError, ToolError, UsageError
from aeon_core.installation import missing_extra
from aeon_core.process import hide_process
from aeon_core.tools.base import Tool
from aeon_core.tools.mcp.connection import Connection, SessionLost
from aeon_core.tools.mcp.settings import McpServer, resolved, servers_from
from aeon_core.tools.mcp.stdio_transport import Unusable
from aeon_core.tools.mcp.tool import Listed, McpTool, TooLarge, Words, result_of, text_of, tools_from

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

logger: logging.Logger = logging.getLogger("aeon")

_MAX_ERROR = 2_000
_THREAD = "aeon-mcp"
_SILENT = logging.NullHandler()
T = TypeVar("T")


class McpTools:
    """The tools of some MCP servers. The servers live from `connect()` to `close()`, or as long as this object."""

    def __init__(self, servers: Mapping[str, McpServer], *, project_root: Path) -> None:
        """`project_root` is where programs run and the answer to servers that ask for the roots.

        Raises UsageError for invalid settings, and if no server is enabled.
        """
        enabled = {name: server for name, server in servers_from(servers).items() if server.enabled}
        if not enabled:
            raise UsageError("tools 'mcp': no server is configured; add one under 'mcp_servers' in the config file")
        root = project_root.absolute()
        self._servers = {name: Server(name, server, root) for name, server in enabled.items()}
        self._running = contextlib.ExitStack()
        self._portal: BlockingPortal | None = None
        self._released = weakref.finalize(self, _end, self._running)

    def connect(self) -> list[Tool]:
        """Start all servers concurrently and return their tools, in the settings' order. To be called once.

        Raises MissingExtraError; UsageError, one line with what to do, if a variable is not set or a server cannot
        be used, in which case none is left running.
        """
        _check_package()
        hide_process()
        from anyio.from_thread import start_blocking_portal

        servers = list(self._servers.values())

        async def start() -> list[list[Listed]]:
            return await asyncio.gather(*(server.start() for server in servers))

        closed = UsageError("the MCP servers were closed while they were started")
        try:
            self._portal = self._running.enter_context(start_blocking_portal(name=_THREAD))
            self._running.callback(self._portal.call, _close, servers, self._portal)
            if not self._released.alive:
                raise closed
            listed = self._run(closed, start)
            return [
                tool
                for server, its in zip(servers, listed, strict=True)
                for tool in tools_from(server.name, server.settings, its, self._invoke)
            ]
        except BaseException:
            self.close()
            # What was opened after `close()` is still open.
            self._running.close()
            raise

    def close(self) -> None:
        """Stop all servers and wait for that; from any thread, any number of times. A call in progress fails."""
        self._released()

    def _invoke(self, tool: McpTool, arguments: dict[str, Any]) -> Any:
        closed = ToolError(f"MCP server {tool.server!r} was closed; start a new run")
        return self._run(closed, self._servers[tool.server].call, tool, arguments)

    def _run(self, closed: AeonError, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Return the result of work on the loop, or raise its exception. Raises `closed` after `close()`.

        An interruption of the waiting thread, such as Ctrl-C, cancels the work.
        """
        assert self._portal is not None
        try:
            future: Future[T] = self._portal.start_task_soon(work, *arguments)
        except RuntimeError:
            raise closed from None
        try:
            return future.result()
        except CancelledError:
            raise closed from None
        finally:
            future.cancel()


async def _close(servers: list[Server], portal: BlockingPortal) -> None:
    await asyncio.gather(*(server.close() for server in servers))
    await portal.stop(cancel_remaining=True)


def _end(running: contextlib.ExitStack) -> None:
    # A finalizer may run on a loop's own thread, which cannot wait for itself.
    if threading.current_thread().name == _THREAD:
        threading.Thread(target=running.close).start()
    else:
        running.close()


def _check_package() -> None:
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise missing_extra("`--tools mcp`", "mcp") from None
    # Otherwise Python prints the SDK's warnings on the screen if nobody has configured logging.
    for name in ("mcp", "client"):
        logging.getLogger(name).addHandler(_SILENT)


class Server:
    """One server of the settings, reconnected after it has ended. All methods run on the loop."""

    def __init__(self, name: str, settings: McpServer, project_root: Path) -> None:
        self.name = name
        self.settings = settings
        self._root = project_root
        self._values: dict[str, str] = {}
        self._words = Words()
        self._lock = asyncio.Lock()
        self._connection: Connection | None = None
        self._closed = False

    async def start(self) -> list[Listed]:
        """Start the server and return its tools. Raises UsageError."""
        key = "headers" if self.settings.command is None else "env"
        self._values = resolved(self.name, key, getattr(self.settings, key))
        self._words = Words(self._values.values())
        try:
            return await self._connect()
        except Unusable as why:
            raise UsageError(f"cannot use the MCP server {self.name!r}: {why}", server=self.name) from None

    async def call(self, tool: McpTool, arguments: dict[str, Any]) -> Any:
        """Return the result of one call. Raises ToolError; a server that ended before is restarted once."""
        try:
            connection = await self._live()
            answer = await connection.call(tool, arguments)
        except SessionLost:
            # The server says that it did not accept the call, so the call may be repeated.
            await self._end()
            connection = await self._live()
            answer = await connection.call(tool, arguments)
        if answer.is_error:
            reason = self._words(text_of(answer.blocks, _MAX_ERROR), _MAX_ERROR) or "it gave no reason"
            raise connection.error(f"reports that {tool.shown_name!r} failed: {reason}")
        try:
            return result_of(answer, declared=tool.declared)
        except TooLarge as error:
            raise connection.error(f"answered {tool.shown_name!r}, but {error}") from None

    async def close(self) -> None:
        """Close the connection for good."""
        self._closed = True
        await self._end()

    async def _live(self) -> Connection:
        async with self._lock:
            assert self._connection is not None
            if self._connection.ended.is_set() and not self._closed:
                await self._end()
                logger.warning("MCP server %r has ended; connecting to it again", self.name)
                try:
                    await self._connect()
                except Unusable as why:
                    raise self._connection.error(f"has ended and cannot be restarted: {why}") from None
            return self._connection

    async def _connect(self) -> list[Listed]:
        self._connection = Connection(self.name, self.settings, self._values, self._words, self._root)
        return await self._connection.open()

    async def _end(self) -> None:
        if self._connection is not None:
            await self._connection.close()
