"""Commands that run another command, and how their arguments are read to find it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aeon_core.tools.shell.ast import Node, SimpleCommand, Variables, all_nodes, joined, source_of


@dataclass(frozen=True, slots=True)
class Argv:
    """A command given as words: those of the outer command from `start` to `end`, then `more`."""

    start: int
    end: int | None = None
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """Text that a shell would read; `arguments` are its `$0`, `$1`…"""

    text: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """Text in a language that is not read here."""

    text: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that cannot be read at all, and may be anything: no rule about commands allows it."""


Inner = Argv | Script | Code | Opaque


def operand_start(words: tuple[str, ...], valued: frozenset[str]) -> int:
    """Return the index of the first word after the program that is neither an option, nor an option's value."""
    index = 1
    while index < len(words) and words[index].startswith(("-", "+")) and len(words[index]) > 1:
        if words[index] == "--":
            return index + 1
        index += 2 if _takes_next(words[index], valued) else 1
    return min(index, len(words))


def _takes_next(option: str, valued: frozenset[str]) -> bool:
    """Return whether the option's value is the next word, as in `-u x` and `-nu x`, not in `-ux`."""
    if option in valued or option.startswith("--"):
        return option in valued
    ends = [place for place, letter in enumerate(option) if f"-{letter}" in valued]
    return bool(ends) and ends[0] == len(option) - 1


def option_values(words: tuple[str, ...], options: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the values of the given options: `-c x`, `-lc x`, `--command x` or `--command=x`."""
    short = "".join(option[1] for option in options if len(option) == 2)
    for index, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        if name in options and equals:
            yield name, value
        elif (word in options or (short and re.fullmatch(rf"-[a-zA-Z]*[{short}]", word))) and index + 1 < len(words):
            yield word, words[index + 1]


_TEXTS = {"raw_string", "string", "ansi_c_string", "concatenation", "word"}
_SUBSTITUTES = re.compile(r"\$\(|`")
_IN_SUBSCRIPT = re.compile(r"\w\[[^\n]*?(?:\$\(|`)")
_PROMPTS = re.compile(r"@P\}|\bPS[0-4]=|\bcompgen\b")
_INNER = re.compile(r"\$\((.*)\)|`(.*)`", re.DOTALL)

_OPERATOR = re.compile(r"(?<=\s)-[a-zA-Z]{1,2}(?=\s)")
_COMPARES = re.compile(r"\s-(?:eq|ne|lt|le|gt|ge|v|R)\s")
_NAMES = re.compile(r"[A-Za-z_'\"\\`]|\$[\w{(]")
_SUBSCRIPT = re.compile(r"\[(?:\d*|[@*])\]\Z")
_CUT = re.compile(r"\$\{!?\w+(?:\[[^\]]*\])?(?::(?!\s*\d+(?::\d+)?\})[^-=+?]|[^}]*@P\})")
_SETTERS = {"read", "unset", "declare", "typeset", "local", "readonly", "export", "mapfile", "readarray", "wait"}


def hidden_scripts(root: Node, source: str, variables: Variables) -> Iterator[str]:
    """Yield what quoted substitutions would run where bash may read their text again."""
    if not _SUBSTITUTES.search(source):
        return
    fitting = _SUBSTITUTES if _PROMPTS.search(source) else _IN_SUBSCRIPT
    seen: set[str] = set()
    for node in all_nodes(root):
        if node.type not in _TEXTS:
            continue
        text, whole = joined([node], variables)
        if not whole or text in seen or not fitting.search(text):
            continue
        seen.add(text)
        yield from (found[1] or found[2] or "" for found in _INNER.finditer(text))


def computes(root: Node) -> bool:
    """Return whether anything in the tree is computed from what cannot be told: then it may run anything."""
    return any(_computes(node) for node in all_nodes(root))


def assigns_by_name(command: SimpleCommand) -> bool:
    """Return whether the command takes a name with a subscript, or that cannot be told: bash evaluates it."""
    program, words = command.program, command.arguments
    if program == "let":
        return True
    if program in {"test", "[", "printf"}:
        names = [index + 2 for index, word in enumerate(words[:-1]) if word == "-v"]
        names += [1] if words[:1] and re.fullmatch(r"-v.+", words[0]) else []
    elif program in _SETTERS:
        names = list(range(1, len(command.words)))
        if any(re.fullmatch(r"-[a-zA-Z]*[in][a-zA-Z]*", word) for word in words) and program not in {"read", "export"}:
            return True
    else:
        return False
    return any(not command.literal[at] or re.search(r"^[^=]*\[", command.words[at]) for at in names)


def _computes(node: Node) -> bool:
    text = source_of(node)
    match node.type:
        case "arithmetic_expansion" | "c_style_for_statement":
            head = text.partition("do")[0] if node.type == "c_style_for_statement" else text
            return bool(_NAMES.search(head.replace("for", "", 1)))
        case "compound_statement" | "test_command" if text.startswith("(("):
            return bool(_NAMES.search(text))
        case "test_command":
            compared = _COMPARES.search(text) if text.startswith("[[") else re.search(r"\s-[vR]\s", text)
            return bool(compared and _NAMES.search(_OPERATOR.sub("", text)))
        case "subscript":
            return not _SUBSCRIPT.search(text)
        case "expansion":
            return bool(_CUT.match(text))
    return False


@dataclass(frozen=True, slots=True)
class Prefix:
    """How to find the command after `sudo -u x`: which options take a value, how many operands come first."""

    valued: str = ""
    operands: int = 0
    script: str = ""
    """The options whose value is a script."""


PREFIXES: dict[str, Prefix] = {
    "env": Prefix("-u --unset -C --chdir -P"),
    "sudo": Prefix("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot --role --type"),
    "doas": Prefix("-u -C"),
    "pkexec": Prefix("--user"),
    "nohup": Prefix(),
    "setsid": Prefix(),
    "exec": Prefix("-a"),
    "command": Prefix(),
    "builtin": Prefix(),
    "coproc": Prefix(),
    "time": Prefix("-f -o --format --output"),
    "nice": Prefix("-n --adjustment"),
    "ionice": Prefix("-c -n --class --classdata"),
    "chrt": Prefix("-T -P -D", operands=1),
    "taskset": Prefix("", operands=1),
    "timeout": Prefix("-s -k --signal --kill-after", operands=1),
    "stdbuf": Prefix("-i -o -e --input --output --error"),
    "unbuffer": Prefix(),
    "chroot": Prefix("--userspec --groups", operands=1),
    "unshare": Prefix("-S -G -R -w --setuid --setgid --root --wd --map-user --map-group"),
    "nsenter": Prefix("-t -S -G -r -w --target --setuid --setgid"),
    "setpriv": Prefix("--reuid --regid --groups --inh-caps --ambient-caps --bounding-set --pdeathsig"),
    "strace": Prefix("-e -o -p -s -u -E -a -b -I -O -P -S -U -X"),
    "ltrace": Prefix("-e -o -p -s -u -a -n"),
    "fakeroot": Prefix("-l -s -i -b"),
    "busybox": Prefix(),
    "toybox": Prefix(),
    "systemd-run": Prefix("-p -u -E -H -M -d --property --unit --setenv --uid --gid --working-directory"),
    "flock": Prefix("-w -E --timeout --conflict-exit-code", operands=1, script="-c --command"),
    "watch": Prefix("-n --interval -q --equexit"),
    "xargs": Prefix("-I -n -P -L -d -a -s -E --replace --max-args --max-procs --max-lines --delimiter --arg-file"),
    "parallel": Prefix("-j -S -N -n -I -a -d -C --jobs --sshlogin --colsep --arg-file --results --joblog --tmpdir"),
    "su": Prefix("-s -g -G --shell --group", operands=2, script="-c --command --session-command"),
    "runuser": Prefix("-u -s -g -G --user --shell --group", script="-c --command --session-command"),
    "script": Prefix("-T -I -O -B -o -E -m", operands=1, script="-c --command"),
    "ssh": Prefix("-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w", operands=1),
}
"""By the program's name."""
