"""The programs that start others in ways of their own: `find -exec`, `git -c alias.x=!…`, `tar --to-command=…`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from aeon_core.tools.shell.ast import SimpleCommand
from aeon_core.tools.shell.nested_commands import Argv, Code, Inner, Script, operand_start
from aeon_core.tools.shell.option_effects import GIT_OPTIONS
from aeon_core.tools.shell.prefixes import PREFIXES

_COMMAND_OPTIONS = re.compile(
    r"(?:--(?:checkpoint-action=exec|preview)|--checkpoint-a\w*=exec|(?:-o)?(?:Proxy|Local|KnownHosts)Command)[= ](.+)"
)
_RUNNING = {"exec", "run", "dlx", "x"}


def _parallel(command: SimpleCommand) -> Iterator[Inner]:
    words = command.words
    marks = [index for index, word in enumerate(words) if re.fullmatch(r":{3,4}\+?", word)]
    if marks:
        start = operand_start(words, frozenset(PREFIXES["parallel"].valued.split()))
        yield Script(" ".join((*words[start : marks[0]], *words[marks[0] + 1 :])))
        yield from (Script(word) for word in words[marks[0] + 1 :])
    elif text := command.input_text():
        yield Script(text)


def _coproc(command: SimpleCommand) -> Iterator[Inner]:
    """Yield the commands of a group, which the grammar takes for arguments: `time { ls; }`, `coproc X { ls; }`."""
    for index, word in enumerate(command.words[:3]):
        if word in {"{", "(", "!"}:
            yield Argv(index + 1)


def _queued(command: SimpleCommand) -> Iterator[Inner]:
    text = command.input_text()
    if text is not None:
        yield Script(text)


def _terminal(command: SimpleCommand) -> Iterator[Inner]:
    yield from (Script(word) for word in command.arguments if " " in word)


def _optional(command: SimpleCommand) -> Iterator[Inner]:
    """Yield the scripts in options with a value of their own form: `ssh -o ProxyCommand=…`."""
    found = (_COMMAND_OPTIONS.fullmatch(word) for word in command.arguments)
    yield from (Script(match[1]) for match in found if match)


def _environment(command: SimpleCommand) -> Iterator[Inner]:
    """Yield what runs in a project's environment: `uv run x`, `npm exec -- x`, `bundle exec x`."""
    words = command.words
    valued = frozenset({"-C", "-p", "--with", "--python", "--project", "--directory", "--package", "--env-file"})
    start = operand_start(words, valued)
    if start < len(words) and words[start] in _RUNNING:
        inner = start + operand_start(words[start:], valued)
        if inner < len(words):
            yield Argv(inner)


def _find(command: SimpleCommand) -> Iterator[Inner]:
    """Yield the commands of `find -exec … ;` and of `fd -x …`."""
    words = command.words
    for index, word in enumerate(words):
        if word in {"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}:
            rest = range(index + 1, len(words))
            ends = (at for at in rest if words[at] == ";" or words[at - 1 : at + 1] == ("{}", "+"))
            yield Argv(index + 1, next(ends, len(words)))


def _awk(command: SimpleCommand) -> Iterator[Inner]:
    yield from (Code(word) for word in command.arguments if re.search(r"system\s*\(|\|\s*(?:getline|\")|\"\s*\|", word))


def _client(command: SimpleCommand) -> Iterator[Inner]:
    """Yield what a database client or an editor is told to hand to a shell, as in `\\! ls`, `.shell ls` or `:!ls`."""
    for text in (*command.arguments, command.input_text() or ""):
        yield from (Script(found[1]) for found in re.finditer(r"(?m)(?:\\!|^\s*\+?:?!|\.shell|\.system)\s*(.+)$", text))


def _git(command: SimpleCommand) -> Iterator[Inner]:
    words = command.words
    start = operand_start(words, GIT_OPTIONS)
    for option, value in pairwise(words[1 : start + 1]):
        if option in {"-c", "--config-env"}:
            yield from _git_setting(*value.partition("=")[::2])
    operands = words[start:]
    match operands:
        case ("config", *_):
            yield from _git_setting(*[word for word in operands[1:] if not word.startswith("-")][:2])
        case ("bisect", "run", *_):
            yield Argv(start + 2)
        case ("submodule", "foreach", *rest):
            yield Script(" ".join(word for word in rest if not word.startswith("--")))
        case ("filter-branch", *rest):
            yield from (Script(word) for word in rest if not word.startswith("-"))


def _git_setting(key: str = "", value: str = "") -> Iterator[Inner]:
    """Yield the script in a setting of git's: an alias with `!`, or a setting that names a command."""
    runs_it = re.search(r"(?i)pager|editor|command|helper|textconv|\.(?:clean|smudge|process|cmd|driver)$", key)
    if value.startswith("!") or runs_it:
        yield Script(value.lstrip("!"))
    elif key.startswith("alias."):
        yield Script(f"git {value}")


def _made(command: SimpleCommand) -> Iterator[Inner]:
    """Yield the shell that make is told to use, and a here-document with its rules."""
    yield from (Script(word[6:]) for word in command.arguments if word.startswith("SHELL="))
    text = command.input_text()
    if text is not None:
        yield Code(text)


STARTERS: dict[str, Callable[[SimpleCommand], Iterator[Inner]]] = {
    "parallel": _parallel,
    "find": _find,
    "fd": _find,
    "fdfind": _find,
    "git": _git,
    "coproc": _coproc,
    "time": _coproc,
    "at": _queued,
    "batch": _queued,
    "tmux": _terminal,
    "screen": _terminal,
    **dict.fromkeys(("ssh", "sftp", "scp", "rsync", "tar", "fzf"), _optional),
    "make": _made,
    "gmake": _made,
    **dict.fromkeys(("uv", "poetry", "pipenv", "hatch", "pdm", "rye", "bundle", "npm", "pnpm", "yarn"), _environment),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("psql", "mysql", "mariadb", "sqlite3", "vi", "vim", "nvim", "ex", "ed", "less"), _client),
}
"""By the program's name."""
