"""From the source of a word to what the shell makes of it: quotes, variables, braces, splitting."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

MAX_WORDS = 64
"""How many words braces may make of one; the rest is left as it is written."""
MAX_VALUE = 1_000
"""How long what variables make of a word may be, in characters; a longer one is left as it is written."""

_GUARD = 0xE000
_SPECIAL = " \t\n*?[]{},~"
_GUARDED = {ord(char): _GUARD + ord(char) for char in _SPECIAL}
_PLAIN = {_GUARD + ord(char): char for char in _SPECIAL} | {_GUARD: None}
_QUOTED = chr(_GUARD)
_GUARDS = re.compile("[\ue000-\ue07f]")

_BRACES = re.compile(r"\{([^{}]*)\}")
_SEQUENCE = re.compile(r"\{\w+\.\.\w+")
_NEEDS_QUOTES = re.compile(r"[\\'\"]")
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_NAMES = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PARAMETER = re.compile(r"\$\{(!?)(\w+|[@*])(?:\[([@*\w]+)\])?(?:(:?[-=+?])(.*))?\}", re.DOTALL)
_TRIMMED = re.compile(r"\$\{(!?)(HOME|PWD)()()[%#].*()\}", re.DOTALL)
_ECHO = re.compile(r"(?:\$\(|`)\s*(?:echo|printf)\s+(?:-n\s+)?([\w./~=+-]+|'[^'\\]*')\s*[)`]")

Variables = dict[str, str]


class Node(Protocol):
    """What is used here of a syntax tree's node."""

    @property
    def type(self) -> str: ...
    @property
    def children(self) -> list[Node]: ...
    @property
    def start_byte(self) -> int: ...
    @property
    def end_byte(self) -> int: ...
    @property
    def text(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Word:
    """One word as the program would get it."""

    text: str
    literal: bool
    source: str

    @property
    def shown(self) -> str:
        """The word for a policy rule: quoted only where it must be, and as written where it is not literal."""
        if not self.literal or (self.source and not _NEEDS_QUOTES.search(self.source)):
            return self.source
        return shlex.quote(self.text)


def has_guards(text: str) -> bool:
    """Return whether the text holds characters that stand for quoted ones here, and so cannot be read faithfully."""
    return bool(_GUARDS.search(text))


def source_of(node: Node) -> str:
    """Return the text that a node stands for."""
    return (node.text or b"").decode("utf-8", "replace")


def expand(nodes: Iterable[Node], variables: Variables) -> list[Word]:
    """Return the words that the adjacent `nodes` make up; several where braces or a variable's blanks part them."""
    pieces = list(nodes)
    source = "".join(map(source_of, pieces)).strip()
    if len(pieces) > 1:
        pieces = [piece for piece in pieces if piece.type != "$"]
    value, whole = _value_of(pieces, variables)
    fields = [field for braced in _braced(value) for field in re.split(r"[ \t\n]+", braced) if field]
    literal = whole and fields == [value] and not re.search(r"[*?\[]", value) and not _SEQUENCE.search(value)
    return [Word(field.translate(_PLAIN), literal, source) for field in fields]


def joined(nodes: Iterable[Node], variables: Variables) -> tuple[str, bool]:
    """Return the nodes' value as one text, as for an assignment or a here-string, and whether all of it is known."""
    value, whole = _value_of(list(nodes), variables)
    return value.translate(_PLAIN), whole


def _value_of(nodes: list[Node], variables: Variables) -> tuple[str, bool]:
    """Return the value of adjacent nodes, quoted characters guarded, and whether it is literal."""
    parts: list[str] = []
    whole, varied = True, 0
    for part, known in chain.from_iterable(_value(node, variables, quoted=False) for node in nodes):
        parts.append(part)
        whole = whole and known
        varied += 0 if known else len(part)
        if varied > MAX_VALUE:
            return "".join(map(source_of, nodes)).translate(_GUARDED), False
    return "".join(parts), whole


def _value(node: Node, variables: Variables, *, quoted: bool) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a node's value, quoted characters guarded, each with whether it is literal."""
    source = source_of(node)
    match node.type:
        case "concatenation" | "command_name" | "translated_string":
            for child in node.children:
                if node.type != "translated_string" or child.type != "$":
                    yield from _value(child, variables, quoted=quoted)
        case "word" | "number" | "variable_name" | "{" | "}" | "$" | "file_descriptor":
            yield _unescaped(source), True
        case "raw_string":
            yield _QUOTED + source[1:-1].translate(_GUARDED), True
        case "ansi_c_string":
            yield _QUOTED + _ansi(source[2:-1]).translate(_GUARDED), True
        case "string":
            yield from _string(node, variables)
        case "simple_expansion":
            yield _variable(source.strip(), source.strip()[1:], variables, quoted), False
        case "expansion":
            yield _parameter(source.strip(), variables, quoted), False
        case "command_substitution":
            printed = _ECHO.fullmatch(source.strip())
            yield _field(printed[1].strip("'") if printed else None, source.strip(), quoted), False
        case _:
            yield source.translate(_GUARDED), False


def _string(node: Node, variables: Variables) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a double-quoted string; the tree leaves out blanks and line ends between its children."""
    source = node.text or b""
    place, end = 1, len(source) - 1
    yield _QUOTED, True
    for child in node.children:
        if child.type not in {"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"}:
            continue
        blank = len(child.text or b"") - len((child.text or b"").lstrip())
        start = child.start_byte - node.start_byte + blank
        yield _double_quoted(source[place:start]), True
        yield from _value(child, variables, quoted=True)
        place = child.end_byte - node.start_byte
    yield _double_quoted(source[place:end]), True


def _double_quoted(source: bytes) -> str:
    text = source.decode("utf-8", "replace").replace("\\\n", "")
    return re.sub(r'\\([\\"$`])', r"\1", text).translate(_GUARDED)


def _unescaped(source: str) -> str:
    return re.sub(r"\\(.)", lambda found: _QUOTED + found[1].translate(_GUARDED), source.replace("\\\n", ""))


def _ansi(source: str) -> str:
    return _ANSI.sub(lambda found: _ansi_escape(found[1]), source)


def _ansi_escape(code: str) -> str:
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else "\ufffd"
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    if code[0] == "c" and len(code) > 1:
        return chr(ord(code[1]) & 0x1F)
    return _ANSI_NAMES.get(code, code)


def _variable(source: str, name: str, variables: Variables, quoted: bool) -> str:
    return _field(variables.get(name), source, quoted and name != "@")


def _parameter(source: str, variables: Variables, quoted: bool) -> str:
    """Return the value of `${…}`, with the default that it names where the variable is not set."""
    found = _PARAMETER.fullmatch(source) or _TRIMMED.fullmatch(source)
    if not found:
        return source.translate(_GUARDED)
    indirect, name, index, operator, default = found.groups()
    value = _item(variables.get(name), index)
    if indirect:
        value = variables.get(value) if value is not None else None
    if (operator and "+" in operator) or (operator and value is None):
        value = default
    if value is default and default is not None:
        value = None if re.search(r"[$`\\]", default) else default.replace('"', "").replace("'", "")
    return _field(value, source, quoted and "[@]" not in source)


def _item(value: str | None, index: str | None) -> str | None:
    if value is None or index is None or not index.isdecimal():
        return value
    return next(iter(value.split()[int(index[:3]) :]), "")


def _field(value: str | None, source: str, quoted: bool) -> str:
    if value is None:
        return source.translate(_GUARDED)
    return _QUOTED + value.translate(_GUARDED) if quoted else value


def _braced(value: str) -> list[str]:
    """Return the words that `{a,b}` makes of the value, at most MAX_WORDS."""
    done: list[str] = []
    waiting = [value]
    while waiting:
        text = waiting.pop()
        room = len(waiting) + len(done) < MAX_WORDS
        found = next((match for match in _BRACES.finditer(text) if "," in match[1]), None) if room else None
        if not found:
            done.append(text)
            continue
        options = found[1].split(",")
        waiting += [f"{text[: found.start()]}{option}{text[found.end() :]}" for option in reversed(options)]
    return done
