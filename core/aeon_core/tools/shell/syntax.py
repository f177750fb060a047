"""Parses the syntax of a shell line: its simple commands, each with words, redirections and assignments (REQ-028).

Plain commands are words, quoted or not, with variables and `$(…)` among a command's arguments, joined by `&&`, `||`,
`;`, `|`, `&` and line breaks, with redirections, here-documents, groups, `if` and loops. Their syntax is not checked:
if it is wrong, bash runs nothing.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass, field, replace

from aeon_core.tools.shell.programs import NAMING, SIMPLE_RUNNERS

MAX_DEPTH = 20
"""The most levels of commands in commands that are parsed."""
_MAX_SHOWN = 60

_RESERVED = {"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "time", "!"}
"""Words that only structure a line. If their syntax is wrong, bash runs nothing of it."""
_COMPOUND = {"case", "function", "select", "coproc", "[["}
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*(?:#[^\n]*)?")
_REDIRECT = re.compile(r"[0-9]*([<>]&-|<<<|<<-?|<>|<&|<|>>|>\||>&|>)|(&>>?)")
_SEPARATOR = re.compile(r"&&|\|\||\|&|[;&|\n]")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\}|[?#$!@*-])")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)
_GLOB = re.compile(r"[*?\[]")
_BECOMES_OPTION = re.compile(r"[*?]|-[^/]*[*?\[]|\[[^]]*-|\[[!^]")
"""A pattern that may match a name that begins with a hyphen."""
_ENDS_WORD = " \t\n;&|<>()"
_KNOWN = {"HOME": "~", "PWD": "."}


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
    after: str = ""
    """The operator between it and the command before, such as `|`; empty for the first one."""
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


def cut(text: str, most: int = _MAX_SHOWN) -> str:
    """Return the text cut to this many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


class NotPlainError(Exception):
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
        elif ASSIGNMENT.match(word.source):
            self.assignments.append(word.text)
        else:
            raise NotPlainError("an array")

    def command(self, piped: bool, after: str) -> SimpleCommand:
        program = posixpath.basename(self.words[0].text) if self.words else ""
        # A pattern may expand to a program, an option or a name, such as that of a file `PATH=.`.
        matters = len(self.words) if program in SIMPLE_RUNNERS | NAMING else 1
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
            after,
            any(_GLOB.search(word.bare) and _BECOMES_OPTION.match(word.text) for word in self.words),
        )


class Reader:
    """Parses a text from left to right; everything that it does not know raises NotPlainError."""

    def __init__(self, text: str, piped: bool) -> None:
        self.commands: list[SimpleCommand] = []
        self.doubt: str | None = None
        """Why it is unknown which file is written."""
        self.loops: list[str] = []
        """The variables of the loops, as written."""
        self._text = text
        self._at = 0
        self._depth = 0
        self._piped, self._after = piped, ""
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
                raise NotPlainError("arithmetic or a case")
            if not char or (char == ")" and not groups):
                break
            if char in "()":
                self._at += 1
                groups += 1 if char == "(" else -1
            elif separator and not self._looking_at("&>"):
                self._at = separator.end()
                self._piped = self._piped or separator[0] in {"|", "|&"}
                self._after = self._after or separator[0]
                if char == "\n":
                    self._here_documents()
            else:
                self._command()
        if char != end or groups or self._awaited:
            raise NotPlainError("an incomplete line")
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
                    raise NotPlainError(f"{word.source!r}")
                parts.loops = parts.loops or (starts and word.source == "for")
                parts.add(word)
            self._skip()
        if self._looking_at("("):
            raise NotPlainError("a function or an array")
        if parts.loops:
            self.loops.append(parts.words[1].source if len(parts.words) > 1 else "")
        self._awaited[awaited:] = [(*document[:3], len(self.commands)) for document in self._awaited[awaited:]]
        if not parts.loops or awaited < len(self._awaited):
            self.commands.append(parts.command(self._piped, self._after))
            self._after = ""

    def _redirect(self, operator: str, parts: _Parts) -> None:
        if operator in {"<&-", ">&-"}:
            return
        self._skip()
        target = self._word()
        if operator in {"<&", ">&"} and target.source != target.text:
            raise NotPlainError("a redirection that bash expands twice")
        if operator == "<<<":
            parts.stdin = target.text
        elif operator.startswith("<<"):
            if not target.literal:
                raise NotPlainError("a here-document with a delimiter that is not plain")
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
                    raise NotPlainError("a here-document without its end")
                end = self._text.find("\n", self._at)
                line = self._text[self._at : end if end >= 0 else None]
                self._at += len(line) + (end >= 0)
                line = line.lstrip("\t") if without_tabs else line
                if line == delimiter:
                    break
                body.append(line)
            text = "\n".join(body)
            if not quoted and re.search(r"[$`\\]", _VARIABLE.sub("", text)):
                raise NotPlainError("a here-document with substitutions")
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
                    raise NotPlainError("a backslash at the end")
                if escaped != "\n":
                    word.add(escaped)
            elif char == "$":
                if self._looking_at('"'):
                    raise NotPlainError("what begins with '$\"'")
                self._expansion(word)
            elif char == "`" or (char < " " and char != "\t"):
                raise NotPlainError("a backquote or a control character")
            else:
                word.add(char, bare=True)
        if self._at == start:
            raise NotPlainError("a redirection without a plain target")
        if "{" in word.bare and (
            "," in word.bare or ".." in word.bare or self._text[self._at : self._at + 1] in {"<", ">"}
        ):
            raise NotPlainError("a brace expansion")
        word.source = self._text[start : self._at].replace("\\\n", "")
        if word.source.isdecimal() and self._text[self._at : self._at + 1] in {"<", ">"}:
            raise NotPlainError("a redirection across lines")
        return word

    def _quoted(self, word: _Word, quote: str) -> None:
        """Read up to the end of single or double quotes."""
        word.add("")
        while not self._looking_at(quote):
            if self._at >= len(self._text):
                raise NotPlainError("a quote without its end")
            char = self._text[self._at]
            self._at += 1
            if quote == '"' and char == "\\" and self._text[self._at : self._at + 1] in {"$", "`", '"', "\\", "\n"}:
                word.add(self._text[self._at].strip("\n"))
                self._at += 1
            elif quote == '"' and char == "$":
                self._expansion(word)
            elif (quote == '"' and char == "`") or char == "\0" or (char == "\n" and self._awaited):
                raise NotPlainError("a backquote" if char == "`" else "a line end in quotes before a here-document")
            else:
                word.add(char)
        self._at += 1

    def _expansion(self, word: _Word) -> None:
        """Read what follows a `$`."""
        start = self._at - 1
        if self._looking_at("(") and not self._looking_at("(("):
            self._depth += 1
            if self._awaited or self._depth > MAX_DEPTH:
                raise NotPlainError("so much nesting")
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
            raise NotPlainError(f"what begins with {self._text[start : start + 10]!r}")
