"""Glob patterns as regular expressions: `**`, `*`, `?`, `[...]` and `{a,b}` on project-relative paths (REQ-025)."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_ALTERNATIVES = 200
"""How many patterns the braces of one may stand for."""


class GlobError(ValueError):
    """A glob pattern that cannot be used; the message says why, in a few words."""


def compile_glob(pattern: str) -> re.Pattern[str]:
    r"""Return an expression whose `fullmatch` accepts the relative POSIX paths that the glob pattern means.

    `*` and `?` stand for characters of one name, a leading dot included; `**` as a whole name for any number of
    directories, at the end for everything below; `[a-z]` and `[!a-z]` for one character, `{a,b}` for either text,
    nested ones too; `\` takes the next character as it is. Matching is case-sensitive and takes time in proportion to
    the path, however many stars there are. Raises GlobError for a pattern that is empty, absolute, leaves its
    directory, names one, or is not well formed.
    """
    alternatives = list(_expanded(pattern))
    try:
        return re.compile("|".join(_path(_names(alternative)) for alternative in alternatives), re.DOTALL)
    except re.error as error:
        raise GlobError(f"not well formed: {error.msg}") from None


def _expanded(pattern: str) -> Iterator[str]:
    """Give the patterns without braces that a pattern stands for, left to right."""
    waiting, given = [pattern], 0
    while waiting:
        text = waiting.pop()
        opening = _first_brace(text)
        if opening is None:
            given += 1
            yield text
        else:
            choices, closing = _choices(text, opening)
            waiting += [text[:opening] + choice + text[closing + 1 :] for choice in reversed(choices)]
        if given + len(waiting) > MAX_ALTERNATIVES:
            raise GlobError(f"its braces stand for more than {MAX_ALTERNATIVES} patterns")


def _pieces(text: str, start: int = 0) -> Iterator[tuple[int, str]]:
    """Give position and text of each piece: a special character, an escaped pair, a class, or one character."""
    at = start
    while at < len(text):
        piece = text[at]
        if piece == "\\":
            piece = text[at : at + 2]
            if len(piece) < 2:
                raise GlobError("it ends with a backslash")
        elif piece == "[":
            piece = text[at : _class_end(text, at) + 1]
        yield at, piece
        at += len(piece)


def _class_end(text: str, start: int) -> int:
    at = start + 1
    if text[at : at + 1] in ("!", "^"):
        at += 1
    first = at
    while at < len(text):
        if text[at] == "]" and at > first:
            return at
        at += 2 if text[at] == "\\" else 1
    raise GlobError("'[' is not closed; write '[[]' for the character itself")


def _first_brace(text: str) -> int | None:
    return next((at for at, piece in _pieces(text) if piece == "{"), None)


def _choices(text: str, opening: int) -> tuple[list[str], int]:
    """Return the texts between a brace's commas, and where it is closed."""
    choices, depth, begin = [], 0, opening + 1
    for at, piece in _pieces(text, opening):
        if piece == "{":
            depth += 1
        elif piece == "}":
            depth -= 1
        if (piece == "," and depth == 1) or (piece == "}" and depth == 0):
            choices.append(text[begin:at])
            begin = at + 1
        if depth == 0:
            return choices, at
    raise GlobError("'{' is not closed; write '[{]' for the character itself")


def _names(pattern: str) -> list[str]:
    """Return the names of a pattern's path, without what changes nothing: `.`, doubled slashes, repeated `**`."""
    if not pattern.strip():
        raise GlobError("it is empty")
    if pattern.startswith("/"):
        raise GlobError("it is absolute; give it relative to the project root, or to 'path'")
    names: list[str] = []
    for name in _split(pattern):
        if _unescaped(name) == "..":
            raise GlobError("'..' would leave its directory; give a pattern without it")
        if name not in ("", ".") and not (name == "**" and names[-1:] == ["**"]):
            names.append(name)
    if not names or pattern.endswith("/"):
        raise GlobError("it names a folder, only files are found; end it with '/**' for all below")
    return names


def _split(pattern: str) -> list[str]:
    names = [""]
    for _, piece in _pieces(pattern):
        if piece in ("/", "\\/"):
            names.append("")
        else:
            names[-1] += piece
    return names


def _unescaped(name: str) -> str:
    """Return what a name means where it can mean one text only; `[.].` and `\\..` are ways to write `..` too."""
    return "".join(
        piece[1] if piece[0] == "\\" or (piece[0] == "[" and len(piece) == 3) else piece for _, piece in _pieces(name)
    )


def _path(names: list[str]) -> str:
    """Return the expression for a path.

    What stands between two `**` is taken where it first fits (an atomic group): trying later places could not make
    more of the rest match, and would take exponential time.
    """
    parts = _runs(names, "**")
    if len(parts) == 1:
        return "/".join(map(_name, parts[0]))
    first, *between, last = parts
    regex = "".join(f"{_name(name)}/" for name in first)
    for run in between:
        regex += f"(?>(?:[^/]+/)*?{''.join(f'{_name(name)}/' for name in run)})"
    # A `**` at the end stands for the files below, so there has to be a name.
    return regex + "(?:[^/]+/)*" + ("/".join(map(_name, last)) or "[^/]+")


def _name(name: str) -> str:
    parts = _runs([piece for _, piece in _pieces(name)], "*")
    if len(parts) == 1:
        return "".join(map(_character, parts[0]))
    first, *between, last = ["".join(map(_character, part)) for part in parts]
    # An empty run comes of `**` inside a name, which means the same as `*`. No name is empty.
    regex = first + "".join(f"(?>[^/]*?{run})" for run in between if run) + "[^/]*" + last
    return regex if first or last else f"(?=[^/]){regex}"


def _runs(items: list[str], separator: str) -> list[list[str]]:
    runs: list[list[str]] = [[]]
    for item in items:
        if item == separator:
            runs.append([])
        else:
            runs[-1].append(item)
    return runs


def _character(piece: str) -> str:
    if piece == "?":
        return "[^/]"
    if piece[0] == "[" and len(piece) > 1:
        return _class(piece)
    return re.escape(piece[1] if piece[0] == "\\" else piece)


def _class(piece: str) -> str:
    inside = piece[1:-1]
    negated = inside[0] in "!^"
    members: list[str] = []
    at = int(negated)
    while at < len(inside):
        member, at = _member(inside, at)
        if inside[at : at + 1] == "-" and at + 1 < len(inside):
            last, at = _member(inside, at + 1)
            member = f"{member}-{last}"
        members.append(member)
    # A class never stands for the slash, whatever its ranges hold.
    return f"(?!/)[{'^' if negated else ''}{''.join(members)}]"


def _member(inside: str, at: int) -> tuple[str, int]:
    if inside[at] == "\\" and at + 1 < len(inside):
        at += 1
    return re.escape(inside[at]), at + 1
