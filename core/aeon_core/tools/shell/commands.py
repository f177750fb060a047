"""Finds what a shell line would run; a line that is more than plain commands is asked about (REQ-028).

This is not a barrier: it cannot see a script in a file, or how a program starts another one. Only isolation protects
against these.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from aeon_core.errors import ToolError
from aeon_core.tools.base import exact_pattern
from aeon_core.tools.shell.programs import (
    CLIENTS,
    GIT_OPTIONS,
    GIT_RECORDS,
    INTERPRETERS,
    NAMING,
    ONLY_READ,
    READ_ENVIRONMENT,
    READERS,
    RUNNERS,
    SHELLS,
    SIMPLE_RUNNERS,
    TAKES_DATA,
    operand_start,
    runs_others,
    writes_files,
)
from aeon_core.tools.shell.syntax import ASSIGNMENT, MAX_DEPTH, NotPlainError, Reader, SimpleCommand, cut

MAX_TEXT = 50_000
"""The longest line that is parsed, in characters."""

_SETTERS = {"env", "sudo", "doas"}
"""Programs that accept assignments before the command that they run."""
_TAKES_INPUT = (READERS | TAKES_DATA | CLIENTS | {"git", "printf", "read", ""}) - {"crontab", "make", "ssh"}
"""Programs that treat their input as data, not as commands."""
_INPUTS = ("/dev/stdin", "/dev/fd/", "/proc/")
SINKS = {"/dev/null", "/dev/stdout", "/dev/stderr"}
HOOKS = re.compile(
    r"LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|PS[0-4]|IFS"
    r"|CDPATH|GLOBIGNORE|INPUTRC|BASH_XTRACEFD|PYTHONSTARTUP|PYTHONINSPECT|PYTHONBREAKPOINT|PYTHONHOME|PERL5OPT|PERL5DB|RUBYOPT|NODE_OPTIONS"
    r"|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|LESSOPEN|LESSCLOSE|BROWSER|SUDO_ASKPASS|SSH_ASKPASS|GIT_ASKPASS"
    r"|GIT_SSH(?:_COMMAND)?|GIT_EXTERNAL_DIFF|GIT_SEQUENCE_EDITOR|GIT_PROXY_COMMAND|GIT_CONFIG_.*|GIT_EXEC_PATH"
)
"""Variables that make something else run, or run differently, before or besides the command itself."""
_DECIDES = re.compile(
    rf"{HOOKS.pattern}|PATH|GCONV_PATH|LD_\w+|BASH_\w+|HOME|PWD|SHELL|\w*_COMMAND|\w*EDITOR|\w*PAGER|VISUAL|\w*_ASKPASS"
    r"|S?RANDOM|OPTIND|HISTCMD|POSIXLY_CORRECT|PERL5?LIB|RUBYLIB|MAKEFLAGS|MAKEFILES|OPENSSL_(?:CONF|MODULES|ENGINES)"
    r"|npm_config_script_shell"
)
"""The same for a line: variables that change how bash treats other words, or what many programs load or run. Bash
evaluates the value of some.
"""
_HARMLESS = re.compile(
    r"LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|COLORTERM|NO_COLOR|FORCE_COLOR|CLICOLOR(?:_FORCE)?|PY_COLORS|CI|DEBUG"
    r"|VERBOSE|DEBIAN_FRONTEND|SOURCE_DATE_EPOCH|BLOCK_?SIZE|NODE_ENV|MYPYPATH|RUST_BACKTRACE|RUST_LOG|GOOS|GOARCH"
    r"|CGO_ENABLED|PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE|IOENCODING|UTF8|HASHSEED)"
    r"|GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|GIT_(?:OPTIONAL_LOCKS|TERMINAL_PROMPT|MERGE_AUTOEDIT)"
    r"|PG(?:PASSWORD|HOST|PORT|USER|DATABASE)|MYSQL_PWD"
)
"""Variables that never make a program that reads or moves data run another."""
_EVALUATED_IN_LOOPS = "SECONDS"


@dataclass(frozen=True, slots=True)
class ShellLine:
    """The commands that a line would run."""

    commands: tuple[SimpleCommand, ...] = ()
    doubt: str | None = None
    """Why something else may run, or with values other than the words show; None if that is impossible."""


_MAX_CODE_OF = 200
_CODE = re.compile(r"-[a-zA-Z]*[ceEprR]|--?eval|--print|--run|eval")


@lru_cache(maxsize=16)
def read(text: str, *, piped: bool = False) -> ShellLine:
    """Return the commands of a line, including those in `$(…)` and those that `env`, `timeout` and the like run.

    `piped` says whether they may read the output of something else.
    """
    reader, commands, doubt = Reader(text, piped), list[SimpleCommand](), None
    try:
        if len(text) > MAX_TEXT:
            raise NotPlainError("a line of this length")
        reader.read("")
    except NotPlainError as error:
        doubt = f"{error} is not read as plain commands"
    exported: list[str] = []
    for outer in reader.commands:
        run: list[SimpleCommand] = []
        for command in _with_inner(outer):
            script = _script(command)
            fed = command.piped or command.stdin is not None
            inside = read(script, piped=fed) if script is not None else ShellLine()
            run += [command, *inside.commands]
            doubt = doubt or inside.doubt or _doubt(command) or _pattern_doubt(inside.commands)
        # What `env`, `sudo` and the like set for what they run.
        setters = (command for command in run if command.program in _SETTERS)
        given = [word for command in setters for word in command.words[1 : _inner_start(command)]]
        doubt = doubt or _variable_doubt([*outer.assignments, *given], run)
        exported += _exported(outer)
        commands += run
    exported += (name for name in reader.loops if name in os.environ)
    doubt = doubt or reader.doubt or _loop_doubt(reader.loops) or _variable_doubt(exported, commands)
    return ShellLine(tuple(commands), doubt)


def policy_texts(text: str) -> list[str] | None:
    """Return a text like `git status --short` for each simple command that the line would run, for rules to match.

    Assignments before a command and redirections that write are part of its text; a command that runs another yields
    both: `env rm x` also `rm x`. A file that is written is also listed alone, as `> out`. None if it is unknown what
    the line runs, or an option writes a file or runs a program: then no rule about commands allows it.
    """
    line = read(text)
    if line.doubt or any(command.words and writes_files(command.program, command.words) for command in line.commands):
        return None
    return list(dict.fromkeys(part for command in line.commands for part in (command.text, *_written(command)) if part))


def unknown_program(text: str) -> str | None:
    """Return why it is unknown which programs the line would run; None if that is known."""
    return read(text).doubt


_KEEPS_CODES = re.compile(r"pipefail|PIPESTATUS|\bset\s+-\w*e|\berrexit\b")


def exit_code_of(text: str) -> str:
    """Return the last commands of a line, at most 200 characters, if only theirs is the line's exit code.

    This is `tail` for `pytest | tail`. It is empty if the line fails whichever command fails, or if that is unknown.
    """
    reader = Reader(text, piped=False)
    try:
        reader.read("")
    except NotPlainError:
        return ""
    last = max((place for place, each in enumerate(reader.commands) if each.after not in {"", "&&"}), default=0)
    if not last or _KEEPS_CODES.search(text):
        return ""
    return cut(" && ".join(each.text for each in reader.commands[last:]), _MAX_CODE_OF)


def spellings(text: str) -> list[str]:
    """Return each simple command in its plainest form, for rules that ask or deny.

    `A=b /usr/bin/git -C x push` is `git push`: without assignments, folder and git's own options.
    """
    found: dict[str, None] = {}
    for command in read(text).commands:
        if command.words:
            found[" ".join((command.program, *command.arguments))] = None
        if command.program == "git":
            found[" ".join(("git", *command.words[operand_start(command.words, GIT_OPTIONS) :]))] = None
    return list(found)


def _written(command: SimpleCommand) -> Iterator[str]:
    for redirect in command.redirects:
        if redirect.writes and redirect.target not in SINKS:
            yield f"> {redirect.target}"


def _with_inner(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """Yield the command and, for `env ls` or `timeout 5 nice ls`, those that it runs, at most `MAX_DEPTH`."""
    for _ in range(MAX_DEPTH):
        yield command
        start = _inner_start(command)
        if not start or start >= len(command.words) or command.words[start].startswith("-"):
            return
        command = replace(
            command,
            words=command.words[start:],
            literal=command.literal[start:],
            shown=command.shown[start:],
            redirects=tuple(redirect for redirect in command.redirects if not redirect.writes),
            assignments=(),
        )


def _inner_start(command: SimpleCommand) -> int:
    """Return the index at which the command that this one runs begins; 0 if it runs none that can be read."""
    if command.program not in SIMPLE_RUNNERS:
        return 0
    start = 2 if command.program == "timeout" else 1
    while command.program in _SETTERS and "=" in "".join(command.words[start : start + 1]):
        start += 1
    return start


def _doubt(command: SimpleCommand) -> str | None:
    """Return why it is unknown what a command runs; None if that is known."""
    program, words = command.program, command.words
    if name := next((name for name in _set_names(command) if _DECIDES.fullmatch(name)), None):
        return f"it sets {name}, which changes what the other words run"
    if not words:
        return None
    if not command.literal[0] or words[0].startswith("-"):
        return f"{cut(words[0])!r} only becomes a command when the line runs"
    if _gives_code(command):
        return f"what {cut(command.text)!r} runs is not read"
    end = _inner_start(command) or len(words)
    unknown = next((word for word, known in zip(words[:end], command.literal, strict=False) if not known), None)
    if unknown is None or _takes_data(command) or (program == "printf" and command.literal[1]):
        return None
    return f"the value of {cut(unknown)!r} is only known when the line runs"


def _takes_data(command: SimpleCommand) -> bool:
    """Return whether no argument can make the command destroy or run anything."""
    return command.words[1:2] in {("add",), ("commit",)} if command.program == "git" else command.program in READERS


def _set_names(command: SimpleCommand) -> Iterator[str]:
    """Yield the variables that a command sets; `IFS= read` sets them for `read` alone."""
    if command.program != "read":
        yield from (re.split(r"\+?=", assigned)[0] for assigned in command.assignments)
    if command.program in {"read", "export", "env", "sudo", "doas", "for"}:
        yield from (re.split(r"\+?=", word)[0] for word in command.arguments)
    if command.program == "unset":
        yield from {"GLOBIGNORE"}.intersection(command.arguments)


def _exported(command: SimpleCommand) -> Iterator[str]:
    """Yield the variables that a command sets for later ones: exported, or already in the environment."""
    if command.program == "export":
        yield from command.arguments
    names = command.assignments if not command.words else command.arguments if command.program == "read" else ()
    yield from (name for name in names if re.split(r"\+?=", name)[0] in os.environ)


def _loop_doubt(names: Iterable[str]) -> str | None:
    """Return why loops over these variables may change what the line runs; None if they cannot."""
    for name in names:
        if not re.fullmatch(r"\w+", name) or _DECIDES.fullmatch(name) or name == _EVALUATED_IN_LOOPS:
            return f"a loop over {cut(name)!r} changes what other words run"
    return None


def _variable_doubt(assigned: Iterable[str], commands: Iterable[SimpleCommand]) -> str | None:
    """Return why variables may make one of the commands run another program; None if they cannot."""
    names = [re.split(r"\+?=", each)[0] for each in assigned]
    name = next((name for name in names if not _HARMLESS.fullmatch(name)), None)
    program = next((command.program for command in commands if command.program in READ_ENVIRONMENT), None)
    if name is None or program is None:
        return None
    return f"it sets {cut(name)}, which may make {program!r} run another program"


def _pattern_doubt(commands: Iterable[SimpleCommand]) -> str | None:
    """Return why a pattern in a nested shell may become an option; in the outer one, none can (`shell_words`)."""
    for command in commands:
        if command.has_open_pattern and not _takes_data(command):
            return f"a pattern of {cut(command.text)!r} may match a name that is an option"
    return None


def _script(command: SimpleCommand) -> str | None:
    """Return the script in `bash -c 'ls'`, which is parsed like the line itself; None for any other command."""
    words = command.words
    if command.program not in {"sh", "bash", "dash"} or len(words) < 3 or not command.literal[2]:
        return None
    return words[2] if re.fullmatch(r"-[eulx]*c", words[1]) else None


def _gives_code(command: SimpleCommand) -> bool:
    """Return whether a command runs or evaluates text or words that are not parsed as commands."""
    program, arguments = command.program, command.arguments
    if program in RUNNERS or (command.words and runs_others(program, command.words, command.stdin or "")):
        return True
    if program in SIMPLE_RUNNERS:
        checks = program == "command" and arguments[:1] in {("-v",), ("-V",)}
        moves_input = program == "exec" and (bool(command.redirects) or command.stdin is not None)
        start = _inner_start(command)
        is_deep = len([word for word in arguments if posixpath.basename(word) in SIMPLE_RUNNERS]) >= MAX_DEPTH - 1
        has_option = any(word.startswith("-") for word in command.words[1 : start + 1])
        # `env` also sets names that are invalid in bash, such as that of a function.
        sets = command.program in _SETTERS and not all(map(ASSIGNMENT.match, command.words[1:start]))
        return not checks and (moves_input or is_deep or has_option or sets)
    if _script(command) is not None:
        return False
    if program in SHELLS or program in {"source", "."}:
        options = [word for word in arguments if word.startswith(("-", "+"))]
        operand = next((word for word in arguments if word not in options), "/dev/stdin")
        return operand.startswith(("/dev/", "/proc/")) or not all(
            re.fullmatch(r"-[eunvx]+", option) for option in options
        )
    if program in CLIENTS and command.stdin is None:
        # The statements are not in the line.
        return command.piped or any("<" in redirect.operator for redirect in command.redirects)
    if INTERPRETERS.fullmatch(program):
        return command.piped and command.stdin is None and _reads_stdin(command)
    if program not in _TAKES_INPUT:
        # `make -f /dev/stdin` runs its standard input.
        return command.stdin is not None or any(word.startswith(_INPUTS) for word in arguments)
    if program in {"test", "[", "printf"}:
        return any(word.startswith("-v") for word in arguments) or (program == "[" and arguments[-1:] != ("]",))
    if program == "set":
        return not all(re.fullmatch(r"[-+][ETbefhmnuvx]*o?|--|[^-+].*", word) for word in arguments) or bool(
            {"allexport", "keyword", "posix", "privileged"}.intersection(arguments)
        )
    # Bash evaluates a subscript.
    return program in NAMING and any("[" in word.partition("=")[0] for word in arguments)


def interpreted_code(command: SimpleCommand) -> str | None:
    """Return the program text that the line passes to an interpreter; None if there is none."""
    if not INTERPRETERS.fullmatch(command.program):
        return None
    given = [word for option, word in pairwise(command.arguments) if _CODE.fullmatch(option)]
    if command.stdin is not None and _reads_stdin(command):
        given.append(command.stdin)
    return "\n".join(given) or None


def _reads_stdin(command: SimpleCommand) -> bool:
    """Return whether an interpreter takes its program from standard input."""
    options = [word for word in command.arguments if word.startswith("-") and word != "-"]
    if any(re.fullmatch(r"-[a-zA-Z]*[cemnp]|--eval|--version|--help|-[vVh]", option) for option in options):
        return False
    operands = [word for word in command.arguments if not word.startswith("-") or word == "-"]
    return not operands or operands[0] == "-" or operands[0].startswith(("/dev/", "/proc/"))


_COMPOUND_START = re.compile(r"\s*(?:(?:for|while|until|if|time)\b|[!({])")


def rule_pattern(text: str) -> str:
    """Return the pattern for a command line. Raises ToolError if it is not one plain command, with the reason."""
    line = read(text)
    if line.doubt is not None:
        raise ToolError(line.doubt)
    if len(line.commands) != 1 or _COMPOUND_START.match(text):
        raise ToolError("it is a compound command")
    command = line.commands[0]
    if command.stdin is not None or any(redirect.target not in SINKS for redirect in command.redirects):
        raise ToolError("it redirects input or output")
    if command.assignments or not command.words:
        raise ToolError("it sets a variable")
    first, second = (*command.words[:2], "")[:2]
    if first in ONLY_READ:
        return f"{first} *"
    if first == "git" and second in GIT_RECORDS:
        return f"git {second} *"
    if not all(command.literal):
        raise ToolError("the values of its variables and patterns may change")
    return exact_pattern(command.text)
