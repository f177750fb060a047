"""The tools of MCP servers (REQ-023): programs over stdio and addresses over HTTP, each kept for the run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from aeon_core.errors import ToolError, UsageError
from aeon_core.installation import missing_extra, versions
from aeon_core.process_privacy import hide_process
from aeon_core.tools.base import Tool
from aeon_core.tools.mcp.connection import LoopClosed, LoopThread, Server, Watched, program
from aeon_core.tools.mcp.settings import McpServer, servers_from
from aeon_core.tools.mcp.tool import (
    CONNECTION_CLOSED,
    Answer,
    Block,
    Ended,
    ErrorOutput,
    Listed,
    McpTool,
    Refused,
    SessionLost,
    Unusable,
    Words,
    innermost,
    tools_from,
    why_unusable,
)

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp.client.session import ClientRequestContext
    from mcp.types import CallToolResult

logger: logging.Logger = logging.getLogger("aeon")

_MAX_EVENT = 16 * 1024 * 1024
_CLOSE_SECONDS = {"command": 10.0, "url": 2.0}
"""How long a connection may take to end by itself; the SDK stops a process within some 7 s."""
_SILENT = logging.NullHandler()


class McpTools:
    """The tools of some MCP servers. The servers live from `connect()` to `close()`, or as long as this object."""

    def __init__(self, servers: Mapping[str, McpServer], *, project_root: Path) -> None:
        """`project_root` is where programs run and the answer to servers that ask for the roots.

        Raises UsageError for wrong settings and where no server is enabled.
        """
        enabled = {name: server for name, server in servers_from(servers).items() if server.enabled}
        if not enabled:
            raise UsageError("tools 'mcp': no server is configured; add one under 'mcp_servers' in the config file")
        connect = partial(_Link, project_root=project_root.absolute())
        self._servers = {name: Server(name, server, connect) for name, server in enabled.items()}
        self._loop = LoopThread("aeon-mcp", _closer(list(self._servers.values())))
        self._released = weakref.finalize(self, self._loop.close)
        self._tools: list[Tool] | None = None

    def connect(self) -> list[Tool]:
        """Start all servers at once and return their tools, in the settings' order; a second call gives the same.

        Raises MissingExtraError; UsageError, one line with what to do, where a variable is not set, or a server cannot
        be used: then none is left running.
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
        """End all servers and wait for that; from any thread, any number of times. A call under way fails."""
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
    # Else Python prints the SDK's warnings on the screen where nobody has configured logging.
    for name in ("mcp", "client"):
        logging.getLogger(name).addHandler(_SILENT)


class _Link:
    """One connection with a server, from its start until it ends. It holds the SDK's client in a task of its own."""

    def __init__(
        self, name: str, settings: McpServer, values: dict[str, str], words: Words, *, project_root: Path
    ) -> None:
        self.ended = asyncio.Event()
        self._name = name
        self._settings = settings
        self._values = values
        self._words = words
        self._root = project_root
        self._errors = ErrorOutput(name, words)
        self._noise = ""
        self._status: int | None = None
        self._client: Client | None = None
        self._failure: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> list[Listed]:
        """Return the server's tools, all pages of them. Raises Unusable."""
        opened: asyncio.Future[list[Listed]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(opened))
        try:
            async with asyncio.timeout(self._settings.start_timeout):
                return await opened
        except Exception as error:
            await self.close()
            why = why_unusable(self._settings, error, self._status, self._words)
            noise = f"; it writes something that is not MCP: {self._noise}" if self._noise else ""
            said = f"; its last words: {self._errors.last}" if self._errors.last else ""
            raise Unusable(f"{why}{noise}{said}") from None

    async def call(self, name: str, arguments: dict[str, Any]) -> Answer:
        """Return the server's answer. Raises Refused, Ended, and TimeoutError after the settings' `timeout`."""
        from mcp import MCPError

        self._status = None
        try:
            async with asyncio.timeout(self._settings.timeout):
                return await self._asked(name, arguments)
        except TimeoutError:
            raise
        except Exception as error:
            said = self._words.of(error)
            if self.ended.is_set():
                await self.close()
                raise Ended(self._last_words()) from None
            if not isinstance(error, MCPError):
                raise Refused(f"cannot use it: {said}") from None
            if self._status is not None:
                kind = SessionLost if self._status == 404 else Refused
                raise kind(f"HTTP status {self._status}, {said}") from None
            unknown = "; whether it took effect is unknown" if error.code == CONNECTION_CLOSED else ""
            raise Refused(f"{said}{unknown}") from None

    async def close(self) -> None:
        """End the connection, by force where it takes too long."""
        self.ended.set()
        if self._task is None:
            return
        if self._client is not None:
            kind = "url" if self._settings.command is None else "command"
            await asyncio.wait([self._task], timeout=_CLOSE_SECONDS[kind])
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _asked(self, name: str, arguments: dict[str, Any]) -> Answer:
        assert self._client is not None
        result = await self._client.call_tool(name, arguments)
        blocks: list[Block] = [
            block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content
        ]
        return Answer(blocks, result.structured_content, result.is_error)

    def _last_words(self) -> str:
        if self._failure is not None:
            return self._words.of(innermost(self._failure))
        return f"its last words: {self._errors.last}" if self._errors.last else ""

    async def _hold(self, opened: asyncio.Future[list[Listed]]) -> None:
        # The SDK's client must be left by the task that entered it.
        try:
            async with self._made_client() as client:
                _leave_results_to_the_port(client)
                listed = await _listed(client)
                self._client = client
                if not opened.done():
                    opened.set_result(listed)
                await self.ended.wait()
        except Exception as error:
            self._failure = error
            if not opened.done():
                opened.set_exception(error)
        finally:
            self.ended.set()
            self._errors.close()
            if not opened.done():
                opened.cancel()

    def _made_client(self) -> Client:
        from mcp import Client
        from mcp.types import Implementation, ListRootsResult, LoggingMessageNotificationParams, Root
        from pydantic import FileUrl

        async def roots(context: ClientRequestContext) -> ListRootsResult:  # noqa: ARG001  # the SDK's signature
            return ListRootsResult(roots=[Root(uri=FileUrl(self._root.as_uri()), name=self._root.name)])

        async def log(params: LoggingMessageNotificationParams) -> None:
            logger.debug("MCP server %r: %s", self._name, self._words(str(params.data)))

        transport = self._process() if self._settings.command is not None else self._http()
        return Client(
            transport,
            list_roots_callback=roots,
            logging_callback=log,
            message_handler=self._heard,
            client_info=Implementation(name="aeon", version=versions()["aeon"]),
            cache=None,
        )

    async def _heard(self, message: object) -> None:
        """Note what the server wrote that is no message; its notifications need no answer."""
        if not isinstance(message, Exception):
            return
        level = logging.DEBUG if self._noise else logging.WARNING
        details = getattr(message, "errors", None)
        self._noise = repr(self._words(str(details()[0].get("input", "") if callable(details) else message), 100))
        logger.log(level, "MCP server %r wrote something that is not MCP, ignored: %s", self._name, self._noise)

    @contextlib.asynccontextmanager
    async def _process(self) -> AsyncIterator[TransportStreams]:
        from mcp import StdioServerParameters, stdio_client

        starting = program(self._settings, self._values, self._root)
        # Looking for a sandbox that holds takes a while, when it is done first.
        started = await asyncio.to_thread(starting.__enter__)
        with contextlib.ExitStack() as stack:
            stack.push(starting)
            parameters = StdioServerParameters(
                command=started.command,
                args=started.args,
                env=started.env,
                cwd=started.cwd,
                encoding_error_handler="replace",
            )
            errlog = stack.enter_context(self._errors.open())
            async with stdio_client(parameters, errlog=errlog) as (read, write):
                yield Watched(read, self.ended), write

    @contextlib.asynccontextmanager
    async def _http(self) -> AsyncIterator[TransportStreams]:
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        async def note(response: Any) -> None:
            if response.request.method == "POST":
                self._status = response.status_code if response.status_code >= 400 else None

        settings = self._settings
        assert settings.url is not None
        client = create_mcp_http_client(headers=self._values)
        client.event_hooks = {"response": [note]}
        # Our own time-outs hold: a server may be silent for all of a call's time.
        client.timeout = (settings.start_timeout, None, settings.timeout, settings.timeout)
        async with (
            client,
            streamable_http_client(settings.url, http_client=client, max_sse_event_size=_MAX_EVENT) as (read, write),
        ):
            yield Watched(read, self.ended), write


async def _listed(client: Client) -> list[Listed]:
    found: list[Listed] = []
    cursors: set[str | None] = set()
    cursor: str | None = None
    while cursor not in cursors:
        cursors.add(cursor)
        page = await client.list_tools(cursor=cursor)
        found += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
        cursor = page.next_cursor
    return found


def _leave_results_to_the_port(client: Client) -> None:
    # The SDK would check results against the server's schema on the loop, with patterns that may run for ever; the
    # port checks them too, with an engine that does not.
    async def accept(name: str, result: CallToolResult) -> None:
        pass

    client.session.validate_tool_result = accept  # type: ignore[method-assign]
