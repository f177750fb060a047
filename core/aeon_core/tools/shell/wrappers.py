"""What a command runs that is given others as arguments: `env`, `sudo`, `xargs`, `sh -c`, `find -exec`, `ssh`…"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from aeon_core.tools.shell.ast import SimpleCommand
from aeon_core.tools.shell.nested_commands import Argv, Code, Inner, Script, operand_start, option_values
from aeon_core.tools.shell.option_effects import programs_of_options
from aeon_core.tools.shell.prefixes import PREFIXES, Prefix
from aeon_core.tools.shell.starters import STARTERS

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
