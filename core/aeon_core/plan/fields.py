"""The fields of a plan in outside data: what each must be, and how a value that is not is spoken of (core FR-007)."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

from aeon_core.json_safe import MAX_DEPTH, NotJsonSafeError, clean_text, json_safe, parse_json
from aeon_core.step_words import StepStatus

STATUSES: tuple[str, ...] = get_args(StepStatus)
PLAN_FIELDS = ("goal", "steps")
STEP_FIELDS = (
    "step_id",
    "description",
    "status",
    "tool",
    "agent",
    "arguments",
    "depends_on",
    "errors",
    "subplan",
    "replaces",
)
FLAT_FIELDS = (
    "id",
    "parent",
    *(name for name in STEP_FIELDS if name not in ("step_id", "subplan")),
    "step_id",
    "arguments_json",
)
SUBPLAN_FIELDS = ("parent_step_id", "subplan_goal", "substeps", "depth_level", "created_by")

_MAX_SHOWN = 60
_MAX_PATH = 160
_MAX_INTEGER_BITS = 14_000
"""What Python turns into decimal digits without being told to."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a plan: where, what, and what would put it right."""

    path: str
    finding: str
    repair: str
    step_id: str | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.finding}"


class Problems:
    """The problems found so far, at most `limit` of them."""

    def __init__(self, limit: int) -> None:
        self.found: list[Problem] = []
        self.limit = limit

    @property
    def full(self) -> bool:
        return len(self.found) >= self.limit

    def add(self, path: str, finding: str, repair: str, step_id: str | None = None) -> None:
        if not self.full:
            self.found.append(Problem(_clipped(path), finding, repair, step_id))

    def expected(self, path: str, expectation: str, value: Any, step_id: str | None = None) -> None:
        """Note that the value at `path` should have been something else."""
        self.add(path, f"expected {expectation}, got {shown(value)}", f"Make {_clipped(path)} {expectation}.", step_id)

    def missing(self, path: str, expectation: str, step_id: str | None = None) -> None:
        self.add(path, f"missing, expected {expectation}", f"Add {_clipped(path)}: {expectation}.", step_id)

    def unknown_keys(self, path: str, keys: Iterable[str], known: tuple[str, ...], step_id: str | None = None) -> None:
        for key in keys:
            if self.full:
                return
            if key not in known:
                near = difflib.get_close_matches(key[:_MAX_SHOWN], known, n=1, cutoff=0.0)[0]
                finding = f"unknown key {shown(key)}, the nearest known one is {near!r}"
                self.add(path, finding, f"Rename the key {shown(key)} to {near!r}, or remove it.", step_id)


def shown(value: Any) -> str:
    """Return a short description of any value on one line."""
    if isinstance(value, str):
        text = clean_text(value if len(value) <= _MAX_SHOWN else value[:_MAX_SHOWN] + "…")
        return json.dumps(text, ensure_ascii=not text.isprintable())
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, (list, tuple)):
        return f"an array of {len(value)}" if value else "an empty array"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (int, float)):
        return repr(value)
    return f"a value of type {type(value).__name__}"


def key_path(path: str, key: str) -> str:
    """Return the path of a key inside the object at `path`; the plan itself has the empty path."""
    if not key.isidentifier() or len(key) > _MAX_SHOWN:
        return f"{path}[{shown(key)}]"
    return f"{path}.{key}" if path else key


def json_copy(value: Any, path: str, problems: Problems, depth: int = 0) -> Any:
    """Return a copy of `value` as plain JSON with clean text; what has no JSON form is a problem and becomes null."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int) and value.bit_length() <= _MAX_INTEGER_BITS:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if not isinstance(value, (dict, list, tuple)):
        problems.expected(path, "a JSON value", value)
        return None
    if depth >= MAX_DEPTH:
        problems.add(path, f"nested deeper than {MAX_DEPTH} levels", "Flatten what is nested there.")
        return None
    if isinstance(value, dict):
        return _object_copy(value, path, problems, depth)
    return [json_copy(item, f"{path}[{index}]", problems, depth + 1) for index, item in enumerate(value)]


def _object_copy(value: dict[Any, Any], path: str, problems: Problems, depth: int) -> dict[str, Any]:
    copy: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            problems.add(path, f"expected keys that are strings, got {shown(key)}", f"Quote the key {shown(key)}.")
            continue
        name = clean_text(key)
        if name in copy:
            problems.add(path, f"the key {shown(name)} occurs twice", "Rename one of them.")
        copy[name] = json_copy(item, key_path(path, name), problems, depth + 1)
    return copy


def expectation(name: str, value: Any) -> str | None:
    """Return what the field `name` of a step must be, or None where `value` is just that."""
    if name in ("step_id", "id", "parent", "description", "tool", "replaces"):
        return text_expectation(value)
    if name == "status":
        return None if value in STATUSES else f"one of {', '.join(STATUSES)}"
    if name == "agent":
        return None if value == "llm" else "'llm'"
    if name in ("arguments", "subplan"):
        return None if isinstance(value, dict) else "an object"
    if name == "arguments_json":
        return None if isinstance(arguments_in(value), dict) else "a JSON object written as a string"
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return "an array of strings"
    return None if name == "errors" or all(map(_not_blank, value)) else "an array of non-empty strings"


def text_expectation(value: Any) -> str | None:
    """Return what a text must be, or None where `value` is one."""
    if not isinstance(value, str):
        return "a string"
    return None if _not_blank(value) else "a non-empty string"


def arguments_in(value: Any) -> Any:
    """Return the JSON value that a string holds, or None where it holds none."""
    try:
        return parse_json(value, unique_keys=True) if isinstance(value, str) else None
    except ValueError:
        return None


def _not_blank(text: str) -> bool:
    return bool(text.strip())


def _clipped(path: str) -> str:
    half = _MAX_PATH // 2
    path = path or "plan"
    return path if len(path) <= _MAX_PATH else f"{path[:half]}…{path[-half:]}"


def object_in(reply: Any, expected: str) -> dict[str, Any]:
    """Return the object of a reply: of its text, or the value it holds. Raises ValueError: one line, why not."""
    try:
        value = parse_json(reply) if isinstance(reply, str) else json_safe(reply)
    except NotJsonSafeError:
        raise
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected {expected}, got {shown(value)}")
    return value
