"""Reads JSON or YAML files as plain data: no code, tags, anchors or guesses (core FR-009)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.json_safe import no_constant, parse_json
from aeon_core.regular_file import read_text
from aeon_core.yaml_file import UNMATCHED, Bounds, YamlError, brackets_match, parse_yaml, yaml_fault

MAX_BYTES = 10_000_000
MAX_YAML_BYTES = 1_000_000
"""YAML is about ten times slower to read than JSON."""
_BOUNDS = Bounds(nodes=200_000)


class NotPlainDataError(UsageError):
    """A JSON or YAML file holds something that is not plain data; `reason` says what and where."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{str(path)!r} is not a valid plan: {reason}")
        self.reason = reason


def read_data(path: Path) -> Any:
    """Return the content of a JSON or YAML file as plain JSON data. Raises as `parse_data` does."""
    return parse_data(read_text(path, repr(str(path)), MAX_BYTES), path)


def parse_data(text: str, path: Path) -> Any:
    """Return a file's JSON or YAML text as plain JSON data.

    Raises NotPlainDataError for JSON or YAML with a duplicate key, an anchor, a tag, a number out of range or too many
    levels, UsageError for anything else: one line with the file, the place if known, and the problem.
    """
    try:
        return parse_json(text, unique_keys=True)
    except ValueError as error:
        reason = str(error)
    if (fault := _json_fault(text)) is None:
        raise NotPlainDataError(path, reason)
    if path.suffix.lower() == ".json":
        raise UsageError(f"{str(path)!r} is not JSON: {fault}")
    if len(text) > MAX_YAML_BYTES:
        raise UsageError(
            f"{str(path)!r} is not JSON ({fault}), and too large for YAML: "
            f"{len(text)} characters, at most {MAX_YAML_BYTES}; write it as JSON"
        )
    try:
        return parse_yaml(text, _BOUNDS)
    except YamlError as error:
        problem = yaml_fault(text) if error.valid else error
        if problem is None:
            raise NotPlainDataError(path, _described(error)) from None
    raise UsageError(f"{str(path)!r} is neither JSON nor YAML: {_described(problem)}")


def _described(error: YamlError) -> str:
    return str(error) if error.line is None else f"line {error.line}, column {error.column}: {error}"


def _json_fault(text: str) -> str | None:
    """Return why a text is not JSON; None if it is, whatever its values.

    One that nests more deeply than the parser reads is only asked whether its brackets match.
    """
    try:
        json.loads(text, parse_constant=no_constant, parse_int=str, parse_float=str)
    except ValueError as error:
        return str(error)
    except RecursionError:
        return None if brackets_match(text) else UNMATCHED
    return None
