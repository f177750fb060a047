"""Edits configuration files: one value changes; all other bytes, comments included, stay. Also saves policy rules.

Rules in a project's file need consent to everything that the file asks for (Decision 6). Saving or removing a rule
there is consent to that rule only, so it renews the consent only if nothing else in the file was waiting for one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from aeon_core.config.loading import assess_project, read_config_file, user_config_file
from aeon_core.config.trust import ProjectTrust, grant_trust, is_inside
from aeon_core.errors import UsageError, reason_of
from aeon_core.paths import PROJECT_FOLDER, make_config_folder
from aeon_core.regular_file import read_text, replace_file
from aeon_core.tools.base import Answer
from aeon_core.yaml_file import SETTINGS, YamlError, compose_yaml, parse_yaml, plain_value

if TYPE_CHECKING:
    import yaml

    from aeon_core.policy import PolicyRules

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_LINE = re.compile(r"[^\r\n\x85\u2028\u2029]*(?:\r\n|[\r\n\x85\u2028\u2029]|\Z)")
_NO_MORE = re.compile(r"[ \t]*,?[ \t]*(?:#|[\r\n\x85\u2028\u2029]|\Z)")
"""What may follow a value that is the last one on its line."""
_BYTE_ORDER_MARK = "\ufeff"
_CHANGING = threading.Lock()
"""Two threads may save settings at the same time, such as a theme and a key; neither may lose the other's change."""

KeyPath = tuple[str, ...]
"""A key and the keys below it."""


def check_project_file(file: Path) -> None:
    """Raise UsageError if a project's configuration file is a link out of the project, such as to the user's own."""
    if not is_inside(file, file.parent.parent):
        raise UsageError(f"{str(file)!r} is a link out of the project and was not changed; replace it by a file")


def edit_file(file: Path, edit: Callable[[str], str]) -> None:
    """Replace the text of a configuration file by what `edit` returns for it; a missing file is created.

    The file is replaced atomically and keeps its mode. Raises UsageError, and leaves the file as it is, if it cannot be
    read or written, or if `edit` raises ValueError, whose message says why.
    """
    with _CHANGING:
        try:
            # A loop of links raises RuntimeError in `resolve` before Python 3.13, and OSError in `stat` since.
            target = file.resolve()
            like = target.stat() if os.path.lexists(target) else None
        except (OSError, RuntimeError) as error:
            raise UsageError(f"cannot read {str(file)!r}: {reason_of(error)}") from None
        if like is not None and not (stat.S_ISREG(like.st_mode) or stat.S_ISDIR(like.st_mode)):
            # Replacing it could destroy a device: some people link an unwanted file to /dev/null.
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
            if like is None:
                make_config_folder(target.parent)
            # A new file is private, since it may come to hold secrets such as keys for a server.
            replace_file(target, f"{mark}{after}".encode(), like)
        except OSError as error:
            raise UsageError(f"{str(file)!r} cannot be written: {error.strerror}") from None


def change_file(file: Path, path: KeyPath, value: Any) -> None:
    """Set a value of plain data in a configuration file, or remove the value if it is None. Raises UsageError."""
    edit_file(file, lambda text: changed(text, path, value))


def changed(text: str, path: KeyPath, value: Any) -> str:
    """Return the YAML text with one value set, or removed if it is None; all other bytes stay the same.

    Raises ValueError if the text is not YAML with `key: value` lines, or if the change cannot be made.
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
    """Return the YAML text with an item added to the list at a path. Raises ValueError."""
    items = _items(text, path)
    return text if item in items else changed(text, path, [*items, item])


def without_item(text: str, path: KeyPath, item: str) -> str:
    """Return the YAML text with an item removed from the list at a path; an empty list is removed with its key.

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
    raise ValueError(f"{'.'.join(path)!r} is not a list")


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
    """Return the data with a value set at the path; None removes it, and mappings that become empty."""
    key, *below = path
    if below:
        inner = data.get(key)
        value = _with(inner if isinstance(inner, dict) else {}, tuple(below), value) or None
    return {name: each for name, each in {**data, key: value}.items() if name != key or value is not None}


def _candidates(text: str, path: KeyPath, value: Any, wanted: Any) -> Iterator[str]:
    """Yield texts that may contain the wanted data, the most natural one first; the caller must check each.

    Lines are added or removed. If that is not possible, the innermost possible collection is rewritten on one line,
    unless it contains a comment.
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
        # Never put a whole file on one line.
        if place is not None and inner is not None and not (place is root and _is_block(root)):
            start, stop = place.start_mark.index, _end(text, place)
            if not _has_comment(text, place):
                # An empty value starts right after the colon.
                yield f"{text[:start]}{' ' if start == stop else ''}{as_scalar(inner)}{text[stop:]}"


def _is_block(node: Any) -> bool:
    return node.id != "scalar" and not node.flow_style


def _entries(node: Any, path: KeyPath) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Yield the existing entries on a path, the outermost first; of duplicate keys, the last one."""
    for name in path:
        pairs = node.value if getattr(node, "id", None) == "mapping" else []
        entry = next((pair for pair in reversed(pairs) if pair[0].value == name), None)
        if entry is None:
            return
        yield entry
        node = entry[1]


def _with_items(text: str, node: Any, wanted: Any, end: str) -> Iterator[str]:
    """Yield the text with an item added to the end of a block list, or with one removed."""
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
    """Yield the text with a line added at the beginning of a mapping."""
    if getattr(node, "id", None) == "mapping" and node.value:
        mark = node.value[0][0].start_mark
        indent = text[mark.index - mark.column : mark.index]
        if not node.flow_style and not indent.strip():
            yield f"{text[: mark.index]}{line}{end}{indent}{text[mark.index :]}"


def _removed(text: str, first: yaml.Node, last: yaml.Node) -> Iterator[str]:
    """Yield the text without the lines of an entry, but with the comments among them."""
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
    """Yield the leaf nodes of a collection; a collection in brackets is a leaf itself unless `in_flows`."""
    if node.id == "scalar" or (node.flow_style and not in_flows):
        yield node
        return
    for each in node.value:
        for part in each if node.id == "mapping" else [each]:
            yield from _leaves(part, in_flows=in_flows)


def _has_comment(text: str, node: yaml.Node) -> bool:
    """Return whether a collection contains a comment: a `#` between its scalars."""
    begin = node.start_mark.index
    for each in _leaves(node, in_flows=True):
        if "#" in text[begin : each.start_mark.index]:
            return True
        begin = each.end_mark.index
    return "#" in text[begin : _end(text, node)]


def _end(text: str, node: yaml.Node) -> int:
    """Return the end of a node. The end mark of a block is of no use: it is after the comments that follow."""
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


SavedScope = Literal["project", "always"]
_POLICY = "policy"


@dataclass(frozen=True)
class SavedRule:
    """A rule of a configuration file. `file` is the user's own for the scope `always`, else the project's."""

    answer: Answer
    rule: str
    scope: SavedScope
    file: Path


def saved_rules(root: Path) -> list[SavedRule]:
    """Return the rules of both files, the user's own first. Raises UsageError if one cannot be read."""
    return [
        SavedRule(answer, rule, scope, file)
        for scope, file in _files(root).items()
        for rules in [_rules(file)]
        for answer in get_args(Answer)
        for rule in getattr(rules, answer)
    ]


def _files(root: Path) -> dict[SavedScope, Path]:
    return {"always": user_config_file(os.environ), "project": root / PROJECT_FOLDER / "config.yml"}


def _rules(file: Path) -> PolicyRules:
    """Return the rules of a file; none if it does not exist."""
    # Saving a theme does not need pydantic, which this loads.
    from aeon_core.policy import PolicyRules

    found = read_config_file(file).get(_POLICY) if file.exists() else None
    return found if found is not None else PolicyRules()


def save_rule(rule: str, scope: SavedScope, root: Path) -> Path:
    """Add an allow rule to the configuration of a scope, and return its file, the rest of which stays as it is.

    Raises UsageError if it is not a rule, the file cannot be changed, or the project is not trusted.
    """
    from aeon_core.policy import PolicyRules

    try:
        PolicyRules(allow=(rule,))
    except ValueError:
        raise UsageError(f"{rule!r} is not a policy rule") from None
    saved = SavedRule("allow", rule, scope, _files(root)[scope])
    _change(saved, root, with_item)
    return saved.file


def remove_rule(saved: SavedRule, root: Path) -> None:
    """Remove a rule from its file. Raises UsageError if the file cannot be changed."""
    _change(saved, root, without_item)


def _change(saved: SavedRule, root: Path, change: Callable[[str, KeyPath, str], str]) -> None:
    def edit(text: str) -> str:
        return change(text, (_POLICY, saved.answer), saved.rule)

    if saved.scope == "always":
        edit_file(saved.file, edit)
        return
    check_project_file(saved.file)
    before, allowed = assess_project(root), {*_rules(saved.file).allow}
    if not before.allowed:
        raise UsageError(
            "this project's settings are not trusted, so a rule in them would not apply; "
            "trust the folder first (`aeon-tui trust`), or choose another scope"
        )
    edit_file(saved.file, edit)
    after = assess_project(root)
    if _apart_from_rules(after) != _apart_from_rules(before) or {*_rules(saved.file).allow} ^ allowed > {saved.rule}:
        raise UsageError("the project's settings have changed in the meantime; review them with `aeon-tui trust`")
    grant_trust(after)


def _apart_from_rules(trust: ProjectTrust) -> object:
    return [item for item in trust.items if item.key != "policy.allow"], dict(trust.digests)
