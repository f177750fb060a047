"""What a shell line is made of, once it is parsed."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Protocol

Finding = tuple[str, str]
"""The name of a blocklist pattern, and why a command matches it."""

_ESCAPE = re.compile(r"\\([nt]|x[0-9a-fA-F]{1,2}|[0-7]{1,4})")
_OPEN = re.compile(r"[$`]|[<>]\(")


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
    """One command that would run: a program with its arguments, or only assignments or redirections."""

    words: tuple[str, ...]
    """Without quotes. What cannot be known before it runs is kept as written, such as `$(date)`."""
    literal: tuple[bool, ...]
    """For each word, whether it is exactly what would be passed: no variable, substitution, glob or brace in it."""
    text: str
    """The command on one line, quoted only where it must be."""
    redirects: tuple[Redirect, ...] = ()
    assignments: tuple[str, ...] = ()
    piped_from: tuple[SimpleCommand, ...] = ()
    """The commands of the earlier stages of its pipelines, in the order in which they are written."""
    stdin: str | None = None
    """The here-document or here-string that it reads."""
    functions: tuple[str, ...] = ()
    """The functions whose bodies contain it, the innermost last."""
    concurrent: bool = False
    """Whether it is a stage of a pipeline, or runs in the background."""

    @property
    def program(self) -> str:
        """The program's name without its folder; empty where there is none."""
        return posixpath.basename(self.words[0]) if self.words else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the program."""
        return self.words[1:]

    def is_open(self, index: int) -> bool:
        """Return whether the word at `index` cannot be known: it holds a variable or a substitution."""
        return not self.literal[index] and bool(_OPEN.search(self.words[index]))

    def input_text(self) -> str | None:
        """Return what the command reads where that is written in the line, else None."""
        if self.stdin is not None:
            return self.stdin
        texts = [text for text in map(_printed, self.piped_from) if text is not None]
        return "\n".join(texts) if texts else None


def _printed(command: SimpleCommand) -> str | None:
    """Return what `echo`, `printf` or a here-document's reader prints; None for all other commands."""
    if command.program == "echo":
        kept = [word for word in command.arguments if not re.fullmatch(r"-[neE]+", word)]
        return _unescaped(" ".join(kept))
    if command.program == "printf" and command.arguments:
        return _unescaped("\n".join(command.arguments))
    return command.stdin if command.program in {"cat", "tee"} else None


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _escaped(found[1]), text)


def _escaped(code: str) -> str:
    if code[0] == "x":
        return chr(int(code[1:], 16))
    return {"n": "\n", "t": "\t"}.get(code) or chr(int(code, 8) & 0xFF)


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
            yield _without_escapes(source), True
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


def _without_escapes(source: str) -> str:
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


MAX_MENDS = 3
"""How often a line's tree is corrected before it counts as one that does not parse."""

_WITH_TEXT = {"string", "heredoc_body", "expansion"}
"""The nodes whose text is not all in their children."""
_BETWEEN = re.compile(rb"(?:[ \t\n]|\\\n)*(?:-[ \t])?")
_ON_ONE_LINE = {"command", "declaration_command", "unset_command", "variable_assignments", "file_redirect"}
_LINE_START = re.compile(rb"((?:[ \t]|\\\n)*\n[ \t\n]*)\\[\w./\n-]")
_BETWEEN_WORDS = re.compile(rb"(?:[ \t]|\\\n)*")


class Root(Node, Protocol):
    """A syntax tree's root, which knows whether anything in it does not parse."""

    @property
    def has_error(self) -> bool: ...


def all_nodes(root: Node) -> Iterator[Node]:
    """Yield the nodes in the order of the source."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def mended(source: bytes, parse: Callable[[bytes], Root | None]) -> tuple[Root | None, bytes]:
    """Return the syntax tree of the source, and the source it stands for.

    The grammar takes a line that begins with a backslash for more of the line before it: `ls` and `\\rm x` on the next
    would be one command. Those backslashes, which quote a plain letter or a line end, are blanked.
    """
    root = parse(source)
    for _ in range(MAX_MENDS):
        places = list(_swallowed(root, source)) if root is not None else []
        if not places:
            break
        changed = bytearray(source)
        for place in places:
            blanks = b"  " if source[place + 1 : place + 2] == b"\n" else b" "
            changed[place : place + len(blanks)] = blanks
        source = bytes(changed)
        root = parse(source)
    return root, source


def _swallowed(root: Node, source: bytes) -> Iterator[int]:
    """Yield the places of backslashes that begin a line in the middle of what the tree takes for a command."""
    for node in all_nodes(root):
        if node.type not in _ON_ONE_LINE:
            continue
        for before, child in pairwise(node.children):
            start = before.end_byte
            found = _LINE_START.match(source, start)
            if found and found.end() <= child.end_byte:
                yield found.end(1)


def leaves_out(root: Node, source: bytes) -> bool:
    """Return whether the tree lacks some of the source, or joins lines, as where a word begins with `\\ `.

    A lone `-` that it leaves out before a here-document only names the standard input.
    """
    for node in all_nodes(root):
        children = node.children
        if not children or node.type in _WITH_TEXT:
            continue
        starts = [node.start_byte, *(child.end_byte for child in children)]
        ends = [*(child.start_byte for child in children), node.end_byte]
        gaps = [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
        between = _BETWEEN_WORDS if node.type in _ON_ONE_LINE else _BETWEEN
        if not all(between.fullmatch(source, *gap) for gap in gaps):
            return True
        if node.type in _ON_ONE_LINE and any(source[start:].lstrip(b" \t")[:1] == b"\n" for start in starts[1:-1]):
            return True
    return False
