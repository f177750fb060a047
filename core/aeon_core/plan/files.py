"""Reading JSON or YAML from a file as plain data: no code, no tags, no anchors, nothing guessed (core FR-009)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from aeon_core.errors import UsageError
from aeon_core.plain import MAX_DEPTH, clean_text, parse_json
from aeon_core.plan.fields import shown

MAX_BYTES = 10_000_000
MAX_YAML_BYTES = 1_000_000
"""YAML is read some hundred times slower than JSON."""

_STRING = "tag:yaml.org,2002:str"
_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_RESOLVED: tuple[tuple[str, str, str], ...] = (
    ("null", r"(?:~|null|Null|NULL|)$", "~nN\0"),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", _NUMBER.pattern + "$", "-+0123456789"),
    ("float", r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$", "-+0123456789"),
)

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_DEEP = 500
"""Levels beyond which only brackets are counted: PyYAML takes quadratic time there."""


class NotPlainDataError(UsageError):
    """A file is JSON or YAML, and holds what plain data cannot: `reason` says what, and where."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{str(path)!r} is no valid plan: {reason}")
        self.reason = reason


class _Loader(yaml.SafeLoader):
    """Knows JSON's types alone: `on` and `2026-01-31` are text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # filled below, as PyYAML does

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _fault(event.start_mark, "anchors and aliases are not read; write the value out")
        return super().compose_node(parent, index)


for _name, _pattern, _first in _RESOLVED:
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(f"^{_pattern}"), [char.strip("\0") for char in _first]
    )


def read_data(path: Path) -> Any:
    """Return what a JSON or YAML file holds, as plain JSON data.

    Raises NotPlainDataError for a file that is JSON or YAML and has a key twice, an anchor, a tag, a number out of
    range or too many levels; UsageError for any other. One line with the file, the place where it is known, and what is
    wrong.
    """
    text = _text(path)
    try:
        return parse_json(text, unique_keys=True)
    except ValueError as error:
        reason = str(error)
    if _is_json(text):
        raise NotPlainDataError(path, reason)
    if path.suffix.lower() == ".json":
        raise UsageError(f"{str(path)!r} is not JSON: {reason}")
    if len(text) > MAX_YAML_BYTES:
        raise UsageError(
            f"{str(path)!r} is not JSON ({reason}), and too large for YAML: {len(text)} characters, "
            f"expected at most {MAX_YAML_BYTES}; write it as JSON"
        )
    try:
        return _yaml_value(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = _described(error)
    fault = _syntax_fault(text, reason)
    if fault is None:
        raise NotPlainDataError(path, reason)
    raise UsageError(f"{str(path)!r} is neither JSON nor YAML: {fault}")


def _is_json(text: str) -> bool:
    """Return whether a text has JSON's grammar, whatever its values."""
    try:
        json.loads(text, parse_constant=_refused, parse_int=str, parse_float=str)
    except ValueError:
        return False
    except RecursionError:
        return _depth(text) is not None
    return True


def _syntax_fault(text: str, reason: str) -> str | None:
    """Return why a text that could not be read has not even YAML's grammar; None where it has, whatever its values."""
    depth = _depth(text)
    if depth is None and text.count("[") + text.count("{") > _DEEP:
        return reason
    if depth is not None and depth > _DEEP:
        return None
    try:
        for _ in yaml.parse(text, Loader=yaml.SafeLoader):
            pass
    except (yaml.YAMLError, ValueError) as error:
        return _described(error)
    return None


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _depth(text: str) -> int | None:
    """Return how deeply brackets nest outside double quotes, None where they do not match."""
    deepest, left = 0, [""]
    for bracket in re.findall(r"[\[\]{}]", _QUOTED.sub("", text)):
        if bracket in "[{":
            left.append("]" if bracket == "[" else "}")
            deepest = max(deepest, len(left) - 1)
        elif bracket != left.pop():
            return None
    return deepest if left == [""] else None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{str(path)!r} cannot be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"{str(path)!r} is larger than {MAX_BYTES} bytes, more than a plan may have")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8 text: byte {error.start} is {data[error.start]:#04x}") from None


def _yaml_value(text: str) -> Any:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        return None if node is None else _value(node, 0)
    finally:
        loader.dispose()


def _value(node: yaml.Node, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _fault(node.start_mark, f"nested deeper than {MAX_DEPTH} levels")
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if isinstance(node, yaml.MappingNode) and kind == "map":
        return _mapping(node, depth)
    if isinstance(node, yaml.SequenceNode) and kind == "seq":
        return [_value(item, depth + 1) for item in node.value]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, kind)
    raise _fault(node.start_mark, f"the tag {shown(node.tag)} is not read; a plan is plain data")


def _scalar(node: yaml.ScalarNode, kind: str) -> Any:
    text = str(node.value)
    if kind == "str":
        return clean_text(text)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind in ("int", "float"):
        return parse_json(text.removeprefix("+"))
    raise _fault(node.start_mark, f"the tag {shown(node.tag)} is not read; a plan is plain data")


def _mapping(node: yaml.MappingNode, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag != _STRING:
            raise _fault(key.start_mark, f"expected a key that is a string, got {shown(key.value)}; quote it")
        name = clean_text(key.value)
        if name in found:
            raise _fault(key.start_mark, f"the key {shown(name)} occurs twice")
        found[name] = _value(item, depth + 1)
    return found


def _fault(mark: yaml.Mark, message: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=message, problem_mark=mark)


def _described(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"nested deeper than {MAX_DEPTH} levels"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark, problem = error.problem_mark, error.problem or "not readable"
        if problem.startswith("but ") and error.context:
            problem = f"{error.context}, {problem}"
        return f"line {mark.line + 1}, column {mark.column + 1}: {' '.join(problem.split())}"
    return " ".join(str(error).split())[:200]
