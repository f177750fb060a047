"""The tools of MCP servers (REQ-023): programs over stdio and addresses over HTTP, each kept for the run.

`McpTools` are those of all servers, `Server` keeps one connected, `ServerConnection` is one session from start to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from aeon_core.errors import AeonError, ToolError, UsageError, innermost
from aeon_core.installation import missing_extra, versions
from aeon_core.process import hide_process
from aeon_core.tools.base import Tool
from aeon_core.tools.mcp.settings import McpServer, resolved, server_secrets, servers_from
from aeon_core.tools.mcp.stdio_transport import MAX_MESSAGE, ErrorOutput, StdioTransport, UnusableServer, program
from aeon_core.tools.mcp.tool import (
    Listed,
    McpTool,
    ServerReply,
    TooLarge,
    Words,
    result_of,
    text_of,
    tools_from,
    words,
)

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp.client.session import ClientRequestContext
    from mcp.types import CallToolResult

logger: logging.Logger = logging.getLogger("aeon")

_MAX_ERROR = 2_000
_MAX_PAGES = 200
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
            how = "add one under 'mcp_servers' in a config file, with a command or a url"
            raise UsageError(f"tools 'mcp': no server is configured; {how}")
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
        self._connection: ServerConnection | None = None
        self._closed = False

    async def start(self) -> list[Listed]:
        """Start the server and return its tools. Raises UsageError."""
        key = "headers" if self.settings.command is None else "env"
        self._values = resolved(self.name, key, getattr(self.settings, key))
        self._words = Words(server_secrets(self.name, self.settings))
        try:
            return await self._connect()
        except UnusableServer as why:
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

    async def _live(self) -> ServerConnection:
        async with self._lock:
            assert self._connection is not None
            if self._connection.ended.is_set() and not self._closed:
                await self._end()
                logger.warning("MCP server %r has ended; connecting to it again", self.name)
                try:
                    await self._connect()
                except UnusableServer as why:
                    raise self._connection.error(f"has ended and cannot be restarted: {why}") from None
            return self._connection

    async def _connect(self) -> list[Listed]:
        self._connection = ServerConnection(self.name, self.settings, self._values, self._words, self._root)
        return await self._connection.open()

    async def _end(self) -> None:
        if self._connection is not None:
            await self._connection.close()


_CLOSE_SECONDS = {"command": 10.0, "url": 2.0}
"""How long a connection may take to end by itself; a process is stopped within about 6 s."""
_CONNECTION_CLOSED = -32000
"""The code of the SDK's error for a missing reply when the connection ends."""


class SessionLost(ToolError):
    """An HTTP server rejected a call because it no longer knows our session."""


class Watched:
    """An SDK stream that sets `ended` at its end, which the SDK does not report, and passes each item to `seen`."""

    def __init__(self, stream: Any, ended: asyncio.Event, seen: Callable[[Any], None]) -> None:
        self._stream = stream
        self._ended = ended
        self._seen = seen

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self.__anext__()

    async def aclose(self) -> None:
        self._ended.set()
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        item = await self._stream.__anext__()
        self._seen(item)
        return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class ServerConnection:
    """One connection with a server. It runs the SDK's client in a task of its own.

    `values` are the `env` or `headers` of the settings with all variables replaced, and `words` hides these. All
    methods but the constructor run on the loop.
    """

    def __init__(
        self, name: str, settings: McpServer, values: dict[str, str], words: Words, project_root: Path
    ) -> None:
        self.ended: asyncio.Event = asyncio.Event()
        self._closing = False
        self._name = name
        self._settings = settings
        self._values = values
        self._words = words
        self._root = project_root
        self._errors = ErrorOutput(name, words)
        self._noise = ""
        self._warned = False
        self._status: int | None = None
        self._challenge = ""
        self._client: Client | None = None
        self._failure: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> list[Listed]:
        """Return the server's tools, all pages of them. Raises Unusable."""
        opened: asyncio.Future[list[Listed]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run_client(opened))
        try:
            async with asyncio.timeout(self._settings.start_timeout):
                return await opened
        except Exception as error:
            await self.close()
            why = why_unusable(self._settings, error, self._status, self._words, self._challenge)
            said = f"; its last words: {self._errors.last}" if self._errors.last else ""
            raise UnusableServer(f"{why}{self._noticed()}{said}") from None

    async def call(self, tool: McpTool, arguments: dict[str, Any]) -> ServerReply:
        """Return the server's reply. Raises ToolError, also after the settings' `timeout`."""
        assert self._client is not None
        self._status, self._noise = None, ""
        try:
            async with asyncio.timeout(self._settings.timeout):
                result = await self._client.call_tool(tool.remote_name, arguments)
        except TimeoutError:
            limit = f"within {self._settings.timeout:g} s; see 'timeout'{self._noticed()}"
            raise self.error(f"gave no answer to {tool.shown_name!r} {limit}") from None
        except Exception as error:
            raise await self._failed(tool, error) from None
        blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
        return ServerReply(blocks, result.structured_content, result.is_error)

    async def _failed(self, tool: McpTool, error: Exception) -> ToolError:
        """Return the error of a failed call."""
        from mcp import MCPError

        said = self._words.of(error)
        if self.ended.is_set():
            how = "was closed" if self._closing else "ended"
            await self.close()
            last = f" ({known})" if (known := self._last_words()) else ""
            return self.error(f"{how} during {tool.shown_name!r}; whether it took effect is unknown{last}")
        kind = SessionLost if self._status == 404 and isinstance(error, MCPError) else ToolError
        if not isinstance(error, MCPError):
            said = f"cannot use it: {said}"
        elif self._status is not None:
            said = f"HTTP status {self._status}{_asked(self._challenge, self._words)}, {said}"
        elif error.code == _CONNECTION_CLOSED:
            said = f"{said}; whether it took effect is unknown"
        return self.error(f"answered {tool.shown_name!r} with an error: {said}", kind)

    def error(self, what: str, kind: type[ToolError] = ToolError) -> ToolError:
        """Return an error that names the server."""
        return kind(f"MCP server {self._name!r} {what}")

    async def close(self) -> None:
        """Close the connection, by force if it takes too long."""
        self._closing = True
        self.ended.set()
        if self._task is None:
            return
        if self._client is not None:
            kind = "url" if self._settings.command is None else "command"
            await asyncio.wait([self._task], timeout=_CLOSE_SECONDS[kind])
        self._task.cancel()
        await asyncio.wait([self._task])

    def _noticed(self) -> str:
        return f"; it writes something that is not MCP: {self._noise}" if self._noise else ""

    def _last_words(self) -> str:
        if self._failure is not None:
            return self._words.of(innermost(self._failure))
        return f"its last words: {self._errors.last}" if self._errors.last else ""

    async def _run_client(self, opened: asyncio.Future[list[Listed]]) -> None:
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

    def _leave_out_malformed(self, item: Any) -> None:
        """Remove malformed tools from a list, since the SDK would refuse the whole list."""
        from mcp.types import Tool
        from pydantic import ValidationError

        result = getattr(getattr(item, "message", None), "result", None)
        if self._client is not None or result is None or not isinstance(result.get("tools"), list):
            return
        kept = []
        for tool in result["tools"]:
            try:
                Tool.model_validate(tool, by_name=False)
                kept.append(tool)
            except ValidationError as error:
                named = self._words(str(tool.get("name") if isinstance(tool, dict) else tool), 100)
                why = self._words.of(error)
                logger.warning("MCP server %r: left out the malformed tool %r: %s", self._name, named, why)
        result["tools"] = kept

    async def _heard(self, message: object) -> None:
        """Record what the server wrote that is not a message; its notifications need no reply."""
        if not isinstance(message, Exception):
            return
        level = logging.DEBUG if self._warned else logging.WARNING
        self._warned = True
        details = getattr(message, "errors", None)
        self._noise = repr(self._words(str(details()[0].get("input", "") if callable(details) else message), 100))
        logger.log(level, "MCP server %r wrote something that is not MCP, ignored: %s", self._name, self._noise)

    @contextlib.asynccontextmanager
    async def _process(self) -> AsyncIterator[TransportStreams]:
        starting = program(self._settings, self._values, self._root)
        # The first probe for a working sandbox takes a while.
        started = await asyncio.to_thread(starting.__enter__)
        with contextlib.ExitStack() as stack:
            stack.push(starting)
            async with StdioTransport(self._errors).running(started) as streams:
                yield Watched(streams, self.ended, self._leave_out_malformed), streams

    @contextlib.asynccontextmanager
    async def _http(self) -> AsyncIterator[TransportStreams]:
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        async def note(response: Any) -> None:
            # Notifications and answers are sent during a call, too.
            if _is_request(response.request):
                self._status = response.status_code if response.status_code >= 400 else None
                self._challenge = response.headers.get("www-authenticate", "")
            if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                response.aiter_bytes = functools.partial(_bounded, response.aiter_bytes)

        settings = self._settings
        assert settings.url is not None
        client = create_mcp_http_client(headers=self._values)
        client.event_hooks = {"response": [note]}
        # Our own timeouts apply: a server may be silent for all of a call's time.
        client.timeout = (settings.start_timeout, None, settings.timeout, settings.timeout)
        async with (
            client,
            streamable_http_client(settings.url, http_client=client, max_sse_event_size=MAX_MESSAGE) as (read, write),
        ):
            yield Watched(read, self.ended, self._leave_out_malformed), write


async def _bounded(read: Callable[..., Any], *args: Any) -> AsyncIterator[bytes]:
    """Yield what `read` yields, a body without its compression; the SDK limits events alone."""
    from httpx2 import StreamError

    size = 0
    async with contextlib.aclosing(read(*args)) as parts:
        async for part in parts:
            size += len(part)
            if size > MAX_MESSAGE:
                raise StreamError(f"longer than {MAX_MESSAGE // 1024**2} MB")
            yield part


def _is_request(sent: Any) -> bool:
    """Return whether an HTTP request holds a JSON-RPC request, which has an answer."""
    if sent.method != "POST":
        return False
    try:
        data = json.loads(sent.read())  # after a redirect, the body was not read before
    except ValueError:
        return False
    return isinstance(data, dict) and {"id", "method"} <= data.keys()


async def _listed(client: Client) -> list[Listed]:
    found: list[Listed] = []
    cursors: set[str | None] = set()
    cursor: str | None = None
    while cursor not in cursors:
        if len(cursors) == _MAX_PAGES:
            what = f"its list of tools has no end: {_MAX_PAGES} pages so far"
            raise UnusableServer(f"{what}; set 'enabled: false' for it")
        cursors.add(cursor)
        page = await client.list_tools(cursor=cursor)
        found += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
        cursor = page.next_cursor
    return found


def _leave_results_to_the_port(client: Client) -> None:
    # The SDK would validate results against the server's schema on the loop, with patterns that may run forever; the
    # port validates them too, with an engine that cannot.
    async def accept(name: str, result: CallToolResult) -> None:
        pass

    client.session.validate_tool_result = accept  # type: ignore[method-assign]


_PROXY_LOGIN = 407
_SIGN_IN = "write a user and password into the proxy's address, or name the server's host in NO_PROXY"


_NO_LOGIN = """Aeon does not log in: get an access token, and add `Authorization: "Bearer ${NAME}"` to its 'headers'"""


def _asked(challenge: str, said: Words) -> str:
    return f" ({said(challenge)})" if challenge else ""


def why_unusable(server: McpServer, error: BaseException, status: int | None, said: Words, challenge: str = "") -> str:
    """Return why a server could not be started. `status` is the HTTP status of its refusal, if any, and `challenge`
    says what it asks for, as in HTTP's WWW-Authenticate.
    """
    error = innermost(error)
    if isinstance(error, UnusableServer):
        return str(error)
    if status == _PROXY_LOGIN:
        return f"a proxy refused with HTTP status {status}; {_SIGN_IN}"
    if status is not None:
        how = f"fix its {'headers' if status in (401, 403) else 'url'!r}"
        if challenge.lower().startswith("bearer") and "authorization" not in map(str.lower, server.headers):
            how = _NO_LOGIN
        return f"it refused with HTTP status {status}{_asked(challenge, said)}; {how}"
    if isinstance(error, TimeoutError):
        offline = ", or 'network' if it downloads anything" if server.sandbox and not server.network else ""
        return f"it did not list its tools within {server.start_timeout:g} s; see 'start_timeout'{offline}"
    if server.command is not None and isinstance(error, OSError):
        if isinstance(error, FileNotFoundError):
            return f"its command {words(server.command)!r} was not found; install it or fix 'command'"
        return f"its command {words(server.command)!r} cannot be started: {error.strerror}; fix 'command'"
    code = getattr(error, "code", None)
    if server.command is not None and code == _CONNECTION_CLOSED:
        return "it ended before it listed its tools; fix its 'command', 'args' or 'env'"
    if server.url is not None and code is None:
        why = said.of(error)
        advice = _SIGN_IN if why.startswith(f"{_PROXY_LOGIN} ") else "is it running, and is its 'url' right?"
        if isinstance(error, OSError) and error.errno is not None:  # before a connection was tried
            advice = "check the variables for certificates, such as SSL_CERT_FILE"
        if "CERTIFICATE_VERIFY_FAILED" in why:
            advice = "if you trust its certificate, set SSL_CERT_FILE to a file with the issuer's"
        return f"cannot reach it: {why}; {advice}"
    return f"it does not speak MCP as expected: {said.of(error)}"
