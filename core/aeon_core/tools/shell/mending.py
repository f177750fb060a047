"""Where the grammar's tree differs from what bash reads: lines that it joins, words that it leaves out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Protocol

from aeon_core.tools.shell.words import Node

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
