"""What a command runs that is given others as arguments: `env`, `sudo`, `xargs`, `sh -c`, `find -exec`, `ssh`…"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from aeon_core.tools.shell.ast import SimpleCommand
from aeon_core.tools.shell.nested_commands import (
    PREFIXES,
    Argv,
    Code,
    Inner,
    Prefix,
    Script,
    operand_start,
    option_values,
)
from aeon_core.tools.shell.option_effects import GIT_OPTIONS, programs_of_options

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
    """Yield what a database client or an editor passes to a shell, as in `\\! ls`, `.shell ls` or `:!ls`."""
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
    """Yield the shell that make uses, and a here-document with its rules."""
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


SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"})
INTERPRETERS = frozenset({"python", "perl", "ruby", "node", "nodejs", "php", "lua", "deno", "bun", "pypy", "osascript"})


_JOINING = {"watch", "ssh", "parallel"}
_CODE_OPTIONS = re.compile(r"-[a-zA-Z]*[ceEprR]|--eval|--print|--run|eval")
_STARTS = re.compile(
    r"(?:(?:ba|da|z|k|a)?sh|rm|dd|mkfs(?:\.\w+)?|chmod|eval|psql|mysql|mariadb|sqlite3|mongosh|clickhouse-client|dropdb"
    r"|env|sudo|xargs|find|git|python[\d.]*|npm|cargo)"
)
_COMMAND_VARIABLES = re.compile(r"\w*_COMMAND|\w*EDITOR|\w*PAGER|VISUAL|BROWSER|\w*_ASKPASS|GIT_EXTERNAL_DIFF|LESSOPEN")
_CONTAINERS = {"docker", "podman", "nerdctl", "kubectl", "oc", "lxc", "vagrant", "toolbox", "distrobox", "bwrap", "npx"}


def is_interpreter(program: str) -> bool:
    """Return whether the program runs code in a language of its own, such as `python3.12`."""
    return re.sub(r"[\d.]+$", "", program) in INTERPRETERS


def is_wrapper(program: str) -> bool:
    """Return whether the program only runs what its arguments say."""
    return program in PREFIXES


def runs(command: SimpleCommand) -> Iterator[Inner]:
    """Yield what the command would run besides itself."""
    program = command.program
    for assigned in command.assignments:
        name, _, value = assigned.partition("=")
        if _COMMAND_VARIABLES.fullmatch(name):
            yield Script(value)
    special = _BUILTINS.get(program) or STARTERS.get(program)
    if special:
        yield from special(command)
    yield from programs_of_options(command)
    if program in SHELLS or program in {"source", "."}:
        given = (*command.arguments, *(redirect.target for redirect in command.redirects))
        yield from (Code(word) for word in given if word.startswith("<("))
    if program in PREFIXES and not (program == "command" and command.arguments[:1] in {("-v",), ("-V",)}):
        yield from _prefixed(command, PREFIXES[program])
    elif program in SHELLS:
        yield from _shell(command)
    elif is_interpreter(program):
        yield from _interpreter(command)
    elif program in _CONTAINERS:
        yield from (Argv(index) for index in _known_starts(command))


def _prefixed(command: SimpleCommand, prefix: Prefix) -> Iterator[Inner]:
    words = command.words
    scripts = prefix.script.split()
    given = [Script(value) for _, value in option_values(words, scripts)]
    if given:
        yield from given
        return
    valued = frozenset(prefix.valued.split()) | frozenset(scripts)
    start = operand_start(words, valued)
    while start < len(words) and re.match(r"\w+=", words[start]):
        start += 1
    if words[start - 1] != "--" or prefix.operands:
        start += prefix.operands
    if start < len(words) and words[start] == "--":
        start += 1
    if start >= len(words):
        return
    if command.program in _JOINING:
        yield Script(" ".join(words[start:]))
    else:
        yield Argv(start, more=_more(command))


def _more(command: SimpleCommand) -> tuple[str, ...]:
    text = command.input_text() if command.program == "xargs" else None
    return tuple(text.split()) if text else ()


def _env(command: SimpleCommand) -> Iterator[Inner]:
    words = command.words
    for index, word in enumerate(words[1:], 1):
        found = re.fullmatch(r"(?:-[iv0]*S|--split-string=?)(.*)", word, re.DOTALL)
        if found:
            yield Script(" ".join((found[1].lstrip("="), *words[index + 1 :])))
            return


def _shell(command: SimpleCommand) -> Iterator[Inner]:
    words = command.words
    start = operand_start(words, frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"}))
    options = words[1:start]
    if any(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*|--command", option) for option in options):
        if start < len(words):
            yield Script(words[start], words[start + 1 :])
    elif reads_stdin(command) and (text := command.input_text()) is not None:
        yield Script(text, ("", *words[start:]))


def reads_stdin(command: SimpleCommand) -> bool:
    """Return whether a shell or an interpreter takes its program from standard input."""
    options = [word for word in command.arguments if word.startswith("-") and word != "-"]
    if any(re.fullmatch(r"-[a-zA-Z]*s", option) for option in options) and command.program in SHELLS:
        return True
    if any(re.fullmatch(r"-[a-zA-Z]*[cemnp]|--eval|--version|--help|-[vVh]", option) for option in options):
        return False
    operands = [word for word in command.arguments if not word.startswith(("-", "+")) or word == "-"]
    return not operands or operands[0] in {"-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"}


def _eval(command: SimpleCommand) -> Iterator[Inner]:
    yield Script(" ".join(command.arguments))


def _trap(command: SimpleCommand) -> Iterator[Inner]:
    operands = [word for word in command.arguments if word != "--"]
    if len(operands) > 1 and operands[0] != "-":
        yield Script(operands[0])


def _alias(command: SimpleCommand) -> Iterator[Inner]:
    for word in command.arguments:
        if "=" in word:
            yield Script(word.partition("=")[2])


def _source(command: SimpleCommand) -> Iterator[Inner]:
    if command.arguments[:1] in {("/dev/stdin",), ("/dev/fd/0",), ("/proc/self/fd/0",)}:
        text = command.input_text()
        if text is not None:
            yield Script(text)


def _interpreter(command: SimpleCommand) -> Iterator[Inner]:
    words = command.words
    for index, word in enumerate(words[1:-1], 1):
        if _CODE_OPTIONS.fullmatch(word):
            yield Code(words[index + 1])
    if reads_stdin(command) and (text := command.input_text()) is not None:
        yield Code(text)


def _known_starts(command: SimpleCommand) -> Iterator[int]:
    for index, word in enumerate(command.words[2:], 2):
        if _STARTS.fullmatch(word.rpartition("/")[2]):
            yield index


_BUILTINS: dict[str, Callable[[SimpleCommand], Iterator[Inner]]] = {
    "env": _env,
    "eval": _eval,
    "trap": _trap,
    "alias": _alias,
    "source": _source,
    ".": _source,
}
