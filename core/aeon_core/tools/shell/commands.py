"""Which simple commands a shell line would run, as far as that can be told by reading it (REQ-028, design decision 4).

What is read here decides what is refused and what a rule may allow; it is no wall. A script in a file, a program's own
ways to start another, and text that is made while the line runs cannot be seen. Isolation is what holds then.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, cast

from aeon_core.tools.shell.ast import Redirect, SimpleCommand
from aeon_core.tools.shell.evaluated import assigns_by_name, computes, hidden_scripts
from aeon_core.tools.shell.mending import Root, all_nodes, leaves_out, mended
from aeon_core.tools.shell.nested_commands import Argv, Code, Opaque, Script, operand_start
from aeon_core.tools.shell.option_effects import GIT_OPTIONS, written_files
from aeon_core.tools.shell.tree import MAX_WORDS, Place, TooMuchError, TreeWalker, assignment
from aeon_core.tools.shell.words import MAX_VALUE, Node, Variables, Word, expand, has_guards, source_of
from aeon_core.tools.shell.wrappers import runs

if TYPE_CHECKING:
    from tree_sitter import Parser

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
                return f"{_cut(command.words[0])!r} becomes a command only when the line runs"
            if name := next((name for name in _set_names(command) if _DECIDES.fullmatch(name)), None):
                return f"it sets {name}, which decides what the other words run"
            if command.program in _REDEFINING and any(
                re.search(_REDEFINING[command.program], word) for word in command.arguments
            ):
                return f"{_cut(command.text)!r} gives a command another meaning"
        if unread := next((text for text in reading.unread if not reading.exact and _EXPANDS.search(text)), None):
            return f"what {_cut(unread)!r} would run cannot be told"
    found = _LOOP.search(text)
    return f"it sets {found[1]}, which decides what the other words run" if found else None


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
