"""The process of an MCP server: how it starts, in the sandbox if so set, and its messages over stdin and stdout.

It replaces the SDK's transport, which reports no exit, leaves the server's children running, answers no call whose
reply is malformed, and bounds neither a message nor the requests of a server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import shutil
import signal
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from aeon_core.json_safe import parse_json
from aeon_core.paths import real_path
from aeon_core.tools.mcp.settings import McpServer
from aeon_core.tools.mcp.tool import Words, words
from aeon_core.tools.protected_paths import find_protected, find_repositories
from aeon_core.tools.shell.isolation import Isolation, Limits, npm_settings, probe
from aeon_core.tools.shell.secret_paths import hidden_and_shown
from aeon_core.tools.shell.settings import ShellSettings

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCMessage

logger: logging.Logger = logging.getLogger("aeon")

_CHUNK = 65_536
_MAX_LINE = 4_000


class UnusableServer(Exception):
    """A server cannot be started or reached; the message is the reason and what to do."""


_PASSED_ON = re.compile(
    r"PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TERM|TZ|TMPDIR|SHELL|USER|LOGNAME|XDG_(?:CACHE|CONFIG|DATA|STATE)_HOME"
    r"|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    r"|(?:HTTPS?|ALL|NO)_PROXY|(?:https?|all|no)_proxy"
)
"""Variables that programs need to find files, hosts and their language. All others must be named in `env`."""
_STATUS = 3
_FILTER = 4
_IN_FOLDER = f'cd -- "$0" && calls=$1 && shift && exec "$@" {_STATUS}>/dev/null {_FILTER}<"$calls"'
"""The SDK passes on no descriptors, so isolation's report of the exit code is dropped."""


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """The program started in place of a server's command."""

    command: str
    args: list[str]
    env: dict[str, str]
    cwd: Path


@contextlib.contextmanager
def program(server: McpServer, values: Mapping[str, str], project_root: Path) -> Iterator[ServerProgram]:
    """Yield the program that runs a server, in the sandbox if its settings say so. Blocks while it probes for one.

    Raises Unusable if there is no such folder, command or sandbox.
    """
    assert server.command is not None
    cwd = project_root / (server.cwd or Path()).expanduser()
    if not cwd.is_dir():
        raise UnusableServer(f"its 'cwd' {str(cwd)!r} is not a folder; fix it")
    env = {**{name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}, **values}
    if not server.sandbox:
        yield ServerProgram(server.command, server.args, env, cwd)
        return
    # A command such as `./server` is relative to its folder.
    command = str(cwd / server.command) if os.sep in server.command else server.command
    if shutil.which(command, path=env.get("PATH", os.defpath)) is None:
        raise UnusableServer(f"its command {words(server.command)!r} was not found; install it or fix 'command'")
    root = real_path(project_root)
    isolation = probe(root, ShellSettings(network=server.network))
    if isolation.name == "none":
        raise UnusableServer(
            f"its 'sandbox' is true, but no isolation works here ({isolation.why}); "
            "install bubblewrap, or remove 'sandbox' to run it with your full rights"
        )
    with tempfile.TemporaryDirectory(prefix="aeon-mcp-", ignore_cleanup_errors=True) as scratch:
        hidden, shown = hidden_and_shown(root, os.environ)
        protected = find_protected(root, find_repositories(root))
        limits = Limits(
            root, real_path(scratch), isolation.network, hidden=hidden, shown=shown, protected=protected.existing,
            git_folders=protected.git_folders,
        )  # fmt: skip
        yield _isolated(isolation, server, env, real_path(cwd), limits)


def _isolated(isolation: Isolation, server: McpServer, env: dict[str, str], cwd: Path, limits: Limits) -> ServerProgram:
    assert server.command is not None
    inner = ["/bin/sh", "-c", 'cd -- "$0" && exec "$@"', str(cwd), server.command, *server.args]
    outer = isolation.command(inner, limits, _STATUS, None if isolation.seccomp is None else _FILTER)
    source = limits.scratch / "calls"
    source.write_bytes(isolation.seccomp or b"")
    temp = isolation.temp(limits)
    own = {"TMPDIR": temp, "XDG_CACHE_HOME": f"{temp}/cache", **npm_settings(isolation, temp)}
    return ServerProgram(
        "/bin/sh", ["-c", _IN_FOLDER, str(limits.root), str(source), *outer], {**env, **own}, limits.root
    )


_RECENT = 50
_CLOSING = re.compile(
    r"[|+ -]+$|(?:Node\.js|Bun) v\d|note: run with `RUST_BACKTRACE"
    r"|npm (?:error|ERR!) (?:A complete log|Log files were|You can rerun|\s*/|$)"
)
"""What runtimes write after the reason of a crash."""
_NPM = re.compile(r"npm (?:error|ERR!) (?!code |syscall |errno |path |dest )")
_REASON = re.compile(r"\b(?:\w+\.)*\w*(?:Error|Exception)(?: \[\w+\])?(?:: .*)?$")


class ErrorOutput:
    """The standard error of one server's process: logged, with the last lines kept."""

    def __init__(self, server: str, words: Words) -> None:
        self._server = server
        self._words = words
        self._recent: deque[str] = deque(maxlen=_RECENT)

    @property
    def last(self) -> str:
        """The last non-empty line, for messages; of a crash that ends with a runtime's own words, the reason."""
        if not self._recent or not _CLOSING.match(self._recent[-1]):
            return self._recent[-1] if self._recent else ""
        npm = (line for line in self._recent if _NPM.match(line) and not _CLOSING.match(line))
        reasons = (found[0] for line in reversed(self._recent) if (found := _REASON.search(line)))
        others = (line for line in reversed(self._recent) if not _CLOSING.match(line))
        return next(chain(npm, reasons, others), self._recent[-1])

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Read the stream to its end."""
        rest = b""
        try:
            while chunk := await stream.read(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._read_line(line)
                rest = rest[:_MAX_LINE]
        finally:
            self._read_line(rest)

    def _read_line(self, line: bytes) -> None:
        if said := self._words(line.decode("utf-8", "replace")):
            self._recent.append(said)
            logger.debug("MCP server %r: %s", self._server, said)


MAX_MESSAGE = 16 * 1024 * 1024
"""Bytes of the longest message that is read."""
_MAX_UNANSWERED = 1_000
"""The most requests of a server whose answers it has not taken."""
_GRACE_SECONDS = 2.0
"""How long a server may take to end: once its input is closed, and again after SIGTERM and SIGKILL."""
_OUTPUT_SECONDS = 1.0
"""How long its output is read after its end, if a process that it left keeps it open."""
_SHOWN = 1_000
_ID = rb'"id"\s*:\s*(\d{1,18})\s*'
_ANSWER = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*(?:'
    + _ID
    + rb',\s*"(?:result|error)"|"(?:result|error)".*,\s*'
    + _ID
    + rb"\}\s*$)",
    re.DOTALL,
)
"""An answer that cannot be parsed, with its id before or after its content."""


class Flooded(Exception):
    """A server sends requests without taking the answers."""


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    def __init__(self, started: Callable[[Any], None], exited: Callable[[], None]) -> None:
        super().__init__(limit=MAX_MESSAGE, loop=asyncio.get_running_loop())
        self._started, self._exited = started, exited

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._started(transport)
        super().connection_made(transport)

    def process_exited(self) -> None:
        super().process_exited()
        self._exited()


class StdioTransport:
    """The SDK's write stream, and what `Watched` makes its read stream of.

    It ends when the process exits, along with all that it started.
    """

    def __init__(self, errors: ErrorOutput) -> None:
        self._errors = errors
        self._exited = asyncio.Event()
        self._unanswered = 0

    @contextlib.asynccontextmanager
    async def running(self, program: ServerProgram) -> AsyncIterator[Self]:
        """Start the process, and stop it in the end. Raises OSError if it cannot be started."""
        _, self._process = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Protocol(self._note_start, self._note_exit),
            program.command,
            *program.args,
            env=program.env,
            cwd=program.cwd,
            start_new_session=True,
        )
        assert self._process.stderr is not None
        self._reading = asyncio.create_task(self._errors.read(self._process.stderr))
        try:
            yield self
        finally:
            await self._stop()

    def _note_start(self, transport: asyncio.SubprocessTransport) -> None:
        # Before `subprocess_exec` returns, the process may have exited.
        self._transport = transport

    def _note_exit(self) -> None:
        self._exited.set()
        self._signal(signal.SIGKILL)
        asyncio.get_running_loop().call_later(_OUTPUT_SECONDS, self._end_output)

    def _end_output(self) -> None:
        output = self._transport.get_pipe_transport(1)
        assert output is not None
        output.close()

    def _signal(self, number: int) -> None:
        """Signal the process and those that it started, except what left its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)

    async def _stop(self) -> None:
        try:
            self._stdin.close()
            for number in (signal.SIGTERM, signal.SIGKILL, None):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GRACE_SECONDS):
                        await self._exited.wait()
                        break
                if number is not None:
                    self._signal(number)
            await asyncio.wait([self._reading], timeout=_OUTPUT_SECONDS)
        finally:
            if not self._exited.is_set():
                self._signal(signal.SIGKILL)
            with contextlib.suppress(PermissionError):
                self._transport.close()

    @property
    def _stdin(self) -> asyncio.StreamWriter:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> asyncio.StreamReader:
        assert self._process.stdout is not None
        return self._process.stdout

    async def send(self, item: SessionMessage) -> None:
        """Write a message; if the process takes no more, the output ends, too."""
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._stdin.write(f"{line}\n".encode())
            await self._stdin.drain()
        except ConnectionError:
            self._end_output()
        if not hasattr(item.message, "method"):
            self._unanswered -= 1

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """Return the next message, or why a line is none. Raises StopAsyncIteration at the end, Flooded."""
        while (line := await self._line()) is not None:
            # Otherwise all buffered lines would be read first, and each that is no message starts a task.
            await asyncio.sleep(0)
            if line.strip():
                return self._message(line)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Do nothing: `running` stops the process."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def _line(self) -> bytes | None:
        """Return the next line; of one that is too long, its start and its end as two. None at the end."""
        start = end = b""
        while True:
            try:
                line = await self._stdout.readuntil()
            except asyncio.IncompleteReadError as error:
                line = error.partial
            except asyncio.LimitOverrunError as error:
                part = await self._stdout.readexactly(error.consumed)
                start, end = start or part[:_SHOWN], part[-_SHOWN:]
                continue
            return start + b"\n" + (end + line)[-_SHOWN:] if start else line or None

    def _message(self, line: bytes) -> SessionMessage | Exception:
        from mcp.shared.message import SessionMessage
        from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCRequest

        try:
            if b"\n" in line[:-1]:
                raise ValueError(f"longer than {MAX_MESSAGE // 1024**2} MB")
            message = _parsed(line.decode("utf-8", "replace"))
        except ValueError as error:
            if (number := _answered(line)) is None:
                return error
            why = f"its answer is malformed: {words.of(error).lstrip(': ')}"
            message = JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=PARSE_ERROR, message=why))
        if isinstance(message, JSONRPCRequest):
            self._unanswered += 1
            if self._unanswered > _MAX_UNANSWERED:
                raise Flooded(f"it sent {_MAX_UNANSWERED:,} requests and took no answers")
        return SessionMessage(message)


def _parsed(text: str) -> JSONRPCMessage:
    from mcp.types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        # Pydantic refuses lone surrogates, which other parsers accept.
        with contextlib.suppress(ValueError):
            return jsonrpc_message_adapter.validate_python(parse_json(text), by_name=False)
        raise


def _answered(line: bytes) -> int | None:
    """Return the id of the request that a malformed message answers, None if it answers none."""
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError):
        found = _ANSWER.match(line[:_SHOWN] + line[-_SHOWN:])
        return None if found is None else int(found[1] or found[2])
    if not isinstance(data, dict) or "method" in data or not {"jsonrpc", "result", "error"} & data.keys():
        return None
    number = data.get("id")
    return number if isinstance(number, int) and not isinstance(number, bool) else None
