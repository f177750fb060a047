"""The Bash tool: a command line run in the project, isolated as far as the machine allows (REQ-026..028a, REQ-115)."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import threading
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from aeon_core.errors import ToolError
from aeon_core.plain import clean_text
from aeon_core.tools.base import Tool, Verdict
from aeon_core.tools.shell.blocklist import Match, check_patterns, judge
from aeon_core.tools.shell.commands import policy_texts, spellings
from aeon_core.tools.shell.environment import child_environment
from aeon_core.tools.shell.hidden import hidden_places
from aeon_core.tools.shell.isolation import Isolation, probe
from aeon_core.tools.shell.limits import Limits
from aeon_core.tools.shell.output import WHOLE_LIMIT, Output
from aeon_core.tools.shell.process import Ended, Job, run, shell_words
from aeon_core.tools.shell.settings import ShellSettings

_NO_NETWORK = re.compile(
    r"could not resolve host|name resolution|name or service not known|nodename nor servname|network is unreachable"
    r"|getaddrinfo|\benotfound\b|\beai_again\b|dns error|no address associated",
    re.IGNORECASE,
)
_NOTICED = {
    ".aeon": "made '.aeon', which configures Aeon's next run here: look at it before that",
    ".git/config": "changed '.git/config', which may say what git runs: look at it before git is used",
    ".git/commondir": "changed '.git/commondir', by which git takes hooks and settings from elsewhere: remove it",
}
_TEXT: dict[str, Any] = {"type": "string"}


class BashTool(Tool):
    """Runs a command line with bash in the project root.

    A command that the blocklist matches is refused in strict mode, and asked about in permissive mode; where no
    isolation holds, every command is asked about. The isolation is tried out once, when it is first needed. Raises
    UsageError for a pattern that is no regular expression.
    """

    name = "Bash"
    effect = "unsafe"
    needs_approval = True
    examples = ({"command": "git status --short"}, {"command": "python -m pytest -q", "timeout": 300})

    def __init__(self, root: Path, settings: ShellSettings | None = None, isolation: Isolation | None = None) -> None:
        self._root = root.resolve()
        self._settings = settings if settings is not None else ShellSettings()
        check_patterns(self._settings.blocklist)
        self._found = isolation
        self._folders = _Folders(self._settings.output_dir)
        self._lock = threading.Lock()
        self._running: set[threading.Event] = set()
        self.description = _description(self._settings)
        self.input_schema = _input_schema(self._settings)
        self.output_schema = _OUTPUT_SCHEMA

    @property
    def isolation(self) -> Isolation:
        """What commands are held to on this machine."""
        if self._found is None:
            self._found = probe(self._root, self._settings)
        return self._found

    def verdict(self, arguments: dict[str, Any]) -> Verdict | None:
        """Return `deny` or `ask` for a blocklisted command, `ask` where nothing isolates it, else None (REQ-115)."""
        match = judge(_command(arguments), self._settings.blocklist)
        if match is not None:
            return self._blocked(match)
        if self.isolation.name == "none":
            return Verdict("ask", f"no isolation is available ({self.isolation.why}): every command needs approval")
        return None

    def parts(self, arguments: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the arguments once for each simple command that would run; None where that cannot be told."""
        texts = policy_texts(_command(arguments))
        return None if texts is None else [{**arguments, "command": text} for text in texts]

    def spellings(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the arguments once for each command in its plainest form, for rules that ask or deny."""
        return [{**arguments, "command": text} for text in spellings(_command(arguments))]

    def invoke(self, command: str, timeout: float | None = None, description: str | None = None) -> dict[str, Any]:  # noqa: ARG002  # what the model says for people
        """Return stdout, stderr and exit_code of the command, whatever the code is (REQ-026).

        `timeout` is in seconds. Raises ToolError for a command that strict mode refuses, and where it cannot be run.
        """
        match = judge(command, self._settings.blocklist)
        if match is not None and self._settings.safety_mode == "strict":
            raise self._error(self._blocked(match).reason)
        if not self._root.is_dir():
            raise self._error(f"the project root {str(self._root)!r} is no folder; create it or choose another one")
        seconds = min(timeout if timeout is not None else self._settings.timeout, self._settings.max_timeout)
        output = Output(self._folders.outputs)
        before = _acted_upon(self._root)
        ended = self._run(clean_text(command), seconds, output)
        notices = list(self._notices(ended, seconds, output))
        after = _acted_upon(self._root)
        notices += [f"the command {_NOTICED[name]}" for name in after if after[name] != before[name]]
        return _result(ended, output, notices, self.isolation.name)

    def close(self) -> None:
        """End the commands that are running; called from any thread. Their calls raise ToolError."""
        with self._lock:
            for cancelled in self._running:
                cancelled.set()

    def _run(self, command: str, seconds: float, output: Output) -> Ended:
        isolation, shell = self.isolation, shutil.which("bash")
        if shell is None:
            raise self._error("bash is not installed, or not on the PATH; install it")
        limits = Limits(
            self._root,
            self._folders.scratch(),
            isolation.network,
            hidden=tuple(hidden_places(self._root, os.environ)),
            shown=self._folders.shown(),
        )
        words = shell_words(shell, command)
        job = Job(
            lambda status: isolation.command(words, limits, status),
            isolation.supervised,
            self._root,
            child_environment(os.environ, self._settings.env, isolation.temp(limits)),
            seconds,
        )
        cancelled = threading.Event()
        with self._lock:
            self._running.add(cancelled)
        try:
            ended = run(job, output, cancelled)
        except ToolError as error:
            raise self._error(error.message) from None
        finally:
            with self._lock:
                self._running.discard(cancelled)
        if ended.by == "cancel":
            raise self._error("the command was ended, since the tool was closed")
        return ended

    def _blocked(self, match: Match) -> Verdict:
        what = f"{match.command!r} matches the blocklist's pattern {match.pattern!r} ({match.why})"
        if self._settings.safety_mode == "strict":
            return Verdict("deny", f"{what}; safety_mode 'permissive' would ask instead of refusing")
        return Verdict("ask", what)

    def _notices(self, ended: Ended, seconds: float, output: Output) -> list[str]:
        notices = []
        if ended.by == "timeout":
            notices.append(f"the command was ended after {seconds:g} seconds; a longer 'timeout' can be asked for")
        if ended.by == "output":
            notices.append(f"the command was ended, since it wrote more than {WHOLE_LIMIT // 1_000_000} MB")
        if output.problem:
            notices.append(output.problem)
        if ended.exit_code and not self.isolation.network and _NO_NETWORK.search(output.text("stderr")):
            notices.append("commands run without network here; a person can open it in the settings of the shell")
        return notices

    def _error(self, message: str) -> ToolError:
        return ToolError(message, tool_name=self.name)


def shell_tools(root: Path, settings: ShellSettings | None = None, isolation: Isolation | None = None) -> list[Tool]:
    """Return the tools that `--tools shell` stands for. Raises UsageError for a bad pattern of the blocklist."""
    return [BashTool(root, settings, isolation)]


class _Folders:
    """Where commands put temporary files, until the tool is gone, and where long outputs are kept."""

    def __init__(self, outputs: Path | None) -> None:
        self._outputs = outputs
        self._made: Path | None = None
        self._scratch: Path | None = None

    def scratch(self) -> Path:
        if self._scratch is None or not self._scratch.is_dir():
            self._scratch = Path(tempfile.mkdtemp(prefix="aeon-shell-")).resolve()
            weakref.finalize(self, partial(shutil.rmtree, self._scratch, ignore_errors=True))
        return self._scratch

    def outputs(self) -> Path:
        if self._made is None:
            if self._outputs is None:
                self._made = Path(tempfile.mkdtemp(prefix="aeon-output-")).resolve()
            else:
                self._outputs.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._made = self._outputs.resolve()
        return self._made

    def shown(self) -> tuple[Path, ...]:
        return () if self._made is None else (self._made,)


def _acted_upon(root: Path) -> dict[str, tuple[int, ...]]:
    """Return what tells a change of the places that isolation leaves open though others act upon them."""
    found: dict[str, tuple[int, ...]] = {}
    for name in _NOTICED:
        found[name] = ()
        with suppress(OSError):
            status = (root / name).lstat()
            # A folder changes with each file in it: that it is there is what counts.
            is_folder = stat.S_ISDIR(status.st_mode)
            found[name] = (1,) if is_folder else (status.st_ino, status.st_mtime_ns, status.st_size)
    return found


def _command(arguments: dict[str, Any]) -> str:
    command = arguments.get("command")
    return command if isinstance(command, str) else ""


def _result(ended: Ended, output: Output, notices: list[str], isolation: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "stdout": output.text("stdout"),
        "stderr": output.text("stderr"),
        "exit_code": ended.exit_code,
        "timed_out": ended.by == "timeout",
        "truncated": output.truncated,
        "isolation": isolation,
    }
    if output.path is not None:
        result["output_file"] = str(output.path)
    if notices:
        result["notices"] = notices
    return result


def _description(settings: ShellSettings) -> str:
    network = "" if settings.network else " Where the machine can isolate commands, they have no network."
    return (
        "Runs a command line with bash in the project root and returns stdout, stderr and the exit code. Each call is "
        "a new shell without input: nothing can be answered, and what it leaves running is ended with it. Files can "
        f"be written in the project and in $TMPDIR.{network}"
    )


def _input_schema(settings: ShellSettings) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1, "description": "The command line, as typed into bash."},
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": settings.max_timeout,
                "default": settings.timeout,
                "description": "Seconds after which the command and all it started is ended.",
            },
            "description": {"type": "string", "description": "What the command is for, in a few words for a person."},
        },
        "required": ["command"],
        "additionalProperties": False,
    }


_OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "stdout": _TEXT,
        "stderr": _TEXT,
        "exit_code": {"type": "integer", "description": "128 + n where signal n ended it, 124 after a time-out."},
        "timed_out": {"type": "boolean"},
        "truncated": {"type": "boolean", "description": "Whether stdout or stderr is longer than shown."},
        "output_file": {"type": "string", "description": "The whole output, where it was truncated."},
        "isolation": {"type": "string", "description": "What the command was held by, 'none' for nothing."},
        "notices": {"type": "array", "items": _TEXT, "description": "What a reader should know of how it ran."},
    },
    "required": ["stdout", "stderr", "exit_code", "timed_out", "truncated", "isolation"],
    "additionalProperties": False,
}
