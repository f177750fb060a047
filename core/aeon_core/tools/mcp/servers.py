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
from types import TracebackType
from typing import Any, Self, TypeVar

from aeon_core.errors import ToolError, UsageError
from aeon_core.installation import missing_extra
from aeon_core.process_privacy import hide_process
from aeon_core.tools.base import Tool
from aeon_core.tools.mcp.connection import Connection, SessionLost
from aeon_core.tools.mcp.process import Unusable
from aeon_core.tools.mcp.settings import McpServer, resolved, servers_from
from aeon_core.tools.mcp.tool import Listed, McpTool, TooLarge, Words, result_of, text_of, tools_from

logger: logging.Logger = logging.getLogger("aeon")

_MAX_ERROR = 2_000
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
        self._loop = LoopThread("aeon-mcp", _closer(list(self._servers.values())))
        self._released = weakref.finalize(self, self._loop.close)
        self._tools: list[Tool] | None = None

    def connect(self) -> list[Tool]:
        """Start all servers concurrently and return their tools, in the settings' order, also on a second call.

        Raises MissingExtraError; UsageError, one line with what to do, if a variable is not set or a server cannot
        be used, in which case none is left running.
        """
        if self._tools is None:
            _check_package()
            hide_process()
            try:
                self._tools = self._connected()
            except BaseException:
                self.close()
                raise
        return list(self._tools)

    def close(self) -> None:
        """Stop all servers and wait for that; from any thread, any number of times. A call in progress fails."""
        self._released()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _connected(self) -> list[Tool]:
        servers = list(self._servers.values())

        async def start() -> list[list[Listed]]:
            return await asyncio.gather(*(server.start() for server in servers))

        try:
            listed = self._loop.run(start)
        except LoopClosed:
            raise UsageError("the MCP servers were closed; make a new McpTools to connect again") from None
        return [
            tool
            for server, its in zip(servers, listed, strict=True)
            for tool in tools_from(server.name, server.settings, its, self._invoke)
        ]

    def _invoke(self, tool: McpTool, arguments: dict[str, Any]) -> Any:
        server = self._servers[tool.server]
        try:
            return self._loop.run(lambda: server.call(tool, arguments))
        except LoopClosed:
            raise ToolError(f"MCP server {tool.server!r} was closed; start a new run", tool_name=tool.name) from None


def _closer(servers: list[Server]) -> Callable[[], Coroutine[Any, Any, None]]:
    # Not a method of McpTools: the loop's thread must not keep it alive.
    async def close() -> None:
        await asyncio.gather(*(server.close() for server in servers))

    return close


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
            connection = await self._live(tool)
            answer = await connection.call(tool, arguments)
        except SessionLost:
            # The server says that it did not accept the call, so the call may be repeated.
            await self._end()
            connection = await self._live(tool)
            answer = await connection.call(tool, arguments)
        if answer.is_error:
            reason = self._words(text_of(answer.blocks, _MAX_ERROR), _MAX_ERROR) or "it gave no reason"
            raise connection.error(tool, f"reports that {tool.shown_name!r} failed: {reason}")
        try:
            return result_of(answer, declared=tool.declared)
        except TooLarge as error:
            raise connection.error(tool, f"answered {tool.shown_name!r}, but {error}") from None

    async def close(self) -> None:
        """Close the connection for good."""
        self._closed = True
        await self._end()

    async def _live(self, tool: McpTool) -> Connection:
        async with self._lock:
            assert self._connection is not None
            if self._connection.ended.is_set() and not self._closed:
                await self._end()
                logger.warning("MCP server %r has ended; connecting to it again", self.name)
                try:
                    await self._connect()
                except Unusable as why:
                    raise self._connection.error(tool, f"has ended and cannot be restarted: {why}") from None
            return self._connection

    async def _connect(self) -> list[Listed]:
        self._connection = Connection(self.name, self.settings, self._values, self._words, self._root)
        return await self._connection.open()

    async def _end(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class LoopClosed(Exception):  # it describes the state, not the error
    """The loop ended before the work was done."""


class LoopThread:
    """Runs coroutines on its thread. The thread starts with the first one and ends with `close()`."""

    def __init__(self, name: str, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`last` runs on the loop when it is closed, before work in progress is cancelled."""
        self._name = name
        self._last = last
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._closed = False

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the coroutine of `work`, or raise its exception. Raises LoopClosed after `close()`.

        An interruption of the waiting thread, such as Ctrl-C, cancels the work.
        """
        future = self._submit(work)
        try:
            return future.result()
        except CancelledError:
            raise LoopClosed from None
        finally:
            future.cancel()

    def close(self) -> None:
        """End the loop and wait for its thread; from any thread, any number of times."""
        with self._lock:
            self._closed = True
            thread, loop, end = self._thread, self._loop, self._end
            if loop is not None and end is not None:
                # Under the lock, so that everything submitted before is on the loop by now.
                with contextlib.suppress(RuntimeError):  # closed already
                    loop.call_soon_threadsafe(end.set)
        # A finalizer may run on the loop's own thread, which cannot wait for itself.
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        with self._lock:
            if self._closed:
                raise LoopClosed
            if self._loop is None:
                self._start()
            assert self._loop is not None
            return asyncio.run_coroutine_threadsafe(work(), self._loop)

    def _start(self) -> None:
        started = threading.Event()
        # A daemon, since an interpreter at exit must reach the finalizer that closes it.
        self._thread = threading.Thread(target=self._main, args=(started,), name=self._name, daemon=True)
        self._thread.start()
        started.wait()

    def _main(self, started: threading.Event) -> None:
        try:
            asyncio.run(self._serve(started))
        except RuntimeError as error:
            # From Python 3.12 on, asyncio cannot start the thread that joins its executor while the interpreter ends.
            if "interpreter shutdown" not in str(error):
                raise

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await self._end.wait()
        await self._last()
