"""The blocklist of destructive commands: 18 built-in patterns and a user's own (REQ-028, REQ-028a, REQ-115).

The built-in ones are matched against each plain command that would run, so that quotes hide nothing, and text that is
only printed or searched for is no match. A line that is more than plain commands is matched as text too, and asked
about if it matches nothing (`commands.unknown_program`). It keeps a mistaken or misled model from known ways to do
damage, not from finding others: that is the job of isolation.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, takewhile

from aeon_core.tools.shell.commands import interpreted_code, read
from aeon_core.tools.shell.programs import (
    CLIENTS,
    DATA_VERBS,
    GIT_OPTIONS,
    INTERPRETERS,
    ONLY_READ,
    READERS,
    RUNNERS_OF_TASKS,
    SHELLS,
    SIMPLE_RUNNERS,
    TAKES_DATA,
    TASK_RUNNERS,
    WRITERS,
    has_option,
    operand_start,
)
from aeon_core.tools.shell.settings import compile_patterns
from aeon_core.tools.shell.syntax import SimpleCommand, cut

_TEXTS = {
    "rm -rf /": r"rm\s+-rf\s+/",
    "rm -rf ~": r"rm\s+-rf\s+~",
    "rm -rf .": r"rm\s+-rf\s+\.",
    "mkfs": r"mkfs",
    "dd if=": r"dd\s+if=",
    ":(){": r":\(\)\s*\{",
    "> /dev/sd": r">\s*/dev/sd",
    "chmod -R 777": r"chmod\s+-R\s+777",
    "wget ... | sh": r"wget\s",
    "curl ... | sh": r"curl\s",
    "eval": r"\beval\b",
    "DROP TABLE": r"(?i:DROP\s+TABLE)",
    "DROP DATABASE": r"(?i:DROP\s+DATABASE)",
    "TRUNCATE": r"TRUNCATE",
    "deploy": r"\bdeploy\b",
    "publish": r"\bpublish\b",
    "push --force": r"push\s+--force",
    "git push -f": r"git\s+push\s+-f",
}

PATTERNS: tuple[str, ...] = tuple(_TEXTS)
"""The built-in patterns as shown to people, in the order of the specification."""

_COMPILED = {name: re.compile(text) for name, text in _TEXTS.items()}
_PIPED = re.compile(r"\|\s*(?:sudo\s+)?(?:/\S*/)?(?:ba|da|z|k)?sh")
_AS_WORDS = {"eval", "deploy", "publish"}
_QUOTES = re.compile(r"\\\n|[\\'\"]")
_BLANKS = re.compile(r"\\(?:[nrt]|x(?:0[9ad]|20)|040)")
"""Escaped blanks in `$'…'` and in strings of other languages."""
_HOME = re.compile(r"\$HOME\b|\$\{HOME\}")
_LISTED = re.compile(r"[\\'\",\[\]()]+")
_SHOWN = 200
_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class BlockedCommand:
    """A command on the blocklist, and the reason."""

    pattern: str
    """The built-in pattern's name, or the user's regular expression."""
    command: str
    """The simple command that matches, or the text, cut to 200 characters."""
    why: str
    """The reason, in words for a person."""


def judge(text: str, extra: Sequence[str] = ()) -> BlockedCommand | None:
    """Return the first match of a line with the blocklist, None if it matches nothing (REQ-028, REQ-028a).

    A user's patterns, `extra`, are searched in the whole text, the built-in ones in what would run. A line that cannot
    be parsed, and code in another language, is searched as text. Raises UsageError for a pattern that is not a regular
    expression.
    """
    for pattern in compile_patterns(extra):
        try:
            why = "it matches a pattern in the configuration" if pattern.search(text, timeout=_SECONDS) else ""
        except TimeoutError:
            why = f"the pattern in the configuration takes more than {_SECONDS:g} s; simplify it"
        if why:
            return BlockedCommand(pattern.pattern, cut(text, _SHOWN), why)
    line = read(text)
    for command in line.commands:
        if found := destruction(command, text) or _passed_on(command, text):
            return BlockedCommand(found[0], cut(command.text, _SHOWN), found[1])
        if (code := interpreted_code(command)) and (name := _in_text(code)):
            return BlockedCommand(name, cut(code, _SHOWN), f"it is in another language, and contains {name!r}")
    if line.doubt and (name := _in_text(text, without=_AS_WORDS)):
        return BlockedCommand(name, cut(text, _SHOWN), f"{line.doubt}, and it contains {name!r}")
    return None


def _in_text(text: str, without: Iterable[str] = ()) -> str | None:
    """Return the first pattern that the text matches: as written, without quotes or escapes, or as a list of words."""
    text = _HOME.sub("~", text)
    spellings = (*_spellings(text), _LISTED.sub(" ", text))
    return next(
        (name for name in PATTERNS if name not in without and any(_matches(name, spelling) for spelling in spellings)),
        None,
    )


def _spellings(text: str) -> tuple[str, str, str]:
    """Return the text as written, without quotes, and with escaped blanks as blanks."""
    return text, _QUOTES.sub("", text), _BLANKS.sub(" ", text)


def _matches(name: str, text: str) -> bool:
    found = _COMPILED[name].search(text)
    if not found or not name.endswith("| sh"):
        return bool(found)
    # Searched in two steps, since an expression with `.*` takes time quadratic in the text's length.
    return bool(_PIPED.search(text, found.end()))


_KNOWN = READERS | ONLY_READ | TAKES_DATA | CLIENTS | WRITERS | TASK_RUNNERS | SHELLS | SIMPLE_RUNNERS | {"git"}
_DESTROYS = re.compile(r"rm|find|chmod|dd|dcfldd|dc3dd|mkfs(?:\..*)?|mke2fs|newfs\w*|git")
_MAX_PARTS = 20
Finding = tuple[str, str]
"""The name of a blocklist pattern, and why a command matches it."""

_NAMED = 60


def _release(command: SimpleCommand) -> Finding | None:
    """Return a finding for `npm publish`, `make deploy`, `./deploy.sh`, where a word names the action."""
    for name in ("deploy", "publish"):
        if any(
            name == word or (splits and name in re.split(r"[._:/-]", word)) for word, splits in _actions(command.words)
        ):
            return name, f"{command.text[:_NAMED]!r} would {name}"
    return None


def _actions(words: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Return the words that name the action, each with whether a part of it is enough, as in `deploy:prod`."""
    program, arguments = posixpath.basename(words[0]), words[1:]
    actions = [(words[0], True)]
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    operands = [word for word in before if not word.startswith("-") and "=" not in word]
    if program in TASK_RUNNERS:
        return actions + [(word, True) for word in operands]
    if program in SHELLS or INTERPRETERS.fullmatch(program) or program in {"source", "."}:
        return actions + _script_actions(words)
    if program in TAKES_DATA or program in SIMPLE_RUNNERS:
        return actions
    if program == "git":
        operands = list(words[operand_start(words, GIT_OPTIONS) :][:1])
    for place, word in enumerate(operands[:3]):
        if place and (operands[place - 1] in DATA_VERBS or not re.fullmatch(r"@?\w[\w:.-]*", operands[place - 1])):
            break
        actions.append((word, place == 0 or operands[place - 1] in RUNNERS_OF_TASKS))
    return actions


def _script_actions(words: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Return the script or module that is run and its first argument; nothing if code is given instead."""
    start = operand_start(words, frozenset({"-W", "-X", "-o", "-O", "--rcfile"}))
    options = words[1:start]
    if "-m" in options:
        module = words[options.index("-m") + 2 :]
        return _actions(module) if module else []
    if any(re.fullmatch(r"-[a-zA-Z]*[ce]|--eval", option) for option in options):
        return []
    return [
        (word, place == 0 or words[start] in RUNNERS_OF_TASKS) for place, word in enumerate(words[start : start + 2])
    ]


def _forced_push(command: SimpleCommand) -> Finding | None:
    """Return a finding for `git push --force` in any spelling, and for `push --force` of any other program."""
    words, overwrites = command.words, "overwrites what others have pushed"
    start = operand_start(words, GIT_OPTIONS)
    if command.program == "git" and words[start : start + 1] == ("push",):
        for word in words[start + 1 :]:
            if word.startswith(("--force", "--mirror")) or re.match(r"\+.", word):
                return "push --force", f"git push {word} {overwrites}"
            if re.fullmatch(r"-[a-zA-Z0-9]*f[a-zA-Z0-9]*", word):
                return "git push -f", f"git push {word} {overwrites}"
    elif command.program not in TAKES_DATA | {"git"} and any(
        one == "push" and other.startswith("--force") for one, other in pairwise(words[1:])
    ):
        return "push --force", f"the push {overwrites}"
    return None


_DISK = re.compile(r"/dev/(?:sd|nvme|vd|hd|xvd|mmcblk|disk)")
_EVERYTHING = {"/", "~", ".", "..", "*", "/*", "~/*", "./*", "../*", ".*", "./.*"}
_NARROWS = re.compile(
    r"-(?:i?name|i?path|i?regex|i?wholename|[ac]?newer\w*|[acmB](?:time|min)|size|user|group|empty|perm)"
)
_ALL_RIGHTS = re.compile(r"(?:0*[0-7]?777|(?:[ugo]*[ao][ugoa]*)?[+=](?=\w*r)(?=\w*w)(?=\w*[xX])[rwxXst]+)")
_SQL = {
    "DROP TABLE": re.compile(r"\bDROP\s+TABLE\b", re.IGNORECASE),
    "DROP DATABASE": re.compile(r"\bDROP\s+(?:DATABASE|SCHEMA)\b|\bdropDatabase\s*\(", re.IGNORECASE),
    "TRUNCATE": re.compile(r"\bTRUNCATE\b", re.IGNORECASE),
}
_SQL_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|(?:--|#)[^\n]*", re.DOTALL)
_BARE_SQL = re.compile(r"(?i:DROP\s+(?:TABLE|DATABASE|SCHEMA)\b|TRUNCATE\s+TABLE\b)|(?!truncate\b)(?i:TRUNCATE)\b")
"""An SQL statement in the place of a command; `truncate` in lower case is a program."""
_GLUED = re.compile(r"-[a-zA-Z]+?(?=(?i:DROP|TRUNCATE))")
"""Short options with a statement attached: `mysql -e"TRUNCATE t"`, `psql -tAc"DROP TABLE t"`."""


def destruction(command: SimpleCommand, line: str) -> Finding | None:
    """Return the pattern that a command matches, and why; None if it matches none."""
    if not command.words:
        return _disk(command)
    rules = (_remove, _find, _disk, _program, _rights, _forced_push, _release)
    found = (rule(command) for rule in rules)
    return next((finding for finding in found if finding), None) or _sql(command, line)


def _passed_on(command: SimpleCommand, line: str) -> Finding | None:
    """Return a finding for `valgrind rm -rf /`: an unknown program may run its arguments."""
    if not command.words or command.program in _KNOWN or INTERPRETERS.fullmatch(command.program):
        return None
    words = enumerate(command.words)
    starts = (at for at, word in words if at and (word in CLIENTS or _DESTROYS.fullmatch(posixpath.basename(word))))
    parts = (replace(command, words=command.words[at:], redirects=(), stdin=None) for at in islice(starts, _MAX_PARTS))
    return next((found for part in parts if (found := destruction(part, line))), None)


def _remove(command: SimpleCommand) -> Finding | None:
    if command.program != "rm":
        return None
    options, targets = _options(command)
    recursive = has_option(options, "-r -R --recursive")
    force = has_option(options, "-f --force")
    for target in targets:
        place = _normal(target)
        everything = place in _EVERYTHING
        if not (recursive and (force or everything)):
            continue
        if place.startswith(("/", "~")):
            return f"rm -rf {place[0]}", f"rm removes {target!r} and everything in it"
        if everything or target.startswith(".") or place.startswith(".."):
            return "rm -rf .", f"rm removes {target!r} and everything in it"
    return None


def _find(command: SimpleCommand) -> Finding | None:
    """Judge `find / -delete`, and a find that passes all results to rm, by its starting points."""
    words = command.arguments
    programs = {posixpath.basename(other) for one, other in pairwise(words) if one.startswith(("-exec", "-ok"))}
    if command.program != "find" or not ("-delete" in words or programs & {"rm", "unlink", "shred"}):
        return None
    narrowed = any(map(_NARROWS.fullmatch, words))
    for start in map(_normal, [*takewhile(lambda word: not word.startswith(("-", "(", "!")), words)] or ["."]):
        if start in {"/", "~", "/*", "~/*"} or (start in _EVERYTHING and not narrowed):
            return f"rm -rf {start[0] if start[0] in '/~' else '.'}", f"find removes everything it finds in {start!r}"
    return None


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


def _program(command: SimpleCommand) -> Finding | None:
    """Judge programs that destroy something, or run what cannot be read, whatever their arguments."""
    if re.fullmatch(r"mkfs(?:\..*)?|mke2fs|newfs\w*", command.program):
        return "mkfs", f"{command.program} overwrites what is there with a new file system"
    if command.program in {"dd", "dcfldd", "dc3dd"} and any(word.startswith("if=") for word in command.arguments):
        return "dd if=", "dd overwrites its output with raw data"
    return ("eval", "eval runs text that is made while the line runs") if command.program == "eval" else None


def _rights(command: SimpleCommand) -> Finding | None:
    if command.program != "chmod":
        return None
    options, operands = _options(command)
    modes = ",".join(operands[:1] + [option for option in options[1:] if "=" not in option])
    if has_option(options, "-R --recursive") and any(map(_ALL_RIGHTS.fullmatch, modes.split(","))):
        return "chmod -R 777", "chmod lets everyone change everything below a folder"
    return None


def _sql(command: SimpleCommand, line: str) -> Finding | None:
    program = command.program
    bare = _BARE_SQL.match(" ".join(command.words))
    if bare:
        return next(name for name, pattern in _SQL.items() if pattern.search(bare[0])), "it is an SQL statement"
    if program not in CLIENTS:
        return None
    if program == "dropdb" or (program == "mysqladmin" and "drop" in command.arguments):
        return "DROP DATABASE", f"{program} removes a database"
    # If a variable, a pipe or a here-document holds the statement, only the whole line shows it.
    is_elsewhere = command.piped or command.stdin or any("$" in word for word in command.arguments)
    text = line if is_elsewhere else "\n".join(_GLUED.sub(r"\g<0> ", word, count=1) for word in command.arguments)
    texts = [*(_spellings(text) if is_elsewhere else [text]), _SQL_COMMENT.sub(" ", text)]
    name = next((name for name, pattern in _SQL.items() if any(map(pattern.search, texts))), None)
    return (name, f"{program} would {name}") if name is not None else None


def _options(command: SimpleCommand) -> tuple[list[str], list[str]]:
    """Return the program with its options, and the operands; GNU programs accept options after operands, up to `--`."""
    words = list(command.words)
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[1:end] if word.startswith("-") and len(word) > 1]
    operands = [word for word in words[1:end] if not word.startswith("-") or word == "-"]
    return [words[0], *options], operands + words[end + 1 :]


def _normal(path: str) -> str:
    """Return the path without `//`, `/./` and `x/..`; a path of only blanks is kept."""
    normal = posixpath.normpath(path) if path.strip() else path
    return "/" + normal.lstrip("/") if normal.startswith("/") else normal
