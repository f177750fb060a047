"""Changing one value of a configuration file: every other byte of it stays, comments and all."""

from __future__ import annotations

import contextlib
import json
import re
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.errors import UsageError
from aeon_core.regular_file import read_whole, replace_file
from aeon_core.yaml_file import SETTINGS, YamlError, compose_yaml, parse_yaml

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


def change_file(file: Path, path: KeyPath, value: Any) -> None:
    """Set a value of plain data in a configuration file, or remove it where it is None.

    The file is replaced at once, in its mode; one that does not exist is made. Raises UsageError where it cannot be
    read or written, is no YAML, or holds the value in a form that cannot be changed by itself: then it stays as it is.
    """
    _change(file, path, lambda text: changed(text, path, value))


def add_item(file: Path, path: KeyPath, item: str) -> None:
    """Add a text to a list of a configuration file, as its last item, where it is not there; as `change_file` does."""
    _change(file, path, lambda text: with_item(text, path, item))


def remove_item(file: Path, path: KeyPath, item: str) -> None:
    """Remove a text from a list of a configuration file, and the key with the last one; as `change_file` does."""
    _change(file, path, lambda text: without_item(text, path, item))


def replace_text(file: Path, text: str, before: str) -> None:
    """Put a text in the place of what a configuration file holds, in its mode; `before` is what it held, "" for none.

    Raises UsageError where it holds something else now, or cannot be read or written.
    """

    def edit(now: str) -> str:
        if now.removeprefix(_BYTE_ORDER_MARK) != before:
            raise ValueError("it has changed since it was opened")
        return text

    _change(file, (), edit)


def _change(file: Path, path: KeyPath, edit: Callable[[str], str]) -> None:
    with _CHANGING:
        _edit(file, path, edit)


def _edit(file: Path, path: KeyPath, edit: Callable[[str], str]) -> None:
    try:
        target = file.resolve()
        data = _read(target)
        before = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(
            f"{str(file)!r} is not UTF-8 text and was not changed; change {'.'.join(path)!r} there"
        ) from None
    except (OSError, RuntimeError) as error:
        # A loop of links is a RuntimeError in some versions of Python.
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{str(file)!r} cannot be read: {why}") from None
    try:
        after = edit(before)
    except ValueError as error:
        raise UsageError(f"{str(file)!r} was not changed: {error}") from None
    if after != before:
        try:
            _replace(target, after.encode("utf-8"))
        except OSError as error:
            raise UsageError(f"{str(file)!r} cannot be written: {error.strerror}") from None


def changed(text: str, path: KeyPath, value: Any) -> str:
    """Return the YAML text with one value set, or removed; all other bytes are what they were.

    Raises ValueError where the text is no YAML of `key: value` lines, or no such change can be made.
    """
    return _rewritten(text, path, lambda data: _with(data, path, value), lambda text: _candidates(text, path, value))


def with_item(text: str, path: KeyPath, item: str) -> str:
    """Return the YAML text with one more item in the list at a key and one below it. Raises ValueError."""

    def add(data: dict[Any, Any]) -> dict[Any, Any]:
        items = _items(data, path)
        return data if item in items else _with(data, path, [*items, item])

    return _rewritten(text, path, add, lambda text: _with_item(text, path, item))


def without_item(text: str, path: KeyPath, item: str) -> str:
    """Return the YAML text without an item of the list at a key and one below it. Raises ValueError."""

    def remove(data: dict[Any, Any]) -> dict[Any, Any]:
        items = _items(data, path)
        left = [each for each in items if each != item]
        return data if left == items else _with(data, path, left or None)

    def candidates(text: str) -> Iterator[str]:
        yield from _without_item(text, path, item)
        yield from _candidates(text, path, None)

    return _rewritten(text, path, remove, candidates)


def _rewritten(
    text: str,
    path: KeyPath,
    change: Callable[[dict[Any, Any]], dict[Any, Any]],
    candidates: Callable[[str], Iterator[str]],
) -> str:
    """Return the first of the candidates that says what the change makes of the text's data."""
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    text = text.removeprefix(mark)
    before = _data(text)
    wanted = change(before)
    if wanted == before:
        return mark + text
    for candidate in candidates(text):
        with contextlib.suppress(ValueError):
            if _data(candidate) == wanted:
                return mark + candidate
    raise ValueError(f"{'.'.join(path)!r} cannot be changed on its own; change it in an editor")


def _items(data: dict[Any, Any], path: KeyPath) -> list[Any]:
    key, below = path
    inner = data.get(key) or {}
    items = inner.get(below) or [] if isinstance(inner, dict) else None
    if not isinstance(items, list):
        raise ValueError(f"{'.'.join(path)!r} is no list")
    return items


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
    """Return what the file is to say."""
    key, *below = path
    if below:
        inner = _with(data.get(key) if isinstance(data.get(key), dict) else {}, tuple(below), value)  # type: ignore[arg-type]
        return {**data, key: inner} if inner or value is not None else _without(data, key)
    return {**data, key: value} if value is not None else _without(data, key)


def _without(data: dict[Any, Any], key: str) -> dict[Any, Any]:
    return {known: each for known, each in data.items() if known != key}


def _candidates(text: str, path: KeyPath, value: Any) -> Iterator[str]:
    """Yield texts that may say it, the most natural one first; which of them do is for the caller to see."""
    root = compose_yaml(text)
    end = "\r\n" if "\r\n" in text else "\n"
    entries = list(_entries(root, path))
    rest = path[len(entries) :]
    if value is None:
        for each in reversed(entries):
            yield from _taken_out(text, each)
        return
    said = as_scalar(value)
    if not rest:
        yield _put(text, entries[-1][1], said)
        return
    line = f"{rest[0]}:{end}  {as_scalar(rest[1])}: {said}" if len(rest) == 2 else ""
    for key in reversed(rest[1:]):
        said = f"{{{as_scalar(key)}: {said}}}"
    flow = f"{as_scalar(rest[0])}: {said}"
    if not entries:
        yield from _added(text, root, line or flow, flow, end)
        return
    yield from _first_in(text, entries[-1][1], flow, flow, end)
    yield _put(text, entries[-1][1], f"{{{flow}}}")


def _entries(node: Any, path: KeyPath) -> Iterator[_Entry]:
    """Yield the entries that there are on a path, the outermost first."""
    for key in path:
        if (entry := _entry(node, key)) is None:
            return
        yield entry
        node = entry[1]


def _with_item(text: str, path: KeyPath, item: str) -> Iterator[str]:
    """Yield texts with one more item, the most natural one first."""
    end, said, (key, below) = "\r\n" if "\r\n" in text else "\n", as_scalar(item), path
    root = compose_yaml(text)
    outer = _entry(root, key)
    if outer is None:
        block = f"{key}:{end}  {below}:{end}    - {said}"
        yield from _added(text, root, block, f"{key}: {{{below}: [{said}]}}", end)
        return
    items = _value(outer[1], below)
    if items is None:
        pair = f"{below}: [{said}]"
        yield from _first_in(text, outer[1], pair, pair, end)
        yield _put(text, outer[1], f"{{{pair}}}")
    elif items.id == "sequence" and items.value:
        stop = _end(text, items.value[-1])
        if items.flow_style:
            yield f"{text[:stop]}, {said}{text[stop:]}"
            return
        place = _line_end(text, stop)
        begin = "" if text[:place].endswith(("\n", "\r")) else end
        yield f"{text[:place]}{begin}{' ' * items.start_mark.column}- {said}{end}{text[place:]}"
    else:
        yield _put(text, items, f"[{said}]")


def _without_item(text: str, path: KeyPath, item: str) -> Iterator[str]:
    """Yield texts without the item, or with one less where it is there more than once."""
    items = _value(_value(compose_yaml(text), path[0]), path[1])
    nodes = items.value if items is not None and items.id == "sequence" else []
    for node in (each for each in nodes if each.value == item):
        start, stop = node.start_mark.index, _end(text, node)
        line = start - node.start_mark.column
        if _NO_MORE.match(text, stop) and not text[line:start].strip(" \t-"):
            yield text[:line] + text[_line_end(text, stop) :]
        comma = re.match(r"\s*,\s*", text[stop:])
        if comma is not None:
            yield text[:start] + text[stop + comma.end() :]
        yield re.sub(r",\s*$", "", text[:start]) + text[stop:]


_Entry = tuple["yaml.Node", "yaml.Node"]


def _entry(node: Any, key: str) -> _Entry | None:
    """Return the entry of a mapping, the last one of that name."""
    pairs = node.value if getattr(node, "id", None) == "mapping" else []
    return next((pair for pair in reversed(pairs) if pair[0].value == key), None)


def _value(node: Any, key: str) -> Any:
    """Return the node of a mapping's value; None where it has none of that name."""
    entry = _entry(node, key)
    return entry[1] if entry is not None else None


def _put(text: str, node: yaml.Node, value: str) -> str:
    start, stop = node.start_mark.index, _end(text, node)
    # An empty value is a place right behind the colon.
    return f"{text[:start]}{' ' if start == stop else ''}{value}{text[stop:]}"


def _added(text: str, root: Any, line: str, flow: str, end: str) -> Iterator[str]:
    begin = "" if not text or text.endswith(("\n", "\r")) else end
    yield f"{text}{begin}{line}{end}"
    if root is not None:
        yield from _first_in(text, root, line, flow, end)


def _first_in(text: str, node: Any, line: str, flow: str, end: str) -> Iterator[str]:
    """Yield the text with an entry before the first one of a mapping."""
    if getattr(node, "id", None) != "mapping":
        return
    if not node.value:
        yield _put(text, node, f"{{{flow}}}")
        return
    mark = node.value[0][0].start_mark
    indent = text[mark.index - mark.column : mark.index]
    if not node.flow_style and not indent.strip():
        yield f"{text[: mark.index]}{line}{end}{indent}{text[mark.index :]}"
    yield f"{text[: mark.index]}{flow}, {text[mark.index :]}"


def _taken_out(text: str, entry: _Entry) -> Iterator[str]:
    """Yield the text without an entry: without its lines, but for those of comments, else without its characters."""
    key, value = entry
    start, stop = key.start_mark.index, _end(text, value)
    line = start - key.start_mark.column
    if _NO_MORE.match(text, stop) and not text[line:start].strip():
        after = _line_end(text, stop)
        yield text[:line] + "".join(_between(text, [key, *_leaves(value)], line, after)) + text[after:]
        yield text[:line] + text[after:]
    comma = re.match(r"\s*,\s*", text[stop:])
    if comma is not None:
        yield text[:start] + text[stop + comma.end() :]
    yield re.sub(r",\s*$", "", text[:start]) + text[stop:]


def _between(text: str, nodes: Iterable[yaml.Node], begin: int, end: int) -> Iterator[str]:
    """Yield the lines from `begin` to `end` that contain none of the nodes."""
    for node in nodes:
        line = node.start_mark.index - node.start_mark.column
        if line > begin:
            yield text[begin:line]
        begin = max(begin, _line_end(text, _end(text, node)))
    yield text[begin:end]


def _leaves(node: Any) -> Iterator[yaml.Node]:
    """Yield the nodes of which a block collection is made; any other node itself."""
    if node.id == "scalar" or node.flow_style:
        yield node
        return
    for each in node.value:
        for part in each if node.id == "mapping" else [each]:
            yield from _leaves(part)


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
    plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return str(value) if plain else json.dumps(value, ensure_ascii=False)


def _read(file: Path) -> bytes:
    """Return what the file holds, nothing of one that does not exist. Raises OSError, UsageError."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return b""
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        # To replace it would end a device for everybody: some link a file that they do not want to /dev/null.
        raise UsageError(f"{str(file)!r} is not a regular file and was not changed")
    if not mode & 0o222:
        raise UsageError(f"{str(file)!r} is read-only and was not changed")
    return read_whole(file, SETTINGS.size)


def _replace(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # A new file is private: it may come to hold personal data that is sent to a server.
    replace_file(file, data, file.stat() if file.exists() else None)
