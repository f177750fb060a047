"""Which simple commands a shell line would run, as far as that can be told by reading it (REQ-028, design decision 4).

What is read here decides what is refused and what a rule may allow; it is no wall. A script in a file, a program's own
ways to start another, and text that is made while the line runs cannot be seen. Isolation is what holds then.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, cast

from aeon_core.tools.shell.ast import (
    MAX_VALUE,
    Node,
    Redirect,
    Root,
    SimpleCommand,
    Variables,
    Word,
    all_nodes,
    expand,
    has_guards,
    joined,
    leaves_out,
    mended,
    source_of,
)
from aeon_core.tools.shell.nested_commands import (
    Argv,
    Code,
    Opaque,
    Script,
    assigns_by_name,
    computes,
    hidden_scripts,
    operand_start,
)
from aeon_core.tools.shell.option_effects import GIT_OPTIONS, written_files
from aeon_core.tools.shell.wrappers import runs

if TYPE_CHECKING:
    from tree_sitter import Parser


MAX_DEPTH = 100
"""How deeply a line may nest; a deeper one is not read."""
MAX_WORDS = 8_000
"""How many words a line may have, with those that variables and braces make."""
MAX_ITEMS = 200
"""How many items of an array are kept."""
MAX_PIPED = 200
"""How many commands of earlier stages are kept for a stage of a pipeline."""

_SIMPLE = {"command", "declaration_command", "unset_command", "variable_assignment", "variable_assignments"}
_REDIRECTS = {"file_redirect", "herestring_redirect", "heredoc_redirect"}
_WORDS = {
    "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "command_name",
    "simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion",
    "brace_expression", "extglob_pattern", "regex", "$", "variable_name", "subscript", "test_operator",
}  # fmt: skip
_KEYWORDS = {"export", "declare", "local", "readonly", "typeset", "unset", "unsetenv"}
_BACKQUOTED = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_CONTINUED = re.compile(rb"(?:\\\n)*")


Piped = tuple[SimpleCommand, ...]


class TooMuchError(Exception):
    """The line is larger than what is read of one: nesting, words, stages of a pipeline or commands."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command occurs: what is piped to it, and in which functions."""

    piped_from: Piped = ()
    stdin: str | None = None
    functions: tuple[str, ...] = ()
    concurrent: bool = False


@dataclass(slots=True)
class _Parts:
    """What a simple command is put together from."""

    words: list[Word] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    assignments: list[str] = field(default_factory=list)
    vanished: bool = False
    """Whether a variable seems to leave no word: then no other is certain to be where it is."""

    def add(self, words: list[Word], source: str) -> None:
        self.words += words
        self.shown.append(words[0].shown if len(words) == 1 else source)
        self.vanished = self.vanished or not words


class TreeWalker:
    """Hands each simple command of a tree to `on_command`, and each script that it holds as text to `on_script`.

    `commands` is the list to which `on_command` adds: a pipeline's later stages know what the earlier ones run.
    """

    def __init__(
        self,
        source: bytes,
        variables: Variables,
        commands: list[SimpleCommand],
        on_command: Callable[[SimpleCommand], None],
        on_script: Callable[[str, Place], None],
    ) -> None:
        self._source = source
        self._variables = variables
        self._commands = commands
        self._on_command = on_command
        self._on_script = on_script
        self._count = 0

    def walk(self, node: Node, place: Place, depth: int = 0) -> None:
        """Visit the node and all below it. Raises TooMuchError."""
        if depth > MAX_DEPTH:
            raise TooMuchError
        match node.type:
            case kind if kind in _SIMPLE:
                self._simple(node, [], place, depth)
            case "redirected_statement":
                self._redirected(node, place, depth)
            case "pipeline" | "list":
                self._sequence(node.children, place.piped_from, place, depth)
            case "function_definition":
                name = next((source_of(child) for child in node.children if child.type == "word"), "")
                self._children(node, replace(place, functions=(*place.functions, name)), depth)
            case "command_substitution" if source_of(node).lstrip().startswith("`") and "\\" in source_of(node):
                self._on_script(_backquoted(source_of(node).strip()[1:-1]), place)
            case "heredoc_redirect":
                self._heredoc(node, (), place, depth)
            case "expansion":
                self._backquotes(node, place)
                self._children(node, place, depth)
            case "comment":
                return
            case _:
                self._children(node, place, depth)

    def _children(self, node: Node, place: Place, depth: int) -> None:
        for child, following in pairwise([*node.children, None]):
            if child is None:
                continue
            if child.children or child.type in _SIMPLE:
                background = following is not None and following.type == "&"
                self.walk(child, replace(place, concurrent=True) if background else place, depth + 1)

    def _sequence(self, nodes: Iterable[Node], upstream: Piped, place: Place, depth: int) -> None:
        """Visit the stages of pipelines and what `&&` and `||` join; the first is fed by `upstream`.

        The grammar may put a list into a pipeline, for `a | b | { c; } && d`; only the operators are to be trusted.
        """
        items = list(_flat(nodes))
        for index, item in enumerate(items):
            if item.type in {"&&", "||"}:
                upstream = place.piped_from
            if not item.children:
                continue
            around = items[max(index - 1, 0) : index + 2]
            piped = any(other.type in {"|", "|&"} for other in around)
            first = len(self._commands)
            self.walk(item, replace(place, piped_from=upstream, concurrent=place.concurrent or piped), depth + 1)
            upstream = (*upstream, *self._commands[first:])
            if len(upstream) > MAX_PIPED:
                raise TooMuchError

    def _redirected(self, node: Node, place: Place, depth: int) -> None:
        """Visit a statement with redirections; those of a loop or a group count as a command without words."""
        redirects = [child for child in node.children if child.type in _REDIRECTS]
        body = next((child for child in node.children if child.type not in _REDIRECTS), None)
        if body is None or body.type in _SIMPLE:
            self._simple(body, redirects, place, depth)
            return
        first = len(self._commands)
        parts = self._parts(None, redirects)
        stdin = self._stdin(redirects)
        self.walk(body, place if stdin is None else replace(place, stdin=stdin), depth + 1)
        self._emit(parts, place)
        self._after(redirects, tuple(self._commands[first:]), place, depth)

    def _simple(self, node: Node | None, redirects: list[Node], place: Place, depth: int) -> None:
        first = len(self._commands)
        children = node.children if node is not None and node.type in _SIMPLE - {"variable_assignment"} else []
        redirects = [*(child for child in children if child.type in _REDIRECTS), *redirects]
        stdin = self._stdin(redirects)
        here = place if stdin is None else replace(place, stdin=stdin)
        self._emit(self._parts(node, redirects), here)
        upstream = (*place.piped_from, *self._commands[first:])
        inner = replace(place, piped_from=upstream)
        for child in chain(node.children if node is not None else (), redirects):
            if child.type == "heredoc_redirect" or not child.children:
                continue
            fed = inner if b">(" in (child.text or b"") else place
            if child.type == "variable_assignment":
                self._children(child, fed, depth + 1)
            else:
                self.walk(child, fed, depth + 1)
        self._after(redirects, upstream, place, depth)

    def _after(self, redirects: list[Node], upstream: Piped, place: Place, depth: int) -> None:
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                self._heredoc(redirect, upstream, place, depth)

    def _heredoc(self, node: Node, upstream: Piped, place: Place, depth: int) -> None:
        """Visit what the grammar keeps inside a here-document: its substitutions, and the rest of its first line."""
        quoted = not _expands(node)
        for child in node.children:
            if child.type == "pipeline":
                self._sequence(child.children, upstream, place, depth + 1)
            elif child.type == "heredoc_body" and not quoted:
                self._children(child, place, depth + 1)
                self._backquotes(child, place)
            elif child.type != "heredoc_body" and child.children:
                self.walk(child, place, depth + 1)

    def _backquotes(self, node: Node, place: Place) -> None:
        """Pass on what is in backquotes where the grammar takes them for text."""
        for found in _BACKQUOTED.finditer(source_of(node)):
            self._on_script(_backquoted(found[1]), place)

    def _stdin(self, redirects: list[Node]) -> str | None:
        for redirect in reversed(redirects):
            if redirect.type == "herestring_redirect":
                return joined(redirect.children[1:], self._variables)[0]
            if redirect.type == "heredoc_redirect":
                bodies = [source_of(child) for child in redirect.children if child.type == "heredoc_body"]
                return bodies[0] if bodies else ""
        return None

    def _parts(self, node: Node | None, redirects: list[Node]) -> _Parts:
        parts = _Parts()
        children = node.children if node is not None else []
        if node is not None and node.type == "variable_assignment":
            children = [node]
        declares = node is not None and node.type in {"declaration_command", "unset_command"}
        for group in self._grouped(children):
            self._add(parts, group, declares)
        for redirect in redirects:
            self._add_redirect(parts, redirect)
        return parts

    def _add(self, parts: _Parts, group: list[Node], declares: bool) -> None:
        first = group[0]
        if first.type == "variable_assignment":
            name, operator, value, known = assignment(first, self._variables)
            if declares:
                parts.add([Word(f"{name}{operator}{value}", known, source_of(first))], source_of(first))
            else:
                parts.assignments.append(f"{name}{operator}{value}")
        elif first.type in _KEYWORDS:
            parts.add([Word(first.type, True, first.type)], first.type)
        elif first.type in _WORDS:
            parts.add(self._expanded(group), "".join(map(source_of, group)))

    def _expanded(self, group: list[Node]) -> list[Word]:
        words = expand(group, self._variables)
        self._count += len(words)
        if self._count > MAX_WORDS:
            raise TooMuchError
        return words

    def _add_redirect(self, parts: _Parts, node: Node) -> None:
        if node.type == "heredoc_redirect":
            for group in self._grouped(node.children):
                if group[0].type in _REDIRECTS:
                    self._add_redirect(parts, group[0])
                elif group[0].type in _WORDS:
                    parts.add(self._expanded(group), "".join(map(source_of, group)))
            return
        groups = list(self._grouped([child for child in node.children if child.type != "file_descriptor"]))
        if node.type == "file_redirect" and len(groups) > 1:
            parts.redirects.append(Redirect(groups[0][0].type, joined(groups[1], self._variables)[0]))
            # The grammar takes the words that follow a redirection for further targets.
            for group in groups[2:]:
                parts.add(self._expanded(group), "".join(map(source_of, group)))

    def _grouped(self, nodes: list[Node]) -> Iterator[list[Node]]:
        """Yield the nodes of each word: those with nothing between them, or only line continuations."""
        group: list[Node] = []
        for node in nodes:
            if group and not self._adjoins(group[-1], node):
                yield group
                group = []
            group.append(node)
        if group:
            yield group

    def _adjoins(self, one: Node, other: Node) -> bool:
        if one.type not in _WORDS or other.type not in _WORDS or (other.text or b"")[:1].isspace():
            return False
        return bool(_CONTINUED.fullmatch(self._source, one.end_byte, other.start_byte))

    def _emit(self, parts: _Parts, place: Place) -> None:
        if parts.vanished and not parts.words:
            parts.words += [Word(source, False, source) for source in parts.shown]
        if not (parts.words or parts.redirects or parts.assignments):
            return
        written = (f"{redirect.operator} {redirect.target}" for redirect in parts.redirects if redirect.writes)
        self._on_command(
            SimpleCommand(
                tuple(word.text for word in parts.words),
                tuple(word.literal and not parts.vanished for word in parts.words),
                " ".join((*parts.assignments, *parts.shown, *written)),
                tuple(parts.redirects),
                tuple(parts.assignments),
                place.piped_from,
                place.stdin,
                place.functions,
                place.concurrent,
            )
        )


def assignment(node: Node, variables: Variables) -> tuple[str, str, str, bool]:
    """Return an assignment's name, operator, value, and whether that is literal; an array's items are joined."""
    name, operator, *rest = node.children
    if rest and rest[0].type == "array":
        items = (item for child in rest[0].children if child.type in _WORDS for item in expand([child], variables))
        return source_of(name), operator.type, " ".join(item.text for item in islice(items, MAX_ITEMS)), False
    value, known = joined(rest, variables)
    return source_of(name), operator.type, value, known


def _flat(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield the nodes in the order of the source, pipelines and lists among them taken apart."""
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        if node.type in {"pipeline", "list"}:
            waiting.extend(reversed(node.children))
        else:
            yield node


def _expands(heredoc: Node) -> bool:
    return not any(
        child.type == "heredoc_start" and re.search(r"[\\'\"]", source_of(child)) for child in heredoc.children
    )


def _backquoted(source: str) -> str:
    return re.sub(r"\\([\\$`])", r"\1", source)


__all__ = [
    "Reading",
    "Redirect",
    "SimpleCommand",
    "policy_texts",
    "readings",
    "simple_commands",
    "spellings",
    "unknown_program",
]

MAX_TEXT = 50_000
"""How many bytes of script are read for one line, those inside of it counted again; a longer one is not told."""
MAX_COMMANDS = 2_000
"""How many simple commands are read of one line."""
MAX_POSITIONAL = 50
"""How many arguments of a function's call are followed."""
MAX_NESTED = 12
"""How many scripts may stand in one another, as in `sh -c 'sh -c …'`."""
MAX_READINGS = 4
"""How many values of a variable that is set more than once are tried."""

MAX_SECONDS = 0.25
"""How long a script may take to parse; some that do not parse take time that grows with the square of their length."""

_ALWAYS: Variables = {"HOME": "~", "PWD": ".", "IFS": " ", "SHELL": "bash", "BASH": "bash"}
_DECIDES = re.compile(
    r"PATH|IFS|BASH_ENV|ENV|PROMPT_COMMAND|PS4|SHELLOPTS|BASHOPTS|LD_PRELOAD|LD_AUDIT|BASH_FUNC_.*|BASH_ALIASES|BASH_CMDS"
)
"""Variables that decide which program a word names, or that bash runs."""
_LOOP = re.compile(rf"\b(?:for|select)\s+({_DECIDES.pattern.replace('.*', '')})\b")
_SETTING = {
    "read",
    "declare",
    "typeset",
    "local",
    "readonly",
    "export",
    "mapfile",
    "readarray",
    "printf",
    "getopts",
    "let",
}
_REDEFINING = {
    "alias": r"=",
    "hash": r"^-[a-z]*p",
    "enable": r"^-[a-z]*f",
    "declare": r"^-[a-zA-Z]*n",
    "typeset": r"^-[a-zA-Z]*n",
    "local": r"^-[a-zA-Z]*n",
    "shopt": r"expand_aliases",
}
"""Builtins that give a word another meaning, with a pattern of the argument that does."""
_EXPANDS = re.compile(r"[$`{*?\[]")
_SHOWN = 60
_SINKS = {"/dev/null", "/dev/stdout", "/dev/stderr"}
_SAFE = re.compile(r"[\w@%+=:,./~^-]+|\{\}")


@dataclass(slots=True)
class Reading:
    """What a line would run, where its variables have the values that they are set to in it."""

    commands: list[SimpleCommand] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """Texts that would be run, but are in another language or could not be parsed."""
    exact: bool = True
    """False where not all that would run is among `commands`."""
    computes: bool = False
    """Whether what bash computes, or what a program is told in a language of its own, may run anything."""


def simple_commands(text: str) -> list[SimpleCommand] | None:
    """Return each simple command that the line would run, also inside `$(…)`, `sh -c`, `env`, pipes and functions.

    A command that runs another stands before the one that it runs. None where this cannot be told: the line does not
    parse, or is too long or nested too deeply. A word that cannot be known before it runs is marked in `literal`.
    """
    reading = next(readings(text))
    return reading.commands if reading.exact else None


def policy_texts(text: str) -> list[str] | None:
    """Return a text like `git status --short` for each simple command that the line would run, for rules to match.

    Assignments before a command and redirections that write are part of its text; a command that runs another gives
    both, `env rm x` also `rm x`. A file that is written to also stands alone, as `> out`, so that what allows a command
    does not let it overwrite files, be it by a redirection or an option. None where anything that would run cannot be
    told: then nothing may allow the line.
    """
    reading = next(readings(text))
    commands = reading.commands
    if not reading.exact or reading.computes:
        return None
    if any(command.words and (not command.literal[0] or assigns_by_name(command)) for command in commands):
        return None
    texts = (part for command in commands for part in (command.text, *_written(command)))
    return list(dict.fromkeys(part for part in texts if part))


def unknown_program(text: str) -> str | None:
    """Return why it cannot be told which programs the line would run; None where it can.

    A word that is made while the line runs, by a variable, a substitution or a pattern, becomes a program; a name that
    is set decides what the words mean; or the line does not parse, and holds something to be expanded.
    """
    for reading in readings(text):
        for command in reading.commands:
            if command.words and not command.literal[0]:
                return f"{_cut(command.words[0])!r} only becomes a command when the line runs"
            if name := next((name for name in _set_names(command) if _DECIDES.fullmatch(name)), None):
                return f"it sets {name}, which changes what the other words run"
            if command.program in _REDEFINING and any(
                re.search(_REDEFINING[command.program], word) for word in command.arguments
            ):
                return f"{_cut(command.text)!r} gives a command another meaning"
        if unread := next((text for text in reading.unread if not reading.exact and _EXPANDS.search(text)), None):
            return f"what {_cut(unread)!r} would run is unknown"
    found = _LOOP.search(text)
    return f"it sets {found[1]}, which changes what the other words run" if found else None


def _set_names(command: SimpleCommand) -> Iterator[str]:
    """Yield the variables that a command sets; `IFS= read` sets them for `read` alone."""
    if command.program not in {"read", "mapfile", "readarray"}:
        yield from (re.split(r"[+\[]?=|\[", assigned)[0] for assigned in command.assignments)
    if command.program in _SETTING:
        yield from (re.split(r"[+\[]?=|\[", word)[0] for word in command.arguments)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def spellings(text: str) -> list[str]:
    """Return each simple command that may run in its plainest form, for the rules that ask or deny.

    `A=b /usr/bin/git -C x "$verb"` is `git push` where the line sets `verb` to that: without assignments, folder and
    git's own options, and with what is known of variables, braces and arguments.
    """
    found: dict[str, None] = {}
    for reading in readings(text):
        for command in reading.commands:
            for words in _plain_words(command):
                found[" ".join(words)] = None
    return list(found)


def _plain_words(command: SimpleCommand) -> Iterator[tuple[str, ...]]:
    if not command.words:
        return
    yield (command.program, *command.arguments)
    if command.program == "git":
        start = operand_start(command.words, GIT_OPTIONS)
        yield ("git", *command.words[start:])


def _written(command: SimpleCommand) -> Iterator[str]:
    for redirect in command.redirects:
        if redirect.writes and redirect.target not in _SINKS:
            yield f"> {redirect.target}"
    yield from (f"> {target}" for target in written_files(command) if target not in _SINKS)


def readings(text: str) -> Iterator[Reading]:
    """Yield what the line would run; more than once where a variable is set to several values in it."""
    for variant in range(MAX_READINGS):
        reader = _Reader(variant)
        reader.read(text, _ALWAYS, Place(), 0)
        yield reader.reading
        if reader.variants <= variant + 1:
            return


class _Reader:
    """Reads one script and those inside it, within one budget."""

    def __init__(self, variant: int) -> None:
        self.reading = Reading()
        self.variants = 1
        self._variant = variant
        self._bytes = 0
        self._words = 0

    def read(self, text: str, variables: Variables, place: Place, depth: int) -> None:
        source = text.encode("utf-8", "replace")
        self._bytes += len(source)
        root = None
        if depth <= MAX_NESTED and self._bytes <= MAX_TEXT and not has_guards(text):
            root, source = mended(source, _parsed)
        if root is None:
            self._give_up(text)
            return
        if root.has_error or leaves_out(root, source):
            self._give_up(text)
        known = self._assigned(root, variables)
        self.reading.computes |= computes(root)
        try:
            self._walk(root, source, known, place, depth)
            for script in hidden_scripts(root, text, known):
                self.read(script, known, place, depth + 1)
        except TooMuchError:
            self._give_up(text)

    def _give_up(self, text: str) -> None:
        self.reading.exact = False
        self.reading.unread.append(text)

    def _walk(self, root: Node, source: bytes, variables: Variables, place: Place, depth: int) -> None:
        def on_command(command: SimpleCommand) -> None:
            self._add(command, variables, depth)

        def on_script(text: str, place: Place) -> None:
            self.read(text, variables, place, depth + 1)

        TreeWalker(source, variables, self.reading.commands, on_command, on_script).walk(root, place)

    def _add(self, command: SimpleCommand, variables: Variables, depth: int) -> None:
        if len(self.reading.commands) >= MAX_COMMANDS:
            raise TooMuchError
        self.reading.commands.append(command)
        if depth > MAX_NESTED:
            self._give_up(command.text)
            return
        for inner in runs(command):
            match inner:
                case Argv():
                    self._words += len(command.words) - inner.start
                    if self._words > MAX_WORDS:
                        raise TooMuchError
                    self._add(_inner(command, inner), variables, depth + 1)
                case Script():
                    place = Place(command.piped_from, command.stdin, command.functions, command.concurrent)
                    numbered = {str(number): value for number, value in enumerate(inner.arguments)}
                    everything = {"@": " ".join(inner.arguments[1:])} if inner.arguments else {}
                    self.read(inner.text, variables | numbered | everything, place, depth + 1)
                case Code():
                    self.reading.unread.append(inner.text)
                case Opaque():
                    self.reading.computes = True

    def _assigned(self, root: Node, variables: Variables) -> Variables:
        """Return `variables` with those that the script sets itself; order and conditions are not followed."""
        found: dict[str, list[str]] = {}
        known = dict(variables)
        for name, value in islice(_assignments(root, known), MAX_COMMANDS):
            if len(value) > MAX_VALUE:
                known.pop(name, None)
                continue
            known[name] = value
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
        self.variants = max(self.variants, *map(len, found.values()), 1)
        return variables | {name: values[-1 - self._variant % len(values)] for name, values in found.items()}


def _inner(command: SimpleCommand, inner: Argv) -> SimpleCommand:
    words = command.words[inner.start : inner.end] + inner.more
    literal = command.literal[inner.start : inner.end] + (False,) * len(inner.more)
    shown = [
        word if not known or _SAFE.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'"
        for word, known in zip(words, literal, strict=True)
    ]
    return replace(command, words=words, literal=literal, text=" ".join(shown), redirects=(), assignments=())


def _assignments(root: Node, known: Variables) -> Iterator[tuple[str, str]]:
    """Yield each variable that is set, in the order of the source: by assignment, a loop, `set --` or a call."""
    functions: set[str] = set()
    for node in all_nodes(root):
        children = node.children
        if node.type == "variable_assignment":
            name, operator, value, _ = assignment(node, known)
            before = known.get(name, "") if operator == "+=" else ""
            yield name, before + value
        elif node.type == "function_definition":
            functions |= {source_of(child) for child in children if child.type == "word"}
        elif node.type == "for_statement" and len(children) > 1:
            for child in children[3:]:
                yield from ((source_of(children[1]), word.text) for word in _loop_values(child, known))
        elif node.type == "command":
            name = source_of(children[0]) if children else ""
            if name == "set" or name in functions:
                expanded = (word.text for child in children[1:] for word in expand([child], known))
                yield from _positional([word for word in islice(expanded, MAX_POSITIONAL) if word != "--"])


def _loop_values(node: Node, known: Variables) -> list[Word]:
    return [] if node.type in {"do_group", ";", "\n"} else expand([node], known)


def _positional(words: list[str]) -> Iterator[tuple[str, str]]:
    yield "@", " ".join(words)
    yield "*", " ".join(words)
    yield from ((str(number), word) for number, word in enumerate(words, 1))


@lru_cache(maxsize=16)
def _parsed(source: bytes) -> Root | None:
    """Return the root of the source's syntax tree; None where parsing takes longer than MAX_SECONDS."""
    parser = _parser()
    end = time.monotonic() + MAX_SECONDS
    try:
        tree = parser.parse(
            lambda offset, _point: source[offset : offset + 4096],
            progress_callback=lambda _offset, _error: time.monotonic() > end,
        )
    except ValueError:
        parser.reset()
        return None
    return cast(Root, tree.root_node)


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
