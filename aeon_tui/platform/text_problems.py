"""What is wrong with a text that a person edits: each problem with the line that it is on, where that is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.yaml_file import YamlError, compose_yaml

if TYPE_CHECKING:
    from aeon_core.errors import AeonError

_PLACE = re.compile(r"(?:^|[^\w.])line (\d+)(?:, column \d+)?(?:: ?| )")
_PATH = re.compile(r"([A-Za-z_]\w*(?:\[\d+\]|\.\w+)*)")
_PART = re.compile(r"\[(\d+)\]|(\w+)")
_WITHIN = re.compile(r"\bthe (\w+)")
_QUOTED = re.compile(r"['\"]([\w.-]+)['\"]")


@dataclass(frozen=True)
class TextProblem:
    """One thing that is wrong. `line` counts from 1."""

    reason: str
    line: int | None = None

    def __str__(self) -> str:
        return self.reason if self.line is None else f"line {self.line}: {self.reason}"


def text_problems(error: AeonError, text: str, file: Path) -> list[TextProblem]:
    """Return what an error says of a YAML text; `file`, which it names, is left out."""
    listed = error.context.get("problems")
    if not isinstance(listed, list):
        message = error.message
        for name in (f"the config file {str(file)!r}", repr(str(file))):
            message = message.replace(f"{name}, ", "").replace(f" in {name}", "").replace(f"{name} ", "")
        listed = [message]
    root = _root(text)
    return [_located(str(each), root) for each in listed]


def _root(text: str) -> Any:
    try:
        return compose_yaml(text.removeprefix("\ufeff"))
    except YamlError:
        return None


def _located(reason: str, root: Any) -> TextProblem:
    if place := _PLACE.search(reason):
        return TextProblem(reason[place.end() :], int(place[1]))
    found = [_place(root, path) for path in _paths(reason)]
    deepest = max(found, key=lambda each: each[0], default=(0, None))
    return TextProblem(reason, deepest[1])


def _paths(reason: str) -> Iterator[list[str | int]]:
    """Yield what may be the path of the value that a reason is about.

    That is what it begins with, what it quotes below that, and what it quotes of `the` part that it names.
    """
    start = _PATH.match(reason)
    parts = [int(index) if index else key for index, key in _PART.findall(start[1])] if start is not None else []
    yield parts
    within = _WITHIN.findall(reason)[:1]
    for quoted in _QUOTED.findall(reason):
        yield [*parts, quoted]
        yield [*within, quoted]
        yield [quoted]


def _place(node: Any, path: list[str | int]) -> tuple[int, int | None]:
    """Return how much of the path there is, and the line where that leads; None for nothing of it."""
    line: int | None = None
    for depth, part in enumerate(path):
        if isinstance(part, int):
            items = node.value if getattr(node, "id", None) == "sequence" else []
            key = node = items[part] if part < len(items) else None
        else:
            pairs = node.value if getattr(node, "id", None) == "mapping" else []
            key, node = next(((name, value) for name, value in pairs if name.value == part), (None, None))
        if key is None:
            return depth, line
        line = int(key.start_mark.line) + 1
    return len(path), line
