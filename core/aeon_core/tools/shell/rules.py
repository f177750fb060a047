"""What makes a simple command destructive: one rule for each pattern of REQ-028, or for a few that go together."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise

from aeon_core.tools.shell.ast import Finding, SimpleCommand
from aeon_core.tools.shell.names import (
    CLIENTS,
    DATA_VERBS,
    DECODERS,
    FETCHERS,
    RUNNERS,
    TAKES_DATA,
    TASK_RUNNERS,
    WRITERS,
)
from aeon_core.tools.shell.nested_commands import operand_start
from aeon_core.tools.shell.wrappers import SHELLS, is_interpreter, is_wrapper, reads_stdin

_SHOWN = 60


def release(command: SimpleCommand) -> Finding | None:
    """Return a finding for `npm publish`, `make deploy`, `./deploy.sh`: where the word names what is done."""
    for name in ("deploy", "publish"):
        if any(name == word or (splits and name in re.split(r"[._:/-]", word)) for word, splits in _actions(command)):
            return name, f"{command.text[:_SHOWN]!r} would {name}"
    return None


def _actions(command: SimpleCommand) -> list[tuple[str, bool]]:
    """Return the words that name what is done, each with whether a part of it counts, as in `deploy:prod`."""
    program = command.program
    actions = [(command.words[0], True)]
    before = command.arguments[: command.arguments.index("--")] if "--" in command.arguments else command.arguments
    operands = [word for word in before if not word.startswith("-") and "=" not in word]
    if program in TASK_RUNNERS:
        return actions + [(word, True) for word in operands]
    if program in SHELLS or is_interpreter(program) or program in {"source", "."}:
        return actions + _script_actions(command)
    if program in TAKES_DATA or is_wrapper(program):
        return actions
    start = operand_start(command.words, frozenset({"-C", "-c"})) if program == "git" else 1
    operands = operands if program != "git" else list(command.words[start : start + 1])
    for place, word in enumerate(operands[:3]):
        if place and (operands[place - 1] in DATA_VERBS or not re.fullmatch(r"@?\w[\w:.-]*", operands[place - 1])):
            break
        actions.append((word, place == 0 or operands[place - 1] in RUNNERS))
    return actions


def _script_actions(command: SimpleCommand) -> list[tuple[str, bool]]:
    """Return the script or module that is run, and its first argument; nothing where code is given instead."""
    words = command.words
    start = operand_start(words, frozenset({"-W", "-X", "-o", "-O", "--rcfile"}))
    options = words[1:start]
    if "-m" in options:
        module = options.index("-m") + 2
        return _actions(replace(command, words=words[module:], literal=command.literal[module:]))
    if any(re.fullmatch(r"-[a-zA-Z]*[ce]|--eval", option) for option in options):
        return []
    return [(word, place == 0 or words[start] in RUNNERS) for place, word in enumerate(words[start : start + 2])]


def forced_push(command: SimpleCommand) -> Finding | None:
    """Return a finding for `git push --force` in any spelling, and for `push --force` of any other program."""
    words = command.words
    if command.program == "git":
        start = operand_start(words, frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"}))
        return _git_push(words[start + 1 :]) if words[start : start + 1] == ("push",) else None
    if command.program not in TAKES_DATA and any(
        one == "push" and other.startswith("--force") for one, other in pairwise(words[1:])
    ):
        return "push --force", "the push overwrites what others have pushed"
    return None


def _git_push(arguments: tuple[str, ...]) -> Finding | None:
    for word in arguments:
        if word.startswith("--force"):
            return "push --force", f"git push {word} overwrites what others have pushed"
        if re.fullmatch(r"-[a-zA-Z0-9]*f[a-zA-Z0-9]*", word):
            return "git push -f", f"git push {word} overwrites what others have pushed"
        if re.match(r"\+.", word):
            return "push --force", f"the refspec {word!r} overwrites what others have pushed"
    return None


_DISK = re.compile(r"/dev/(?:sd|nvme|vd|hd|xvd|mmcblk|disk)")
_EVERYTHING = {"/", "~", ".", "..", "*", "/*", "~/*", "./*", "../*", ".*", "./.*"}
_HERE = re.compile(r"\$\(\s*pwd(?:\s+-[LP])?\s*\)|`\s*pwd(?:\s+-[LP])?\s*`|\$OLDPWD|\$\{OLDPWD\}")
_NARROWS = re.compile(r"-(?:i?name|i?path|i?regex|i?wholename|[acm]?(?:newer|time|min)\w*|size|user|group|empty|perm)")
_ALL_RIGHTS = re.compile(r"(?:0*[0-7]?777|(?:[ugo]*[ao][ugoa]*)?[+=](?=\w*r)(?=\w*w)(?=\w*[xX])[rwxXst]+)")
_OPENS = re.compile(r"<\(|\$\(|`")
_ELSEWHERE = re.compile(rf"\b(?:{'|'.join(sorted(FETCHERS | DECODERS))})\b")
_SQL = {
    "DROP TABLE": re.compile(r"\bDROP\s+TABLE\b", re.IGNORECASE),
    "DROP DATABASE": re.compile(r"\bDROP\s+(?:DATABASE|SCHEMA)\b|\bdropDatabase\s*\(", re.IGNORECASE),
    "TRUNCATE": re.compile(r"\bTRUNCATE\b", re.IGNORECASE),
}
_BARE_SQL = re.compile(r"(?i:DROP\s+(?:TABLE|DATABASE|SCHEMA)\b|TRUNCATE\s+TABLE\b)|TRUNCATE\b")
"""A statement in the place of a command. `truncate` in small letters is a program of its own."""
_GUESSES = ("rm", "chmod", "dd", "git", "npm", "sh", "find", "psql")
_GLOBBED = (*_GUESSES, "mkfs", "bash", "eval", "tee", "cp", "curl", "wget")


def destruction(command: SimpleCommand) -> Finding | None:
    """Return the pattern that the command matches, and why; None where it matches none.

    Where the program cannot be known, those are tried that its arguments would make destructive.
    """
    if not command.words:
        return _disk(command)
    if command.is_open(0):
        return _suspected(command)
    if not command.literal[0] and re.search(r"[*?\[]", command.words[0]):
        fitting = (name for name in _GLOBBED if fnmatchcase(name, command.program))
        return _first(_judged(_as(command, name)) for name in fitting)
    return _judged(command)


def fork_bomb(commands: Iterable[SimpleCommand]) -> Finding | None:
    """Return a finding where a function's body calls the function twice at once, or where one is named `:`."""
    calls: dict[str, list[SimpleCommand]] = {}
    for command in commands:
        if ":" in command.functions:
            return ":(){", "a function named ':' is a fork bomb"
        if command.words and command.words[0] in command.functions:
            calls.setdefault(command.words[0], []).append(command)
    for name, found in calls.items():
        if len(found) > 1 and any(command.concurrent for command in found):
            return ":(){", f"the function {name!r} calls itself more than once at a time, a fork bomb"
    return None


def _judged(command: SimpleCommand) -> Finding | None:
    return _first(rule(command) for rule in _RULES)


def _first(findings: Iterable[Finding | None]) -> Finding | None:
    return next((finding for finding in findings if finding), None)


def _as(command: SimpleCommand, program: str) -> SimpleCommand:
    return replace(command, words=(program, *command.arguments), literal=(True, *command.literal[1:]))


def _suspected(command: SimpleCommand) -> Finding | None:
    word = command.words[0]
    shown = repr(word if len(word) <= _SHOWN else word[:_SHOWN] + "…")
    if _from_elsewhere(word):
        return _fetching(word), f"{shown} is fetched or decoded while the line runs, then run"
    found = _first(_judged(_as(command, name)) for name in _GUESSES)
    known = next((index for index in range(len(command.words)) if not command.is_open(index)), None)
    if not found and known is not None:
        found = destruction(replace(command, words=command.words[known:], literal=command.literal[known:]))
    return found and (found[0], f"{shown} is unknown until it runs, and with what follows it may be that {found[1]}")


def _from_elsewhere(word: str) -> bool:
    """Return whether a substitution in the word runs something whose output comes from elsewhere."""
    opens = _OPENS.search(word)
    return bool(opens and _ELSEWHERE.search(word, opens.end()))


def _remove(command: SimpleCommand) -> Finding | None:
    if command.program != "rm":
        return None
    options, targets = _options(command)
    recursive = _has(options, "rR", "--recursive")
    force = _has(options, "f", "--force")
    open_options = any(command.is_open(index) for index in range(1, len(command.words)))
    for target in targets:
        place = "." if _HERE.fullmatch(target.rstrip("/*")) else _normal(target)
        everything = place in _EVERYTHING
        if not ((recursive and (force or everything)) or (open_options and everything)):
            continue
        if place.startswith(("/", "~")):
            return f"rm -rf {place[0]}", f"rm removes {target!r} and everything in it"
        if everything or target.startswith(".") or place.startswith(".."):
            return "rm -rf .", f"rm removes {target!r} and everything in it"
    return None


def _find(command: SimpleCommand) -> Finding | None:
    """Judge `find / -delete`, and a find that hands all it finds to rm: what it removes is where it starts."""
    if command.program != "find":
        return None
    words = command.arguments
    tests = [word for word in words if word.startswith(("-", "(", "!"))]
    deletes = "-delete" in words or any(
        one.startswith(("-exec", "-ok")) and posixpath.basename(other) in {"rm", "unlink", "shred"}
        for one, other in pairwise(words)
    )
    if not deletes:
        return None
    starts = [_normal(word) for word in words[: words.index(tests[0])]] or ["."]
    narrowed = any(_NARROWS.fullmatch(test) for test in tests)
    for start in starts:
        if start in {"/", "~", "/*", "~/*"} or (start in _EVERYTHING and not narrowed):
            return f"rm -rf {start[0] if start[0] in '/~' else '.'}", f"find removes everything it finds in {start!r}"
    return None


def _handed_over(command: SimpleCommand) -> Finding | None:
    """Judge `find / | xargs rm`: what find prints is what rm removes."""
    if command.program != "rm" or not command.piped_from:
        return None
    finds = (source for source in command.piped_from if source.program == "find")
    return _first(_find(replace(source, words=(*source.words, "-delete"))) for source in finds)


def _disk(command: SimpleCommand) -> Finding | None:
    targets = [redirect.target for redirect in command.redirects if redirect.writes]
    if command.program in WRITERS:
        operands = [word for word in command.arguments if not word.startswith("-")]
        targets += operands[-1:] if command.program in {"cp", "mv", "install", "rsync", "ln"} else operands
    if command.program == "dd":
        targets += [word[3:] for word in command.arguments if word.startswith("of=")]
    for target in targets:
        if _DISK.match(_normal(target)):
            return "> /dev/sd", f"{target!r} is a disk that would be overwritten"
    return None


def _filesystem(command: SimpleCommand) -> Finding | None:
    if re.fullmatch(r"mkfs(?:\..*)?|mke2fs|newfs\w*", command.program):
        return "mkfs", f"{command.program} overwrites what is there with a new file system"
    return None


def _copy(command: SimpleCommand) -> Finding | None:
    if command.program in {"dd", "dcfldd", "dc3dd"} and any(word.startswith("if=") for word in command.arguments):
        return "dd if=", "dd overwrites its output with raw data"
    return None


def _rights(command: SimpleCommand) -> Finding | None:
    if command.program != "chmod":
        return None
    options, operands = _options(command)
    modes = operands[:1] + [option for option in options if "=" not in option]
    if _has(options, "R", "--recursive") and any(_ALL_RIGHTS.fullmatch(part) for part in ",".join(modes).split(",")):
        return "chmod -R 777", "chmod lets everyone change everything below a folder"
    return None


def _piped(command: SimpleCommand) -> Finding | None:
    """Judge what a shell or an interpreter takes its program from: a download, or text that is decoded on the way."""
    program = command.program
    shell = program in SHELLS
    if not (shell or is_interpreter(program) or program in {"source", "."}):
        return None
    given = [word for word in command.arguments if word.startswith(("<(", "$(", "`"))]
    given += [redirect.target for redirect in command.redirects if redirect.operator == "<"]
    for word in given:
        if _from_elsewhere(word):
            return _fetching(word), f"{program} runs what {word!r} fetches or decodes"
    if not (shell or reads_stdin(command) or command.arguments[:1] == ("/dev/stdin",)):
        return None
    for source in command.piped_from:
        fetches = source.program in FETCHERS
        if fetches or (reads_stdin(command) and (source.program in DECODERS or (source.words and source.is_open(0)))):
            return _fetching(source.program), f"{program} runs the output of {source.program}, which nobody has read"
    return None


def _fetching(text: str) -> str:
    return "wget ... | sh" if "wget" in text else "curl ... | sh"


def _evaluate(command: SimpleCommand) -> Finding | None:
    return ("eval", "eval runs text that is made while the line runs") if command.program == "eval" else None


def _sql(command: SimpleCommand) -> Finding | None:
    program = command.program
    bare = _BARE_SQL.match(" ".join(command.words))
    if bare:
        return next(name for name, pattern in _SQL.items() if pattern.search(bare[0])), "it is an SQL statement"
    if program not in CLIENTS:
        return None
    if program == "dropdb" or (program == "mysqladmin" and "drop" in command.arguments):
        return "DROP DATABASE", f"{program} removes a database"
    text = "\n".join((*command.arguments, command.input_text() or ""))
    for name, pattern in _SQL.items():
        if pattern.search(text) or pattern.search(_without_comments(text)):
            return name, f"{program} is told to {name}"
    return None


def _without_comments(sql: str) -> str:
    first, *others = sql.split("/*")
    return " ".join((first, *(other.partition("*/")[2] for other in others)))


def _options(command: SimpleCommand) -> tuple[list[str], list[str]]:
    """Return the options and the operands; GNU programs take options behind operands, up to `--`."""
    words = list(command.arguments)
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[:end] if word.startswith("-") and len(word) > 1]
    return options, [word for word in words[:end] if not word.startswith("-") or word == "-"] + words[end + 1 :]


def _has(options: list[str], letters: str, name: str) -> bool:
    """Return whether an option is given: in a cluster of letters, or by its name or what it may be shortened to."""
    return any(
        name.startswith(option) and len(option) > 2
        if option.startswith("--")
        else any(letter in option for letter in letters)
        for option in options
    )


def _normal(path: str) -> str:
    """Return the path without `//`, `/./` and `x/..`; a path of blanks only stands for itself."""
    normal = posixpath.normpath(path) if path.strip() else path
    return "/" + normal.lstrip("/") if normal.startswith("/") else normal


_RULES: tuple[Callable[[SimpleCommand], Finding | None], ...] = (
    _remove,
    _find,
    _handed_over,
    _disk,
    _filesystem,
    _copy,
    _rights,
    _piped,
    _evaluate,
    _sql,
    forced_push,
    release,
)
