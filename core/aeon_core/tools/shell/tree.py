"""From a syntax tree to the simple commands in it, wherever they stand: pipes, loops, functions, substitutions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise

from aeon_core.tools.shell.ast import Redirect, SimpleCommand
from aeon_core.tools.shell.words import Node, Variables, Word, expand, joined, source_of

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
    """Where a command stands: what is piped to it, and in which functions."""

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
    """Whether a variable seems to leave no word: then none of the others is certain to stand where it does."""

    def add(self, words: list[Word], source: str) -> None:
        self.words += words
        self.shown.append(words[0].shown if len(words) == 1 else source)
        self.vanished = self.vanished or not words


class TreeWalker:
    """Hands each simple command of a tree to `on_command`, and each script that it holds as text to `on_script`.

    `commands` is the list to which `on_command` adds: a pipeline's later stages are told what the earlier ones run.
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
        """Hand on what stands in backquotes where the grammar takes them for text."""
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
