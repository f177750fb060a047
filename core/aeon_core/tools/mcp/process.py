"""The process of an MCP server: how it starts, in the sandbox if its settings say so, and its error output."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aeon_core.paths import real_path
from aeon_core.tools.mcp.settings import McpServer
from aeon_core.tools.mcp.tool import Words, words
from aeon_core.tools.protected_paths import find_protected, find_repositories
from aeon_core.tools.shell.isolation import Isolation, Limits, probe
from aeon_core.tools.shell.secret_paths import hidden_and_shown
from aeon_core.tools.shell.settings import ShellSettings

logger: logging.Logger = logging.getLogger("aeon")

_CHUNK = 65_536
_MAX_LINE = 4_000


class Unusable(Exception):
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
class Program:
    """The program started in place of a server's command."""

    command: str
    args: list[str]
    env: dict[str, str]
    cwd: Path


@contextmanager
def program(server: McpServer, values: Mapping[str, str], project_root: Path) -> Iterator[Program]:
    """Yield the program that runs a server, in the sandbox if its settings say so. Blocks while it probes for one.

    Raises Unusable if there is no such folder, command or sandbox.
    """
    assert server.command is not None
    cwd = project_root / (server.cwd or Path()).expanduser()
    if not cwd.is_dir():
        raise Unusable(f"its 'cwd' {str(cwd)!r} is not a folder; fix it")
    env = {**{name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}, **values}
    if not server.sandbox:
        yield Program(server.command, server.args, env, cwd)
        return
    # A command such as `./server` is relative to its folder.
    command = str(cwd / server.command) if os.sep in server.command else server.command
    if shutil.which(command, path=env.get("PATH", os.defpath)) is None:
        raise Unusable(f"its command {words(server.command)!r} was not found; install it or fix 'command'")
    root = real_path(project_root)
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
            root, real_path(scratch), isolation.network, hidden=hidden, shown=shown, protected=protected.existing,
            git_folders=protected.git_folders,
        )  # fmt: skip
        yield _isolated(isolation, server, env, real_path(cwd), limits)


def _isolated(isolation: Isolation, server: McpServer, env: dict[str, str], cwd: Path, limits: Limits) -> Program:
    assert server.command is not None
    inner = ["/bin/sh", "-c", 'cd -- "$0" && exec "$@"', str(cwd), server.command, *server.args]
    outer = isolation.command(inner, limits, _STATUS, None if isolation.seccomp is None else _FILTER)
    source = limits.scratch / "calls"
    source.write_bytes(isolation.seccomp or b"")
    temp = isolation.temp(limits)
    own = {"TMPDIR": temp, "XDG_CACHE_HOME": f"{temp}/cache"}
    return Program("/bin/sh", ["-c", _IN_FOLDER, str(limits.root), str(source), *outer], {**env, **own}, limits.root)


class ErrorOutput:
    """The standard error of one server's process: logged, with the last line kept."""

    def __init__(self, server: str, words: Words) -> None:
        self._server = server
        self._words = words
        self.last: str = ""
        """The last non-empty line, for messages."""

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
            self.last = said
            logger.debug("MCP server %r: %s", self._server, said)
