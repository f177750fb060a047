"""Runs one command: reads both streams as they arrive, and ends all its processes whatever happens."""

from __future__ import annotations

import codecs
import json
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aeon_core.errors import ToolError, reason_of
from aeon_core.process import hide_process

Stream = Literal["stdout", "stderr"]

SHOWN_LIMIT = 100 * 1024
"""The most bytes of a stream that the model gets (REQ-026)."""
WHOLE_LIMIT = 50 * 1000 * 1000
"""The most bytes that a command may write before it is ended."""


class CommandOutput:
    """Collects both streams of one command, up to `whole` bytes of both together.

    Of a stream longer than `shown` bytes, `text` returns the first and the last half of that many. If one is longer,
    `close` saves everything, in order of arrival, to a file in the folder that `folder` returns.
    """

    def __init__(self, folder: Callable[[], Path], shown: int = SHOWN_LIMIT, whole: int = WHOLE_LIMIT) -> None:
        self._folder = folder
        self._half = shown // 2
        self._whole = whole
        self._all = bytearray()
        self._streams: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.path: Path | None = None
        """The file with the whole output, once there is one."""
        self.problem: str | None = None
        """Why there is no such file."""

    @property
    def truncated(self) -> bool:
        """Whether a stream is longer than what is shown of it."""
        return any(len(stream) > 2 * self._half for stream in self._streams.values())

    @property
    def is_full(self) -> bool:
        """Whether the command has written more than it may."""
        return len(self._all) > self._whole

    def add(self, stream: Stream, chunk: bytes) -> None:
        """Add the next part of a stream. What exceeds the limit is dropped."""
        chunk = chunk[: self._whole + 1 - len(self._all)]
        self._streams[stream] += chunk
        self._all += chunk

    def text(self, stream: Stream) -> str:
        """Return a stream as text, invalid UTF-8 replaced; if something is left out, a line says how much."""
        data = bytes(self._streams[stream])
        left_out = len(data) - 2 * self._half
        if left_out <= 0:
            return data.decode("utf-8", "replace")
        # A character that the cut splits is left out, not shown as invalid.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(data[: self._half])
        tail = data[-self._half :]
        start = next((at for at in range(4) if tail[at] & 0xC0 != 0x80), 0)
        hint = "" if self.path is None else f"; the whole output is in {self.path}"
        return f"{head}\n[TRUNCATED] {left_out} bytes left out{hint}\n{tail[start:].decode('utf-8', 'replace')}"

    def close(self) -> None:
        """Save the whole output if not all of it is shown."""
        if not self.truncated or self.path is not None:
            return
        made: Path | None = None
        try:
            descriptor, name = tempfile.mkstemp(prefix="output-", suffix=".log", dir=self._folder())
            made = Path(name)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self._all)
        except OSError as error:
            self.problem = f"could not save the whole output: {error.strerror}"
            if made is not None:
                made.unlink(missing_ok=True)  # on a full disk, it takes the room of everything else
        else:
            self.path = made


EndedBy = Literal["itself", "timeout", "output", "cancel"]

TIMEOUT_CODE = 124
"""The exit code of a command that took too long, as with `timeout`."""
_MORE_PROCESSES = 2048
"""The most processes and threads that a command may have."""
_BOUND = 'ulimit -u "$1" 2>/dev/null; ulimit -c 0; shift; exec "$@"'
_WITHOUT_OPTIONS = "GLOBIGNORE=-*; shopt -u dotglob; "
"""Placed before a line, so that no pattern in it matches a name like `--pre=x`, which programs would treat as an
option. It is part of the same line, since errors have line numbers.
"""
_THREADS_FIELD = 17
_TICK = 0.05
_CHUNK = 65536
_LONGEST_STOP = 6.0
_LONGEST_DRAIN = 0.5


@dataclass(frozen=True, slots=True)
class CommandEnding:
    """How a command ended: `exit_code` is 128 + n if signal n ended it, TIMEOUT_CODE after a timeout."""

    exit_code: int
    by: EndedBy


@dataclass(frozen=True, slots=True)
class CommandJob:
    """A command to run: `command` returns its words, given the descriptor that receives the exit code.

    It is also given a descriptor from which `seccomp` can be read, None without such a filter program. `supervised`
    says that the program reports there, and ends all its processes when it is ended.
    """

    command: Callable[[int, int | None], list[str]]
    supervised: bool
    cwd: Path
    env: Mapping[str, str]
    timeout: float
    """Seconds."""
    seccomp: bytes | None = None


def run(job: CommandJob, output: CommandOutput, cancelled: threading.Event | None = None) -> CommandEnding:
    """Run a command to its end, without input, and collect what it writes (REQ-026).

    It ends when its first process does, at the timeout, when it has written more than `output` accepts, or when
    `cancelled` is set; whatever it left running is ended too, even if this call is interrupted. Raises ToolError if it
    could not be started.
    """
    status, report = os.pipe()
    try:
        process = _start(job, report)
    except BaseException:
        os.close(status)
        raise
    finally:
        os.close(report)
    reader = _Reader(process, output)
    try:
        by = reader.follow(time.monotonic() + job.timeout, cancelled or threading.Event())
    finally:
        _stop(process, job.supervised)
        reader.drain()
        with os.fdopen(status, "rb") as pipe:
            os.set_blocking(pipe.fileno(), False)
            reported = pipe.read() or b""
    return CommandEnding(_exit_code(process, by, reported if job.supervised else None, output), by)


def shell_words(shell: str, command: str) -> list[str]:
    """Return the words that run a command line with the given bash, without start-up files, dumps, or endless forking.

    Patterns in the line match no name that begins with a hyphen. The kernel exempts root from the limit on processes.
    """
    bare = [shell, "--noprofile", "--norc", "-c"]
    return [*bare, _BOUND, "bash", str(_own_threads() + _MORE_PROCESSES), *bare, _WITHOUT_OPTIONS + command]


def _own_threads() -> int:
    """Return the number of this user's threads: the limit counts all, on older kernels even outside a sandbox."""
    threads = 0
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            if place.stat().st_uid == os.getuid():
                threads += int((place / "stat").read_bytes().rpartition(b")")[2].split()[_THREADS_FIELD])
    return threads


def _start(job: CommandJob, report: int) -> subprocess.Popen[bytes]:
    hide_process()
    seccomp = None
    if job.seccomp is not None:
        seccomp, writing = os.pipe()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(job.seccomp)  # far less than a pipe holds
    try:
        return subprocess.Popen(  # noqa: S603  # what this is for
            job.command(report, seccomp),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=job.cwd,
            env=dict(job.env),
            pass_fds=(report,) if seccomp is None else (report, seccomp),
            start_new_session=True,
        )
    except ValueError as error:
        raise ToolError(f"the command cannot be run: {error}; it must not hold NUL characters") from None
    except OSError as error:
        raise ToolError(f"the command cannot be run: {reason_of(error)}") from None
    finally:
        if seccomp is not None:
            os.close(seccomp)


class _Reader:
    """Reads what a process writes, until stopped."""

    def __init__(self, process: subprocess.Popen[bytes], output: CommandOutput) -> None:
        self._process = process
        self._output = output
        self._selector = selectors.DefaultSelector()
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, name)

    def follow(self, deadline: float, cancelled: threading.Event) -> EndedBy:
        """Read until the process has ended or should be ended, and return why."""
        while True:
            left = deadline - time.monotonic()
            if cancelled.is_set():
                return "cancel"
            if left <= 0:
                return "timeout"
            self._read(min(left, _TICK))
            if self._output.is_full:
                return "output"
            if self._process.poll() is not None:
                return "itself"

    def drain(self) -> None:
        """Read what is left in the pipes, and close them; a process that escaped may hold them open."""
        latest = time.monotonic() + _LONGEST_DRAIN
        while self._selector.get_map() and not self._output.is_full and time.monotonic() < latest:
            self._read(_TICK)
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        self._output.close()

    def _read(self, wait: float) -> None:
        if not self._selector.get_map():
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(wait)
            return
        for key, _ in self._selector.select(wait):
            if chunk := os.read(key.fd, _CHUNK):
                self._output.add(key.data, chunk)
            else:
                self._selector.unregister(key.fileobj)


def _stop(process: subprocess.Popen[bytes], supervised: bool) -> None:
    """End the process and everything it started; a supervising one gets time to end the others."""
    if supervised and process.poll() is None:
        process.terminate()
        process.send_signal(signal.SIGCONT)  # the command may have stopped it
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LONGEST_STOP)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _exit_code(process: subprocess.Popen[bytes], by: EndedBy, reported: bytes | None, output: CommandOutput) -> int:
    if by != "itself":
        return TIMEOUT_CODE if by == "timeout" else 128 + signal.SIGKILL
    code = process.returncode
    if reported is not None and (known := _reported(reported)) is not None:
        return known
    if reported is not None and code > 0:
        raise ToolError(f"the command was not run because its isolation failed: {output.text('stderr').strip()[-500:]}")
    return code if code >= 0 else 128 - code


def _reported(lines: bytes) -> int | None:
    for line in lines.splitlines():
        with suppress(ValueError):
            code = json.loads(line).get("exit-code")
            if isinstance(code, int):
                return code
    return None
