"""The Bash tool: a command line run in the project, isolated as far as the machine allows (REQ-026..028a, REQ-115)."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from aeon_core.errors import ToolError
from aeon_core.json_safe import clean_text
from aeon_core.paths import program_outside, real_path
from aeon_core.tools.base import CallVerdict, Effect, Tool, object_schema
from aeon_core.tools.protected_paths import (
    ProtectedPaths,
    change_reason,
    file_state,
    find_protected,
    find_repositories,
    git_folders,
    is_plain_todo,
    placeholders,
)
from aeon_core.tools.shell.blocklist import BlockedCommand, judge
from aeon_core.tools.shell.commands import exit_code_of, policy_texts, read, rule_pattern, spellings, unknown_program
from aeon_core.tools.shell.environment import child_environment, git_settings
from aeon_core.tools.shell.isolation import Isolation, Limits, npm_settings, probe
from aeon_core.tools.shell.process import WHOLE_LIMIT, CommandEnding, CommandOutput, run, shell_words
from aeon_core.tools.shell.secret_paths import hidden_and_shown, homes, words
from aeon_core.tools.shell.settings import ShellSettings
from aeon_core.units import count

_NO_NETWORK = re.compile(
    r"could not resolve host|name resolution|name or service not known|nodename nor servname|network is unreachable"
    r"|getaddrinfo|\benotfound\b|\beai_again\b|dns error|no address associated|\blookup \S+ on \S+:53\b",
    re.IGNORECASE,
)
_READ_ONLY = re.compile(r"read-only file system|\berofs\b|errno 30\b|device or resource busy", re.IGNORECASE)
_NO_SOCKET = re.compile(
    r"(?:socket|\.sock\b|af_unix|daemon|agent)[\s\S]{0,300}?(?:operation not permitted|permissionerror|\beperm\b)", re.I
)
_RUN_FROM = {
    ".venv/bin": frozenset(words("uv poetry pdm hatch pipenv rye")),
    "node_modules/.bin": frozenset(words("npx bunx pnpx npm pnpm yarn")),
}
"""Folders with an environment's programs, and what runs these."""
_SHOWS_ERRORS = re.compile(r"2>&1|\|&|\$\?")
"""A line like `pytest 2>&1 | tail`, whose errors may be in its output, with the exit code of another command."""
_NOT_THERE = re.compile(r"no such file|\benoent\b", re.IGNORECASE)
_REFUSED = re.compile(rf"permission denied|\beacces\b|{_READ_ONLY.pattern}", re.IGNORECASE)
_NEAR = 5
"""Lines in which a path and the reason are sought: cargo writes the reason some lines below."""
_FRAME = re.compile(r'\s*(?:File "|at )')
"""A line of a stack trace, which names the toolchain's own files."""
_UNSIGNED = re.compile(r"failed to sign the data|couldn't load public key|signing failed", re.IGNORECASE)
_LINKED = (
    "commands cannot use the repository that the link '.git' leads to, since it does not name this project: a person "
    'can change that in a terminal, with `git config core.worktree "$PWD"`'
)
_NO_SIGNING = "commits cannot be signed here, since commands have none of your keys: a person can commit, in a terminal"
_NO_HOME = (
    "the home folder is out of reach of commands, except that they can read toolchains: give the program a folder in "
    "$TMPDIR, as with CARGO_HOME or GRADLE_USER_HOME"
)
_MAX_REPOSITORIES = 5
_ASK = "a person can, in a terminal; Write and Edit can, with a person's approval"
_INSTEAD = {
    ".venv": "a person installs packages, in a terminal; or make another with `python -m venv $TMPDIR/venv`",
    ".git": "a person makes a repository here, with `git init` in a terminal",
}
_TEXT: dict[str, Any] = {"type": "string"}


class BashTool(Tool):
    """Runs a command line with bash in the project root.

    A command that the blocklist matches is refused in strict mode, and asked about in permissive mode; if no isolation
    works, every command is asked about. The isolation is tested once, when it is first needed.
    """

    name = "Bash"
    effect: Effect = "unsafe"
    needs_approval = True
    examples: tuple[dict[str, Any], ...] = (
        {"command": "git status --short"},
        {"command": "python -m pytest -q", "timeout": 300},
    )

    def __init__(self, root: Path, settings: ShellSettings | None = None, isolation: Isolation | None = None) -> None:
        self._root = real_path(root)
        self._settings = settings if settings is not None else ShellSettings()
        self._isolation = isolation
        outputs = self._settings.output_dir
        if outputs is not None and outputs.is_relative_to(root):
            outputs = self._root / outputs.relative_to(root)
        self._folders = _Folders(self._root, outputs)
        self._repositories: list[Path] | None = None
        self._known: set[Path] = set()
        self._visible: tuple[tuple[object, ...], tuple[Path, ...], tuple[Path, ...]] | None = None
        self._lock = threading.Lock()
        self._running: set[threading.Event] = set()
        self.description: str = _description(self._settings)
        self.input_schema: dict[str, Any] = _input_schema(self._settings)
        self.output_schema = _OUTPUT_SCHEMA

    @property
    def isolation(self) -> Isolation:
        """How commands are confined on this machine."""
        if self._isolation is None:
            self._isolation = probe(self._root, self._settings)
        return self._isolation

    def verdict(self, arguments: dict[str, Any]) -> CallVerdict | None:
        """Return `deny` or `ask` for a blocklisted command, `ask` if nothing isolates it, else None (REQ-115)."""
        match = judge(_command(arguments), self._settings.blocklist)
        if match is not None:
            return self._blocked(match)
        if doubt := unknown_program(_command(arguments)):
            return CallVerdict("ask", f"{doubt}: no rule can allow that{self._by_path(_command(arguments))}")
        if self.isolation.name == "none":
            return CallVerdict("ask", f"no isolation is available ({self.isolation.why}): every command needs approval")
        return None

    def _by_path(self, command: str) -> str:
        """Return what to run instead of `uv run` or `npx`; empty for other commands, and without an environment."""
        programs = {each.program for each in read(command).commands}
        found = [place for place, runners in _RUN_FROM.items() if programs & runners and (self._root / place).is_dir()]
        return f", but one can allow programs that are run by their path in {' or '.join(found)}" if found else ""

    def parts(self, arguments: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the arguments once for each simple command that would run; None if that is unknown."""
        texts = policy_texts(_command(arguments))
        return None if texts is None else [{**arguments, "command": text} for text in texts]

    def rule_pattern(self, arguments: dict[str, Any]) -> str | None:
        """Return a pattern for the command with any arguments if it only reads, else for this command alone."""
        return rule_pattern(_command(arguments))

    def spellings(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the arguments once for each command in its plainest form, for rules that ask or deny."""
        return [{**arguments, "command": text} for text in spellings(_command(arguments))]

    def invoke(self, command: str, timeout: float | None = None, description: str | None = None) -> dict[str, Any]:  # noqa: ARG002  # what the model says for people
        """Return stdout, stderr and exit_code of the command, whatever the code is (REQ-026).

        `timeout` is in seconds. Raises ToolError for a command that strict mode refuses, and if it cannot be run.
        """
        match = judge(command, self._settings.blocklist)
        if match is not None and self._settings.safety_mode == "strict":
            raise ToolError(self._blocked(match).reason)
        if not self._root.is_dir():
            raise ToolError(f"the project root {str(self._root)!r} is not a folder; create it or choose another")
        seconds = min(timeout if timeout is not None else self._settings.timeout, self._settings.max_timeout)
        output = CommandOutput(self._folders.outputs)
        with self._cancellable() as cancelled:
            protected = self._protected()
            before = _states((*protected.existing, *protected.missing, *protected.watched))
            ended, held = self._run(clean_text(command), seconds, output, protected, cancelled)
        if ended.by == "cancel":
            raise ToolError("the command was stopped because the tool was closed")
        notices = [*self._notices(ended, seconds, output), *self._refusals(ended, command, output, protected)]
        after = _states(path for path in before if path not in held)
        changed = [path for path, state in after.items() if state != before[path] and not is_plain_todo(path)]
        notices += map(self._changed, changed)
        notices += self._new_repositories()
        code_of = exit_code_of(command) if ended.by == "itself" else ""
        return _result(ended, code_of, output, notices, self.isolation.name)

    def close(self) -> None:
        """End the commands that are running; called from any thread. Their calls raise ToolError."""
        with self._lock:
            for cancelled in self._running:
                cancelled.set()

    def _new_repositories(self) -> Iterator[str]:
        """Yield a warning about each repository that commands made. Nothing prevents it, and once it is added to the
        index, `git status` in the project runs what its settings name.
        """
        made = sorted(set(find_repositories(self._root)).difference(self._known))
        self._known.update(made)
        for path in made[:_MAX_REPOSITORIES]:
            name = self._name(path)
            yield f"the command made {name!r}, a git repository whose settings git obeys: check them before you use git"
        if more := len(made[_MAX_REPOSITORIES:]):
            yield f"the command made {count(more, 'more git folder')}: check their settings, too"

    def _protected(self) -> ProtectedPaths:
        if self._repositories is None:
            self._repositories = find_repositories(self._root)
            self._known.update(self._repositories)
        return find_protected(self._root, self._repositories)

    def _run(
        self,
        command: str,
        seconds: float,
        output: CommandOutput,
        protected: ProtectedPaths,
        cancelled: threading.Event,
    ) -> tuple[CommandEnding, Collection[Path]]:
        """Return how the command ended, and the protected paths that it could not change."""
        isolation, shell = self.isolation, shutil.which("bash")
        if shell is None:
            raise ToolError("bash is not installed, or not on the PATH; install it")
        with placeholders(self._root, protected.missing if isolation.protects else ()) as made:
            limits = self._limits(protected, made)
            environment = self._environment(isolation.temp(limits))
            job = isolation.job(shell_words(shell, command), limits, environment, seconds)
            places = (*protected.existing, *made)
            held = places if isolation.protects and not any(map(_has_other_name, places)) else ()
            return run(job, output, cancelled), held

    def _limits(self, protected: ProtectedPaths, made: tuple[Path, ...]) -> Limits:
        hidden, shown = self._hidden_and_shown()
        return Limits(
            self._root,
            self._folders.scratch(),
            self.isolation.network,
            hidden=hidden,
            shown=(*shown, *self._folders.shown()),
            protected=protected.existing,
            placeholders=made,
            git_folders=protected.git_folders,
        )

    def _hidden_and_shown(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Return both, cached while homes and environment are unchanged: a search takes as long as a command."""
        changed = (*(home.stat().st_mtime_ns for home in homes(os.environ)), *os.environ.items())
        if self._visible is None or self._visible[0] != changed:
            self._visible = changed, *hidden_and_shown(self._root, os.environ, self._settings.readable)
        return self._visible[1:]

    def _environment(self, temp: str) -> dict[str, str]:
        environment = child_environment(os.environ, self._settings.env, temp)
        if self.isolation.name == "none":
            return environment
        # Git's own settings file is hidden with the home.
        own = {"GIT_CONFIG_GLOBAL": str(self._folders.git_settings())} | environment
        npm = npm_settings(self.isolation, temp)
        return own | {name: value for name, value in npm.items() if name not in self._settings.env}

    @contextmanager
    def _cancellable(self) -> Iterator[threading.Event]:
        """Yield the event that `close` sets while a command is prepared and runs."""
        cancelled = threading.Event()
        with self._lock:
            self._running.add(cancelled)
        try:
            yield cancelled
        finally:
            with self._lock:
                self._running.discard(cancelled)

    def _blocked(self, match: BlockedCommand) -> CallVerdict:
        what = f"{match.command!r} matches the blocklist's pattern {match.pattern!r} ({match.why})"
        if self._settings.safety_mode == "strict":
            return CallVerdict("deny", f"{what}; with safety_mode 'permissive' you are asked instead")
        return CallVerdict("ask", what)

    def _notices(self, ended: CommandEnding, seconds: float, output: CommandOutput) -> list[str]:
        notices = []
        if ended.by == "timeout":
            notices.append(f"the command was stopped after {seconds:g} seconds; a longer 'timeout' is possible")
        if ended.by == "output":
            notices.append(f"the command was stopped because it wrote more than {WHOLE_LIMIT // 1_000_000} MB")
        if output.problem:
            notices.append(output.problem)
        return notices

    def _refusals(
        self, ended: CommandEnding, command: str, output: CommandOutput, protected: ProtectedPaths
    ) -> Iterator[str]:
        """Yield why a command may have failed because of its limits, and what to do instead."""
        text = output.text("stderr") + output.text("stdout")
        if not ended.exit_code and not _SHOWS_ERRORS.search(command):
            return
        # Under Landlock, commands cannot create sockets at all.
        pattern = _NO_SOCKET if self.isolation.name == "landlock" else _NO_NETWORK
        if not self.isolation.network and (_NO_NETWORK.search(text) or pattern.search(text)):
            yield "commands have no network here; a person can allow it in the shell settings"
        refused = self._repository_outside(text)
        if not refused and self.isolation.protects and _READ_ONLY.search(text):
            for name in map(self._name, (*protected.existing, *protected.missing)):
                if name in text or name in command or (name == ".venv" and "site-packages" in text):
                    refused.append(f"commands cannot change {name!r}: {_INSTEAD.get(name, _ASK)}")
        if not refused and self.isolation.name != "none":
            refused += [_NO_SIGNING] if _UNSIGNED.search(text) else [_NO_HOME] if self._needs_home(text) else []
        yield from refused
        if self.isolation.seccomp and _NO_SOCKET.search(text):
            yield (
                "Unix sockets are blocked for commands: local services such as Docker or ssh-agent, and programs that "
                "need such a socket, such as Chromium or Python's multiprocessing.Manager, work only in a terminal"
            )

    def _repository_outside(self, text: str) -> list[str]:
        """Return a notice if a command failed because the project's git repository is outside; else nothing."""
        link = self._root / ".git"
        if self.isolation.name == "none" or (os.path.lexists(link) and not link.is_symlink()):
            return []
        if link.is_symlink():
            return [_LINKED] if "not a git repository" in text and not git_folders(link) else []
        above = next((folder for folder in self._root.parents if os.path.lexists(folder / ".git")), None)
        is_why = above and ("not a git repository" in text or (f"{above}/.git/" in text and _READ_ONLY.search(text)))
        where = f"the project is only a part of the git repository {str(above)!r}, which commands cannot use"
        return [f"{where}: a person can start Aeon with that folder as the project root"] if is_why else []

    def _needs_home(self, text: str) -> bool:
        """Return whether an error in a command's output seems to be about a path in a home, outside the project."""
        places = {str(home) for home in (Path(os.environ.get("HOME", "/")), *homes(os.environ))} - {"/"}
        places = {f"{place}/" for place in places if not real_path(place).is_relative_to(self._root)}
        lines = [line for line in text.replace(str(self._root), "").splitlines() if not _FRAME.match(line)]
        named = (number for number, line in enumerate(lines) if any(place in line for place in places))
        return any(_NOT_THERE.search(lines[at]) or _REFUSED.search("\n".join(lines[at : at + _NEAR])) for at in named)

    def _changed(self, path: Path) -> str:
        name = self._name(path)
        reason = change_reason(self._root, PurePosixPath(name)) or "is used by other programs"
        return f"the command changed {name!r}, which {reason}: check it before it is used"

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else str(path)


def shell_tools(
    root: Path, settings: ShellSettings | None = None, isolation: Isolation | None = None
) -> list[BashTool]:
    """Return the tools of `--tools shell`."""
    return [BashTool(root, settings, isolation)]


class _Folders:
    """The folders for commands' temporary files, which last as long as the tool, and for long outputs."""

    def __init__(self, root: Path, outputs: Path | None) -> None:
        self._root, self._outputs = root, outputs
        self._base: Path | None = None

    def scratch(self) -> Path:
        return self._own() / "tmp"

    def git_settings(self) -> Path:
        """Return a file with the user's git settings that commands may read."""
        path = self._own() / "gitconfig"
        if not path.exists():
            git = program_outside(self._root, "git")
            path.write_text(git_settings(git, os.environ, self._root, self._own()) if git else "")
        return path

    def outputs(self) -> Path:
        # Commands may read it, so a link in the project, which anybody may have made, must not lead it elsewhere.
        if self._outputs is None or (
            self._outputs.is_relative_to(self._root) and not real_path(self._outputs).is_relative_to(self._root)
        ):
            self._outputs = Path(tempfile.mkdtemp(prefix="aeon-output-"))
        self._outputs.mkdir(mode=0o700, parents=True, exist_ok=True)
        return real_path(self._outputs)

    def shown(self) -> tuple[Path, ...]:
        made = self._outputs is not None and self._outputs.is_dir()
        return (self.git_settings(), self.outputs()) if made else (self.git_settings(),)

    def _own(self) -> Path:
        if self._base is None or not self._base.is_dir():
            self._base = real_path(tempfile.mkdtemp(prefix="aeon-shell-"))
            weakref.finalize(self, partial(remove_all, self._base))
            (self._base / "tmp").mkdir(mode=0o700)
        return self._base


_SHORT_PATH = 300


def remove_all(folder: Path) -> None:
    """Remove a folder, even if folders in it are read-only, as those of modules that Go downloads, or nested so deeply
    that their paths are too long: these are moved to the top first.
    """
    folders = [folder]
    for place in folders:
        with suppress(OSError), os.scandir(place) as entries:
            for entry in list(entries):
                with suppress(OSError):
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.path)  # noqa: PTH108  # many
                    else:
                        os.chmod(entry.path, 0o700)  # noqa: PTH101  # as above
                        inner = Path(entry.path)
                        is_short = len(entry.path) < _SHORT_PATH
                        folders.append(inner if is_short else inner.rename(folder / os.urandom(16).hex()))
    for place in reversed(folders):
        with suppress(OSError):
            place.rmdir()


def _states(paths: Iterable[Path]) -> dict[Path, object]:
    """Return for each path a value that changes with it, and for a folder also with the files directly in it."""
    return {path: {each.name: file_state(each) for each in (path, *_files_in(path))} for path in paths}


def _has_other_name(path: Path) -> bool:
    """Return whether a path exists in the other case, too: by that name, a read-only mount may not be seen."""
    return os.path.lexists(path.with_name(path.name.swapcase()))


def _files_in(path: Path) -> list[Path]:
    with suppress(OSError):
        return [each for each in path.iterdir() if not path.is_symlink() and (each.is_symlink() or not each.is_dir())]
    return []


def _command(arguments: dict[str, Any]) -> str:
    command = arguments.get("command")
    return command if isinstance(command, str) else ""


def _result(
    ended: CommandEnding, code_of: str, output: CommandOutput, notices: list[str], isolation: str
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "stdout": output.text("stdout"),
        "stderr": output.text("stderr"),
        "exit_code": ended.exit_code,
        "timed_out": ended.by == "timeout",
        "truncated": output.truncated,
        "isolation": isolation,
    }
    if code_of:
        result["exit_code_of"] = code_of
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
    return object_schema(
        {
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
        ["command"],
    )


_OUTPUT_SCHEMA: dict[str, Any] = object_schema(
    {
        "stdout": _TEXT,
        "stderr": _TEXT,
        "exit_code": {"type": "integer", "description": "128 + n where signal n ended it, 124 after a time-out."},
        "exit_code_of": {
            "type": "string",
            "description": "The last commands, if the code says nothing about those before them, as `tail` in a pipe.",
        },
        "timed_out": {"type": "boolean"},
        "truncated": {"type": "boolean", "description": "Whether stdout or stderr is longer than shown."},
        "output_file": {"type": "string", "description": "The whole output, where it was truncated."},
        "isolation": {"type": "string", "description": "What the command was held by, 'none' for nothing."},
        "notices": {"type": "array", "items": _TEXT, "description": "What a reader should know of how it ran."},
    },
    ["stdout", "stderr", "exit_code", "timed_out", "truncated", "isolation"],
)
