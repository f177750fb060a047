"""Leaving out, with ripgrep where there is one, the files in which a pattern cannot match.

What ripgrep says is never shown: the files that it leaves are searched by Python's engine, as all are where there is
no ripgrep. So both ways give the same results, and a file swapped for a link under ripgrep's feet gives nothing away.
"""

from __future__ import annotations

import os
import re
import shutil
import string
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

from aeon_core.tools.search.process import run

_LETTERS_TOO = {"i": "\u0130\u0131", "k": "\u212a", "s": "\u017f"}
"""What Python takes for an ASCII letter besides its two cases, where case does not matter."""

# Bytes of ASCII characters; the bytes of all others are taken in whole, as part of what `_one_of` gives.
_SETS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t-\r\x1c-\x20"}
_HIGH = r"\x80-\xff"
_ANY = r"(?-u:[^\n]{1,4})"

_CHARACTER = r"[\x20-\x5a\x5e-\x7e]"  # printable ASCII but for brackets and the backslash
_QUOTED = r"\\[\x20-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]"
_MEMBER = re.compile(rf"(?P<set>\\[dws])|(?P<first>{_CHARACTER}|{_QUOTED}|\\t)(?:-(?P<last>{_CHARACTER}|{_QUOTED}))?")
_PIECE = re.compile(
    rf"(?P<members>\[\^?(?:{_CHARACTER}|{_QUOTED}|\\[dwst])+\])"
    r"|(?P<set>\\[dDwWsS])"
    r"|(?P<nothing>\\b|[$^])"
    r"|(?P<any>\.)"
    r"|(?P<group>\((?!\?)|\(\?:|\(\?P<\w+>)"
    r"|(?P<structure>[|)])"
    r"|(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})\??)(?![*+?{])"
    rf"|(?P<text>{_QUOTED}|\\t|[^\\\[(){{|*+?.^$])"
)


def loosened(pattern: str, ignore_case: bool) -> str | None:
    """Return a pattern that matches, in ripgrep, in every line in which Python's engine matches the one given.

    Only what both dialects have is taken over, the rest made wider: anchors and word ends are left out, characters
    beyond ASCII and bytes that are not UTF-8 fit every class. None for what cannot be told, such as look-around, back
    references and flags, and for what may not be a pattern.
    """
    made: list[str] = []
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        text = None if piece is None else _loosened_piece(piece, ignore_case)
        if piece is None or text is None:
            return None
        made.append(text)
        at = piece.end()
    return "".join(made)


def _loosened_piece(piece: re.Match[str], ignore_case: bool) -> str | None:
    text = piece.group()
    match piece.lastgroup:
        case "members":
            return _one_of(text[1:-1], ignore_case)
        case "set":
            name = text[1]
            return f"(?-u:[{_SETS[name]}{_HIGH}]{{1,4}})" if name in _SETS else f"(?-u:[^{_SETS[name.lower()]}]{{1,4}})"
        case "nothing":
            return "(?:)"
        case "any":
            return _ANY
        case "group":
            return "(?:"
        case "text":
            return _literal(_unquoted(text), ignore_case)
        case _:
            return text


def _one_of(inside: str, ignore_case: bool) -> str:
    """Return the bytes of a class; one character is up to four of them, and so is what is read as U+FFFD."""
    negated = inside.startswith("^")
    members = "".join(_member(member) for member in _MEMBER.finditer(inside, int(negated)))
    if negated:
        return f"(?-u:[^{members}]{{1,4}})"
    letters = "A-Za-z" if ignore_case else ""
    return f"(?-u:[{members}{letters}{_HIGH}]{{1,4}})"


def _member(member: re.Match[str]) -> str:
    if member["set"]:
        return _SETS[member["set"][1]]
    first = f"\\x{ord(_unquoted(member['first'])):02x}"
    return f"{first}-\\x{ord(_unquoted(member['last'])):02x}" if member["last"] else first


def _unquoted(text: str) -> str:
    return "\t" if text == r"\t" else text[-1]


def _literal(character: str, ignore_case: bool) -> str | None:
    if not (character.isprintable() or character == "\t") or character == "\ufffd":
        return None
    if not ignore_case:
        return f"\\x{{{ord(character):x}}}"
    if not character.isascii():
        return None
    if character not in string.ascii_letters:
        return f"\\x{{{ord(character):x}}}"
    lower = character.lower()
    return f"[{lower}{lower.upper()}{_LETTERS_TOO.get(lower, '')}]"


WORTH_IT = 50
"""Fewer files than these are read before ripgrep has started."""

_MAX_ARGUMENTS = 200_000
# fmt: off
_OPTIONS = (
    "--no-config", "--no-messages", "--no-follow", "--no-ignore", "--hidden", "--text", "--encoding", "none",
    "--color", "never", "--files-with-matches", "--null",
)
# fmt: on


def find_ripgrep(root: Path) -> str | None:
    """Return the path of the `rg` installed beside Aeon, else of the one on PATH; None where there is none.

    One that lies in the project is not run, for whoever wrote the project would say what it does.
    """
    for path in (sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)):
        found = shutil.which("rg", path=path)
        if found and Path(found).is_absolute() and not Path(found).resolve().is_relative_to(root):
            return found
    return None


def narrowed(program: str, root: Path, paths: list[str], pattern: str, ignore_case: bool, deadline: float) -> list[str]:
    """Return those of the paths, in their order, in which the pattern may match in one line.

    All of them for a pattern that ripgrep cannot judge, and where it fails. Raises TimeoutError at the
    deadline, a time of the monotonic clock in seconds.
    """
    wider = loosened(pattern, ignore_case) if len(paths) >= WORTH_IT else None
    if wider is None:
        return paths
    kept: list[str] = []
    for chunk in _chunks(paths):
        command = [program, *_OPTIONS, "-e", wider, "--", *(f"./{path}" for path in chunk)]
        try:
            done = run(command, folder=root, data=b"", seconds=deadline - time.monotonic())
        except TimeoutError:
            raise
        except OSError:
            return paths
        if done.code not in (0, 1):
            return paths
        found = {os.fsdecode(path).removeprefix("./") for path in done.stdout.split(b"\0")}
        kept += [path for path in chunk if path in found]
    return kept


def _chunks(paths: list[str]) -> Iterator[list[str]]:
    """Give the paths in parts that fit a command line."""
    chunk: list[str] = []
    size = 0
    for path in paths:
        chunk.append(path)
        size += len(path.encode("utf-8", "surrogateescape")) + 3
        if size > _MAX_ARGUMENTS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
