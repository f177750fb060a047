"""Changing one value of a configuration file: every other byte of it stays, comments and all."""

from __future__ import annotations

import contextlib
import json
import re
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.errors import UsageError
from aeon_core.regular_file import read_text, replace_file
from aeon_core.yaml_file import SETTINGS, YamlError, compose_yaml, parse_yaml, plain_value

if TYPE_CHECKING:
    import yaml

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_LINE = re.compile(r"[^\r\n\x85\u2028\u2029]*(?:\r\n|[\r\n\x85\u2028\u2029]|\Z)")
_NO_MORE = re.compile(r"[ \t]*,?[ \t]*(?:#|[\r\n\x85\u2028\u2029]|\Z)")
"""What follows a value that is the last of its line."""
_BYTE_ORDER_MARK = "\ufeff"
_CHANGING = threading.Lock()
"""A theme and a key may be kept at the same time, each on a thread: none may write what the other has not read."""

KeyPath = tuple[str, ...]
"""A key, and those below it."""


def edit_file(file: Path, edit: Callable[[str], str]) -> None:
    """Put what `edit` makes of the text of a configuration file in its place; one that does not exist is made.

    The file is replaced at once, in its mode. Raises UsageError if it cannot be read or written, or if `edit` raises
    ValueError, which says why: then it stays as it is.
    """
    with _CHANGING:
        try:
            # A loop of links is a RuntimeError in some versions of Python.
            target = file.resolve()
            like = target.stat() if target.exists() else None
        except (OSError, RuntimeError) as error:
            raise UsageError(f"cannot read {str(file)!r}: {getattr(error, 'strerror', None) or error}") from None
        if like is not None and not (stat.S_ISREG(like.st_mode) or stat.S_ISDIR(like.st_mode)):
            # To replace it would end a device for everybody: some link a file that they do not want to /dev/null.
            raise UsageError(f"{str(file)!r} is not a regular file and was not changed")
        if like is not None and not like.st_mode & 0o222:
            raise UsageError(f"{str(file)!r} is read-only and was not changed")
        where = f"the config file {str(file)!r}"
        text = read_text(target, where, SETTINGS.size, encoding="utf-8") if like is not None else ""
        mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
        before = text.removeprefix(mark)
        try:
            after = edit(before)
        except ValueError as error:
            raise UsageError(f"{str(file)!r} was not changed: {error}") from None
        if after == before:
            return
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # A new file is private: it may come to hold personal data that is sent to a server.
            replace_file(target, f"{mark}{after}".encode(), like)
        except OSError as error:
            raise UsageError(f"{str(file)!r} cannot be written: {error.strerror}") from None


def change_file(file: Path, path: KeyPath, value: Any) -> None:
    """Set a value of plain data in a configuration file, or remove it where it is None. Raises UsageError."""
    edit_file(file, lambda text: changed(text, path, value))


def changed(text: str, path: KeyPath, value: Any) -> str:
    """Return the YAML text with one value set, or removed where it is None; all other bytes are what they were.

    Raises ValueError if the text is no YAML of `key: value` lines, or no such change can be made.
    """
    before = _data(text)
    wanted = _with(before, path, value)
    if wanted == before:
        return text
    for candidate in _candidates(text, path, value, wanted):
        with contextlib.suppress(ValueError):
            if _data(candidate) == wanted:
                return candidate
    raise ValueError(f"{'.'.join(path)!r} cannot be changed on its own; change it in an editor")


def with_item(text: str, path: KeyPath, item: str) -> str:
    """Return the YAML text with one more item in the list at a path. Raises ValueError."""
    items = _items(text, path)
    return text if item in items else changed(text, path, [*items, item])


def without_item(text: str, path: KeyPath, item: str) -> str:
    """Return the YAML text without an item of the list at a path, and without the key of an empty list.

    Raises ValueError.
    """
    items = _items(text, path)
    left = [each for each in items if each != item]
    return text if left == items else changed(text, path, left or None)


def _items(text: str, path: KeyPath) -> list[Any]:
    value: Any = _data(text)
    for key in path:
        if value and not isinstance(value, dict):
            break
        value = (value or {}).get(key)
    else:
        if not value or isinstance(value, list):
            return value or []
    raise ValueError(f"{'.'.join(path)!r} is no list")


def _data(text: str) -> dict[Any, Any]:
    try:
        data = parse_yaml(text)
    except YamlError as error:
        line = "" if error.line is None else f", see line {error.line}"
        raise ValueError(f"it cannot be read{line}: {error}") from None
    if data is not None and not isinstance(data, dict):
        raise ValueError("it does not hold `key: value` lines")
    return data or {}


def _with(data: dict[Any, Any], path: KeyPath, value: Any) -> dict[Any, Any]:
    """Return the data with another value at the path; without it, and what is empty then, if that is None."""
    key, *below = path
    if below:
        inner = data.get(key)
        value = _with(inner if isinstance(inner, dict) else {}, tuple(below), value) or None
    return {name: each for name, each in {**data, key: value}.items() if name != key or value is not None}


def _candidates(text: str, path: KeyPath, value: Any, wanted: Any) -> Iterator[str]:
    """Yield texts that may say what is wanted, the most natural one first; which of them do is for the caller to see.

    Lines are added and taken out. Where that cannot be, the innermost collection that can is written on one line; one
    with a comment in it cannot.
    """
    root = compose_yaml(text)
    end = "\r\n" if "\r\n" in text else "\n"
    entries = list(_entries(root, path))
    rest = path[len(entries) :]
    if value is None:
        for key, node in reversed(entries):
            yield from _removed(text, key, node)
    elif rest:
        inner = value
        for below in reversed(rest[2:]):
            inner = {below: inner}
        if len(rest) > 1 and not entries:
            line = f"{as_scalar(rest[0])}:{end}  {as_scalar(rest[1])}: {as_scalar(inner)}"
        else:
            line = f"{as_scalar(rest[0])}: {as_scalar({rest[1]: inner} if rest[1:] else inner)}"
        if not entries:
            yield f"{text}{_break_after(text, end)}{line}{end}"
        yield from _first_in(text, entries[-1][1] if entries else root, line, end)
    else:
        key, node = entries[-1]
        yield from _with_items(text, node, value, end)
        between = text[key.end_mark.index : node.start_mark.index]
        if _is_block(node) and not _has_comment(text, node) and "#" not in between:
            yield f"{text[: key.end_mark.index]}: {as_scalar(value)}{text[_end(text, node) :]}"
    values = [wanted]
    for name in path[: len(entries)]:
        values.append(values[-1].get(name) if isinstance(values[-1], dict) else None)
    nodes = [root, *(node for _, node in entries)]
    for place, inner in reversed([*zip(nodes, values, strict=True)]):
        # A whole file is not put on one line.
        if place is not None and inner is not None and not (place is root and _is_block(root)):
            start, stop = place.start_mark.index, _end(text, place)
            if not _has_comment(text, place):
                # An empty value is a place right behind the colon.
                yield f"{text[:start]}{' ' if start == stop else ''}{as_scalar(inner)}{text[stop:]}"


def _is_block(node: Any) -> bool:
    return node.id != "scalar" and not node.flow_style


def _entries(node: Any, path: KeyPath) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Yield the entries that there are on a path, the outermost first; of several of one name the last."""
    for name in path:
        pairs = node.value if getattr(node, "id", None) == "mapping" else []
        entry = next((pair for pair in reversed(pairs) if pair[0].value == name), None)
        if entry is None:
            return
        yield entry
        node = entry[1]


def _with_items(text: str, node: Any, wanted: Any, end: str) -> Iterator[str]:
    """Yield the text where a list with lines of its own has one more item at its end, or one less."""
    nodes = node.value if node.id == "sequence" and isinstance(wanted, list) else []
    if nodes and len(wanted) == len(nodes) + 1:
        mark = nodes[-1].start_mark
        begin = text[mark.index - mark.column : mark.index]
        place = _line_end(text, _end(text, nodes[-1]))
        if begin.strip() == "-":
            line = f"{begin}{as_scalar(wanted[-1])}{end}"
            yield f"{text[:place]}{_break_after(text[:place], end)}{line}{text[place:]}"
    elif nodes and len(wanted) == len(nodes) - 1:
        items = [plain_value(each) for each in nodes]
        gone = next((place for place, each in enumerate(wanted) if each != items[place]), len(wanted))
        yield from _removed(text, nodes[gone], nodes[gone])


def _break_after(text: str, end: str) -> str:
    return "" if not text or text.endswith(("\n", "\r")) else end


def _first_in(text: str, node: Any, line: str, end: str) -> Iterator[str]:
    """Yield the text with a line before the first one of a mapping."""
    if getattr(node, "id", None) == "mapping" and node.value:
        mark = node.value[0][0].start_mark
        indent = text[mark.index - mark.column : mark.index]
        if not node.flow_style and not indent.strip():
            yield f"{text[: mark.index]}{line}{end}{indent}{text[mark.index :]}"


def _removed(text: str, first: yaml.Node, last: yaml.Node) -> Iterator[str]:
    """Yield the text without an entry's lines, but with those of comments among them."""
    start, stop = first.start_mark.index, _end(text, last)
    line = start - first.start_mark.column
    if _NO_MORE.match(text, stop) and not text[line:start].strip(" \t-"):
        after = _line_end(text, stop)
        kept, begin = "", line
        for node in [first, *_leaves(last)]:
            lead = node.start_mark.index - node.start_mark.column
            kept += text[begin:lead]
            begin = max(begin, _line_end(text, _end(text, node)))
        yield text[:line] + kept + text[begin:after] + text[after:]


def _leaves(node: Any, *, in_flows: bool = False) -> Iterator[yaml.Node]:
    """Yield the nodes of which a block collection is made, `in_flows` also those of one in brackets; else itself."""
    if node.id == "scalar" or (node.flow_style and not in_flows):
        yield node
        return
    for each in node.value:
        for part in each if node.id == "mapping" else [each]:
            yield from _leaves(part, in_flows=in_flows)


def _has_comment(text: str, node: yaml.Node) -> bool:
    """Return whether there is a comment in a collection: a `#` between its scalars."""
    begin = node.start_mark.index
    for each in _leaves(node, in_flows=True):
        if "#" in text[begin : each.start_mark.index]:
            return True
        begin = each.end_mark.index
    return "#" in text[begin : _end(text, node)]


def _end(text: str, node: yaml.Node) -> int:
    """Return where a node ends. A block's own end mark is after the comments that follow it."""
    last = deque(_leaves(node), maxlen=1).pop()
    stop: int = last.end_mark.index
    while stop > last.start_mark.index and text[stop - 1].isspace():
        stop -= 1
    return stop


def _line_end(text: str, place: int) -> int:
    found = _LINE.match(text, place)
    return found.end() if found is not None else len(text)


def as_scalar(value: Any) -> str:
    """Return plain data as YAML on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{as_scalar(key)}: {as_scalar(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_scalar, value))}]"
    plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return str(value) if plain else json.dumps(value, ensure_ascii=False)
