"""One MCP server over all its connections: what its calls give, and what happens when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from aeon_core.errors import ToolError, UsageError
from aeon_core.tools.mcp.settings import McpServer, resolved
from aeon_core.tools.mcp.tool import (
    Answer,
    Ended,
    Listed,
    McpTool,
    Refused,
    SessionLost,
    TooLarge,
    Unusable,
    Words,
    result_of,
    text_of,
    words,
)
from aeon_core.tools.protected_paths import find_protected, find_repositories
from aeon_core.tools.shell.isolation import Isolation, Limits, probe
from aeon_core.tools.shell.secret_paths import hidden_and_shown
from aeon_core.tools.shell.settings import ShellSettings

_PASSED_ON = re.compile(
    r"PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TERM|TZ|TMPDIR|SHELL|USER|LOGNAME|XDG_(?:CACHE|CONFIG|DATA|STATE)_HOME"
    r"|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    r"|(?:HTTPS?|ALL|NO)_PROXY|(?:https?|all|no)_proxy"
)
"""Variables that programs need to find files, hosts and their language. All others have to be named in `env`."""
_STATUS = 3
_FILTER = 4
_IN_FOLDER = f'cd -- "$0" && calls=$1 && shift && exec "$@" {_STATUS}>/dev/null {_FILTER}<"$calls"'
"""The SDK passes on no descriptors: what isolation reports of the exit code goes nowhere."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is started in place of a server's command."""

    command: str
    args: list[str]
    env: dict[str, str]
    cwd: Path


def folder(server: McpServer, project_root: Path) -> Path:
    """Return where a server's program runs. Raises Unusable where that is no folder."""
    place = project_root / (server.cwd or Path()).expanduser()
    if not place.is_dir():
        raise Unusable(f"its 'cwd' {str(place)!r} is not a folder; fix it")
    return place


def surroundings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a program gets beside those of its `env`: none that could hold a key."""
    return {name: value for name, value in environ.items() if _PASSED_ON.fullmatch(name)}


@contextmanager
def program(server: McpServer, values: Mapping[str, str], project_root: Path) -> Iterator[Program]:
    """Give the program that runs a server, in the sandbox where its settings say so. Blocks while it looks for one.

    Raises Unusable where there is no folder, no such command, or no sandbox.
    """
    assert server.command is not None
    cwd = folder(server, project_root)
    env = {**surroundings(os.environ), **values}
    if not server.sandbox:
        yield Program(server.command, server.args, env, cwd)
        return
    if shutil.which(_from(cwd, server.command), path=env.get("PATH", os.defpath)) is None:
        raise Unusable(f"its command {words(server.command)!r} was not found; install it or fix 'command'")
    root = project_root.resolve()
    isolation = probe(root, ShellSettings(network=server.network))
    if isolation.name == "none":
        raise Unusable(
            f"its 'sandbox' is true, but no isolation works here ({isolation.why}); "
            "install bubblewrap, or remove 'sandbox' to run it with your full rights"
        )
    with tempfile.TemporaryDirectory(prefix="aeon-mcp-", ignore_cleanup_errors=True) as scratch:
        hidden, shown = hidden_and_shown(root, os.environ)
        protected = find_protected(root, find_repositories(root))
        limits = Limits(
            root, Path(scratch).resolve(), isolation.network, hidden=hidden, shown=shown, protected=protected.existing,
            git_folders=protected.git_folders,
        )  # fmt: skip
        yield _isolated(isolation, server, env, cwd.resolve(), limits)


def _isolated(isolation: Isolation, server: McpServer, env: dict[str, str], cwd: Path, limits: Limits) -> Program:
    assert server.command is not None
    inner = ["/bin/sh", "-c", 'cd -- "$0" && exec "$@"', str(cwd), server.command, *server.args]
    outer = isolation.command(inner, limits, _STATUS, None if isolation.seccomp is None else _FILTER)
    source = limits.scratch / "calls"
    source.write_bytes(isolation.seccomp or b"")
    temp = isolation.temp(limits)
    own = {"TMPDIR": temp, "XDG_CACHE_HOME": f"{temp}/cache"}
    return Program("/bin/sh", ["-c", _IN_FOLDER, str(limits.root), str(source), *outer], {**env, **own}, limits.root)


def _from(cwd: Path, command: str) -> str:
    """Return a command such as `./server` as seen from its folder; a bare name stays one."""
    return str(cwd / command) if os.sep in command else command


T = TypeVar("T")


class LoopClosed(Exception):  # it says what is, not what went wrong
    """The loop ended before the work was done."""


class LoopThread:
    """Runs coroutines on its thread. The thread starts with the first one and ends with `close()`."""

    def __init__(self, name: str, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`last` runs on the loop when it is closed, before what is still under way there is cancelled."""
        self._name = name
        self._last = last
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._closed = False

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what the coroutine of `work` returns, or raise what it raises. Raises LoopClosed after `close()`.

        Whatever interrupts the waiting thread, such as Ctrl-C, cancels the work.
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
                # Under the lock, so that all that was submitted before is on the loop by now.
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
        # A daemon: an interpreter that ends must reach the finalizer that closes it.
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


class Watched:
    """A stream of the SDK's that sets `ended` when it is read to its end, which the SDK tells to nobody."""

    def __init__(self, stream: Any, ended: asyncio.Event) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        self._ended.set()
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await self._stream.__anext__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


logger: logging.Logger = logging.getLogger("aeon")

_MAX_ERROR = 2_000


class Link(Protocol):
    """One connection with a server, from its start until it ends."""

    ended: asyncio.Event

    async def open(self) -> list[Listed]:
        """Return the server's tools, all pages of them. Raises Unusable."""

    async def call(self, name: str, arguments: dict[str, Any]) -> Answer:
        """Return the server's answer. Raises Refused, Ended, and TimeoutError after the settings' `timeout`."""

    async def close(self) -> None:
        """End the connection, by force where it takes too long."""


Connect = Callable[[str, McpServer, dict[str, str], Words], Link]
"""Makes a connection from name, settings, `env` or `headers` with all variables replaced, and what hides these."""


class Server:
    """One server of the settings. All methods but the constructor run on the loop."""

    def __init__(self, name: str, settings: McpServer, connect: Connect) -> None:
        self.name = name
        self.settings = settings
        self._make = connect
        self._values: dict[str, str] = {}
        self._words = Words()
        self._lock = asyncio.Lock()
        self._link: Link | None = None
        self._closed = False

    async def start(self) -> list[Listed]:
        """Return the tools of the server, which runs from now on. Raises UsageError."""
        key = "headers" if self.settings.command is None else "env"
        self._values = resolved(self.name, key, getattr(self.settings, key))
        self._words = Words(self._values.values())
        try:
            return await self._connect()
        except Unusable as why:
            raise UsageError(f"cannot use the MCP server {self.name!r}: {why}", server=self.name) from None

    async def call(self, tool: McpTool, arguments: dict[str, Any]) -> Any:
        """Return the result of one call. Raises ToolError; a server that ended before is started again, once."""
        try:
            answer = await self._answer(tool, arguments)
        except SessionLost:
            # It says that it did not take the call, so that the call may be made again.
            await self._end()
            try:
                answer = await self._answer(tool, arguments)
            except SessionLost as error:
                raise self._error(tool, f"answered {tool.shown_name!r} with an error: {error}") from None
        if answer.is_error:
            said = self._words(text_of(answer.blocks, _MAX_ERROR), _MAX_ERROR) or "it gave no reason"
            raise self._error(tool, f"reports that {tool.shown_name!r} failed: {said}")
        try:
            return result_of(answer, declared=tool.declared)
        except TooLarge as error:
            raise self._error(tool, f"answered {tool.shown_name!r}, but {error}") from None

    async def close(self) -> None:
        """End the connection; there will be no other."""
        self._closed = True
        await self._end()

    async def _answer(self, tool: McpTool, arguments: dict[str, Any]) -> Answer:
        link = await self._live(tool)
        name, limit = tool.shown_name, self.settings.timeout
        try:
            return await link.call(tool.remote_name, arguments)
        except SessionLost:
            raise
        except TimeoutError:
            raise self._error(tool, f"gave no answer to {name!r} within {limit:g} s; see 'timeout'") from None
        except Refused as error:
            raise self._error(tool, f"answered {name!r} with an error: {error}") from None
        except Ended as error:
            how = "was closed" if self._closed else "ended"
            why = f" ({error})" if str(error) else ""
            raise self._error(tool, f"{how} during {name!r}; whether it took effect is unknown{why}") from None

    async def _live(self, tool: McpTool) -> Link:
        async with self._lock:
            assert self._link is not None
            if self._link.ended.is_set() and not self._closed:
                await self._end()
                logger.warning("MCP server %r has ended; connecting to it again", self.name)
                try:
                    await self._connect()
                except Unusable as why:
                    raise self._error(tool, f"has ended and cannot be restarted: {why}") from None
            return self._link

    async def _connect(self) -> list[Listed]:
        self._link = self._make(self.name, self.settings, self._values, self._words)
        return await self._link.open()

    async def _end(self) -> None:
        if self._link is not None:
            await self._link.close()

    def _error(self, tool: McpTool, what: str) -> ToolError:
        return ToolError(f"MCP server {self.name!r} {what}", tool_name=tool.name)
