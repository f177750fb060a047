"""Parses a shell line as plain commands; a line that is more than that is not interpreted but asked about (REQ-028).

Plain commands are words, quoted or not, with variables and `$(…)` among a command's arguments, joined by `&&`, `||`,
`;`, `|`, `&` and line breaks, with redirections, here-documents, groups, `if` and loops. Their syntax is not checked:
if it is wrong, bash runs nothing. This is not a barrier: it cannot see a script in a file, or how a program starts
another one. Only isolation protects against these.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from aeon_core.errors import ToolError
from aeon_core.tools.base import exact_pattern
from aeon_core.tools.shell.programs import (
    CLIENTS,
    GIT_OPTIONS,
    GIT_RECORDS,
    INTERPRETERS,
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

MAX_TEXT = 50_000
"""The longest line that is parsed, in characters."""
_MAX_DEPTH = 20
_MAX_SHOWN = 60

_RESERVED = {"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "time", "!"}
"""Words that only structure a line. If their syntax is wrong, bash runs nothing of it."""
_COMPOUND = {"case", "function", "select", "coproc", "[["}
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*(?:#[^\n]*)?")
_REDIRECT = re.compile(r"[0-9]*([<>]&-|<<<|<<-?|<>|<&|<|>>|>\||>&|>)|(&>>?)")
_SEPARATOR = re.compile(r"&&|\|\||\|&|[;&|\n]")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\}|[?#$!@*-])")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)
_GLOB = re.compile(r"[*?\[]")
_NAMING = {"read", "export", "unset", "wait"}
"""Builtins whose arguments are names of variables."""
_BECOMES_OPTION = re.compile(r"[*?]|-[^/]*[*?\[]|\[[^]]*-|\[[!^]")
"""A pattern that may match a name that begins with a hyphen."""
_SETTERS = {"env", "sudo", "doas"}
"""Programs that accept assignments before the command that they run."""
_ENDS_WORD = " \t\n;&|<>()"
_KNOWN = {"HOME": "~", "PWD": "."}
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
class Redirect:
    """One redirection, such as `2> log`."""

    operator: str
    target: str

    @property
    def writes(self) -> bool:
        """Whether the target is a file that would be opened for writing."""
        return ">" in self.operator and not (self.operator == ">&" and self.target.rstrip("-").isdigit())


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A command that would run: a program with its arguments, or only assignments or redirections."""

    words: tuple[str, ...]
    """Without quotes. What is only known when the line runs, such as `$(date)`, is kept as written."""
    literal: tuple[bool, ...]
    """Whether each word has neither a variable nor a substitution."""
    shown: tuple[str, ...] = ()
    """The words for a person and for rules, quoted only if necessary."""
    redirects: tuple[Redirect, ...] = ()
    assignments: tuple[str, ...] = ()
    stdin: str | None = None
    """The here-document or here-string that it reads."""
    piped: bool = False
    """Whether it reads the output of another command."""
    has_open_pattern: bool = False
    """Whether one of its patterns may match a name that the program would treat as an option."""

    @property
    def program(self) -> str:
        """The program's name without its folder; empty if there is none."""
        return posixpath.basename(self.words[0]) if self.words else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the program."""
        return self.words[1:]

    @property
    def text(self) -> str:
        """The command on one line, with its assignments and the files that it writes."""
        written = (f"{redirect.operator} {redirect.target}" for redirect in self.redirects if redirect.writes)
        return " ".join((*self.assignments, *self.shown, *written))

    @property
    def code(self) -> str | None:
        """The program text that the line passes to an interpreter; None if there is none."""
        if not INTERPRETERS.fullmatch(self.program):
            return None
        given = [word for option, word in zip(self.words[1:], self.words[2:], strict=False) if _CODE.fullmatch(option)]
        if self.stdin is not None and _reads_stdin(self):
            given.append(self.stdin)
        return "\n".join(given) or None


@dataclass(frozen=True, slots=True)
class ShellLine:
    """The commands that a line would run."""

    commands: tuple[SimpleCommand, ...] = ()
    doubt: str | None = None
    """Why something else may run, or with values other than the words show; None if that is impossible."""


_CODE = re.compile(r"-[a-zA-Z]*[ceEprR]|--?eval|--print|--run|eval")


@lru_cache(maxsize=16)
def read(text: str, *, piped: bool = False) -> ShellLine:
    """Return the commands of a line, including those in `$(…)` and those that `env`, `timeout` and the like run.

    `piped` says whether they may read the output of something else.
    """
    reader, commands, doubt = _Reader(text, piped), list[SimpleCommand](), None
    try:
        if len(text) > MAX_TEXT:
            raise _NotPlainError("a line of this length")
        reader.read("")
    except _NotPlainError as error:
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
    return ShellLine(tuple(commands), doubt or reader.doubt or _variable_doubt([*exported, *reader.loops], commands))


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
    """Yield the command and, for `env ls` or `timeout 5 nice ls`, those that it runs, at most `_MAX_DEPTH`."""
    for _ in range(_MAX_DEPTH):
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
        is_deep = len([word for word in arguments if posixpath.basename(word) in SIMPLE_RUNNERS]) >= _MAX_DEPTH - 1
        has_option = any(word.startswith("-") for word in command.words[1 : start + 1])
        # `env` also sets names that are invalid in bash, such as that of a function.
        sets = command.program in _SETTERS and not all(map(_ASSIGNMENT.match, command.words[1:start]))
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
    return program in _NAMING and any("[" in word.partition("=")[0] for word in arguments)


def _reads_stdin(command: SimpleCommand) -> bool:
    """Return whether an interpreter takes its program from standard input."""
    options = [word for word in command.arguments if word.startswith("-") and word != "-"]
    if any(re.fullmatch(r"-[a-zA-Z]*[cemnp]|--eval|--version|--help|-[vVh]", option) for option in options):
        return False
    operands = [word for word in command.arguments if not word.startswith("-") or word == "-"]
    return not operands or operands[0] == "-" or operands[0].startswith(("/dev/", "/proc/"))


def cut(text: str, most: int = _MAX_SHOWN) -> str:
    """Return the text cut to this many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


class _NotPlainError(Exception):
    """The line is more than plain commands; the message says what else it contains."""


@dataclass(slots=True)
class _Word:
    text: str = ""
    source: str = ""
    """As written, with continued lines joined."""
    literal: bool = True
    bare: str = ""
    """Its unquoted part."""

    def add(self, text: str, *, bare: bool = False) -> None:
        self.text += text
        self.bare += text if bare else "x" * len(text)

    @property
    def shown(self) -> str:
        """The word for a policy rule: quoted only if necessary, and as written if it is not literal."""
        return shlex.quote(self.text) if self.literal and self.source != self.text else self.source


@dataclass(slots=True)
class _Parts:
    """The parts of a simple command."""

    words: list[_Word] = field(default_factory=list)
    assignments: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    stdin: str | None = None
    loops: bool = False

    def add(self, word: _Word) -> None:
        if self.words or not re.match(r"\w+\+?[=\[]", word.source):
            self.words.append(word)
        elif _ASSIGNMENT.match(word.source):
            self.assignments.append(word.text)
        else:
            raise _NotPlainError("an array")

    def command(self, piped: bool) -> SimpleCommand:
        program = posixpath.basename(self.words[0].text) if self.words else ""
        # A pattern may expand to a program, an option or a name, such as that of a file `PATH=.`.
        matters = len(self.words) if program in SIMPLE_RUNNERS | _NAMING else 1
        literal = [
            word.literal and (place >= matters or word.source == "[" or not _GLOB.search(word.bare))
            for place, word in enumerate(self.words)
        ]
        return SimpleCommand(
            tuple(word.text for word in self.words),
            tuple(literal),
            tuple(word.shown for word in self.words),
            tuple(self.redirects),
            tuple(self.assignments),
            self.stdin,
            piped,
            any(_GLOB.search(word.bare) and _BECOMES_OPTION.match(word.text) for word in self.words),
        )


class _Reader:
    """Parses a text from left to right; everything that it does not know raises _NotPlainError."""

    def __init__(self, text: str, piped: bool) -> None:
        self.commands: list[SimpleCommand] = []
        self.doubt: str | None = None
        self.loops: list[str] = []
        """Loop variables that are already in the environment."""
        self._text = text
        self._at = 0
        self._depth = 0
        self._piped = piped
        self._awaited: list[tuple[str, bool, bool, int]] = []
        """The here-documents that begin on the next line: delimiter, quoted, without tabs, and the command's place."""

    def read(self, end: str) -> None:
        """Read commands up to `end`, or to the end of the text if that is empty."""
        groups = 0
        while True:
            self._skip()
            char = self._text[self._at : self._at + 1]
            separator = _SEPARATOR.match(self._text, self._at)
            if self._looking_at("((") or self._looking_at(";;"):
                raise _NotPlainError("arithmetic or a case")
            if not char or (char == ")" and not groups):
                break
            if char in "()":
                self._at += 1
                groups += 1 if char == "(" else -1
            elif separator and not self._looking_at("&>"):
                self._at = separator.end()
                self._piped = self._piped or separator[0] in {"|", "|&"}
                if char == "\n":
                    self._here_documents()
            else:
                self._command()
        if char != end or groups or self._awaited:
            raise _NotPlainError("an incomplete line")
        self._at += len(end)

    def _looking_at(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _skip(self) -> None:
        blanks = _BLANKS.match(self._text, self._at)
        self._at = blanks.end() if blanks else self._at

    def _command(self) -> None:
        """Read one simple command, or one word that only structures the line."""
        parts, awaited = _Parts(), len(self._awaited)
        while self._at < len(self._text) and (self._looking_at("&>") or self._text[self._at] not in "\n;&|()"):
            redirect = _REDIRECT.match(self._text, self._at)
            if redirect:
                self._at = redirect.end()
                self._redirect(redirect[1] or redirect[2], parts)
            else:
                word = self._word()
                starts = parts == _Parts() and awaited == len(self._awaited)
                if starts and word.source in _RESERVED:
                    return
                if starts and word.source in _COMPOUND:
                    raise _NotPlainError(f"{word.source!r}")
                parts.loops = parts.loops or (starts and word.source == "for")
                parts.add(word)
            self._skip()
        if self._looking_at("("):
            raise _NotPlainError("a function or an array")
        if parts.loops:
            name = parts.words[1].source if len(parts.words) > 1 else ""
            if not re.fullmatch(r"\w+", name) or _DECIDES.fullmatch(name) or name == _EVALUATED_IN_LOOPS:
                self.doubt = f"a loop over {cut(name)!r} changes what other words run"
            self.loops += [name] if name in os.environ else []
        self._awaited[awaited:] = [(*document[:3], len(self.commands)) for document in self._awaited[awaited:]]
        if not parts.loops or awaited < len(self._awaited):
            self.commands.append(parts.command(self._piped))

    def _redirect(self, operator: str, parts: _Parts) -> None:
        if operator in {"<&-", ">&-"}:
            return
        self._skip()
        target = self._word()
        if operator in {"<&", ">&"} and target.source != target.text:
            raise _NotPlainError("a redirection that bash expands twice")
        if operator == "<<<":
            parts.stdin = target.text
        elif operator.startswith("<<"):
            if not target.literal:
                raise _NotPlainError("a here-document with a delimiter that is not plain")
            self._awaited.append((target.text, target.source != target.text, operator == "<<-", 0))
        else:
            redirect = Redirect(operator, target.text)
            parts.redirects.append(redirect)
            if redirect.writes and (not target.literal or _GLOB.search(target.bare)):
                self.doubt = f"where {cut(target.source)!r} leads is only known when the line runs"

    def _here_documents(self) -> None:
        for delimiter, quoted, without_tabs, place in self._awaited:
            body = []
            while True:
                if self._at >= len(self._text):
                    raise _NotPlainError("a here-document without its end")
                end = self._text.find("\n", self._at)
                line = self._text[self._at : end if end >= 0 else None]
                self._at += len(line) + (end >= 0)
                line = line.lstrip("\t") if without_tabs else line
                if line == delimiter:
                    break
                body.append(line)
            text = "\n".join(body)
            if not quoted and re.search(r"[$`\\]", _VARIABLE.sub("", text)):
                raise _NotPlainError("a here-document with substitutions")
            self.commands[place] = replace(self.commands[place], stdin=text)
        self._awaited = []

    def _word(self) -> _Word:
        word, start = _Word(), self._at
        while self._at < len(self._text) and (char := self._text[self._at]) not in _ENDS_WORD:
            self._at += 1
            if char in "'\"":
                self._quoted(word, char)
            elif char == "\\":
                escaped = self._text[self._at : self._at + 1]
                self._at += 1
                if not escaped:
                    raise _NotPlainError("a backslash at the end")
                if escaped != "\n":
                    word.add(escaped)
            elif char == "$":
                if self._looking_at('"'):
                    raise _NotPlainError("what begins with '$\"'")
                self._expansion(word)
            elif char == "`" or (char < " " and char != "\t"):
                raise _NotPlainError("a backquote or a control character")
            else:
                word.add(char, bare=True)
        if self._at == start:
            raise _NotPlainError("a redirection without a plain target")
        if "{" in word.bare and (
            "," in word.bare or ".." in word.bare or self._text[self._at : self._at + 1] in {"<", ">"}
        ):
            raise _NotPlainError("a brace expansion")
        word.source = self._text[start : self._at].replace("\\\n", "")
        if word.source.isdecimal() and self._text[self._at : self._at + 1] in {"<", ">"}:
            raise _NotPlainError("a redirection across lines")
        return word

    def _quoted(self, word: _Word, quote: str) -> None:
        """Read up to the end of single or double quotes."""
        word.add("")
        while not self._looking_at(quote):
            if self._at >= len(self._text):
                raise _NotPlainError("a quote without its end")
            char = self._text[self._at]
            self._at += 1
            if quote == '"' and char == "\\" and self._text[self._at : self._at + 1] in {"$", "`", '"', "\\", "\n"}:
                word.add(self._text[self._at].strip("\n"))
                self._at += 1
            elif quote == '"' and char == "$":
                self._expansion(word)
            elif (quote == '"' and char == "`") or char == "\0" or (char == "\n" and self._awaited):
                raise _NotPlainError("a backquote" if char == "`" else "a line end in quotes before a here-document")
            else:
                word.add(char)
        self._at += 1

    def _expansion(self, word: _Word) -> None:
        """Read what follows a `$`."""
        start = self._at - 1
        if self._looking_at("(") and not self._looking_at("(("):
            self._depth += 1
            if self._awaited or self._depth > _MAX_DEPTH:
                raise _NotPlainError("so much nesting")
            self._at += 1
            self.read(")")
            self._depth -= 1
            word.literal = False
            word.add(self._text[start : self._at])
        elif variable := _VARIABLE.match(self._text, start):
            self._at = variable.end()
            word.literal = False
            word.add(_KNOWN.get(variable[1] or variable[2] or "", variable[0]))
        elif self._text[self._at : self._at + 1] in set(' \t\n.,:;/%=+)|"') | {""}:
            word.add("$")
        else:
            raise _NotPlainError(f"what begins with {self._text[start : start + 10]!r}")


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
